#pragma once

#include <span>

#include "sim/config/files.hpp"

namespace podsim {

/// All files workloads/training/models/*.textproto, sorted by name; compiled in, so the installed command needs no data directory.
std::span<const EmbeddedFile> embedded_training_models();

}  // namespace podsim
