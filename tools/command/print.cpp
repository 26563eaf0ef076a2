#include "tools/command/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/units.hpp"

namespace podsim {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }
std::string time(double seconds) { return to_text(Seconds{seconds}); }
std::string slices(const Row& row) { return row.slice_count ? std::to_string(*row.slice_count) : "-"; }
std::string slice(const Result& result) { return result.slice + (result.hypothetical ? " (hypothetical)" : ""); }

Json json_of(const Row& row) {
  const Result& r = row.result;
  Json mesh = Json::object();
  for (const auto& [name, size] : r.mesh) mesh[name] = size;
  Json json{{"engine", r.engine}, {"machine", r.machine},   {"slice", r.slice},          {"hypothetical", r.hypothetical},
            {"mesh", mesh},       {"schedule", r.schedule}, {"algorithm", row.algorithm}};
  json["dataflow"] = row.dataflow.empty() ? Json() : Json(row.dataflow);
  json["slice_count"] = or_null(row.slice_count);
  json.update(Json{{"devices", r.devices},
                   {"device_classes", r.device_classes},
                   {"makespan_s", r.makespan_s},
                   {"compute_s", r.compute_s},
                   {"exposed_communication_s", r.exposed_communication_s},
                   {"waiting_s", r.waiting_s},
                   {"flops", r.flops}});
  json["mfu"] = or_null(r.mfu);
  json.update(Json{{"link_bytes", r.link_bytes},
                   {"peak_memory_bytes", r.peak_memory_bytes},
                   {"over_hbm", row.over_hbm},
                   {"tasks", r.tasks},
                   {"events", r.events},
                   {"wall_s", r.wall_s},
                   {"build_s", r.build_s},
                   {"padding", row.padding}});
  json["trust"] =
      Json{{"level", r.trust_level}, {"dataset", r.trust_dataset.empty() ? Json() : Json(r.trust_dataset)}, {"error", or_null(r.trust_error)}};
  return json;
}

}  // namespace

std::string mesh_text(const Result& result) {
  std::string text;
  for (const auto& [name, size] : result.mesh) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

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

std::string result_table(const Row& row) {
  const Result& r = row.result;
  std::vector<std::vector<std::string>> rows{
      {"schedule", r.schedule},
      {"algorithm", row.algorithm},
      {"machine", fmt::format("{}, slice {}, mesh {} ({} devices)", r.machine, slice(r), mesh_text(r), r.devices)},
      {"engine", r.engine},
      {"time", time(r.makespan_s)},
      {"  compute",
       fmt::format("{}  ({}: the core of the busiest device)", time(r.compute_s), percent(r.makespan_s > 0 ? r.compute_s / r.makespan_s : 0))},
      {"  exposed communication", time(r.exposed_communication_s)},
      {"  waiting", time(r.waiting_s)},
  };
  if (r.mfu) rows.push_back({"MFU", fmt::format("{}  ({:.4g} TFLOP)", percent(*r.mfu), r.flops * 1e-12)});
  rows.push_back({"link traffic", fmt::format("{:.4g} GB (payload x hops)", r.link_bytes * 1e-9)});
  rows.push_back({"peak memory", to_text(Bytes{r.peak_memory_bytes}) + " per device" + (row.over_hbm ? ": more than the device has" : "")});
  rows.push_back({"task instances", std::to_string(r.tasks)});
  if (row.padding > 0) rows.push_back({"padding", percent(row.padding) + " of the flops are padding"});
  rows.push_back({"trust", r.trust_level + (r.trust_level == "spec" ? ": specified and published values, not calibrated" : ": a what-if")});
  rows.push_back({"simulated in", fmt::format("{} (schedule built in {})", time(r.wall_s), time(r.build_s))});
  return table(rows, 2);
}

std::string result_json(const Row& row) { return json_of(row).dump(2) + "\n"; }

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

std::string comparison_table(const Comparisons& comparisons) {
  std::vector<std::vector<std::string>> rows{
      {"machine", "slice", "mesh", "algorithm", "flow", "S", "time", "compute", "exposed comm", "waiting", "MFU", "peak memory", "vs best"}};
  for (const Row& row : comparisons.rows) {
    const Result& r = row.result;
    rows.push_back({r.machine, slice(r), mesh_text(r), row.algorithm, row.dataflow, slices(row), time(r.makespan_s), time(r.compute_s),
                    time(r.exposed_communication_s), time(r.waiting_s), r.mfu ? percent(*r.mfu) : "-",
                    to_text(Bytes{r.peak_memory_bytes}) + (row.over_hbm ? "*" : ""),
                    fmt::format("+{}", percent(r.makespan_s / comparisons.rows.front().result.makespan_s - 1))});
  }
  std::string text = table(rows, 5);
  if (std::any_of(comparisons.rows.begin(), comparisons.rows.end(), [](const Row& row) { return row.over_hbm; }))
    text += "* more than the device has\n";
  for (const Skipped& skipped : comparisons.skipped) text += fmt::format("left out: {}: {}\n", skipped.what, skipped.reason);
  for (const std::string& verdict : comparisons.verdicts) text += "\n" + verdict + "\n";
  for (const Crossovers& crossovers : comparisons.crossovers) text += "\n" + crossover_table(crossovers);
  return text;
}

std::string comparison_json(const Comparisons& comparisons) {
  Json rows = Json::array(), skipped = Json::array();
  for (const Row& row : comparisons.rows) rows.push_back(json_of(row));
  for (const Skipped& entry : comparisons.skipped) skipped.push_back(Json{{"what", entry.what}, {"reason", entry.reason}});
  Json crossovers = Json::array();
  for (const Crossovers& entry : comparisons.crossovers) crossovers.push_back(json_of(entry));
  return Json{{"rows", rows}, {"skipped", skipped}, {"verdicts", comparisons.verdicts}, {"crossovers", crossovers}}.dump(2) + "\n";
}

}  // namespace podsim
