// How arrays are divided over a mesh: jax.sharding.PartitionSpec, and the shards that follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/expected.hpp"
#include "sim/mesh/mesh.hpp"

namespace podsim {

using Extents = std::vector<std::int64_t>;

/// Per dimension of an array the mesh axes that divide it, first most significant; dimensions at the end may be left out. Along `unreduced` axes each
/// device holds an addend of the value (a partial sum is pending). Along all other axes the array is replicated. Axes are positions in Mesh::axes();
/// each occurs at most once.
struct Sharding {
  std::vector<std::vector<int>> dims{};
  std::vector<int> unreduced{};  // increasing
  /// The axes of a dimension; none for one that is left out.
  [[nodiscard]] const std::vector<int>& axes_of(std::size_t dimension) const;
  /// With dimensions at the end that no axis divides left out, so that equal shardings compare equal.
  [[nodiscard]] Sharding canonical() const;
  friend auto operator<=>(const Sharding&, const Sharding&) = default;
};

/// "x,-", "(x+y),-", "unreduced(x+y):-,z"; an entry is an axis, `-` for none, or several axes in parentheses, first most significant; blanks between
/// them do not count. An empty text is replicated, "-" also at rank 0. The result is canonical(). `where` is the place of the first character.
/// Errors, with the column if `where` has one: an unknown axis (names the near ones), an axis used twice, more entries than `rank`, an empty entry,
/// anything else.
Expected<Sharding> parse_sharding(std::string_view text, const Mesh& mesh, std::size_t rank, const SourceLocation& where,
                                  bool allow_unreduced = false);
/// The same form, one entry per dimension of `rank`; rank 0: "-". Parsing it gives the sharding again.
std::string to_text(const Sharding& sharding, const Mesh& mesh, std::size_t rank);
/// As JAX prints it: "P('x', None)", "P(('x', 'y'), None)", "P(None, 'y', unreduced={'x'})".
std::string jax_text(const Sharding& sharding, const Mesh& mesh, std::size_t rank);

/// The product of the sizes of the axes.
std::int64_t devices_along(const Mesh& mesh, const std::vector<int>& axes);
/// The extents of one device's shard. Errors: an extent that its axes do not divide; the message names `array`, dimension, extent and multiple.
Expected<Extents> shard_extents(const Extents& extents, const Sharding& sharding, const Mesh& mesh, std::string_view array,
                                const SourceLocation& where);
/// The extents, at most 2^62, rounded up to multiples that the axes divide.
Extents padded_extents(const Extents& extents, const Sharding& sharding, const Mesh& mesh);
/// The position of a device along the axes, first most significant: the number of its block of a dimension that they divide.
std::int64_t block_of(const Mesh& mesh, const std::vector<int>& axes, DeviceId device);

/// A block of an array and the devices that hold it.
struct Shard {
  std::vector<DeviceId> devices;                              // increasing
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // per dimension [first, last)
  friend bool operator==(const Shard&, const Shard&) = default;
};
/// Every distinct block, in row-major order of the blocks: at most one per device. An empty dimension has empty blocks. Errors: those of
/// shard_extents().
Expected<std::vector<Shard>> shards_of(const Extents& extents, const Sharding& sharding, const Mesh& mesh, const SourceLocation& where);

}  // namespace podsim
