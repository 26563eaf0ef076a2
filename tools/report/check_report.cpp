#include "tools/report/check_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/schedule/text.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

std::string yes(bool value) { return value ? "yes" : "NO"; }

/// With what the answer leaves out.
std::string ok_text(const CheckReport& report, std::size_t not_checked) {
  if (report.not_proven) return "not proven";
  if (!report.ok || not_checked == 0) return yes(report.ok);
  return not_checked == 1 ? "yes, but for a custom-call that was not checked" : fmt::format("yes, but for {} custom-calls that were not checked", not_checked);
}

std::string_view name_of(EdgePurpose purpose) {
  switch (purpose) {
    case EdgePurpose::implied: return "implied by other edges";
    case EdgePurpose::ordering: return "orders a race";
    case EdgePurpose::timing: return "benign: timing only";
  }
  return "";
}

/// A float32 in the fewest digits that read back as the same one.
Json json_of(float value) {
  if (!std::isfinite(value)) return {};
  const std::string digits = fmt::format("{}", value);
  double number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

Json json_of(const CheckedOutput& output) {
  Json extents = Json::array(), values = Json::array();
  for (const std::int64_t extent : output.extents) extents.push_back(extent);
  for (std::size_t i = 0; i < output.values.size(); ++i) {
    if (output.dtype == DType::c64) {
      Json parts = Json::array();
      parts.push_back(json_of(static_cast<float>(output.values[i])));
      parts.push_back(json_of(static_cast<float>(output.values[++i])));
      values.push_back(std::move(parts));
    } else if (output.dtype == DType::s32 || output.dtype == DType::s8) {
      values.push_back(static_cast<std::int64_t>(output.values[i]));
    } else {
      values.push_back(json_of(static_cast<float>(output.values[i])));
    }
  }
  return Json{{"name", output.name}, {"extents", std::move(extents)}, {"values", std::move(values)}};
}

/// As numpy writes them: 1+2j.
std::string text_of(const CheckedOutput& output) {
  std::string text;
  for (std::size_t i = 0; i < output.values.size(); ++i) {
    if (i > 0) text += " ";
    text += fmt::format("{}", static_cast<float>(output.values[i]));
    if (output.dtype == DType::c64) text += fmt::format("{:+}j", static_cast<float>(output.values[++i]));
  }
  return text;
}

}  // namespace

std::optional<TrainingCheck> training_check(const CheckReport& report, const TrainingOutputs& outputs) {
  TrainingCheck check;
  for (const OutputError& output : report.errors) {
    const auto known = outputs.find(output.name);
    if (known == outputs.end()) continue;
    switch (known->second) {
      case TrainingOutput::loss: check.losses.push_back(output.found), check.reference.push_back(output.expected); break;
      case TrainingOutput::gradient: check.max_gradient_error = std::max(check.max_gradient_error, output.max_rel_error); break;
      case TrainingOutput::parameter: check.max_parameter_error = std::max(check.max_parameter_error, output.max_rel_error); break;
    }
  }
  if (check.losses.empty()) return std::nullopt;
  return check;
}

std::string check_table(const CheckReport& report, const std::optional<TrainingCheck>& training, const std::vector<std::string>& not_checked) {
  std::vector<std::vector<std::string>> rows{
      {"devices", std::to_string(report.devices)},
      {"matched", yes(report.matched)},
      {"deadlock-free", yes(report.deadlock_free)},
      {"race-free", yes(report.race_free)},
      {"orders tried", std::to_string(report.orders_tried)},
      {"compared with", report.compared},
  };
  if (report.compared_something()) {
    const std::string data{name_of(report.data)};
    const std::string_view of_what = report.is_residual ? "as relative residual" : "of the largest value";
    if (report.inexact.empty())
      rows.push_back({"bit-equal on " + data, yes(report.bit_equal)});
    else if (report.not_proven)
      rows.push_back({"right on " + report.proven_on, fmt::format("not proven, all orders bit-equal (roundings alone may make {:.3g} {}): {}", report.proof_tolerance, of_what, report.inexact)});
    else
      rows.push_back({"right on " + report.proven_on, fmt::format("{}, {:.3g} {} (allowed {:.3g}): {}",
                                                      report.bit_equal ? "yes, all orders bit-equal" : "NO", report.proof_rel_error, of_what, report.proof_tolerance, report.inexact)});
    const std::string error = fmt::format("{:.3g} absolute, {:.3g} {}", report.max_abs_error, report.max_rel_error, of_what);
    rows.push_back({"largest error on " + (report.data == InputData::random ? "uniform data" : data),
                    report.tolerance < 1 ? fmt::format("{} (allowed {:.3g})", error, report.tolerance)
                                         : fmt::format("{} (roundings alone may make {:.3g}{})", error, report.tolerance, report.not_proven ? "" : ": the proof is in float32")});
  }
  if (training) {
    for (std::size_t s = 0; s < training->losses.size(); ++s)
      rows.push_back({fmt::format("loss of step {}", s + 1), fmt::format("{:.7g}  (one device in float64: {:.7g})", training->losses[s], training->reference[s])});
    rows.push_back({"largest error of gradients", fmt::format("{:.3g} of the largest of each", training->max_gradient_error)});
    rows.push_back({"largest error of parameters", fmt::format("{:.3g} after the last step", training->max_parameter_error)});
  }
  for (const std::string& call : not_checked) rows.push_back({"not checked", call});
  rows.push_back({"ok", ok_text(report, not_checked.size())});
  for (const CheckedOutput& output : report.outputs)
    rows.push_back({output.name + fmt::format("[{}]", fmt::join(output.extents, ",")), text_of(output)});
  std::string text = table(rows, 2);
  for (const Diagnostic& problem : report.problems) text += to_text(problem) + "\n";
  return text;
}

Expected<std::vector<NamedEdge>> named_edges(const Schedule& lowered, Cancellation stop) {
  const auto audits = audit_edges(lowered, stop);
  if (!audits) return audits.error();
  std::vector<NamedEdge> named;
  for (const EdgeAudit& audit : *audits) {
    const Program& program = lowered.programs[audit.program];
    named.push_back({task_name(program, program.tasks[audit.task.index()].after[audit.edge].task), task_name(program, audit.task),
                     std::string{name_of(audit.purpose)}, audit.race.message});
  }
  return named;
}

std::string edges_table(const std::vector<NamedEdge>& edges) {
  std::vector<std::vector<std::string>> rows{{"edge from", "to", "purpose", "without it"}};
  for (const NamedEdge& edge : edges) rows.push_back({edge.from, edge.to, edge.purpose, edge.race.empty() ? "-" : edge.race});
  return table(rows, 4);
}

std::string check_json(const CheckReport& report, const std::vector<NamedEdge>* edges, const std::optional<TrainingCheck>& training, const std::optional<Bytes>& received, const std::vector<std::string>& not_checked) {
  const auto of_comparison = [&](auto value) { return report.compared_something() ? Json(value) : Json(); };
  Json json{{"compared", report.compared},
            {"devices", report.devices},
            {"orders_tried", report.orders_tried},
            {"bit_equal", of_comparison(report.bit_equal)},
            {"max_abs_error", of_comparison(report.max_abs_error)},
            {"max_rel_error", of_comparison(report.max_rel_error)},
            {"tolerance", of_comparison(report.tolerance)},
            {"matched", report.matched},
            {"deadlock_free", report.deadlock_free},
            {"race_free", report.race_free},
            {"ok", report.ok}};
  if (report.not_proven) json.set("proven", false);
  if (received) json.set("received_bytes", received->count());
  if (!not_checked.empty()) json.set("not_checked", not_checked);
  if (report.compared_something() && !report.inexact.empty())
    json.update({{"inexact", report.inexact}, {"proof_data", report.proven_on}, {"proof_rel_error", report.proof_rel_error}, {"proof_tolerance", report.proof_tolerance}});
  if (training) {
    Json losses = Json::array(), reference = Json::array();
    for (const double loss : training->losses) losses.push_back(loss);
    for (const double loss : training->reference) reference.push_back(loss);
    json.update({{"steps", static_cast<std::int64_t>(training->losses.size())},
                 {"loss", training->losses.back()},
                 {"loss_reference", training->reference.back()},
                 {"losses", std::move(losses)},
                 {"losses_reference", std::move(reference)},
                 {"max_gradient_error", training->max_gradient_error},
                 {"max_parameter_error", training->max_parameter_error}});
  }
  if (report.data != InputData::random) {
    json.set("data", name_of(report.data));
    Json outputs = Json::array();
    for (const CheckedOutput& output : report.outputs) outputs.push_back(json_of(output));
    json.set("outputs", std::move(outputs));
  }
  Json problems = Json::array(), edges_json = Json::array();
  for (const Diagnostic& problem : report.problems) problems.push_back(to_text(problem));
  json.set("problems", std::move(problems));
  if (edges == nullptr || edges->empty()) return json.dump(2) + "\n";
  for (const NamedEdge& edge : *edges)
    edges_json.push_back(Json{{"from", edge.from}, {"to", edge.to}, {"purpose", edge.purpose}, {"race", edge.race}});
  json.set("edges", std::move(edges_json));
  return json.dump(2) + "\n";
}

}  // namespace podsim
