#include "validation/diff/kernel_order.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace podsim {

namespace {

constexpr std::size_t most_cells = 100'000'000;
constexpr double same_count = 0.01;

/// As XLA names the kernel of an instruction.
std::string kernel_name(std::string_view instruction) {
  std::string name{instruction};
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// "loop_add_fusion" of "loop_add_fusion_4".
std::string_view without_number(std::string_view name) {
  const std::size_t letter = name.find_last_not_of("0123456789");
  return letter != std::string_view::npos && letter + 1 < name.size() && name[letter] == '_' ? name.substr(0, letter) : name;
}

bool is_of_library(std::string_view category) { return category == "matmul" || category == "attention"; }

struct Instruction {
  std::string name;  // of its kernel
  std::string_view category;
  double count = 0;
  std::vector<std::size_t> of;
};

class Aligner {
 public:
  Aligner(const std::vector<StepOperation>& predicted, const std::vector<StepOperation>& measured) : measured_{measured} {
    std::map<std::string_view, std::size_t> known;  // by name, without the trip of a loop
    for (std::size_t p = 0; p < predicted.size(); ++p) {
      const StepOperation& operation = predicted[p];
      if (!(operation.time > Seconds{})) continue;
      const std::string_view name = std::string_view{operation.name}.substr(operation.name.rfind(' ') + 1);
      const auto [at, is_new] = known.try_emplace(name, instructions_.size());
      if (is_new) instructions_.push_back({kernel_name(name), operation.category, 0, {}});
      instructions_[at->second].count += operation.count;
      instructions_[at->second].of.push_back(p);
    }
    for (const Instruction& instruction : instructions_) stems_.emplace(without_number(instruction.name));
    for (std::size_t m = 0; m < measured.size(); ++m)
      if (measured[m].is_kernel) kernels_.push_back(m);
  }

  std::vector<KernelPair> run() {
    const std::size_t p = instructions_.size(), k = kernels_.size();
    if (p == 0 || k == 0 || p > most_cells / k) return {};
    // scores of the ends of both lists, from p and k on
    std::vector<std::int32_t> best((p + 1) * (k + 1), 0);
    const auto at = [&best, k](std::size_t i, std::size_t j) -> std::int32_t& { return best[i * (k + 1) + j]; };
    for (std::size_t i = p; i-- > 0;)
      for (std::size_t j = k; j-- > 0;) {
        const int one = score(instructions_[i], measured_[kernels_[j]]);
        at(i, j) = std::max({at(i + 1, j), at(i, j + 1), one > 0 ? at(i + 1, j + 1) + one : 0});
      }
    std::vector<std::size_t> instruction_of(k, p);
    for (std::size_t i = 0, j = 0; i < p && j < k;) {
      const int one = score(instructions_[i], measured_[kernels_[j]]);
      if (one > 0 && at(i, j) == at(i + 1, j + 1) + one)
        instruction_of[j++] = i++;
      else if (at(i, j) == at(i + 1, j))
        ++i;
      else
        ++j;
    }
    spread(instruction_of);
    std::vector<KernelPair> pairs(p);
    for (std::size_t j = 0; j < k; ++j)
      if (instruction_of[j] < p) pairs[instruction_of[j]].measured.push_back(kernels_[j]);
    for (std::size_t i = 0; i < p; ++i) pairs[i].predicted = instructions_[i].of;
    std::erase_if(pairs, [](const KernelPair& pair) { return pair.measured.empty(); });
    return pairs;
  }

 private:
  [[nodiscard]] int score(const Instruction& instruction, const StepOperation& kernel) const {
    if (!(std::abs(instruction.count - kernel.count) <= same_count * kernel.count)) return 0;
    if (instruction.name == kernel.name) return 8;
    const std::string_view stem = without_number(kernel.name);
    if (stem == without_number(instruction.name)) return 4;
    const bool library = is_of_library(kernel.category) && !stems_.contains(stem) && instruction.category == kernel.category;
    return library ? 3 : 0;
  }

  /// To the kernels of a library on both sides.
  void spread(std::vector<std::size_t>& instruction_of) const {
    const std::size_t none = instructions_.size();
    const auto joins = [&](std::size_t from, std::size_t to) {
      const StepOperation &a = measured_[kernels_[from]], &b = measured_[kernels_[to]];
      const double times = a.count > 0 ? b.count / a.count : 0;
      return instruction_of[from] < none && instruction_of[to] == none && a.category == "attention" && a.category == b.category && !stems_.contains(without_number(a.name)) &&
             times >= 1 - same_count && std::abs(times - std::round(times)) <= same_count;
    };
    // What only clears memory stands between them.
    const auto is_between = [&](std::size_t j) { return instruction_of[j] == none && measured_[kernels_[j]].category == "copy"; };
    for (std::size_t from = 0; from < kernels_.size(); ++from)
      for (std::size_t to = from + 1; to < kernels_.size(); ++to) {
        if (is_between(to)) continue;
        if (!joins(from, to)) break;
        instruction_of[to] = instruction_of[from];
      }
    for (std::size_t from = kernels_.size(); from-- > 0;)
      for (std::size_t to = from; to-- > 0;) {
        if (is_between(to)) continue;
        if (!joins(from, to)) break;
        instruction_of[to] = instruction_of[from];
      }
  }

  const std::vector<StepOperation>& measured_;
  std::vector<Instruction> instructions_;
  std::vector<std::size_t> kernels_;      // positions in measured_
  std::set<std::string, std::less<>> stems_;
};

}  // namespace

std::vector<KernelPair> kernels_in_order(const std::vector<StepOperation>& predicted, const std::vector<StepOperation>& measured) { return Aligner{predicted, measured}.run(); }

}  // namespace podsim
