// Writes schedules of ours as scheduled HLO, so that tests can read them back. Not for anything but tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim::testing {

/// A tensor of the schedule as the module has it: of two dimensions, each sharded along these axes of the mesh, row-major, first most significant.
struct HloTensor {
  std::string tensor;                              // "X", also the name of its parameter
  std::vector<std::int64_t> extents;               // of all devices together
  std::vector<std::vector<std::string>> sharding;  // axes, by dimension
};

struct WrittenHlo {
  std::string text;
  std::vector<HloTensor> parameters;  // in their order
  HloTensor result;
};

/// What stands where a result is put together from parts.
enum class Blank {
  zeros,     // a broadcast, which writes them
  allocated  // custom-call AllocateBuffer, as TPU compilers do: free
};

/// The schedule of one product by one program, before lowering, as a module with one partition per device of the mesh:
///
///   Collective, Shift   -start where the program has it, -done where a later task waits for it or reads what it brought
///   Matmul              dot; one that accumulates is a fusion of dot and add
///   copy                a fusion that slices, or that updates a part of the result in place
///   alias               nothing; slices, where the data is read
///   add                 add
///   guarded alias       select by the device's own coordinate
///
/// Core instructions and -starts stand in the order of the program. A region is an array of the region's lengths; parameters and the result are the
/// shards as matrices. Blocks at places that depend on the device are dynamic-slices by partition-id. It computes what the schedule computes. Throws
/// std::logic_error for what it has no form for: a reduce, for example, which HLO lacks.
WrittenHlo schedule_as_hlo(const Schedule& schedule, Blank blank = Blank::zeros);

/// The same schedule with Shifts ahead of products that begin no earlier than they do; `begins`: of each task, on one device. Our transfers begin
/// when their data is there; those of a module begin when the core comes to them, and a compiler puts them where it expects the data.
Schedule in_order_of_time(Schedule schedule, const std::vector<Picoseconds>& begins);

/// A reduce to one device as an all-reduce whose result only that device keeps: HLO has no reduce.
Schedule with_all_reduces(Schedule schedule);

}  // namespace podsim::testing
