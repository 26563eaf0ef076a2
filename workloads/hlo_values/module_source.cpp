#include "workloads/hlo_values/module_source.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/base/invariant.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo_values/interpret.hpp"
#include "workloads/hlo_values/interpreter_step.hpp"

namespace podsim {

namespace {

using Numbers = SourceModule::Values;

constexpr double exact_integers = 0x1p24;  // float32 has all whole numbers up to here

/// How many numbers a buffer has for an element.
std::size_t numbers_of(HloType type) { return is_complex(type) ? 2 : 1; }

/// From the numbers of a buffer, which of an array without elements has one, or one pair.
HloArray array_of(const HloShape& shape, const Numbers& values) {
  HloArray array{shape.type, shape.dims, {}, {}};
  const auto count = static_cast<std::size_t>(elements_of(array));
  PODSIM_ASSERT(count * numbers_of(shape.type) == values.size() || count == 0);
  if (is_integer(shape.type)) {
    array.integers.reserve(count);
    for (std::size_t i = 0; i < count; ++i) array.integers.push_back(wrapped(shape.type, static_cast<std::uint64_t>(static_cast<std::int64_t>(values[i]))));
  } else if (is_complex(shape.type)) {
    for (std::size_t i = 0; i < count; ++i) array.reals.push_back(values[2 * i]), array.imaginaries.push_back(values[2 * i + 1]);
  } else {
    array.reals.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return array;
}

/// As a buffer holds them: whole numbers of 32 bits, with a sign. Errors: longer ones.
Expected<Numbers> values_of(const HloArray& array) {
  Numbers values = is_complex(array.type) ? Numbers{} : array.reals;
  for (std::size_t i = 0; i < array.imaginaries.size(); ++i) values.insert(values.end(), {array.reals[i], array.imaginaries[i]});
  for (const std::int64_t whole : array.integers) {
    const auto word = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(whole)));
    if (bits_of(array.type) > 32 && word != whole) return Diagnostic{{}, fmt::format("{} has {}: only numbers of 32 bits are executed", short_text(array), whole)};
    values.push_back(word);
  }
  if (values.empty()) values.resize(numbers_of(array.type), 0);
  return values;
}

class ModuleSource final : public SourceModule {
 public:
  ModuleSource(SourceModules modules, std::vector<HloKernel> kernels, std::map<std::string, int> branches)
      : module_{std::move(modules.run)}, meant_{std::move(modules.meant)}, kernels_{std::move(kernels)}, branches_{std::move(branches)} {}

  Status execute(int operation, DeviceId device, std::span<const Numbers> reads, std::span<Numbers> writes) const override {
    const HloKernel& kernel = kernels_[static_cast<std::size_t>(operation)];
    if (kernel.kind == HloKernel::Kind::keep_own) {
      const auto& pairs = kernel.instruction.attributes->source_target_pairs;
      const bool keeps = std::ranges::find(pairs, SourceTarget{device.value, device.value}) != pairs.end();
      Numbers& own = writes.front();
      own = keeps ? reads.front() : Numbers(own.size(), 0);
      return success();
    }
    if (kernel.kind == HloKernel::Kind::collective) return execute_collective(kernel, device, reads, writes);
    const HloComputation& computation = module_->computations[static_cast<std::size_t>(kernel.computation)];
    std::vector<HloArrays> operands;
    for (std::size_t o = 0; o < kernel.operands.size(); ++o) {
      const std::vector<const HloShape*> shapes = leaves_of(*computation.instructions[static_cast<std::size_t>(kernel.instruction.operands[o])].shape);
      HloArrays& arrays = operands.emplace_back();
      for (std::size_t leaf = 0; leaf < shapes.size(); ++leaf) {
        const int read = kernel.operands[o][leaf];
        if (read == HloKernel::none) {
          arrays.push_back({shapes[leaf]->type});
          continue;
        }
        const Numbers& values = reads[static_cast<std::size_t>(read)];
        if (const std::int64_t elements = elements_of(*shapes[leaf]); elements > 0 && static_cast<std::size_t>(elements) * numbers_of(shapes[leaf]->type) != values.size())
          return problem(kernel, fmt::format("expected {} elements, as the shape of operand {} has, its value has {}", elements, o, values.size()));
        arrays.push_back(array_of(*shapes[leaf], values));
      }
    }
    if (kernel.kind == HloKernel::Kind::is_branch) return expect_branch(kernel, operands.front().front());
    std::vector<const HloArrays*> given;
    for (const HloArrays& arrays : operands) given.push_back(&arrays);
    HloArithmetic arithmetic;
    const auto made = evaluate(*module_, computation, kernel.instruction, given, place_of(device), arithmetic);
    if (!made) return made.error();
    if (kernel.kind != HloKernel::Kind::instruction) return expect_condition(kernel, made->front());
    return write(kernel, *made, writes);
  }

  Expected<Results> results(const std::vector<std::vector<Numbers>>& inputs, std::optional<Roundings> roundings, Cancellation stop) const override {
    const HloComputation& entry = meant_->entry_computation();
    std::vector<std::vector<HloArrays>> parameters;
    for (const std::vector<Numbers>& of_device : inputs) {
      std::vector<HloArrays>& given = parameters.emplace_back();
      std::size_t next = 0;
      for (const int parameter : entry.parameters) {
        HloArrays& arrays = given.emplace_back();
        for (const HloShape* shape : leaves_of(*entry.instructions[static_cast<std::size_t>(parameter)].shape))
          arrays.push_back(shape->is_array() ? array_of(*shape, of_device[next++]) : HloArray{shape->type});
      }
    }
    HloRunOptions options;
    if (roundings) {
      options.arithmetic.perturb_seed = roundings->seed;
      options.arithmetic.narrow_as_f32 = roundings->bf16_in_f32;
    }
    options.stop = stop;
    options.branches = branches_;
    const auto made = interpret(*meant_, parameters, options);
    if (!made) return made.error();
    Results results;
    results.exact = options.arithmetic.integral && options.arithmetic.largest_sum <= exact_integers;
    for (const HloArrays& of_device : *made) {
      std::vector<Numbers>& outputs = results.outputs.emplace_back();
      for (const HloArray& array : of_device) {
        if (bits_of(array.type) == 0) continue;
        auto values = values_of(array);
        if (!values) return Diagnostic{{meant_->file, 1, 1}, "result: " + values.error().message};
        outputs.push_back(*std::move(values));
      }
    }
    return results;
  }

 private:
  [[nodiscard]] Status write(const HloKernel& kernel, const HloArrays& made, std::span<Numbers> writes) const {
    for (std::size_t leaf = 0; leaf < kernel.results.size(); ++leaf) {
      if (kernel.results[leaf] == HloKernel::none) continue;
      auto values = values_of(made[leaf]);
      if (!values) return problem(kernel, values.error().message);
      Numbers& to = writes[static_cast<std::size_t>(kernel.results[leaf])];
      if (values->size() != to.size()) return problem(kernel, fmt::format("makes {} elements, its shape has {}", values->size(), to.size()));
      to = *std::move(values);
    }
    return success();
  }
  [[nodiscard]] Status execute_collective(const HloKernel& kernel, DeviceId device, std::span<const Numbers> reads, std::span<Numbers> writes) const {
    const HloComputation& computation = module_->computations[static_cast<std::size_t>(kernel.computation)];
    std::vector<std::vector<HloArrays>> operands(static_cast<std::size_t>(devices_of(*module_)), std::vector<HloArrays>(kernel.operands.size()));
    for (std::size_t o = 0; o < kernel.operands.size(); ++o) {
      const auto shapes = leaves_of(*computation.instructions[static_cast<std::size_t>(kernel.instruction.operands[o])].shape);
      for (std::size_t leaf = 0; leaf < shapes.size(); ++leaf) {
        const int read = kernel.operands[o][leaf];
        const Numbers* const all = read == HloKernel::none ? nullptr : &reads[static_cast<std::size_t>(read)];
        for (std::size_t d = 0; d < operands.size(); ++d) {
          if (all == nullptr) {
            operands[d][o].push_back({shapes[leaf]->type});
            continue;
          }
          const std::size_t each = all->size() / operands.size();
          const auto first = all->begin() + static_cast<std::ptrdiff_t>(d * each);
          operands[d][o].push_back(array_of(*shapes[leaf], Numbers(first, first + static_cast<std::ptrdiff_t>(each))));
        }
      }
    }
    HloArithmetic arithmetic;
    const auto made = evaluate_on_all(*module_, computation, kernel.instruction, operands, arithmetic);
    if (!made) return made.error();
    return write(kernel, (*made)[static_cast<std::size_t>(device.value)], writes);
  }
  [[nodiscard]] HloDevice place_of(DeviceId device) const {
    const std::int64_t partitions = devices_of(*module_) / module_->replica_count;
    return {device.value % partitions, device.value / partitions};
  }
  [[nodiscard]] Diagnostic problem(const HloKernel& kernel, const std::string& message) const {
    return {module_->where(kernel.instruction), kernel.instruction.name + ": " + message};
  }
  [[nodiscard]] Status expect_condition(const HloKernel& kernel, const HloArray& condition) const {
    const bool expected = kernel.kind == HloKernel::Kind::is_true;
    if (condition.integers.size() != 1) return problem(kernel, "its condition is no pred");
    if ((condition.integers.front() != 0) == expected) return success();
    return problem(kernel, expected ? "ends before its trip count: the condition is false" : "runs on after its trip count: the condition is true");
  }
  [[nodiscard]] Status expect_branch(const HloKernel& kernel, const HloArray& given) const {
    if (given.integers.size() != 1) return problem(kernel, "its first operand is no pred or index");
    std::int64_t branches = 0;
    for (const HloCall& call : kernel.instruction.calls) branches += call.role == HloRole::branch ? 1 : 0;
    const std::int64_t value = given.integers.front();
    // True is branch 0; an index that is out of range takes the last one.
    const std::int64_t taken = given.type == HloType::pred ? (value != 0 ? 0 : 1) : value < 0 || value >= branches ? branches - 1 : value;
    if (taken == kernel.branch) return success();
    return problem(kernel, other_branch(kernel.instruction, taken, kernel.branch));
  }

  std::shared_ptr<const HloModule> module_, meant_;
  std::vector<HloKernel> kernels_;
  std::map<std::string, int> branches_;
};

}  // namespace

std::shared_ptr<const SourceModule> module_source(SourceModules modules, std::vector<HloKernel> kernels, std::map<std::string, int> branches) {
  return std::make_shared<const ModuleSource>(std::move(modules), std::move(kernels), std::move(branches));
}

}  // namespace podsim
