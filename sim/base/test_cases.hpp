// How many cases a test tries.
#pragma once

namespace podsim::test {

/// Whether this build checks every access to memory (the preset `sanitize`; files of tests are not told by the compiler), which takes about ten times as long.
#if defined(PODSIM_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Whether the library of the test says THINNED_TESTS (cmake/podsim_targets.cmake).
#if defined(PODSIM_THINNED_TESTS)
template <class>
inline constexpr bool may_thin_out = true;
#else
template <class>
inline constexpr bool may_thin_out = false;
#endif

/// `all` in an optimised build, `fewer` in a sanitized one: for seeds of a random campaign and the like. What a test claims is claimed of the optimised
/// build, for all of them; sanitizers look for wrong accesses on the same paths, most of which the first seeds take. So ./test.sh runs programs
/// of THINNED_TESTS in both builds, and any other in the sanitized one alone (cmake/podsim_targets.cmake).
template <class T>
constexpr T cases(T all, T fewer) {
  static_assert(may_thin_out<T>, "a library whose tests thin out their cases says THINNED_TESTS, or ./test.sh would not try all of them");
  return sanitized ? fewer : all;
}

}  // namespace podsim::test
