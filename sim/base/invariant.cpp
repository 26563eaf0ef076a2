#include "sim/base/invariant.hpp"

#include <fmt/format.h>

namespace podsim {

void report_broken_invariant(const char* condition, const char* file, int line, const char* function) {
  throw InternalError{fmt::format("{}:{}: expected {}, in {}()", file, line, condition, function)};
}

}  // namespace podsim
