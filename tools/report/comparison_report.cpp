#include "tools/report/comparison_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <span>

#include "sim/base/csv.hpp"
#include "sim/base/units.hpp"
#include "tools/report/json.hpp"
#include "tools/report/run_report.hpp"
#include "tools/report/step_report.hpp"
#include "workloads/scenario/vary.hpp"
#include "workloads/scenario/cut_bound.hpp"
#include "workloads/scenario/trust.hpp"

namespace podsim {

namespace {

std::string slices(const Row& row) { return row.problem.slice_count ? std::to_string(*row.problem.slice_count) : "-"; }

}  // namespace

std::string mesh_text(const Result& result) {
  std::string text;
  for (const auto& [name, size] : result.mesh) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

std::string slice_text(const Result& result) { return result.slice + (result.hypothetical ? " (hypothetical)" : ""); }
std::string slice_and_changes(const Row& row) {
  const std::string changes = to_text(row.changes);
  return slice_text(row.result) + (changes.empty() ? "" : " ") + changes;
}

namespace {

std::string exact(double value) { return fmt::format("{}", value); }

bool has_idle_devices(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.changes.idle_devices > 0; });
}

/// Whether several are compared.
bool has_mesh_orders(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.mesh_order != rows.front().mesh_order; });
}

/// Of programs with transforms or linear systems.
bool has_kernels(const Row& row) { return row.problem.program && !row.problem.program->kernels.empty(); }

/// Columns that only some rows have: what was varied, what a collective is, what a program with transforms or linear systems moves, what a training step is.
std::vector<std::string> further_headings(const Row& row) {
  std::vector<std::string> headings;
  for (const auto& [path, value] : row.varied) headings.push_back(path);
  if (row.problem.collective)
    for (const char* heading : {"collective", "axis", "bytes", "collective_devices", "algbw_bytes_per_s", "busbw_bytes_per_s", "cut_bound_s"})
      headings.emplace_back(heading);
  if (has_kernels(row))
    for (const char* heading : {"received_bytes", "contains_all_gather"}) headings.emplace_back(heading);
  if (row.training != nullptr)
    for (const char* heading : {"training", "batch", "microbatches", "pipeline", "virtual_stages", "remat", "step_s", "tokens_per_s", "tflops_per_chip", "model_mfu", "hfu", "recompute_s", "bubble_s"})
      headings.emplace_back(heading);
  return headings;
}

std::vector<std::string> further_cells(const Row& row) {
  std::vector<std::string> cells;
  for (const auto& [path, value] : row.varied) cells.push_back(value);
  if (has_kernels(row))
    for (std::string cell : {std::to_string(row.problem.program->cost.received.count()), std::string{row.problem.program->contains_all_gather ? "true" : "false"}})
      cells.push_back(std::move(cell));
  if (row.training != nullptr) {
    const TrainingStep& step = row.problem.training->given;
    const TrainingResult& result = *row.training;
    for (std::string cell : {step.model.name, std::to_string(step.batch), std::to_string(step.microbatches), step.pipeline, std::to_string(step.virtual_stages), to_text(step.remat),
                             exact(result.step_s), exact(result.tokens_per_s), exact(result.tflops_per_chip), exact(result.mfu), exact(result.hfu), exact(result.split.recompute),
                             exact(result.split.bubble)})
      cells.push_back(std::move(cell));
  }
  if (!row.problem.collective) return cells;
  const CollectiveSummary& asked = *row.problem.collective;
  const auto bandwidths = bandwidths_of(asked, Seconds{row.result.makespan_s});
  for (std::string cell : {std::string{name_of(asked.kind)}, asked.axes, std::to_string(asked.input.count()), std::to_string(asked.devices),
                           bandwidths ? exact(bandwidths->algorithm.count()) : "", bandwidths ? exact(bandwidths->bus.count()) : "",
                           asked.bound ? exact(asked.bound->count()) : ""})
    cells.push_back(std::move(cell));
  return cells;
}

}  // namespace

std::string result_csv(const std::vector<Row>& rows) {
  std::vector<std::string> headings{"machine",    "slice",     "hypothetical",      "mesh",
                                    "algorithm",  "dataflow",  "slice_count",       "engine",
                                    "devices",    "makespan_s", "compute_s",        "exposed_communication_s",
                                    "waiting_s",  "flops",     "mfu",               "link_bytes",
                                    "peak_memory_bytes", "tasks", "padding",        "trust_level",
                                    "trust_error", "topology", "pods",              "fail",
                                    "degrade",     "slow_devices"};
  if (!rows.empty())
    for (std::string& heading : further_headings(rows.front())) headings.push_back(std::move(heading));
  const bool idle = has_idle_devices(rows);
  if (idle) headings.emplace_back("idle_devices");
  const bool orders = has_mesh_orders(rows);
  if (orders) headings.emplace_back("mesh_order");
  std::string text = csv_row(headings);
  for (const Row& row : rows) {
    const Result& r = row.result;
    std::vector<std::string> cells{r.machine,
                                   r.slice,
                                   r.hypothetical ? "true" : "false",
                                   mesh_text(r),
                                   row.problem.algorithm,
                                   row.problem.dataflow,
                                   row.problem.slice_count ? slices(row) : "",
                                   r.engine,
                                   std::to_string(r.devices),
                                   exact(r.makespan_s),
                                   exact(r.compute_s),
                                   exact(r.exposed_communication_s),
                                   exact(r.waiting_s),
                                   exact(r.flops),
                                   r.mfu ? exact(*r.mfu) : "",
                                   exact(r.link_bytes),
                                   std::to_string(r.peak_memory_bytes),
                                   std::to_string(r.tasks),
                                   exact(row.problem.padding),
                                   r.trust.level,
                                   r.trust.error ? exact(*r.trust.error) : "",
                                   row.changes.topology,
                                   std::to_string(row.changes.slices),
                                   fmt::format("{}", fmt::join(row.changes.broken, " ")),
                                   fmt::format("{}", fmt::join(row.changes.slowed, " ")),
                                   std::to_string(row.changes.slow_devices)};
    for (std::string& cell : further_cells(row)) cells.push_back(std::move(cell));
    if (idle) cells.push_back(std::to_string(row.changes.idle_devices));
    if (orders) cells.push_back(row.mesh_order);
    text += csv_row(cells);
  }
  return text;
}

namespace {

std::string crossover_table(const Crossovers& crossovers) {
  const auto value = [&](double v) { return fmt::format("{:.3g} {}", v, crossovers.range.unit); };
  std::vector<std::vector<std::string>> rows{{"from", "to", "fastest", "S", "time", "runner-up at the end"}};
  for (const WinningInterval& interval : crossovers.intervals) {
    const std::string first = slices(interval.first), last = slices(interval.last);
    rows.push_back({value(interval.from), value(interval.to), interval.first.problem.algorithm + " " + interval.first.problem.dataflow,
                    first == last ? first : first + " to " + last,
                    fmt::format("{} to {}", time_text(interval.first.result.makespan_s), time_text(interval.last.result.makespan_s)),
                    interval.runner_up.empty() ? "-" : fmt::format("{} (+{})", interval.runner_up, percent(interval.margin))});
  }
  return fmt::format("{}, {}:\n{}", crossovers.place, crossovers.range.path, table(rows, 6));
}

Json json_of(const Crossovers& crossovers) {
  Json intervals = Json::array();
  for (const WinningInterval& interval : crossovers.intervals)
    intervals.push_back(Json{{"from", interval.from},
                          {"to", interval.to},
                          {"algorithm", interval.first.problem.algorithm},
                          {"dataflow", interval.first.problem.dataflow},
                          {"slice_count_from", or_null(interval.first.problem.slice_count)},
                          {"slice_count_to", or_null(interval.last.problem.slice_count)},
                          {"makespan_from_s", interval.first.result.makespan_s},
                          {"makespan_to_s", interval.last.result.makespan_s},
                          {"runner_up", or_null(interval.runner_up)},
                          {"margin", interval.margin}});
  return Json{{"pod", crossovers.place}, {"path", crossovers.range.path}, {"unit", crossovers.range.unit}, {"reigns", intervals}};
}

}  // namespace

namespace {

std::string topologies_table(const std::vector<TopologyCost>& topologies) {
  const auto rate = [](BytesPerSecond r) { return to_text(r); };
  std::vector<std::vector<std::string>> rows{{"topology", "links", "per chip (most)", "switch ports", "all links", "out of a chip (least)", "bisection", "link speed"}};
  for (const TopologyCost& t : topologies)
    rows.push_back({t.name, std::to_string(t.links), std::to_string(t.links_of_a_chip), std::to_string(t.switch_ports), rate(t.total), rate(t.injection), rate(t.bisection),
                    fmt::format("x {:.3g}", t.scale)});
  return table(rows, 1);
}

Json json_of(const TopologyCost& t) {
  const auto number = [](BytesPerSecond r) { return is_unlimited(r) ? Json() : Json(r.count()); };
  return Json{{"topology", t.name},
              {"links", t.links},
              {"links_of_a_chip", t.links_of_a_chip},
              {"switch_ports", t.switch_ports},
              {"total_bandwidth_bytes_per_s", number(t.total)},
              {"injection_bandwidth_bytes_per_s", number(t.injection)},
              {"bisection_bandwidth_bytes_per_s", number(t.bisection)},
              {"link_scale", t.scale}};
}

}  // namespace

namespace {

/// Of workloads: the passes apart, and how each product is computed.
std::string layers_table(const std::vector<Row>& all) {
  const bool one_machine = std::all_of(all.begin(), all.end(), [&](const Row& row) { return row.result.machine == all.front().result.machine; });
  const bool one_slice = std::all_of(all.begin(), all.end(), [&](const Row& row) { return slice_and_changes(row) == slice_and_changes(all.front()); });
  std::vector<std::vector<std::string>> rows{{"algorithm"}};
  if (!one_machine) rows.front().emplace_back("machine");
  if (!one_slice) rows.front().emplace_back("slice");
  for (const char* heading : {"mesh", "forward", "backward"}) rows.front().emplace_back(heading);
  const std::size_t left = rows.front().size() - 2;
  for (const auto& [name, choice] : all.front().problem.layers) rows.front().push_back(name);
  for (const Row& row : all) {
    rows.push_back({row.problem.algorithm});
    if (!one_machine) rows.back().push_back(row.result.machine);
    if (!one_slice) rows.back().push_back(slice_and_changes(row));
    rows.back().push_back(mesh_text(row.result));
    for (const auto& time : {row.forward_s, row.backward_s}) rows.back().push_back(time ? time_text(*time) : "-");
    for (const auto& [name, choice] : row.problem.layers) rows.back().push_back(choice_text(choice));
  }
  const bool transposed = std::any_of(all.begin(), all.end(), [](const Row& row) { return any_transposed(row.problem.layers); });
  return table(rows, left) + (transposed ? fmt::format("transposed: {}\n", transposed_meaning) : "");
}

/// Of every machine and slice, with all in which its rows go beyond a fit.
std::string trusts_text(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string, RunTrust>> trusts;
  for (const Row& row : rows) {
    const Result& r = row.result;
    const std::string place = fmt::format("{} {}{}", r.machine, slice_and_changes(row), row.varied.empty() ? "" : " " + to_text(row.varied));
    const auto alike = std::find_if(trusts.begin(), trusts.end(), [&](const auto& entry) {
      const RunTrust& trust = entry.second;
      return entry.first == place && trust.level == r.trust.level && trust.tier == r.trust.tier && trust.dataset == r.trust.dataset;
    });
    if (alike == trusts.end()) {
      trusts.emplace_back(place, r.trust);
      continue;
    }
    std::vector<std::string>& beyond = alike->second.beyond;
    for (const std::string& what : r.trust.beyond)
      if (std::find(beyond.begin(), beyond.end(), what) == beyond.end()) beyond.push_back(what);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> places_of;  // by what is said of them
  for (const auto& [place, trust] : trusts) {
    std::string said = fmt::format("{}", fmt::join(lines_of(trust), "\n  "));
    const auto known = std::ranges::find(places_of, said, [](const auto& entry) { return entry.first; });
    if (known == places_of.end())
      places_of.push_back({std::move(said), {place}});
    else
      known->second.push_back(place);
  }
  std::string text;
  for (const auto& [said, places] : places_of) text += fmt::format("trust of {}: {}\n", fmt::join(places, "; "), said);
  return text;
}

}  // namespace

namespace {

/// What a column of the rows says.
struct Column {
  std::string heading;
  std::function<std::string(const Row&)> cell;
};

std::vector<Column> pod_columns(const std::vector<Row>& rows) {
  const Row& first = rows.front();
  std::vector<Column> columns{{"machine", [](const Row& row) { return row.result.machine; }},
                              {"slice", slice_and_changes},
                              {"mesh", [](const Row& row) { return mesh_text(row.result); }}};
  if (has_mesh_orders(rows)) columns.push_back({"mesh order", [](const Row& row) { return row.mesh_order; }});
  if (has_idle_devices(rows)) columns.push_back({"idle devices", [](const Row& row) { return std::to_string(row.changes.idle_devices); }});
  for (std::size_t v = 0; v < first.varied.size(); ++v)
    columns.push_back({first.varied[v].path, [v](const Row& row) { return row.varied[v].value; }});
  return columns;
}

bool has_replicated(const Row& row) { return !row.problem.replicated.empty(); }

std::string peak_text(const Row& row) { return to_text(Bytes{row.result.peak_memory_bytes}) + (row.over_hbm ? "*" : ""); }

/// Of GEMMs and workloads.
std::vector<Column> compute_columns() {
  return {{"algorithm", [](const Row& row) { return row.problem.algorithm; }},
          {"flow", [](const Row& row) { return row.problem.dataflow.empty() ? "-" : row.problem.dataflow; }},
          {"S", slices},
          {"time", [](const Row& row) { return time_text(row.result.makespan_s); }},
          {"compute", [](const Row& row) { return time_text(row.result.compute_s); }},
          {"exposed comm", [](const Row& row) { return time_text(row.result.exposed_communication_s); }},
          {"waiting", [](const Row& row) { return time_text(row.result.waiting_s); }},
          {"MFU", [](const Row& row) { return row.result.mfu ? percent(*row.result.mfu) : "-"; }},
          {"peak memory", peak_text}};
}

std::vector<Column> collective_columns() {
  const auto bandwidth = [](BytesPerSecond Bandwidths::*which) {
    return [which](const Row& row) {
      const auto found = bandwidths_of(*row.problem.collective, Seconds{row.result.makespan_s});
      return found ? to_text(*found.*which) : "-";
    };
  };
  return {{"collective", [](const Row& row) { return std::string{name_of(row.problem.collective->kind)}; }},
          {"axis", [](const Row& row) { return row.problem.collective->axes; }},
          {"algorithm", [](const Row& row) { return row.problem.algorithm; }},
          {"bytes", [](const Row& row) { return to_exact_text(row.problem.collective->input); }},
          {"time", [](const Row& row) { return time_text(row.result.makespan_s); }},
          {"algbw", bandwidth(&Bandwidths::algorithm)},
          {"busbw", bandwidth(&Bandwidths::bus)},
          {"of cuts",
           [](const Row& row) {
             const auto share = share_of_bound(*row.problem.collective, Seconds{row.result.makespan_s});
             return share ? percent(*share) : "-";
           }},
          {"peak memory", peak_text}};
}

/// Of training steps.
std::vector<Column> step_columns() {
  const auto time = [](double TrainingSplit::*part) { return [part](const Row& row) { return time_text(row.training->split.*part); }; };
  return {{"pipeline", [](const Row& row) { return row.problem.training->given.pipeline.empty() ? "-" : row.problem.training->given.pipeline; }},
          {"remat", [](const Row& row) { return to_text(row.problem.training->given.remat); }},
          {"microbatches", [](const Row& row) { return std::to_string(row.problem.training->given.microbatches); }},
          {"step", [](const Row& row) { return time_text(row.training->step_s); }},
          {"compute", time(&TrainingSplit::compute)},
          {"recompute", time(&TrainingSplit::recompute)},
          {"exposed comm", [](const Row& row) { return time_text(row.result.exposed_communication_s); }},
          {"bubble", time(&TrainingSplit::bubble)},
          {"tokens/s", [](const Row& row) { return fmt::format("{:.5g}", row.training->tokens_per_s); }},
          {"MFU", [](const Row& row) { return mfu_text(*row.training); }},
          {"HFU", [](const Row& row) { return percent(row.training->hfu); }},
          {"peak memory", peak_text}};
}

/// The rows, and how far each is behind the best of its group.
std::string rows_table(const std::vector<Row>& rows) {
  const bool collectives = rows.front().problem.collective.has_value(), steps = rows.front().training != nullptr;
  std::vector<Column> columns = pod_columns(rows);
  const std::size_t left = columns.size() + (collectives ? 3 : 2);
  for (Column& column : collectives ? collective_columns() : steps ? step_columns() : compute_columns()) columns.push_back(std::move(column));
  if (std::any_of(rows.begin(), rows.end(), has_replicated)) columns.push_back({"replicated", replicated_text});
  if (std::any_of(rows.begin(), rows.end(), has_kernels)) {
    columns.push_back({"received", [](const Row& row) { return row.problem.program ? to_text(row.problem.program->cost.received) : "-"; }});
    columns.push_back({"all-gather", [](const Row& row) { return row.problem.program ? row.problem.program->contains_all_gather ? "yes" : "no" : "-"; }});
  }
  std::vector<std::vector<std::string>> cells(1);
  for (const Column& column : columns) cells.front().push_back(column.heading);
  cells.front().emplace_back("vs best");
  const Row* best = &rows.front();
  for (const Row& row : rows) {
    if (row.group != best->group) best = &row;
    auto& line = cells.emplace_back();
    for (const Column& column : columns) line.push_back(column.cell(row));
    line.push_back(fmt::format("+{}", percent(best->result.makespan_s > 0 ? row.result.makespan_s / best->result.makespan_s - 1 : 0)));
  }
  return table(cells, left);
}

/// "tpu_v4 4x4 row=4,col=4" and "all-reduce of 1MiB by ring"; where nothing stands before a comma, of nowhere.
std::pair<std::string, std::string> place_and_variant(const std::string& what) {
  const auto comma = what.find(", ");
  return comma == std::string::npos ? std::pair{std::string{}, what} : std::pair{what.substr(0, comma), what.substr(comma + 2)};
}

/// What was left out for one reason: one variant in several places, or several variants; of many how many more.
std::string names_of(const std::vector<const LeftOut*>& alike) {
  constexpr std::size_t most_named = 4;
  const std::string place = place_and_variant(alike.front()->what).first, variant = place_and_variant(alike.front()->what).second;
  const auto is_here = [&](const LeftOut* other) { return place_and_variant(other->what).first == place; };
  const auto is_same = [&](const LeftOut* other) { return place_and_variant(other->what).second == variant; };
  const std::size_t others = alike.size() - 1;
  if (others > 0 && !place.empty() && std::ranges::all_of(alike, is_same)) return fmt::format("{} and on {} more, {}", place, others, variant);
  std::string text = alike.front()->what;
  if (!std::ranges::all_of(alike, is_here) || alike.size() > most_named) return text + (others == 0 ? "" : fmt::format(" and {} more", others));
  const auto by = variant.rfind(" by ");
  const std::string computes = by == std::string::npos ? variant : variant.substr(0, by + 4);
  for (const LeftOut* other : std::span{alike}.subspan(1)) {
    const std::string name = place_and_variant(other->what).second;
    text += name.starts_with(computes) ? ", " + name.substr(computes.size()) : "; " + name;
  }
  return text;
}

/// What does not apply for the same reason, on one line.
std::string skipped_text(const std::vector<LeftOut>& skipped) {
  std::string text;
  std::set<std::string> told;
  for (const LeftOut& one : skipped) {
    if (!told.insert(one.reason).second) continue;
    std::vector<const LeftOut*> alike;
    for (const LeftOut& other : skipped)
      if (other.reason == one.reason) alike.push_back(&other);
    text += fmt::format("left out: {}: {}\n", names_of(alike), one.reason);
  }
  return text;
}

}  // namespace

std::string replicated_text(const Row& row) {
  std::string text;
  for (const Replicated& tensor : row.problem.replicated)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tensor.tensor,
                        tensor.gathered ? "gathered first" : tensor.role == Role::input ? "given" : "left");
  return text.empty() ? "-" : text;
}

std::string tokens_text(const TokenCount& tokens) {
  return fmt::format("{} sequences of {} tokens ({} tokens)", tokens.batch, tokens.sequence, tokens.tokens());
}

std::string choice_text(const ProductChoice& choice) {
  return fmt::format("{}{}{}", choice.transposed ? "transposed " : "", name_of(choice.dataflow),
                     choice.slice_count > 0 ? fmt::format(" S={}", choice.slice_count) : "") + (choice.collectives.empty() ? "" : ", collectives " + choice.collectives);
}

bool any_transposed(const std::vector<std::pair<std::string, ProductChoice>>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.second.transposed; });
}

std::string comparison_table(const ComparisonReport& comparisons) {
  std::string text = comparisons.topologies.empty() ? "" : topologies_table(comparisons.topologies) + "\n";
  text += rows_table(comparisons.rows);
  if (std::any_of(comparisons.rows.begin(), comparisons.rows.end(), [](const Row& row) { return !row.problem.layers.empty(); }))
    text += "\n" + layers_table(comparisons.rows);
  if (std::any_of(comparisons.rows.begin(), comparisons.rows.end(), [](const Row& row) { return row.over_hbm; }))
    text += "* more than the device has\n";
  text += skipped_text(comparisons.skipped);
  for (const std::string& note : comparisons.notes) text += "\n" + wrapped("note: " + note) + "\n";
  for (const std::string& verdict : comparisons.verdicts) text += "\n" + wrapped(verdict) + "\n";
  for (const Crossovers& crossovers : comparisons.crossovers) text += "\n" + crossover_table(crossovers);
  text += "\n" + trusts_text(comparisons.rows);
  return text;
}

std::string comparison_json(const ComparisonReport& comparisons) {
  Json rows = Json::array(), skipped = Json::array();
  for (const Row& row : comparisons.rows) rows.push_back(row_json(row));
  for (const LeftOut& entry : comparisons.skipped) skipped.push_back(Json{{"what", entry.what}, {"reason", entry.reason}});
  Json crossovers = Json::array();
  for (const Crossovers& entry : comparisons.crossovers) crossovers.push_back(json_of(entry));
  Json topologies = Json::array();
  for (const TopologyCost& entry : comparisons.topologies) topologies.push_back(json_of(entry));
  const Json all{{"rows", rows},
                 {"topologies", topologies},
                 {"skipped", skipped},
                 {"notes", comparisons.notes},
                 {"verdicts", comparisons.verdicts},
                 {"crossovers", crossovers}};
  return all.dump(2) + "\n";
}

}  // namespace podsim
