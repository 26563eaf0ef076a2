// What tests of importers share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "validation/calibration/importers/import.hpp"

namespace podsim::testing {

/// What was imported; a failure of the test where nothing was.
inline Imported imported(const Expected<Imported>& result) {
  if (!result) return ADD_FAILURE() << to_text(result.error()), Imported{};
  return *result;
}

inline std::string error_of(const Expected<Imported>& result) { return result ? "no error" : to_text(result.error()); }

/// Whether one of the notes contains this.
inline bool notes_say(const Imported& imported, std::string_view text) {
  for (const std::string& note : imported.notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace podsim::testing
