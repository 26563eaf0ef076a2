// The collectives by name; schedule.hpp defines them.
#pragma once

#include <optional>
#include <string_view>

namespace podsim {

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, permute };
inline constexpr int collective_kind_count = 7;
std::string_view name_of(CollectiveKind kind);  // "all-gather"
std::optional<CollectiveKind> collective_kind_named(std::string_view name);

/// What all-reduces, reduce-scatters and reduces make of the inputs.
enum class Reduction { sum, maximum };

}  // namespace podsim
