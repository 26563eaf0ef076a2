#include "tools/page/sweep_points.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/base/csv.hpp"
#include "sim/base/units.hpp"
#include "tools/report/json.hpp"

namespace podsim {

namespace {

using JsonObject = simdjson::dom::object;
using JsonElement = simdjson::dom::element;

struct SweepPoints {
  std::vector<std::string> columns;
  std::vector<std::map<std::string, std::string>> rows;  // a value as JSON; texts with their quotation marks
};

SweepPoints points_of(const Record& record) {
  const simdjson::padded_string padded{record.result};
  simdjson::dom::parser parser;
  SweepPoints points;
  const auto parsed = parser.parse(padded);
  simdjson::dom::array columns, rows;
  if (parsed["columns"].get(columns) != simdjson::SUCCESS || parsed["rows"].get(rows) != simdjson::SUCCESS) return points;
  for (const JsonElement column : columns)
    if (std::string_view name; column.get(name) == simdjson::SUCCESS) points.columns.emplace_back(name);
  for (const JsonElement row : rows) {
    points.rows.emplace_back();
    JsonObject values;
    if (row.get(values) == simdjson::SUCCESS)
      for (const auto [name, value] : values) points.rows.back().emplace(std::string{name}, simdjson::minify(value));
  }
  return points;
}

bool is_text(const std::string& value) { return value.starts_with('"'); }

std::string without_quotes(const std::string& value) {
  const simdjson::padded_string padded{value};
  simdjson::dom::parser parser;
  std::string_view text;
  return parser.parse(padded).get(text) == simdjson::SUCCESS ? std::string{text} : value;
}

/// The number of a value, sizes such as 16MiB included; nullopt: none.
std::optional<double> number_of(const std::string& value) {
  if (is_text(value)) {
    const auto bytes = parse_bytes(without_quotes(value), {});
    return bytes ? std::optional{static_cast<double>(bytes->count())} : std::nullopt;
  }
  const simdjson::padded_string padded{value};
  simdjson::dom::parser parser;
  double number = 0;
  return parser.parse(padded).get(number) == simdjson::SUCCESS ? std::optional{number} : std::nullopt;
}

const std::string& value_of(const std::map<std::string, std::string>& row, const std::string& column) {
  static const std::string none = "null";
  const auto found = row.find(column);
  return found == row.end() ? none : found->second;
}

/// A channel of a chart: a column, as a number, on powers of 2 where it goes far, or as names.
Json channel_of(const SweepPoints& points, const std::string& column) {
  double least = 0, most = 0;
  for (const auto& row : points.rows) {
    const std::string& value = value_of(row, column);
    if (value == "null") continue;
    const auto number = number_of(value);
    if (!number) return Json{{"field", column}, {"type", "nominal"}};
    least = least == 0 ? *number : std::min(least, *number);
    most = std::max(most, *number);
  }
  Json channel{{"field", column}, {"type", "quantitative"}};
  if (least > 0 && most > 8 * least) channel.set("scale", Json{{"type", "log"}, {"base", 2}});
  return channel;
}

}  // namespace

std::string points_csv(const Record& record) {
  const SweepPoints points = points_of(record);
  std::string text = csv_row(points.columns);
  for (const auto& row : points.rows) {
    std::vector<std::string> cells;
    for (const std::string& column : points.columns) {
      const std::string& value = value_of(row, column);
      const std::string_view number{value.data(), value.size() - (value.ends_with(".0") ? 2 : 0)};  // as sweep --export csv has them
      cells.push_back(value == "null" ? "" : is_text(value) ? without_quotes(value) : std::string{number});
    }
    text += csv_row(cells);
  }
  return text;
}

std::string points_vega_lite(const Record& record) {
  SweepPoints points = points_of(record);
  std::erase_if(points.rows, [](const auto& row) { return value_of(row, "status") != "\"done\""; });
  std::vector<std::pair<std::size_t, std::string>> swept;  // by how many values
  for (const std::string& column : points.columns) {
    if (column.starts_with("used_")) break;
    std::set<std::string> values;
    for (const auto& row : points.rows) values.insert(value_of(row, column));
    if (column != "point" && values.size() > 1) swept.emplace_back(values.size(), column);
  }
  std::ranges::stable_sort(swept, std::ranges::greater{}, &std::pair<std::size_t, std::string>::first);
  Json values = Json::array();
  for (const auto& row : points.rows) {
    Json object = Json::object();
    for (const std::string& column : points.columns) {
      const std::string& value = value_of(row, column);
      if (value == "null") continue;
      const auto number = number_of(value);
      object.set(column, number ? Json(*number) : Json(is_text(value) ? without_quotes(value) : value));
    }
    values.push_back(std::move(object));
  }
  Json encoding{{"y", Json{{"field", "makespan_s"}, {"type", "quantitative"}, {"title", "time, s"}}}};
  if (!swept.empty()) encoding.set("x", channel_of(points, swept.front().second));
  if (swept.size() > 1) encoding.set("color", Json{{"field", swept[1].second}, {"type", "nominal"}});
  if (swept.size() > 2) encoding.set("shape", Json{{"field", swept[2].second}, {"type", "nominal"}});
  return Json{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
              {"description", record.command},
              {"data", Json{{"values", std::move(values)}}},
              {"mark", Json{{"type", "point"}, {"filled", true}, {"tooltip", Json{{"content", "data"}}}}},
              {"encoding", std::move(encoding)},
              {"width", 700},
              {"height", 400}}
             .dump(1) +
         "\n";
}

}  // namespace podsim
