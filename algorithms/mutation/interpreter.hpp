// Lowered schedules executed on integers modulo 2^64, as the truth that tests hold check() to.
//
// Written from the meaning of a schedule (schedule.hpp) alone: nothing of the library but its plain data is used, so that a mistake in how the
// library unrolls, validates or executes schedules is not made twice. Inputs are random 64-bit words. Sums are exact whatever their order, so a
// contribution that is lost, doubled or swapped shows for any number of devices, except with probability of about 2^-64. Slow; for tests only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim::mutation {

// ---- Where --------------------------------------------------------------------------------------------------------------------------------

Coordinates coordinates_of(const Mesh& mesh, int device);
int device_at(const Mesh& mesh, const Coordinates& at);
/// The device whose coordinate on `view` is larger by `by`, around the view.
int moved(const Mesh& mesh, Coordinates at, const AxisView& view, std::int64_t by);
std::int64_t value_of(const Affine& affine, const Coordinates& at);
bool runs_on(const Task& task, const Coordinates& at);
/// nullopt: outside the mesh.
std::optional<int> device_of(const Mesh& mesh, const Peer& peer, const Coordinates& at);

/// Positions in a buffer, row-major, in the row-major order of a region.
using Positions = std::vector<std::int64_t>;
/// nullopt: the region is not inside the buffer.
std::optional<Positions> positions_of(const Buffer& buffer, const Region& region, const Coordinates& at);

// ---- What ---------------------------------------------------------------------------------------------------------------------------------

using Words = std::vector<std::uint64_t>;
/// Per device and buffer.
using Memory = std::vector<std::vector<Words>>;

/// Inputs by their global position, so that devices with the same part of a tensor hold the same; all else noise.
Memory initial_memory(const Schedule& schedule, std::uint64_t seed);

/// What `computes` says of the outputs, by its definition.
class Postcondition {
 public:
  Postcondition(const Schedule& schedule, std::uint64_t seed);
  /// The first element that is not as expected; empty: all are.
  [[nodiscard]] std::string violation(const Memory& memory) const;

 private:
  struct Expectation {
    int device;
    int buffer;
    Positions where;
    Words words;
  };
  void expect_product(const Product& product);
  void expect_collective(const Collective& collective);

  const Schedule& schedule_;
  std::uint64_t seed_;
  std::vector<Expectation> expectations_;
};

// ---- The verdict --------------------------------------------------------------------------------------------------------------------------

enum class Verdict {
  right,      // the outputs are as expected in every order that was tried
  wrong,      // in some legal order they are not
  deadlock,      // some tasks wait for each other
  malformed,  // a region outside its buffer, a half of a transfer without its other half, sizes that differ, a result over its own operand, ...
};
struct Judgement {
  Verdict verdict;
  std::string why;
  std::string race{};  // two accesses that nothing orders; empty: there are none, or none were looked for
};

struct Trial {
  std::uint64_t seed = 1;  // of inputs and orders
  /// Legal orders, the first by readiness with every task at one moment, the others random: tasks and transfers take time there, and read and write
  /// their regions at the beginning or at the end of it.
  int orders = 4;
  bool races = false;  // look for races; takes O(tasks^2)
};
Judgement judge(const Schedule& lowered, const Trial& trial);

}  // namespace podsim::mutation
