// Any bytes as a topology of NCCL: a Diagnostic that can be printed, or nodes of which a network is made or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "topologies/nccl/nccl_network.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace podsim;
  const auto system = read_nccl_system({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!system) {
    if (to_text(system.error()).empty()) std::abort();
    return 0;
  }
  if (to_text(*system).empty() || system->gpus.empty()) std::abort();
  if (system->gpus.size() > 64) return 0;
  if (const auto network = nccl_network(*system, 2, {}, {}); network && network->chips() != 2 * static_cast<int>(system->gpus.size())) std::abort();
  return 0;
}
