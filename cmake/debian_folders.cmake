# What Debian's packages have and other installations do not. CPack runs it on the folders of the packages (one for each component), before they are packed:
# compressed man pages, a copyright, a changelog, and the Python package where every python3 of Debian looks.
cmake_minimum_required(VERSION 3.25)

set(names podsim podsim python python3-podsim dev libpodsim-dev)
execute_process(COMMAND git -C "${CPACK_PODSIM_SOURCE_DIR}" log -1 --format=%cD OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT date)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()

function(compress)
  execute_process(COMMAND gzip -9nf ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

while(names)
  list(POP_FRONT names component package)
  set(usr "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr")
  if(NOT IS_DIRECTORY "${usr}")
    continue()
  endif()
  set(documents "${usr}/share/doc/${package}")
  file(COPY_FILE "${CPACK_PODSIM_SOURCE_DIR}/cmake/debian_copyright" "${documents}/copyright")
  file(WRITE "${documents}/changelog"
       "podsim (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * As CHANGELOG.md of the sources says.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress("${documents}/changelog")
  file(GLOB man_pages "${usr}/share/man/man1/*.1")
  if(man_pages)
    compress(${man_pages})
  endif()
  file(GLOB versioned "${usr}/lib/python3.*")
  if(versioned)
    file(RENAME "${versioned}" "${usr}/lib/python3")
  endif()
endwhile()
