#include "workloads/scenario/training_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "sim/base/thread_pool.hpp"
#include "sim/base/units.hpp"
#include "workloads/scenario/training_costs.hpp"
#include "workloads/training/step_axes.hpp"

namespace podsim {

namespace {

// Rounds are small enough that what one finds soon prunes the next, and large enough for the threads. Their sizes do not depend on how many there
// are.
constexpr std::size_t bounds_per_round = 256, sharp_per_round = 32, steps_per_round = 4, rounds_per_dive = 4;
constexpr std::size_t most_told = 8;         // that are looked at for what binds
constexpr std::size_t most_compared = 5000;  // that are compared to tell the nearest where nothing fits
constexpr double most_instances = 20e6;      // of a step that does not fold: more would take longer than a search may

class TrainingSearch {
 public:
  explicit TrainingSearch(const TrainingRequest& request) : request_{request}, pool_{request.threads}, costs_{request_, options_, pool_} {
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
    for (std::size_t c = 0; c < space_.candidates.size(); ++c) open_.emplace(space_.bounds_s[c], c);
    levels_.resize(space_.candidates.size());
    begin_with_layers_of_one_device();
    while (!request_.stop.requested() && round()) tell();
    found_.interrupted = request_.stop.requested();
    found_.plans = best_plans();
    std::stable_sort(too_large_.begin(), too_large_.end());
    found_.over_memory = static_cast<std::int64_t>(too_large_.size());
    if (found_.plans.empty() && !found_.interrupted) return nothing_fits();
    if (!found_.interrupted) look_at_too_large(), look_at_refused();
    found_.layers = costs_.simulated();
    for (auto& [kind, constraint] : excluded_) found_.excluded.push_back(std::move(constraint));
    std::stable_sort(found_.excluded.begin(), found_.excluded.end(),
                     [](const BindingConstraint& a, const BindingConstraint& b) { return a.bound_s < b.bound_s; });
    return std::move(found_);
  }

 private:
  using Node = std::pair<double, std::size_t>;  // bound, candidate
  struct Best {
    TrainingPlan plan;
    std::size_t candidate = 0;
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

  /// Before any other is looked at, plans that are soon known: whose layers need no transfers within them, so that one layer serves all of their meshes. They are
  /// rarely far from the best, so an interrupted search has an answer. Ends with the first round that leaves some in memory.
  void begin_with_layers_of_one_device() {
    const auto is_one = [&](const Node& node) {
      const auto sizes = sizes_of(*step_axes(request_.systems[space_.candidates[node.second].system].mesh));
      return sizes.row * sizes.col * sizes.expert == 1;
    };
    std::vector<Node> simple;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(simple), is_one);
    const auto best = [&](int level, std::size_t most) {
      std::vector<Node> taken;
      for (auto node = open_.begin(); node != open_.end() && taken.size() < most;)
        if (levels_[node->second] == level)
          taken.push_back(*node), node = open_.erase(node);
        else
          ++node;
      return taken;
    };
    for (std::size_t first = 0; first < simple.size() && !request_.stop.requested(); first += bounds_per_round) {
      const std::vector<Node> taken{simple.begin() + static_cast<std::ptrdiff_t>(first),
                                    simple.begin() + static_cast<std::ptrdiff_t>(std::min(first + bounds_per_round, simple.size()))};
      for (const Node& node : taken) open_.erase(node);
      bound(taken, false);
      bound(best(1, steps_per_round), true);
      play(best(2, steps_per_round));
      tell();
      if (!best_.empty()) return;
    }
  }

  /// Takes the candidates with the least bounds a step further: from arithmetic to quick bounds, to sharp ones, to simulation.
  bool round() {
    const double most = cutoff();
    std::array<std::vector<Node>, 3> taken;
    bool may_stop = false;
    for (auto node = open_.begin(); node != open_.end() && node->first <= most && !may_stop;) {
      const Node of = *node;
      const int level = levels_[of.second];
      if (is_beaten(of.second, of.first)) {
        node = open_.erase(node);
        continue;
      }
      taken[static_cast<std::size_t>(level)].push_back(of);
      node = open_.erase(node);
      may_stop = taken[0].size() == bounds_per_round || taken[1].size() == sharp_per_round || taken[2].size() == steps_per_round;
    }
    if (taken[0].empty() && taken[1].empty() && taken[2].empty()) return false;
    // Now and then the best that is known well enough is simulated though others may be better, so that an interrupted search has a plan.
    if (taken[2].empty() && ++rounds_ % rounds_per_dive == 0)
      if (const auto sharp = std::find_if(open_.begin(), open_.end(), [&](const Node& node) { return levels_[node.second] == 2; });
          sharp != open_.end() && sharp->first <= most) {
        taken[2].push_back(*sharp);
        open_.erase(sharp);
      }
    bound(taken[0], false);
    bound(taken[1], true);
    play(taken[2]);
    return true;
  }

  [[nodiscard]] std::vector<TrainingPlan> best_plans() const {
    std::vector<TrainingPlan> plans;
    for (const auto& [system, best] : best_) plans.push_back(best.plan);
    std::stable_sort(plans.begin(), plans.end(), before);
    if (plans.size() > request_.top) plans.resize(request_.top);
    return plans;
  }

  void tell() {
    std::optional<double> best_s;
    for (const auto& [system, best] : best_)
      best_s = std::min(best_s.value_or(std::numeric_limits<double>::infinity()), best.plan.row.result.makespan_s);
    // The answer before its time: who reads the time may interrupt at once.
    if (request_.improved && best_s != told_best_s_) request_.improved([this] { return so_far(); });
    if (request_.progress) request_.progress({found_.candidates, found_.simulated, best_s, open_.empty() ? 0 : open_.begin()->first});
    told_best_s_ = best_s;
  }

  [[nodiscard]] TrainingTuning so_far() const {
    TrainingTuning tuning = found_;
    tuning.plans = best_plans();
    tuning.over_memory = static_cast<std::int64_t>(too_large_.size());
    tuning.layers = costs_.simulated();
    tuning.interrupted = true;
    return tuning;
  }

  void exclude(const std::string& kind, double bound, std::size_t system, const TrainingStep& step, std::string needs) {
    const auto [known, added] = excluded_.try_emplace(kind);
    if (!added && known->second.bound_s <= bound) return;
    known->second = {kind, bound, system, step, std::move(needs)};
  }
  void exclude_by_memory(const Node& node, Bytes least) { too_large_.push_back({least, node}); }
  [[nodiscard]] bool too_large(Bytes needed) const { return !request_.ignore_memory && needed > hbm_; }

  // ---- Bounds ----

  void bound(const std::vector<Node>& nodes, bool sharply) {
    std::vector<TrainingLook> looks;
    std::vector<Node> of;
    for (const Node& node : nodes) {
      const TrainingCandidate& candidate = space_.candidates[node.second];
      TrainingLook look{candidate.system, step_of(request_, space_, candidate)};
      look.rings = candidate.rings;
      if (const Bytes state = state_bound(divided(look.given)->step); too_large(state) && !request_.exhaustive) {
        exclude_by_memory(node, state);
        continue;
      }
      of.push_back(node);
      looks.push_back(std::move(look));
    }
    if (sharply)
      costs_.bound_sharply(looks, space_);
    else
      costs_.bound_quickly(looks, space_);
    if (request_.stop.requested()) return;
    for (std::size_t i = 0; i < looks.size(); ++i) {
      const TrainingLook& look = looks[i];
      const double bound = std::max(of[i].first, look.bound.time.count());
      if (look.problem)
        refuse(look.system, look.given, bound, *look.problem);
      else if (too_large(look.bound.memory) && !request_.exhaustive)
        exclude_by_memory({bound, of[i].second}, look.bound.memory);
      else {
        ++levels_[of[i].second];
        open_.emplace(bound, of[i].second);
      }
    }
  }

  void refuse(std::size_t system, const TrainingStep& step, double bound, const Diagnostic& problem) {
    if (!first_problem_) first_problem_ = problem;
    exclude("simulation", bound, system, step, problem.message.substr(0, problem.message.find('\n')));
  }

  // ---- Steps ----

  /// Errors: those of simulate(); cancelled work if it takes longer than `limit`, too.
  Expected<Row> simulate_step(std::size_t system, const TrainingStep& given, bool force, Picoseconds limit = end_of_clock) const {
    auto whole = divided(given);
    const Plan& plan = costs_.plan_of(system, whole->step);
    const auto problem =
        make_problem(request_.systems[system], PlannedTraining{given, *std::move(whole), request_.spec.options, plan, request_.spec.collectives});
    if (!problem) return problem.error();
    RunOptions options = options_;
    options.force = force;
    options.control.limit = limit;
    auto run = simulate(request_.systems[system], *problem, options);
    if (!run) return run.error();
    if (run->timeline.interrupted) return cancelled_work();
    return std::move(run->row);
  }

  /// A step that takes longer than this is not wanted.
  [[nodiscard]] Picoseconds limit_of(std::size_t system) const {
    double most = cutoff();
    if (const auto best = best_.find(system); best != best_.end() && !request_.exhaustive) most = std::min(most, best->second.plan.row.result.makespan_s);
    return most < std::numeric_limits<double>::infinity() ? ceil_to_clock(Seconds{most}) + Picoseconds{1} : end_of_clock;
  }

  void play(const std::vector<Node>& nodes) {
    std::vector<std::optional<Expected<Row>>> rows(nodes.size());
    std::vector<Picoseconds> limits;
    for (const Node& node : nodes) limits.push_back(limit_of(space_.candidates[node.second].system));
    pool_.for_each(nodes.size(), [&](std::size_t i, std::size_t) {
      const TrainingCandidate& candidate = space_.candidates[nodes[i].second];
      if (!request_.stop.requested()) rows[i] = simulate_step(candidate.system, step_of(request_, space_, candidate), false, limits[i]);
    });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!rows[i]) continue;  // stopped
      const std::size_t c = nodes[i].second;
      const std::size_t system = space_.candidates[c].system;
      TrainingStep step = step_of(request_, space_, space_.candidates[c]);
      Expected<Row>& row = *rows[i];
      if (!row) {
        if (row.error().cause == Cause::cancelled) {
          if (!request_.stop.requested()) ++found_.simulated;  // till its limit
          continue;
        }
        refuse(system, step, nodes[i].first, row.error());
        continue;
      }
      ++found_.simulated;
      if (const Bytes needed{row->result.peak_memory_bytes}; too_large(needed)) {
        exclude_by_memory({row->result.makespan_s, c}, needed);
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

  /// Of those that would be faster than the best plan one that needs little memory: few have a sharp bound yet. First those that need least are looked at, then
  /// those that may be fastest.
  void look_at_too_large() {
    const double best = found_.plans.front().row.result.makespan_s;
    std::vector<std::pair<Bytes, Node>> faster = too_large_;
    std::erase_if(faster, [&](const auto& entry) { return entry.second.first >= best; });
    if (faster.size() > most_compared) faster.resize(most_compared);
    std::vector<TrainingLook> looks;
    for (const auto& [least, node] : faster) {
      const TrainingCandidate& candidate = space_.candidates[node.second];
      looks.push_back({candidate.system, step_of(request_, space_, candidate), {}, candidate.rings});
    }
    costs_.bound_quickly(looks, space_);
    if (request_.stop.requested()) return;
    std::erase_if(looks, [&](const TrainingLook& look) { return look.problem || look.bound.time.count() >= best; });
    std::stable_sort(looks.begin(), looks.end(), [](const TrainingLook& a, const TrainingLook& b) { return a.bound.memory < b.bound.memory; });
    if (tell_first_faster(looks, best)) return;
    std::stable_sort(looks.begin(), looks.end(), [](const TrainingLook& a, const TrainingLook& b) { return a.bound.time < b.bound.time; });
    tell_first_faster(looks, best);
  }
  bool tell_first_faster(const std::vector<TrainingLook>& looks, double best) {
    for (std::size_t i = 0; i < looks.size() && i < most_told; ++i) {
      std::vector<TrainingLook> one{looks[i]};
      costs_.bound_sharply(one, space_);
      if (request_.stop.requested()) return true;
      const TrainingLook& look = one.front();
      if (look.problem || look.bound.time.count() >= best) continue;
      exclude("memory", look.bound.time.count(), look.system, look.given,
              look.bound.memory > hbm_ ? fmt::format("needs at least {} of a device's {}", to_text(look.bound.memory), to_text(hbm_))
                                       : fmt::format("needs more than a device's {}", to_text(hbm_)));
      return true;
    }
    return false;
  }

  /// What would be possible if the batch, the layers or another extent were a multiple of what the mesh asks for: bounds of those steps, for as much
  /// work.
  void look_at_refused() {
    std::vector<TrainingLook> looks;
    std::vector<std::pair<std::string, std::string>> of;  // kind, needs
    for (const auto& [kind, list] : space_.refused)
      for (const RefusedCandidate& refused : list) {
        const TrainingStep given = step_of(request_, space_, refused.candidate);
        auto nearest = relaxed(given);
        if (!nearest || too_large(state_bound(*nearest))) continue;
        looks.push_back({refused.candidate.system, std::move(*nearest)});
        of.emplace_back(kind, refused.needs);
      }
    costs_.bound_sharply(looks, space_);
    if (request_.stop.requested()) return;
    const TrainingStep& given = request_.spec.step;
    for (std::size_t i = 0; i < looks.size(); ++i) {
      const TrainingLook& look = looks[i];
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
    return {{},
            fmt::format("no mesh divides the model and its batch; on {} with {} microbatches: {}", to_text(step.mesh), step.microbatches, *least)};
  }

  [[nodiscard]] Diagnostic nothing_fits() {
    if (too_large_.empty()) return first_problem_.value_or(Diagnostic{{}, "no plan can be simulated"});
    // Most were excluded by their state alone: of those that need about the least the one that needs least with its activations.
    std::vector<TrainingLook> looks;
    for (const auto& [least, node] : too_large_) {
      if (least.count() > too_large_.front().first.count() + too_large_.front().first.count() / 20 || looks.size() == most_compared) break;
      const TrainingCandidate& candidate = space_.candidates[node.second];
      looks.push_back({candidate.system, step_of(request_, space_, candidate), {}, candidate.rings});
    }
    costs_.bound_quickly(looks, space_);
    const auto needs = [](const TrainingLook& look) { return look.problem ? std::numeric_limits<std::int64_t>::max() : look.bound.memory.count(); };
    const TrainingLook nearest =
        *std::min_element(looks.begin(), looks.end(), [&](const TrainingLook& a, const TrainingLook& b) { return needs(a) < needs(b); });
    const std::size_t system = nearest.system;
    const TrainingStep& step = nearest.given;
    const Bytes least = std::max(too_large_.front().first, nearest.problem ? Bytes{} : nearest.bound.memory);
    const std::string where = fmt::format("no plan fits: on {} {} with {} microbatch{}, remat {}, ", to_text(request_.systems[system].slice),
                                          to_text(step.mesh), step.microbatches, step.microbatches == 1 ? "" : "es", to_text(step.remat));
    looks = {nearest};
    costs_.bound_sharply(looks, space_);
    if (!looks.front().problem)
      if (const auto row = simulate_step(system, step, true); row && row->training != nullptr)
        if (std::string why = why_too_large(*row->training, step); !why.empty()) return {{}, where + why};
    return {{},
            fmt::format("{}which needs least, a device needs at least {} of its {}; what would help: more chips, fewer layers, or sgd", where,
                        to_text(least), to_text(hbm_))};
  }

  const TrainingRequest& request_;
  mutable ThreadPool pool_;
  RunOptions options_{};
  Bytes hbm_;
  TrainingSpace space_;
  TrainingTuning found_;
  TrainingCosts costs_;
  std::set<Node> open_;
  std::vector<int> levels_;  // of candidates: 0 arithmetic_bound(), 1 quick_bound(), 2 step_bound()
  std::size_t rounds_ = 0;
  std::map<std::size_t, Best> best_;  // by system
  std::optional<double> told_best_s_;
  std::map<std::string, BindingConstraint> excluded_;
  std::vector<std::pair<Bytes, Node>> too_large_;  // what they need at least
  std::optional<Diagnostic> first_problem_;
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
