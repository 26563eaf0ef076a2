// What is read from the JSON of a backend_config.
#include <simdjson.h>

#include <algorithm>
#include <cctype>
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

using Field = simdjson::simdjson_result<simdjson::dom::element>;

std::vector<std::int64_t> integers_in(const Field& field) {
  std::vector<std::int64_t> numbers;
  simdjson::dom::array array;
  if (field.get(array) == simdjson::SUCCESS)
    for (const simdjson::dom::element element : array)
      if (const auto number = integer_in(Field{simdjson::dom::element{element}})) numbers.push_back(*number);
  return numbers;
}

/// A number of a cost_estimate: -1 and 2^63-1 mean that it is not told.
std::int64_t amount_in(const Field& field) {
  const auto amount = integer_in(field);
  return amount && *amount > 0 && *amount < std::int64_t{1} << 62 ? *amount : 0;
}

void read_stated_cost(const Field& estimate, HloAttributes& attributes) {
  if (estimate.error() != simdjson::SUCCESS) return;
  const HloStatedCost cost{amount_in(estimate["flops"]), amount_in(estimate["transcendentals"]), amount_in(estimate["bytes_accessed"]), amount_in(estimate["remote_bytes_transferred"])};
  if (cost != HloStatedCost{}) attributes.stated_cost = cost;
}

void read_product_dimensions(const Field& dimensions, HloAttributes& attributes) {
  if (dimensions.error() != simdjson::SUCCESS) return;
  attributes.lhs_contracting = integers_in(dimensions["lhs_contracting_dimensions"]);
  attributes.rhs_contracting = integers_in(dimensions["rhs_contracting_dimensions"]);
  attributes.lhs_batch = integers_in(dimensions["lhs_batch_dimensions"]);
  attributes.rhs_batch = integers_in(dimensions["rhs_batch_dimensions"]);
}

void read_product_precision(const Field& config, HloAttributes& attributes) {
  simdjson::dom::array operands;
  if (config["operand_precision"].get(operands) == simdjson::SUCCESS)
    for (const simdjson::dom::element element : operands) {
      std::string_view word;
      if (element.get(word) != simdjson::SUCCESS) continue;
      if (word == "HIGHEST") attributes.precision = HloPrecision::highest;
      if (word == "HIGH") attributes.precision = std::max(attributes.precision, HloPrecision::high);
    }
  std::string_view algorithm;
  constexpr std::string_view prefix = "ALG_DOT_";
  if (config["algorithm"].get(algorithm) != simdjson::SUCCESS || !algorithm.starts_with(prefix)) return;
  attributes.algorithm = algorithm.substr(prefix.size() - std::string_view{"DOT_"}.size());
  std::ranges::transform(attributes.algorithm, attributes.algorithm.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
}

}  // namespace

bool read_backend_config(const std::string& json, HloAttributes& attributes) {
  // Most have none of these words, and are only kept.
  const auto says = [&](std::string_view word) { return json.find(word) != std::string::npos; };
  if (!says("known_trip_count") && !says("estimated_cycles") && !says("is_sync") && !says("cost_estimate") && !says("dot_dimension_numbers")) return true;
  simdjson::dom::parser parser;
  simdjson::dom::element config;
  if (parser.parse(json).get(config) != simdjson::SUCCESS) return false;
  if (const auto count = integer_in(config["known_trip_count"]["n"]); count && *count >= 0) attributes.known_trip_count = count;
  const auto cycles = integer_in(config["window_config"]["estimated_cycles"]);
  if (cycles && *cycles > 0 && *cycles < std::numeric_limits<std::int64_t>::max()) attributes.estimated_cycles = cycles;
  read_stated_cost(config["custom_call_config"]["cost_estimate"], attributes);
  read_product_dimensions(config["gemm_backend_config"]["dot_dimension_numbers"], attributes);
  read_product_precision(config["gemm_backend_config"]["precision_config"], attributes);
  const Field attention = config["cudnn_fmha_backend_config"];
  for (const char* const of_queries_and_keys : {"bmm1_dot_dimension_numbers", "bmm2_grad_gemm2_dot_dimension_numbers"}) read_product_dimensions(attention[of_queries_and_keys], attributes);
  bool sync = false;
  if (config["collective_backend_config"]["is_sync"].get(sync) == simdjson::SUCCESS || config["is_sync"].get(sync) == simdjson::SUCCESS)
    attributes.is_sync = sync;
  return true;
}

}  // namespace podsim
