// What is read from the JSON of a backend_config.
#include <simdjson.h>

#include <charconv>
#include <limits>

#include "workloads/hlo/hlo_statement.hpp"

namespace podsim {

namespace {

/// Protobuf writes 64-bit integers as strings, and 32-bit ones as numbers.
std::optional<std::int64_t> integer_in(const simdjson::simdjson_result<simdjson::dom::element>& field) {
  std::int64_t number = 0;
  std::string_view text;
  if (field.get(number) == simdjson::SUCCESS) return number;
  if (field.get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool read_backend_config(const std::string& json, HloAttributes& attributes) {
  // Most have none of these words, and are only kept.
  const auto says = [&](std::string_view word) { return json.find(word) != std::string::npos; };
  if (!says("known_trip_count") && !says("estimated_cycles") && !says("is_sync")) return true;
  simdjson::dom::parser parser;
  simdjson::dom::element config;
  if (parser.parse(json).get(config) != simdjson::SUCCESS) return false;
  if (const auto count = integer_in(config["known_trip_count"]["n"]); count && *count >= 0) attributes.known_trip_count = count;
  const auto cycles = integer_in(config["window_config"]["estimated_cycles"]);
  if (cycles && *cycles > 0 && *cycles < std::numeric_limits<std::int64_t>::max()) attributes.estimated_cycles = cycles;
  bool sync = false;
  if (config["collective_backend_config"]["is_sync"].get(sync) == simdjson::SUCCESS || config["is_sync"].get(sync) == simdjson::SUCCESS)
    attributes.is_sync = sync;
  return true;
}

}  // namespace podsim
