#include "sim/mesh/hlo_sharding.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

using Kind = HloSharding::Kind;
constexpr std::int64_t most_hlo_devices = std::int64_t{1} << 24;  // as Mesh has
constexpr std::int64_t highest_hlo_device = INT32_MAX;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
// The kinds that are one word, and that a last tile dimension may have.
constexpr std::array<NamedKind, 4> plain_kinds{
    {{"replicated", Kind::replicated}, {"manual", Kind::manual}, {"unknown", Kind::unknown}, {"unreduced", Kind::unreduced}}};

std::string_view name_of(Kind kind) {
  for (const NamedKind& named : plain_kinds)
    if (named.kind == kind) return named.name;
  return kind == Kind::maximal ? "maximal" : kind == Kind::tiled ? "devices" : "a tuple";
}

/// The product, or nothing beyond the most devices. Every factor is at least 1.
std::optional<std::int64_t> product_of(const Extents& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent > most_hlo_devices / product) return std::nullopt;
    product *= extent;
  }
  return product;
}

/// Functions that return bool are false after they have set the error.
class HloShardingText {
 public:
  HloShardingText(std::string_view text, std::size_t& at, const SourceLocation& where) : text_{text}, at_{at}, begin_{at}, where_{where} {}

  Expected<HloSharding> read() {
    HloSharding result;
    if (!read_braces(result, true)) return *error_;
    return result;
  }

 private:
  bool fail(std::size_t at, std::string message) {
    error_ = Diagnostic{where_, std::move(message)};
    if (where_.column > 0) error_->where.column += static_cast<int>(at - begin_);
    return false;
  }
  bool expected(std::string_view what) {
    skip_blanks();
    return fail(at_, fmt::format("expected {}, got {}", what, at_ < text_.size() ? quoted(text_.substr(at_, 40)) : "the end"));
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  /// Whether `token` comes next; then moves behind it.
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(std::min(at_, text_.size())).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::string_view take_word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '_' || (text_[at_] >= 'a' && text_[at_] <= 'z'))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool read_braces(HloSharding& result, bool tuples) {
    if (!take("{")) return expected("\"{\" of a sharding");
    if (tuples && (take("}") || (skip_blanks(), at_ < text_.size() && text_[at_] == '{'))) return read_tuple(result);
    if (!read_body(result)) return false;
    return take("}") || expected("\"}\" at the end of the sharding");
  }

  bool read_tuple(HloSharding& result) {
    result.kind = Kind::tuple;
    if (text_[at_ - 1] == '}') return true;
    do {
      HloSharding& element = result.elements.emplace_back();
      if (!read_braces(element, false)) return false;
    } while (take(","));
    return take("}") || expected("\",\" and the next sharding of the tuple, or \"}\"");
  }

  bool read_body(HloSharding& result) {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string_view word = take_word();
    for (const NamedKind& named : plain_kinds)
      if (named.name == word) return result.kind = named.kind, true;
    if (word == "maximal") {
      result.kind = Kind::maximal;
      if (take_word() != "device" || !take("=")) return expected("\"device=\" and the device that has the whole array");
      return read_number(result.device, 0, highest_hlo_device, "a device");
    }
    if (word == "devices" && take("=")) return read_tiled(result);
    at_ = begin;
    return expected("replicated, maximal, manual, unknown, unreduced or devices=[...]");
  }

  bool read_tiled(HloSharding& result) {
    result.kind = Kind::tiled;
    const std::size_t begin = at_;
    if (!read_extents(result.tiles)) return false;
    const auto count = product_of(result.tiles);
    if (!count) return fail(begin, fmt::format("expected at most {} devices", most_hlo_devices));
    if (!(take("<=") ? read_iota(result, *count) : read_list(result, *count))) return false;
    return read_last_kinds(result, begin);
  }

  bool read_extents(Extents& extents) {
    if (!take("[")) return expected("\"[\" and the sizes of dimensions");
    do {
      if (!read_number(extents.emplace_back(), 1, most_hlo_devices, "a size")) return false;
    } while (take(","));
    return take("]") || expected("\",\" and the next size, or \"]\"");
  }

  bool read_iota(HloSharding& result, std::int64_t count) {
    skip_blanks();
    const std::size_t begin = at_;
    if (!read_extents(result.iota_shape)) return false;
    if (const auto iota = product_of(result.iota_shape); iota != count)
      return fail(begin, fmt::format("expected the {} devices of the tiles, got {}", count, iota ? std::to_string(*iota) : "more"));
    if (!take("T")) return true;
    const std::size_t transpose = at_;
    if (!take("(")) return expected("\"(\" and the order of dimensions");
    std::vector<bool> seen(result.iota_shape.size());
    do {
      std::int64_t dimension = 0;
      if (!read_number(dimension, 0, static_cast<std::int64_t>(seen.size()) - 1, "a dimension")) return false;
      if (seen[static_cast<std::size_t>(dimension)]) return fail(transpose, fmt::format("expected every dimension once, got {} again", dimension));
      seen[static_cast<std::size_t>(dimension)] = true;
      result.iota_transpose.push_back(static_cast<int>(dimension));
    } while (take(","));
    if (!take(")")) return expected("\",\" and the next dimension, or \")\"");
    if (result.iota_transpose.size() != seen.size())
      return fail(transpose, fmt::format("expected {} dimensions, got {}", seen.size(), result.iota_transpose.size()));
    return true;
  }

  bool read_list(HloSharding& result, std::int64_t count) {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ == text_.size() || text_[at_] < '0' || text_[at_] > '9') return expected("\"<=\" or a list of devices");
    do {
      if (!read_number(result.list.emplace_back(), 0, highest_hlo_device, "a device")) return false;
    } while (take(","));
    if (static_cast<std::int64_t>(result.list.size()) != count)
      return fail(begin, fmt::format("expected the {} devices of the tiles, got {}", count, result.list.size()));
    std::vector<std::int64_t> sorted = result.list;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      return fail(begin, fmt::format("expected every device once, got {} again", *twice));
    return true;
  }

  bool read_last_kinds(HloSharding& result, std::size_t tiles) {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string_view word = take_word();
    if (word == "last_tile_dim_replicate") {
      result.last_kinds.push_back(Kind::replicated);
    } else if (word == "last_tile_dims") {
      if (!take("=") || !take("{")) return expected("\"={\" and the kinds of the last tile dimensions");
      do {
        skip_blanks();
        const std::size_t at = at_;
        const std::string_view name = take_word();
        const auto* named = std::find_if(plain_kinds.begin(), plain_kinds.end(), [&](const NamedKind& k) { return k.name == name; });
        if (named == plain_kinds.end()) return at_ = at, expected("replicated, manual, unknown or unreduced");
        result.last_kinds.push_back(named->kind);
      } while (take(","));
      if (!take("}")) return expected("\",\" and the next kind, or \"}\"");
    } else if (!word.empty()) {
      at_ = begin;
      return expected("last_tile_dim_replicate, last_tile_dims={...} or \"}\"");
    }
    if (result.last_kinds.size() > result.tiles.size())
      return fail(tiles, fmt::format("expected a tile dimension for each of the {} kinds, got {}", result.last_kinds.size(), result.tiles.size()));
    return true;
  }

  bool read_number(std::int64_t& number, std::int64_t low, std::int64_t high, std::string_view what) {
    skip_blanks();
    const char *const begin = text_.data() + at_, *const end = text_.data() + text_.size();
    const auto [rest, status] = std::from_chars(begin, end, number);
    if (rest == begin || (*begin == '-')) return expected(what);
    if (status != std::errc{} || number < low || number > high)
      return fail(at_,
                  fmt::format("expected {} from {} to {}, got {}", what, low, high, std::string_view{begin, static_cast<std::size_t>(rest - begin)}));
    at_ += static_cast<std::size_t>(rest - begin);
    return true;
  }

  std::string_view text_;
  std::size_t& at_;
  std::size_t begin_;
  SourceLocation where_;
  std::optional<Diagnostic> error_;
};

/// The fewest dimensions of iota that give the same order of devices, as XLA prints it: none of size 1, and neighbours that stay neighbours are one.
void simplify_iota(HloSharding& hlo) {
  std::vector<std::vector<int>> runs;  // of the transpose
  for (const int dimension : hlo.iota_transpose) {
    if (hlo.iota_shape[static_cast<std::size_t>(dimension)] == 1) continue;
    const auto next_used = [&](int after) {
      while (static_cast<std::size_t>(++after) < hlo.iota_shape.size() && hlo.iota_shape[static_cast<std::size_t>(after)] == 1) {}
      return after;
    };
    if (!runs.empty() && next_used(runs.back().back()) == dimension)
      runs.back().push_back(dimension);
    else
      runs.push_back({dimension});
  }
  std::vector<int> by_first(runs.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  const auto first = [&](int run) { return runs[static_cast<std::size_t>(run)].front(); };
  std::sort(by_first.begin(), by_first.end(), [&](int a, int b) { return first(a) < first(b); });
  Extents shape;
  std::vector<int> transpose(runs.size());
  for (std::size_t i = 0; i < by_first.size(); ++i) {
    std::int64_t size = 1;
    for (const int dimension : runs[static_cast<std::size_t>(by_first[i])]) size *= hlo.iota_shape[static_cast<std::size_t>(dimension)];
    shape.push_back(size);
    transpose[static_cast<std::size_t>(by_first[i])] = static_cast<int>(i);
  }
  hlo.iota_shape = std::move(shape);
  hlo.iota_transpose = runs.size() > 1 ? std::move(transpose) : std::vector<int>{};
}

/// The tile index of each device; empty if they are not the devices 0 to n-1.
std::vector<std::int64_t> tile_of_device(const HloSharding& hlo) {
  const std::vector<std::int64_t> devices = tile_devices(hlo);
  std::vector<std::int64_t> tiles(devices.size(), -1);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] >= static_cast<std::int64_t>(devices.size())) return {};
    tiles[static_cast<std::size_t>(devices[i])] = static_cast<std::int64_t>(i);
  }
  return tiles;
}

/// What the tiles of one sharding say of each device: its block of each dimension, and the number of its addend among the unreduced ones.
class TileIndex {
 public:
  explicit TileIndex(const HloSharding& hlo) : hlo_{hlo}, rank_{hlo.tiles.size() - hlo.last_kinds.size()}, tiles_{tile_of_device(hlo)} {}
  [[nodiscard]] bool empty() const { return tiles_.empty(); }
  /// Per dimension the block, and at the end the addend.
  [[nodiscard]] std::vector<std::int64_t> of(std::int64_t device) const {
    std::vector<std::int64_t> index(rank_ + 1);
    std::int64_t rest = tiles_[static_cast<std::size_t>(device)], stride = 1;
    for (std::size_t d = hlo_.tiles.size(); d-- > 0; rest /= hlo_.tiles[d]) {
      const std::int64_t coordinate = rest % hlo_.tiles[d];
      if (d < rank_) {
        index[d] = coordinate;
      } else if (hlo_.last_kinds[d - rank_] == Kind::unreduced) {
        index[rank_] += stride * coordinate;
        stride *= hlo_.tiles[d];
      }
    }
    return index;
  }

 private:
  const HloSharding& hlo_;
  std::size_t rank_;
  std::vector<std::int64_t> tiles_;
};

/// The only sharding that may have these tiles: the neighbour of device 0 along each axis tells what the axis divides. Nothing where one is elsewhere
/// in two.
std::optional<Sharding> candidate_of(const TileIndex& tiles, const Mesh& mesh, std::size_t rank) {
  Sharding result;
  result.dims.resize(rank);
  std::vector<std::int64_t> strides(mesh.axes().size());
  for (int axis = 0; axis < static_cast<int>(strides.size()); ++axis) {
    if (mesh.axes()[static_cast<std::size_t>(axis)].size == 1) continue;
    const std::vector<std::int64_t> index = tiles.of(mesh.shifted(DeviceId{0}, mesh.whole(axis), 1).value), origin = tiles.of(0);
    int moved = 0;
    for (std::size_t d = 0; d <= rank; ++d) {
      if (index[d] == origin[d]) continue;
      ++moved;
      (d < rank ? result.dims[d] : result.unreduced).push_back(axis);
      strides[static_cast<std::size_t>(axis)] = index[d];
    }
    if (moved > 1) return std::nullopt;
  }
  for (std::vector<int>& axes : result.dims)
    std::stable_sort(axes.begin(), axes.end(),
                     [&](int a, int b) { return strides[static_cast<std::size_t>(a)] > strides[static_cast<std::size_t>(b)]; });
  return result.canonical();
}

bool agrees(const Sharding& sharding, const TileIndex& tiles, const HloSharding& hlo, const Mesh& mesh, std::size_t rank) {
  for (std::size_t d = 0; d < rank; ++d)
    if (devices_along(mesh, sharding.axes_of(d)) != hlo.tiles[d]) return false;
  // The addends may be numbered in any order.
  std::vector<std::int64_t> addends(static_cast<std::size_t>(devices_along(mesh, sharding.unreduced)), -1);
  for (int device = 0; device < mesh.devices(); ++device) {
    const std::vector<std::int64_t> index = tiles.of(device);
    for (std::size_t d = 0; d < rank; ++d)
      if (block_of(mesh, sharding.axes_of(d), DeviceId{device}) != index[d]) return false;
    std::int64_t& addend = addends[static_cast<std::size_t>(block_of(mesh, sharding.unreduced, DeviceId{device}))];
    if (addend == -1) addend = index[rank];
    if (addend != index[rank]) return false;
  }
  std::sort(addends.begin(), addends.end());
  return std::adjacent_find(addends.begin(), addends.end()) == addends.end();
}

}  // namespace

Expected<HloSharding> parse_hlo_sharding(std::string_view text, std::size_t& at, const SourceLocation& where) {
  PODSIM_ASSERT(at <= text.size());
  return HloShardingText{text, at, where}.read();
}

Expected<HloSharding> parse_hlo_sharding(std::string_view text, const SourceLocation& where) {
  std::size_t at = 0;
  Expected<HloSharding> result = parse_hlo_sharding(text, at, where);
  const std::size_t rest = text.find_first_not_of(" \t", at);
  if (!result || rest == std::string_view::npos) return result;
  Diagnostic error{where, "expected nothing behind the sharding, got " + quoted(text.substr(rest))};
  if (where.column > 0) error.where.column += static_cast<int>(rest);
  return error;
}

std::string to_text(const HloSharding& sharding) {
  const auto& s = sharding;
  if (s.kind == Kind::maximal) return fmt::format("{{maximal device={}}}", s.device);
  if (s.kind == Kind::tuple) {
    std::string text;
    for (const HloSharding& element : s.elements) text += (text.empty() ? "" : ", ") + to_text(element);
    return '{' + text + '}';
  }
  if (s.kind != Kind::tiled) return fmt::format("{{{}}}", name_of(s.kind));
  std::string text = fmt::format("{{devices=[{}]", fmt::join(s.tiles, ","));
  text += s.iota_shape.empty() ? fmt::format("{}", fmt::join(s.list, ",")) : fmt::format("<=[{}]", fmt::join(s.iota_shape, ","));
  if (!s.iota_transpose.empty()) text += fmt::format("T({})", fmt::join(s.iota_transpose, ","));
  if (s.last_kinds == std::vector{Kind::replicated}) return text + " last_tile_dim_replicate}";
  std::string kinds;
  for (const Kind kind : s.last_kinds) kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", name_of(kind));
  return text + (kinds.empty() ? "}" : " last_tile_dims={" + kinds + "}}");
}

std::vector<std::int64_t> tile_devices(const HloSharding& sharding) {
  PODSIM_ASSERT(sharding.kind == Kind::tiled);
  if (sharding.iota_shape.empty()) return sharding.list;
  const Extents& shape = sharding.iota_shape;
  std::vector<int> order = sharding.iota_transpose;
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  std::vector<std::int64_t> devices(static_cast<std::size_t>(product_of(shape).value()));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t p = order.size(); p-- > 0;) {
      const auto dimension = static_cast<std::size_t>(order[p]);
      devices[i] += rest % shape[dimension] * strides[dimension];
      rest /= shape[dimension];
    }
  }
  return devices;
}

HloSharding to_hlo(const Sharding& sharding, const Mesh& mesh, std::size_t rank) {
  PODSIM_ASSERT(sharding.canonical().dims.size() <= rank);
  HloSharding hlo;
  std::vector<bool> used(mesh.axes().size());
  for (std::size_t d = 0; d < rank; ++d) {
    hlo.tiles.push_back(devices_along(mesh, sharding.axes_of(d)));
    for (const int axis : sharding.axes_of(d)) {
      used[static_cast<std::size_t>(axis)] = true;
      hlo.iota_transpose.push_back(axis);
    }
  }
  for (const int axis : sharding.unreduced) used[static_cast<std::size_t>(axis)] = true;
  std::vector<int> copies;
  for (int axis = 0; axis < static_cast<int>(used.size()); ++axis)
    if (!used[static_cast<std::size_t>(axis)]) copies.push_back(axis);
  const std::int64_t replicated = devices_along(mesh, copies), addends = devices_along(mesh, sharding.unreduced);
  if (replicated == mesh.devices()) return {};
  hlo.kind = Kind::tiled;
  if (replicated > 1) {
    hlo.tiles.push_back(replicated);
    hlo.last_kinds.push_back(Kind::replicated);
  }
  if (addends > 1) {
    hlo.tiles.push_back(addends);
    hlo.last_kinds.push_back(Kind::unreduced);
  }
  hlo.iota_transpose.insert(hlo.iota_transpose.end(), copies.begin(), copies.end());
  hlo.iota_transpose.insert(hlo.iota_transpose.end(), sharding.unreduced.begin(), sharding.unreduced.end());
  for (const MeshAxis& axis : mesh.axes()) hlo.iota_shape.push_back(axis.size);
  simplify_iota(hlo);
  return hlo;
}

Expected<Sharding> from_hlo(const HloSharding& hlo, const Mesh& mesh, std::size_t rank, const SourceLocation& where) {
  if (hlo.kind == Kind::replicated) return Sharding{};
  if (hlo.kind == Kind::unreduced) {
    Sharding result;
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
      if (mesh.axes()[static_cast<std::size_t>(axis)].size > 1) result.unreduced.push_back(axis);
    return result;
  }
  if (hlo.kind != Kind::tiled) return Diagnostic{where, fmt::format("expected a sharding that a PartitionSpec gives, got {}", name_of(hlo.kind))};
  for (const Kind kind : hlo.last_kinds)
    if (kind != Kind::replicated && kind != Kind::unreduced)
      return Diagnostic{where, fmt::format("expected a sharding that a PartitionSpec gives, got one that is {} along some devices", name_of(kind))};
  if (hlo.tiles.size() - hlo.last_kinds.size() != rank)
    return Diagnostic{where, fmt::format("expected tiles of {} dimensions, got {}", rank, hlo.tiles.size() - hlo.last_kinds.size())};
  if (const auto devices = product_of(hlo.tiles); devices != mesh.devices())
    return Diagnostic{where, fmt::format("expected the {} devices of the mesh {}, got {}", mesh.devices(), to_text(mesh), devices.value_or(0))};
  const Diagnostic none{where, fmt::format("no PartitionSpec on the mesh {} gives {}", to_text(mesh), to_text(hlo).substr(0, 200))};
  const TileIndex tiles{hlo};
  if (tiles.empty()) return none;
  const auto candidate = candidate_of(tiles, mesh, rank);
  if (!candidate || !agrees(*candidate, tiles, hlo, mesh, rank)) return none;
  return *candidate;
}

}  // namespace podsim
