// The search on one system: the best path through a workload's stages by the costs known so far.
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

/// A part that a path may contain.
struct PossiblePart {
  WorkloadPart part;
  std::string key;    // in PartCosts
  Picoseconds bound;  // a lower bound on its time
};

/// One way to compute a product.
struct ProductOption {
  ProductChoice choice;
  ActivationLayout in = ActivationLayout::tokens_by_row, out = ActivationLayout::tokens_by_row;
  std::vector<PossiblePart> parts;  // one per requested pass
  bool excluded = false;
};

class SystemSearch {
 public:
  /// Lists the options of every product. Errors: an unknown algorithm, or one that does not support row x col.
  static Expected<SystemSearch> make(const TuningRequest& request, std::size_t system, const PartCosts& costs);

  /// The best path. Unknown parts count as their bounds; with `known_only` paths with unknown parts are excluded. nullopt: no path.
  struct Path {
    Picoseconds time;
    Plan plan;
    std::vector<WorkloadPart> parts;
    bool known = false;  // all parts are known
  };
  [[nodiscard]] std::optional<Path> best(bool known_only) const;

  /// For every product of a plan, the best known option with another algorithm or dataflow, and the best one with another S.
  [[nodiscard]] std::vector<StageAlternative> alternatives(const Plan& plan) const;
  /// The plan of a known path, with its costs and memory.
  [[nodiscard]] TunedPlan plan_of(const Path& path) const;
  /// Excludes for good what needs most memory in a plan above the limit: an option of a product; or another stage or re-layout in one layout. If the
  /// resident memory alone exceeds the limit, it excludes attention in its layout, or the whole system. (The number of copies of keys and values
  /// depends on the layout of attention, so an excluded option might have fitted with the other layout.)
  void exclude(const TunedPlan& plan, Bytes limit);

  [[nodiscard]] std::size_t system() const { return system_; }
  [[nodiscard]] std::int64_t candidates() const;
  /// The number of options without a simulated part.
  [[nodiscard]] std::int64_t never_simulated() const;
  /// All parts that any path may contain.
  [[nodiscard]] std::vector<WorkloadPart> all_parts() const;
  /// Why options do not apply here.
  [[nodiscard]] std::set<std::string> reasons() const;

 private:
  SystemSearch(const TuningRequest& request, std::size_t system, const PartCosts& costs) : request_{&request}, system_{system}, costs_{&costs} {}

  Status list_options(std::size_t stage);
  Status list_options(std::size_t stage, const std::string& algorithm, const std::string& collectives);
  void add_option(std::size_t stage, const ProductChoice& choice);
  void list_others(std::size_t stage);
  void list_relayout(std::size_t stage, ActivationLayout layout);

  struct State;
  using Time = std::int64_t;  // picoseconds; never: no path
  static constexpr Time never = std::numeric_limits<Time>::max() / 4;
  [[nodiscard]] PossiblePart possible(WorkloadPart part, Picoseconds bound) const;
  [[nodiscard]] Bytes working_of(const WorkloadPart& part, const PartCost& cost) const;
  /// The sum of times, and the largest working memory, as far as known.
  [[nodiscard]] std::pair<Time, Bytes> cost_of(const std::vector<PossiblePart>& parts, bool known_only) const;
  [[nodiscard]] std::optional<Path> best_from(ActivationLayout stream, bool known_only) const;
  [[nodiscard]] const Mesh& mesh() const { return request_->systems[system_].mesh; }
  [[nodiscard]] std::vector<Pass> passes() const;

  const TuningRequest* request_;
  std::size_t system_;
  const PartCosts* costs_;
  std::vector<std::vector<ProductOption>> options_;                                 // by stage; for products
  std::vector<std::array<std::optional<std::vector<PossiblePart>>, 2>> others_;     // by stage and layout; for all other stages
  std::vector<std::array<std::optional<std::vector<PossiblePart>>, 2>> relayouts_;  // before a stage, by the present layout
  std::set<std::size_t> joins_, starts_;                                            // stages that join, and stages that begin a branch
  std::set<std::string> reasons_;
  bool too_large_ = false;
};

}  // namespace podsim
