#include "tools/sweep/batch_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/text.hpp"
#include "sim/schedule/schedule.hpp"
#include "tools/sweep/batch.pb.h"
#include "tools/sweep/store_schema.hpp"

namespace podsim {

namespace {

/// Errors: it is no such message, or of another version.
template <class Message>
Status read(std::string_view bytes, const std::string& version, const char* what, Message& message) {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  if (bytes.size() > most || !message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) || !message.IsInitialized())
    return Diagnostic{{}, fmt::format("expected {}, found {} other bytes", what, bytes.size())};
  if (message.version() != version) return Diagnostic{{}, fmt::format("expected {} of podsim {}, found podsim {}", what, version, message.version())};
  return success();
}

Diagnostic other_build(const char* what) { return {{}, fmt::format("the {} is by another build of podsim", what)}; }

void write_value(const StoreValue& value, proto::SweepBatchResults::Value& message) {
  std::visit(Overloaded{[](std::monostate) {}, [&](const std::string& text) { message.set_text(text); },
                        [&](std::int64_t number) { message.set_integer(number); }, [&](double number) { message.set_real(number); }},
             value);
}

StoreValue read_value(const proto::SweepBatchResults::Value& message) {
  switch (message.value_case()) {
    case proto::SweepBatchResults::Value::kText: return message.text();
    case proto::SweepBatchResults::Value::kInteger: return std::int64_t{message.integer()};
    case proto::SweepBatchResults::Value::kReal: return message.real();
    case proto::SweepBatchResults::Value::VALUE_NOT_SET: break;
  }
  return {};
}

void write_outcome(const PointOutcome& outcome, proto::SweepBatchResults::Outcome& message) {
  message.set_position(outcome.position);
  if (!outcome.reason.empty()) return message.set_reason(outcome.reason);
  message.set_key(outcome.key);
  message.set_algorithm(outcome.algorithm);
  message.set_dataflow(outcome.dataflow);
  if (outcome.slice_count) message.set_slice_count(*outcome.slice_count);
  message.set_padding(outcome.padding);
}

PointOutcome read_outcome(const proto::SweepBatchResults::Outcome& message) {
  PointOutcome outcome{message.position(), message.key(), message.reason(), message.algorithm(), message.dataflow(), std::nullopt, message.padding()};
  if (message.has_slice_count()) outcome.slice_count = message.slice_count();
  return outcome;
}

}  // namespace

std::string write_batch(const std::vector<BatchPoint>& points, const std::string& version) {
  proto::SweepBatch batch;
  batch.set_version(version);
  for (const BatchPoint& given : points) {
    auto& point = *batch.add_point();
    point.set_position(given.position);
    point.set_input_key(given.input_key);
    for (std::size_t f = 0; f < given.inputs.texts.size(); ++f) {
      if (given.inputs.texts[f].empty()) continue;
      auto& field = *point.add_field();
      field.set_name(std::string{scenario_fields()[f].name});
      field.set_value(given.inputs.texts[f]);
    }
    for (const auto& [path, value] : given.inputs.sets) {
      auto& set = *point.add_set();
      set.set_name(path);
      set.set_value(value);
    }
  }
  return batch.SerializeAsString();
}

Expected<std::vector<BatchPoint>> read_batch(std::string_view message, const std::string& version) {
  proto::SweepBatch batch;
  if (auto ok = read(message, version, "a batch of points", batch); !ok) return ok.error();
  std::vector<BatchPoint> points;
  for (const auto& given : batch.point()) {
    BatchPoint point{given.position(), given.input_key(), {}};
    for (const auto& field : given.field()) {
      if (scenario_field(field.name()) == nullptr) return other_build("batch");
      point.inputs.texts[sweep_field(field.name())] = field.value();
    }
    for (const auto& set : given.set()) point.inputs.sets.emplace_back(set.name(), set.value());
    points.push_back(std::move(point));
  }
  return points;
}

std::string write_results(const BatchResults& results, const std::string& version) {
  proto::SweepBatchResults message;
  message.set_version(version);
  message.set_seconds(results.seconds);
  for (const RunColumn& column : run_columns()) message.add_column(column.name);
  for (const FinishedWork& work : results.work) {
    auto& told = *message.add_work();
    if (work.run) {
      told.mutable_run()->set_key(work.run->key);
      for (const StoreValue& value : work.run->values) write_value(value, *told.mutable_run()->add_value());
    }
    for (const PointOutcome& point : work.points) write_outcome(point, *told.add_point());
  }
  for (const auto& [position, why] : results.failures.first) {
    auto& failure = *message.add_failure();
    failure.set_position(position);
    failure.set_why(why);
  }
  message.set_failed(results.failures.count);
  return message.SerializeAsString();
}

Expected<BatchResults> read_results(std::string_view bytes, const std::string& version) {
  proto::SweepBatchResults message;
  if (auto ok = read(bytes, version, "the results of a batch", message); !ok) return ok.error();
  const auto columns = run_columns();
  const auto is_same = [](const RunColumn& column, const std::string& name) { return name == column.name; };
  if (!std::equal(columns.begin(), columns.end(), message.column().begin(), message.column().end(), is_same)) return other_build("result");
  BatchResults results;
  results.seconds = message.seconds();
  for (const auto& told : message.work()) {
    FinishedWork work;
    if (told.has_run()) {
      if (static_cast<std::size_t>(told.run().value_size()) != columns.size()) return other_build("result");
      work.run.emplace(StoredRun{told.run().key(), {}});
      for (const auto& value : told.run().value()) work.run->values.push_back(read_value(value));
    }
    for (const auto& point : told.point()) {
      if (point.key().empty() == point.reason().empty()) return other_build("result");
      work.points.push_back(read_outcome(point));
    }
    results.work.push_back(std::move(work));
  }
  for (const auto& failure : message.failure()) results.failures.first.emplace(failure.position(), failure.why());
  results.failures.count = std::max<std::size_t>(message.failed(), results.failures.first.size());
  return results;
}

}  // namespace podsim
