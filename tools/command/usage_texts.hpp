#pragma once

#include <span>

#include "sim/config/files.hpp"

namespace podsim {

/// Every tools/command/usage/*.txt, sorted by name.
std::span<const EmbeddedFile> usage_texts();

}  // namespace podsim
