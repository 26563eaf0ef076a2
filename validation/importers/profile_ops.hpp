// Operations of a profile, collected over its devices: what xplane and trace_json have in common.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "validation/importers/hlo_op.hpp"

namespace podsim {

/// One event of a line of operations.
struct ProfileEvent {
  std::string_view name, text;  // text: the HLO; may be empty
  std::string_view category;    // hlo_category; may be empty
  Flops flops;                  // of one occurrence on one core; 0: not told
  std::int64_t begin = 0;       // in any unit: events of a line are put in this order
  std::int64_t duration_ps = 0;
};

/// The number of `/device:TPU:<n>`; nothing for other planes.
std::optional<int> tpu_named(std::string_view plane);

/// Keeps of collectives and matmuls their time on each line; of others nothing.
class ProfileOps {
 public:
  using Line = std::uint64_t;

  void add(Line line, const ProfileEvent& event);

  /// One observation per operation: of each of its occurrences the minimum over the lines in `devices`, which are in the order of time, and of those
  /// the median. Events on other lines are left out. Errors: no collective and no matmul on any of the lines.
  Expected<Imported> finish(const std::vector<Line>& devices, const std::string& file, const ImportOptions& options);

 private:
  struct Occurrence {
    std::int64_t begin, duration_ps;
  };
  struct Op {
    HloOp hlo;
    std::string category;
    Flops flops;
    std::unordered_map<Line, std::vector<Occurrence>> lines;
  };
  std::vector<Op> ops_;  // in the order in which they came
  std::unordered_map<std::string, std::size_t> by_text_;
  std::size_t asynchronous_ = 0, textless_ = 0;
};

}  // namespace podsim
