// A sweep's file (sweep.proto) as blocks of axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/scenario/fields.hpp"

namespace podsim {

/// The position of a field in scenario_fields(), the order in which fields vary; an assert if there is none of that name.
std::size_t sweep_field(std::string_view name);

/// One value and where it stands.
struct SweepValue {
  std::string text;  // empty: the field is left out
  SourceLocation where;
  friend bool operator==(const SweepValue&, const SweepValue&) = default;
};

struct SweepAxis {
  std::size_t field = 0;
  std::string path;  // of a `set`: the machine value
  std::vector<SweepValue> values;
  friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};

/// A product: every combination of the values of its axes, which stand in the order of their fields, sets in that of the file.
struct SweepBlock {
  SourceLocation where;
  std::vector<SweepAxis> axes;
  [[nodiscard]] const SweepAxis* axis(std::string_view field) const;
  friend bool operator==(const SweepBlock&, const SweepBlock&) = default;
};

/// What a field of a sweep file takes: "text" (in quotes), "number" or "flag" (true, false); empty: there is no such field.
std::string_view form_in_file(const std::string& field);

/// Whether two sweep files that can be read ask the same: comments, spaces and quotes apart.
bool ask_the_same(const std::string& text, const std::string& other);

/// The sweeps of a file one after the other, each case of each a block. Errors, with line and column: what is no such file; a field or the path of
/// a set that is given around a case and in it again; a value that is given twice; a set without a value; no sweep at all.
Expected<std::vector<SweepBlock>> read_sweep(std::string_view text, const std::string& file);

}  // namespace podsim
