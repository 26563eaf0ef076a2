#include "workloads/sharded/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// What a result is needed in: what is asked for, or its own sharding with all sums added up.
Sharding needed(const Sharding& result, const std::optional<Sharding>& asked) {
  if (asked) return *asked;
  Sharding whole = result;
  whole.unreduced.clear();
  return whole;
}
Sharding needed(const ShardingAlternative& way, const std::optional<Sharding>& asked) { return way.then ? *way.then : needed(way.result, asked); }

class Planner {
 public:
  Planner(const ShardedProgram& program, Choose choose, const AlternativeChooser& fastest)
      : program_{program}, choose_{choose}, fastest_{fastest}, resharder_{program.mesh}, forms_of_(program.operations.size()) {}

  Expected<ProgramPlan> plan() {
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      const Operation& operation = program_.operations[i];
      if (operation.op == ArrayOp::input) {
        CyclicBlocks blocks = cyclic_input(static_cast<int>(i));
        if (blocks.empty())
          if (const auto block = shard_extents(operation.extents, *operation.sharding, program_.mesh, operation.name, operation.where); !block)
            return why_not_cyclic(static_cast<int>(i)).value_or(block.error());
        add_form(static_cast<int>(i), *operation.sharding, std::move(blocks));
        continue;
      }
      if (Status added = plan(static_cast<int>(i)); !added) return added.error();
    }
    for (const int output : program_.outputs) {
      const auto asked = program_.out.find(output);
      const int first = forms_of_[static_cast<std::size_t>(output)].front();
      if (asked == program_.out.end() && is_cyclic(first)) {  // stays as it was computed
        plan_.outputs[output] = first;
        continue;
      }
      make_contiguous(output, output);
      const Sharding own = primary(output);
      const Sharding to = needed(own, asked == program_.out.end() ? std::nullopt : std::optional{asked->second});
      std::map<int, std::string> reasons;
      for (const int axis : own.unreduced) reasons[axis] = fmt::format("the output needs the sum of what is pending along {}", axis_name(axis));
      plan_.outputs[output] = convert(output, to, output, reasons, asked == program_.out.end() ? "the output needs it" : "the output is asked for in this sharding");
    }
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const std::string& axis_name(int axis) const { return program_.mesh.axes()[static_cast<std::size_t>(axis)].name; }
  [[nodiscard]] ArrayLayout layout(int operation) const {
    const Operation& array = program_.operations[static_cast<std::size_t>(operation)];
    return {array.extents, size_of(array.dtype)};
  }
  int add_form(int operation, const Sharding& sharding, CyclicBlocks cyclic = {}) {
    plan_.forms.push_back({operation, sharding.canonical(), std::move(cyclic)});
    forms_of_[static_cast<std::size_t>(operation)].push_back(static_cast<int>(plan_.forms.size()) - 1);
    return static_cast<int>(plan_.forms.size()) - 1;
  }
  [[nodiscard]] const Sharding& primary(int operation) const {
    return plan_.forms[static_cast<std::size_t>(forms_of_[static_cast<std::size_t>(operation)].front())].sharding;
  }
  /// The sharding that rules see: the array's own, without the sums that have been added up already.
  [[nodiscard]] Sharding seen(int operation) const {
    Sharding own = primary(operation);
    if (own.unreduced.empty()) return own;
    for (const int form : forms_of_[static_cast<std::size_t>(operation)])
      if (const Sharding& other = plan_.forms[static_cast<std::size_t>(form)].sharding; other.unreduced.size() < own.unreduced.size()) own = other;
    return own;
  }

  // ---- Block-cyclic forms ----

  [[nodiscard]] bool is_cyclic(int form) const { return !plan_.forms[static_cast<std::size_t>(form)].cyclic.empty(); }

  /// The blocks of an input that only solvers read: it is given as they need it.
  CyclicBlocks cyclic_input(int input) const {
    std::optional<CyclicBlocks> blocks;
    for (const Operation& reader : program_.operations)
      for (std::size_t o = 0; o < reader.operands.size(); ++o) {
        if (reader.operands[o] != input) continue;
        std::vector<Sharding> operands;
        for (const int operand : reader.operands) operands.push_back(program_.operations[static_cast<std::size_t>(operand)].sharding.value_or(Sharding{}));
        const bool known = is_kernel(reader.op) && program_.operations[static_cast<std::size_t>(reader.operands[0])].sharding.has_value();
        const auto way = known ? kernel_way(program_, reader, operands) : Expected<KernelWay>{Diagnostic{}};
        const bool as_it_is = way && way->operands[o] == operands[o].canonical() && (!blocks || *blocks == way->cyclic[o]);
        blocks = as_it_is ? way->cyclic[o] : CyclicBlocks{};
        if (!as_it_is) return {};
      }
    return blocks.value_or(CyclicBlocks{});
  }

  /// What a solver says of an input that its axes do not divide.
  [[nodiscard]] std::optional<Diagnostic> why_not_cyclic(int input) const {
    for (const Operation& reader : program_.operations) {
      if (!is_kernel(reader.op) || reader.operands[0] != input) continue;
      std::vector<Sharding> operands;
      for (const int operand : reader.operands) operands.push_back(program_.operations[static_cast<std::size_t>(operand)].sharding.value_or(Sharding{}));
      if (const auto way = kernel_way(program_, reader, operands); !way) return way.error();
    }
    return std::nullopt;
  }

  void add_layout(int operation, int before, const Sharding& sharding, CyclicBlocks cyclic, int wanted_by) {
    plan_.actions.emplace_back(PlannedLayout{before, add_form(operation, sharding, std::move(cyclic)), wanted_by});
  }

  /// Some form of the array that is not block-cyclic.
  void make_contiguous(int operation, int wanted_by) {
    const auto& forms = forms_of_[static_cast<std::size_t>(operation)];
    if (std::any_of(forms.begin(), forms.end(), [&](int form) { return !is_cyclic(form); })) return;
    const int first = forms.front();
    const ArrayForm form = plan_.forms[static_cast<std::size_t>(first)];
    add_layout(operation, first, contiguous_beside(program_.mesh, program_.operations[static_cast<std::size_t>(operation)].extents, form.cyclic, form.sharding), {}, wanted_by);
  }

  int in_blocks(int operation, const Sharding& sharding, const CyclicBlocks& cyclic, int wanted_by) {
    const auto& forms = forms_of_[static_cast<std::size_t>(operation)];
    const auto find = [&](const CyclicBlocks& blocks) {
      return std::find_if(forms.begin(), forms.end(), [&](int form) {
        return plan_.forms[static_cast<std::size_t>(form)].sharding == sharding && plan_.forms[static_cast<std::size_t>(form)].cyclic == blocks;
      });
    };
    if (const auto known = find(cyclic); known != forms.end()) return *known;
    make_contiguous(operation, wanted_by);
    Sharding contiguous = sharding;
    if (!cyclic.empty()) {
      const Extents& extents = program_.operations[static_cast<std::size_t>(operation)].extents;
      contiguous = contiguous_beside(program_.mesh, extents, cyclic, sharding);
      contiguous.dims.resize(extents.size());
      // What is whole somewhere is sliced there.
      for (std::size_t d = 0; d < cyclic.size(); ++d)
        if (cyclic[d] != 0 && std::none_of(forms.begin(), forms.end(), [&](int form) {
              return !is_cyclic(form) && plan_.forms[static_cast<std::size_t>(form)].sharding.axes_of(d) == contiguous.dims[d];
            }))
          contiguous.dims[d].clear();
      contiguous = contiguous.canonical();
    }
    const int before = convert(operation, contiguous, wanted_by, {}, fmt::format("{} needs it in this sharding", name_of(program_.operations[static_cast<std::size_t>(wanted_by)].op)));
    if (!cyclic.empty()) add_layout(operation, before, sharding, cyclic, wanted_by);
    return cyclic.empty() ? before : *find(cyclic);
  }

  /// There is one way: the algorithm's.
  Status plan_kernel(int i) {
    const Operation& operation = program_.operations[static_cast<std::size_t>(i)];
    std::vector<Sharding> operands;
    for (const int operand : operation.operands) operands.push_back(seen(operand));
    auto way = kernel_way(program_, operation, operands);
    if (!way) return way.error();
    PlannedOperation planned{i, {}, 0, {}};
    for (std::size_t o = 0; o < operands.size(); ++o) {
      planned.operands.push_back(in_blocks(operation.operands[o], way->operands[o], way->cyclic[o], i));
    }
    planned.result = add_form(i, way->result, way->result_cyclic);
    planned.kernel = *std::move(way);
    plan_.actions.emplace_back(std::move(planned));
    return success();
  }

  // ---- Conversions ----

  /// The cheapest conversion from any form; the form it begins with.
  std::pair<int, const Resharding*> cheapest(int operation, const Sharding& to) {
    std::pair<int, const Resharding*> best{0, nullptr};
    for (const int form : forms_of_[static_cast<std::size_t>(operation)]) {
      if (is_cyclic(form)) continue;
      const Resharding* way = resharder_.find(layout(operation), plan_.forms[static_cast<std::size_t>(form)].sharding, to);
      if (way != nullptr && (best.second == nullptr || less(way->cost, best.second->cost, Objective::bytes))) best = {form, way};
    }
    return best;
  }

  int convert(int operation, const Sharding& to, int wanted_by, const std::map<int, std::string>& reasons, const std::string& otherwise) {
    auto [form, way] = cheapest(operation, to);
    PODSIM_ASSERT(way != nullptr && "every alternative can be reached");
    for (const ReshardStep& step : way->steps) {
      const auto& forms = forms_of_[static_cast<std::size_t>(operation)];
      const auto known = std::find_if(forms.begin(), forms.end(), [&](int f) { return !is_cyclic(f) && plan_.forms[static_cast<std::size_t>(f)].sharding == step.after; });
      if (known != forms.end()) {
        form = *known;
        continue;
      }
      std::vector<std::string> why;
      for (const int axis : step.axes)
        if (const auto reason = reasons.find(axis); reason != reasons.end() && std::find(why.begin(), why.end(), reason->second) == why.end()) why.push_back(reason->second);
      const int after = add_form(operation, step.after);
      plan_.actions.emplace_back(PlannedStep{form, after, step, wanted_by, why.empty() ? otherwise : fmt::format("{}", fmt::join(why, "; "))});
      form = after;
    }
    return form;
  }

  Status plan(int i) {
    const Operation& operation = program_.operations[static_cast<std::size_t>(i)];
    if (is_kernel(operation.op)) return plan_kernel(i);
    std::vector<Sharding> operands;
    for (const int operand : operation.operands) {
      make_contiguous(operand, i);
      operands.push_back(seen(operand));
    }
    const auto out = program_.out.find(i);
    const std::optional<Sharding> asked = out == program_.out.end() ? std::nullopt : std::optional{out->second};
    std::vector<CostedAlternative> ways;
    for (ShardingAlternative& alternative : alternatives_of(program_, operation, operands, asked)) {
      std::optional<ReshardCost> cost = cost_of(operation, alternative);
      const Resharding* result = resharder_.find(layout(i), alternative.result, needed(alternative, asked));
      if (cost && result != nullptr) ways.push_back({std::move(alternative), *cost + result->cost});
    }
    PODSIM_ASSERT(!ways.empty() && "the default divides");
    std::size_t chosen = 0;
    if (choose_ == Choose::bytes)
      for (std::size_t w = 1; w < ways.size(); ++w)
        if (less(ways[w].cost, ways[chosen].cost, Objective::bytes)) chosen = w;
    if (choose_ == Choose::time && ways.size() > 1) {
      const auto picked = fastest_(operation, operands, ways);
      if (!picked) return picked.error();
      chosen = *picked;
    }
    if (ways.size() > 1) {
      std::optional<CostedAlternative> next;
      for (std::size_t w = 0; w < ways.size(); ++w)
        if (w != chosen && (!next || less(ways[w].cost, next->cost, Objective::bytes))) next = ways[w];
      plan_.choices.push_back({i, ways[chosen], std::move(next)});
      PlannedChoice& choice = plan_.choices.back();
      choice.chosen.collectives = collectives_of(i, choice.chosen.alternative, asked);
      if (choice.next) choice.next->collectives = collectives_of(i, choice.next->alternative, asked);
    }
    const ShardingAlternative& way = ways[chosen].alternative;
    PlannedOperation planned{i, {}, 0, {}};
    for (std::size_t o = 0; o < operands.size(); ++o)
      planned.operands.push_back(convert(operation.operands[o], way.operands[o], i, way.reasons, fmt::format("{} needs it in this sharding", name_of(operation.op))));
    planned.result = add_form(i, way.result);
    plan_.actions.emplace_back(std::move(planned));
    if (way.then) {
      // The array is what it is converted to; what it was first is known, too.
      const int form = convert(i, *way.then, i, way.reasons, "this way of computing it receives the fewest bytes");
      auto& forms = forms_of_[static_cast<std::size_t>(i)];
      std::iter_swap(forms.begin(), std::find(forms.begin(), forms.end(), form));
    }
    return success();
  }

  /// Whether both operands are the same array in the same sharding.
  static bool converted_before(const Operation& operation, const ShardingAlternative& alternative, std::size_t operand) {
    return operand > 0 && operation.operands[operand] == operation.operands[0] && alternative.operands[operand] == alternative.operands[0];
  }

  std::string collectives_of(int i, const ShardingAlternative& alternative, const std::optional<Sharding>& asked) {
    std::string text;
    const auto add = [&](int of, const Resharding& way) {
      for (const ReshardStep& step : way.steps) {
        if (!is_collective(step.kind)) continue;
        std::string axes;
        for (const int axis : step.axes) axes += (axes.empty() ? "" : ",") + axis_name(axis);
        text += fmt::format("{}{} {} along {}", text.empty() ? "" : "; ", name_of(step.kind), program_.operations[static_cast<std::size_t>(of)].name, axes);
      }
    };
    const Operation& operation = program_.operations[static_cast<std::size_t>(i)];
    for (std::size_t o = 0; o < operation.operands.size(); ++o)
      if (!converted_before(operation, alternative, o)) add(operation.operands[o], *cheapest(operation.operands[o], alternative.operands[o]).second);
    add(i, *resharder_.find(layout(i), alternative.result, needed(alternative, asked)));
    return text.empty() ? "no collective" : text;
  }

  std::optional<ReshardCost> cost_of(const Operation& operation, const ShardingAlternative& alternative) {
    ReshardCost cost;
    for (std::size_t o = 0; o < operation.operands.size(); ++o) {
      if (converted_before(operation, alternative, o)) continue;
      const Resharding* way = cheapest(operation.operands[o], alternative.operands[o]).second;
      if (way == nullptr) return std::nullopt;
      cost = cost + way->cost;
    }
    return cost;
  }

  const ShardedProgram& program_;
  Choose choose_;
  const AlternativeChooser& fastest_;
  Resharder resharder_;
  ProgramPlan plan_;
  std::vector<std::vector<int>> forms_of_;  // per operation, its own first
};

}  // namespace

std::string_view name_of(Choose choose) { return choose == Choose::by_default ? "default" : choose == Choose::bytes ? "bytes" : "time"; }

ReshardCost ProgramPlan::cost() const {
  ReshardCost sum;
  for (const auto& action : actions)
    if (const auto* step = std::get_if<PlannedStep>(&action)) sum = sum + ReshardCost{step->step.received, is_collective(step->step.kind) ? 1 : 0};
  return sum;
}

Expected<ProgramPlan> plan_program(const ShardedProgram& program, Choose choose, const AlternativeChooser& fastest) {
  PODSIM_ASSERT(choose != Choose::time || fastest);
  return Planner{program, choose, fastest}.plan();
}

ShardedProgram program_of(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands, const std::optional<Sharding>& asked) {
  ShardedProgram own;
  own.mesh = program.mesh;
  own.dtype = program.dtype;
  own.kernels = program.kernels;
  Operation last = operation;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    const Operation& array = program.operations[static_cast<std::size_t>(operation.operands[o])];
    own.operations.push_back(Operation{.op = ArrayOp::input, .name = fmt::format("{}.{}", array.name, o), .extents = array.extents, .dtype = array.dtype, .sharding = operands[o], .where = array.where});
    last.operands[o] = static_cast<int>(o);
  }
  last.statement = 0;
  own.operations.push_back(std::move(last));
  const int result = static_cast<int>(operands.size());
  own.statements = {operation.name};
  own.results = {result};
  own.outputs = {result};
  if (asked) own.out[result] = *asked;
  return own;
}

}  // namespace podsim
