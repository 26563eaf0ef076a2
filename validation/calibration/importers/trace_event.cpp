#include "validation/calibration/importers/trace_event.hpp"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

namespace json = simdjson::ondemand;

/// jax.profiler writes the numbers in args as texts.
double number_in(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) ? value : 0;
}

std::int64_t whole_number(double value) {
  constexpr double most = 9e15;
  return value >= 0 && value < most ? static_cast<std::int64_t>(value) : -1;
}

void take_text(std::string_view key, std::string_view text, ChromeTraceEvent& event) {
  if (key == "name") event.args_name = text;
  if (key == "long_name") event.long_name = text;
  if (key == "hlo_category") event.hlo_category = text;
  if (key == "tf_op") event.provenance = text;
  if (key == "hlo_op") event.hlo_op = text;
  if (key == "Collective name") event.collective = text;
  if (key == "dtype") event.dtype = text;
}

void take_number(std::string_view key, double value, ChromeTraceEvent& event) {
  if (key == "model_flops") event.flops = value;
  if (key == "device_duration_ps") event.device_duration_ps = value;
  if (key == "cuda_graph_node_id") event.graph_node = value;
  if (key == "correlation_id") event.has_correlation = true;
  if (key == "External id" || key == "external id") event.external = whole_number(value);
  if (key == "correlation") event.correlation = whole_number(value);
  if (key == "device") event.device = whole_number(value);
  if (key == "stream") event.stream = whole_number(value);
  if (key == "In msg nelems") event.elements_in = value;
  if (key == "Group size") event.group = value;
}

simdjson::error_code read_args(json::value args, ChromeTraceEvent& event) {
  json::object fields;
  if (const auto error = args.get_object().get(fields)) return error;
  for (auto field : fields) {
    std::string_view key, text;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value value;
    if (const auto error = field.value().get(value)) return error;
    json::json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type == json::json_type::string) {
      if (const auto error = value.get_string().get(text)) return error;
      take_text(key, text, event);
      take_number(key, number_in(text), event);
    } else if (type == json::json_type::number) {
      double number = 0;
      if (value.get_double().get(number) == simdjson::SUCCESS) take_number(key, number, event);  // integers beyond 64 bits are none that matter
    }
  }
  return simdjson::SUCCESS;
}

}  // namespace

struct TraceEventParser::State {
  json::parser parser;
  std::map<std::string, std::int64_t, std::less<>> numbers;  // of texts

  simdjson::error_code read_number(json::value value, std::int64_t& number) {
    json::json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != json::json_type::string) return value.get_int64().get(number);
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return error;
    const auto [known, digits] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (digits == std::errc{} && known == text.data() + text.size()) return simdjson::SUCCESS;
    number = numbers.try_emplace(std::string{text}, std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(numbers.size())).first->second;
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_field(std::string_view key, json::value value, ChromeTraceEvent& event) {
    const auto read_time = [&value](std::optional<double>& time) { return value.get_double().get(time.emplace()); };
    if (key == "ph") return value.get_string().get(event.phase);
    if (key == "name") return value.get_string().get(event.name);
    if (key == "cat") return value.get_string().get(event.kind);
    if (key == "pid") return read_number(value, event.pid);
    if (key == "tid") return read_number(value, event.tid);
    if (key == "ts") return read_time(event.begin_us);
    if (key == "dur") return read_time(event.duration_us);
    if (key == "args") return read_args(value, event);
    return simdjson::SUCCESS;
  }
};

TraceEventParser::TraceEventParser() : state_{std::make_unique<State>()} {}
TraceEventParser::~TraceEventParser() = default;

Expected<ChromeTraceEvent> TraceEventParser::parse(std::string& text, const SourceLocation& where) {
  const auto broken = [&where](std::string_view key, simdjson::error_code error) {
    const std::string field = key.empty() ? std::string{} : "its field " + quoted(key) + ": ";
    return Diagnostic{where, "this event cannot be read: " + field + simdjson::error_message(error)};
  };
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  json::document document;
  if (const auto error = state_->parser.iterate(text.data(), text.size(), text.capacity()).get(document)) return broken({}, error);
  json::object fields;
  if (const auto error = document.get_object().get(fields)) return broken({}, error);
  ChromeTraceEvent event;
  for (auto field : fields) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return broken({}, error);
    json::value value;
    if (const auto error = field.value().get(value)) return broken(key, error);
    if (const auto error = state_->read_field(key, value, event)) return broken(key, error);
  }
  return event;
}

}  // namespace podsim
