#include "sim/engine/mpi/clock.hpp"

#include <ctime>

namespace podsim {

Moment now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return {static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec};
}

}  // namespace podsim
