#include <fmt/format.h>

#include "sim/base/csv.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/units.hpp"
#include "workloads/hlo/combined_collectives.hpp"
#include "workloads/hlo/prefetched_gathers.hpp"
#include "workloads/hlo/split_collectives.hpp"
#include "workloads/hlo/unpartitioned.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_trips = std::int64_t{1} << 53;
constexpr int most_branches = 1 << 20;
constexpr Bytes most_count_bytes{std::int64_t{1} << 26};

/// NAME and what stands behind the last "=".
Expected<std::pair<std::string, std::string>> named_value(const FieldText& field, std::string_view expected) {
  const std::size_t equals = field.text.rfind('=');
  if (equals == std::string::npos || equals == 0) return Diagnostic{field.where, fmt::format("expected {}, found {}", expected, quoted(field.text))};
  return std::pair{field.text.substr(0, equals), field.text.substr(equals + 1)};
}

template <class Map, class Value>
Status insert_once(Map& map, const std::string& key, Value value, const FieldText& field) {
  if (!map.emplace(key, std::move(value)).second) return Diagnostic{field.where, fmt::format("expected {} at most once", quoted(key))};
  return success();
}

Expected<HloCustomCallCost> read_cost(const std::string& text, const SourceLocation& where) {
  const std::size_t comma = text.find(',');
  const auto flops = parse_flops(text.substr(0, comma), where);
  if (!flops) return flops.error();
  if (flops->count() > 0x1p62) return Diagnostic{where, fmt::format("expected at most 2^62 FLOPs, found {}", quoted(text))};
  HloCustomCallCost cost{static_cast<std::int64_t>(flops->count()), std::nullopt};
  if (comma == std::string::npos) return cost;
  const auto bytes = parse_bytes(text.substr(comma + 1), where);
  if (!bytes) return bytes.error();
  cost.bytes = *bytes;
  return cost;
}

/// A file of rows of whole numbers, as many in each as there are rows.
Expected<HloRaggedCounts> read_ragged_counts(const std::string& path, const FieldText& field) {
  const auto text = read_file(path, {most_count_bytes});
  if (!text) return Diagnostic{field.where, text.error().message};
  CsvReader reader{*text, path};
  HloRaggedCounts counts;
  counts.where = {path, 1, 1};
  while (true) {
    auto row = reader.next();
    if (!row) return row.error();
    if (!*row) break;
    std::vector<std::int64_t>& numbers = counts.rows.emplace_back();
    for (const CsvField& number : (*row)->fields) {
      const auto count = parse_integer(number.text, 0, most_trips, number.where);
      if (!count) return count.error();
      numbers.push_back(*count);
    }
    if (numbers.size() != counts.rows.front().size()) return Diagnostic{(*row)->where, fmt::format("expected {} numbers, as the first row has, found {}", counts.rows.front().size(), numbers.size())};
  }
  if (counts.rows.empty() || counts.rows.size() != counts.rows.front().size())
    return Diagnostic{counts.where, fmt::format("expected as many rows as numbers in a row ({}): the rows that each device sends to each; found {}", counts.rows.empty() ? 0 : counts.rows.front().size(), counts.rows.size())};
  return counts;
}

bool rewrites(const Fields& fields, std::string_view word) {
  return std::ranges::any_of(fields.texts("rewrite"), [&](const FieldText& rewrite) { return rewrite.text == word; });
}

/// The rewrites that make another module of it; the others are made while it is written as a schedule.
Status rewrite_module(const Fields& fields, HloSpec& spec) {
  if (fields.has("combine_threshold") && !rewrites(fields, "combine")) return Diagnostic{fields.where("combine_threshold"), "belongs to `rewrite` combine"};
  if (rewrites(fields, "prefetch") || rewrites(fields, "split") || rewrites(fields, "combine")) spec.original = spec.module;
  if (rewrites(fields, "prefetch")) {
    PrefetchedModule prefetched = prefetch_gathers(*spec.module);
    spec.rewritten.push_back(prefetched.gathers == 0 ? fmt::format("no all-gather of a loop can begin in the trip before{} (`rewrite` prefetch)", prefetched.others > 0 ? fmt::format(": {} need what that computes", prefetched.others) : "")
                                                     : fmt::format("{} all-gathers of {} loops begin in the trip before{} (`rewrite` prefetch)", prefetched.gathers, prefetched.loops,
                                                                   prefetched.others > 0 ? fmt::format(", {} others need what that computes", prefetched.others) : ""));
    spec.module = std::make_shared<const HloModule>(std::move(prefetched.module));
  }
  if (rewrites(fields, "split")) {
    SplitModule split = split_collectives(*spec.module);
    spec.rewritten.push_back(split.before == 0 ? "no collective has several arrays (`rewrite` split)" : fmt::format("{} of several arrays run as {} of one (`rewrite` split)", counted(split.before, "collective"), split.after));
    spec.module = std::make_shared<const HloModule>(std::move(split.module));
  }
  if (!rewrites(fields, "combine")) return success();
  const auto threshold = parse_bytes(fields.text("combine_threshold"), fields.where("combine_threshold"));
  if (!threshold) return threshold.error();
  CombinedModule combined = combine_collectives(*spec.module, *threshold);
  spec.rewritten.push_back(combined.after == 0 ? fmt::format("no two collectives can be one of up to {} (`rewrite` combine)", to_text(*threshold))
                                               : fmt::format("{} collectives run as {}, each of up to {} (`rewrite` combine)", combined.before, combined.after, to_text(*threshold)));
  spec.module = std::make_shared<const HloModule>(std::move(combined.module));
  return success();
}

}  // namespace

Expected<double> parse_clock(const std::string& text, const SourceLocation& where) {
  constexpr std::array<std::pair<std::string_view, double>, 3> units{{{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}}};
  for (const auto& [unit, hertz] : units) {
    if (!text.ends_with(unit)) continue;
    std::string number = text.substr(0, text.size() - unit.size());
    while (!number.empty() && number.back() == ' ') number.pop_back();
    const auto value = parse_number(number, where);
    if (value && *value > 0) return *value * hertz;
  }
  return Diagnostic{where, "expected a clock, as 940MHz (kHz, MHz, GHz), found " + quoted(text)};
}

Expected<HloCountOptions> read_hlo_counts(const Fields& fields) {
  HloCountOptions counting;
  for (const FieldText& field : fields.texts("trip_count")) {
    const auto named = named_value(field, "NAME=N");
    if (!named) return named.error();
    const auto count = parse_integer(named->second, 0, most_trips, field.where);
    if (!count) return count.error();
    if (auto ok = insert_once(counting.trip_counts, named->first, *count, field); !ok) return ok.error();
  }
  for (const FieldText& field : fields.texts("branch")) {
    const auto named = named_value(field, "NAME=i");
    if (!named) return named.error();
    const auto branch = parse_integer(named->second, 0, most_branches, field.where);
    if (!branch) return branch.error();
    if (auto ok = insert_once(counting.branches, named->first, static_cast<int>(*branch), field); !ok) return ok.error();
  }
  for (const FieldText& field : fields.texts("custom_call")) {
    const auto named = named_value(field, "TARGET=FLOPS[,BYTES]");
    if (!named) return named.error();
    const auto cost = read_cost(named->second, field.where);
    if (!cost) return cost.error();
    if (auto ok = insert_once(counting.custom_calls, named->first, *cost, field); !ok) return ok.error();
  }
  for (const FieldText& field : fields.texts("ragged")) {
    const std::size_t equals = field.text.find('=');
    const std::string name = equals == std::string::npos ? "" : field.text.substr(0, equals);
    auto counts = read_ragged_counts(field.text.substr(equals == std::string::npos ? 0 : equals + 1), field);
    if (!counts) return counts.error();
    if (auto ok = insert_once(counting.ragged, name, *std::move(counts), field); !ok) return ok.error();
  }
  return counting;
}

Expected<HloSpec> read_hlo_options(const Fields& fields) {
  HloSpec spec;
  auto counts = read_hlo_counts(fields);
  if (!counts) return counts.error();
  spec.options.counts = *std::move(counts);
  const auto given = [&](const char* name) { return fields.has(name) ? fields.word(name) : Expected<std::string>{std::string{}}; };
  const auto order = given("hlo_schedule"), cost = fields.word("hlo_cost");
  for (const auto* word : {&order, &cost})
    if (!*word) return word->error();
  if (!order->empty()) spec.options.order = *order == "text" ? HloScheduleOptions::Order::text : HloScheduleOptions::Order::overlap;
  for (const FieldText& rewrite : fields.texts("rewrite")) {
    const std::vector<std::string> words = words_of(*scenario_field("rewrite"));
    if (std::ranges::find(words, rewrite.text) == words.end()) return wrong_word("rewrite", rewrite.text, rewrite.where);
    spec.options.rewrite_reduce_scatter |= rewrite.text == "reduce-scatter";
    spec.options.rewrite_bf16_reductions |= rewrite.text == "bf16-reductions";
  }
  spec.estimated_cycles = *cost == "estimated-cycles";
  if (fields.has("clock") && !spec.estimated_cycles) return Diagnostic{fields.where("clock"), "belongs to `hlo_cost` estimated-cycles"};
  if (fields.has("clock")) {
    const auto clock = parse_clock(fields.text("clock"), fields.where("clock"));
    if (!clock) return clock.error();
    spec.options.clock_hz = *clock;
  }
  if (fields.has("collectives")) {
    const auto policy = parse_policy(fields.text("collectives"), fields.where("collectives"));
    if (!policy) return policy.error();
    spec.collectives = *policy;
  }
  spec.equals = read_equals(fields);
  for (const char* name : {"shape", "shard", "out"})
    if (fields.has(name) && !spec.equals) return Diagnostic{fields.where(name), "belongs to `equals`"};
  return spec;
}

Expected<HloSpec> read_hlo_problem(const Fields& fields) {
  auto options = read_hlo_options(fields);
  if (!options) return options.error();
  HloSpec spec = *std::move(options);
  auto known = module_named(fields);
  if (!known) return known.error();
  spec.module = std::move(known->module);
  spec.assumed = std::move(known->assumed);
  spec.order_given = fields.has("mesh_order") || fields.has("devices");
  if (auto ok = check_partitioned(*spec.module); !ok) return ok.error();
  if (auto ok = rewrite_module(fields, spec); !ok) return ok.error();
  return spec;
}

}  // namespace podsim
