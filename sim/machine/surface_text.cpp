// Efficiency surfaces as text and back.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/machine/field_text.hpp"

namespace podsim {

namespace {

constexpr std::string_view surface_word = "surface";
constexpr std::array<std::string_view, 3> extent_names{"m", "n", "k"};
constexpr std::int64_t largest_grid_extent = std::int64_t{1} << 40;
constexpr std::int64_t largest_block = 65536;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// A list "m 1 16 256".
Expected<std::vector<std::int64_t>> parse_grid_extents(const std::vector<std::string>& words, std::string_view name, const std::string& path,
                                                       const SourceLocation& where) {
  if (words.size() < 2 || words.front() != name)
    return Diagnostic{where, fmt::format("{}: expected the extents of the surface like \"{} 1 16 256\", got {}", path, name,
                                         quoted(fmt::format("{}", fmt::join(words, " "))))};
  if (words.size() - 1 > most_surface_extents)
    return Diagnostic{where, fmt::format("{}: expected at most {} extents of {}, got {}", path, most_surface_extents, name, words.size() - 1)};
  std::vector<std::int64_t> extents;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const Expected<std::int64_t> extent = parse_integer(words[i], 1, largest_grid_extent, where);
    if (!extent) return Diagnostic{where, fmt::format("{}: extents of {}: {}", path, name, extent.error().message)};
    if (!extents.empty() && *extent <= extents.back())
      return Diagnostic{where, fmt::format("{}: extents of {} must increase, got {} after {}", path, name, *extent, extents.back())};
    extents.push_back(*extent);
  }
  return extents;
}

/// "waves 128x256 0.5"
Status parse_waves(const std::vector<std::string>& words, const std::string& path, MatmulSurface& surface, const SourceLocation& where) {
  const Diagnostic wrong{where, fmt::format("{}: expected \"waves 128x256 0.5\", the block of a unit and a share in [0, 1], got {}", path,
                                            quoted(fmt::format("{}", fmt::join(words, " "))))};
  if (words.size() != 3) return wrong;
  const std::size_t cross = words[1].find('x');
  if (cross == std::string::npos) return wrong;
  const auto rows = parse_integer(std::string_view{words[1]}.substr(0, cross), 1, largest_block, where);
  const auto columns = parse_integer(std::string_view{words[1]}.substr(cross + 1), 1, largest_block, where);
  const auto share = parse_number(words[2], where);
  if (!rows || !columns || !share || !(*share >= 0 && *share <= 1)) return wrong;
  surface.block_m = static_cast<int>(*rows), surface.block_n = static_cast<int>(*columns), surface.wave_share = *share;
  return success();
}

}  // namespace

bool is_surface_text(std::string_view text) { return trimmed(text).starts_with(surface_word); }

std::string text_of(const MatmulSurface& surface) {
  std::string text{surface_word};
  for (std::size_t axis = 0; axis < extent_names.size(); ++axis)
    text += fmt::format("{} {} {}", axis == 0 ? "" : ";", extent_names.at(axis), fmt::join(surface.extents.at(axis), " "));
  if (surface.wave_share > 0) text += fmt::format("; waves {}x{} {}", surface.block_m, surface.block_n, surface.wave_share);
  const std::size_t columns = surface.extents[2].size();
  for (std::size_t at = 0; at < surface.efficiency.size(); at += columns) {
    const auto row = surface.efficiency.begin() + static_cast<std::ptrdiff_t>(at);
    text += fmt::format("; {}", fmt::join(row, row + static_cast<std::ptrdiff_t>(columns), " "));
  }
  return text;
}

std::string rounded_text_of(const MatmulSurface& surface) {
  const auto [least, most] = std::minmax_element(surface.efficiency.begin(), surface.efficiency.end());
  return fmt::format("{:.4g} to {:.4g} (surface of {} x {} x {})", *least, *most, surface.extents[0].size(), surface.extents[1].size(),
                     surface.extents[2].size());
}

Expected<MatmulSurface> parse_matmul_surface(const MachineField& field, const std::string& path, std::string_view text, const SourceLocation& where) {
  std::vector<std::vector<std::string>> parts;
  for (std::string_view rest = trimmed(text).substr(surface_word.size());;) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    parts.push_back(words_of(rest.substr(0, end)));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  MatmulSurface surface;
  std::size_t at = 0;
  for (std::size_t axis = 0; axis < extent_names.size(); ++axis, ++at) {
    auto extents = parse_grid_extents(at < parts.size() ? parts[at] : std::vector<std::string>{}, extent_names.at(axis), path, where);
    if (!extents) return extents.error();
    surface.extents.at(axis) = *std::move(extents);
  }
  if (at < parts.size() && !parts[at].empty() && parts[at].front() == "waves")
    if (auto ok = parse_waves(parts[at++], path, surface, where); !ok) return ok.error();
  const std::size_t columns = surface.extents[2].size(), rows = surface.extents[0].size() * surface.extents[1].size();
  if (rows * columns > most_surface_values)
    return Diagnostic{where, fmt::format("{}: expected at most {} efficiencies, got {}", path, most_surface_values, rows * columns)};
  if (parts.size() - at != rows)
    return Diagnostic{where, fmt::format("{}: expected {} rows of efficiencies, one for every m and n, got {}", path, rows, parts.size() - at)};
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<std::string>& words = parts[at + row];
    if (words.size() != columns)
      return Diagnostic{where, fmt::format("{}: expected {} efficiencies in row {}, one for every k, got {}", path, columns, row + 1, words.size())};
    for (const std::string& word : words) {
      const Expected<double> efficiency = parse_admissible(field, path, word, where);
      if (!efficiency) return efficiency.error();
      surface.efficiency.push_back(*efficiency);
    }
  }
  return matmul_surface_of(std::move(surface));
}

}  // namespace podsim
