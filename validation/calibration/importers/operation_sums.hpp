// What OperationTimes adds up of one operation over the devices. For its own files only.
#pragma once

#include <cstdint>
#include <vector>

#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// In picoseconds, which doubles hold exactly for hours.
struct OperationTimes::Sums {
  explicit Sums(std::size_t operations) : occurrences(operations), self(operations), beside(operations), of_kernel(operations) {}
  std::vector<double> occurrences, self, beside;
  std::vector<double> of_kernel;      // self of each kernel, which `self` has in the operation that it belongs to
  std::vector<std::uint32_t> starts;  // per operation: of a done or update its start, of a kernel the first of its operation, else itself; on the device that was added last
  double time = 0;
  std::size_t devices = 0;
};

}  // namespace podsim
