#include "validation/calibration/importers/kernel_category.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "sim/base/text.hpp"
#include "sim/schedule/collective_kind.hpp"

namespace podsim {

namespace {

using KernelWord = std::pair<std::string_view, std::string_view>;  // part of a name in lower case -> category

// Of NCCL's kernels and of PyTorch's names of collectives, in plain spelling (sim/base/text.hpp). "allgather" comes before "gather".
constexpr std::array<KernelWord, 14> collective_kernels = {{{"allreduce", "all-reduce"},
                                                {"reducescatter", "reduce-scatter"},
                                                {"allgather", "all-gather"},
                                                {"alltoall", "all-to-all"},
                                                {"collectivepermute", "permute"},
                                                {"broadcast", "broadcast"},
                                                {"nccldevkernelreduce", "reduce"},
                                                {"ncclkernelreduce", "reduce"},
                                                {"ncclreduce", "reduce"},
                                                {"sendrecv", "permute"},
                                                {"nccl:send", "permute"},
                                                {"nccl:recv", "permute"},
                                                {"nccl:gather", "collective"},
                                                {"nccl:scatter", "collective"}}};

// Products by cuBLAS (nvjet, xmma, cutlass), Triton in XLA (gemm_fusion), rocBLAS (Cijk), cuDNN; attention by cuDNN, FlashAttention, Triton; PyTorch's optimisers and losses.
constexpr std::array<KernelWord, 37> kernel_words = {{{"attention", "attention"},
                                          {"flash", "attention"},
                                          {"fmha", "attention"},
                                          {"sdpa", "attention"},
                                          {"compute_dot_do_o", "attention"},
                                          {"convert_dq_to_16bits", "attention"},
                                          {"memcpy", "copy"},
                                          {"memset", "copy"},
                                          {"nvjet", "matmul"},
                                          {"gemm", "matmul"},
                                          {"gemv", "matmul"},
                                          {"cublas", "matmul"},
                                          {"cutlass", "matmul"},
                                          {"xmma", "matmul"},
                                          {"cijk_", "matmul"},
                                          {"splitk", "matmul"},
                                          {"fusion_dot", "matmul"},
                                          {"implicit_convolve", "matmul"},
                                          {"convolution", "matmul"},
                                          {"conv2d", "matmul"},
                                          {"wgrad", "matmul"},
                                          {"dgrad", "matmul"},
                                          {"aten::mm", "matmul"},
                                          {"aten::addmm", "matmul"},
                                          {"aten::bmm", "matmul"},
                                          {"adam", "optimiser"},
                                          {"optimizer.step", "optimiser"},
                                          {"nll_loss", "loss"},
                                          {"nllloss", "loss"},
                                          {"cross_entropy", "loss"},
                                          {"log_softmax", "loss"},
                                          {"aten::copy_", "copy"},
                                          {"catarray", "copy"},
                                          {"dynamic_update_slice", "copy"},
                                          {"transpose_fusion", "copy"},
                                          {"wrapped_transpose", "copy"},
                                          {"wrapped_concatenate", "copy"}}};

std::string in_lower_case(std::string_view text) {
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool says_kernel(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

std::optional<std::string_view> collective_in(std::string_view name) {
  const std::string plain = plain_spelling(name);
  for (const auto& [word, category] : collective_kernels)
    if (says_kernel(plain, word)) return category;
  return std::nullopt;
}

bool is_of_nccl(std::string_view kernel) { return kernel.starts_with("nccl") || kernel.starts_with("rccl") || says_kernel(kernel, "::nccl"); }

/// An instruction of XLA that is a collective: its name is its opcode, with a number.
bool is_collective_instruction(std::string_view operation) {
  for (const std::string_view word : {"all-", "reduce-scatter", "collective-", "ragged-all-to-all"})
    if (operation.starts_with(word)) return true;
  return false;
}

}  // namespace

std::string kernel_category(std::string_view kernel, std::string_view operation) {
  if (is_of_nccl(kernel)) {
    const auto own = collective_in(kernel), asked = collective_in(operation);
    if (own && *own != "permute") return std::string{*own};
    return std::string{asked ? *asked : own.value_or("collective")};
  }
  if (is_collective_instruction(operation))
    if (const auto asked = collective_in(operation)) return std::string{*asked};
  const std::string of_kernel = in_lower_case(kernel), of_operation = in_lower_case(operation);
  for (const std::string& name : {of_kernel, of_operation})
    for (const auto& [word, category] : kernel_words)
      if (says_kernel(name, word)) return std::string{category};
  return "elementwise";
}

bool is_collective_category(std::string_view category) {
  return category == "collective" || category == "send" || collective_kind_named(category).has_value();
}

std::string short_kernel_name(std::string_view kernel) {
  std::string plain;  // without what stands in brackets: arguments of templates and of the kernel
  int depth = 0;
  for (const char c : kernel) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) plain += c;
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  if (depth != 0) return std::string{kernel};  // not a name of C++
  if (plain.starts_with("void ")) plain.erase(0, 5);
  while (!plain.empty() && plain.back() == ' ') plain.pop_back();
  if (const std::size_t scope = plain.rfind("::"); scope != std::string::npos && scope + 2 < plain.size()) plain.erase(0, scope + 2);
  return plain.empty() ? std::string{kernel} : plain;
}

}  // namespace podsim
