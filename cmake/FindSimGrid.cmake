# SimGrid::SimGrid. The Debian package brings no CMake file.
find_library(SimGrid_LIBRARY NAMES simgrid)
find_path(SimGrid_INCLUDE_DIR NAMES simgrid/s4u.hpp)
mark_as_advanced(SimGrid_LIBRARY SimGrid_INCLUDE_DIR)

if(SimGrid_INCLUDE_DIR AND EXISTS "${SimGrid_INCLUDE_DIR}/simgrid/version.h")
  file(STRINGS "${SimGrid_INCLUDE_DIR}/simgrid/version.h" line REGEX "#define SIMGRID_VERSION_STRING ")
  string(REGEX MATCH "[0-9]+(\\.[0-9]+)+" SimGrid_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SimGrid REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR VERSION_VAR SimGrid_VERSION)

if(SimGrid_FOUND AND NOT TARGET SimGrid::SimGrid)
  add_library(SimGrid::SimGrid UNKNOWN IMPORTED)
  set_target_properties(SimGrid::SimGrid PROPERTIES IMPORTED_LOCATION "${SimGrid_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SimGrid_INCLUDE_DIR}")
endif()
