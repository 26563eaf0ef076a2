# Language, warnings, sanitizers and compiler cache: what holds for every target of this project.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One place for results, so that the command is BUILD/podsim and a library is BUILD/lib/libpodsim_*.a whatever folder it comes from.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# Modules (podsim_module): programs in BUILD and BUILD/bin find them relative to where they are themselves. Programs are built with the RUNPATH that they are
# installed with: where the two differ, CMake ends the first one in a colon, and an empty element is the current folder, from which libraries would then be
# loaded.
set(PODSIM_MODULE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/podsim")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # libraries outside of the system's folders
set(CMAKE_INSTALL_RPATH "$ORIGIN/lib/podsim" "$ORIGIN/../lib/podsim")

option(PODSIM_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PODSIM_PYTHON "Build the Python module podsim_python (needs pybind11)" ${PROJECT_IS_TOP_LEVEL})
option(PODSIM_FUZZ "Build the *_fuzz.cpp targets (needs clang with libFuzzer)" OFF)
option(PODSIM_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(PODSIM_SANITIZERS "" CACHE STRING "Value of -fsanitize= for every target, empty for none")
# The preset `sanitize` leaves out what the address sanitizer sees as well (null, object-size, pointer-overflow where it is used) and what the fuzzers
# look for (alignment, pointer-overflow): half of the time that it takes to compile.
set(PODSIM_SANITIZERS_OFF "" CACHE STRING "Value of -fno-sanitize= where there are sanitizers")
# Nor does that preset mark each variable when its block ends (a third of what is left): GCC warns of most pointers to such, and the fuzzers look for them.
# GCC adds code for pointers to the variables of functions that have returned, which its runtime uses only when told so: left out as well.
set(PODSIM_SANITIZER_OPTIONS "" CACHE STRING "More options of the compiler where there are sanitizers")
# -O1 takes a third less time to compile than -O2. With sanitizers -O1 takes 1.7 times as long as -Og, for code that tests run briefly.
set(PODSIM_FEW_OPTIMISATIONS "-O1" CACHE STRING "How a Release compiles what runs once per command or file, not per event")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Linked by every target of ours and by nothing generated: protobuf's output does not pass these warnings.
add_library(podsim_warnings INTERFACE)
target_compile_options(podsim_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor $<$<BOOL:${PODSIM_WERROR}>:-Werror>)
if(NOT CMAKE_UNITY_BUILD)  # where files are compiled together, names of one are no shadows over another's
  target_compile_options(podsim_warnings INTERFACE -Wshadow)
endif()

if(PODSIM_SANITIZERS)
  # Directory-wide, generated code included; files of tests are an exception (podsim_targets.cmake).
  add_compile_options(-fsanitize=${PODSIM_SANITIZERS} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(PODSIM_SANITIZERS_OFF)
    add_compile_options(-fno-sanitize=${PODSIM_SANITIZERS_OFF})
  endif()
  add_compile_options(${PODSIM_SANITIZER_OPTIONS})
  # GCC knows less of values with sanitizers or -Og, and takes some that are set for unset; optimised builds of the same files warn.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  # RPATH, not RUNPATH, which holds for calls of dlopen() from the program alone: the sanitizers' own dlopen() calls the system's.
  add_link_options(-fsanitize=${PODSIM_SANITIZERS} LINKER:--disable-new-dtags)
endif()

# Programs that may be loaded anywhere (PIE). Static libraries are then compiled to go into shared ones too, where GCC would not inline what another
# library could replace; nothing replaces ours.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options(-fno-semantic-interposition)

# podsim reads files of others, so a release checks the sizes that memcpy and its like are given, guards return addresses, and resolves all symbols
# before it starts, so that their table can be read-only. Sanitizers see more than these and do not go with them; _FORTIFY_SOURCE needs an optimiser.
if(NOT PODSIM_SANITIZERS)
  set(hardened "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
  add_compile_options("$<${hardened}:-fstack-protector-strong>" "$<${hardened}:-U_FORTIFY_SOURCE>" "$<${hardened}:-D_FORTIFY_SOURCE=2>")
  if(UNIX AND NOT APPLE)
    add_link_options("$<${hardened}:LINKER:-z,relro,-z,now>")
  endif()
endif()

# Programs allocate by mimalloc where it is found: schedules are values with many small vectors, and searches make thousands of them, which takes half the
# time that it takes by the C library's functions. The Python module leaves that to its program, sanitizers have functions of their own.
add_library(podsim_allocator INTERFACE)
if(NOT PODSIM_SANITIZERS)
  find_package(mimalloc 2.0 QUIET)
  if(mimalloc_FOUND)
    # Nothing calls it by name: its malloc and free are found before the C library's, and its operator new behind the C++ library's, which throws where memory
    # ends (mimalloc, which is C, aborts).
    target_link_libraries(podsim_allocator INTERFACE -Wl,--push-state,--no-as-needed stdc++ mimalloc -Wl,--pop-state)
  else()
    message(STATUS "mimalloc is not there (libmimalloc-dev): searches take up to twice the time")
  endif()
endif()

if(PODSIM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "PODSIM_FUZZ needs clang (libFuzzer); the compiler is ${CMAKE_CXX_COMPILER_ID}. Use the preset: cmake --preset fuzz")
  endif()
  # Coverage feedback in the libraries too; only the fuzz executables get libFuzzer's main.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_custom_target(podsim_fuzzers)
endif()

# A cache makes rebuilds after a branch switch cheap; nothing depends on it. Precompiled headers need the two sloppiness flags
# (their time stamps change, their content does not) and, with GCC, directives kept in the preprocessed text.
find_program(PODSIM_CCACHE ccache)
mark_as_advanced(PODSIM_CCACHE)
if(PODSIM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                  "${PODSIM_CCACHE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()
