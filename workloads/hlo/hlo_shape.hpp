// Shapes of HLO values: element type, dimensions, layout with tiles and memory space, and tuples of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// Element types. `tuple` is that of a shape with elements; token and opaque hold no data.
enum class HloType : std::uint8_t {
  pred,
  s1,
  s2,
  s4,
  s8,
  s16,
  s32,
  s64,
  u1,
  u2,
  u4,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f8e5m2,
  f8e4m3,
  f8e4m3fn,
  f8e4m3b11fnuz,
  f8e5m2fnuz,
  f8e4m3fnuz,
  f8e3m4,
  f8e8m0fnu,
  f4e2m1fn,
  c64,
  c128,
  token,
  opaque,
  tuple
};
/// "bf16"
std::string_view name_of(HloType type);
/// nullopt-like: false if no type has the name (`tuple` has none).
bool hlo_type_named(std::string_view name, HloType& type);
/// Bits of an element without padding; 0 for token, opaque and tuple. A pred has 8.
int bits_of(HloType type);
/// s, u or pred; f and bf; c.
bool is_integer(HloType type);
bool is_float(HloType type);
bool is_complex(HloType type);

/// S(n): where a value lives.
struct HloMemory {
  static constexpr int hbm = 0, vmem = 1, sync_flag = 2, cmem = 3, host = 5, smem = 6;
};

/// The layout of an array: `{1,0:T(8,128)(2,1)S(1)}`.
struct HloLayout {
  std::vector<std::int64_t> minor_to_major{};      // dimensions, the one that varies fastest first
  std::vector<std::vector<std::int64_t>> tiles{};  // T(8,128)(2,1): first the tile, then tiles within it; `combined` stands for *
  int element_bits = 0;                            // E(4); 0: those of the type
  int memory_space = 0;                            // S(1); HloMemory
  std::string others{};                            // D(..), L(..), M(..), P(..), #(..), *(..), SC(..): verbatim
  static constexpr std::int64_t combined = -1;     // in a tile: the dimension is combined with the next minor one
  friend bool operator==(const HloLayout&, const HloLayout&) = default;
};

struct HloShape {
  HloType type = HloType::tuple;
  std::vector<std::int64_t> dims{};  // of an array; none: a scalar. Of a dynamic dimension its bound; `unbounded` where it has none
  std::vector<int> dynamic_dims{};   // the dimensions written <=N or ?
  bool has_layout = false;           // whether a layout was written; without one it is row-major in memory space 0
  HloLayout layout{};
  std::vector<HloShape> elements{};  // of a tuple
  static constexpr std::int64_t unbounded = -1;
  [[nodiscard]] bool is_tuple() const { return type == HloType::tuple; }
  [[nodiscard]] bool is_array() const { return bits_of(type) > 0; }
  [[nodiscard]] std::size_t rank() const { return dims.size(); }
  friend bool operator==(const HloShape&, const HloShape&) = default;
};

/// The same type and dimensions, whatever the layouts. Of tuples, of all elements.
bool same_dims(const HloShape& a, const HloShape& b);

/// Product of the dimensions; 1 for a scalar, 0 for token, opaque and an unbounded dimension. Saturates at 2^62, as all functions below do.
std::int64_t elements_of(const HloShape& shape);
/// Elements at the type's own width, without padding; of a tuple the sum. Widths below a byte are packed, and rounded up to bytes per array.
Bytes logical_bytes(const HloShape& shape);
/// As the device stores it: the tiled dimensions rounded up to the first tile (tiles within it only permute), element_bits where the layout has them.
/// `f32[3,100]{1,0:T(8,128)}` has 8*128*4 bytes; a scalar `f32[]{:T(128)}` 512. A type below a byte without element_bits takes a byte per element on
/// the device. Source: openxla/xla docs/tiled_layout.md.
Bytes device_bytes(const HloShape& shape);
/// device_bytes of the arrays of a shape that live in one memory space.
Bytes device_bytes_in(const HloShape& shape, int memory_space);
/// In VMEM and in CMEM.
Bytes device_bytes_on_chip(const HloShape& shape);

/// Their sum, saturated as the sizes themselves.
Bytes saturated_sum(Bytes a, Bytes b);

/// Reads one shape from text[at] on and moves `at` behind it. `where` is the place of text[0]: errors have its column plus `at` (shapes do not
/// contain line ends). Nesting is bounded to 64 tuples. Errors: no shape; more than 2^60 bytes, dimensions beyond 2^53, more than 64 of them.
Expected<HloShape> parse_hlo_shape(std::string_view text, std::size_t& at, const SourceLocation& where);
/// The whole text is one shape.
Expected<HloShape> parse_hlo_shape(std::string_view text, const SourceLocation& where);

/// "bf16[512,1024]{1,0:T(8,128)(2,1)}"; parses back to the same value.
std::string to_text(const HloShape& shape);
/// Without layouts: "bf16[512,1024]".
std::string short_text(const HloShape& shape);
/// At most 200 characters of that, for messages: tuples may be long.
std::string cut_text(const HloShape& shape);

}  // namespace podsim
