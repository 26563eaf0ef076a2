#include "workloads/sharded/program_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "workloads/sharded/functions.hpp"
#include "workloads/sharded/program_source.hpp"

namespace podsim {

Expected<std::pair<std::string, std::size_t>> split_name(const ProgramText::Entry& entry, std::string_view form) {
  const std::size_t equals = entry.text.find('=');
  const std::string name{trimmed(std::string_view{entry.text}.substr(0, equals))};
  const bool named = !name.empty() && begins_name(name[0]) && std::all_of(name.begin(), name.end(), goes_on_name);
  if (equals == std::string::npos || !named) return Diagnostic{entry.where, fmt::format("expected {}, found {}", form, quoted(entry.text))};
  return std::pair{name, equals + 1};
}

namespace {

constexpr std::size_t most_rank = 6;

/// EXTENTS or EXTENTS,DTYPE
Expected<ProgramInput> parse_shape(std::string_view text, DType dtype, const ProgramText::Entry& entry, std::size_t offset) {
  if (const std::size_t comma = text.find(','); comma != std::string_view::npos) {
    const std::string_view name = trimmed(text.substr(comma + 1));
    const auto own = dtype_named(name);
    // Products are computed, and timed, in one dtype.
    if (!own || (is_real(*own) && is_real(dtype) && *own != dtype))
      return Diagnostic{place_in(entry, offset + comma + 1), fmt::format("expected {}, the dtype of the program, c64 or s32, found {}", name_of(dtype), quoted(name))};
    dtype = *own;
    text = text.substr(0, comma);
  }
  Extents extents;
  std::size_t at = 0;
  for (const std::string& piece : split(text, 'x')) {
    const auto extent = parse_integer(trimmed(piece), 1, most_extent, place_in(entry, offset + at));
    if (!extent) return in_context("expected extents as in 48x24", extent.error());
    extents.push_back(*extent);
    at += piece.size() + 1;
  }
  if (extents.size() > most_rank) return Diagnostic{place_in(entry, offset), fmt::format("expected at most {} dimensions, found {}", most_rank, extents.size())};
  return ProgramInput{std::move(extents), dtype, entry.where, "", {}};
}

}  // namespace

Expected<ProgramInputs> read_inputs(const ProgramText& text) {
  ProgramInputs inputs;
  for (const ProgramText::Entry& entry : text.shapes) {
    const auto named = split_name(entry, "NAME=EXTENTS, as in A=48x24");
    if (!named) return named.error();
    if (function_named(named->first)) return Diagnostic{entry.where, quoted(named->first) + " is a function: expected the name of an array"};
    auto input = parse_shape(std::string_view{entry.text}.substr(named->second), text.dtype, entry, named->second);
    if (!input) return input.error();
    if (!inputs.emplace(named->first, *std::move(input)).second) return Diagnostic{entry.where, "the shape of " + quoted(named->first) + " is given twice"};
  }
  for (const ProgramText::Entry& entry : text.shards) {
    const auto named = split_name(entry, "NAME=SPEC, as in A=x,-");
    if (!named) return named.error();
    std::vector<std::string> all;
    for (const auto& [name, input] : inputs) all.push_back(name);
    const auto found = inputs.find(named->first);
    if (found == inputs.end()) return Diagnostic{entry.where, fmt::format("expected the name of an input, found {}{}", quoted(named->first), did_you_mean(named->first, all))};
    if (found->second.shard_where.column != 0) return Diagnostic{entry.where, "the sharding of " + quoted(named->first) + " is given twice"};
    found->second.shard = entry.text.substr(named->second);
    found->second.shard_where = place_in(entry, named->second);
    if (trimmed(found->second.shard).empty()) return Diagnostic{found->second.shard_where, "expected a sharding, as in x,-, found nothing"};
  }
  return inputs;
}

}  // namespace podsim
