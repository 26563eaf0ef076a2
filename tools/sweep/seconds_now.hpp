// The clock of the table `sessions`.
#pragma once

#include <chrono>

namespace podsim {

/// Since 1970.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace podsim
