// Tasks in which the same devices take part, found by a hash.
#pragma once

#include <cstdint>

#include "sim/base/rng.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// What decides who takes part in a work or Shift: where these are equal, so are the participants of two tasks. Names parts of a task, which must
/// outlive it.
struct PartTaken {
  std::uint32_t program;
  const Shift* shift;  // null: a work
  const Guard* where;
  friend bool operator==(const PartTaken& a, const PartTaken& b) {
    if (a.program != b.program || (a.shift == nullptr) != (b.shift == nullptr) || *a.where != *b.where) return false;
    return a.shift == nullptr || (a.shift->axis == b.shift->axis && a.shift->by == b.shift->by && a.shift->by_dimension == b.shift->by_dimension);
  }
};

struct PartTakenHash {
  std::uint64_t state = 0;
  void add(std::int64_t value) { state = counter_hash(state, 0, static_cast<std::uint64_t>(value)); }
  void add(const AxisView& view) { add(view.axis), add(view.stride), add(view.size); }
  void add(const Affine& affine) {
    for (const AxisTerm& term : affine.terms) add(term.axis), add(term.coefficient), add(term.add);
    add(affine.constant), add(affine.modulus);
  }
  void add(const Guard& where) {
    for (const Condition& condition : where) add(condition.value), add(condition.low), add(condition.high);
  }
  std::size_t operator()(const PartTaken& key) const {
    PartTakenHash hash;
    hash.add(key.program);
    if (key.shift != nullptr) hash.add(key.shift->axis), hash.add(key.shift->by), hash.add(key.shift->by_dimension ? 1 : 0);
    hash.add(*key.where);
    return hash.state;
  }
};

}  // namespace podsim
