// Executes lowered schedules on integers modulo 2^64: the reference that tests compare check() to.
//
// Written from the definition of a schedule (schedule.hpp). It uses the library's plain data and no other code, so that a mistake in unrolling,
// validating or executing is not made twice. Inputs are random 64-bit words. Sums are exact in any order, so a lost, doubled or swapped contribution
// shows on any number of devices, except with a probability of about 2^-64. Slow; for tests only.
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
/// The device whose coordinate on `view` is larger by `by`, modulo the view's size.
int moved(const Mesh& mesh, Coordinates at, const AxisView& view, std::int64_t by);
/// Each physical dimension of the axis turned by its digit of `by`, or back by that of -by.
int moved_by_dimension(const Mesh& mesh, Coordinates at, int axis, std::int64_t by);
std::int64_t value_of(const Affine& affine, const Coordinates& at);
bool runs_on(const Task& task, const Coordinates& at);
/// nullopt: outside the mesh.
std::optional<int> device_of(const Mesh& mesh, const Peer& peer, const Coordinates& at);

/// Row-major positions in a buffer, in the row-major order of a region.
using Positions = std::vector<std::int64_t>;
/// nullopt: the region is not inside the buffer.
std::optional<Positions> positions_of(const Buffer& buffer, const Region& region, const Coordinates& at);

// ---- What ---------------------------------------------------------------------------------------------------------------------------------

using Words = std::vector<std::uint64_t>;
/// Per device and buffer.
using Memory = std::vector<std::vector<Words>>;

/// Inputs are functions of the global position, so devices with the same part of a tensor hold the same values. Everything else is random.
Memory initial_memory(const Schedule& schedule, std::uint64_t seed);

/// The outputs that `computes` defines.
class Postcondition {
 public:
  Postcondition(const Schedule& schedule, std::uint64_t seed);
  /// The first element with a wrong value; empty: all are correct.
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
  right,      // the outputs are correct in every order that was tried
  wrong,      // they are wrong in some legal order
  deadlock,      // some tasks wait for each other
  malformed,  // a region outside its buffer, a half of a transfer without its other half, sizes that differ, a result over its own operand, ...
};
struct Judgement {
  Verdict verdict;
  std::string why;
  std::string race{};  // two accesses that nothing orders; empty: none found, or not searched
};

struct Trial {
  std::uint64_t seed = 1;  // of inputs and orders
  /// Number of legal orders. The first runs tasks by readiness, each at one moment. The others are random: tasks and transfers take time, and access
  /// their regions at its beginning or end.
  int orders = 4;
  bool races = false;  // search for races; O(tasks^2)
};
Judgement judge(const Schedule& lowered, const Trial& trial);

}  // namespace podsim::mutation
