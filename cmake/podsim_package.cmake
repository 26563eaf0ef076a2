# Three Debian packages: `cmake --build build --target package` (or cpack in the build folder) writes
#
#   podsim_VERSION_ARCH.deb            the command, its manual and completion, machines, datasets, examples, the pages of docs
#   python3-podsim_VERSION_ARCH.deb    the Python module
#   libpodsim-dev_VERSION_ARCH.deb     headers, static libraries, and what find_package(podsim) finds
#
# dpkg-shlibdeps (dpkg-dev) says which libraries they depend on.

# The machines and datasets are in the program too; these are for people to read and to begin files of their own with.
set(data "${CMAKE_INSTALL_DATADIR}/podsim")
install(DIRECTORY topologies/machines validation/datasets DESTINATION "${data}" COMPONENT podsim #
        FILES_MATCHING PATTERN "*.textproto" PATTERN "*.csv" PATTERN "README.md")
install(DIRECTORY tools/sweep/examples/ DESTINATION "${data}/sweeps" COMPONENT podsim)
install(DIRECTORY tools/launch/ DESTINATION "${data}/launch" USE_SOURCE_PERMISSIONS COMPONENT podsim #
        FILES_MATCHING PATTERN "*_sweep.sh" PATTERN "*.sbatch" PATTERN "README.md")
install(FILES README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT podsim)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT podsim FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(DIRECTORY tools/python/examples/ DESTINATION "${data}/python" COMPONENT podsim #
        FILES_MATCHING PATTERN "*.py" PATTERN "*.ipynb" PATTERN "*.textproto" PATTERN "README.md")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "podsim's maintainers <podsim@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL podsim dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PODSIM_SOURCE_DIR "${PROJECT_SOURCE_DIR}")
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian_folders.cmake")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# The libraries that are loaded when first needed (sim/base/shared_library.hpp) and not linked.
set(loaded_later "libopenblas0-pthread, libfftw3-single3, libfftw3-double3, libcairo2")
set(CPACK_DEBIAN_PODSIM_PACKAGE_NAME podsim)
set(CPACK_DEBIAN_PODSIM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PODSIM_PACKAGE_DEPENDS "${loaded_later}")
set(CPACK_DEBIAN_PODSIM_PACKAGE_SUGGESTS "python3-podsim, libopenmpi3, parallel, slurm-client")
set(CPACK_DEBIAN_PODSIM_DESCRIPTION "podsim runs the algorithm schedules of real kernels on modelled pods:
collectives, distributed products, pipelines, training steps, modules that XLA
compiled. It says when everything happens and why, and proves schedules right on
numbers.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpodsim-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(linked_with libfmt-dev libboost-dev libboost-program-options-dev libprotobuf-dev nlohmann-json3-dev libeigen3-dev libsimdjson-dev libsqlite3-dev libyaml-cpp-dev
                libpugixml-dev zlib1g-dev)
list(JOIN linked_with ", " linked_with)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "podsim (= ${PROJECT_VERSION}), ${linked_with}")
set(CPACK_DEBIAN_DEV_DESCRIPTION "Headers and static libraries of podsim, and a package that CMake's
find_package(podsim) finds.")

if(TARGET podsim_python)  # which is loaded by this version of Python only
  get_property(python GLOBAL PROPERTY PODSIM_PYTHON_VERSION)
  string(REGEX MATCH "[0-9]+$" next "${python}")
  math(EXPR next "${next} + 1")
  string(REGEX REPLACE "[0-9]+$" "${next}" next "${python}")
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-podsim)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${loaded_later}, python3 (>= ${python}), python3 (<< ${next}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "podsim, python3-pandas, python3-distributed")
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "The Python module of podsim: runs, comparisons, searches, sweeps, and schedules
that are written in Python.")
endif()
include(CPack)
