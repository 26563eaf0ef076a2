# FFTW::fftw3f and FFTW::fftw3: FFTW 3 in single and double precision. Debian's package has no CMake files.
find_path(FFTW_INCLUDE_DIR NAMES fftw3.h)
find_library(FFTW_SINGLE_LIBRARY NAMES fftw3f)
find_library(FFTW_DOUBLE_LIBRARY NAMES fftw3)
mark_as_advanced(FFTW_INCLUDE_DIR FFTW_SINGLE_LIBRARY FFTW_DOUBLE_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(FFTW REQUIRED_VARS FFTW_SINGLE_LIBRARY FFTW_DOUBLE_LIBRARY FFTW_INCLUDE_DIR)

if(FFTW_FOUND AND NOT TARGET FFTW::fftw3f)
  add_library(FFTW::fftw3f UNKNOWN IMPORTED)
  set_target_properties(FFTW::fftw3f PROPERTIES IMPORTED_LOCATION "${FFTW_SINGLE_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${FFTW_INCLUDE_DIR}")
  add_library(FFTW::fftw3 UNKNOWN IMPORTED)
  set_target_properties(FFTW::fftw3 PROPERTIES IMPORTED_LOCATION "${FFTW_DOUBLE_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${FFTW_INCLUDE_DIR}")
endif()
