#include "workloads/hlo/tpu_clock.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace podsim {

std::optional<double> tpu_clock_hz(const Machine& machine) {
  constexpr std::array<std::pair<std::string_view, double>, 6> flops_per_cycle{
      {{"tpu_v3", 65536}, {"tpu_v4", 262144}, {"tpu_v5e", 131072}, {"tpu_v5p", 262144}, {"tpu_v6e", 524288}, {"tpu7x", 524288}}};
  const auto found = std::ranges::find(flops_per_cycle, machine.name, &std::pair<std::string_view, double>::first);
  if (found == flops_per_cycle.end()) return std::nullopt;
  return peak_of(machine, DType::bf16).count() / found->second;
}

}  // namespace podsim
