#include "workloads/hlo/hlo_leaves.hpp"

namespace podsim {

namespace {

void add_leaves(const HloShape& shape, std::vector<const HloShape*>& leaves) {
  if (!shape.is_tuple()) {
    leaves.push_back(&shape);
    return;
  }
  for (const HloShape& element : shape.elements) add_leaves(element, leaves);
}

}  // namespace

std::vector<const HloShape*> leaves_of(const HloShape& shape) {
  std::vector<const HloShape*> leaves;
  add_leaves(shape, leaves);
  return leaves;
}

std::size_t count_leaves(const HloShape& shape) {
  if (!shape.is_tuple()) return 1;
  std::size_t count = 0;
  for (const HloShape& element : shape.elements) count += count_leaves(element);
  return count;
}

std::size_t first_leaf(const HloShape& tuple, std::size_t element) {
  std::size_t first = 0;
  for (std::size_t e = 0; e < element; ++e) first += count_leaves(tuple.elements[e]);
  return first;
}

std::optional<std::size_t> leaf_at(const HloShape& shape, const std::vector<std::int64_t>& index) {
  const HloShape* at = &shape;
  std::size_t leaf = 0;
  for (const std::int64_t i : index) {
    if (!at->is_tuple() || i < 0 || static_cast<std::size_t>(i) >= at->elements.size()) return std::nullopt;
    leaf += first_leaf(*at, static_cast<std::size_t>(i));
    at = &at->elements[static_cast<std::size_t>(i)];
  }
  return at->is_tuple() ? std::nullopt : std::optional{leaf};
}

}  // namespace podsim
