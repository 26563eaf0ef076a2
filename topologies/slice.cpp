#include "topologies/slice.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "topologies/cloud_names.hpp"

namespace podsim {
namespace {

constexpr std::int64_t most_chips = std::int64_t{1} << 24;

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

bool is_offered(const Machine& machine, const std::vector<int>& extents) {
  const SliceRules& rules = machine.slices;
  if (rules.any_shape) return true;
  if (machine.interconnect == Interconnect::rail)
    return std::equal(extents.begin(), extents.end(), rules.largest.begin(), rules.largest.end(), std::less_equal<>{});
  return is_full_torus(rules, extents) || is_listed_as_open(rules, extents);
}

/// Calls `found` with all that begin with `extents` and go on with increasing multiples of `step`, `dimensions` in all, of `chips` together.
template <class Found>
void for_each_factorisation(std::int64_t chips, int step, std::size_t dimensions, std::vector<int>& extents, const Found& found) {
  const int least = extents.empty() ? step : extents.back();
  if (extents.size() + 1 == dimensions) {
    if (chips < least || chips % step != 0) return;
    extents.push_back(static_cast<int>(chips));
    found(extents);
    extents.pop_back();
    return;
  }
  for (int extent = least; extent <= chips / extent; extent += step) {
    if (chips % extent != 0) continue;
    extents.push_back(extent);
    for_each_factorisation(chips / extent, step, dimensions, extents, found);
    extents.pop_back();
  }
}

/// The vendor's default first; see offered_slices().
void sort_offered(const Machine& machine, std::vector<Slice>& slices) {
  const bool rail = machine.interconnect == Interconnect::rail;
  std::sort(slices.begin(), slices.end(), [&](const Slice& a, const Slice& b) {
    const auto key = [&](const Slice& s) { return std::pair(rail ? 0 : std::accumulate(s.extents.begin(), s.extents.end(), 0), s.extents); };
    return key(a) < key(b);
  });
}

/// All numbers of chips that are offered, increasing. Not for machines that take any shape.
std::vector<std::int64_t> offered_counts(const Machine& machine) {
  const SliceRules& rules = machine.slices;
  std::vector<std::int64_t> counts;
  for (const std::vector<int>& open : rules.open) counts.push_back(chips_of({open, false}));
  // Every product of one extent per dimension: `step` and its multiples.
  const int step = machine.interconnect == Interconnect::rail ? 1 : rules.cube;
  if (step > 0) {
    std::vector<std::int64_t> products{1};
    for (const int largest : rules.largest) {
      std::vector<std::int64_t> next;
      for (const std::int64_t product : products)
        for (int extent = step; extent <= largest; extent += step) next.push_back(product * extent);
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      products = std::move(next);
    }
    counts.insert(counts.end(), products.begin(), products.end());
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

/// "v5p-512"; empty where slices have no names.
std::string name_of_count(const SliceRules& rules, std::int64_t chips) {
  return rules.name_prefix.empty() ? "" : fmt::format("{}-{}", rules.name_prefix, chips * rules.cores_per_chip);
}

/// ", expected one such as 4x8x8 (256 chips) or 4x4x16 (256 chips)"
std::string such_as(const std::vector<Slice>& slices) {
  std::string text;
  for (std::size_t i = 0; i < slices.size(); ++i)
    text += fmt::format("{}{} ({} chips)",
                        i == 0                   ? ", expected one such as "
                        : i + 1 == slices.size() ? " or "
                                                 : ", ",
                        to_text(slices[i]), chips_of(slices[i]));
  return text;
}

/// Whether this is meant as a name and not as extents: a letter first, and a dash.
bool looks_like_a_name(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 && text.find('-') != std::string_view::npos;
}

Expected<Slice> parse_name(std::string_view text, const Machine& machine, const SourceLocation& where) {
  const SliceRules& rules = machine.slices;
  if (rules.name_prefix.empty())
    return Diagnostic{where, fmt::format("slices of {} have no names, expected chips per dimension, such as {}, got {}", machine.name,
                                         rules.largest.empty() ? "16x16" : to_text(Slice{rules.largest, false}), quoted(text))};
  const std::string counted = rules.cores_per_chip == 1 ? "chips" : fmt::format("cores, {} per chip", rules.cores_per_chip);
  const std::size_t dash = text.rfind('-');
  if (text.substr(0, dash) != rules.name_prefix)
    return Diagnostic{where,
                      fmt::format("slices of {} are called {}-N, where N counts {}, got {}", machine.name, rules.name_prefix, counted, quoted(text))};
  const Expected<std::int64_t> cores = parse_integer(text.substr(dash + 1), 1, most_chips * rules.cores_per_chip, where);
  if (!cores || *cores % rules.cores_per_chip != 0)
    return Diagnostic{where, fmt::format("the N of {}-N counts {}, got {}", rules.name_prefix, counted, quoted(text))};
  const std::int64_t chips = *cores / rules.cores_per_chip;
  std::vector<Slice> offered = offered_slices(machine, chips);
  if (!offered.empty()) return std::move(offered.front());
  std::string near;
  std::int64_t last = 0;
  for (const Slice& slice : near_slices(machine, Slice{{static_cast<int>(chips)}, true})) {
    const std::int64_t count = chips_of(slice);
    if (count != last) near += fmt::format("{}{} ({})", near.empty() ? "; near are " : ", ", name_of_count(rules, count), to_text(slice));
    last = count;
  }
  return Diagnostic{where, fmt::format("{} has no slice of {} chip{}, got {}{}", machine.name, chips, chips == 1 ? "" : "s", quoted(text), near)};
}

/// What the vendor builds.
std::vector<bool> automatic_wraps(const Machine& machine, const Slice& slice) {
  const SliceRules& rules = machine.slices;
  if (machine.interconnect == Interconnect::rail) return std::vector<bool>(slice.extents.size(), false);
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

std::int64_t chips_of(const Slice& slice) {
  return std::accumulate(slice.extents.begin(), slice.extents.end(), std::int64_t{1}, std::multiplies<>{});
}

std::string to_text(const Slice& slice) { return fmt::format("{}", fmt::join(slice.extents, "x")); }

Expected<Slice> parse_slice(std::string_view text, const Machine& machine, const SourceLocation& where) {
  if (looks_like_a_name(text)) return parse_name(without_cloud_name(text), machine, where);
  const std::vector<std::string> parts = split(text, 'x');
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
  slice.hypothetical = !is_offered(machine, slice.extents);
  return slice;
}

std::vector<Slice> offered_slices(const Machine& machine, std::int64_t chips) {
  const SliceRules& rules = machine.slices;
  std::vector<Slice> slices;
  if (chips < 1 || chips > most_chips) return slices;
  const auto add = [&](const std::vector<int>& extents) {
    const auto same = [&](const Slice& slice) { return sorted(without_ones(slice.extents)) == sorted(without_ones(extents)); };
    const bool known = machine.interconnect == Interconnect::grid && std::any_of(slices.begin(), slices.end(), same);
    if (!known && is_offered(machine, extents)) slices.push_back({extents, false});
  };
  std::vector<int> extents;
  if (rules.any_shape) {
    if (chips == 1) add({1});
    for (std::size_t dimensions = 1; dimensions <= max_dimensions; ++dimensions)
      for_each_factorisation(chips, 1, dimensions, extents, [&](const std::vector<int>& found) {
        if (found.front() > 1) add(found);
      });
  } else if (machine.interconnect == Interconnect::rail) {
    for (int nodes = 1; nodes <= std::min<std::int64_t>(rules.largest[0], chips); ++nodes)
      if (chips % nodes == 0) add({nodes, static_cast<int>(chips / nodes)});
  } else {
    for (const std::vector<int>& open : rules.open)
      if (chips_of({open, false}) == chips) add(open);
    if (rules.cube > 0)
      for_each_factorisation(chips, rules.cube, rules.largest.size(), extents, [&](const std::vector<int>& found) {
        if (is_full_torus(rules, found)) add(found);
      });
  }
  sort_offered(machine, slices);
  return slices;
}

std::vector<Slice> near_slices(const Machine& machine, const Slice& slice) {
  constexpr std::size_t most = 3;
  std::vector<Slice> near;
  if (machine.slices.any_shape) return near;
  const std::int64_t chips = chips_of(slice);
  std::vector<std::int64_t> counts = offered_counts(machine);
  std::stable_sort(counts.begin(), counts.end(), [&](std::int64_t a, std::int64_t b) { return std::abs(a - chips) < std::abs(b - chips); });
  for (const std::int64_t count : counts) {
    if (near.size() >= most) break;
    for (Slice& offered : offered_slices(machine, count))
      if (near.size() < most) near.push_back(std::move(offered));
  }
  return near;
}

Status check_offered(const Machine& machine, const Slice& slice, const SourceLocation& where) {
  if (!slice.hypothetical) return success();
  return Diagnostic{where, fmt::format("{} is not offered with a slice {} ({} chips){}", machine.name, to_text(slice), chips_of(slice),
                                       such_as(near_slices(machine, slice)))};
}

Expected<Wrap> parse_wrap(std::string_view text, const SourceLocation& where) {
  if (text == "auto") return Wrap{};
  if (text == "all") return Wrap{Wrap::Rule::all, {}};
  if (text == "none") return Wrap{Wrap::Rule::none, {}};
  Wrap wrap{Wrap::Rule::named, {}};
  for (const std::string_view name : split(text)) {
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
  auto grid = Grid::make(std::move(dimensions), machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth);
  if (grid && machine.routes == Routes::endpoints) return grid->routed_by_endpoints();
  return grid;
}

}  // namespace podsim
