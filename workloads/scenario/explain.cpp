#include "workloads/scenario/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "sim/analysis/operations.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/model/recost.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim {

namespace {

/// A machine value that can be scaled.
struct Parameter {
  std::string name;
  bool more_is_better;
  std::function<void(Machine&, double)> scale;
  enum class Of { links, memory, other };
  Of of = Of::other;
};

constexpr std::string_view links_parameter = "link bandwidth";

template <class Q>
void multiply(Q& quantity, double factor) {
  quantity = factor * quantity;
}

bool any_positive(const PerKind<Seconds, cost_kind_count>& values) {
  return std::any_of(values.begin(), values.end(), [](Seconds value) { return value > Seconds{}; });
}

/// Physical dimensions by the mesh axes whose transfers cross their links: an axis may fold several dimensions.
std::map<std::set<int>, std::vector<std::size_t>> dimensions_by_axes(const Run& run) {
  std::map<std::size_t, std::set<int>> axes_of;
  const Model& model = run.model;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) {
    std::set<std::pair<std::uint32_t, int>> seen;
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer) continue;
      const int axis = moving_axis(model.task(p, t));
      if (!seen.emplace(cost.routing, axis).second) continue;
      for (std::size_t l = 0; l < model.deployment.programs[p].devices.size(); ++l)
        if (model.deployment.who(p, t).does(l))
          for (const PathLink& link : model.links_of(model.path(cost, l)))
            if (const ModelLink& of = model.links[link.link]; !of.is_memory)
              if (const auto dimension = run.system->topology->dimension_of(of.representative))
                axes_of[static_cast<std::size_t>(*dimension)].insert(axis);
    }
  }
  std::map<std::set<int>, std::vector<std::size_t>> result;
  for (const auto& [dimension, axes] : axes_of) result[axes].push_back(dimension);
  return result;
}

bool copies_to_host(const Schedule& schedule) {
  const auto copies = [](const Program& program) {
    return std::ranges::any_of(program.tasks, [](const Task& task) {
      const auto* local = std::get_if<Local>(&task.op);
      return local != nullptr && traits_of(local->kind).cost == LocalCost::host;
    });
  };
  return std::ranges::any_of(schedule.programs, copies) || std::ranges::any_of(schedule.functions, [&](const Function& function) { return copies(function.body); });
}

std::vector<Parameter> parameters_of(const Run& run) {
  const Machine& machine = run.system->machine;
  std::vector<Parameter> parameters;
  std::vector<std::size_t> crossed;
  const auto groups = dimensions_by_axes(run);
  for (const auto& group : groups) {
    const auto& axes = group.first;  // a structured binding may not be captured, clang 14 says
    const auto& dimensions = group.second;
    std::vector<std::string> names;
    for (const int axis : axes) names.push_back(axis < 0 ? "sends" : run.lowered->mesh.axes()[static_cast<std::size_t>(axis)].name);
    std::string name = fmt::format("{}, {}", links_parameter, fmt::join(names, "+"));
    const auto same_axes =
        std::count_if(groups.begin(), groups.end(), [&](const auto& other) { return other.first != axes && other.first.count(*axes.begin()) > 0; });
    if (same_axes > 0) {
      std::string letters;
      for (const std::size_t d : dimensions) letters += dimension_name(static_cast<int>(d));
      name += " (" + letters + ")";
    }
    crossed.insert(crossed.end(), dimensions.begin(), dimensions.end());
    parameters.push_back({name, true, [dims = dimensions](Machine& m, double factor) {
                            for (const std::size_t d : dims) multiply(m.link[d].bandwidth, factor);
                          }, Parameter::Of::links});
  }
  if (std::any_of(crossed.begin(), crossed.end(), [&](std::size_t d) { return machine.link[d].latency > Seconds{}; }))
    parameters.push_back({"hop latency", false, [](Machine& m, double factor) {
                            for (LinkParameters& link : m.link) multiply(link.latency, factor);
                          }});
  if (any_positive(machine.software.launch))
    parameters.push_back({"launch", false, [](Machine& m, double factor) {
                            for (Seconds& launch : m.software.launch) multiply(launch, factor);
                            multiply(m.software.in_switch_launch, factor);
                          }});
  if (machine.software.per_message > Seconds{})
    parameters.push_back({"per-message overhead", false, [](Machine& m, double factor) { multiply(m.software.per_message, factor); }});
  if (run.metrics.flops > Flops{})
    parameters.push_back({"peak FLOP/s", true, [](Machine& m, double factor) {
                            for (FlopsPerSecond& peak : m.chip.peak) multiply(peak, factor);
                          }});
  const auto limited = [&](const char* name, BytesPerSecond Chip::*rate, Parameter::Of of = Parameter::Of::other) {
    if (!is_unlimited(machine.chip.*rate)) parameters.push_back({name, true, [rate](Machine& m, double factor) { multiply(m.chip.*rate, factor); }, of});
  };
  limited("HBM bandwidth", &Chip::hbm_bandwidth, Parameter::Of::memory);
  limited("injection bandwidth", &Chip::injection_bandwidth);
  limited("ejection bandwidth", &Chip::ejection_bandwidth);
  limited("reduce bandwidth", &Chip::reduce_bandwidth);
  limited("own-block bandwidth", &Chip::own_block_bandwidth);
  if (copies_to_host(*run.lowered) && !is_unlimited(machine.dcn.host_bandwidth))
    parameters.push_back({"host bandwidth", true, [](Machine& m, double factor) { multiply(m.dcn.host_bandwidth, factor); }});
  return parameters;
}

/// One value of the machine, to be scaled by a factor.
struct Change {
  const Parameter* parameter;
  double factor;
};

/// Repeats a run on other machines: changes that leave the model's routes as they are run together, others one by one.
class Reruns {
 public:
  Reruns(const Run& run, const RunOptions& options) : run_{run}, options_{options} {
    options_.control.record = false;
    options_.control.progress = {};
  }

  /// The makespan with each of these changes alone.
  std::vector<Expected<double>> makespans(const std::vector<Change>& changes) const {
    std::vector<Expected<double>> times(changes.size(), Expected<double>{0.0});
    std::vector<Variant> variants(changes.size());
    ThreadPool pool{options_.engine->folds ? options_.threads : 1};
    pool.for_each(changes.size(), [&](std::size_t i, std::size_t) {
      auto variant = variant_of(changes[i]);
      if (!variant)
        times[i] = variant.error();
      else if (variant->model == nullptr)
        times[i] = alone(*variant->system);
      else
        variants[i] = *std::move(variant);
    });
    std::vector<const Model*> models;
    for (const Variant& variant : variants)
      if (variant.model != nullptr) models.push_back(variant.model.get());
    const auto timelines = run_variants(*options_.engine, models, options_.control, options_.threads);
    auto next = timelines.begin();
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (variants[i].model != nullptr) times[i] = makespan_of(*next++);
    return times;
  }

 private:
  struct Variant {
    std::unique_ptr<const System> system;  // the model reads its machine
    std::unique_ptr<const Model> model;    // null: it cannot be had from the run's
  };

  Expected<Variant> variant_of(const Change& change) const {
    if (options_.stopped()) return cancelled_work();
    Machine machine = run_.system->machine;
    change.parameter->scale(machine, change.factor);
    auto system = with_machine(*run_.system, std::move(machine));
    if (!system) return system.error();
    Variant variant{std::make_unique<const System>(*std::move(system)), nullptr};
    auto model = recost(run_.model, variant.system->machine, *variant.system->topology, variant.system->placement, options_.control.stop);
    if (!model) return model.error();
    if (*model) variant.model = std::make_unique<const Model>(**std::move(model));
    return variant;
  }

  Expected<double> alone(const System& system) const {
    const auto model = model_on(system, *run_.lowered, options_);
    if (!model) return model.error();
    return makespan_of(options_.engine->run(*model, options_.control));
  }

  static Expected<double> makespan_of(const Expected<Timeline>& timeline) {
    if (!timeline) return timeline.error();
    if (timeline->interrupted) return cancelled_work();
    return to_seconds(timeline->makespan).count();
  }

  const Run& run_;
  RunOptions options_;
};

/// The label of a task, or of the Collective that it was lowered from: its tasks stand together, and begin with the launch.
std::string stretch_label(const Program& program, TaskId id) {
  std::size_t first = id.index();
  const std::optional<Origin>& origin = program.tasks[first].origin;
  if (!origin) return program.tasks[first].label;
  while (first > 0 && program.tasks[first - 1].origin && program.tasks[first - 1].origin->collective == origin->collective) --first;
  return std::string{label_of_collective(program.tasks[first])};
}

std::vector<PathStretch> stretches_of(const Run& run, const std::vector<PathStep>& steps) {
  std::vector<PathStretch> stretches;
  const PathStep* before = nullptr;
  const auto together = [&](const PathStep& a, const PathStep& b) {
    const auto &one = run.model.task(a.program, a.task.index()).origin, &other = run.model.task(b.program, b.task.index()).origin;
    return a.program == b.program && one && other && one->collective == other->collective;
  };
  for (const PathStep& step : steps) {
    if (before == nullptr || !together(*before, step))
      stretches.push_back({stretch_label(run.lowered->programs[step.program], step.task), 0, step.device, step.device, -1, step.start, step.end, {}});
    before = &step;
    PathStretch& stretch = stretches.back();
    ++stretch.steps;
    stretch.last = step.receiver;
    stretch.end = step.end;
    stretch.axis = std::max(stretch.axis, step.axis);
    stretch.parts = stretch.parts + step.parts;
  }
  return stretches;
}

/// "; of what passes HBM there, matmul moves 61 % and gather W 31 %": the largest users.
std::string memory_users(const Run& run) {
  std::vector<OperationMetrics> operations = measure_operations(run.model, run.timeline, run.metrics.busiest);
  std::stable_sort(operations.begin(), operations.end(), [](const auto& a, const auto& b) { return a.memory_bytes > b.memory_bytes; });
  double all = 0;
  for (const OperationMetrics& operation : operations) all += operation.memory_bytes;
  constexpr std::size_t named = 3;
  std::vector<std::string> users;
  for (std::size_t i = 0; i < std::min(named, operations.size()); ++i)
    if (const double part = operations[i].memory_bytes / all; part >= 0.005)
      users.push_back(fmt::format("{} {:.0f} %", operations[i].name, 100 * part));
  return users.empty() ? "" : fmt::format(" (what passes it: {})", fmt::join(users, ", "));
}

/// The links of all axes at once: where two axes are equally busy, neither alone gains much. nullopt: there is one group of them at most.
std::optional<Parameter> all_links(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> groups;
  std::ranges::copy_if(parameters, std::back_inserter(groups), [](const Parameter& p) { return p.of == Parameter::Of::links; });
  if (groups.size() < 2) return std::nullopt;
  return Parameter{std::string{links_parameter}, true, [groups](Machine& m, double factor) {
                     for (const Parameter& group : groups) group.scale(m, factor);
                   }};
}

std::string sentence_of(const Run& run, const std::vector<Parameter>& parameters, const std::vector<Sensitivity>& sensitivities,
                        const Reruns& reruns, double makespan) {
  // What gains most by 10 %, among those that gain most by 1 %.
  constexpr std::size_t tried = 3;
  std::vector<Change> changes;
  for (std::size_t i = 0; i < std::min(tried, sensitivities.size()); ++i) {
    const auto parameter =
        std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == sensitivities[i].parameter; });
    changes.push_back({&*parameter, parameter->more_is_better ? 1.1 : 0.9});
  }
  const std::optional<Parameter> links = all_links(parameters);
  if (links) changes.push_back({&*links, 1.1});
  const auto changed = reruns.makespans(changes);
  const Parameter* best = nullptr;
  double gain = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!changed[i]) continue;
    // All links are named where they gain clearly more than those of one axis.
    const double effect = *changed[i] / makespan - 1, least = links && changes[i].parameter == &*links ? 1.1 * gain : gain;
    if (effect < least) gain = effect, best = changes[i].parameter;
  }
  if (best == nullptr || gain > -1e-4)
    return "no single value of the machine bounds it: 10 % more or less of any one changes the time by less than 0.01 %";
  const std::string users = best->of == Parameter::Of::memory ? memory_users(run) : "";
  return fmt::format("bound by {}{}; {}10 % there gives {:.1f} %", best->name, users, best->more_is_better ? "+" : "-", 100 * gain);
}

}  // namespace

Expected<Explanation> explain(const Run& run, const RunOptions& options) {
  options.tell("following the critical path");
  Explanation result;
  result.steps = critical_path(run.model, run.timeline);
  result.on_axis.resize(run.lowered->mesh.axes().size() + 1);
  for (const PathStep& step : result.steps) {
    result.parts = result.parts + step.parts;
    const bool transfer = run.model.costs[step.program][step.task.index()].kind == TaskCost::Kind::transfer;
    if (!transfer) continue;
    TimeParts& axis = step.axis < 0 ? result.on_axis.back() : result.on_axis[static_cast<std::size_t>(step.axis)];
    axis = axis + step.parts;
  }
  result.stretches = stretches_of(run, result.steps);

  const double makespan = to_seconds(run.metrics.makespan).count();
  if (!(makespan > 0)) {
    result.sentence = "nothing takes time";
    return result;
  }
  const std::vector<Parameter> parameters = parameters_of(run);
  options.tell(fmt::format("simulating with each of {} machine values changed", parameters.size()));
  const Reruns reruns{run, options};
  std::vector<Change> changes;
  for (const Parameter& parameter : parameters) changes.push_back({&parameter, 1.01});
  const auto times = reruns.makespans(changes);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!times[i]) return times[i].error();
    result.sensitivities.push_back({parameters[i].name, parameters[i].more_is_better, *times[i] / makespan - 1});
  }
  std::stable_sort(result.sensitivities.begin(), result.sensitivities.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return std::abs(a.effect) > std::abs(b.effect); });
  result.sentence = sentence_of(run, parameters, result.sensitivities, reruns, makespan);
  return result;
}

}  // namespace podsim
