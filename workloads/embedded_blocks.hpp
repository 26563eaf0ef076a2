#pragma once

#include <span>

#include "sim/config/files.hpp"

namespace podsim {

/// Every workloads/blocks/*.textproto, sorted by name, so that the installed command needs no data folder.
std::span<const EmbeddedFile> embedded_blocks();

}  // namespace podsim
