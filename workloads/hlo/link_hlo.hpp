// The last step of reading: names of computations are looked up, and computations put into the order in which they are called. Internal to the
// reader.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Counts what a tolerant reader goes past.
class HloWarnings {
 public:
  HloWarnings(HloModule& module, const HloCursor& cursor) : module_{module}, cursor_{cursor} {}
  void add(const std::string& message, std::size_t at);

 private:
  HloModule& module_;
  const HloCursor& cursor_;
  std::unordered_map<std::string, std::size_t> known_;
};

/// Names of computations and the calls that use them.
class HloLinks {
 public:
  /// A call of an instruction by name, not yet looked up.
  struct Call {
    int instruction = 0, call = 0;  // in its computation; in HloInstruction::calls
    std::string_view name;
    std::size_t at = 0;
  };
  struct Entry {
    int computation = 0;
    std::size_t at = 0;
  };
  struct OfComputation {
    int computation = 0;
    std::vector<Call> calls;
  };
  void define(const std::string& name, int computation) { defined_.emplace_back(name, computation); }
  void call(int computation, std::vector<Call>& calls) {
    if (!calls.empty()) calls_.push_back({computation, std::move(calls)});
  }
  [[nodiscard]] const std::vector<std::pair<std::string, int>>& defined() const { return defined_; }
  [[nodiscard]] const std::vector<OfComputation>& calls() const { return calls_; }

 private:
  std::vector<std::pair<std::string, int>> defined_;
  std::vector<OfComputation> calls_;
};

/// Errors: a computation that is not there, defined twice, or calls itself; no ENTRY or several; groups or pairs, run or not, of more devices than the
/// header says. If tolerant, each but the last is a warning and the call is left out.
Status link_hlo(HloModule& module, const HloLinks& links, const std::vector<HloLinks::Entry>& entries, const HloCursor& cursor, HloWarnings& warnings,
                bool tolerant);

}  // namespace podsim
