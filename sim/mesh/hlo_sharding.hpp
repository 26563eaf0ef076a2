// The sharding attribute of HLO instructions: sharding={devices=[4,2]<=[8]}, and what it says in terms of a mesh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/mesh/sharding.hpp"

namespace podsim {

/// A sharding as HLO says it. Text forms, by kind:
///
///   replicated, manual, unknown, unreduced   {replicated}
///   maximal                                  {maximal device=3}              the whole array on one device
///   tiled                                    {devices=[4,2]<=[8]}, {devices=[2,4]<=[4,2]T(1,0)}, {devices=[2,2]0,2,1,3}
///   tuple                                    {{replicated}, {devices=[8]<=[8]}}   one for each leaf of a tuple; {} of an empty one
///
/// A tiled sharding divides dimension i of the array into tiles[i] blocks. Tile dimensions beyond the rank are named at the end, by the kind of what
/// their devices have in common: ` last_tile_dim_replicate` for copies alone, else ` last_tile_dims={manual, replicated}`. The devices of the tiles,
/// row-major, are a list, or iota over iota_shape, transposed by iota_transpose.
struct HloSharding {
  enum class Kind { replicated, maximal, manual, unknown, unreduced, tiled, tuple };
  Kind kind = Kind::replicated;
  std::int64_t device = 0;              // of maximal
  Extents tiles{};                      // of tiled, with the dimensions of last_kinds at the end
  std::vector<Kind> last_kinds{};       // replicated, manual, unknown or unreduced
  Extents iota_shape{};                 // empty: the devices are listed
  std::vector<int> iota_transpose{};    // the dimension of iota_shape that each dimension of its transpose is; none: as it is
  std::vector<std::int64_t> list{};     // of devices, each once
  std::vector<HloSharding> elements{};  // of tuple: none is a tuple
  friend bool operator==(const HloSharding&, const HloSharding&) = default;
};

/// Reads `{…}` from text[at] on and moves `at` behind its last brace; what follows is not looked at. `where` is the place of text[at].
///   errors   with the column: another text; tiles, iota_shape and list of different sizes; more than 2^24 devices; a device listed twice
///   cost     O(characters), but for a list O(devices log devices)
Expected<HloSharding> parse_hlo_sharding(std::string_view text, std::size_t& at, const SourceLocation& where);
/// A text that is nothing but the sharding.
Expected<HloSharding> parse_hlo_sharding(std::string_view text, const SourceLocation& where);
/// As XLA prints it.
std::string to_text(const HloSharding& sharding);

/// The device of each tile, row-major over `tiles`. Only of a tiled one: an assert.
std::vector<std::int64_t> tile_devices(const HloSharding& sharding);

/// What jax.sharding.NamedSharding becomes in HLO; devices are positions in the mesh. Axes of size 1 are dropped. Axes that divide dimensions come
/// first, in the order of the dimensions, then those along which the array is replicated, then the unreduced ones, as last_tile_dims. {replicated}
/// where no axis is used.
HloSharding to_hlo(const Sharding& sharding, const Mesh& mesh, std::size_t rank);
/// The sharding of an array of `rank` dimensions that to_hlo(), or any other form of the same, came from; never with axes of size 1. Errors: manual,
/// maximal, unknown and tuples; another number of devices or dimensions; tiles that no assignment of whole axes gives.
Expected<Sharding> from_hlo(const HloSharding& hlo, const Mesh& mesh, std::size_t rank, const SourceLocation& where);

}  // namespace podsim
