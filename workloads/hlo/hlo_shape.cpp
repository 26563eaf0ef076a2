#include "workloads/hlo/hlo_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "workloads/hlo/hlo_cursor.hpp"

namespace podsim {

namespace {

struct TypeEntry {
  std::string_view name;
  int bits;
  char kind;  // integer, float, complex, none
};
constexpr std::array<TypeEntry, static_cast<std::size_t>(HloType::tuple) + 1> types{{{"pred", 8, 'i'},
                                                                                     {"s1", 1, 'i'},
                                                                                     {"s2", 2, 'i'},
                                                                                     {"s4", 4, 'i'},
                                                                                     {"s8", 8, 'i'},
                                                                                     {"s16", 16, 'i'},
                                                                                     {"s32", 32, 'i'},
                                                                                     {"s64", 64, 'i'},
                                                                                     {"u1", 1, 'i'},
                                                                                     {"u2", 2, 'i'},
                                                                                     {"u4", 4, 'i'},
                                                                                     {"u8", 8, 'i'},
                                                                                     {"u16", 16, 'i'},
                                                                                     {"u32", 32, 'i'},
                                                                                     {"u64", 64, 'i'},
                                                                                     {"f16", 16, 'f'},
                                                                                     {"bf16", 16, 'f'},
                                                                                     {"f32", 32, 'f'},
                                                                                     {"f64", 64, 'f'},
                                                                                     {"f8e5m2", 8, 'f'},
                                                                                     {"f8e4m3", 8, 'f'},
                                                                                     {"f8e4m3fn", 8, 'f'},
                                                                                     {"f8e4m3b11fnuz", 8, 'f'},
                                                                                     {"f8e5m2fnuz", 8, 'f'},
                                                                                     {"f8e4m3fnuz", 8, 'f'},
                                                                                     {"f8e3m4", 8, 'f'},
                                                                                     {"f8e8m0fnu", 8, 'f'},
                                                                                     {"f4e2m1fn", 4, 'f'},
                                                                                     {"c64", 64, 'c'},
                                                                                     {"c128", 128, 'c'},
                                                                                     {"token", 0, '-'},
                                                                                     {"opaque", 0, '-'},
                                                                                     {"", 0, '-'}}};

constexpr std::int64_t most = std::int64_t{1} << 62, most_bytes = std::int64_t{1} << 60, largest_dim = std::int64_t{1} << 53;
constexpr int largest_memory_space = 31;  // 591 modules of XLA for TPUs and GPUs have 0 to 8 (libtpu 0.0.42.1, November 2026); bytes elsewhere would be in no memory of a machine
// A tile is what a core loads at once: XLA's have 128 to 4,096 elements (all of validation/aot/modules).
constexpr std::int64_t largest_tile = std::int64_t{1} << 20;
// What XLA's parser takes behind the order of the dimensions (hlo_parser.cc): levels of dimensions (of 2025), tiles, padding at the end, types of indices and of pointers, bits of an element, memory space,
// split, physical shape, bytes in front of dynamic shapes.
constexpr std::array<std::string_view, 10> layout_parts{"D", "T", "L", "#", "*", "E", "S", "SC", "P", "M"};
constexpr int deepest_tuple = 64, most_dims = 64, most_tiles = 8;

const TypeEntry& entry_of(HloType type) { return types[static_cast<std::size_t>(type)]; }

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > most ? most : product;
}
std::int64_t plus(std::int64_t a, std::int64_t b) { return std::min(a + b, most); }

std::int64_t bytes_of_bits(std::int64_t elements, int bits) {
  if (bits % 8 == 0) return times(elements, bits / 8);
  const std::int64_t per_byte = 8 / bits;
  return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
}

/// The elements of an array with its tiled dimensions rounded up.
std::int64_t stored_elements(const HloShape& shape) {
  if (shape.layout.tiles.empty() || elements_of(shape) == 0) return elements_of(shape);
  // Physical dimensions, the last one the most minor; with more tile dimensions than those, 1 in front.
  const std::vector<std::int64_t>& tile = shape.layout.tiles.front();
  std::vector<std::int64_t> extents;
  for (const std::int64_t dim : shape.layout.minor_to_major) extents.push_back(shape.dims[static_cast<std::size_t>(dim)]);
  if (extents.size() < shape.dims.size()) extents.assign(shape.dims.rbegin(), shape.dims.rend());
  std::vector<std::pair<std::int64_t, std::int64_t>> tiled;  // extent and tile, the most minor first
  for (std::size_t i = 0; i < std::max(extents.size(), tile.size()); ++i) {
    const std::int64_t extent = i < extents.size() ? extents[i] : 1, at = i < tile.size() ? tile[tile.size() - 1 - i] : 1;
    if (at == HloLayout::combined && !tiled.empty())
      tiled.back().first = times(tiled.back().first, extent);
    else
      tiled.emplace_back(extent, std::max<std::int64_t>(at, 1));
  }
  std::int64_t elements = 1;
  for (const auto& [extent, at] : tiled) elements = times(elements, times(extent / at + (extent % at != 0 ? 1 : 0), at));
  return elements;
}

std::int64_t bytes_in(const HloShape& shape, int space, bool any) {
  std::int64_t sum = 0;
  if (shape.is_tuple()) {
    for (const HloShape& element : shape.elements) sum = plus(sum, bytes_in(element, space, any));
    return sum;
  }
  if (!any && shape.layout.memory_space != space) return 0;
  const int bits = bits_of(shape.type), stored = shape.layout.element_bits > 0 ? shape.layout.element_bits : std::max(bits, 8);
  return bits == 0 ? 0 : bytes_of_bits(stored_elements(shape), stored);
}

class ShapeText {
 public:
  explicit ShapeText(HloCursor& cursor) : cursor_{cursor} {}

  bool read(HloShape& shape, int depth = 0) {
    if (cursor_.peek() == '(') return read_tuple(shape, depth);
    const std::size_t begin = cursor_.at();
    const std::string_view word = cursor_.take_name();
    if (word.empty() || !hlo_type_named(word, shape.type)) return fail(begin, "a shape such as f32[8,128]");
    if (!cursor_.take('[')) return expected("\"[\" and the dimensions");
    if (!cursor_.take(']')) do {
        if (shape.dims.size() == most_dims) return expected("at most 64 dimensions");
        if (!read_dim(shape)) return false;
        cursor_.skip_spaces();
      } while (cursor_.take(','));
    if (cursor_.text()[cursor_.at() - 1] != ']' && !cursor_.take(']')) return expected("\",\" and the next dimension, or \"]\"");
    if (cursor_.peek() == '{' && !read_layout(shape)) return false;
    if (std::max(device_bytes(shape), logical_bytes(shape)).count() > most_bytes) return fail(begin, "a shape of at most 2^60 bytes");
    return true;
  }

  std::optional<Diagnostic> error() && { return std::move(error_); }

 private:
  bool fail(std::size_t at, std::string_view what) {
    if (!error_) error_ = cursor_.expected_at(at, what);
    return false;
  }
  bool expected(std::string_view what) { return fail(cursor_.at(), what); }

  bool read_tuple(HloShape& shape, int depth) {
    const std::size_t begin = cursor_.at();
    if (depth == deepest_tuple) return expected("at most 64 tuples in each other");
    cursor_.take('(');
    cursor_.skip_blanks();
    if (!cursor_.take(')')) {
      do {
        cursor_.skip_blanks();
        if (!read(shape.elements.emplace_back(), depth + 1)) return false;
        cursor_.skip_blanks();
      } while (cursor_.take(','));
      if (!cursor_.take(')')) return expected("\",\" and the next shape of a tuple, or \")\"");
    }
    if (device_bytes(shape).count() > most_bytes) return fail(begin, "a shape of at most 2^60 bytes");
    return true;
  }

  bool read_dim(HloShape& shape) {
    cursor_.skip_spaces();
    const std::size_t begin = cursor_.at();
    const bool bound = cursor_.take("<=");
    if (!bound && cursor_.take('?')) {
      shape.dynamic_dims.push_back(static_cast<int>(shape.dims.size()));
      shape.dims.push_back(HloShape::unbounded);
      return true;
    }
    const auto dim = cursor_.take_integer();
    if (!dim || *dim < 0 || *dim > largest_dim) return fail(begin, "a dimension from 0 to 2^53");
    if (bound) shape.dynamic_dims.push_back(static_cast<int>(shape.dims.size()));
    shape.dims.push_back(*dim);
    return true;
  }

  bool read_layout(HloShape& shape) {
    HloLayout& layout = shape.layout;
    cursor_.take('{');
    shape.has_layout = true;
    if (cursor_.peek() >= '0' && cursor_.peek() <= '9') {
      std::vector<bool> seen(shape.dims.size());
      do {
        const std::size_t at = cursor_.at();
        const auto dim = cursor_.take_integer();
        if (!dim || *dim < 0 || *dim >= static_cast<std::int64_t>(seen.size()) || seen[static_cast<std::size_t>(*dim)])
          return fail(at, fmt::format("each of the {} dimensions once in a layout", seen.size()));
        seen[static_cast<std::size_t>(*dim)] = true;
        layout.minor_to_major.push_back(*dim);
      } while (cursor_.take(','));
    }
    if (cursor_.take(':') && !read_layout_parts(layout)) return false;
    const std::size_t written = layout.minor_to_major.size();
    if (written != 0 && written != shape.dims.size()) return expected(fmt::format("a layout of {} dimensions", shape.dims.size()));
    if (written == 0)
      for (std::size_t d = shape.dims.size(); d-- > 0;) layout.minor_to_major.push_back(static_cast<std::int64_t>(d));
    return cursor_.take('}') || expected("\"}\" at the end of a layout");
  }

  bool read_layout_parts(HloLayout& layout) {
    std::vector<std::string_view> seen;
    while (cursor_.peek() != '}') {
      const std::size_t begin = cursor_.at();
      while (cursor_.peek() >= 'A' && cursor_.peek() <= 'Z') cursor_.move_to(cursor_.at() + 1);
      if (cursor_.at() == begin && !cursor_.take('#')) cursor_.take('*');
      const std::string_view part = cursor_.since(begin);
      if (std::find(layout_parts.begin(), layout_parts.end(), part) == layout_parts.end()) return fail(begin, "a part of a layout such as T(8,128) or S(1), or \"}\"");
      if (std::find(seen.begin(), seen.end(), part) != seen.end()) return fail(begin, fmt::format("{} of a layout once", part));
      seen.push_back(part);
      if (part == "T") {
        if (cursor_.peek() != '(') return expected("a tile such as T(8,128)");
        while (cursor_.peek() == '(')
          if (!read_tile(layout)) return false;
      } else if (part == "S") {
        if (!cursor_.take('(')) return expected("\"(\" in a layout");
        const std::size_t at = cursor_.at();
        if (!read_number(layout.memory_space, "a memory space")) return false;
        if (layout.memory_space > largest_memory_space) return fail(at, fmt::format("a memory space from 0 to {}", largest_memory_space));
      } else if (part == "E") {
        if (!cursor_.take('(')) return expected("\"(\" in a layout");
        if (!read_number(layout.element_bits, "the bits of an element")) return false;
        if (layout.element_bits > 0 && layout.element_bits < 8 && 8 % layout.element_bits != 0) return fail(begin, "1, 2, 4 or whole bytes of bits");
        if (layout.element_bits > 8 && layout.element_bits % 8 != 0) return fail(begin, "1, 2, 4 or whole bytes of bits");
      } else {
        if (cursor_.peek() != '(' || !cursor_.take_balanced()) return expected("\"(\" in a layout");
        layout.others += cursor_.since(begin);
      }
    }
    return true;
  }

  bool read_tile(HloLayout& layout) {
    cursor_.take('(');
    if (layout.tiles.size() == most_tiles) return expected("at most 8 tiles in each other");
    std::vector<std::int64_t>& tile = layout.tiles.emplace_back();
    std::int64_t elements = 1;
    do {
      const std::size_t at = cursor_.at();
      if (cursor_.take('*')) {
        tile.push_back(HloLayout::combined);
        continue;
      }
      const auto extent = cursor_.take_integer();
      if (!extent || *extent < 1 || tile.size() == most_dims) return fail(at, "the extent of a tile");
      elements = times(elements, *extent);
      if (elements > largest_tile) return fail(at, fmt::format("a tile of at most {} elements", largest_tile));
      tile.push_back(*extent);
    } while (cursor_.take(','));
    return cursor_.take(')') || expected("\")\" behind a tile");
  }

  bool read_number(int& number, std::string_view what) {
    const std::size_t at = cursor_.at();
    const auto value = cursor_.take_integer();
    if (!value || *value < 0 || *value > 1024) return fail(at, what);
    number = static_cast<int>(*value);
    return cursor_.take(')') || expected("\")\"");
  }

  HloCursor& cursor_;
  std::optional<Diagnostic> error_;
};

void append(std::string& text, const HloShape& shape, bool layouts) {
  if (shape.is_tuple()) {
    text += '(';
    for (std::size_t i = 0; i < shape.elements.size(); ++i) {
      if (i > 0) text += ", ";
      append(text, shape.elements[i], layouts);
    }
    text += ')';
    return;
  }
  text += name_of(shape.type);
  text += '[';
  for (std::size_t d = 0; d < shape.dims.size(); ++d) {
    if (d > 0) text += ',';
    if (shape.dims[d] == HloShape::unbounded) {
      text += '?';
      continue;
    }
    if (std::find(shape.dynamic_dims.begin(), shape.dynamic_dims.end(), static_cast<int>(d)) != shape.dynamic_dims.end()) text += "<=";
    text += std::to_string(shape.dims[d]);
  }
  text += ']';
  if (!layouts || !shape.has_layout) return;
  const HloLayout& layout = shape.layout;
  std::string parts;
  if (!layout.tiles.empty()) parts += 'T';
  for (const std::vector<std::int64_t>& tile : layout.tiles) {
    std::vector<std::string> extents;
    for (const std::int64_t extent : tile) extents.push_back(extent == HloLayout::combined ? "*" : std::to_string(extent));
    parts += fmt::format("({})", fmt::join(extents, ","));
  }
  parts += layout.others;
  if (layout.element_bits > 0) parts += fmt::format("E({})", layout.element_bits);
  if (layout.memory_space > 0) parts += fmt::format("S({})", layout.memory_space);
  text += fmt::format("{{{}{}{}}}", fmt::join(layout.minor_to_major, ","), parts.empty() ? "" : ":", parts);
}

}  // namespace

std::string_view name_of(HloType type) { return type == HloType::tuple ? "tuple" : entry_of(type).name; }

bool hlo_type_named(std::string_view name, HloType& type) {
  for (std::size_t i = 0; i < types.size() - 1; ++i)
    if (types[i].name == name) return type = static_cast<HloType>(i), true;
  return false;
}

int bits_of(HloType type) { return entry_of(type).bits; }
bool is_integer(HloType type) { return entry_of(type).kind == 'i'; }
bool is_float(HloType type) { return entry_of(type).kind == 'f'; }
bool is_complex(HloType type) { return entry_of(type).kind == 'c'; }

bool same_dims(const HloShape& a, const HloShape& b) {
  return a.type == b.type && a.dims == b.dims && std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(), same_dims);
}

std::int64_t elements_of(const HloShape& shape) {
  if (!shape.is_array()) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape.dims)
    if (dim <= 0) return 0;
  for (const std::int64_t dim : shape.dims) elements = times(elements, dim);
  return elements;
}

Bytes logical_bytes(const HloShape& shape) {
  std::int64_t sum = 0;
  for (const HloShape& element : shape.elements) sum = plus(sum, logical_bytes(element).count());
  return Bytes{shape.is_array() ? bytes_of_bits(elements_of(shape), bits_of(shape.type)) : sum};
}

Bytes device_bytes(const HloShape& shape) { return Bytes{bytes_in(shape, 0, true)}; }
Bytes device_bytes_in(const HloShape& shape, int memory_space) { return Bytes{bytes_in(shape, memory_space, false)}; }

Bytes device_bytes_on_chip(const HloShape& shape) { return saturated_sum(device_bytes_in(shape, HloMemory::vmem), device_bytes_in(shape, HloMemory::cmem)); }

Bytes saturated_sum(Bytes a, Bytes b) { return Bytes{plus(a.count(), b.count())}; }

Expected<HloShape> parse_hlo_shape(std::string_view text, std::size_t& at, const SourceLocation& where) {
  HloCursor cursor{text, at, where};
  ShapeText reader{cursor};
  HloShape shape;
  const bool ok = reader.read(shape);
  at = cursor.at();
  if (!ok) return *std::move(reader).error();
  return shape;
}

Expected<HloShape> parse_hlo_shape(std::string_view text, const SourceLocation& where) {
  std::size_t at = 0;
  auto shape = parse_hlo_shape(text, at, where);
  if (shape && at < text.size()) return HloCursor{text, at, where}.expected("nothing behind the shape");
  return shape;
}

std::string to_text(const HloShape& shape) {
  std::string text;
  append(text, shape, true);
  return text;
}

std::string short_text(const HloShape& shape) {
  std::string text;
  append(text, shape, false);
  return text;
}

std::string cut_text(const HloShape& shape) { return short_text(shape).substr(0, 200); }

}  // namespace podsim
