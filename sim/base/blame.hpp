// Diagnostics told at another place or in other words, with their cause.
#pragma once

#include <string_view>
#include <utility>

#include "sim/base/diagnostic.hpp"

namespace podsim {

inline Diagnostic blamed_on(SourceLocation where, Diagnostic diagnostic) {
  diagnostic.where = std::move(where);
  return diagnostic;
}

/// "context: message", at the same place.
inline Diagnostic in_context(std::string_view context, Diagnostic diagnostic) {
  diagnostic.message = std::string{context} + ": " + diagnostic.message;
  return diagnostic;
}

}  // namespace podsim
