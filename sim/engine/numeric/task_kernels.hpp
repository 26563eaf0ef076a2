// What each operation does to the boxes that it accesses: the one table from a task to its kernel.
#pragma once

#include <algorithm>
#include <span>

#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim {

/// No operation reads and writes more boxes than that; a Matmul has three.
inline constexpr std::size_t most_accesses = std::max<std::size_t>(most_local_regions, 3);

/// A Matmul or Local: `accesses` as Storage::append_accesses() orders them, `views` the memory that each stands for.
void perform(const Op& op, std::span<const Access> accesses, std::span<const View> views, PackedOperands& workspace);

/// A transfer's source to its target: accesses and views of these two.
void deliver(Combine combine, std::span<const Access> accesses, std::span<const View> views, PackedOperands& workspace);

/// What the receiver does with a transfer.
Combine combine_of(const Schedule& lowered, const Activity& transfer);

}  // namespace podsim
