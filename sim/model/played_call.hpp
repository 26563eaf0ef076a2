// A call that a model plays as one task, and what one device does in it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

struct Interval {
  Picoseconds begin, end;
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The busy time of a core by what it works on.
struct CoreParts {
  Picoseconds compute;    // Matmuls and Locals other than those below; without launches, as all parts but the last
  Picoseconds recompute;  // of tasks that repeat work whose result was not kept (Task::recompute)
  Picoseconds optimiser;  // Locals of category optimiser
  Picoseconds copies;     // Locals of category copy, recomputed ones too
  Picoseconds launch;     // launches of core tasks
  friend bool operator==(const CoreParts&, const CoreParts&) = default;
};
CoreParts operator+(const CoreParts& a, const CoreParts& b);
Picoseconds total(const CoreParts& parts);

/// An uninterrupted stay of an operation in flight along one mesh axis, or of its core share on the core, which is part of it.
struct OperationFlight {
  enum class Kind : std::uint8_t { transfer, exchange, launch };  // of a Shift or Collective; of a Send or Recv; the launch of a Collective
  Interval when;
  std::uint32_t operation = 0;
  std::int16_t axis = -1;  // -1: several axes or none
  Kind kind = Kind::transfer;
  friend bool operator==(const OperationFlight&, const OperationFlight&) = default;
};

/// What one device does, and when. An operation is a Collective or a transfer of its own. Those that are in flight at some time count from 0 in
/// program order. A Call stands for the operations of its function, so a device does the same whether calls are played or inlined.
struct DeviceTimes {
  CoreParts parts;                       // they sum to the time that `core` covers
  std::vector<Interval> core, dma;       // units at work, without launches of Collectives; sorted, and apart
  std::vector<OperationFlight> flights;  // by operation, axis, kind and time; of one such combination, apart
  std::uint32_t operations = 0;
};

struct PlayedCall;

/// All occurrences on one device of tasks whose labels differ only in their slice ("ff1: gather W s0", "... s1"). A Collective is one occurrence,
/// however many tasks it was lowered to; so is a Shift, Send or Recv that an algorithm wrote.
struct OperationMetrics {
  std::string name;           // the label without slice
  std::string_view category;  // matmul, attention, elementwise, copy, send, call, opaque, or the name of a CollectiveKind (of a Shift: permute)
  std::int64_t count = 0;
  Picoseconds busy;         // the core works on it
  Picoseconds exposed;      // the core is idle and waits for it (exposed_by(), sim/analysis/operations.hpp)
  Picoseconds overlapped;   // it is in flight while the core is busy
  Picoseconds in_flight;    // something of an occurrence is in flight; summed over occurrences
  std::vector<int> axes{};  // of the mesh, along which a collective or Shift moves, in order
  MatmulExtents extents;    // of one occurrence of a matmul; of an opaque one 0 where they are not known
  Flops flops;              // of one occurrence: 2mnk, or what an opaque one states
  Bytes bytes;              // of one occurrence: the input of a collective per device, the payload of a Shift or Send
  int devices = 0;          // that take part in a collective
  double memory_bytes = 0;  // of all occurrences: what passed the device's memory
  const PlayedCall* call = nullptr;  // of a Call that is played: what is in one occurrence
};

/// A call of a function, on all devices of a program that calls it, as a run of its own found it: there every device does the same at the same time.
/// The model that has it plays each Call as one task of this length.
struct PlayedCall {
  Picoseconds length;
  Seconds core_work;                                   // of the function's core tasks, with launches
  DeviceTimes times;                                   // of each device, from the start of the call
  std::array<double, product_dtype_count> products{};  // m n k of all devices, by dtype
  std::int64_t tasks = 0;                              // instances on all devices
  /// When a device first writes an argument and last uses it, from the start of the call; nothing where it does not.
  struct ArgumentUse {
    std::optional<Picoseconds> written, used;
  };
  std::vector<ArgumentUse> arguments;
  /// What a device takes for the function's own buffers beside them, and gives back (negative), from the start of the call. Times increase.
  struct ScratchChange {
    Picoseconds at;
    Bytes by;
  };
  std::vector<ScratchChange> scratch;
  Bytes sent, received;                                // by each device
  double memory_bytes = 0;                             // that each device moves through its memory
  double drawn_beside_core = 0;                        // of a memory by the function's transfers, bytes per second at most,
  double fastest_beside_core = 0;                      // and the fastest of them
  struct Axis {                                        // traffic along a mesh axis, as AxisMetrics
    int axis = 0;
    double link_bytes = 0;
    std::int64_t transfers = 0;
  };
  std::vector<Axis> axes;
  std::vector<OperationMetrics> operations;  // of each device
};
/// [program][function]; of functions that the program does not call: no length.
using PlayedCalls = std::vector<std::vector<PlayedCall>>;

}  // namespace podsim
