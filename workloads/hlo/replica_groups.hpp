// Which devices take part in a collective together: replica groups in their three spellings, kept as compactly as they are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/mesh/mesh.hpp"

namespace podsim {

/// Groups of device ids. Text forms:
///
///   all    {}                                       one group of all devices, however many those are
///   list   {{0,1},{2,3}}                            groups may differ in size
///   iota   [4,2]<=[8], [2,4]<=[4,2]T(1,0)           iota(prod dims) reshaped to `dims`, transposed by `transpose`, reshaped to rows of `group_size`
///   mesh   mesh['data'=2,'model'=4] {'model'}       ids reshaped to the axis sizes, the listed axes moved to the end in their order; rows of their
///   product
///
/// In mesh form a part of an axis is listed as 'a':(p)s: the axis is split into [p, s, rest] and the middle is meant. device_ids=(..) beside the mesh
/// are the ids in place of iota. A mesh is kept as the iota of its (split) axes, with its names. Source: openxla/xla xla/hlo/ir/replica_group.cc.
class ReplicaGroups {
 public:
  enum class Spelling { all, list, iota, mesh };
  struct Axis {
    std::string name;
    std::int64_t size = 1;
    friend bool operator==(const Axis&, const Axis&) = default;
  };
  /// An axis of the mesh form that the groups extend over; the whole of it if size is 0, else the part (p)s.
  struct AxisPart {
    int axis = 0;
    std::int64_t before = 1, size = 0;
    friend bool operator==(const AxisPart&, const AxisPart&) = default;
  };

  /// One group of all devices.
  ReplicaGroups() = default;
  /// No group may be empty (an assert).
  static ReplicaGroups of_list(const std::vector<std::vector<std::int64_t>>& groups);
  /// Errors: an extent below 1, products that differ or pass 2^31, no permutation.
  static Expected<ReplicaGroups> of_iota(std::vector<std::int64_t> rows, std::vector<std::int64_t> dims, std::vector<int> transpose,
                                         const SourceLocation& where);
  /// Errors: an unknown or repeated axis, a part that does not divide its axis, products beyond 2^31, as many device ids as devices or none.
  static Expected<ReplicaGroups> of_mesh(std::vector<Axis> axes, std::vector<std::int64_t> device_ids, std::vector<AxisPart> listed,
                                         const SourceLocation& where);

  [[nodiscard]] Spelling spelling() const { return spelling_; }
  [[nodiscard]] bool is_all() const { return spelling_ == Spelling::all; }
  /// 0 for `all`.
  [[nodiscard]] std::int64_t count() const;
  /// The devices of group `group`; constant time. Of `all` none.
  [[nodiscard]] std::int64_t size(std::int64_t group) const;
  /// The size that all groups have; nullopt if they differ, or of `all`.
  [[nodiscard]] std::optional<std::int64_t> uniform_size() const;
  /// Device number `position` of a group: O(dims).
  [[nodiscard]] std::int64_t device(std::int64_t group, std::int64_t position) const;
  [[nodiscard]] std::vector<std::int64_t> devices(std::int64_t group) const;
  /// Devices in all groups together.
  [[nodiscard]] std::int64_t total() const;
  /// The largest id; -1 for `all`.
  [[nodiscard]] std::int64_t largest() const;
  /// Of the mesh form: its axes, and those listed.
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] const std::vector<AxisPart>& listed() const { return listed_; }

  friend bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;

 private:
  friend std::string to_text(const ReplicaGroups& groups);
  Spelling spelling_ = Spelling::all;
  std::int64_t count_ = 0, size_ = 0;   // of iota and mesh
  std::vector<std::int64_t> dims_{};    // iota: as written; mesh: the split axes
  std::vector<int> transpose_{};        // dimension of dims_ that each dimension of the transpose is; empty: as it is
  std::vector<std::int64_t> ids_{};     // list: all groups after each other; mesh: device_ids
  std::vector<std::int64_t> begins_{};  // list: of each group in ids_, and the end
  std::vector<Axis> axes_{};
  std::vector<AxisPart> listed_{};
};

/// As it is written, in the same spelling.
std::string to_text(const ReplicaGroups& groups);

/// Reads replica groups in any spelling from text[at] on and moves `at` behind them; `where` is the place of text[0]. Errors: what is none, a device
/// twice, an empty group among others, more than 2^24 listed ids.
Expected<ReplicaGroups> parse_replica_groups(std::string_view text, std::size_t& at, const SourceLocation& where);

using SourceTarget = std::pair<std::int64_t, std::int64_t>;
/// A pair of a permute in which a device sends, or receives, as one of another pair does; nullopt: there is none. O(pairs log pairs).
std::optional<SourceTarget> repeated_pair(const std::vector<SourceTarget>& pairs);

/// What the ids of a collective's groups count (3.7). From channel_id and use_global_device_ids.
enum class HloGroupMode {
  replicas,             // no channel_id: replica ids, each partition by itself
  partitions,           // channel_id, without the flag (all-to-all, collective-permute): partition ids, each replica by itself
  replicas_everywhere,  // channel_id, the flag false: replica ids, in each group all partitions
  flattened             // channel_id, the flag true: replica * num_partitions + partition
};

/// How many ids of a mode there are. With one replica, ids of any mode but replicas_everywhere are partition ids (every jit program).
std::int64_t ids_of(HloGroupMode mode, std::int64_t replicas, std::int64_t partitions);

/// The groups in flattened ids. `all` becomes the group of all such devices. Errors: ids beyond the replicas, partitions or devices; more than 2^24 ids to list.
Expected<ReplicaGroups> flattened_groups(const ReplicaGroups& groups, HloGroupMode mode, std::int64_t replicas, std::int64_t partitions,
                                         const SourceLocation& where);

/// The mesh axes that the groups extend over, most significant first, so that position i of a group has these coordinates row-major:
/// [2,4]<=[4,2]T(1,0) on x=4,y=2 is {x}. `all` is every axis of more than one device. nullopt if the groups are not all the devices of the mesh along
/// some of its axes. Groups of one device each are no axis: an empty list. O(devices).
std::optional<std::vector<int>> axes_of(const ReplicaGroups& groups, const Mesh& mesh);

/// A collective-permute as a shift along one axis, of all devices or of those with some fixed coordinates.
struct PermuteShift {
  int axis = 0;
  std::int64_t by = 1;                       // if it wraps modulo the size, from -(size-1)/2 to size/2; else target minus source
  bool wraps = true;                         // false: devices at the end of the axis send nothing
  std::vector<std::pair<int, int>> fixed{};  // axis, coordinate: only these devices take part
  friend bool operator==(const PermuteShift&, const PermuteShift&) = default;
};
/// nullopt if the pairs are none. O(devices).
std::optional<PermuteShift> shift_of(const std::vector<SourceTarget>& pairs, const Mesh& mesh);

}  // namespace podsim
