#include "tools/report/validation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/csv.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/units.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/json.hpp"
#include "tools/report/prediction_plot.hpp"
#include "tools/report/product_classes.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_drawn = 500;  // rows of a case in a plot

const std::vector<Tier> tiers{Tier::other_sizes, Tier::other_products, Tier::other_operation, Tier::other_scale, Tier::composite};

std::vector<double> errors_of(const std::vector<DatasetValidation>& validations, Tier tier) {
  std::vector<double> errors;
  for (const DatasetValidation& validation : validations) {
    const std::vector<double> more = counted_errors(validation, tier);
    errors.insert(errors.end(), more.begin(), more.end());
  }
  return errors;
}

/// Of the tiers that go beyond what was fitted.
ErrorSummary headline(const std::vector<DatasetValidation>& validations) {
  std::vector<double> errors;
  for (const Tier tier : {Tier::other_operation, Tier::other_scale, Tier::composite}) {
    const std::vector<double> more = errors_of(validations, tier);
    errors.insert(errors.end(), more.begin(), more.end());
  }
  return summary_of(errors);
}

std::string bound_text(const ValidatedCase& found) {
  if (!found.bound) return "none";
  if (std::isinf(found.bound->p95)) return percent(found.bound->median);
  return fmt::format("{} / {}", percent(found.bound->median), percent(found.bound->p95));
}

std::string summary_text(const ErrorSummary& summary) {
  return fmt::format("median {}, 95th percentile {} ({} rows)", percent(summary.median), percent(summary.p95), summary.rows);
}

/// Removes the column `at` if nothing stands in it below the heading; says whether it did.
bool without_empty(std::vector<std::vector<std::string>>& rows, std::size_t at) {
  if (!std::all_of(rows.begin() + 1, rows.end(), [at](const auto& row) { return row[at].empty(); })) return false;
  for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

/// A table without its column `at`, if that is empty.
std::string table_without_empty(std::vector<std::vector<std::string>> rows, std::size_t at, std::size_t left) {
  if (without_empty(rows, at) && at < left) --left;
  return table(rows, left);
}

std::string rung_text(const ValidatedCase& found) { return found.fitted == 0 ? "as shipped" : std::string{name_of(found.tier)}; }

std::string both_text(double median, double p95) { return fmt::format("{} / {}", percent(median), percent(p95)); }

/// Of each size class.
void add_sizes(const std::array<ErrorSummary, size_class_count>& by_size, std::vector<std::string>& line) {
  for (const ErrorSummary& size : by_size) line.push_back(size.rows == 0 ? "" : both_text(size.median, size.p95));
}

bool has_sizes(const ValidatedCase& found) {
  return std::any_of(found.by_size.begin(), found.by_size.end(), [](const ErrorSummary& size) { return size.rows > 0; });
}

std::string bar_text(const Pool& pool) {
  std::string text;
  if (pool.bar) text = pool.bar->p95 > 100 ? percent(pool.bar->median) : both_text(pool.bar->median, pool.bar->p95);
  if (pool.bar_large) text += fmt::format("{}{} above 64 MiB", text.empty() ? "" : ", ", percent(*pool.bar_large));
  return text;
}

/// Median and 95th percentile of each size class, beside how far other sources of the same machine differ.
std::string size_table(const std::vector<DatasetValidation>& validations) {
  std::vector<std::vector<std::string>> lines{{"dataset", "case", "below 1 MiB", "to 64 MiB", "above 64 MiB", "all"}};
  for (const DatasetValidation& validation : validations) {
    for (const ValidatedCase& found : validation.cases) {
      if (!has_sizes(found)) continue;
      std::vector<std::string> line{validation.dataset, found.hypothesis.empty() ? found.name : found.name + ", " + found.hypothesis};
      add_sizes(found.by_size, line);
      line.push_back(both_text(found.errors.median, found.errors.p95));
      lines.push_back(std::move(line));
    }
    for (const NoiseFloor& noise : validation.noise) {
      std::vector<std::string> line{validation.dataset, "noise floor: against " + noise.other};
      for (const NoiseFloor::Range& range : noise.by_size)
        line.push_back(range.rows == 0 ? "" : fmt::format("{:.0f} to {:.0f} %", 100 * range.least, 100 * range.most));
      line.emplace_back();
      lines.push_back(std::move(line));
    }
  }
  return lines.size() == 1 ? "" : table(lines, 2);
}

/// The rows that a pool misses most.
std::string worst_of(const PooledErrors& pool) {
  constexpr std::size_t shown = 3;
  std::vector<std::pair<std::string, const ValidatedRow*>> rows = pool.rows;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return std::abs(a.second->error) > std::abs(b.second->error); });
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, rows.size()); ++i) {
    const auto& [dataset, row] = rows[i];
    text += fmt::format("    {}: {}: {} measured, {} predicted, {}\n", dataset, observation_text(row->observation), to_text(row->observation.time),
                        to_text(row->predicted), signed_percent(row->error));
  }
  return text;
}

/// Pools against their bars, and the worst rows of each.
std::string pool_table(const std::vector<PooledErrors>& pools) {
  if (pools.empty()) return "";
  std::vector<std::vector<std::string>> lines{{"pool", "rows", "below 1 MiB", "to 64 MiB", "above 64 MiB", "all", "bar", ""}};
  std::string worst;
  for (const PooledErrors& pool : pools) {
    std::vector<std::string> line{pool.pool.name, std::to_string(pool.rows.size())};
    add_sizes(pool.by_size, line);
    line.push_back(both_text(pool.errors.median, pool.errors.p95));
    line.push_back(bar_text(pool.pool));
    line.emplace_back(pool.misses_bar() ? "MISSED" : pool.pool.bar || pool.pool.bar_large ? "met" : "");
    lines.push_back(std::move(line));
    worst += fmt::format("worst rows: {}\n{}", pool.pool.name, worst_of(pool));
  }
  return table(lines, 1) + "\n" + worst + "\n";
}

std::string row_table(const DatasetValidation& validation) {
  std::vector<std::vector<std::string>> rows{{"case", "hypothesis", "observation", "schedule", "measured", "predicted", "error"}};
  for (const ValidatedCase& found : validation.cases)
    for (const ValidatedRow& row : found.rows)
      rows.push_back({found.name, found.hypothesis, observation_text(row.observation), std::string{name_of(row.observation.schedule)},
                      to_text(row.observation.time), to_text(row.predicted), signed_percent(row.error)});
  return table_without_empty(std::move(rows), 1, 4);
}

Json json_of(const std::optional<ErrorBound>& bound) {
  if (!bound) return {};
  return Json{{"median_abs_error", bound->median}, {"p95_abs_error", std::isinf(bound->p95) ? Json() : Json(bound->p95)}};
}

Json json_of(const Observation& o) {
  Json row{{"op", name_of(o.op)}, {"devices", o.devices}, {"bytes", o.bytes.count()}};
  if (o.m > 0) row.update(Json{{"m", o.m}, {"n", o.n}, {"k", o.k}});
  if (!o.axis.empty()) row.set("axis", o.axis);
  if (!o.slice.empty()) row.set("slice", o.slice);
  if (o.groups > 1) row.set("groups", o.groups);
  if (is_training_step(o)) row.update(Json{{"step", o.step}, {"pods", o.pods}});
  if (is_run(o)) row.set("run", o.run);
  if (o.spread) row.set("spread", *o.spread);
  return row;
}

Json json_of(const ErrorSummary& summary) {
  if (summary.rows == 0) return Json{{"rows", 0}, {"median_abs_error", nullptr}, {"p95_abs_error", nullptr}};
  return Json{{"rows", summary.rows}, {"median_abs_error", summary.median}, {"p95_abs_error", summary.p95}};
}

Json json_of(const DatasetValidation& validation) {
  Json cases = Json::array(), rows = Json::array(), bounds = Json::object();
  for (const ValidatedCase& found : validation.cases) {
    Json one{{"name", found.name},
             {"rung", name_of(found.tier)},
             {"hypothesis", found.hypothesis},
             {"counted", found.counted},
             {"fitted_rows", found.fitted}};
    one.update(json_of(found.errors));
    if (found.spread) one.set("median_spread", *found.spread);
    one.update(Json{{"bound", json_of(found.bound)}, {"no_bound", or_null(found.no_bound)}, {"ok", found.ok}});
    if (has_sizes(found)) {
      Json sizes = Json::object();
      for (std::size_t c = 0; c < size_class_count; ++c) sizes.set(std::string{name_of(static_cast<SizeClass>(c))}, json_of(found.by_size.at(c)));
      one.set("sizes", std::move(sizes));
    }
    cases.push_back(std::move(one));
    if (found.bound) bounds.set(found.name, json_of(found.bound));
    for (const ValidatedRow& row : found.rows) {
      Json json = json_of(row.observation);
      json.update(Json{{"measured_s", row.observation.time.count()},
                       {"predicted_s", row.predicted.count()},
                       {"error", row.error},
                       {"schedule", name_of(row.observation.schedule)},
                       {"case", found.name},
                       {"rung", name_of(found.tier)},
                       {"hypothesis", found.hypothesis},
                       {"counted", found.counted}});
      rows.push_back(std::move(json));
    }
  }
  const ErrorSummary counted = summary_of(counted_errors(validation));
  Json result{{"name", validation.dataset}, {"rows", std::move(rows)}, {"cases", std::move(cases)}};
  result.set("median_abs_error", counted.rows == 0 ? Json() : Json(counted.median));
  result.set("p95_abs_error", counted.rows == 0 ? Json() : Json(counted.p95));
  result.set("bound", std::move(bounds));
  Json noise = Json::array();
  for (const NoiseFloor& floor : validation.noise) {
    Json sizes = Json::object();
    for (std::size_t c = 0; c < size_class_count; ++c) {
      const NoiseFloor::Range& range = floor.by_size.at(c);
      sizes.set(std::string{name_of(static_cast<SizeClass>(c))}, Json{{"rows", range.rows}, {"least", range.least}, {"most", range.most}});
    }
    noise.push_back(Json{{"against", floor.other}, {"sizes", std::move(sizes)}});
  }
  if (!validation.noise.empty()) result.set("noise_floor", std::move(noise));
  result.set("ok", validation.ok());
  return result;
}

}  // namespace

std::string observation_text(const Observation& o) {
  std::string text = o.m > 0 && o.op == ObservedOp::matmul ? fmt::format("matmul {}x{}x{}", o.m, o.n, o.k)
                                                           : fmt::format("{} {}", name_of(o.op), to_exact_text(o.bytes));
  if (is_run(o)) return fmt::format("{} on {}", o.run, o.devices);
  if (is_training_step(o)) return fmt::format("{} {} on {}{}", name_of(o.op), o.step, o.devices, o.pods > 1 ? fmt::format(" of {} slices", o.pods) : "");
  if (is_fft(o)) text = fmt::format("{} {}^3 as {}", name_of(o.op), o.points, fmt::join(o.mesh, "x"));
  if (is_composite(o)) text += fmt::format(" with {}x{}x{}", o.m, o.n, o.k);
  if (o.devices > 1) text += o.groups > 1 ? fmt::format(" on {} x {}", o.groups, o.devices) : fmt::format(" on {}", o.devices);
  return o.axis.empty() ? text : text + " along " + o.axis;
}

std::string validation_table(const std::vector<DatasetValidation>& validations, bool rows) {
  std::string text;
  if (rows)
    for (const DatasetValidation& validation : validations) text += validation.dataset + "\n" + row_table(validation) + "\n";
  std::vector<std::vector<std::string>> lines{{"dataset", "rung", "case", "hypothesis", "fitted", "predicted", "median", "95th", "noise", "bound", ""}};
  for (const DatasetValidation& validation : validations)
    for (const ValidatedCase& found : validation.cases)
      lines.push_back({validation.dataset, rung_text(found), found.name, found.hypothesis, std::to_string(found.fitted),
                       std::to_string(found.errors.rows), percent(found.errors.median), percent(found.errors.p95), found.spread ? percent(*found.spread) : "", bound_text(found),
                       found.ok ? (found.counted ? "" : "not counted") : "ABOVE"});
  without_empty(lines, 8);
  text += table_without_empty(std::move(lines), 3, 4) + "\n";
  if (const std::string sizes = size_table(validations); !sizes.empty()) text += sizes + "\n";
  text += pool_table(pooled(validations));
  if (const std::string products = product_class_table(validations); !products.empty()) text += products + "\n";
  for (const Tier tier : tiers) {
    const ErrorSummary summary = summary_of(errors_of(validations, tier));
    if (summary.rows > 0) text += fmt::format("{:<16} {}\n", name_of(tier), summary_text(summary));
  }
  if (const ErrorSummary beyond = headline(validations); beyond.rows > 0) text += fmt::format("{:<16} {}\n", "all but sizes", summary_text(beyond));
  for (const DatasetValidation& validation : validations) {
    const std::string* said = nullptr;  // a case stands under every hypothesis
    for (const ValidatedCase& found : validation.cases) {
      if (!found.no_bound.empty() && found.pools.empty() && (said == nullptr || *said != found.name))
        text += fmt::format("no bound: {}, {}: {}\n", validation.dataset, found.name, found.no_bound);
      said = &found.name;
    }
  }
  for (const DatasetValidation& validation : validations)
    for (const ValidatedCase& found : validation.cases)
      if (!found.ok)
        text += fmt::format("above its bound: {}, {}, {}: median {} and 95th percentile {}, bound {}\n", validation.dataset, found.name,
                            found.hypothesis, percent(found.errors.median), percent(found.errors.p95), bound_text(found));
  return text;
}

std::string validation_json(const std::vector<DatasetValidation>& validations) {
  Json datasets = Json::array(), by_rung = Json::object();
  bool ok = true;
  for (const DatasetValidation& validation : validations) {
    datasets.push_back(json_of(validation));
    ok = ok && validation.ok();
  }
  Json pools = Json::array();
  for (const PooledErrors& pool : pooled(validations)) {
    Json one{{"name", pool.pool.name}}, sizes = Json::object();
    one.update(json_of(pool.errors));
    for (std::size_t c = 0; c < size_class_count; ++c) sizes.set(std::string{name_of(static_cast<SizeClass>(c))}, json_of(pool.by_size.at(c)));
    one.set("sizes", std::move(sizes));
    one.update(Json{{"bar", json_of(pool.pool.bar)}, {"bar_above_64_mib", pool.pool.bar_large ? Json(*pool.pool.bar_large) : Json()}, {"misses_bar", pool.misses_bar()}});
    pools.push_back(std::move(one));
  }
  for (const Tier tier : tiers) by_rung.set(std::string{name_of(tier)}, json_of(summary_of(errors_of(validations, tier))));
  return Json{{"datasets", std::move(datasets)}, {"rungs", std::move(by_rung)}, {"pools", std::move(pools)}, {"all_but_sizes", json_of(headline(validations))}, {"ok", ok}}.dump(
             2) +
         "\n";
}

std::string explained_table(const std::vector<ExplainedRow>& rows) {
  std::vector<std::vector<std::string>> lines{{"observation", "measured", "expected", "difference", "bound by", "algorithms, the fastest first", "explanation"}};
  for (const ExplainedRow& row : rows) {
    std::string algorithms;
    for (const auto& [name, time] : row.algorithms)
      algorithms += fmt::format("{}{}{} {}", algorithms.empty() ? "" : ", ", name, name == row.nearest ? "*" : "", to_text(time));
    lines.push_back({observation_text(row.observation), to_text(row.observation.time), to_text(row.expected),
                     signed_percent(row.expected.count() / row.observation.time.count() - 1), row.bound, algorithms, row.sentence});
  }
  return table(lines, 1) + "* the algorithm that comes nearest to the measured time\n";
}

std::string explained_json(const std::vector<ExplainedRow>& rows) {
  Json all = Json::array();
  for (const ExplainedRow& row : rows) {
    Json json = json_of(row.observation), algorithms = Json::array();
    for (const auto& [name, time] : row.algorithms) algorithms.push_back(Json{{"name", name}, {"predicted_s", time.count()}});
    json.update(Json{{"measured_s", row.observation.time.count()},
                     {"expected_s", row.expected.count()},
                     {"bound", row.bound},
                     {"algorithms", std::move(algorithms)},
                     {"nearest", or_null(row.nearest)},
                     {"explanation", row.sentence}});
    all.push_back(std::move(json));
  }
  std::vector<double> errors;
  for (const ExplainedRow& row : rows) errors.push_back(std::abs(row.expected.count() / row.observation.time.count() - 1));
  return Json{{"median_abs_error", median(std::move(errors))}, {"rows", std::move(all)}}.dump(2) + "\n";
}

std::string validation_csv(const std::vector<DatasetValidation>& validations) {
  std::string text = csv_row({"dataset", "case", "rung", "hypothesis", "counted", "op", "devices", "bytes", "axis", "m", "n", "k", "schedule",
                          "measured_s", "predicted_s", "error"});
  const auto extent = [](std::int64_t value) { return value > 0 ? std::to_string(value) : std::string{}; };
  for (const DatasetValidation& validation : validations)
    for (const ValidatedCase& found : validation.cases)
      for (const ValidatedRow& row : found.rows) {
        const Observation& o = row.observation;
        text += csv_row({validation.dataset, found.name, std::string{name_of(found.tier)}, found.hypothesis, found.counted ? "true" : "false",
                     std::string{name_of(o.op)}, std::to_string(o.devices), extent(o.bytes.count()), o.axis, extent(o.m), extent(o.n), extent(o.k),
                     std::string{name_of(o.schedule)}, fmt::format("{}", o.time.count()), fmt::format("{}", row.predicted.count()),
                     fmt::format("{:.6f}", row.error)});
      }
  return text;
}

std::string validation_svg(const std::vector<DatasetValidation>& validations) {
  std::vector<PlottedGroup> groups;
  for (const Tier tier : tiers) {
    PlottedGroup group{std::string{name_of(tier)}, {}};
    for (const DatasetValidation& validation : validations)
      for (const ValidatedCase& found : validation.cases) {
        if (found.tier != tier) continue;
        const std::size_t stride = (found.rows.size() + most_drawn - 1) / most_drawn;
        if (stride > 1 && !group.name.ends_with(')')) group.name += " (some of the rows)";
        for (std::size_t i = 0; i < found.rows.size(); i += stride) {
          const ValidatedRow& row = found.rows[i];
          group.points.push_back({row.observation.time, row.predicted,
                                  fmt::format("{}: {}, {}{}{}", validation.dataset, observation_text(row.observation), found.name,
                                              found.hypothesis.empty() ? "" : ", ", found.hypothesis),
                                  !found.counted});
        }
      }
    groups.push_back(std::move(group));
  }
  return prediction_svg("Predictions of what was not fitted", groups);
}

}  // namespace podsim
