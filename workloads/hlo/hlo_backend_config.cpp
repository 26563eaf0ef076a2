// What is read from the JSON of a backend_config.
#include <simdjson.h>

#include <algorithm>
#include <bit>
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

/// The names of the fields differ between the libraries.
struct LibraryFields {
  const char *activation, *result_scale, *result_scale_imaginary, *side_scale, *leaky_slope;
};
constexpr LibraryFields of_cudnn{"activation_mode", "conv_result_scale", "", "side_input_scale", "leakyrelu_alpha"}, of_cublas{"epilogue", "alpha_real", "alpha_imag", "beta", ""};

void read_library_product(const Field& config, const LibraryFields& fields, HloAttributes& attributes) {
  if (config.error() != simdjson::SUCCESS) return;
  HloLibraryProduct product;
  std::string_view activation;
  if (config[fields.activation].get(activation) == simdjson::SUCCESS) product.activation = activation;
  const auto number = [&](const char* name, double& value) {
    double found = 0;
    if (config[name].get(found) == simdjson::SUCCESS) value = found;
  };
  number(fields.result_scale, product.result_scale);
  number(fields.result_scale_imaginary, product.result_scale_imaginary);
  number(fields.side_scale, product.side_scale);
  number(fields.leaky_slope, product.leaky_slope);
  attributes.library_product = std::move(product);
}

/// The whole number behind `word` in a text, and the text behind it: ("colors:2 phases:2", "colors:") is 2.
std::optional<int> number_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  int number = 0;
  const char* const begin = text.data() + at + word.size();
  const auto [end, status] = std::from_chars(begin, text.data() + text.size(), number);
  return status == std::errc{} && number > 0 ? std::optional{number} : std::nullopt;
}

/// "3DAllGatherOnMajorDim" goes through three dimensions of the torus; rings of them are not told. Of one dimension the machine knows as much, but where
/// the devices are put in another order ("has_reordering_map: true"): that is one ring of all of them.
void read_emitter(const Field& algorithm, HloAttributes& attributes) {
  std::string_view emitter, debug;
  if (algorithm["emitter"].get(emitter) != simdjson::SUCCESS || emitter.find("DAllGather") == std::string_view::npos) return;
  const auto dimensions = number_behind(emitter, "");
  if (dimensions && *dimensions > 1) attributes.strategy = HloStrategy{std::string{emitter}, *dimensions, {}};
  if (dimensions != 1 || algorithm["debug"].get(debug) != simdjson::SUCCESS || debug.find("has_reordering_map: true") == std::string_view::npos) return;
  if (const auto devices = number_behind(debug, "group_size = ")) attributes.strategy = HloStrategy{std::string{emitter}, 0, {*devices}};
}

/// "2 2 4" as numbers from 1 on; nullopt where it is something else.
std::optional<std::vector<int>> rings_in(std::string_view list) {
  std::vector<int> rings;
  while (!list.empty()) {
    const auto ring = number_behind(list, "");
    if (!ring) return std::nullopt;
    rings.push_back(*ring);
    const std::size_t space = list.find(' ');
    list = space == std::string_view::npos ? std::string_view{} : list.substr(space + 1);
  }
  return rings;
}

/// Of "StrategyND{colors:2 phases:3 cores:{2 2 4},{2 2 4} ...}"; nothing where the text has another form: then it is not known. In all 526 that libtpu wrote
/// into the modules seen here the name is that of the strategy, and there is a list for each colour with a ring for each phase.
void read_strategy(const Field& algorithm, HloAttributes& attributes) {
  std::string_view name, text;
  if (algorithm["strategy"].get(name) != simdjson::SUCCESS || algorithm["debug"].get(text) != simdjson::SUCCESS) return;
  const auto colors = number_behind(text, "colors:"), phases = number_behind(text, "phases:");
  constexpr std::string_view word = "cores:{";
  const std::size_t cores = text.find(word), brace = text.find('{');
  if (!colors || !phases || cores == std::string_view::npos || !text.substr(brace + 1).starts_with("colors:")) return;
  const std::string_view described = text.substr(0, brace).substr(std::min(text.find_first_not_of(" \n"), brace));
  if (described != name) return;
  std::vector<std::vector<int>> lists;
  for (std::size_t at = cores + word.size() - 1; at < text.size() && text[at] == '{';) {
    const std::size_t end = text.find('}', at);
    auto rings = rings_in(text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1));
    if (!rings) return;
    lists.push_back(*std::move(rings));
    at = end == std::string_view::npos ? text.size() : text.substr(end + 1).starts_with(',') ? end + 2 : text.size();
  }
  const auto has_each_phase = [&](const std::vector<int>& rings) { return static_cast<int>(rings.size()) == *phases; };
  if (static_cast<int>(lists.size()) != *colors || !std::ranges::all_of(lists, has_each_phase)) return;
  attributes.strategy = HloStrategy{std::string{name}, *colors, std::move(lists.front())};
}

/// {"all_gather_offload_config": {"ici_strategy_config": {"color_strategies": [{"phase_rings": [{"core_count": "4"}]}]}}}: the phases of the first colour.
void read_offloaded_strategy(const Field& offload, HloAttributes& attributes) {
  simdjson::dom::object kinds;
  if (offload.get(kinds) != simdjson::SUCCESS) return;
  for (const auto& [kind, config] : kinds) {
    simdjson::dom::array colors, phases;
    if (Field{simdjson::dom::element{config}}["ici_strategy_config"]["color_strategies"].get(colors) != simdjson::SUCCESS || colors.size() == 0) continue;
    if (Field{colors.at(0)}["phase_rings"].get(phases) != simdjson::SUCCESS) continue;
    HloStrategy strategy{"SparseCore", static_cast<int>(colors.size()), {}};
    for (const simdjson::dom::element phase : phases)
      if (const auto ring = integer_in(phase["core_count"]); ring && *ring > 0 && *ring < std::numeric_limits<int>::max()) strategy.rings.push_back(static_cast<int>(*ring));
    if (!strategy.rings.empty() && strategy.rings.size() == phases.size()) attributes.strategy = std::move(strategy);
  }
}

/// {"index_known_bits": [{"zeroes": "4294966272", ..}]}, one of each index: what divides it follows from its lowest bits that are zero.
void read_index_multiples(const Field& indices, HloAttributes& attributes) {
  constexpr int most_bits = 62;
  simdjson::dom::array known;
  if (indices["index_known_bits"].get(known) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element element : known) {
    const auto zeroes = integer_in(Field{simdjson::dom::element{element}}["zeroes"]);
    attributes.index_multiples.push_back(std::int64_t{1} << std::min(most_bits, std::countr_one(static_cast<std::uint64_t>(zeroes.value_or(0)))));
  }
}

bool is_told(const Field& field) { return field.error() == simdjson::SUCCESS && !field.is_null(); }
bool is_amount(const Field& field) {
  const auto number = integer_in(field);
  return number && *number >= 0;
}

}  // namespace

HloConfigProblem read_backend_config(const std::string& json, HloAttributes& attributes) {
  // Most have none of these words, and are only kept.
  const auto says = [&](std::string_view word) { return json.find(word) != std::string::npos; };
  if (!says("known_trip_count") && !says("estimated_cycles") && !says("is_sync") && !says("cost_estimate") && !says("dot_dimension_numbers") && !says("\"strategy\"") && !says("DAllGather") && !says("cudnn_conv_backend_config") && !says("gemm_backend_config") &&
      !says("ici_strategy_config") && !says("index_known_bits"))
    return {};
  simdjson::dom::parser parser;
  simdjson::dom::element config;
  if (parser.parse(json).get(config) != simdjson::SUCCESS) return {.is_json = false};
  const Field trips = config["known_trip_count"], counted = trips["n"];
  if (is_told(trips) && (!trips.is_object() || (is_told(counted) && !is_amount(counted)))) return {.field = "known_trip_count", .wanted = "known_trip_count to have a whole number of trips as n"};
  if (is_told(counted)) attributes.known_trip_count = integer_in(counted);
  const Field estimate = config["window_config"]["estimated_cycles"];
  if (is_told(estimate) && !is_amount(estimate)) return {.field = "estimated_cycles", .wanted = "estimated_cycles to be a whole number"};
  const auto cycles = integer_in(estimate);
  if (cycles && *cycles > 0 && *cycles < std::numeric_limits<std::int64_t>::max()) attributes.estimated_cycles = cycles;
  read_stated_cost(config["custom_call_config"]["cost_estimate"], attributes);
  read_product_dimensions(config["gemm_backend_config"]["dot_dimension_numbers"], attributes);
  read_product_precision(config["gemm_backend_config"]["precision_config"], attributes);
  const Field attention = config["cudnn_fmha_backend_config"];
  for (const char* const of_queries_and_keys : {"bmm1_dot_dimension_numbers", "bmm2_grad_gemm2_dot_dimension_numbers"}) read_product_dimensions(attention[of_queries_and_keys], attributes);
  read_library_product(config["cudnn_conv_backend_config"], of_cudnn, attributes);
  read_library_product(config["gemm_backend_config"], of_cublas, attributes);
  read_index_multiples(config["indices_config"], attributes);
  read_emitter(config["collective_algorithm_config"], attributes);
  read_strategy(config["collective_algorithm_config"], attributes);
  read_offloaded_strategy(config["collective_offload_config"], attributes);
  bool sync = false;
  if (config["collective_backend_config"]["is_sync"].get(sync) == simdjson::SUCCESS || config["is_sync"].get(sync) == simdjson::SUCCESS)
    attributes.is_sync = sync;
  return {};
}

}  // namespace podsim
