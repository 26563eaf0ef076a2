// The problem that a command line asks for, as a schedule.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "algorithms/gemm/replicated.hpp"
#include "sim/schedule/lower.hpp"
#include "tools/command/bandwidth.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/options.hpp"
#include "tools/command/pod.hpp"
#include "workloads/part.hpp"

namespace podsim {

/// What a workload is given at a time.
struct TokenCount {
  std::int64_t batch = 0, sequence = 0;  // sequences, of so many tokens
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
};

/// A schedule with how its Collectives are lowered and what to call it in results.
struct Problem {
  Schedule schedule;
  CollectiveChooser chooser;
  std::string algorithm, dataflow;                              // dataflow: of a GEMM
  std::optional<std::int64_t> slice_count;                      // of a sliced GEMM algorithm
  double padding = 0;                                           // part of the flops that padding added
  std::vector<std::pair<std::string, ProductChoice>> layers{};  // of a workload: how each product is computed
  std::int64_t blocks = 1;                                      // of a workload: such blocks in its model
  std::optional<TokenCount> tokens{};                           // of a workload of sequences
  std::optional<CollectiveAsked> collective{};                  // of one collective
  std::vector<Replicated> replicated{};                         // of a GEMM: what several devices have of its operands
  std::string lowering{};                                       // the algorithm of all collectives; empty: ring, or line on open axes
};

/// Makes a problem on a pod, which it changes to what the algorithm uses. Errors: it does not suit the pod.
using ProblemOf = std::function<Expected<Problem>(Pod&, const Manner&)>;

Expected<DType> parse_dtype(const std::string& text, const SourceLocation& where);

struct GemmRequest {
  const GemmAlgorithmEntry* algorithm = nullptr;
  GemmProblem problem;  // of the forward pass
  Pass pass = Pass::forward;
  GemmOptions options;
  bool pad = false;
  std::string collectives = "";  // the algorithm of all of its collectives; empty: ring, or line on open axes
  std::optional<std::vector<std::string>> given{};  // other inputs that several devices need are gathered first; none: nothing is gathered
};

/// "m=512,n=1024,k=256[,dtype=bf16]". Errors: missing, repeated, unknown or non-positive entries.
Expected<GemmProblem> parse_gemm(const std::string& text, DType default_dtype);

/// Errors: those of the algorithm.
Expected<Problem> make_problem(const Pod& pod, const GemmRequest& request, const Manner& manner);

/// The pod as the algorithm uses it: one-axis algorithms on a pod of several mesh axes get all its devices on one axis, `ring`, row-major.
Expected<Pod> pod_for(const GemmAlgorithmEntry& algorithm, Pod pod);

/// --pass.
Expected<Pass> pass_of(const Options& options);
/// --block --prefetch --slice-copies; the last left out: as the machine says.
Expected<PartOptions> part_options_of(const Options& options, const Machine& machine);

/// All of a GEMM but its algorithm, dataflow and slice count: --gemm --pass --block --prefetch --slice-copies --wang-operand --pad.
Expected<GemmRequest> gemm_request(const Options& options, const Pod& pod, DType default_dtype);

/// The options of run, check and show schedule that say what the problem is; those of compare.
inline constexpr std::array one_problem{"gemm", "collective", "workload", "plan", "schedule"};
inline constexpr std::array compared_problems{"gemm", "collective", "workload"};
/// The one of `kinds` that is given. Errors: none or several of them; options that belong to another.
Expected<std::string_view> problem_kind(const Options& options, std::span<const char* const> kinds = one_problem);

/// The one problem of run, check and show schedule; `pod` is changed to what the algorithm uses. Errors: none or several of --gemm,
/// --collective and --schedule; what each finds wrong. `manner`: of the simulations that choose what is left open.
Expected<Problem> problem_of(const Options& options, Pod& pod, DType default_dtype, const Manner& manner);

}  // namespace podsim
