#include "topologies/slice.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/units.hpp"

namespace podsim {
namespace {

constexpr std::int64_t most_chips = std::int64_t{1} << 24;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<int> sorted(std::vector<int> extents) {
  std::sort(extents.begin(), extents.end());
  return extents;
}

std::vector<int> without_ones(std::vector<int> extents) {
  std::erase(extents, 1);
  return extents;
}

bool is_full_torus(const SliceRules& rules, const std::vector<int>& extents) {
  if (rules.cube < 1 || extents.size() != rules.largest.size()) return false;
  if (std::any_of(extents.begin(), extents.end(), [&](int extent) { return extent % rules.cube != 0; })) return false;
  const std::vector<int> ours = sorted(extents), largest = sorted(rules.largest);
  return std::equal(ours.begin(), ours.end(), largest.begin(), std::less_equal<>{});
}

bool is_listed_as_open(const SliceRules& rules, const std::vector<int>& extents) {
  const std::vector<int> ours = sorted(without_ones(extents));
  return std::any_of(rules.open.begin(), rules.open.end(), [&](const std::vector<int>& open) { return sorted(without_ones(open)) == ours; });
}

/// What the vendor builds.
std::vector<bool> automatic_wraps(const Machine& machine, const Slice& slice) {
  const SliceRules& rules = machine.slices;
  std::vector<bool> wraps;
  for (const int extent : slice.extents) {
    const bool spans_the_pod = rules.cube > 0 && std::find(rules.largest.begin(), rules.largest.end(), extent) != rules.largest.end();
    wraps.push_back(rules.any_shape || slice.hypothetical ? extent > 2 : is_full_torus(rules, slice.extents) || spans_the_pod);
  }
  return wraps;
}

std::string dimension_names(const Slice& slice) {
  std::string names;
  for (std::size_t d = 0; d < slice.extents.size(); ++d) names += fmt::format("{}{}", d == 0 ? "" : ",", dimension_name(static_cast<int>(d)));
  return names;
}

}  // namespace

std::string to_text(const Slice& slice) { return fmt::format("{}", fmt::join(slice.extents, "x")); }

Expected<Slice> parse_slice(std::string_view text, const Machine& machine, const SourceLocation& where) {
  const std::vector<std::string_view> parts = split(text, 'x');
  if (parts.size() > max_dimensions)
    return Diagnostic{where, fmt::format("a slice has at most {} dimensions, got {} in {}", max_dimensions, parts.size(), quoted(text))};
  Slice slice;
  std::int64_t chips = 1;
  for (const std::string_view part : parts) {
    const Expected<std::int64_t> extent =
        parse_integer(part, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), where);
    if (!extent) return Diagnostic{where, fmt::format("a slice is written as chips per dimension, such as 16x16 or 4x4x8, got {}", quoted(text))};
    if (*extent < 1) return Diagnostic{where, fmt::format("every extent of a slice must be at least 1, got {} in {}", *extent, quoted(text))};
    if (*extent > most_chips / chips) return Diagnostic{where, fmt::format("a slice has at most {} chips, got more: {}", most_chips, quoted(text))};
    chips *= *extent;
    slice.extents.push_back(static_cast<int>(*extent));
  }
  const SliceRules& rules = machine.slices;
  slice.hypothetical = !rules.any_shape && !is_full_torus(rules, slice.extents) && !is_listed_as_open(rules, slice.extents);
  return slice;
}

Expected<Wrap> parse_wrap(std::string_view text, const SourceLocation& where) {
  if (text == "auto") return Wrap{};
  if (text == "all") return Wrap{Wrap::Rule::all, {}};
  if (text == "none") return Wrap{Wrap::Rule::none, {}};
  Wrap wrap{Wrap::Rule::named, {}};
  for (const std::string_view name : split(text, ',')) {
    int dimension = 0;
    while (dimension < max_dimensions && name != std::string_view{std::string(1, dimension_name(dimension))}) ++dimension;
    if (dimension == max_dimensions)
      return Diagnostic{where, fmt::format("expected auto, all, none, or dimensions such as x,y (of x, y, z, w), got {}", quoted(text))};
    if (std::find(wrap.dimensions.begin(), wrap.dimensions.end(), dimension) != wrap.dimensions.end())
      return Diagnostic{where, fmt::format("dimension {} is named twice in {}", name, quoted(text))};
    wrap.dimensions.push_back(dimension);
  }
  return wrap;
}

Expected<std::vector<bool>> wraps_of(const Machine& machine, const Slice& slice, const Wrap& wrap) {
  std::vector<bool> wraps(slice.extents.size(), wrap.rule == Wrap::Rule::all);
  if (wrap.rule == Wrap::Rule::automatic) wraps = automatic_wraps(machine, slice);
  if (wrap.rule == Wrap::Rule::named) {
    for (const int dimension : wrap.dimensions) {
      const auto d = static_cast<std::size_t>(dimension);
      if (d >= wraps.size())
        return Diagnostic{{},
                          fmt::format("dimension {} cannot wrap: the slice {} has {} dimension{} ({})", dimension_name(dimension), to_text(slice),
                                      wraps.size(), wraps.size() == 1 ? "" : "s", dimension_names(slice))};
      wraps[d] = true;
    }
  }
  return wraps;
}

bool is_hypothetical(const Machine& machine, const Slice& slice, const Wrap& wrap) {
  if (machine.slices.any_shape) return false;
  const Expected<std::vector<bool>> asked = wraps_of(machine, slice, wrap);
  if (slice.hypothetical || !asked) return true;
  const std::vector<bool> built = automatic_wraps(machine, slice);
  for (std::size_t d = 0; d < built.size(); ++d)
    if (slice.extents[d] > 2 && built[d] != (*asked)[d]) return true;
  return false;
}

Expected<Grid> build_grid(const Machine& machine, const Slice& slice, const Wrap& wrap) {
  const Expected<std::vector<bool>> wraps = wraps_of(machine, slice, wrap);
  if (!wraps) return wraps.error();
  std::vector<GridDimension> dimensions;
  // Grid::make refuses more dimensions than the machine has links for.
  for (std::size_t d = 0; d < slice.extents.size(); ++d)
    dimensions.push_back({slice.extents[d], (*wraps)[d], machine.link[std::min(d, machine.link.size() - 1)]});
  return Grid::make(std::move(dimensions), machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth);
}

}  // namespace podsim
