// The tasks of a model in an order in which each comes after all that it waits for, on whatever device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/model/model.hpp"

namespace podsim::max_plus {

/// What a gate waits for: the `sent` of a row (the end of a work), or its `received`.
struct Source {
  std::uint32_t row = 0;
  bool received = false;
};

/// A task of a program, on all its devices.
struct Row {
  std::uint32_t program = 0, task = 0;
  std::uint32_t own = 0, receive = 0, end = 0;  // in Rows::sources: of its own gate, of its receive gate, one past both
  std::uint32_t last_use = 0;                   // the last row that asks for its times
};

struct Rows {
  std::vector<Row> rows;
  std::vector<Source> sources;

  [[nodiscard]] std::span<const Source> own(const Row& row) const { return {sources.data() + row.own, row.receive - row.own}; }
  [[nodiscard]] std::span<const Source> receive(const Row& row) const { return {sources.data() + row.receive, row.end - row.receive}; }
};

/// Core tasks of a program stay in its order. nullopt: there is no such order, as tasks wait for each other in a circle, though on other devices; only
/// Sends can do that. Cost O(tasks + edges + devices of Sends).
std::optional<Rows> order_rows(const Model& model);

}  // namespace podsim::max_plus
