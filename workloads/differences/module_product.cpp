#include "workloads/differences/module_product.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo/hlo_summary.hpp"

namespace podsim {

namespace {

constexpr const char* give_it = "; `gemm` says which product it is, as m=2048,n=1024,k=512";

struct NamedArray {
  std::string name;
  const HloShape* shape = nullptr;
};

std::string to_text(const NamedArray& array) { return fmt::format("{} {}", array.name, short_text(*array.shape)); }

/// The arrays of the parameters that have buffers, in the order of the program's inputs.
std::vector<NamedArray> input_arrays(const HloModule& module) {
  std::vector<NamedArray> arrays;
  const HloComputation& entry = module.entry_computation();
  for (const int parameter : entry.parameters) {
    const HloInstruction& given = entry.instructions[static_cast<std::size_t>(parameter)];
    const auto leaves = leaves_of(*given.shape);
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
      if (leaves[leaf]->is_array() && leaves[leaf]->rank() > 0)
        arrays.push_back({leaves.size() > 1 ? fmt::format("{}.{}", given.name, leaf) : given.name, leaves[leaf]});
  }
  return arrays;
}

/// The results that products make.
std::vector<NamedArray> made_results(const HloModule& module, const Program& program, const DataFlow& flow, const std::vector<NamedArray>& inputs) {
  std::vector<NamedArray> results;
  const HloComputation& entry = module.entry_computation();
  const auto leaves = leaves_of(*entry.instructions[static_cast<std::size_t>(entry.root)].shape);
  std::size_t input = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::input && input < inputs.size()) {
      if (flow.at_end[b].product) results.push_back(inputs[input]);  // a donated one
      ++input;
    }
    if (buffer.role != Role::output || !flow.at_end[b].product) continue;
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
      if (buffer.name == fmt::format("result {}", leaf)) results.push_back({buffer.name, leaves[leaf]});
  }
  return results;
}

/// The regions of a product that are its operands: of a fusion what it does not also write, and no sum of products that it adds to.
std::vector<const Sources*> operands_of(const Op& op, const std::vector<Sources>& reads) {
  std::vector<const Sources*> operands;
  const TaskRegions regions = regions_of_task(op);
  for (std::size_t r = 0; r < regions.reads.size() && r < reads.size(); ++r) {
    const BufferId read = regions.reads[r]->buffer;
    const bool adds_to = std::any_of(regions.writes.begin(), regions.writes.end(), [&](const Region* region) { return region->buffer == read; });
    if (!adds_to) operands.push_back(&reads[r]);
  }
  if (operands.size() > 2) std::erase_if(operands, [](const Sources* operand) { return operand->product; });
  return operands;
}

/// a / b, if it is a whole number.
std::optional<std::int64_t> whole_part(double a, std::int64_t b) {
  const double quotient = a / static_cast<double>(b);
  const auto whole = static_cast<std::int64_t>(quotient);
  return whole >= 1 && static_cast<double>(whole) == quotient ? std::optional{whole} : std::nullopt;
}

}  // namespace

Expected<ModuleProduct> product_of_module(const HloModule& module, const FlatModule& flat, const DataFlow& flow, const HloCountOptions& options) {
  const SourceLocation top{module.file, 1, 1};
  const auto summary = summary_of(module, flat.system.machine, options);
  if (!summary) return summary.error();
  if (summary->products.empty()) return Diagnostic{top, "expected a module with a product of matrices, found none in " + module.name};
  const auto instruction_of = [&](const HloProductCount& count) -> const HloInstruction& {
    return module.computations[static_cast<std::size_t>(count.place.computation)].instructions[static_cast<std::size_t>(count.place.instruction)];
  };
  const std::vector<NamedArray> inputs = input_arrays(module);
  std::vector<bool> used(inputs.size(), false);
  const Program& program = flat.program();
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    if (!is_product(program.tasks[t].op)) continue;
    for (const Sources* operand : operands_of(program.tasks[t].op, flow.reads[t])) {
      if (operand->product) {
        const SourceLocation where = flat.tasks[t].instruction != nullptr ? module.where(*flat.tasks[t].instruction) : top;
        return Diagnostic{
            where, fmt::format("expected a module of one product, found {}, which multiplies the result of another product{}", program.tasks[t].label, give_it)};
      }
      for (std::size_t i = 0; i < operand->inputs.size() && i < used.size(); ++i)
        if (operand->inputs[i]) used[i] = true;
    }
  }
  std::vector<NamedArray> operands;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) operands.push_back(inputs[i]);
  const std::vector<NamedArray> results = made_results(module, program, flow, inputs);
  const auto names = [](const std::vector<NamedArray>& arrays) {
    std::vector<std::string> texts;
    for (const NamedArray& array : arrays) texts.push_back(to_text(array));
    return texts.empty() ? std::string{"none"} : fmt::format("{}", fmt::join(texts, ", "));
  };
  if (operands.size() == 1) operands.push_back(operands.front());  // A @ A
  if (operands.size() != 2 || results.size() != 1)
    return Diagnostic{top, fmt::format("expected products that read two parameters and make one result, found {} and {}{}", names(operands),
                                       names(results), give_it)};

  ModuleProduct found;
  found.flops = flat.result.flops;
  const int devices = program.devices.intervals.empty() ? 1 : size_of(program.devices);
  const double work = found.flops / 2 / devices;  // multiplications of one device
  const HloProduct& one = summary->products.front().product;
  for (const bool swapped : {false, true}) {
    const NamedArray &left = operands[swapped ? 1 : 0], &right = operands[swapped ? 0 : 1];
    const auto m = whole_part(work, elements_of(*right.shape)), n = whole_part(work, elements_of(*left.shape)),
               k = whole_part(work, elements_of(*results.front().shape));
    if (!m || !n || !k || static_cast<double>(*m) * static_cast<double>(*n) * static_cast<double>(*k) != work * devices) continue;
    if (*m % one.m != 0 || *n % one.n != 0 || *k % one.k != 0) continue;
    const HloType type = left.shape->type;
    found.problem.m = *m, found.problem.n = *n, found.problem.k = *k;
    found.problem.dtype = bits_of(type) <= 16 ? DType::bf16 : DType::f32;
    found.left = left.name, found.right = right.name, found.out = results.front().name;
    return found;
  }
  return Diagnostic{
      module.where(instruction_of(summary->products.front())),
      fmt::format("expected arrays that are split evenly over the {} devices, found {} and {} for {}, which no product of whole matrices takes{}",
                  devices, names(operands), names(results), to_text(Flops{found.flops}), give_it)};
}

}  // namespace podsim
