// The arrays of a shape, one after the other: the leaves of its nested tuples.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "workloads/hlo/hlo_shape.hpp"

namespace podsim {

/// The arrays, tokens and opaques of a shape, in the order in which they stand in it: the leaves of nested tuples.
std::vector<const HloShape*> leaves_of(const HloShape& shape);
std::size_t count_leaves(const HloShape& shape);
/// The first leaf of element `element` of a tuple, among the leaves of the tuple.
std::size_t first_leaf(const HloShape& tuple, std::size_t element);
/// The leaf with an index into nested tuples, as input_output_alias has it; nullopt: there is none, or it is a tuple.
std::optional<std::size_t> leaf_at(const HloShape& shape, const std::vector<std::int64_t>& index);

}  // namespace podsim
