#include "tools/page/recorded_result.hpp"

#include <simdjson.h>

#include <array>
#include <ranges>
#include <utility>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "tools/report/json.hpp"
#include "tools/report/json_problem.hpp"

namespace podsim {

namespace {

using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;
using JsonElement = simdjson::dom::element;

struct KnownResult {
  ResultKind kind;
  std::string_view name;
  std::string_view key;   // that its object has
  std::string_view also;  // and this
};
constexpr std::array<KnownResult, 10> known_results{{{ResultKind::run, "run", "makespan_s", "makespan_s"},
                                                    {ResultKind::comparison, "comparison", "rows", "verdicts"},
                                                    {ResultKind::tuning, "tuning", "plans", "candidates"},
                                                    {ResultKind::validation, "validation", "datasets", "rungs"},
                                                    {ResultKind::sweep, "sweep", "columns", "rows"},
                                                    {ResultKind::differences, "differences", "differences", "schedules"},
                                                    {ResultKind::explanation, "explanation", "rows", "median_abs_error"},
                                                    {ResultKind::diff, "diff", "categories", "unmatched"},
                                                    {ResultKind::calibration, "calibration", "parameters", "residuals"},
                                                    {ResultKind::check, "check", "deadlock_free", "race_free"}}};

std::string without_times(const JsonObject& object, bool inner) {
  std::string out = "{";
  for (const auto& [key, value] : object) {
    if (key == "wall_s" || key == "build_s") continue;
    if (out.size() > 1) out += ",";
    out += json_text(key) + ":";
    JsonArray array;
    if (inner || value.get(array) != simdjson::SUCCESS) {
      out += simdjson::minify(value);
      continue;
    }
    out += "[";
    bool first = true;
    for (const JsonElement element : array) {
      JsonObject entry;
      if (!std::exchange(first, false)) out += ",";
      out += element.get(entry) == simdjson::SUCCESS ? without_times(entry, true) : simdjson::minify(element);
    }
    out += "]";
  }
  return out + "}";
}

}  // namespace

std::string_view name_of(ResultKind kind) { return known_results.at(static_cast<std::size_t>(kind)).name; }

Expected<ResultKind> kind_of_result(std::string_view json, const std::string& file) {
  if (auto problem = problem_in_json(json, file)) return *std::move(problem);
  const simdjson::padded_string padded{json};
  simdjson::dom::parser parser;
  JsonObject object;
  if (parser.parse(padded).get(object) == simdjson::SUCCESS)
    for (const KnownResult& known : std::views::reverse(known_results))  // a module beside schedules has a makespan too
      if (object[known.key].error() == simdjson::SUCCESS && object[known.also].error() == simdjson::SUCCESS) return known.kind;
  return Diagnostic{{file, 1, 1}, "expected the JSON of `podsim run`, `compare`, `tune`, `validate`, `diff`, `calibrate`, `check` or `sweep --export json`, found other JSON"};
}

std::string recorded_result(std::string_view json) {
  const simdjson::padded_string padded{json};
  simdjson::dom::parser parser;
  JsonObject object;
  if (parser.parse(padded).get(object) != simdjson::SUCCESS) return std::string{json};
  return without_times(object, false);
}

std::string on_one_line(std::string_view json) {
  const simdjson::padded_string padded{json};
  simdjson::dom::parser parser;
  JsonElement element;
  return parser.parse(padded).get(element) == simdjson::SUCCESS ? simdjson::minify(element) : std::string{json};
}

std::optional<int> device_at(std::string_view json, std::string_view place) {
  const simdjson::padded_string padded{json};
  simdjson::dom::parser parser;
  JsonObject mesh;
  if (parser.parse(padded)["mesh"].get(mesh) != simdjson::SUCCESS) return std::nullopt;
  const std::vector<std::string> coordinates = split(place);
  std::int64_t device = 0;
  std::size_t axis = 0;
  for (const auto [name, extent] : mesh) {
    std::int64_t size = 0;
    if (extent.get(size) != simdjson::SUCCESS || axis == coordinates.size()) return std::nullopt;
    const std::string& coordinate = coordinates[axis++];
    if (!coordinate.starts_with(std::string{name} + "=")) return std::nullopt;
    const auto at = parse_integer(std::string_view{coordinate}.substr(name.size() + 1), 0, size - 1, {});
    if (!at) return std::nullopt;
    device = device * size + *at;
  }
  return axis == coordinates.size() ? std::optional{static_cast<int>(device)} : std::nullopt;
}

}  // namespace podsim
