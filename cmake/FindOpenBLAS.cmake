# OpenBLAS::OpenBLAS: the library and the folder of its own cblas.h. podsim uses its headers and loads the library when a run needs it
# (sim/engine/numeric/math_libraries.cpp), which refuses the serial one.
#
# Not FindBLAS: the numeric engine sets OpenBLAS's thread count, so another BLAS behind the same interface will not do, and Debian's
# /usr/include/<arch>/cblas.h may be the reference implementation's. Nor Debian's openblas-serial: it has no locks, and products computed by several threads
# of the numeric engine at a time come out wrong (version 0.3.21, five of twelve runs of Gemm.TheReferenceNotebooksLayerIsRightForwardAndBackward).
find_library(OpenBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread)
find_path(OpenBLAS_INCLUDE_DIR NAMES openblas_config.h PATH_SUFFIXES "${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread" openblas-pthread openblas)
mark_as_advanced(OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)

if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES IMPORTED_LOCATION "${OpenBLAS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                            "${OpenBLAS_INCLUDE_DIR}")
endif()
