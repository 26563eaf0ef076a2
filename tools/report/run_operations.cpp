#include "tools/report/run_operations.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tools/report/json.hpp"

namespace podsim {

namespace {

using JsonObject = simdjson::dom::object;
using JsonElement = simdjson::dom::element;

double seconds_of(Picoseconds duration) { return to_seconds(duration).count(); }

std::vector<OperationMetrics> operations_of(const Run& run) { return measure_operations(run.model, run.timeline, run.metrics.busiest); }

/// The place of a byte of a text.
SourceLocation place(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte);
  const std::size_t line = before.rfind('\n');
  return {file, static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(line == std::string_view::npos ? before.size() : before.size() - line - 1) + 1};
}

/// A number that is not negative under `key`; absent: 0, unless it must be there.
Expected<double> number_in(const JsonObject& object, const char* key, bool must, const std::string& what, const std::string& file) {
  JsonElement found;
  if (object[key].get(found) != simdjson::SUCCESS || found.is_null()) {
    if (!must) return 0.0;
    return Diagnostic{{file}, fmt::format("{} has no {}, which `podsim run --format json` writes", what, key)};
  }
  constexpr double most = 1e18;  // nothing in a run is larger, nor overflows 64 bits
  double value = -1;
  if (found.get(value) == simdjson::SUCCESS && value >= 0 && value <= most) return value;
  return Diagnostic{{file}, fmt::format("{}: {} must be a number from 0 to 1e18, found {}", what, key, quoted(simdjson::minify(found)))};
}

Expected<StepOperation> read_operation(const JsonElement& json, std::size_t index, const std::string& file) {
  const std::string what = fmt::format("operations[{}]", index);
  JsonObject object;
  if (json.get(object) != simdjson::SUCCESS) return Diagnostic{{file}, what + " must be an object"};
  StepOperation operation;
  for (const auto& [key, field] : {std::pair{"name", &operation.name}, {"category", &operation.category}}) {
    std::string_view text;
    if (object[key].get(text) != simdjson::SUCCESS) return Diagnostic{{file}, fmt::format("{}: {} must be a text", what, key)};
    *field = text;
  }
  double busy = 0, exposed = 0, overlapped = 0, flops = 0, bytes = 0, devices = 0;
  struct Number {
    const char* key;
    double* value;
    bool must;
  };
  for (const Number& number : {Number{"count", &operation.count, true},
                               {"busy_s", &busy, true},
                               {"exposed_s", &exposed, true},
                               {"overlapped_s", &overlapped, true},
                               {"flops", &flops, false},
                               {"bytes", &bytes, false},
                               {"devices", &devices, false}}) {
    const auto value = number_in(object, number.key, number.must, what, file);
    if (!value) return value.error();
    *number.value = *value;
  }
  if (devices > 1e9) return Diagnostic{{file}, what + ": devices must be at most 1e9"};
  operation.time = Seconds{busy + exposed};
  operation.beside = Seconds{overlapped};
  operation.flops = Flops{flops};
  operation.bytes = Bytes{static_cast<std::int64_t>(bytes)};
  operation.devices = static_cast<int>(devices);
  return operation;
}

namespace lazy = simdjson::ondemand;

/// Looks at every value until one cannot be read.
simdjson::error_code read_through(lazy::value value, int depth = 0) {
  constexpr int deepest = 1024;  // simdjson's own limit, by default
  lazy::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (depth == deepest) return simdjson::DEPTH_ERROR;
  if (type == lazy::json_type::object) {
    lazy::object fields;
    if (const auto error = value.get_object().get(fields)) return error;
    for (auto field : fields) {
      std::string_view key;
      lazy::value inner;
      if (const auto error = field.unescaped_key().get(key)) return error;
      if (const auto error = field.value().get(inner)) return error;
      if (const auto error = read_through(inner, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }
  if (type == lazy::json_type::array) {
    lazy::array elements;
    if (const auto error = value.get_array().get(elements)) return error;
    for (auto element : elements) {
      lazy::value inner;
      if (const auto error = element.get(inner)) return error;
      if (const auto error = read_through(inner, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }
  std::string_view text;
  double number = 0;
  bool truth = false;
  switch (type) {
    case lazy::json_type::string: return value.get_string().get(text);
    case lazy::json_type::number: return value.get_double().get(number);
    case lazy::json_type::boolean: return value.get_bool().get(truth);
    default: return value.is_null().get(truth);
  }
}

/// Where the parser of whole documents, which does not tell, found `error`; its size where it ends too early, nothing where it is not known.
std::optional<std::size_t> place_of(simdjson::error_code error, const simdjson::padded_string& text) {
  if (error == simdjson::EMPTY || error == simdjson::UNCLOSED_STRING) return text.size();
  if (error == simdjson::UTF8_ERROR || error == simdjson::DEPTH_ERROR) return std::nullopt;
  lazy::parser parser;
  lazy::document document;
  lazy::value root;
  if (parser.iterate(text).get(document) != simdjson::SUCCESS || document.get_value().get(root) != simdjson::SUCCESS) return std::nullopt;
  const auto found = read_through(root);
  if (error == simdjson::TAPE_ERROR && found == simdjson::NUMBER_ERROR) return text.size();  // the last bytes are a number, which could go on
  const char* at = nullptr;
  if (document.current_location().get(at) != simdjson::SUCCESS || at < text.data() || at > text.data() + text.size()) return std::nullopt;
  return static_cast<std::size_t>(at - text.data());
}

Diagnostic no_json(simdjson::error_code error, const simdjson::padded_string& text, const std::string& file) {
  const std::optional<std::size_t> byte = place_of(error, text);
  if (!byte) return {{file, 1, 1}, fmt::format("this is no JSON of a run: {}", simdjson::error_message(error))};
  const std::string_view all{text};
  return {place(all, *byte, file), *byte >= all.size() ? "expected the rest of a JSON object, found the end of the file"
                                                       : "this is no JSON: found " + quoted(all.substr(*byte, 1))};
}

}  // namespace

Json operations_json(const Run& run) {
  Json operations = Json::array();
  for (const OperationMetrics& o : operations_of(run)) {
    Json entry{{"name", o.name},
               {"category", o.category},
               {"count", o.count},
               {"busy_s", seconds_of(o.busy)},
               {"exposed_s", seconds_of(o.exposed)},
               {"overlapped_s", seconds_of(o.overlapped)}};
    if (o.flops.count() > 0) entry.update(Json{{"flops", o.flops.count()}, {"m", o.extents.m}, {"n", o.extents.n}, {"k", o.extents.k}});
    if (o.bytes.count() > 0) entry.set("bytes", o.bytes.count());
    if (o.devices > 0) entry.set("devices", o.devices);
    operations.push_back(std::move(entry));
  }
  return operations;
}

StepTimes step_of(const std::vector<OperationMetrics>& operations, Picoseconds makespan) {
  StepTimes step{to_seconds(makespan), {}};
  for (const OperationMetrics& o : operations)
    step.operations.push_back({o.name, std::string{o.category}, static_cast<double>(o.count), to_seconds(o.busy + o.exposed),
                               to_seconds(o.overlapped), o.flops, o.bytes, o.devices});
  return step;
}

StepTimes step_of(const Run& run) { return step_of(operations_of(run), run.metrics.makespan); }

Expected<PredictedStep> read_run_step(std::string_view text, const std::string& file) {
  const simdjson::padded_string padded{text};
  simdjson::dom::parser parser;
  JsonElement json;
  if (const auto error = parser.parse(padded).get(json)) return no_json(error, padded, file);
  JsonObject run;
  if (json.get(run) != simdjson::SUCCESS || run["makespan_s"].error() != simdjson::SUCCESS)
    return Diagnostic{{file, 1, 1}, "expected the JSON of `podsim run`, which has makespan_s; found other JSON"};
  const auto makespan = number_in(run, "makespan_s", true, "the run", file);
  if (!makespan) return makespan.error();
  simdjson::dom::array operations;
  if (run["operations"].get(operations) != simdjson::SUCCESS)
    return Diagnostic{{file, 1, 1}, "this run has no operations: expected what `podsim run --format json` writes since it has them; run it again"};
  const auto blocks = number_in(run, "blocks", false, "the run", file);
  if (!blocks) return blocks.error();
  if (*blocks > most_layers) return Diagnostic{{file}, fmt::format("the run: blocks must be at most {}", most_layers)};
  PredictedStep step{{Seconds{*makespan}, {}}, std::max<std::int64_t>(static_cast<std::int64_t>(*blocks), 1)};
  for (const JsonElement operation : operations) {
    auto read = read_operation(operation, step.block.operations.size(), file);
    if (!read) return read.error();
    step.block.operations.push_back(*std::move(read));
  }
  return step;
}

}  // namespace podsim
