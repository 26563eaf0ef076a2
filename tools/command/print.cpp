#include "tools/command/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/units.hpp"
#include "tools/command/result_print.hpp"
#include "tools/command/workload.hpp"

namespace podsim {

namespace {

using Json = nlohmann::ordered_json;

std::string time(double seconds) { return time_text(seconds); }
std::string slices(const Row& row) { return row.slice_count ? std::to_string(*row.slice_count) : "-"; }

}  // namespace

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }
std::string time_text(double seconds) { return to_text(Seconds{seconds}); }

std::string mesh_text(const Result& result) {
  std::string text;
  for (const auto& [name, size] : result.mesh) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

std::string slice_text(const Result& result) { return result.slice + (result.hypothetical ? " (hypothetical)" : ""); }

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == widths.size()) widths.push_back(0);
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += c < left ? fmt::format("{:<{}}  ", row[c], widths[c]) : fmt::format("{:>{}}  ", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string csv(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    if (cell.find_first_of(",\"\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? std::string{"\"\""} : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

std::string result_csv(const std::vector<Row>& rows) {
  std::string text =
      csv({"machine", "slice", "hypothetical", "mesh", "algorithm", "dataflow", "slice_count", "engine", "devices", "makespan_s", "compute_s",
           "exposed_communication_s", "waiting_s", "flops", "mfu", "link_bytes", "peak_memory_bytes", "tasks", "padding"});
  for (const Row& row : rows) {
    const Result& r = row.result;
    text += csv({r.machine, r.slice, r.hypothetical ? "true" : "false", mesh_text(r), row.algorithm, row.dataflow, row.slice_count ? slices(row) : "",
                 r.engine, std::to_string(r.devices), fmt::format("{}", r.makespan_s), fmt::format("{}", r.compute_s),
                 fmt::format("{}", r.exposed_communication_s), fmt::format("{}", r.waiting_s), fmt::format("{}", r.flops),
                 r.mfu ? fmt::format("{}", *r.mfu) : "", fmt::format("{}", r.link_bytes), std::to_string(r.peak_memory_bytes),
                 std::to_string(r.tasks), fmt::format("{}", row.padding)});
  }
  return text;
}

namespace {

std::string crossover_table(const Crossovers& crossovers) {
  const auto value = [&](double v) { return fmt::format("{:.3g} {}", v, crossovers.range.unit); };
  std::vector<std::vector<std::string>> rows{{"from", "to", "fastest", "S", "time", "runner-up at the end"}};
  for (const Reign& reign : crossovers.reigns) {
    const std::string first = slices(reign.first), last = slices(reign.last);
    rows.push_back({value(reign.from), value(reign.to), reign.first.algorithm + " " + reign.first.dataflow,
                    first == last ? first : first + " to " + last,
                    fmt::format("{} to {}", time(reign.first.result.makespan_s), time(reign.last.result.makespan_s)),
                    reign.runner_up.empty() ? "-" : fmt::format("{} (+{})", reign.runner_up, percent(reign.margin))});
  }
  return fmt::format("{}, {}:\n{}", crossovers.place, crossovers.range.path, table(rows, 6));
}

Json json_of(const Crossovers& crossovers) {
  Json reigns = Json::array();
  for (const Reign& reign : crossovers.reigns)
    reigns.push_back(Json{{"from", reign.from},
                          {"to", reign.to},
                          {"algorithm", reign.first.algorithm},
                          {"dataflow", reign.first.dataflow},
                          {"slice_count_from", or_null(reign.first.slice_count)},
                          {"slice_count_to", or_null(reign.last.slice_count)},
                          {"makespan_from_s", reign.first.result.makespan_s},
                          {"makespan_to_s", reign.last.result.makespan_s},
                          {"runner_up", reign.runner_up.empty() ? Json() : Json(reign.runner_up)},
                          {"margin", reign.margin}});
  return Json{{"pod", crossovers.place}, {"path", crossovers.range.path}, {"unit", crossovers.range.unit}, {"reigns", reigns}};
}

}  // namespace

namespace {

std::string topologies_table(const std::vector<TopologyCost>& topologies) {
  const auto rate = [](BytesPerSecond r) { return to_text(r); };
  std::vector<std::vector<std::string>> rows{{"topology", "links", "switch ports", "all links", "out of a chip", "bisection", "link speed"}};
  for (const TopologyCost& t : topologies)
    rows.push_back({t.name, std::to_string(t.links), std::to_string(t.switch_ports), rate(t.total), rate(t.injection), rate(t.bisection),
                    fmt::format("x {:.3g}", t.scale)});
  return table(rows, 1);
}

Json json_of(const TopologyCost& t) {
  const auto number = [](BytesPerSecond r) { return is_unlimited(r) ? Json() : Json(r.count()); };
  return Json{{"topology", t.name},
              {"links", t.links},
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
  std::vector<std::vector<std::string>> rows{{"algorithm", "mesh", "forward", "backward"}};
  for (const auto& [name, choice] : all.front().layers) rows.front().push_back(name);
  for (const Row& row : all) {
    rows.push_back({row.algorithm, mesh_text(row.result), row.forward_s ? time(*row.forward_s) : "-", row.backward_s ? time(*row.backward_s) : "-"});
    for (const auto& [name, choice] : row.layers) rows.back().push_back(choice_text(choice));
  }
  return table(rows, 2);
}

}  // namespace

std::string comparison_table(const Comparisons& comparisons) {
  std::vector<std::vector<std::string>> rows{
      {"machine", "slice", "mesh", "algorithm", "flow", "S", "time", "compute", "exposed comm", "waiting", "MFU", "peak memory", "vs best"}};
  for (const Row& row : comparisons.rows) {
    const Result& r = row.result;
    rows.push_back({r.machine, slice_text(r) + (row.topology.empty() ? "" : " " + row.topology), mesh_text(r), row.algorithm,
                    row.dataflow.empty() ? "-" : row.dataflow, slices(row), time(r.makespan_s), time(r.compute_s), time(r.exposed_communication_s),
                    time(r.waiting_s), r.mfu ? percent(*r.mfu) : "-", to_text(Bytes{r.peak_memory_bytes}) + (row.over_hbm ? "*" : ""),
                    fmt::format("+{}", percent(r.makespan_s / comparisons.rows.front().result.makespan_s - 1))});
  }
  std::string text = comparisons.topologies.empty() ? "" : topologies_table(comparisons.topologies) + "\n";
  text += table(rows, 5);
  if (std::any_of(comparisons.rows.begin(), comparisons.rows.end(), [](const Row& row) { return !row.layers.empty(); }))
    text += "\n" + layers_table(comparisons.rows);
  if (std::any_of(comparisons.rows.begin(), comparisons.rows.end(), [](const Row& row) { return row.over_hbm; }))
    text += "* more than the device has\n";
  for (const Skipped& skipped : comparisons.skipped) text += fmt::format("left out: {}: {}\n", skipped.what, skipped.reason);
  for (const std::string& verdict : comparisons.verdicts) text += "\n" + verdict + "\n";
  for (const Crossovers& crossovers : comparisons.crossovers) text += "\n" + crossover_table(crossovers);
  return text;
}

std::string comparison_json(const Comparisons& comparisons) {
  Json rows = Json::array(), skipped = Json::array();
  for (const Row& row : comparisons.rows) rows.push_back(row_json(row));
  for (const Skipped& entry : comparisons.skipped) skipped.push_back(Json{{"what", entry.what}, {"reason", entry.reason}});
  Json crossovers = Json::array();
  for (const Crossovers& entry : comparisons.crossovers) crossovers.push_back(json_of(entry));
  Json topologies = Json::array();
  for (const TopologyCost& entry : comparisons.topologies) topologies.push_back(json_of(entry));
  return Json{{"rows", rows}, {"topologies", topologies}, {"skipped", skipped}, {"verdicts", comparisons.verdicts}, {"crossovers", crossovers}}.dump(
             2) +
         "\n";
}

}  // namespace podsim
