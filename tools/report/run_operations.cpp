#include "tools/report/run_operations.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.hpp"
#include "tools/report/json.hpp"
#include "tools/report/json_problem.hpp"

namespace podsim {

namespace {

using JsonObject = simdjson::dom::object;
using JsonElement = simdjson::dom::element;

double seconds_of(Picoseconds duration) { return to_seconds(duration).count(); }

std::vector<OperationMetrics> operations_of(const Run& run) { return measure_operations(run.model, run.timeline, run.metrics.busiest); }

StepOperation step_operation(const OperationMetrics& o) {
  return {o.name, std::string{o.category}, static_cast<double>(o.count), to_seconds(o.busy + o.exposed), to_seconds(o.overlapped), o.flops, o.bytes, o.devices};
}

StepOperation times(double count, StepOperation operation) {
  operation.count *= count;
  operation.time = count * operation.time;
  operation.beside = count * operation.beside;
  return operation;
}

/// What is in a call stands for it: a profile has the instructions, not the computation that a loop runs.
void add_with_calls(const std::vector<OperationMetrics>& operations, double count, std::vector<StepOperation>& all) {
  for (const OperationMetrics& o : operations) {
    if (o.call != nullptr)
      add_with_calls(o.call->operations, count * static_cast<double>(o.count), all);
    else
      all.push_back(times(count, step_operation(o)));
  }
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

/// `what`: "operations[3]".
Expected<StepOperation> read_operation(const JsonElement& json, const std::string& what, const std::string& file) {
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

constexpr int deepest_call = 64;

/// As add_with_calls().
Status read_operations(const simdjson::dom::array& operations, double count, const std::string& path, int depth, const std::string& file, std::vector<StepOperation>& all) {
  if (depth > deepest_call) return Diagnostic{{file}, fmt::format("{}: calls are nested deeper than {}", path, deepest_call)};
  std::size_t index = 0;
  for (const JsonElement json : operations) {
    const std::string what = fmt::format("{}[{}]", path, index++);
    auto read = read_operation(json, what, file);
    if (!read) return read.error();
    simdjson::dom::array called;
    if (json["operations"].get(called) == simdjson::SUCCESS && called.size() > 0) {
      if (Status inside = read_operations(called, count * read->count, what + ".operations", depth + 1, file, all); !inside) return inside;
    } else {
      all.push_back(times(count, *std::move(read)));
    }
  }
  return success();
}

/// As ledger_json() writes them, without their times; a podsim of before did not.
Expected<std::vector<LedgerRow>> read_ledger(const JsonObject& run, const std::string& file) {
  std::vector<LedgerRow> ledger;
  simdjson::dom::array rows;
  if (run["collectives"].get(rows) != simdjson::SUCCESS) return ledger;
  for (const JsonElement json : rows) {
    const std::string what = fmt::format("collectives[{}]", ledger.size());
    JsonObject object;
    if (json.get(object) != simdjson::SUCCESS) return Diagnostic{{file}, what + " must be an object"};
    LedgerRow row;
    std::string axes;
    for (const auto& [key, field] : {std::pair{"name", &row.name}, {"kind", &row.kind}, {"path", &row.path}, {"source", &row.source}, {"axis", &axes}})
      if (std::string_view text; object[key].get(text) == simdjson::SUCCESS) *field = text;
    if (!axes.empty()) row.axes = split(axes);
    const auto bytes = number_in(object, "bytes", true, what, file), devices = number_in(object, "devices", true, what, file);
    if (!bytes) return bytes.error();
    if (!devices) return devices.error();
    if (*devices > 1e9) return Diagnostic{{file}, what + ": devices must be at most 1e9"};
    row.bytes = Bytes{static_cast<std::int64_t>(*bytes)};
    row.devices = static_cast<int>(*devices);
    ledger.push_back(std::move(row));
  }
  return ledger;
}

}  // namespace

Json operations_json(const std::vector<OperationMetrics>& all) {
  Json operations = Json::array();
  for (const OperationMetrics& o : all) {
    Json entry{{"name", o.name},
               {"category", o.category},
               {"count", o.count},
               {"busy_s", seconds_of(o.busy)},
               {"exposed_s", seconds_of(o.exposed)},
               {"overlapped_s", seconds_of(o.overlapped)}};
    if (o.flops.count() > 0) entry.set("flops", o.flops.count());
    if (o.extents.m > 0) entry.update(Json{{"m", o.extents.m}, {"n", o.extents.n}, {"k", o.extents.k}});
    if (o.bytes.count() > 0) entry.set("bytes", o.bytes.count());
    if (o.devices > 0) entry.set("devices", o.devices);
    if (o.call != nullptr) entry.set("operations", operations_json(o.call->operations));
    operations.push_back(std::move(entry));
  }
  return operations;
}

StepTimes step_of(const std::vector<OperationMetrics>& operations, Picoseconds makespan) {
  StepTimes step{to_seconds(makespan), {}};
  for (const OperationMetrics& o : operations) step.operations.push_back(step_operation(o));
  return step;
}

StepTimes step_of(const Run& run) {
  StepTimes step{to_seconds(run.metrics.makespan), {}};
  add_with_calls(operations_of(run), 1, step.operations);
  return step;
}

Expected<PredictedStep> read_run_step(std::string_view text, const std::string& file) {
  const simdjson::padded_string padded{text};
  simdjson::dom::parser parser;
  JsonElement json;
  if (parser.parse(padded).get(json) != simdjson::SUCCESS) return *problem_in_json(text, file);
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
  PredictedStep step{{Seconds{*makespan}, {}}, std::max<std::int64_t>(static_cast<std::int64_t>(*blocks), 1), {}, {}};
  if (std::string_view machine; run["machine"].get(machine) == simdjson::SUCCESS) step.machine = machine;
  if (Status read = read_operations(operations, 1, "operations", 0, file, step.block.operations); !read) return read.error();
  auto ledger = read_ledger(run, file);
  if (!ledger) return ledger.error();
  step.collectives = *std::move(ledger);
  return step;
}

}  // namespace podsim
