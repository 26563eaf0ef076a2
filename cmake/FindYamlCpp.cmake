# YamlCpp::YamlCpp. The Debian package's own target, yaml-cpp, has no namespace to tell its package by.
find_library(YamlCpp_LIBRARY NAMES yaml-cpp)
find_path(YamlCpp_INCLUDE_DIR NAMES yaml-cpp/yaml.h)
mark_as_advanced(YamlCpp_LIBRARY YamlCpp_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(YamlCpp REQUIRED_VARS YamlCpp_LIBRARY YamlCpp_INCLUDE_DIR)

if(YamlCpp_FOUND AND NOT TARGET YamlCpp::YamlCpp)
  add_library(YamlCpp::YamlCpp UNKNOWN IMPORTED)
  set_target_properties(YamlCpp::YamlCpp PROPERTIES IMPORTED_LOCATION "${YamlCpp_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${YamlCpp_INCLUDE_DIR}")
endif()
