#include "tools/report/run_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/analysis/operations.hpp"

namespace podsim {

namespace {

using Json = nlohmann::ordered_json;

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
Expected<double> number_in(const Json& object, const char* key, bool must, const std::string& what, const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    if (!must) return 0.0;
    return Diagnostic{{file}, fmt::format("{} has no {}, which `podsim run --format json` writes", what, key)};
  }
  constexpr double most = 1e18;  // nothing in a run is larger, nor overflows 64 bits
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!(value >= 0 && value <= most))
    return Diagnostic{{file},
                      fmt::format("{}: {} must be a number from 0 to 1e18, found {}", what, key,
                                  quoted(found->dump(-1, ' ', true, Json::error_handler_t::replace)))};
  return value;
}

Expected<StepOperation> read_operation(const Json& json, std::size_t index, const std::string& file) {
  const std::string what = fmt::format("operations[{}]", index);
  if (!json.is_object()) return Diagnostic{{file}, what + " must be an object"};
  StepOperation operation;
  for (const auto& [key, field] : {std::pair{"name", &operation.name}, {"category", &operation.category}}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) return Diagnostic{{file}, fmt::format("{}: {} must be a text", what, key)};
    *field = found->get<std::string>();
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
    const auto value = number_in(json, number.key, number.must, what, file);
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

/// Errors: no JSON.
Expected<Json> parsed(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t byte = error.byte > 0 ? error.byte - 1 : 0;
    const bool ended = byte >= text.size();
    return Diagnostic{place(text, std::min(byte, text.size()), file), ended ? "expected the rest of a JSON object, found the end of the file"
                                                                            : "this is no JSON: found " + quoted(text.substr(byte, 1))};
  } catch (const Json::exception&) {  // numbers out of range
    return Diagnostic{{file, 1, 1}, "this is no JSON of a run: it has numbers that cannot be"};
  }
}

}  // namespace

nlohmann::ordered_json operations_json(const Run& run) {
  Json operations = Json::array();
  for (const OperationMetrics& o : operations_of(run)) {
    Json entry{{"name", o.name},
               {"category", o.category},
               {"count", o.count},
               {"busy_s", seconds_of(o.busy)},
               {"exposed_s", seconds_of(o.exposed)},
               {"overlapped_s", seconds_of(o.overlapped)}};
    if (o.flops.count() > 0) entry.update(Json{{"flops", o.flops.count()}, {"m", o.extents.m}, {"n", o.extents.n}, {"k", o.extents.k}});
    if (o.bytes.count() > 0) entry["bytes"] = o.bytes.count();
    if (o.devices > 0) entry["devices"] = o.devices;
    operations.push_back(std::move(entry));
  }
  return operations;
}

StepTimes step_of(const Run& run) {
  StepTimes step{to_seconds(run.metrics.makespan), {}};
  for (const OperationMetrics& o : operations_of(run))
    step.operations.push_back({o.name, std::string{o.category}, static_cast<double>(o.count), to_seconds(o.busy + o.exposed),
                               to_seconds(o.overlapped), o.flops, o.bytes, o.devices});
  return step;
}

Expected<PredictedStep> read_run_step(std::string_view text, const std::string& file) {
  const auto json = parsed(text, file);
  if (!json) return json.error();
  if (!json->is_object() || !json->contains("makespan_s"))
    return Diagnostic{{file, 1, 1}, "expected the JSON of `podsim run`, which has makespan_s; found other JSON"};
  const auto makespan = number_in(*json, "makespan_s", true, "the run", file);
  if (!makespan) return makespan.error();
  const auto operations = json->find("operations");
  if (operations == json->end() || !operations->is_array())
    return Diagnostic{{file, 1, 1}, "this run has no operations: expected what `podsim run --format json` writes since it has them; run it again"};
  const auto blocks = number_in(*json, "blocks", false, "the run", file);
  if (!blocks) return blocks.error();
  if (*blocks > most_layers) return Diagnostic{{file}, fmt::format("the run: blocks must be at most {}", most_layers)};
  PredictedStep step{{Seconds{*makespan}, {}}, std::max<std::int64_t>(static_cast<std::int64_t>(*blocks), 1)};
  for (std::size_t i = 0; i < operations->size(); ++i) {
    auto operation = read_operation((*operations)[i], i, file);
    if (!operation) return operation.error();
    step.block.operations.push_back(*std::move(operation));
  }
  return step;
}

}  // namespace podsim
