#include "tools/report/module_change_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/units.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/json.hpp"
#include "tools/report/run_report.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

using ChangeCells = std::vector<std::vector<std::string>>;

constexpr std::size_t most_changed = 20;

double changed_seconds(Picoseconds time) { return to_seconds(time).count(); }

/// "+1.2 ms", "0 s"
std::string change_of_time(double seconds) { return (seconds > 0 ? "+" : seconds < 0 ? "-" : "") + time_text(std::abs(seconds)); }

/// " (+3.4 %)"; empty where there was nothing before.
std::string relative_change(double before, double after) { return before > 0 && after != before ? fmt::format(" ({:+.1f} %)", 100 * (after / before - 1)) : ""; }

std::string changed_bytes(double bytes) { return to_text(Bytes{static_cast<std::int64_t>(bytes)}); }

/// "on tpu_v5e 4x4, mesh x=4,y=4"; of before_and_after, where they differ.
std::string change_place(const ModuleChange& change) {
  const auto place = [](const Row& row) { return fmt::format("{} {}, mesh {}", row.result.machine, slice_and_changes(row), mesh_text(row.result)); };
  const std::string before = place(change.before.row), after = place(change.after.row);
  return before == after ? before : before + "; then " + after;
}

/// What changed on the whole.
ChangeCells changed_figures(const ModuleChange& change) {
  const Result &before = change.before.row.result, &after = change.after.row.result;
  ChangeCells cells{{"", "before", "after", "change"}};
  const auto add_time = [&](const char* name, double was, double is) { cells.push_back({name, time_text(was), time_text(is), change_of_time(is - was) + relative_change(was, is)}); };
  const auto add_bytes = [&](const char* name, double was, double is) {
    cells.push_back({name, changed_bytes(was), changed_bytes(is), (is > was ? "+" : is < was ? "-" : "") + changed_bytes(std::abs(is - was)) + relative_change(was, is)});
  };
  add_time("step time", before.makespan_s, after.makespan_s);
  add_time("work of the core", before.compute_s, after.compute_s);
  add_time("exposed communication", before.exposed_communication_s, after.exposed_communication_s);
  add_time("waiting", before.waiting_s, after.waiting_s);
  add_bytes("peak memory", static_cast<double>(before.peak_memory_bytes), static_cast<double>(after.peak_memory_bytes));
  const auto &module = change.before.row.problem.hlo, &next = change.after.row.problem.hlo;
  if (module != nullptr && next != nullptr && module->memory && next->memory)
    add_bytes("memory as XLA counts it", static_cast<double>(module->memory->required.count()), static_cast<double>(next->memory->required.count()));
  add_bytes("link traffic", before.link_bytes, after.link_bytes);
  if (before.mfu && after.mfu) cells.push_back({"MFU", percent(*before.mfu), percent(*after.mfu), fmt::format("{:+.1f} points", 100 * (*after.mfu - *before.mfu))});
  std::int64_t was = 0, is = 0;
  for (const LedgerChange& one : change.collectives) was += one.before ? one.before->count : 0, is += one.after ? one.after->count : 0;
  cells.push_back({"collectives executed", std::to_string(was), std::to_string(is), is == was ? "0" : fmt::format("{:+}", is - was)});
  return cells;
}

/// Before and after, where they differ.
std::string before_and_after(const std::string& before, const std::string& after) { return before == after ? after : before + " -> " + after; }

/// The collectives that changed, and in a sentence what the table leaves out.
struct ChangedCollectives {
  ChangeCells cells;
  std::string rest;
};
ChangedCollectives changed_collectives(const ModuleChange& change) {
  ChangedCollectives changed{{{"collective", "kind", "axis", "from", "bytes", "count", "exposed before", "after", "change"}}, {}};
  std::size_t more = 0, same = 0;
  for (const LedgerChange& one : change.collectives) {
    if (!one.is_change()) {
      ++same;
      continue;
    }
    if (changed.cells.size() > most_changed) {
      ++more;
      continue;
    }
    const LedgerRow& row = one.row();
    const auto exposed = [](const std::optional<LedgerRow>& of) { return of ? time_text(changed_seconds(of->exposed)) : std::string{"-"}; };
    const LedgerRow &before = one.before ? *one.before : row, &after = one.after ? *one.after : row;
    changed.cells.push_back({before_and_after(before.name, after.name), row.kind, fmt::format("{}", fmt::join(row.axes, ",")), row.source.empty() ? row.path : row.source, before_and_after(to_text(before.bytes), to_text(after.bytes)),
                             before_and_after(std::to_string(before.count), std::to_string(after.count)), exposed(one.before), exposed(one.after),
                             change_of_time(changed_seconds(one.exposed())) + (!one.before ? ", new" : !one.after ? ", gone" : "")});
  }
  const bool has_origin = std::ranges::any_of(changed.cells.begin() + 1, changed.cells.end(), [](const auto& cells) { return !cells[3].empty(); });
  if (!has_origin)
    for (std::vector<std::string>& cells : changed.cells) cells.erase(cells.begin() + 3);
  changed.rest = fmt::format("{}{}{}", more == 0 ? "" : fmt::format("{} more changed", more), more > 0 && same > 0 ? "; " : "", same == 0 ? "" : fmt::format("{} {} as before", same, same == 1 ? "is" : "are"));
  return changed;
}

std::string change_headline(const ModuleChange& change) {
  const double before = change.before.row.result.makespan_s, after = change.after.row.result.makespan_s;
  return fmt::format("{} -> {}: step {} -> {}{}", change.before.file, change.after.file, time_text(before), time_text(after), before == after ? ", the same" : relative_change(before, after));
}

/// With pipes that do not end a cell.
std::string in_markdown(const ChangeCells& cells, std::size_t left) {
  std::string text;
  for (std::size_t r = 0; r < cells.size(); ++r) {
    text += "|";
    for (const std::string& cell : cells[r]) {
      text += " ";
      for (const char c : cell) text += c == '|' ? std::string{"\\|"} : std::string{c};
      text += " |";
    }
    text += "\n";
    if (r > 0) continue;
    for (std::size_t c = 0; c < cells[0].size(); ++c) text += c < left ? "|---" : "|---:";
    text += "|\n";
  }
  return text;
}

constexpr std::size_t collective_left_columns = 3;

}  // namespace

std::string module_change_table(const ModuleChange& change) {
  const auto [cells, rest] = changed_collectives(change);
  std::string text = wrapped(change_headline(change)) + "\n" + change_place(change) + "\n\n" + table(changed_figures(change), 1);
  text += cells.size() > 1 ? "\n" + table(cells, collective_left_columns) : "\nno collective changed\n";
  if (!rest.empty()) text += "collectives: " + rest + "\n";
  for (const std::string& note : change.notes) text += "\n" + wrapped("note: " + note) + "\n";
  return text;
}

std::string module_change_markdown(const ModuleChange& change) {
  const auto [cells, rest] = changed_collectives(change);
  std::string text = fmt::format("### {}\n\nSimulated on {}.\n\n{}", change_headline(change), change_place(change), in_markdown(changed_figures(change), 1));
  text += cells.size() > 1 ? "\nCollectives, most changed first:\n\n" + in_markdown(cells, collective_left_columns) : "\nNo collective changed.\n";
  if (!rest.empty()) text += "\nOf the others: " + rest + ".\n";
  for (const std::string& note : change.notes) text += "\n* " + note + "\n";
  return text;
}

std::string module_change_json(const ModuleChange& change) {
  Json collectives = Json::array();
  for (const LedgerChange& one : change.collectives) {
    const LedgerRow& row = one.row();
    const auto of = [](const std::optional<LedgerRow>& side, auto value) { return side ? Json(value(*side)) : Json(); };
    const auto bytes = [](const LedgerRow& side) { return side.bytes.count(); };
    const auto count = [](const LedgerRow& side) { return side.count; };
    const auto exposed = [](const LedgerRow& side) { return changed_seconds(side.exposed); };
    const auto name = [](const LedgerRow& side) { return side.name; };
    collectives.push_back(Json{{"name", of(one.after, name)},
                               {"was", of(one.before, name)},
                               {"path", or_null(row.path)},
                               {"source", or_null(row.source)},
                               {"kind", row.kind},
                               {"axis", fmt::format("{}", fmt::join(row.axes, ","))},
                               {"bytes", of(one.after, bytes)},
                               {"bytes_before", of(one.before, bytes)},
                               {"count", of(one.after, count)},
                               {"count_before", of(one.before, count)},
                               {"exposed_s", of(one.after, exposed)},
                               {"exposed_before_s", of(one.before, exposed)},
                               {"change_s", changed_seconds(one.exposed())}});
  }
  const auto module = [](const ComparedModule& of) {
    Json json{{"file", of.file}};
    json.update(row_json(of.row));
    return json;
  };
  const Json all{{"before", module(change.before)},
                 {"after", module(change.after)},
                 {"change_s", change.after.row.result.makespan_s - change.before.row.result.makespan_s},
                 {"collectives", collectives},
                 {"notes", change.notes}};
  return all.dump(2) + "\n";
}

}  // namespace podsim
