// The functions of OpenBLAS, its LAPACK, and FFTW that the numeric engine calls. Included by sources and tests of this folder alone.
#pragma once

#include <cblas.h>
#include <fftw3.h>
#include <lapacke.h>

#include "sim/base/expected.hpp"

namespace podsim {

/// Names and types are those of the libraries.
struct MathLibraries {
  decltype(::cblas_sgemm)* cblas_sgemm;
  decltype(::cblas_dgemm)* cblas_dgemm;
  decltype(::cblas_strsm)* cblas_strsm;
  decltype(::cblas_dnrm2)* cblas_dnrm2;
  decltype(::LAPACK_sgetrf)* sgetrf;
  decltype(::LAPACK_dgetrf)* dgetrf;
  decltype(::LAPACK_sgesv)* sgesv;
  decltype(::LAPACK_dgesv)* dgesv;
  decltype(::openblas_set_num_threads)* openblas_set_num_threads;
  int (*blas_thread_shutdown)();  // ends the threads that OpenBLAS starts when it is loaded, one per core but one. Not in its headers

  decltype(::fftwf_plan_dft_1d)* fftwf_plan_dft_1d;
  decltype(::fftwf_execute_dft)* fftwf_execute_dft;
  decltype(::fftwf_destroy_plan)* fftwf_destroy_plan;
  decltype(::fftwf_forget_wisdom)* fftwf_forget_wisdom;
  decltype(::fftwf_alloc_complex)* fftwf_alloc_complex;
  decltype(::fftwf_free)* fftwf_free;
  decltype(::fftw_plan_guru64_dft)* fftw_plan_guru64_dft;
  decltype(::fftw_execute)* fftw_execute;
  decltype(::fftw_destroy_plan)* fftw_destroy_plan;
};

/// The libraries, loaded at the first call: milliseconds, then nothing. OpenBLAS has one thread per call from then on. Safe in several threads. Errors
/// (Cause::environment): one is missing or lacks a function; OpenBLAS is Debian's serial one, which is not safe to call from several threads.
const Expected<MathLibraries>& load_math_libraries();

/// For kernels: what runs them has called use_one_blas_thread(), so there is no error left.
inline const MathLibraries& math() { return *load_math_libraries(); }

}  // namespace podsim
