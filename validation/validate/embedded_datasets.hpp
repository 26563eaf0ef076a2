// The files of validation/datasets, compiled in.
#pragma once

#include <span>

#include "sim/config/files.hpp"

namespace podsim {

/// Named by folder and file: "a100_gemm/observations", "a100_gemm/validation".
std::span<const EmbeddedFile> embedded_datasets();

}  // namespace podsim
