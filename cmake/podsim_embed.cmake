# Files as string constants, so that the installed command needs no data folder.
#
# As an include file: podsim_embed(<output.cpp> HEADER <include> FUNCTION <name> [WITH_FOLDER] FILES <file>...) makes a source that defines
#   std::span<const EmbeddedFile> <name>();        one entry per file: its name without its last extension, its text; sorted by name
# WITH_FOLDER: the name begins with that of the file's folder, "folder/name".
# As a script (cmake -P) it writes that source at build time, when a file has changed.

if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  set(count 0)
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME_WLE)
    if(WITH_FOLDER)
      get_filename_component(folder "${file}" DIRECTORY)
      get_filename_component(folder "${folder}" NAME)
      string(PREPEND name "${folder}/")
    endif()
    file(READ "${file}" text)
    string(APPEND entries "    EmbeddedFile{\"${name}\", R\"podsim_file(${text})podsim_file\"},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(WRITE "${OUTPUT}" "// Generated from the embedded files by cmake/podsim_embed.cmake.\n" #
       "#include \"${HEADER}\"\n\n#include <array>\n\nnamespace podsim {\n\n" #
       "std::span<const EmbeddedFile> ${FUNCTION}() {\n" #
       "  static constexpr std::array<EmbeddedFile, ${count}> files{{\n${entries}  }};\n  return files;\n}\n\n}  // namespace podsim\n")
  return()
endif()

set(PODSIM_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
function(podsim_embed output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WITH_FOLDER" "HEADER;FUNCTION" "FILES")
  list(SORT arg_FILES)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DHEADER=${arg_HEADER}" "-DFUNCTION=${arg_FUNCTION}" "-DWITH_FOLDER=${arg_WITH_FOLDER}"
            "-DFILES=${arg_FILES}" -P "${PODSIM_EMBED_SCRIPT}"
    DEPENDS ${arg_FILES} "${PODSIM_EMBED_SCRIPT}"
    COMMENT "Embedding files: ${arg_FUNCTION}()"
    VERBATIM)
endfunction()
