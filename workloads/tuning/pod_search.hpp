// The search on one system: which path through a workload's stages is the best, as far as costs are known.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workloads/tuning/part_costs.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// A part that a path may have.
struct PossiblePart {
  WorkloadPart part;
  std::string key;    // of PartCosts
  Picoseconds bound;  // it takes no less
};

/// One way to compute one product.
struct ProductOption {
  ProductChoice choice;
  ActivationLayout in = ActivationLayout::tokens_by_row, out = ActivationLayout::tokens_by_row;
  std::vector<PossiblePart> parts;  // by pass asked for
  bool excluded = false;
};

class PodSearch {
 public:
  /// Lists the options of every product. Errors: an unknown algorithm, or one that does not work on row x col.
  static Expected<PodSearch> make(const TuningRequest& request, std::size_t system, const PartCosts& costs);

  /// The best path: parts that are not known count as their bounds, or with `known_only` rule a path out. nullopt: there is none.
  struct Path {
    Picoseconds time;
    Plan plan;
    std::vector<WorkloadPart> parts;
    bool known = false;  // every part of it
  };
  [[nodiscard]] std::optional<Path> best(bool known_only) const;

  /// Of every product of a plan: the next best of another algorithm or dataflow, and of another S, as far as they are known.
  [[nodiscard]] std::vector<StageAlternative> alternatives(const Plan& plan) const;
  /// The plan of a known path with its costs and memory.
  [[nodiscard]] TunedPlan plan_of(const Path& path) const;
  /// Rules out, for good, what needs most memory in a plan that needs more than the limit: an option of a product, another stage or a re-layout
  /// in a layout; where what is resident is too much by itself, attention in its layout, or the system. (Where the layouts of attention take different
  /// copies of keys and values, an option may be ruled out for one that would have fitted with the other.)
  void exclude(const TunedPlan& plan, Bytes limit);

  [[nodiscard]] std::size_t pod() const { return system_; }
  [[nodiscard]] std::int64_t candidates() const;
  /// Options of which no part is known.
  [[nodiscard]] std::int64_t never_simulated() const;
  /// Every part that any path could have.
  [[nodiscard]] std::vector<WorkloadPart> all_parts() const;
  /// What does not apply here, and why.
  [[nodiscard]] std::set<std::string> reasons() const;

 private:
  PodSearch(const TuningRequest& request, std::size_t system, const PartCosts& costs) : request_{&request}, system_{system}, costs_{&costs} {}

  Status list_options(std::size_t stage);
  void add_option(std::size_t stage, const ProductChoice& choice);
  void list_others(std::size_t stage);
  void list_relayout(std::size_t stage, ActivationLayout layout);

  struct State;
  using Time = std::int64_t;  // picoseconds; never: no path
  static constexpr Time never = std::numeric_limits<Time>::max() / 4;
  [[nodiscard]] PossiblePart possible(WorkloadPart part, Picoseconds bound) const;
  [[nodiscard]] Bytes working_of(const WorkloadPart& part, const PartCost& cost) const;
  /// The sum, and the working memory of what needs most, as far as it is known.
  [[nodiscard]] std::pair<Time, Bytes> cost_of(const std::vector<PossiblePart>& parts, bool known_only) const;
  [[nodiscard]] std::optional<Path> best_from(ActivationLayout stream, bool known_only) const;
  [[nodiscard]] const Mesh& mesh() const { return request_->systems[system_].mesh; }
  [[nodiscard]] std::vector<Pass> passes() const;

  const TuningRequest* request_;
  std::size_t system_;
  const PartCosts* costs_;
  std::vector<std::vector<ProductOption>> options_;                                 // by stage; of products
  std::vector<std::array<std::optional<std::vector<PossiblePart>>, 2>> others_;     // by stage and layout; of everything else
  std::vector<std::array<std::optional<std::vector<PossiblePart>>, 2>> relayouts_;  // before a stage, by the layout that is there
  std::set<std::size_t> joins_, starts_;                                            // stages that join, and that begin a branch
  std::set<std::string> reasons_;
  bool too_large_ = false;
};

}  // namespace podsim
