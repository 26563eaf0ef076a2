// A compiled module as one list of tasks without calls, each with the instruction that it was written for: what a comparison looks at and changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

struct ModuleTask {
  /// transfer  a Shift, a Collective, or a copy beside the core
  /// wait      the core waits, for a -done or a plain collective
  /// work      of the core
  /// place     a copy that the compiler does not make: free in time
  /// boundary  begin or end of a trip of a loop
  enum class Part { transfer, wait, work, place, boundary };
  Part part = Part::work;
  const HloInstruction* instruction = nullptr;  // none: boundaries, and results of the module that are put in their place
  std::string loop{};                           // the outermost loop that it runs in
  std::int64_t trip = -1;                       // of that loop, from 0 on
  bool makes_operand = false;                   // work that makes an operand of `instruction`
  Picoseconds begin, end;                       // in the run of the unchanged module, on its busiest device
  double link_bytes = 0;                        // payload * hops, of all devices
};

struct FlatModule {
  System system;
  Problem problem;                // one program, without calls
  std::vector<ModuleTask> tasks;  // of that program
  Picoseconds makespan;
  Result result{};
  [[nodiscard]] const Program& program() const { return problem.schedule.programs.front(); }
};

/// The module's schedule with its calls written out, simulated once. The module must outlive the result. Errors: those of hlo_schedule() and
/// simulate().
Expected<FlatModule> flat_module(const System& system, const HloSpec& spec, const RunOptions& options);

/// Payload * hops of each task of the first program of a run, of all devices. A collective counts at its lowered tasks.
std::vector<double> link_bytes_by_task(const Run& run);

/// A change of a module's schedule. Tasks are positions in FlatModule::tasks.
struct ModuleEdit {
  std::set<std::size_t> dropped{};  // what waited for one waits for what it waited for
  /// Transfers, with the copies that put their operands and results in place, that run beside the core, as if in small pieces: of what gathers, the
  /// core's work that uses it does not wait; one that `reduces` begins with the work that makes its operands, not behind it. Else a transfer begins
  /// when its operands are there. A trip of a loop ends only when they have ended.
  struct Beside {
    bool reduces = false;
  };
  std::map<std::size_t, Beside> beside{};
  std::map<std::size_t, double> scaled{};  // transfers that move this share of their elements, rounded up to what the devices divide
  [[nodiscard]] bool empty() const { return dropped.empty() && beside.empty() && scaled.empty(); }
  void add(const ModuleEdit& other);
};

Schedule edited(const FlatModule& module, const ModuleEdit& edit);

/// The time of a changed module, by the same engine. Errors: those of simulate(); cancelled work.
Expected<Picoseconds> simulate_edited(const FlatModule& module, const ModuleEdit& edit, const RunOptions& options);
/// Of any run. Errors: its own; cancelled work.
Expected<Picoseconds> makespan_of(const Expected<Run>& run);

}  // namespace podsim
