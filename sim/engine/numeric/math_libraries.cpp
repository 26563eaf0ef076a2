#include "sim/engine/numeric/math_libraries.hpp"

#include "sim/base/shared_library.hpp"
#include "sim/engine/numeric/kernels.hpp"

// Names of functions, after LAPACK's macros have made them those of this computer's Fortran.
#define PODSIM_NAME_OF(function) PODSIM_QUOTED(function)
#define PODSIM_QUOTED(name) #name

namespace podsim {
namespace {

void use_one_thread(const MathLibraries& libraries) {
  libraries.openblas_set_num_threads(1);
  libraries.blas_thread_shutdown();
}

Status load_openblas(MathLibraries& into) {
  const std::string package = "OpenBLAS with threads (Debian: libopenblas0-pthread)";
  FunctionFinder find{"libopenblas.so.0", package};
  decltype(::openblas_get_parallel)* kind = nullptr;
  find("openblas_get_parallel", kind);
  find("openblas_set_num_threads", into.openblas_set_num_threads);
  find("blas_thread_shutdown_", into.blas_thread_shutdown);
  find("cblas_sgemm", into.cblas_sgemm);
  find("cblas_dgemm", into.cblas_dgemm);
  find("cblas_strsm", into.cblas_strsm);
  find("cblas_dnrm2", into.cblas_dnrm2);
  find(PODSIM_NAME_OF(LAPACK_sgetrf), into.sgetrf);
  find(PODSIM_NAME_OF(LAPACK_dgetrf), into.dgetrf);
  find(PODSIM_NAME_OF(LAPACK_sgesv), into.sgesv);
  find(PODSIM_NAME_OF(LAPACK_dgesv), into.dgesv);
  if (!find.status()) return find.status();
  if (kind() == OPENBLAS_SEQUENTIAL)
    return Diagnostic{{}, "libopenblas.so.0 is the serial OpenBLAS, which is wrong when several threads call it. Install " + package, Cause::environment};
  use_one_thread(into);
  return success();
}

Status load_fftw(MathLibraries& into) {
  FunctionFinder single{"libfftw3f.so.3", "FFTW 3 (Debian: libfftw3-single3)"};
  single("fftwf_plan_dft_1d", into.fftwf_plan_dft_1d);
  single("fftwf_execute_dft", into.fftwf_execute_dft);
  single("fftwf_destroy_plan", into.fftwf_destroy_plan);
  single("fftwf_forget_wisdom", into.fftwf_forget_wisdom);
  single("fftwf_alloc_complex", into.fftwf_alloc_complex);
  single("fftwf_free", into.fftwf_free);
  if (!single.status()) return single.status();
  FunctionFinder twice{"libfftw3.so.3", "FFTW 3 (Debian: libfftw3-double3)"};
  twice("fftw_plan_guru64_dft", into.fftw_plan_guru64_dft);
  twice("fftw_execute", into.fftw_execute);
  twice("fftw_destroy_plan", into.fftw_destroy_plan);
  return twice.status();
}

Expected<MathLibraries> load_all() {
  MathLibraries libraries{};
  if (const Status openblas = load_openblas(libraries); !openblas) return openblas.error();
  if (const Status fftw = load_fftw(libraries); !fftw) return fftw.error();
  return libraries;
}

}  // namespace

const Expected<MathLibraries>& load_math_libraries() {
  static const Expected<MathLibraries> libraries = load_all();
  return libraries;
}

Status use_one_blas_thread() {
  const Expected<MathLibraries>& libraries = load_math_libraries();
  if (!libraries) return libraries.error();
  use_one_thread(*libraries);
  return success();
}

}  // namespace podsim
