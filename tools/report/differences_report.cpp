#include "tools/report/differences_report.hpp"

#include <fmt/format.h>

#include <vector>

#include "sim/base/units.hpp"
#include "tools/report/hlo_coverage_report.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

std::string product_text(const ModuleComparison& comparison) {
  const ModuleProduct& product = comparison.product;
  const GemmProblem& of = product.problem;
  std::string text = fmt::format("m={}, n={}, k={}, {}", of.m, of.n, of.k, name_of(of.dtype));
  if (comparison.product_given) text += ", as given";
  if (!product.left.empty()) text += fmt::format(": {} = {} . {}", product.out, product.left, product.right);
  return text;
}

std::vector<std::string> figures(const std::string& name, const Result& result) {
  return {name, time_text(result.makespan_s), time_text(result.compute_s), time_text(result.exposed_communication_s), bytes_text(result.link_bytes)};
}

}  // namespace

std::string differences_table(const ModuleComparison& comparison) {
  const Result& result = comparison.result;
  std::string text = fmt::format("product  {}\nmachine  {} {}, mesh", product_text(comparison), result.machine, result.slice);
  for (std::size_t a = 0; a < result.mesh.size(); ++a)
    text += fmt::format("{}{}={}", a == 0 ? " " : ",", result.mesh[a].first, result.mesh[a].second);
  text += "\n\n";
  std::vector<std::vector<std::string>> rows{{"schedule", "time", "compute", "exposed comm", "link traffic"}, figures(comparison.module, result)};
  for (const ComparedSchedule& schedule : comparison.schedules) rows.push_back(figures(schedule.name, schedule.row.result));
  text += table(rows, 1);
  if (const std::string why = why_at_least(comparison.trust.coverage); !why.empty()) text += fmt::format("{} takes at least this: {}\n", comparison.module, why);
  for (const ComparedSchedule& schedule : comparison.schedules) {
    text += fmt::format("\nbeside {}\n", schedule.name);
    std::vector<std::vector<std::string>> cells{{"difference", "instruction", "takes", "costs"}};
    for (const ModuleDifference& one : schedule.differences)
      cells.push_back(
          {std::string{name_of(one.kind)}, one.instruction, time_text(to_seconds(one.time).count()), time_text(to_seconds(one.gain).count())});
    if (cells.size() > 1) text += table(cells, 2);
    for (const ModuleDifference& one : schedule.differences) text += wrapped("* " + one.sentence) + "\n";
    if (schedule.left_out > 0)
      text += fmt::format("left out: {} that cost{} less than {:.1f} % of the module's time\n", schedule.left_out, schedule.left_out == 1 ? "s" : "",
                          100 * least_gain);
    text += "\n" + wrapped(schedule.sentence) + "\n";
  }
  for (const Skipped& entry : comparison.skipped) text += fmt::format("\nleft out: {}: {}\n", entry.what, to_text(entry.why));
  for (const std::string& note : comparison.notes) text += "\n" + wrapped("note: " + note) + "\n";
  return text;
}

std::string differences_json(const ModuleComparison& comparison) {
  const GemmProblem& of = comparison.product.problem;
  Json differences = Json::array(), schedules = Json::array(), skipped = Json::array();
  for (const ComparedSchedule& schedule : comparison.schedules) {
    for (const ModuleDifference& one : schedule.differences) {
      Json entry{{"kind", name_of(one.kind)},
                 {"instruction", one.instruction},
                 {"time_s", to_seconds(one.time).count()},
                 {"gain_s", to_seconds(one.gain).count()},
                 {"sentence", one.sentence}};
      if (comparison.schedules.size() > 1) entry.set("schedule", schedule.name);
      differences.push_back(std::move(entry));
    }
    schedules.push_back(Json{{"schedule", schedule.name},
                             {"makespan_s", schedule.row.result.makespan_s},
                             {"link_bytes", schedule.row.result.link_bytes},
                             {"without_differences_s", schedule.without ? Json(to_seconds(*schedule.without).count()) : Json()},
                             {"left_out", schedule.left_out},
                             {"sentence", schedule.sentence}});
  }
  for (const Skipped& entry : comparison.skipped) skipped.push_back(Json{{"what", entry.what}, {"reason", to_text(entry.why)}});
  const Json all{{"module", comparison.module},
                 {"product", Json{{"m", of.m}, {"n", of.n}, {"k", of.k}, {"dtype", name_of(of.dtype)}, {"given", comparison.product_given}}},
                 {"makespan_s", comparison.result.makespan_s},
                 {"coverage", coverage_json(comparison.trust.coverage)},
                 {"link_bytes", comparison.result.link_bytes},
                 {"schedules", schedules},
                 {"differences", differences},
                 {"skipped", skipped},
                 {"notes", comparison.notes}};
  return all.dump(2) + "\n";
}

}  // namespace podsim
