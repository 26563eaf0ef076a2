#pragma once

#include <span>

#include "sim/config/files.hpp"

namespace podsim {

/// All files workloads/blocks/*.textproto, sorted by name; compiled in, so the installed command needs no data directory.
std::span<const EmbeddedFile> embedded_blocks();

}  // namespace podsim
