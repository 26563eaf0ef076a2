#pragma once

#include <span>

#include "sim/config/files.hpp"

namespace podsim {

/// frame.html, style.css and every *.js of this folder, sorted by name.
std::span<const EmbeddedFile> page_parts();

}  // namespace podsim
