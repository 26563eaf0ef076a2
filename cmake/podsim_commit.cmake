# cmake -DSOURCE=DIR -DGIT=PROGRAM -DCOMMIT=TEXT -DOUT=FILE -P podsim_commit.cmake: writes the commit that is built as a C++ source, and only if it has
# changed. COMMIT says it where there is no repository, as in a package's sources.
cmake_minimum_required(VERSION 3.25)

set(commit "${COMMIT}")
if(NOT commit AND GIT AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" describe --always --dirty --abbrev=10 --exclude "*" OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUT}" CONTENT "#include \"tools/build_info.hpp\"\n\nnamespace podsim {\nconst char* const built_commit = \"@commit@\";\n}\n" @ONLY)
