// What holds unless podsim itself has a fault. Bad input is a Diagnostic, never this.
#pragma once

#include <stdexcept>

namespace podsim {

/// A fault of podsim. Nothing recovers from it: the command ends with status 3 and says what to report, the Python module raises podsim.InternalError.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// "sim/mesh/mesh.cpp:93: expected 0 <= device.value, in device()". Throws it as an InternalError.
[[noreturn, gnu::cold]] void report_broken_invariant(const char* condition, const char* file, int line, const char* function);

}  // namespace podsim

/// As assert(), in every build: it throws where assert() would end the process, and with it a notebook or a sweep.
#define PODSIM_ASSERT(...) ((__VA_ARGS__) ? static_cast<void>(0) : ::podsim::report_broken_invariant(#__VA_ARGS__, __FILE__, __LINE__, __func__))
