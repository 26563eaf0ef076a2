# Functions that turn a folder into targets. A folder needs one line of CMake; its files are found by their names:
#
#   x.cpp, x.hpp     the library podsim::<name>; without any x.cpp it is an INTERFACE library
#   x.proto          the library podsim::<name>_proto, included as "<folder>/x.pb.h"
#   x_test.cpp       the GoogleTest program <name>_test, one CTest case per TEST (with sanitizers: four in all)
#   test_x.hpp, x_test.hpp, testing.hpp   what tests share; not installed
#   x_fuzz.cpp       the libFuzzer program x_fuzz (only with PODSIM_FUZZ)
#   x_bench.cpp      nothing here: part of podsim_bench (tools/CMakeLists.txt)
#   main.cpp         nothing here: the folder says what to do with it
#   CMakeLists.txt   in a subfolder of a RECURSE folder: a library of its own, left out here
#
# Every include is written from the root of the repository: #include "sim/base/quantity.hpp".

# Adds each folder that exists. A folder of the layout that holds nothing yet is no error.
function(podsim_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

# podsim_library(<name> [RECURSE] [NO_INSTALL]
#                [FEW_OPTIMISATIONS]             what runs once per command or file, not per event: PODSIM_FEW_OPTIMISATIONS
#                [DEPENDS <podsim library>...]   part of the interface, by short name
#                [PROTOS <podsim library>...]    whose message files ours import
#                [PUBLIC <target>...]            outside libraries that our headers include
#                [PRIVATE <target>...]           outside libraries that only our sources include
#                [SOURCES <file>...]             generated sources
#                [TEST_DEPENDS <target>...]      what the tests need on top
#                [THINNED_TESTS])                some tests try fewer cases under sanitizers (sim/base/test_cases.hpp)
# A name in DEPENDS whose folder holds nothing yet is left out.
function(podsim_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RECURSE;NO_INSTALL;FEW_OPTIMISATIONS;THINNED_TESTS" "" "DEPENDS;PROTOS;PUBLIC;PRIVATE;SOURCES;TEST_DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "podsim_library(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target podsim_${name})

  set(glob GLOB)
  if(arg_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS LIST_DIRECTORIES false *.cpp)
  file(${glob} headers CONFIGURE_DEPENDS LIST_DIRECTORIES false *.hpp)
  list(FILTER headers EXCLUDE REGEX "/(test_[^/]*|[^/]*_test|testing)\\.hpp$")
  file(${glob} protos CONFIGURE_DEPENDS LIST_DIRECTORIES false *.proto)
  if(arg_RECURSE)
    file(GLOB_RECURSE own_folders CONFIGURE_DEPENDS LIST_DIRECTORIES false CMakeLists.txt)
    foreach(own_folder IN LISTS own_folders)
      cmake_path(GET own_folder PARENT_PATH own_folder)
      if(NOT own_folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
        foreach(file IN LISTS sources headers protos)
          cmake_path(IS_PREFIX own_folder "${file}" in_own_folder)
          if(in_own_folder)
            list(REMOVE_ITEM sources "${file}")
            list(REMOVE_ITEM headers "${file}")
            list(REMOVE_ITEM protos "${file}")
          endif()
        endforeach()
      endif()
    endforeach()
  endif()
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|/main)\\.cpp$|/bench/")
  list(APPEND sources ${arg_SOURCES})

  podsim_present_libraries(depends ${arg_DEPENDS})
  if(sources)
    add_library(${target} STATIC ${sources})
    set_property(GLOBAL APPEND PROPERTY PODSIM_ARCHIVES ${target})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:podsim_warnings> ${arg_PRIVATE})
    podsim_library_headers()
    target_precompile_headers(${target} REUSE_FROM podsim_library_headers)
    if(arg_FEW_OPTIMISATIONS)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${PODSIM_FEW_OPTIMISATIONS}>)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(podsim::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${depends} ${arg_PUBLIC})
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  # Said apart from the file set, which gives no include path while the folder holds no header.
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")

  if(protos)
    podsim_proto_library(${name} ${protos})
    foreach(library IN LISTS arg_PROTOS)
      target_link_libraries(podsim_${name}_proto PUBLIC podsim_${library}_proto)
    endforeach()
    if(sources)
      target_link_libraries(${target} PRIVATE podsim::${name}_proto)
    endif()
  endif()
  if(NOT arg_NO_INSTALL)
    set_property(GLOBAL APPEND PROPERTY PODSIM_INSTALLED_TARGETS ${target})
    set_property(GLOBAL APPEND PROPERTY PODSIM_COMPONENTS ${name})
    if(protos AND sources)
      set_property(GLOBAL APPEND PROPERTY PODSIM_INSTALLED_TARGETS ${target}_proto)
    endif()
  endif()

  if(PODSIM_TESTS AND tests)
    set(thinned)
    if(arg_THINNED_TESTS)
      set(thinned THINNED)
    endif()
    podsim_test(${name}_test ${thinned} SOURCES ${tests} LINK podsim::${name} ${arg_PRIVATE} ${arg_TEST_DEPENDS})
    if(protos)
      target_link_libraries(${name}_test PRIVATE podsim::${name}_proto)
    endif()
  endif()
  if(PODSIM_FUZZ)
    foreach(fuzzer IN LISTS fuzzers)
      podsim_fuzzer("${fuzzer}" ${name})
    endforeach()
  endif()
endfunction()

# The headers of the standard library and of fmt that most of our files include, compiled once for all libraries, whatever their optimisation. A file still
# includes what it uses: tools/scripts/check_each_file.py compiles it without these.
function(podsim_library_headers)
  if(TARGET podsim_library_headers)
    return()
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/library_headers.cpp" CONTENT "// Precompiled headers need a source file to belong to.\n")
  add_library(podsim_library_headers OBJECT "${PROJECT_BINARY_DIR}/generated/library_headers.cpp")
  target_link_libraries(podsim_library_headers PRIVATE podsim_warnings fmt::fmt)
  target_precompile_headers(
    podsim_library_headers PRIVATE <algorithm> <array> <bit> <charconv> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
    <numeric> <optional> <set> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
endfunction()

# podsim_module(<name> LINK <target>...): the folder module/ as podsim_<name>.so, which the library podsim::<name> loads when it first needs it, so that
# programs start without the outside libraries that it is linked with. It is in BUILD/lib/podsim and LIBDIR/podsim; whatever links the library finds it by
# its RUNPATH. The Python package has a copy beside its own module.
function(podsim_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  set(module podsim_${name}_module)
  file(GLOB sources CONFIGURE_DEPENDS module/*.cpp)
  add_library(${module} MODULE ${sources})
  target_link_libraries(${module} PRIVATE ${arg_LINK} podsim_warnings)
  if(NOT PODSIM_SANITIZERS AND NOT APPLE)  # what it lacks would be missed when it is loaded; sanitizers' functions are the program's
    target_link_options(${module} PRIVATE LINKER:--no-undefined)
  endif()
  set_target_properties(${module} PROPERTIES PREFIX "" OUTPUT_NAME podsim_${name} LIBRARY_OUTPUT_DIRECTORY "${PODSIM_MODULE_OUTPUT_DIRECTORY}" #
                                             INSTALL_RPATH "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  add_dependencies(podsim_${name} ${module})
  target_link_options(podsim_${name} INTERFACE "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/podsim>")
  if(NOT PROJECT_IS_TOP_LEVEL)
    target_link_options(podsim_${name} INTERFACE "$<BUILD_INTERFACE:LINKER:-rpath,${PODSIM_MODULE_OUTPUT_DIRECTORY}>")
  endif()
  set_property(GLOBAL APPEND PROPERTY PODSIM_MODULES ${module})
endfunction()

# podsim_headers(<name> <target>...): the include paths of outside libraries in C that are loaded when first needed (sim/base/shared_library.hpp), and that
# nothing is linked with. For PRIVATE of podsim_library.
function(podsim_headers name)
  add_library(podsim_${name} INTERFACE)
  foreach(library IN LISTS ARGN)
    target_include_directories(podsim_${name} SYSTEM INTERFACE "$<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>")
  endforeach()
endfunction()

# Turns short names (base) into targets (podsim::base), leaving out those without a folder. Folders are added in the order of their
# dependencies, so a library that a later one names either exists by then or has no folder.
function(podsim_present_libraries result)
  set(present)
  foreach(library IN LISTS ARGN)
    if(TARGET podsim_${library})
      list(APPEND present podsim_${library})
    endif()
  endforeach()
  set(${result} ${present} PARENT_SCOPE)
endfunction()

# protoc is called from the root of the repository, so that messages of one folder are imported and included by their full path.
# FindProtobuf's protobuf_generate() can only name them relative to the calling folder.
function(podsim_proto_library name)
  podsim_proto_headers()
  set(generated "${PROJECT_BINARY_DIR}/generated")
  set(outputs)
  foreach(proto IN LISTS ARGN)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${proto}")
    string(REGEX REPLACE "\\.proto$" "" stem "${generated}/${path}")
    # Every message file of the folder may import the others, so a change of one regenerates all.
    add_custom_command(
      OUTPUT "${stem}.pb.h" "${stem}.pb.cc"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${generated}"
      COMMAND protobuf::protoc "--cpp_out=${generated}" "--proto_path=${PROJECT_SOURCE_DIR}" "${path}"
      DEPENDS ${ARGN} protobuf::protoc
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      COMMENT "protoc ${path}"
      VERBATIM)
    list(APPEND outputs "${stem}.pb.h" "${stem}.pb.cc")
  endforeach()
  set(target podsim_${name}_proto)
  # podsim_generated: the generated sources of all folders, without compiling them (tools/scripts/check_each_file.py).
  add_custom_target(${target}_sources DEPENDS ${outputs})
  if(NOT TARGET podsim_generated)
    add_custom_target(podsim_generated)
  endif()
  add_dependencies(podsim_generated ${target}_sources)
  add_library(${target} STATIC ${outputs})
  add_library(podsim::${name}_proto ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name}_proto UNITY_BUILD OFF)  # generated files use the same names
  target_compile_options(${target} PRIVATE ${podsim_proto_options})
  # SYSTEM: the generated headers do not pass our warnings either.
  target_include_directories(${target} SYSTEM PUBLIC "$<BUILD_INTERFACE:${generated}>")
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  target_precompile_headers(${target} REUSE_FROM podsim_proto_headers)
endfunction()

# Generated code has warnings. It is small beside Protobuf's own, so that few optimisations do.
set(podsim_proto_options -w $<$<CONFIG:Release>:${PODSIM_FEW_OPTIMISATIONS}>)

# Protobuf's own headers are most of the time it takes to compile a message file: compiled once for all of them.
function(podsim_proto_headers)
  if(TARGET podsim_proto_headers)
    return()
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/proto_headers.cpp" CONTENT "// Precompiled headers need a source file to belong to.\n")
  add_library(podsim_proto_headers OBJECT "${PROJECT_BINARY_DIR}/generated/proto_headers.cpp")
  target_link_libraries(podsim_proto_headers PRIVATE protobuf::libprotobuf)
  target_compile_options(podsim_proto_headers PRIVATE ${podsim_proto_options})
  target_precompile_headers(podsim_proto_headers PRIVATE <google/protobuf/message.h> <google/protobuf/generated_message_reflection.h>
                            <google/protobuf/wire_format.h>)
endfunction()

# Files of tests are not optimised, which takes a third less time to compile; what they test is (podsim_optimised_copies_first). So a test leaves
# heavy arithmetic to libraries. The checks of _FORTIFY_SOURCE (podsim_settings.cmake) need an optimiser.
set(podsim_test_optimisation -O0 -U_FORTIFY_SOURCE)
# Nor do sanitizers look at them, which takes another two fifths less: their programs are linked with sanitizers, and what they test is compiled with.
if(PODSIM_SANITIZERS)
  list(APPEND podsim_test_optimisation -fno-sanitize=all)
endif()

# podsim_test(<name> [THINNED] SOURCES <file>... LINK <target>...): a GoogleTest program. THINNED: its files may include sim/base/test_cases.hpp.
# Its cases run in the root of the repository; PODSIM_SOURCE_DIR is that path for tests that open files by it.
function(podsim_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "THINNED" "" "SOURCES;LINK")
  podsim_test_headers()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} podsim_test_settings podsim_warnings podsim_allocator GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM podsim_test_headers)
  target_compile_options(${name} PRIVATE ${podsim_test_optimisation})
  if(arg_THINNED)
    target_compile_definitions(${name} PRIVATE PODSIM_THINNED_TESTS)
  endif()
  set_property(GLOBAL APPEND PROPERTY PODSIM_TEST_PROGRAMS ${name})
  # The most expensive tests first, so that no processor waits for the last one: programs that are declared later stand on more.
  get_property(cost GLOBAL PROPERTY PODSIM_TEST_PROGRAMS)
  list(LENGTH cost cost)
  if(NOT PODSIM_SANITIZERS)
    # ./test.sh leaves to the sanitized build what that tries whole.
    set(label unit)
    if(NOT arg_THINNED)
      set(label unit_whole_when_sanitized)
      set_property(GLOBAL APPEND PROPERTY PODSIM_WHOLE_WHEN_SANITIZED ${name})
    endif()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}." WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                         PROPERTIES TIMEOUT 1800 LABELS ${label} COST ${cost})
    return()
  endif()
  # A sanitized program takes a tenth of a second to start, which is more than most cases take. So a few processes run all of its cases, every fourth
  # case each. A single case: BUILD/bin/<name> --gtest_filter=.
  set(shards 4)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard}_of_${shards} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name}.${shard}_of_${shards} PROPERTIES TIMEOUT 1800 LABELS unit COST ${cost} #
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# Called last: the target podsim_but_whole_when_sanitized, which is all but the test programs that the sanitized build tries whole.
function(podsim_target_without_twins)
  get_property(twins GLOBAL PROPERTY PODSIM_WHOLE_WHEN_SANITIZED)
  set(folders "${PROJECT_SOURCE_DIR}")
  set(needed)
  while(folders)
    list(POP_FRONT folders folder)
    get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${below})
    get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      if(type MATCHES "^(EXECUTABLE|(STATIC|MODULE|OBJECT)_LIBRARY)$" AND NOT target IN_LIST twins)
        list(APPEND needed ${target})
      endif()
    endforeach()
  endwhile()
  add_custom_target(podsim_but_whole_when_sanitized DEPENDS ${needed})
endfunction()

# Called last, when every library has been declared. Libraries and tests both have copies of the functions that headers define (of std::vector, say),
# and the linker keeps the first copy of each. Objects come before libraries on its command line, so that it would keep the tests' copies, which are not
# optimised: libraries would then call these, and run in four times the time. So tests get the libraries, whole, before their objects; those of -O2
# (dependencies) before those of -O1.
function(podsim_optimised_copies_first)
  if(APPLE OR NOT UNIX)
    return()
  endif()
  get_property(archives GLOBAL PROPERTY PODSIM_ARCHIVES)
  get_property(programs GLOBAL PROPERTY PODSIM_TEST_PROGRAMS)
  foreach(program IN LISTS programs)
    podsim_linked_libraries(linked ${program})
    set(whole)
    foreach(archive IN LISTS archives)
      if(archive IN_LIST linked)
        list(APPEND whole "$<TARGET_FILE:${archive}>")
      endif()
    endforeach()
    list(JOIN whole " " whole)
    target_link_options(${program} BEFORE PRIVATE "SHELL:LINKER:--whole-archive ${whole} LINKER:--no-whole-archive")
  endforeach()
endfunction()

# Our libraries that a target links, directly or through others.
function(podsim_linked_libraries result target)
  get_target_property(pending ${target} LINK_LIBRARIES)
  set(found)
  while(pending)
    list(POP_FRONT pending library)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
    string(REGEX REPLACE "^podsim::" "podsim_" library "${library}")
    if(NOT library MATCHES "^podsim_" OR library IN_LIST found OR NOT TARGET ${library})
      continue()
    endif()
    list(APPEND found ${library})
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND pending ${links})
    endif()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# The headers that every test includes, compiled once for all test programs.
function(podsim_test_headers)
  if(TARGET podsim_test_headers)
    return()
  endif()
  add_library(podsim_test_settings INTERFACE)
  target_compile_definitions(podsim_test_settings INTERFACE "PODSIM_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  if(PODSIM_SANITIZERS)
    target_compile_definitions(podsim_test_settings INTERFACE PODSIM_SANITIZED)
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/test_headers.cpp" CONTENT "// Precompiled headers need a source file to belong to.\n")
  add_library(podsim_test_headers OBJECT "${PROJECT_BINARY_DIR}/generated/test_headers.cpp")
  target_link_libraries(podsim_test_headers PRIVATE podsim_test_settings podsim_warnings GTest::gmock GTest::gtest fmt::fmt)
  # As the programs that use them are compiled (-fPIE), not as libraries are (-fPIC).
  set_target_properties(podsim_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(podsim_test_headers PRIVATE ${podsim_test_optimisation} ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  target_precompile_headers(podsim_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <array> <cstdint> <functional> <map>
                            <memory> <optional> <random> <set> <span> <sstream> <string> <string_view> <tuple> <utility> <variant> <vector>)
endfunction()

# podsim_fuzzer(<path of x_fuzz.cpp> <library>): the libFuzzer program x_fuzz in BUILD/fuzz-targets. A file beside it tells fuzz.sh which
# source it was built from, hence where its seed corpus is.
function(podsim_fuzzer source library)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE podsim::${library} podsim_warnings)
  if(TARGET podsim_${library}_proto)
    target_link_libraries(${name} PRIVATE podsim::${library}_proto)
  endif()
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz-targets")
  add_dependencies(podsim_fuzzers ${name})
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/fuzz-targets/${name}.source" CONTENT "${source}\n" TARGET ${name})
endfunction()
