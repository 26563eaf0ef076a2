#include "tools/command/gpu_machines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace podsim {

namespace {

/// Whether letters and digits stand in a name as a word of their own: H200 does in "NVIDIA H200 NVL", not in "NVIDIA GH200 480GB".
bool has_word(std::string_view name, std::string_view word) {
  const auto is_end = [&](std::size_t at) { return at >= name.size() || std::isalnum(static_cast<unsigned char>(name[at])) == 0; };
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1))
    if ((at == 0 || is_end(at - 1)) && is_end(at + word.size())) return true;
  return false;
}

}  // namespace

std::string_view machine_with_gpu(std::string_view gpu) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> machines{{{"GB200", "gb200_nvl72"}, {"B200", "dgx_b200"}, {"H200", "dgx_h200"}, {"H100", "dgx_h100"}, {"A100", "dgx_a100"}}};
  for (const std::string_view card : {"PCIe", "PCIE", "NVL"})
    if (has_word(gpu, card)) return {};
  const auto found = std::ranges::find_if(machines, [&](const auto& machine) { return has_word(gpu, machine.first); });
  return found == machines.end() ? std::string_view{} : found->second;
}

}  // namespace podsim
