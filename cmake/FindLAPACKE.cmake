# LAPACKE::LAPACKE: LAPACK's functions (sgetrf_ and others), declared by lapacke.h, in the one OpenBLAS that FindOpenBLAS.cmake chooses.
#
# Not -llapacke: Debian's library loads the BLAS and the LAPACK that update-alternatives names. That may be a second copy of OpenBLAS, with a thread
# count of its own, or the serial one, which is wrong when several threads call it. OpenBLAS has the functions itself. They take matrices by columns;
# LAPACKE's layer would transpose matrices by rows first, which the numeric engine does when it gathers a box.
find_package(OpenBLAS QUIET)
find_path(LAPACKE_INCLUDE_DIR NAMES lapacke.h PATH_SUFFIXES lapacke)
mark_as_advanced(LAPACKE_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LAPACKE REQUIRED_VARS LAPACKE_INCLUDE_DIR OpenBLAS_FOUND)

if(LAPACKE_FOUND AND NOT TARGET LAPACKE::LAPACKE)
  add_library(LAPACKE::LAPACKE INTERFACE IMPORTED)
  set_target_properties(LAPACKE::LAPACKE PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${LAPACKE_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES OpenBLAS::OpenBLAS)
endif()
