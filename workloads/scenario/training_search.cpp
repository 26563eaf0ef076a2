#include "workloads/scenario/training_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "sim/base/thread_pool.hpp"
#include "sim/base/units.hpp"
#include "workloads/scenario/training_bound.hpp"
#include "workloads/scenario/training_space.hpp"

namespace podsim {

namespace {

// Rounds are small enough that what one finds soon prunes the next, and large enough for the threads. Their sizes do not depend on how many there are.
constexpr std::size_t bounds_per_round = 64, steps_per_round = 4;
constexpr double most_instances = 20e6;  // of a step that does not fold: more would take longer than a search may

class TrainingSearch {
 public:
  explicit TrainingSearch(const TrainingRequest& request) : request_{request}, pool_{request.threads} {
    options_.control.stop = request.stop;
    options_.threads = 1;
    options_.most_instances = most_instances;
    hbm_ = request.systems.front().machine.chip.hbm;
  }

  Expected<TrainingTuning> run() {
    auto space = training_space(request_);
    if (!space) return space.error();
    space_ = *std::move(space);
    found_.candidates = static_cast<std::int64_t>(space_.candidates.size());
    if (space_.candidates.empty()) return nothing_divides();
    for (std::size_t c = 0; c < space_.candidates.size(); ++c) open_.push_back(c);
    std::stable_sort(open_.begin(), open_.end(), [&](std::size_t a, std::size_t b) { return space_.bounds_s[a] < space_.bounds_s[b]; });
    while (!request_.stop.requested() && round()) tell();
    found_.interrupted = request_.stop.requested();
    for (const auto& [system, plan] : best_) found_.plans.push_back(plan.plan);
    std::stable_sort(found_.plans.begin(), found_.plans.end(), before);
    if (found_.plans.size() > request_.top) found_.plans.resize(request_.top);
    if (found_.plans.empty() && !found_.interrupted) return nothing_fits();
    if (!found_.interrupted) look_at_refused();
    for (auto& [kind, constraint] : excluded_) found_.excluded.push_back(std::move(constraint));
    std::stable_sort(found_.excluded.begin(), found_.excluded.end(), [](const BindingConstraint& a, const BindingConstraint& b) { return a.bound_s < b.bound_s; });
    return std::move(found_);
  }

 private:
  // ---- What is known ----

  /// A layer on axes like these: how it is computed, and what it takes. Or why it cannot be.
  struct KnownLayer {
    Plan plan;
    LayerTimes times;
    std::optional<Diagnostic> problem{};
  };
  struct KnownWeights {
    WeightTimes times;
    std::optional<Diagnostic> problem{};
  };
  struct KnownShape {
    std::shared_ptr<const PipelineShape> shape;
    std::optional<Diagnostic> problem{};
  };
  struct Best {
    TrainingPlan plan;
    std::size_t candidate = 0;
  };

  /// A step on its way to its bound.
  struct Look {
    std::size_t system = 0;
    TrainingStep given;
    DividedStep divided{};
    std::string layer_key{}, weight_key{}, shape_key{};
    StepBound bound{};
    std::optional<Diagnostic> problem{};
  };

  static bool before(const TrainingPlan& a, const TrainingPlan& b) {
    if (a.row.result.makespan_s != b.row.result.makespan_s) return a.row.result.makespan_s < b.row.result.makespan_s;
    return a.row.result.peak_memory_bytes < b.row.result.peak_memory_bytes;
  }

  /// No plan above this is wanted.
  [[nodiscard]] double cutoff() const {
    if (request_.exhaustive || best_.size() < request_.top) return std::numeric_limits<double>::infinity();
    std::vector<double> times;
    for (const auto& [system, best] : best_) times.push_back(best.plan.row.result.makespan_s);
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(request_.top) - 1, times.end());
    return times[request_.top - 1];
  }
  [[nodiscard]] bool is_beaten(std::size_t candidate, double bound) const {
    if (request_.exhaustive) return false;
    const auto best = best_.find(space_.candidates[candidate].system);
    return best != best_.end() && bound > best->second.plan.row.result.makespan_s;
  }

  // ---- Rounds ----

  bool round() {
    const double most = cutoff();
    std::vector<std::size_t> looked;
    for (; next_ < open_.size() && looked.size() < bounds_per_round && space_.bounds_s[open_[next_]] <= most; ++next_)
      if (!is_beaten(open_[next_], space_.bounds_s[open_[next_]])) looked.push_back(open_[next_]);
    // While a bound may still turn out to be the least, one step is simulated all the same: so that an interrupted search knows a plan.
    const bool may_be_best = !refined_.empty() && (looked.empty() || refined_.begin()->first <= space_.bounds_s[looked.front()]);
    std::vector<std::pair<double, std::size_t>> played;
    while (!refined_.empty() && played.size() < (may_be_best ? steps_per_round : 1) && refined_.begin()->first <= most) {
      if (!is_beaten(refined_.begin()->second, refined_.begin()->first)) played.push_back(*refined_.begin());
      refined_.erase(refined_.begin());
    }
    if (looked.empty() && played.empty()) return false;
    refine(looked);
    play(played);
    return true;
  }

  void tell() const {
    if (!request_.progress) return;
    TrainingRequest::Progress progress{found_.candidates, found_.simulated, {}, 0};
    for (const auto& [system, best] : best_)
      progress.best_s = std::min(progress.best_s.value_or(std::numeric_limits<double>::infinity()), best.plan.row.result.makespan_s);
    progress.bound_s = next_ < open_.size() ? space_.bounds_s[open_[next_]] : refined_.empty() ? 0 : refined_.begin()->first;
    request_.progress(progress);
  }

  void exclude(const std::string& kind, double bound, std::size_t system, const TrainingStep& step, std::string needs) {
    const auto [known, added] = excluded_.try_emplace(kind);
    if (!added && known->second.bound_s <= bound) return;
    known->second = {kind, bound, system, step, std::move(needs)};
  }
  void exclude_by_memory(double bound, std::size_t system, const TrainingStep& step, Bytes least) {
    ++found_.over_memory;
    exclude("memory", bound, system, step, fmt::format("needs at least {} of a device's {}", to_text(least), to_text(hbm_)));
    if (!nearest_ || least < nearest_->first) nearest_ = {least, {system, step}};
  }
  [[nodiscard]] bool too_large(Bytes needed) const { return !request_.ignore_memory && needed > hbm_; }

  // ---- Bounds ----

  void refine(const std::vector<std::size_t>& candidates) {
    std::vector<Look> looks;
    std::vector<std::size_t> of;
    for (const std::size_t c : candidates) {
      const TrainingCandidate& candidate = space_.candidates[c];
      Look look{candidate.system, step_of(request_, space_, candidate)};
      auto whole = divided(look.given);
      look.divided = *std::move(whole);
      if (const Bytes state = state_bound(look.divided.step); too_large(state) && !request_.exhaustive) {
        exclude_by_memory(space_.bounds_s[c], candidate.system, look.given, state);
        continue;
      }
      of.push_back(c);
      looks.push_back(std::move(look));
    }
    bound_all(looks);
    for (std::size_t i = 0; i < looks.size(); ++i) {
      const Look& look = looks[i];
      if (request_.stop.requested()) return;
      const double bound = std::max(space_.bounds_s[of[i]], look.bound.time.count());
      if (look.problem) refuse(look);
      else if (too_large(look.bound.memory) && !request_.exhaustive) exclude_by_memory(bound, look.system, look.given, look.bound.memory);
      else refined_.emplace(bound, of[i]);
    }
  }

  void refuse(const Look& look) {
    if (!first_problem_) first_problem_ = look.problem;
    exclude("simulation", std::max(0.0, look.bound.time.count()), look.system, look.given, look.problem->message.substr(0, look.problem->message.find('\n')));
  }

  /// Fills in the times that are not known yet, each once, then the bounds.
  void bound_all(std::vector<Look>& looks) {
    const auto missing = [&](auto& known, std::string Look::* key) {
      std::vector<std::size_t> first;
      for (std::size_t i = 0; i < looks.size(); ++i)
        if (!looks[i].problem && known.try_emplace(looks[i].*key).second) first.push_back(i);
      return first;
    };
    const auto each = [&](const std::vector<std::size_t>& which, const auto& body) {
      pool_.for_each(which.size(), [&](std::size_t i, std::size_t) {
        if (!request_.stop.requested()) body(looks[which[i]]);
      });
    };
    for (Look& look : looks) {
      const TrainingStep& step = look.divided.step;
      look.layer_key = layer_key(request_.systems[look.system], look.system, step);
      look.shape_key = fmt::format("{} {} {} {}", step.pipeline, step.mesh.stage, step.virtual_stages, step.microbatches);
    }
    const auto layers = missing(layers_, &Look::layer_key);
    each(layers, [&](Look& look) { find_layer(look, layers_.at(look.layer_key)); });
    for (Look& look : looks) {
      const KnownLayer& layer = layers_.at(look.layer_key);
      look.problem = layer.problem;
      look.weight_key = weight_key(request_.systems[look.system], look.system, look.divided.step, layer.plan);
    }
    const auto weights = missing(weights_, &Look::weight_key);
    each(weights, [&](Look& look) { find_weights(look, weights_.at(look.weight_key)); });
    each(missing(shapes_, &Look::shape_key), [&](Look& look) {
      auto shape = pipeline_shape(look.divided.step, request_.spec.options.fuse_steady_state);
      KnownShape& known = shapes_.at(look.shape_key);
      if (shape) known.shape = *std::move(shape);
      else known.problem = shape.error();
    });
    found_.layers += static_cast<std::int64_t>(layers.size() + weights.size());
    pool_.for_each(looks.size(), [&](std::size_t i, std::size_t) {
      Look& look = looks[i];
      if (look.problem || request_.stop.requested()) return;
      const KnownWeights& known = weights_.at(look.weight_key);
      const KnownShape& shape = shapes_.at(look.shape_key);
      look.problem = known.problem ? known.problem : shape.problem;
      if (!look.problem) look.bound = step_bound(look.divided.step, *shape.shape, layers_.at(look.layer_key).times, known.times);
    });
  }

  void find_layer(const Look& look, KnownLayer& known) const {
    const System& system = request_.systems[look.system];
    TrainingSpec spec = request_.spec;
    spec.step = look.given;
    auto planned = choose_layers(system, spec, options_);
    if (!planned) {
      known.problem = planned.error();
      return;
    }
    known.plan = std::move(planned->plan);
    const auto parts = step_parts(look.divided.step, system.mesh, known.plan, spec.options.optimiser);
    const auto times = parts ? layer_times(system, *parts, spec.collectives, options_) : parts.error();
    if (times) known.times = *times;
    else known.problem = times.error();
  }

  void find_weights(const Look& look, KnownWeights& known) const {
    const System& system = request_.systems[look.system];
    const auto parts = step_parts(look.divided.step, system.mesh, layers_.at(look.layer_key).plan, request_.spec.options.optimiser);
    const auto times = parts ? weight_times(system, *parts, request_.spec.collectives, options_) : parts.error();
    if (times) known.times = *times;
    else known.problem = times.error();
  }

  // ---- Steps ----

  Expected<Row> simulate_step(std::size_t system, const TrainingStep& given, bool force) const {
    auto whole = divided(given);
    const KnownLayer& layer = layers_.at(layer_key(request_.systems[system], system, whole->step));
    const auto problem = make_problem(request_.systems[system], PlannedTraining{given, *std::move(whole), request_.spec.options, layer.plan, request_.spec.collectives});
    if (!problem) return problem.error();
    RunOptions options = options_;
    options.force = force;
    auto run = simulate(request_.systems[system], *problem, options);
    if (!run) return run.error();
    if (run->timeline.interrupted) return cancelled_work();
    return std::move(run->row);
  }

  void play(const std::vector<std::pair<double, std::size_t>>& nodes) {
    std::vector<std::optional<Expected<Row>>> rows(nodes.size());
    pool_.for_each(nodes.size(), [&](std::size_t i, std::size_t) {
      const TrainingCandidate& candidate = space_.candidates[nodes[i].second];
      if (!request_.stop.requested()) rows[i] = simulate_step(candidate.system, step_of(request_, space_, candidate), false);
    });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!rows[i]) continue;  // stopped
      const std::size_t c = nodes[i].second;
      const std::size_t system = space_.candidates[c].system;
      TrainingStep step = step_of(request_, space_, space_.candidates[c]);
      Expected<Row>& row = *rows[i];
      if (!row) {
        if (row.error().cause == Cause::cancelled) continue;
        Look look{system, std::move(step)};
        look.problem = row.error(), look.bound.time = Seconds{nodes[i].first};
        refuse(look);
        continue;
      }
      ++found_.simulated;
      if (const Bytes needed{row->result.peak_memory_bytes}; too_large(needed)) {
        exclude_by_memory(row->result.makespan_s, system, step, needed);
        continue;
      }
      Best plan{{system, std::move(step), *std::move(row)}, c};
      const auto [known, added] = best_.try_emplace(system, plan);
      if (added) continue;
      const bool better = before(plan.plan, known->second.plan), equal = !better && !before(known->second.plan, plan.plan);
      if (better || (equal && c < known->second.candidate)) known->second = std::move(plan);
    }
  }

  // ---- At the end ----

  /// What would be possible if the batch, the layers or another extent were a multiple of what the mesh asks for: bounds of those steps, for as much work.
  void look_at_refused() {
    std::vector<Look> looks;
    std::vector<std::pair<std::string, std::string>> of;  // kind, needs
    for (const auto& [kind, list] : space_.refused)
      for (const RefusedCandidate& refused : list) {
        const TrainingStep given = step_of(request_, space_, refused.candidate);
        auto nearest = relaxed(given);
        if (!nearest || too_large(state_bound(*nearest))) continue;
        Look look{refused.candidate.system, std::move(*nearest)};
        look.divided.step = look.given;
        looks.push_back(std::move(look));
        of.emplace_back(kind, refused.needs);
      }
    bound_all(looks);
    if (request_.stop.requested()) return;
    const TrainingStep& given = request_.spec.step;
    for (std::size_t i = 0; i < looks.size(); ++i) {
      const Look& look = looks[i];
      if (look.problem || too_large(look.bound.memory)) continue;
      const double work = static_cast<double>(look.given.batch * look.given.model.layers) / static_cast<double>(given.batch * given.model.layers);
      TrainingStep step = look.given;
      step.batch = given.batch, step.model = given.model, step.pad = given.pad;
      exclude(of[i].first, look.bound.time.count() / work, look.system, step, of[i].second);
    }
  }

  [[nodiscard]] Diagnostic nothing_divides() const {
    const std::string* least = nullptr;
    const TrainingCandidate* of = nullptr;
    double bound = 0;
    for (const auto& [kind, list] : space_.refused)
      if (least == nullptr || list.front().bound_s < bound) least = &list.front().needs, of = &list.front().candidate, bound = list.front().bound_s;
    if (least == nullptr) return {{}, "expected a schedule for the pipeline, found none that takes these stages"};
    const TrainingStep step = step_of(request_, space_, *of);
    return {{}, fmt::format("no mesh divides the model and its batch; on {} with {} microbatches: {}", to_text(step.mesh), step.microbatches, *least)};
  }

  [[nodiscard]] Diagnostic nothing_fits() const {
    if (!nearest_) return first_problem_.value_or(Diagnostic{{}, "no plan can be simulated"});
    const auto& [system, step] = nearest_->second;
    const std::string where = fmt::format("no plan fits: on {} {} with {} microbatch{}, remat {}, ", to_text(request_.systems[system].slice), to_text(step.mesh), step.microbatches,
                                          step.microbatches == 1 ? "" : "es", to_text(step.remat));
    const auto whole = divided(step);
    if (whole && layers_.contains(layer_key(request_.systems[system], system, whole->step)))
      if (const auto row = simulate_step(system, step, true); row && row->training != nullptr)
        if (std::string why = why_too_large(*row->training, step); !why.empty()) return {{}, where + why};
    return {{}, fmt::format("{}which needs least, a device needs at least {} of its {}; what would help: more chips, fewer layers, or sgd", where, to_text(nearest_->first), to_text(hbm_))};
  }

  const TrainingRequest& request_;
  mutable ThreadPool pool_;
  RunOptions options_{};
  Bytes hbm_;
  TrainingSpace space_;
  TrainingTuning found_;
  std::vector<std::size_t> open_;  // by bound
  std::size_t next_ = 0;
  std::set<std::pair<double, std::size_t>> refined_;
  std::map<std::size_t, Best> best_;  // by system
  std::map<std::string, BindingConstraint> excluded_;
  std::optional<std::pair<Bytes, std::pair<std::size_t, TrainingStep>>> nearest_;  // of those that do not fit
  std::optional<Diagnostic> first_problem_;
  std::unordered_map<std::string, KnownLayer> layers_;
  std::unordered_map<std::string, KnownWeights> weights_;
  std::unordered_map<std::string, KnownShape> shapes_;
};

}  // namespace

Expected<TrainingTuning> tune_training(const TrainingRequest& request) {
  if (request.systems.empty()) return Diagnostic{of_field("chips"), "there is no system to search"};
  return TrainingSearch{request}.run();
}

const BindingConstraint* binding_of(const TrainingTuning& tuning, double step_s) {
  for (const BindingConstraint& constraint : tuning.excluded)
    if (constraint.bound_s < step_s && constraint.kind != "simulation") return &constraint;
  return nullptr;
}

}  // namespace podsim
