# The Debian package: `cmake --build build --target package` (or cpack in the build folder) writes podsim_VERSION_ARCH.deb with the command, the library,
# the machines and datasets, and the Python module. dpkg-shlibdeps (dpkg-dev) says which libraries it depends on.

# The machines and datasets are in the program too; these are for people to read and to begin files of their own with.
install(DIRECTORY topologies/machines validation/datasets DESTINATION "${CMAKE_INSTALL_DATADIR}/podsim" #
        FILES_MATCHING PATTERN "*.textproto" PATTERN "*.csv" PATTERN "README.md")
install(DIRECTORY tools/sweep/examples/ DESTINATION "${CMAKE_INSTALL_DATADIR}/podsim/sweeps")
install(DIRECTORY tools/python/examples/ DESTINATION "${CMAKE_INSTALL_DATADIR}/podsim/python" #
        FILES_MATCHING PATTERN "*.py" PATTERN "*.ipynb" PATTERN "*.textproto" PATTERN "README.md")
install(DIRECTORY tools/launch/ DESTINATION "${CMAKE_INSTALL_DATADIR}/podsim/launch" #
        USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN "*_sweep.sh" PATTERN "*.sbatch" PATTERN "README.md")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "podsim's maintainers <podsim@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The libraries that are loaded when first needed (sim/base/shared_library.hpp) and not linked.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-pthread, libfftw3-single3, libfftw3-double3, libcairo2")
if(TARGET podsim_python)  # which is loaded by this version of Python only
  get_property(python GLOBAL PROPERTY PODSIM_PYTHON_VERSION)
  string(REGEX MATCH "[0-9]+$" next "${python}")
  math(EXPR next "${next} + 1")
  string(REGEX REPLACE "[0-9]+$" "${next}" next "${python}")
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", python3 (>= ${python}), python3 (<< ${next}), python3-numpy")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pandas, python3-distributed, libopenmpi3, parallel, slurm-client")
endif()
include(CPack)
