// Writes the functions of a training step. Internal to workloads/training.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/program_builder.hpp"
#include "workloads/training/step_functions.hpp"

namespace podsim {

/// A function while it is written: tensors become parameters when they are first named.
class FunctionWriter {
 public:
  using Lengths = std::vector<std::int64_t>;

  FunctionWriter(const StepParts& parts, std::string name) : parts_{parts}, name_{std::move(name)}, builder_{parts.mesh, parts.layer_mesh.devices} {}

  [[nodiscard]] const StepParts& parts() const { return parts_; }
  [[nodiscard]] const TrainingModel& model() const { return parts_.step.model; }
  [[nodiscard]] ProgramBuilder& builder() { return builder_; }

  /// A parameter. One that the function reads and writes is an output.
  Region tensor(const StepParameter& use, Lengths extents, DType dtype, Role role, bool on_host = false) {
    const std::string name = name_of(use);
    const auto [known, added] = tensors_.try_emplace(name);
    if (added) {
      uses_.push_back(use);
      Buffer buffer{name, std::move(extents), dtype, role, name, {}};
      buffer.sharding.resize(buffer.extents.size());
      buffer.on_host = on_host;
      known->second = builder_.add_buffer(std::move(buffer));
    }
    return builder_.whole(known->second);
  }
  Region reads(const StepParameter& use, Lengths extents, DType dtype) { return tensor(use, std::move(extents), dtype, Role::input); }
  Region makes(const StepParameter& use, Lengths extents, DType dtype) { return tensor(use, std::move(extents), dtype, Role::output); }
  /// In the dtype of activations.
  Region reads(const StepParameter& use, Lengths extents) { return reads(use, std::move(extents), model().activations); }
  Region makes(const StepParameter& use, Lengths extents) { return makes(use, std::move(extents), model().activations); }
  Region scratch(const std::string& name, Lengths extents) { return builder_.scratch(name, std::move(extents), model().activations); }
  Region scratch(const std::string& name, Lengths extents, DType dtype) { return builder_.scratch(name, std::move(extents), dtype); }

  Edges local(const std::string& label, Local op, const Edges& after) { return builder_.step(label, std::move(op), after); }
  Edges collective(const std::string& label, CollectiveKind kind, std::vector<AxisView> axes, const Region& in, const Region& out, int dim,
                   const Edges& after) {
    return builder_.step(label, Collective{kind, std::move(axes), in, out, dim}, after);
  }

  /// What is written between the tasks of an appended program, which it names by position.
  struct Inserted {
    std::size_t behind = 0;                             // so many of the tasks
    std::vector<std::size_t> after{};                   // of these
    std::function<Edges(const Edges& after)> write{};   // returns its ends
    std::vector<std::size_t> before{};                  // tasks that wait for them
  };

  /// Appends the tasks of a program whose inputs and outputs are in `given`, by tensor. A view of other extents is placed,
  /// which is free in time. `inserted` is in order of `behind`.
  Edges append(const std::vector<Task>& tasks, const std::vector<Buffer>& buffers, const std::map<std::string, Region>& given,
               const std::string& prefix, const Edges& after, const std::vector<Inserted>& inserted = {}) {
    std::vector<BufferId> now;
    std::vector<std::pair<Region, Region>> results;  // as written here, and where they belong
    Tasks start;
    for (const Edge& edge : after) start.push_back(edge.task);
    for (const Buffer& buffer : buffers) {
      if (buffer.role == Role::scratch) {
        now.push_back(builder_.add_buffer({prefix + buffer.name, buffer.extents, buffer.dtype, Role::scratch, {}, {}}));
        continue;
      }
      const Region& whole = given.at(buffer.tensor);
      if (builder_.buffer(whole.buffer).extents == buffer.extents) {
        now.push_back(whole.buffer);
        continue;
      }
      const Region view = scratch(prefix + buffer.name, buffer.extents, buffer.dtype);
      if (buffer.role == Role::input)
        start.push_back(builder_.alias("place " + buffer.tensor, whole, view, after));
      else
        results.emplace_back(view, whole);
      now.push_back(view.buffer);
    }
    const auto first = static_cast<int>(builder_.task_count());
    builder_.begin_section(prefix, start);
    Tasks placed_at;  // of each task
    std::map<std::size_t, Edges> waits;
    auto next = inserted.begin();
    const auto insert = [&] {
      for (; next != inserted.end() && next->behind == placed_at.size(); ++next) {
        Tasks before;
        for (const std::size_t task : next->after) before.push_back(placed_at[task]);
        const Edges ends = next->write(edges_to(before));
        for (const std::size_t task : next->before) waits[task] = join(std::move(waits[task]), ends);
      }
    };
    for (Task task : tasks) {
      insert();
      for (Edge& edge : task.after) edge.task = placed_at[edge.task.index()];
      if (const auto found = waits.find(placed_at.size()); found != waits.end()) task.after = join(std::move(task.after), found->second);
      for (Region* region : regions_of(task.op)) region->buffer = now[region->buffer.index()];
      placed_at.push_back(builder_.add(std::move(task)));
    }
    insert();
    builder_.begin_section({}, {});
    Edges ends = edges_to(builder_.last_tasks(TaskId{first}));
    Edges placed;
    for (const auto& [view, whole] : results) placed = join(std::move(placed), {Edge{builder_.alias("place", view, whole, ends)}});
    return placed.empty() ? ends : placed;
  }
  Edges append(const TensorFunction& function, const std::map<std::string, Region>& given, const std::vector<Inserted>& inserted) {
    std::vector<Buffer> buffers = function.function.body.buffers;
    std::copy(function.parameters.begin(), function.parameters.end(), buffers.begin());
    return append(function.function.body.tasks, buffers, given, {}, {}, inserted);
  }

  StepFunction finish() && {
    Schedule schedule{std::move(name_), parts_.mesh, {std::move(builder_).finish()}, {}};
    TensorFunction made = tensor_function(std::move(schedule));
    return {std::move(made.function), std::move(made.parameters), std::move(uses_)};
  }

 private:
  /// As StepCall says.
  static std::string name_of(const StepParameter& of) {
    constexpr std::array<const char*, 4> parts{"", "fetch.", "reduce.", "retrieve."};
    constexpr std::array<const char*, 17> uses{"X", "Y", "dY", "dX", "tokens", "targets", "loss", ".W", ".dW", ".shard", ".gradient", ".master", ".m", ".v", "", "", ""};
    return parts[static_cast<std::size_t>(of.part)] + (of.weight != nullptr ? of.weight->name : of.tensor) + uses[static_cast<std::size_t>(of.use)];
  }

  const StepParts& parts_;
  std::string name_;
  ProgramBuilder builder_;
  std::map<std::string, BufferId> tensors_;  // by name
  std::vector<StepParameter> uses_;
};

}  // namespace podsim
