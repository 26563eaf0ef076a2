// Problems: what is computed or communicated on a system, as values, and the schedule that each is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "algorithms/gemm/replicated.hpp"
#include "topologies/system.hpp"
#include "workloads/plan.hpp"
#include "workloads/scenario/bandwidth.hpp"

namespace podsim {

/// What lowers the collectives of a schedule: a name of collective_algorithms(), `by-dimension` (workloads/collectives.hpp), `auto`: each by what takes
/// the least time, by simulation (collective_choice.hpp); or empty: ring, or line on open axes. "halves over 4x4": on the physical dimensions that the
/// only axis of every collective folds.
struct CollectivePolicy {
  std::string algorithm{};
  std::optional<int> chunks{};  // of broadcast and reduce; none: as the machine suggests
  [[nodiscard]] bool is_auto() const { return algorithm == "auto"; }
  friend bool operator==(const CollectivePolicy&, const CollectivePolicy&) = default;
};

struct GemmSpec {
  const GemmAlgorithmEntry* algorithm = nullptr;
  GemmProblem problem;  // of the forward pass
  Pass pass = Pass::forward;
  GemmOptions options;
  bool pad = false;  // extents are rounded up to what divides
  CollectivePolicy collectives{};
  std::optional<std::vector<std::string>> given{};  // other inputs that several devices need are gathered first; none: nothing is gathered
};

/// One collective over every group of devices along mesh axes.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::vector<std::string> axes{};  // first most significant; none: the only one of more than one device
  Bytes input;                      // on each device; broadcast: the root's
  DType dtype = DType::bf16;
  CollectiveDetails details{};
  CollectivePolicy policy{};
};

/// What is said about how a workload is computed; everything else is open.
struct PlanChoices {
  std::vector<std::string> algorithms{"collective", "meshslice", "wang"};  // of products
  std::vector<Dataflow> dataflows{};                                       // none: all, transposed ones too; otherwise as they are
  std::map<std::string, std::int64_t> slice_counts{};                      // by stage; "": of all others
  Pass pass = Pass::both;
  PartOptions options{};
};

/// The axes named; without names the only one of more than one device. Errors, of the field `axis`: no such axis, one named twice; none named of several.
Expected<std::vector<AxisView>> axes_of(const std::vector<std::string>& names, const Mesh& mesh);

struct WorkloadSpec {
  Workload workload;
  PlanChoices choices;
};

/// A workload and how it is computed.
struct PlannedWorkload {
  Workload workload;
  Plan plan;
  Pass pass = Pass::both;
};

struct ScheduleSpec {
  Schedule schedule;
  CollectivePolicy collectives{};
};

/// What to simulate on a system, whatever that is.
using ProblemSpec = std::variant<GemmSpec, CollectiveSpec, WorkloadSpec, PlannedWorkload, ScheduleSpec>;

/// What a workload is given at a time.
struct TokenCount {
  std::int64_t batch = 0, sequence = 0;  // sequences, of so many tokens
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
};
/// Of a transformer block.
std::optional<TokenCount> tokens_of(const Workload& workload);

/// What results say of a problem.
struct ProblemSummary {
  std::string algorithm, dataflow;                              // dataflow: of a GEMM
  std::optional<std::int64_t> slice_count;                      // of a sliced GEMM algorithm
  double padding = 0;                                           // part of the flops that padding added
  std::vector<std::pair<std::string, ProductChoice>> layers{};  // of a workload: how each product is computed
  std::int64_t blocks = 1;                                      // of a workload: such blocks in its model
  std::optional<TokenCount> tokens{};                           // of a workload of sequences
  std::optional<CollectiveSummary> collective{};                // of one collective
  std::vector<Replicated> replicated{};                         // of a GEMM: what several devices have of its operands
};

/// A schedule, not lowered yet, with what lowers its collectives.
struct Problem {
  Schedule schedule;
  CollectivePolicy collectives;
  ProblemSummary summary;
};

/// The system as the problem uses it: algorithms of one axis on a mesh of several get all devices on one, `ring`, row-major. Errors: none for meshes
/// that are laid out row-major.
Expected<System> system_for(const ProblemSpec& spec, const System& system);

/// Pure. Errors, of the field to blame: it does not suit the mesh; an algorithm that is not known; a workload whose plan is open (plan_choice.hpp).
Expected<Problem> make_problem(const System& system, const ProblemSpec& spec);

}  // namespace podsim
