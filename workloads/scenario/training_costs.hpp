// Bounds of the steps of a search. Each layer and each group of weights is simulated once for all systems with equal rings. Internal to the search.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/thread_pool.hpp"
#include "workloads/scenario/training_bound.hpp"
#include "workloads/scenario/training_space.hpp"

namespace podsim {

/// A step on its way to its bound.
struct TrainingLook {
  std::size_t system = 0;
  TrainingStep given;
  TrainingStep divided{};
  std::optional<std::uint32_t> rings{};  // in TrainingSpace::largest
  StepBound bound{};
  std::optional<Diagnostic> problem{};  // why it cannot be simulated
};

class TrainingCosts {
 public:
  TrainingCosts(const TrainingRequest& request, const RunOptions& options, ThreadPool& pool) : request_{request}, options_{options}, pool_{pool} {}

  /// quick_bound() from the layer of the same rings with most sequences and without remat: fewer sequences take at least their share of it, since
  /// what a call has beside work in proportion to them only adds; remat adds to the backward pass.
  void bound_quickly(std::vector<TrainingLook>& looks, const TrainingSpace& space);
  /// step_bound() from the step's own layer.
  void bound_sharply(std::vector<TrainingLook>& looks, const TrainingSpace& space);
  /// How the layers of a step are computed; it was bound_sharply().
  [[nodiscard]] const Plan& plan_of(std::size_t system, const TrainingStep& divided) const {
    return layers_.at(layer_key(request_.systems[system], system, divided)).plan;
  }

  [[nodiscard]] std::int64_t simulated() const { return simulated_; }  // layers and groups of weights

 private:
  template <class Value>
  struct Known {
    Value value{};
    std::optional<Diagnostic> problem{};
  };
  struct KnownLayer {
    Plan plan;
    LayerTimes times;
    std::optional<Diagnostic> problem{};
  };
  struct Seed {
    std::int64_t sequences = 1;
    KnownLayer layer;
    WeightTimes weights;
  };
  struct Keys {
    std::string rings, layer, weights, shape, kept;
  };

  template <class Map, class Find>
  void complete(Map& known, const std::vector<TrainingLook>& looks, const std::vector<Keys>& keys, std::string Keys::*key, const Find& find);
  std::vector<Keys> prepare(std::vector<TrainingLook>& looks, const TrainingSpace& space);
  [[nodiscard]] KnownLayer find_layer(std::size_t system, const TrainingStep& given, const TrainingStep& divided) const;
  /// Scaled from the seed.
  [[nodiscard]] LayerTimes least_times(const TrainingLook& look, const Keys& keys) const;

  const TrainingRequest& request_;
  const RunOptions& options_;
  ThreadPool& pool_;
  std::int64_t simulated_ = 0;
  std::unordered_map<std::string, Seed> seeds_;
  std::unordered_map<std::string, KnownLayer> layers_;
  std::unordered_map<std::string, KnownLayer> halves_, kept_;  // their times alone
  std::unordered_map<std::string, Known<WeightTimes>> weights_;
  std::unordered_map<std::string, Known<std::shared_ptr<const PipelineShape>>> shapes_;
};

}  // namespace podsim
