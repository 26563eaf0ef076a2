#include "tools/report/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/schedule/text.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/hlo_coverage_report.hpp"
#include "tools/report/hlo_report.hpp"
#include "tools/report/json.hpp"
#include "tools/report/advice_report.hpp"
#include "tools/report/ledger_report.hpp"
#include "tools/report/program_report.hpp"
#include "tools/report/role_colours.hpp"
#include "tools/report/run_operations.hpp"
#include "tools/report/step_report.hpp"
#include "tools/report/text_width.hpp"
#include "workloads/scenario/cut_bound.hpp"
#include "workloads/scenario/trust.hpp"

namespace podsim {

namespace {

using podsim::time_text;
std::string time_text(Picoseconds duration) { return to_text(to_seconds(duration)); }
double seconds(Picoseconds duration) { return to_seconds(duration).count(); }

/// "row=1,col=3", or with a class "row=1,col=3 and 15 alike".
std::string device_name(const Run& run, DeviceId device, std::uint32_t alike = 1) {
  return fmt::format("{} ({}){}", device.value, run.lowered->mesh.name(device), alike > 1 ? fmt::format(" and {} alike", alike - 1) : "");
}

std::string axis_name(const Run& run, int axis) {
  return axis < 0 ? "sends" : run.lowered->mesh.axes()[static_cast<std::size_t>(axis)].name;
}

struct NamedPart {
  const char* name;
  const char* key;
  Picoseconds TimeParts::*part;
};
constexpr std::array<NamedPart, 12> named_parts{{{"compute", "compute_s", &TimeParts::compute},
                                                 {"copies to and from the host", "host_s", &TimeParts::host},
                                                 {"work slowed by shared HBM", "memory_s", &TimeParts::memory},
                                                 {"core share of communication", "core_share_s", &TimeParts::core_share},
                                                 {"launch", "launch_s", &TimeParts::launch},
                                                 {"copy of the own block", "own_block_s", &TimeParts::own_block},
                                                 {"per-message overhead", "per_message_s", &TimeParts::per_message},
                                                 {"hop latency", "latency_s", &TimeParts::latency},
                                                 {"link bandwidth", "bandwidth_s", &TimeParts::bandwidth},
                                                 {"shared links and HBM", "sharing_s", &TimeParts::sharing},
                                                 {"reduction", "reduction_s", &TimeParts::reduction},
                                                 {"waiting", "waiting_s", &TimeParts::waiting}}};

/// The largest part of a stretch.
std::string mostly(const TimeParts& parts) {
  const auto largest =
      std::max_element(named_parts.begin(), named_parts.end(), [&](const NamedPart& a, const NamedPart& b) { return parts.*a.part < parts.*b.part; });
  return fmt::format("{} {}", largest->name, time_text(parts.*largest->part));
}

std::string explanation_table(const Run& run, const Explanation& explanation) {
  const double makespan = seconds(run.metrics.makespan);
  std::string text = "\nwhy: " + explanation.sentence + "\n\n";

  std::vector<std::vector<std::string>> rows{{fmt::format("critical path ({} tasks)", explanation.steps.size()), "time", "part"}};
  const auto add = [&](const std::string& name, Picoseconds part) {
    if (part > Picoseconds{}) rows.push_back({name, time_text(part), percent(seconds(part) / makespan)});
  };
  for (const NamedPart& named : named_parts) {
    const bool of_links = named.part == &TimeParts::bandwidth || named.part == &TimeParts::sharing;
    if (!of_links) add(named.name, explanation.parts.*named.part);
    for (std::size_t a = 0; of_links && a < explanation.on_axis.size(); ++a)
      add(fmt::format("{}, {}", named.name, axis_name(run, a + 1 == explanation.on_axis.size() ? -1 : static_cast<int>(a))),
          explanation.on_axis[a].*named.part);
  }
  text += table(rows, 1) + "\n";

  rows = {{"what is on it", "axis", "from device", "to", "steps", "from", "until", "mostly"}};
  constexpr std::size_t shown_at_each_end = 10;
  const std::size_t count = explanation.stretches.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (count > 2 * shown_at_each_end + 1 && i == shown_at_each_end) {
      rows.push_back({fmt::format("... {} more ...", count - 2 * shown_at_each_end), "", "", "", "", "", "", ""});
      i = count - shown_at_each_end;
    }
    const PathStretch& stretch = explanation.stretches[i];
    rows.push_back({stretch.label, stretch.axis < 0 ? "-" : axis_name(run, stretch.axis), std::to_string(stretch.first.value),
                    std::to_string(stretch.last.value), std::to_string(stretch.steps), time_text(stretch.start), time_text(stretch.end),
                    mostly(stretch.parts)});
  }
  text += table(rows, 4) + "\n";

  rows = {{"1 % more of", "changes the time by"}};
  for (const Sensitivity& sensitivity : explanation.sensitivities)
    rows.push_back({sensitivity.parameter, fmt::format("{:+.3f} %", 100 * sensitivity.effect)});
  return text + table(rows, 1);
}

/// Worst, median and best.
std::vector<std::pair<std::string, const CableLoss*>> worst_median_best(const std::vector<CableLoss>& losses) {
  return {{"worst", &losses.front()}, {"median", &losses[losses.size() / 2]}, {"best", &losses.back()}};
}

const CableLoss* idle_of(const std::vector<CableLoss>& losses) {
  const auto found = std::ranges::find(losses, true, &CableLoss::idle);
  return found == losses.end() ? nullptr : &*found;
}

std::string losses_table(const Run& run, const std::vector<CableLoss>& losses) {
  std::vector<std::vector<std::string>> rows{{"one broken cable", "such as", "time", "more", "broken rings"}};
  for (const auto& [name, loss] : worst_median_best(losses))
    rows.push_back({fmt::format("{} of {} sorts", name, losses.size()), loss->name, time_text(loss->makespan_s),
                    fmt::format("{:+.1f} %", 100 * (loss->makespan_s / run.row.result.makespan_s - 1)), loss->rings});
  if (const CableLoss* idle = idle_of(losses); idle != nullptr)
    rows.push_back({fmt::format("no traffic: {} cables", idle->equivalent), idle->name, time_text(idle->makespan_s), "+0.0 %", ""});
  return table(rows, 2);
}

/// `##==......  40.0 %`: of the run, what is in flight along an axis, exposed and beside compute.
std::string axis_bar(const AxisMetrics& axis, Picoseconds makespan, bool coloured) {
  constexpr double cells = 20;
  const double run = std::max(seconds(makespan), 1e-12), part = seconds(axis.in_flight) / run;
  const auto shown = static_cast<std::size_t>(std::lround(cells * part)), exposed = std::min(shown, static_cast<std::size_t>(std::lround(cells * seconds(axis.exposed) / run)));
  const auto drawn = [&](std::size_t count, char mark, Colour colour) {
    const std::string text(count, mark);
    return coloured && count > 0 ? coloured_text(text, colour) : text;
  };
  return drawn(exposed, '#', colour_of_role("exposed")) + drawn(shown - exposed, '=', colour_of_role("hidden")) + std::string(static_cast<std::size_t>(cells) - shown, '.') +
         fmt::format("  {:>7}", percent(part));
}

/// The lines of a table with one more column, left-aligned.
std::string with_column(const std::string& rows, const std::vector<std::string>& column) {
  const std::vector<std::string> lines = split(rows, '\n');
  std::size_t widest = 0;
  for (const std::string& line : lines) widest = std::max(widest, width_of(line));
  std::string text;
  for (std::size_t l = 0; l < column.size(); ++l) text += left_aligned(lines[l], widest) + "  " + column[l] + "\n";
  return text;
}

std::string axes_table(const Run& run, TerminalStyle style) {
  std::vector<std::vector<std::string>> rows{{"axis", "transfers", "link traffic", "in flight", "exposed"}};
  for (const AxisMetrics& axis : run.metrics.axes)
    rows.push_back({axis_name(run, axis.axis), std::to_string(axis.transfers), bytes_text(axis.link_bytes), time_text(axis.in_flight),
                    time_text(axis.exposed)});
  if (!style.bars) return table(rows, 1);
  std::vector<std::string> bars{"of the run: # exposed, = beside compute"};
  for (const AxisMetrics& axis : run.metrics.axes) bars.push_back(axis_bar(axis, run.metrics.makespan, style.colours));
  return with_column(table(rows, 1), bars);
}

std::string devices_table(const Run& run, const std::vector<DeviceMetrics>& devices) {
  std::vector<std::vector<std::string>> rows{{"device", "compute", "exposed comm", "waiting", "sent", "received", "peak memory"}};
  for (const DeviceMetrics& d : devices)
    rows.push_back({device_name(run, d.device, d.devices), time_text(d.split.compute), time_text(d.split.exposed_communication), time_text(d.split.waiting),
                    to_text(d.sent), to_text(d.received), to_text(d.peak_memory)});
  return table(rows, 1);
}

std::string link_name(const Run& run, const LinkMetrics& link) {
  return link.memory_of ? fmt::format("HBM of device {}", link.memory_of->value) : run.system->topology->link_name(link.link);
}

std::string links_table(const Run& run, const std::vector<LinkMetrics>& links) {
  std::vector<std::vector<std::string>> rows{{"link", "bytes", "utilisation"}};
  for (const LinkMetrics& link : links)
    rows.push_back({link_name(run, link) + (link.links > 1 ? fmt::format(" and {} alike", link.links - 1) : ""),
                    bytes_text(link.bytes), percent(link.utilisation)});
  return table(rows, 1);
}

Json parts_json(const TimeParts& parts) {
  Json json = Json::object();
  for (const NamedPart& named : named_parts) json.set(named.key, seconds(parts.*named.part));
  return json;
}

Json explanation_json(const Run& run, const Explanation& explanation) {
  Json by_axis = Json::array(), path = Json::array(), sensitivities = Json::array();
  for (std::size_t a = 0; a < explanation.on_axis.size(); ++a) {
    const TimeParts& parts = explanation.on_axis[a];
    if (total(parts) == Picoseconds{}) continue;
    Json entry{{"axis", axis_name(run, a + 1 == explanation.on_axis.size() ? -1 : static_cast<int>(a))}};
    entry.update(parts_json(parts));
    by_axis.push_back(std::move(entry));
  }
  for (const PathStep& step : explanation.steps) {
    Json entry{{"task", run.model.task(step.program, step.task.index()).label}, {"device", step.device.value}};
    entry.set("receiver", step.receiver == step.device ? Json() : Json(step.receiver.value));
    entry.set("axis", step.axis < 0 ? Json() : Json(axis_name(run, step.axis)));
    entry.set("start_s", seconds(step.start));
    entry.set("end_s", seconds(step.end));
    for (const NamedPart& named : named_parts)
      if (step.parts.*named.part > Picoseconds{}) entry.set(named.key, seconds(step.parts.*named.part));
    path.push_back(std::move(entry));
  }
  for (const Sensitivity& sensitivity : explanation.sensitivities)
    sensitivities.push_back(Json{{"parameter", sensitivity.parameter}, {"change", 0.01}, {"makespan_change", sensitivity.effect}});
  return Json{{"sentence", explanation.sentence},
              {"split", parts_json(explanation.parts)},
              {"split_by_axis", by_axis},
              {"sensitivities", sensitivities},
              {"critical_path", path}};
}

Json devices_json(const Run& run, const std::vector<DeviceMetrics>& devices) {
  Json json = Json::array();
  for (const DeviceMetrics& d : devices)
    json.push_back(Json{{"device", d.device.value},
                        {"name", run.lowered->mesh.name(d.device)},
                        {"devices", d.devices},
                        {"compute_s", seconds(d.split.compute)},
                        {"exposed_communication_s", seconds(d.split.exposed_communication)},
                        {"waiting_s", seconds(d.split.waiting)},
                        {"sent_bytes", d.sent.count()},
                        {"received_bytes", d.received.count()},
                        {"peak_memory_bytes", d.peak_memory.count()}});
  return json;
}

Json links_json(const Run& run, const std::vector<LinkMetrics>& links) {
  Json json = Json::array();
  for (const LinkMetrics& link : links)
    json.push_back(
        Json{{"link", link_name(run, link)}, {"links", link.links}, {"bytes", link.bytes}, {"utilisation", link.utilisation}});
  return json;
}

}  // namespace

namespace {

/// How the calls of a schedule were simulated; empty: it has none, or they were asked to be inlined.
std::string calls_text(const CallSummary& calls, double time) {
  const std::string beside = calls.beside == 0 ? "" : fmt::format("; {} beside transfers that draw on their memory, {}: {}", calls.beside, calls.beside_at_most_s ? fmt::format("at most {} of the time and not counted", percent(*calls.beside_at_most_s / time)) : "which is not counted", calls.why_beside);
  if (calls.inlined == 0) return calls.played == 0 ? std::string{} : fmt::format("{}, each played as one task{}", calls.played, beside);
  if (calls.played == 0) return "inlined: " + calls.why_inlined;
  return fmt::format("{} played as one task each, {} inlined, the first as {}{}", calls.played, calls.inlined, calls.why_inlined, beside);
}

std::string orders_text(const HloOrderTimes& orders) {
  return fmt::format("text order, collectives block: {}; overlap: {}{}", time_text(orders.text_s), time_text(orders.overlap_s),
                     orders.overlap_s > orders.text_s ? ". Slower: the order of its core work waits for what it could have begun earlier" : "");
}

/// "4.187 ms: 98.4 % of what any algorithm could reach"
std::string bound_text(const CollectiveSummary& asked, double time) {
  const auto share = share_of_bound(asked, Seconds{time});
  if (!share) return "none: " + asked.no_bound;
  return fmt::format("{}: {} of what any algorithm could reach over these links", time_text(asked.bound->count()), percent(*share));
}

Json collective_json(const CollectiveSummary& asked, Seconds time_text) {
  const auto bandwidths = bandwidths_of(asked, time_text);
  const auto share = share_of_bound(asked, time_text);
  return Json{{"collective", name_of(asked.kind)},
              {"axis", asked.axes},
              {"bytes", asked.input.count()},
              {"collective_devices", asked.devices},
              {"algbw_bytes_per_s", bandwidths ? Json(bandwidths->algorithm.count()) : Json()},
              {"busbw_bytes_per_s", bandwidths ? Json(bandwidths->bus.count()) : Json()},
              {"cut_bound_s", asked.bound ? Json(asked.bound->count()) : Json()},
              {"share_of_cut_bound", share ? Json(*share) : Json()}};
}

}  // namespace

Json row_json(const Row& row) {
  const Result& r = row.result;
  Json mesh = Json::object();
  for (const auto& [name, size] : r.mesh) mesh.set(name, size);
  Json json{{"engine", r.engine}, {"machine", r.machine},   {"slice", r.slice},          {"hypothetical", r.hypothetical},
            {"mesh", mesh},       {"schedule", r.schedule}, {"algorithm", row.problem.algorithm}};
  json.set("dataflow", or_null(row.problem.dataflow));
  json.set("slice_count", or_null(row.problem.slice_count));
  json.set("topology", or_null(row.changes.topology));
  if (row.mesh_order != "row-major" && !row.mesh_order.empty() && row.problem.hlo == nullptr) json.set("mesh_order", Json{{"order", row.mesh_order}, {"assumed", false}});
  if (row.changes.slices > 1) json.set("pods", row.changes.slices);
  if (!row.changes.broken.empty()) json.set("fail", row.changes.broken);
  if (!row.changes.slowed.empty()) json.set("degrade", row.changes.slowed);
  if (row.changes.slow_devices > 0) json.set("slow_devices", row.changes.slow_devices);
  if (row.problem.tokens) json.update(tokens_json(*row.problem.tokens));
  Json varied = Json::object(), replicated = Json::array(), layers = Json::array();
  for (const auto& [path, value] : row.varied) varied.set(path, value);
  if (!row.varied.empty()) json.set("vary", std::move(varied));
  for (const Replicated& tensor : row.problem.replicated)
    replicated.push_back(Json{{"tensor", tensor.tensor},
                              {"when", tensor.role == Role::input ? "before" : "after"},
                              {"copies", tensor.copies},
                              {"gathered", tensor.gathered}});
  if (!row.problem.replicated.empty()) json.set("replicated", std::move(replicated));
  if (row.problem.program) json.update(program_json(*row.problem.program));
  if (row.problem.collective) json.update(collective_json(*row.problem.collective, Seconds{r.makespan_s}));
  for (const auto& [name, choice] : row.problem.layers)
    layers.push_back(Json{{"name", name},
                          {"algorithm", choice.algorithm},
                          {"dataflow", name_of(choice.dataflow)},
                          {"transposed", choice.transposed},
                          {"slice_count", choice.slice_count > 0 ? Json(choice.slice_count) : Json()}});
  if (!row.problem.layers.empty()) json.set("layers", std::move(layers));
  if (row.problem.blocks > 1) json.set("blocks", row.problem.blocks);
  if (row.forward_s) json.set("forward_s", *row.forward_s);
  if (row.backward_s) json.set("backward_s", *row.backward_s);
  json.update(Json{{"devices", r.devices},
                   {"idle_devices", row.changes.idle_devices},
                   {"device_classes", r.device_classes},
                   {"makespan_s", r.makespan_s},
                   {"compute_s", r.compute_s},
                   {"exposed_communication_s", r.exposed_communication_s},
                   {"waiting_s", r.waiting_s},
                   {"flops", r.flops}});
  json.set("mfu", or_null(r.mfu));
  json.update(Json{{"link_bytes", r.link_bytes},
                   {"peak_memory_bytes", r.peak_memory_bytes},
                   {"hbm_bytes", row.hbm ? Json(row.hbm->count()) : Json()},
                   {"over_hbm", row.over_hbm},
                   {"tasks", r.tasks},
                   {"events", r.events}});
  if (!r.pass.empty()) json.set("pass", r.pass);
  json.update(Json{{"wall_s", r.wall_s},
                   {"build_s", r.build_s},
                   {"padding", row.problem.padding}});
  if (row.training != nullptr) json.update(step_json(row));
  if (row.problem.hlo != nullptr) {
    const HloRunSummary& hlo = *row.problem.hlo;
    Json opaque = Json::array();
    for (const HloOpaque& unknown : hlo.opaque) opaque.push_back(Json{{"instruction", unknown.instruction}, {"target", unknown.target}, {"bytes", unknown.bytes.count()}});
    json.update(Json{{"module", hlo.module}, {"instructions", hlo.instructions}, {"is_scheduled", hlo.is_scheduled}, {"opaque", opaque}, {"assumed", hlo.notes}, {"mesh_order", Json{{"order", hlo.mesh_order}, {"assumed", hlo.mesh_order_assumed}}}});
    Json stated = Json::array();
    for (const HloStatedAlgorithm& one : hlo.stated) stated.push_back(Json{{"strategy", one.strategy}, {"algorithm", or_null(one.algorithm)}, {"collectives", one.collectives}});
    json.set("stated_algorithms", std::move(stated));
    json.set("coverage", coverage_json(hlo.trust.coverage));
    json.set("other_estimates", other_estimates_json(hlo.trust.other_estimates));
    if (hlo.memory) json.set("module_memory_bytes", module_memory_json(*hlo.memory));
  }
  if (row.calls.played + row.calls.inlined > 0)
    json.set("calls", Json{{"played", row.calls.played}, {"inlined", row.calls.inlined}, {"why_inlined", or_null(row.calls.why_inlined)}, {"beside", row.calls.beside}, {"beside_at_most_s", or_null(row.calls.beside_at_most_s)}, {"why_beside", or_null(row.calls.why_beside)}});
  json.set("trust", trust_json(r.trust));
  return json;
}

Json trust_json(const RunTrust& trust) {
  Json json{{"level", trust.level}, {"dataset", or_null(trust.dataset)}, {"error", or_null(trust.error)}};
  if (trust.fitted_error) json.set("fitted_error", *trust.fitted_error);
  if (trust.beyond.empty()) return json;
  json.set("p95_error", or_null(trust.p95_error));
  json.set("rung", or_null(trust.tier));
  json.set("beyond", trust.beyond);
  return json;
}

Json tokens_json(const TokenCount& tokens) {
  return Json{{"batch", tokens.batch}, {"sequence", tokens.sequence}, {"tokens", tokens.tokens()}};
}

std::string result_json(const Run& run, const Details& details) {
  Json json = row_json(run.row);
  Json axes = Json::array();
  for (const AxisMetrics& axis : run.metrics.axes)
    axes.push_back(Json{{"axis", axis_name(run, axis.axis)},
                        {"transfers", axis.transfers},
                        {"link_bytes", axis.link_bytes},
                        {"in_flight_s", seconds(axis.in_flight)},
                        {"exposed_s", seconds(axis.exposed)}});
  json.set("axes", std::move(axes));
  const std::vector<OperationMetrics> operations = measure_operations(run.model, run.timeline, run.metrics.busiest);
  json.set("collectives", ledger_json(run, operations));
  json.set("operations", operations_json(operations));
  if (details.orders) json.set("orders", Json{{"text_s", details.orders->text_s}, {"overlap_s", details.orders->overlap_s}});
  if (details.healthy_s) {
    json.set("healthy", Json{{"makespan_s", *details.healthy_s}});
    json.set("rings", or_null(run.row.rings));
  }
  if (!details.losses.empty()) {
    Json losses = Json::object();
    for (const auto& [name, loss] : worst_median_best(details.losses))
      losses.set(name, Json{{"cable", loss->name}, {"makespan_s", loss->makespan_s}, {"rings", loss->rings}});
    if (const CableLoss* idle = idle_of(details.losses); idle != nullptr)
      losses.set("no_traffic", Json{{"cables", idle->equivalent}, {"cable", idle->name}, {"makespan_s", idle->makespan_s}});
    json.set("fail_any", std::move(losses));
  }
  if (!details.notes.empty()) json.set("notes", details.notes);
  if (!details.devices.empty()) json.set("per_device", devices_json(run, details.devices));
  if (!details.links.empty()) json.set("per_link", links_json(run, details.links));
  if (details.explanation) json.set("explanation", explanation_json(run, *details.explanation));
  if (details.advice) json.set("advice", advice_json(*details.advice));
  return json.dump(2) + "\n";
}

namespace {

std::string module_time_text(double makespan_s, const HloCoverage& coverage) {
  const std::string why = why_at_least(coverage);
  std::string reasons = why;
  for (const std::string& more : {estimated_text(coverage), doubt_text(coverage)})
    if (!more.empty()) reasons += (reasons.empty() ? "" : "; ") + more;
  return fmt::format("{}{}{}", why.empty() ? "" : "at least ", time_text(makespan_s), reasons.empty() ? "" : "  (" + reasons + ")");
}

}  // namespace

std::string result_table(const Run& run, const Details& details, TerminalStyle style) {
  const Row& row = run.row;
  const Result& r = row.result;
  const std::string classes = r.device_classes < r.devices         ? fmt::format(", {} simulated: the others behave alike", r.device_classes)
                              : r.engine == "des" && r.devices > 1 ? ", each simulated"
                                                                   : "";
  std::vector<std::vector<std::string>> rows{
      {"schedule", r.schedule},
      {"algorithm", row.problem.algorithm},
  };
  if (row.problem.tokens) rows.push_back({"batch", tokens_text(*row.problem.tokens)});
  if (row.training != nullptr)
    for (auto& line : step_rows(row)) rows.push_back(std::move(line));
  if (row.problem.hlo != nullptr) {
    const HloRunSummary& hlo = *row.problem.hlo;
    rows.push_back({"module", fmt::format("{} ({} instructions, {})", hlo.module, hlo.instructions, hlo.is_scheduled ? "scheduled" : "not scheduled")});
    for (const HloOpaque& unknown : hlo.opaque) rows.push_back({"  opaque", fmt::format("{}, {}: {} and unknown arithmetic", unknown.instruction, unknown.target, to_text(unknown.bytes))});
    rows.push_back({"  costs", coverage_text(hlo.trust.coverage)});
    for (const HloStatedAlgorithm& stated : hlo.stated)
      rows.push_back({"  compiled as", fmt::format("{} x {}, run {}", stated.strategy, stated.collectives, stated.algorithm.empty() ? "by dimension" : "as " + stated.algorithm)});
    if (!hlo.trust.other_estimates.empty()) rows.push_back({"  in doubt", other_estimates_text(hlo.trust.other_estimates)});
    for (const std::string& assumed : hlo.notes) rows.push_back({"  assumed", assumed});
    if (hlo.memory) rows.push_back({"  memory", module_memory_text(*hlo.memory, row.hbm)});
  }
  for (const auto& [name, choice] : row.problem.layers) rows.push_back({"  " + name, choice.algorithm + " " + choice_text(choice)});
  if (any_transposed(row.problem.layers)) rows.push_back({"  transposed", std::string{transposed_meaning}});
  for (auto& line : std::vector<std::vector<std::string>>{
           {"machine", fmt::format("{}, slice {}, mesh {} ({} devices{})", r.machine, slice_and_changes(row), mesh_text(r), r.devices, classes)},
           {"idle devices", row.changes.idle_devices == 0 ? "" : fmt::format("{} of {}", row.changes.idle_devices, r.devices + row.changes.idle_devices)},
           {"engine", r.engine == "analytic" ? r.engine + " (as if no two messages shared a link: no run is faster)" : r.engine},
           {"time", row.problem.hlo != nullptr ? module_time_text(r.makespan_s, row.problem.hlo->trust.coverage) : time_text(r.makespan_s)},
           {"  both orders", details.orders ? orders_text(*details.orders) : ""},
           {"  compute",
            fmt::format("{}  ({}: the core of the busiest device)", time_text(r.compute_s), percent(r.makespan_s > 0 ? r.compute_s / r.makespan_s : 0))},
           {"  exposed communication", time_text(r.exposed_communication_s)},
           {"  waiting", time_text(r.waiting_s)}})
    if (!line.back().empty()) rows.push_back(std::move(line));
  if (row.problem.collective)
    if (const auto bandwidths = bandwidths_of(*row.problem.collective, Seconds{r.makespan_s}))
      rows.push_back({"bandwidth", fmt::format("algbw {}, busbw {}  (as nccl-tests defines them)", to_text(bandwidths->algorithm),
                                               to_text(bandwidths->bus))});
  if (row.problem.collective) rows.push_back({"cut bound", bound_text(*row.problem.collective, r.makespan_s)});
  if (r.mfu && row.training == nullptr) rows.push_back({"MFU", fmt::format("{}  ({}{})", percent(*r.mfu), to_text(Flops{r.flops}),
                                                                                     row.problem.hlo != nullptr ? ": all that the module computes, attention and recomputation too" : "")});
  if (details.healthy_s)
    rows.push_back({"healthy", fmt::format("{}  ({:+.1f} % as it is{})", time_text(*details.healthy_s), 100 * (r.makespan_s / *details.healthy_s - 1),
                                           row.rings.empty() ? "" : "; broken rings: " + row.rings)});
  rows.push_back({"link traffic", bytes_text(r.link_bytes) + " (payload x hops)"});
  rows.push_back({"peak memory", to_text(Bytes{r.peak_memory_bytes}) + " per device" + (row.over_hbm ? ": more than the device has" : "")});
  rows.push_back({"task instances", std::to_string(r.tasks)});
  if (const std::string calls = calls_text(row.calls, row.result.makespan_s); !calls.empty()) rows.push_back({"calls", calls});
  if (row.problem.program)
    rows.push_back({"received", fmt::format("{} B per device in {} collectives; contains all-gather: {}", row.problem.program->cost.received.count(), row.problem.program->cost.collectives,
                                            row.problem.program->contains_all_gather ? "yes" : "no")});
  if (!row.problem.replicated.empty())
    rows.push_back({"replicated", replicated_text(row) + "  (on several devices: before it starts, or when it is done)"});
  if (row.problem.padding > 0) rows.push_back({"padding", percent(row.problem.padding) + " of the flops are padding"});
  std::string_view heading = "trust";
  for (const std::string& line : lines_of(r.trust)) rows.push_back({std::string{std::exchange(heading, "")}, line});
  rows.push_back({"simulated in", fmt::format("{} (schedule built in {})", time_text(r.wall_s), time_text(r.build_s))});
  std::string text = table(rows, 2);
  if (row.problem.program) text += "\n" + program_table(*row.problem.program);
  if (row.training != nullptr) text += "\n" + step_tables(row);
  for (const std::string& note : details.notes) text += "\n" + wrapped("note: " + note) + "\n";
  if (!details.losses.empty()) text += "\n" + losses_table(run, details.losses);
  if (!row.problem.collective)
    if (const std::string ledger = ledger_table(run); !ledger.empty()) text += "\n" + ledger;
  if (details.advice) text += "\n" + advice_table(*details.advice);
  if (!run.metrics.axes.empty()) text += "\n" + axes_table(run, style);
  if (!details.devices.empty()) text += "\n" + devices_table(run, details.devices);
  if (!details.links.empty()) text += "\n" + links_table(run, details.links);
  if (details.explanation) text += explanation_table(run, *details.explanation);
  return text;
}

}  // namespace podsim
