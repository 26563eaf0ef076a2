# Cairo::Cairo. The Debian package brings no CMake file.
find_library(Cairo_LIBRARY NAMES cairo)
find_path(Cairo_INCLUDE_DIR NAMES cairo.h PATH_SUFFIXES cairo)
mark_as_advanced(Cairo_LIBRARY Cairo_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cairo REQUIRED_VARS Cairo_LIBRARY Cairo_INCLUDE_DIR)

if(Cairo_FOUND AND NOT TARGET Cairo::Cairo)
  add_library(Cairo::Cairo UNKNOWN IMPORTED)
  set_target_properties(Cairo::Cairo PROPERTIES IMPORTED_LOCATION "${Cairo_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Cairo_INCLUDE_DIR}")
endif()
