#include "validation/validate/training_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "workloads/scenario/simulate.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {

namespace {

const StudyStep* step_named(const Study& study, const std::string& name) {
  const auto found = std::find_if(study.steps.begin(), study.steps.end(), [&](const StudyStep& step) { return step.name == name; });
  return found == study.steps.end() ? nullptr : &*found;
}

Expected<Slice> slice_of_row(const Observation& row, const System& base) {
  if (row.slice.empty()) return base.slice;
  auto slice = parse_slice(row.slice, base.machine, {});
  if (!slice) return Diagnostic{row.where, slice.error().message};
  return slice;
}

Expected<System> system_of_step(const Observation& row, const TrainingStep& step, const System& base) {
  SystemSpec spec;
  spec.machine = base.machine;
  auto slice = slice_of_row(row, base);
  if (!slice) return slice.error();
  spec.slice = *std::move(slice);
  spec.wrap = base.wrap;
  spec.topology = base.joined_by;
  spec.slices = row.pods;
  spec.order = base.order;
  for (const std::string_view axis : training_axes)
    if (const std::int64_t size = size_of(step.mesh, axis); size > 1) spec.mesh.emplace_back(axis, static_cast<int>(size));
  if (spec.mesh.empty()) spec.mesh.emplace_back("data", 1);
  auto system = make_system(spec);
  if (!system) return Diagnostic{row.where, system.error().message};
  return system;
}

}  // namespace

Expected<TrainingStep> step_of(const Observation& row, const Study& study, const System& base) {
  const StudyStep* named = step_named(study, row.step);
  if (named == nullptr) return Diagnostic{row.where, "the study has no step " + quoted(row.step)};
  TrainingStep step = named->step;
  if (!named->maxtext.empty()) {
    const auto slice = slice_of_row(row, base);
    if (!slice) return slice.error();
    auto read = read_maxtext("", "", named->maxtext, {chips_of(*slice) * base.machine.chip.devices, row.pods});
    if (!read) return Diagnostic{named->where, to_text(read.error())};
    step = *std::move(read);
  }
  const auto whole = divided(step);
  if (!whole) return Diagnostic{named->where, whole.error().message};
  if (step.mesh.devices() != row.devices)
    return Diagnostic{row.where,
                      fmt::format("expected {} devices, those of the mesh {}, found {}", step.mesh.devices(), to_text(step.mesh), row.devices)};
  return whole->step;
}

Expected<Seconds> predict_step(const Observation& row, const Study& study, const System& base, Cancellation stop) {
  const auto step = step_of(row, study, base);
  if (!step) return step.error();
  const auto system = system_of_step(row, *step, base);
  if (!system) return system.error();
  TrainingSpec spec{*step};
  spec.collectives = usual_step_collectives(*system);
  spec.layers.algorithm = step_named(study, row.step)->products;
  RunOptions options;
  options.threads = 1;
  options.control.stop = stop;
  auto posed = pose(*system, spec, options);
  if (!posed) return Diagnostic{row.where, to_text(posed.error())};
  const auto time = simulated_time(posed->system, posed->problem, options);
  if (!time && !options.stopped()) return Diagnostic{row.where, to_text(time.error())};
  return time;
}

}  // namespace podsim
