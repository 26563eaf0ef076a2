// Changes where a Diagnostic points or adds context to its message; its cause stays.
#pragma once

#include <string_view>
#include <utility>

#include "sim/base/diagnostic.hpp"

namespace podsim {

inline Diagnostic blamed_on(SourceLocation where, Diagnostic diagnostic) {
  diagnostic.where = std::move(where);
  return diagnostic;
}

/// "context: message", at the same location.
inline Diagnostic in_context(std::string_view context, Diagnostic diagnostic) {
  diagnostic.message = std::string{context} + ": " + diagnostic.message;
  return diagnostic;
}

}  // namespace podsim
