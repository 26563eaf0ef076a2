#include "workloads/hlo/hlo_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/mesh/hlo_sharding.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/program_writer.hpp"

namespace podsim {

namespace {

/// Whether a leaf of a parameter, a single number or whole numbers, is the same on all devices: its sharding says so, or it is one number, which partitions cannot divide.
bool is_number_of_all(const HloModule& module, const HloInstruction& parameter, std::size_t leaf) {
  const HloShape& shape = *leaves_of(*parameter.shape)[leaf];
  if (!shape.dims.empty() && !is_integer(shape.type)) return false;
  const std::string& written = parameter.attributes->sharding;
  if (written.empty()) return shape.dims.empty() && module.replica_count == 1;
  const auto sharding = parse_hlo_sharding(written, module.where(parameter));
  if (!sharding) return false;
  const bool is_each = sharding->kind == HloSharding::Kind::tuple && leaf < sharding->elements.size();
  return (is_each ? sharding->elements[leaf].kind : sharding->kind) == HloSharding::Kind::replicated;
}

}  // namespace

void ModuleWriter::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

void ModuleWriter::opaque(const HloInstruction& instruction, double bytes) {
  const bool known = std::any_of(opaque_.begin(), opaque_.end(), [&](const HloOpaque& other) { return other.instruction == instruction.name; });
  if (known) return;
  const std::string& target = instruction.attributes->custom_call_target;
  opaque_.push_back({instruction.name, target.empty() ? opcode_text(instruction) : target, Bytes{static_cast<std::int64_t>(bytes)}});
}

bool ModuleWriter::communicates(int computation) {
  if (communicates_.empty())
    for (const HloComputation& each : module_.computations)  // called ones before their callers
      communicates_.push_back(std::ranges::any_of(each.instructions, [&](const HloInstruction& instruction) {
        return is_collective(instruction.opcode) ||
               std::ranges::any_of(instruction.calls, [&](const HloCall& call) { return communicates_[static_cast<std::size_t>(call.computation)]; });
      }));
  return communicates_[static_cast<std::size_t>(computation)];
}

Expected<std::size_t> ModuleWriter::longest_branch(const HloComputation& computation, int conditional) {
  if (!totals_) {
    static const Machine no_time = [] {
      Machine machine;
      for (auto& peak : machine.chip.peak) peak = unlimited<FlopsPerSecond>;
      return machine;
    }();
    HloCountOptions counts = options_.counts;
    counts.tolerant = true;
    auto totals = HloCosts::of(module_, options_.machine != nullptr ? *options_.machine : no_time, counts);
    if (!totals) return totals.error();
    totals_ = *std::move(totals);
  }
  return static_cast<std::size_t>(totals_->branch({number_of(computation), conditional}).value_or(0));
}

int ModuleWriter::add(HloKernel kernel) {
  kernels_.push_back(std::move(kernel));
  return static_cast<int>(kernels_.size()) - 1;
}

Expected<const ModuleWriter::Body*> ModuleWriter::body(const HloComputation& computation, int number, const std::vector<bool>& stored) {
  if (const auto known = bodies_.find(number); known != bodies_.end()) return &known->second;
  const HloInstruction& parameter = computation.instructions[static_cast<std::size_t>(computation.parameters.front())];
  const std::vector<const HloShape*> shapes = leaves_of(*parameter.shape);
  const std::vector<bool> invariant = invariant_leaves(computation);
  ProgramBuilder builder{mesh_, DeviceSet{}};
  ProgramWriter writer{*this, builder, true};
  Body made;
  HloValue state(shapes.size());
  std::vector<std::optional<BufferId>> wanted(shapes.size());
  int parameters = 0;
  for (std::size_t leaf = 0; leaf < shapes.size(); ++leaf) {
    made.written.push_back(stored[leaf] && !invariant[leaf]);
    if (!stored[leaf]) continue;
    const HloArrayForm form = this->form(*shapes[leaf]);
    Buffer buffer{fmt::format("{}.{}", parameter.name, leaf), form.extents, form.dtype, Role::scratch, {}, {}};
    buffer.on_chip = shapes[leaf]->layout.memory_space != HloMemory::hbm;
    state[leaf] = {writer.add_buffer(std::move(buffer), made.written[leaf]), form.lengths, {}, 0, {}};
    if (made.written[leaf]) wanted[leaf] = state[leaf].buffer;
    ++parameters;
  }
  const auto result = writer.write(computation, {state}, wanted);
  if (!result) return result.error();
  writer.place(*result, shapes, wanted);
  made.function = static_cast<int>(functions_.size());
  functions_.push_back({computation.name, parameters, std::move(builder).finish()});
  function_tasks_.push_back(std::move(writer.tasks()));
  return &(bodies_[number] = std::move(made));
}

Expected<HloSchedule> ModuleWriter::write() {
  const HloComputation& entry = module_.entry_computation();
  const std::int64_t devices = devices_of(module_);
  const bool has_slices = spans_slices(module_);
  if (has_slices && (mesh_.devices() % devices != 0 || mesh_.devices() == devices))
    return Diagnostic{{module_.file, 1, 1}, fmt::format("expected a mesh of several slices of the module's {} devices each, slices first, as --pods 2 with an axis of 2 in front gives: the module talks to other slices; found {} ({} devices)", devices, to_text(mesh_), mesh_.devices())};
  if (!has_slices && (devices > 1 || values()) && devices != mesh_.devices())
    return Diagnostic{{module_.file, 1, 1}, fmt::format("expected a mesh of the module's {} devices, found {} ({} devices)", devices, to_text(mesh_), mesh_.devices())};
  if (auto ok = check_written_size(module_, options_.counts.trip_counts); !ok) return ok.error();
  ProgramBuilder builder{mesh_, every_device(mesh_)};
  ProgramWriter writer{*this, builder, false};
  const auto shared = [&](std::string name, const HloShape& shape, Role role, bool same) {
    const HloArrayForm form = this->form(shape);
    Buffer buffer{name, form.extents, form.dtype, role, name, {}};
    buffer.sharding.resize(form.extents.size());
    // Values differ on all devices, so that what is sent to the wrong one shows; but for those that branches and loops may depend on.
    for (int axis = 0; values() && !same && axis < static_cast<int>(mesh_.axes().size()); ++axis) buffer.sharding.front().push_back(mesh_.whole(axis));
    buffer.on_chip = shape.layout.memory_space != HloMemory::hbm;
    return buffer;
  };
  std::vector<HloValue> arguments;
  for (const int parameter : entry.parameters) {
    const HloInstruction& given = entry.instructions[static_cast<std::size_t>(parameter)];
    const std::vector<const HloShape*> shapes = leaves_of(*given.shape);
    HloValue value(shapes.size());
    for (std::size_t leaf = 0; leaf < shapes.size(); ++leaf) {
      if (!has_buffer(*shapes[leaf])) continue;
      std::string name = shapes.size() > 1 ? fmt::format("{}.{}", given.name, leaf) : given.name;
      value[leaf] = {writer.add_buffer(shared(std::move(name), *shapes[leaf], Role::input, is_number_of_all(module_, given, leaf)), false), form(*shapes[leaf]).lengths, {}, 0, {}};
      if (values() && is_integer(shapes[leaf]->type) && bits_of(shapes[leaf]->type) < 32) {
        if (!given.shape->is_array()) return problem(given, fmt::format("a tuple with {} is not executed as a parameter", name_of(shapes[leaf]->type)));
        value[leaf] = writer.within_type(entry, parameter, value[leaf]);
      }
    }
    arguments.push_back(std::move(value));
  }
  const HloInstruction& root = entry.instructions[static_cast<std::size_t>(entry.root)];
  const std::vector<const HloShape*> shapes = leaves_of(*root.shape);
  std::vector<std::optional<BufferId>> wanted(shapes.size());
  for (const HloAlias& alias : module_.aliases) {
    if (values()) break;  // results are compared, inputs are not
    const auto out = leaf_at(*root.shape, alias.output);
    if (!out || *out >= wanted.size() || alias.parameter < 0 || static_cast<std::size_t>(alias.parameter) >= arguments.size()) continue;
    const HloInstruction& parameter = entry.instructions[static_cast<std::size_t>(entry.parameters[static_cast<std::size_t>(alias.parameter)])];
    const auto in = leaf_at(*parameter.shape, alias.parameter_index);
    const HloValue& given = arguments[static_cast<std::size_t>(alias.parameter)];
    if (!in || *in >= given.size() || !given[*in].buffer) continue;
    wanted[*out] = given[*in].buffer;
    writer.donate(*given[*in].buffer);
  }
  for (std::size_t leaf = 0; leaf < shapes.size(); ++leaf)
    if (!wanted[leaf] && has_buffer(*shapes[leaf])) wanted[leaf] = writer.add_buffer(shared(fmt::format("result {}", leaf), *shapes[leaf], Role::output, false), true);
  const auto result = writer.write(entry, arguments, wanted);
  if (!result) return result.error();
  writer.place(*result, shapes, wanted);
  HloSchedule made;
  made.schedule = {module_.name, mesh_, {std::move(builder).finish()}, {}, std::move(functions_)};
  made.tasks = {std::move(writer.tasks()), std::move(function_tasks_)};
  made.instructions = instructions_of(module_);
  made.kernels = std::move(kernels_);
  made.opaque = std::move(opaque_);
  if (!waiting_.empty())
    note(fmt::format("of {} all-reduces only the own block is used, of {} first: {}", waiting_.size(), *waiting_.begin(),
                     options_.rewrite_reduce_scatter ? "they run as reduce-scatters" : "reduce-scatters in waiting, which `rewrite` reduce-scatter makes them"));
  for (const auto& [key, collectives] : stated_) made.stated.push_back({key.first, key.second, collectives});
  made.notes = std::move(notes_);
  return made;
}

HloOrigins origins_of_communication(const HloSchedule& made) {
  HloOrigins origins;
  const auto add = [&](const std::vector<Task>& tasks, const std::vector<HloTask>& described) {
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const HloInstruction* instruction = described[t].instruction;
      if (instruction != nullptr && !std::holds_alternative<Local>(tasks[t].op) && !std::holds_alternative<Matmul>(tasks[t].op) && !std::holds_alternative<Call>(tasks[t].op))
        origins.try_emplace(instruction->name, HloOrigin{instruction->op_name, instruction->source});
    }
  };
  add(made.schedule.programs.front().tasks, made.tasks.program);
  for (std::size_t f = 0; f < made.tasks.functions.size(); ++f) add(made.schedule.functions[f].body.tasks, made.tasks.functions[f]);
  return origins;
}

Expected<HloSchedule> hlo_schedule(const HloModule& module, const Mesh& mesh, const HloScheduleOptions& options) { return ModuleWriter{module, mesh, options}.write(); }

}  // namespace podsim
