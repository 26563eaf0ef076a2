// From one sharding of an array to another, by collectives.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/quantity.hpp"
#include "sim/mesh/sharding.hpp"

namespace podsim {

enum class StepKind { slice, all_gather, reduce_scatter, all_reduce, all_to_all, permute, unreduce };
std::string_view name_of(StepKind kind);  // "all-gather"

/// One step of a conversion. Bytes are per device; `received` counts the bytes that a device must receive, of P devices along `axes`:
///   slice           each device keeps a piece of dimension `dim`                        none
///   all-gather      removes the last axes of dimension `dim`                            (P-1)/P of its output
///   reduce-scatter  sums pending along `axes` are added; axes become the last of `dim`  (P-1)/P of its input
///   all-reduce      sums pending along `axes` are added                                 twice (P-1)/P of its input
///   all-to-all      the last axes of `from_dim` become the last of `dim`                (P-1)/P of its input
///   permute         the devices exchange whole blocks                                   its input
///   unreduce        the first device along `axes` keeps its block, the others hold 0    none
struct ReshardStep {
  StepKind kind = StepKind::slice;
  std::vector<int> axes{};  // first most significant; permute: all axes of either sharding
  int dim = 0, from_dim = 0;
  Sharding before{}, after{};
  Bytes input{}, received{};
  friend bool operator==(const ReshardStep&, const ReshardStep&) = default;
};

/// What is made small first.
enum class Objective { bytes, collectives };

/// Slices and `unreduce` move nothing between devices.
bool is_collective(StepKind kind);

/// The received bytes and the number of collectives.
struct ReshardCost {
  Bytes received{};
  int collectives = 0;
  friend bool operator==(const ReshardCost&, const ReshardCost&) = default;
  friend ReshardCost operator+(const ReshardCost& a, const ReshardCost& b) { return {a.received + b.received, a.collectives + b.collectives}; }
};
/// Whether `a` is less, by the objective first and by the other number then.
bool less(const ReshardCost& a, const ReshardCost& b, Objective objective);

struct Resharding {
  std::vector<ReshardStep> steps{};
  ReshardCost cost{};
};

/// An array whose conversions are asked for. Axes of size 1 must not occur in its shardings.
struct ArrayLayout {
  Extents extents;
  Bytes element;
  friend auto operator<=>(const ArrayLayout&, const ArrayLayout&) = default;
};

/// Finds cheapest conversions: shortest paths over all shardings of the axes that occur. Keeps what it has found. Cost of a first answer: with n axes and
/// rank r, up to n! C(n + r, r) 2 shardings.
class Resharder {
 public:
  explicit Resharder(const Mesh& mesh, Objective objective = Objective::bytes);
  ~Resharder();
  Resharder(Resharder&&) noexcept;

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] Objective objective() const { return objective_; }
  /// The cheapest conversion; sums that `from` has not are made pending last. nullptr: there is none, because `to` does not divide the array.
  const Resharding* find(const ArrayLayout& array, const Sharding& from, const Sharding& to);
  /// All that `from` can be converted to with these axes, with costs. For searches.
  const std::map<Sharding, Resharding>& all(const ArrayLayout& array, const Sharding& from, const std::vector<int>& axes);

 private:
  struct Graph;
  struct Key;
  Graph& graph(const ArrayLayout& array, const std::vector<int>& axes);

  const Mesh& mesh_;
  Objective objective_;
  std::map<Key, std::unique_ptr<Graph>> graphs_;
  std::map<std::tuple<ArrayLayout, Sharding, Sharding>, Resharding> unreduced_;  // conversions that end with `unreduce`
};

/// Whether the axes of every dimension divide it.
bool divides(const Extents& extents, const Sharding& sharding, const Mesh& mesh);

/// Of a permute: who sends its block to whom, positions along the step's axes. A device that has the right block already keeps it, the others take copies in order.
std::vector<std::pair<std::int64_t, std::int64_t>> exchanged_blocks(const ReshardStep& step, const Mesh& mesh);

/// The bytes of one device's block.
Bytes block_bytes(const ArrayLayout& array, const Sharding& sharding, const Mesh& mesh);

}  // namespace podsim
