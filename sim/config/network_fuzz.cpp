// Any bytes as a network file: a Diagnostic that can be printed, or a network in which every chip reaches every other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/config/network_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto network = podsim::read_network({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!network) {
    if (to_text(network.error()).empty()) std::abort();
    return 0;
  }
  std::vector<podsim::LinkId> route;
  if (!network->route(podsim::ChipId{0}, podsim::ChipId{network->chips() - 1}, {}, route)) std::abort();
  return 0;
}
