#include "workloads/tuning/system_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/base/invariant.hpp"
#include "workloads/tuning/bound.hpp"

namespace podsim {

namespace {

constexpr std::array<ActivationLayout, 2> layouts{ActivationLayout::tokens_by_row, ActivationLayout::features_by_row};
constexpr std::size_t index_of(ActivationLayout layout) { return static_cast<std::size_t>(layout); }

bool divides(const GemmProblem& problem, const Multiples& multiples) {
  return problem.m % multiples.m == 0 && problem.n % multiples.n == 0 && problem.k % multiples.k == 0;
}

/// Rounded down: a bound must not exceed what it bounds.
Picoseconds floor_to_clock(Seconds time) { return Picoseconds{static_cast<std::int64_t>(time.count() * 1e12 * (1 - 1e-12))}; }

}  // namespace

Expected<SystemSearch> SystemSearch::make(const TuningRequest& request, std::size_t system, const PartCosts& costs) {
  SystemSearch search{request, system, costs};
  const std::size_t count = request.workload.stages.size();
  search.options_.resize(count);
  search.others_.resize(count);
  search.relayouts_.resize(count);
  for (const Branch& branch : branches_of(request.workload)) search.starts_.insert(branch.first), search.joins_.insert(branch.last);
  for (std::size_t s = 0; s < count; ++s) {
    if (request.workload.stages[s].kind == Stage::Kind::product) {
      if (auto ok = search.list_options(s); !ok) return ok.error();
    } else {
      search.list_others(s);
    }
    for (const ActivationLayout layout : layouts) search.list_relayout(s, layout);
  }
  return search;
}

std::vector<Pass> SystemSearch::passes() const {
  if (request_->pass == Pass::both) return {Pass::forward, Pass::backward};
  return {request_->pass};
}

Status SystemSearch::list_options(std::size_t stage) {
  const auto is_folded = [&](const MeshAxis& axis) { return std::count_if(axis.factors.begin(), axis.factors.end(), [](const MeshFactor& factor) { return factor.size > 1; }) > 1; };
  const bool folded = std::any_of(mesh().axes().begin(), mesh().axes().end(), is_folded);
  for (const std::string& collectives : request_->collectives) {
    if (collectives == "ring" && !folded) continue;  // by dimension does the same
    for (const std::string& algorithm : request_->algorithms)
      if (auto ok = list_options(stage, algorithm, collectives); !ok) return ok;
  }
  return success();
}

Status SystemSearch::list_options(std::size_t stage, const std::string& algorithm, const std::string& collectives) {
  const Workload& workload = request_->workload;
  const std::string& name = workload.stages[stage].name;
  const bool with_collective = std::find(request_->algorithms.begin(), request_->algorithms.end(), "collective") != request_->algorithms.end();
  const auto entry = gemm_algorithm(algorithm);
  if (!entry) return entry.error();
  if ((*entry)->mesh != MeshUse::row_col)
    return Diagnostic{{},
                      fmt::format("{} works on one axis; a workload has row and col: give the mesh row=1 or col=1 to the algorithm that it is a "
                                  "case of (1d-os, 1d-ls: wang; 1d-fsdp: collective)",
                                  algorithm)};
  for (const Dataflow dataflow : all_dataflows)
    for (const bool transposed : {false, true}) {
      ProductChoice choice{algorithm, dataflow, transposed, 0, collectives};
      const auto part = part_of(workload, stage, input_layout(dataflow, transposed), choice, mesh(), Pass::forward);
      if (!part) {
        reasons_.insert(name + ": " + part.error().message);
        continue;
      }
      const GemmProblem problem = gemm_problem_of(*part);
      const bool counted = (*entry)->needs_slice_count;
      bool asked = false, any = false;
      std::string why;
      for (std::int64_t S = counted ? (with_collective ? 2 : 1) : 0; S <= (counted ? request_->largest_slice_count : 0); ++S) {
        choice.slice_count = S;
        if (request_->allowed && !request_->allowed(name, choice)) continue;
        asked = true;
        const auto multiples = required_multiples(**entry, mesh(), dataflow, request_->pass, gemm_options(request_->options, S));
        if (!multiples) {
          reasons_.insert(multiples.error().message);
          any = true;
        } else if (divides(problem, *multiples)) {
          any = true;
          add_option(stage, choice);
        } else if (why.empty()) {
          why = fmt::format("m={}, n={}, k={} must be multiples of {}, {}, {}", problem.m, problem.n, problem.k, multiples->m, multiples->n, multiples->k);
        }
      }
      if (asked && !any) reasons_.insert(fmt::format("{}, {} {}{}: {}", name, algorithm, transposed ? "transposed " : "", name_of(dataflow), why));
    }
  return success();
}

void SystemSearch::add_option(std::size_t stage, const ProductChoice& choice) {
  ProductOption option{choice, input_layout(choice.dataflow, choice.transposed), output_layout(choice.dataflow, choice.transposed), {}, false};
  for (const Pass pass : passes()) {
    auto part = part_of(request_->workload, stage, option.in, choice, mesh(), pass);
    if (!part) return;  // said already
    const Seconds bound = product_bound(*part, request_->options, request_->systems[system_], costs_->rings(system_));
    option.parts.push_back(possible(*std::move(part), floor_to_clock(bound)));
  }
  options_[stage].push_back(std::move(option));
}

void SystemSearch::list_others(std::size_t stage) {
  for (const ActivationLayout layout : layouts) {
    std::vector<PossiblePart> parts;
    for (const Pass pass : passes()) {
      auto part = part_of(request_->workload, stage, layout, std::nullopt, mesh(), pass);
      if (!part) {
        reasons_.insert(fmt::format("{} {}: {}", request_->workload.stages[stage].name, name_of(layout), part.error().message));
        break;
      }
      parts.push_back(possible(*std::move(part), {}));
    }
    if (parts.size() == passes().size()) others_[stage][index_of(layout)] = std::move(parts);
  }
}

void SystemSearch::list_relayout(std::size_t stage, ActivationLayout layout) {
  std::vector<PossiblePart> parts;
  for (const Pass pass : passes()) {
    auto part = relayout_before(request_->workload, stage, layout, mesh(), pass);
    if (!part) return;
    parts.push_back(possible(*std::move(part), {}));
  }
  relayouts_[stage][index_of(layout)] = std::move(parts);
}

PossiblePart SystemSearch::possible(WorkloadPart part, Picoseconds bound) const {
  std::string key = costs_->key(system_, part);
  return {std::move(part), std::move(key), bound};
}

Bytes SystemSearch::working_of(const WorkloadPart& part, const PartCost& cost) const {
  if (request_->pass != Pass::forward) return cost.working;
  // Nothing is kept then: what is read and written is part of the work.
  return cost.working + part.tokens * part.inputs / mesh().devices() * size_of(part.dtype) + part.tokens * part.outputs / mesh().devices() * size_of(product_result(part.dtype));
}

std::pair<SystemSearch::Time, Bytes> SystemSearch::cost_of(const std::vector<PossiblePart>& parts, bool known_only) const {
  Time time = 0;
  Bytes working;
  for (const PossiblePart& part : parts) {
    const PartCost* cost = costs_->known(part.key);
    if (cost == nullptr ? known_only : !cost->problem.empty()) return {never, working};
    time += cost == nullptr ? std::max(part.bound, floor_to_clock(costs_->sharp_bound(part.key))).count() : cost->time.count();
    if (cost != nullptr) working = std::max(working, working_of(part.part, *cost));
  }
  return {time, working};
}

/// The best way to where a stage begins, in one layout.
struct SystemSearch::State {
  Time time = never;
  Bytes working;                                              // of what needs most on the way, as far as it is known
  ActivationLayout before = ActivationLayout::tokens_by_row;  // of the stage before
  std::size_t option = 0;                                     // of the stage before, where it is a product
  bool relayout = false;                                      // before this stage; from the other layout
};

std::optional<SystemSearch::Path> SystemSearch::best_from(ActivationLayout stream, bool known_only) const {
  const Workload& workload = request_->workload;
  const std::size_t count = workload.stages.size();
  // at[s][l]: stage s is about to read layout l; after its re-layout, if there is one.
  std::vector<std::array<State, 2>> left(count + 1), at(count + 1);  // left: by the stage before, without re-layout
  left[0][index_of(stream)].time = 0;
  for (std::size_t s = 0; s <= count; ++s) {
    at[s] = left[s];
    const bool may_turn = s > 0 && s < count && !starts_.contains(s);
    if (may_turn)
      for (const ActivationLayout layout : layouts) {
        const State& from = left[s][index_of(other(layout))];
        const auto& relayout = relayouts_[s][index_of(other(layout))];
        if (!relayout) continue;
        const auto cost = cost_of(*relayout, known_only);
        const Time time = std::min(never, from.time + cost.first);
        const Bytes working = std::max(from.working, cost.second);
        State& state = at[s][index_of(layout)];
        if (std::tie(time, working) < std::tie(state.time, state.working)) state = {time, working, from.before, from.option, true};
      }
    if (s == count) break;
    if (joins_.contains(s)) at[s][index_of(other(stream))].time = never;
    const auto arrive = [&](ActivationLayout to, Time time, Bytes working, ActivationLayout from, std::size_t option) {
      State& state = left[s + 1][index_of(to)];
      if (std::tie(time, working) < std::tie(state.time, state.working)) state = {time, working, from, option, false};
    };
    for (const ActivationLayout layout : layouts) {
      const auto& [here, working, before, last, turned] = at[s][index_of(layout)];
      if (here >= never) continue;
      if (workload.stages[s].kind != Stage::Kind::product) {
        if (const auto& parts = others_[s][index_of(layout)]) {
          const auto cost = cost_of(*parts, known_only);
          arrive(layout, std::min(never, here + cost.first), std::max(working, cost.second), layout, 0);
        }
        continue;
      }
      for (std::size_t o = 0; o < options_[s].size(); ++o) {
        const ProductOption& option = options_[s][o];
        if (option.in != layout || option.excluded) continue;
        const auto cost = cost_of(option.parts, known_only);
        arrive(option.out, std::min(never, here + cost.first), std::max(working, cost.second), layout, o);
      }
    }
  }
  ActivationLayout layout = stream;
  if (at[count][index_of(layout)].time >= never) return std::nullopt;
  Path path{Picoseconds{at[count][index_of(layout)].time}, {request_->options, std::string{by_dimension_name}, {}}, {}, true};
  path.plan.stages.resize(count);
  for (std::size_t s = count; s > 0; --s) {
    const State& state = at[s][index_of(layout)];  // how stage s-1 was left
    StagePlan& stage = path.plan.stages[s - 1];
    stage.name = workload.stages[s - 1].name;
    stage.layout = state.before;
    if (workload.stages[s - 1].kind == Stage::Kind::product) stage.product = options_[s - 1][state.option].choice;
    layout = state.before;
  }
  return path;
}

std::optional<SystemSearch::Path> SystemSearch::best(bool known_only) const {
  if (too_large_) return std::nullopt;
  std::optional<Path> found;
  if (request_->workload.layouts_meet()) {
    for (const ActivationLayout stream : layouts)
      if (auto path = best_from(stream, known_only); path && (!found || path->time < found->time)) found = std::move(path);
  } else {
    // Products that have nothing to do with each other.
    found = Path{{}, {request_->options, std::string{by_dimension_name}, {}}, {}, true};
    for (std::size_t s = 0; s < options_.size(); ++s) {
      const ProductOption* least = nullptr;
      std::pair<Time, Bytes> cost{never, {}};
      for (const ProductOption& option : options_[s]) {
        if (option.excluded) continue;
        const auto of_option = cost_of(option.parts, known_only);
        if (of_option < cost) cost = of_option, least = &option;
      }
      if (least == nullptr) return std::nullopt;
      found->time += Picoseconds{cost.first};
      found->plan.stages.push_back({request_->workload.stages[s].name, least->in, least->choice});
    }
  }
  if (!found) return found;
  auto parts = parts_of(request_->workload, found->plan, mesh(), request_->pass);
  PODSIM_ASSERT(parts);
  found->parts = *std::move(parts);
  for (const WorkloadPart& part : found->parts) found->known = found->known && costs_->known(system_, part) != nullptr;
  return found;
}

std::vector<StageAlternative> SystemSearch::alternatives(const Plan& plan) const {
  std::vector<StageAlternative> found;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (!plan.stages[s].product) continue;
    const ProductChoice& own = *plan.stages[s].product;
    const auto same_kind = [&](const ProductChoice& choice) {
      return choice.algorithm == own.algorithm && choice.dataflow == own.dataflow && choice.transposed == own.transposed && choice.collectives == own.collectives;
    };
    const auto of_plan = std::find_if(options_[s].begin(), options_[s].end(), [&](const ProductOption& option) { return option.choice == own; });
    if (of_plan == options_[s].end()) continue;  // a baseline's
    const Picoseconds time{cost_of(of_plan->parts, false).first};
    for (const bool other_slices : {false, true}) {
      std::optional<StageAlternative> best;
      for (const ProductOption& option : options_[s]) {
        if (option.excluded || option.choice == own || same_kind(option.choice) != other_slices || option.in != of_plan->in ||
            option.out != of_plan->out)
          continue;
        const auto [cost, working] = cost_of(option.parts, false);
        if (cost >= never || (best && Picoseconds{cost} >= best->time)) continue;
        const bool exact =
            std::all_of(option.parts.begin(), option.parts.end(), [&](const PossiblePart& part) { return costs_->known(part.key) != nullptr; });
        best = StageAlternative{plan.stages[s].name, option.choice, Picoseconds{cost}, time, exact};
      }
      if (best) found.push_back(*best);
    }
  }
  return found;
}

TunedPlan SystemSearch::plan_of(const Path& path) const {
  TunedPlan plan;
  plan.system = system_;
  plan.plan = path.plan;
  plan.memory = resident_memory(request_->workload, path.plan, mesh(), request_->pass);
  for (const WorkloadPart& part : path.parts) {
    const PartCost& cost = *costs_->known(system_, part);
    (part.pass == Pass::forward ? plan.forward : plan.backward) += cost.time;
    plan.memory.working = std::max(plan.memory.working, working_of(part, cost));
    plan.parts.push_back({part, cost});
  }
  plan.time = plan.forward + plan.backward;
  return plan;
}

void SystemSearch::exclude(const TunedPlan& plan, Bytes limit) {
  if (plan.memory.total() - plan.memory.working > limit) {
    // Copies of keys and values are as many as attention's layout wants.
    for (std::size_t s = 0; s < others_.size(); ++s)
      if (request_->workload.stages[s].kind == Stage::Kind::attention) {
        others_[s][index_of(plan.plan.stages[s].layout)].reset();
        return;
      }
    too_large_ = true;
    return;
  }
  const auto most = std::max_element(plan.parts.begin(), plan.parts.end(),
                                     [&](const TunedPart& a, const TunedPart& b) { return working_of(a.part, a.cost) < working_of(b.part, b.cost); });
  const WorkloadPart& part = most->part;
  for (std::size_t s = 0; s < options_.size(); ++s) {
    for (auto* parts : {&others_[s][index_of(part.layout)], &relayouts_[s][index_of(part.layout)]})
      if (*parts && (*parts)->front().part.name == part.name) parts->reset();
    if (request_->workload.stages[s].name == part.name)
      for (ProductOption& option : options_[s])
        if (option.choice == part.product) option.excluded = true;
  }
}

std::int64_t SystemSearch::candidates() const {
  std::int64_t count = 0;
  for (const auto& stage : options_) count += static_cast<std::int64_t>(stage.size());
  return count;
}

std::int64_t SystemSearch::never_simulated() const {
  std::int64_t count = 0;
  for (const auto& stage : options_)
    for (const ProductOption& option : stage)
      if (std::none_of(option.parts.begin(), option.parts.end(), [&](const PossiblePart& part) { return costs_->known(part.key) != nullptr; }))
        ++count;
  return count;
}

std::set<std::string> SystemSearch::reasons() const {
  std::set<std::string> all = reasons_;
  for (const WorkloadPart& part : all_parts())
    if (const PartCost* cost = costs_->known(system_, part); cost != nullptr && !cost->problem.empty()) all.insert(part.name + ": " + cost->problem);
  return all;
}

std::vector<WorkloadPart> SystemSearch::all_parts() const {
  std::vector<WorkloadPart> parts;
  const auto append = [&](const std::vector<PossiblePart>& possible) {
    for (const PossiblePart& part : possible) parts.push_back(part.part);
  };
  for (const auto& stage : options_)
    for (const ProductOption& option : stage) append(option.parts);
  for (const auto& stage : others_)
    for (const auto& in_layout : stage)
      if (in_layout) append(*in_layout);
  if (request_->workload.layouts_meet())
    for (std::size_t s = 1; s < relayouts_.size(); ++s)
      if (!starts_.contains(s))
        for (const auto& from : relayouts_[s])
          if (from) append(*from);
  return parts;
}

}  // namespace podsim
