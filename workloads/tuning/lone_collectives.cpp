#include "workloads/tuning/lone_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "algorithms/gemm/gemm.hpp"

namespace podsim {

namespace {

bool symmetric(const std::vector<AxisRings::Ring>& rings) {
  return std::all_of(rings.begin(), rings.end(), [](const AxisRings::Ring& ring) { return ring.wraps || ring.size == 2; });
}
bool alike(const std::vector<AxisRings::Ring>& rings) {
  const AxisRings::Ring& first = rings.front();
  return std::all_of(rings.begin(), rings.end(), [&](const AxisRings::Ring& ring) { return ring.size == first.size && ring.link == first.link; });
}

std::string text_of(const Program& program, const Region& region) {
  const Buffer& buffer = program.buffers[region.buffer.index()];
  std::string text = fmt::format("{} {}:", name_of(buffer.dtype), static_cast<int>(buffer.role));
  for (const Range& range : region.dims) {
    text += fmt::format(" {}+{}*({} mod {}", range.length, range.offset, range.stride, range.index.modulus);
    for (const AxisTerm& term : range.index.terms) text += fmt::format(" {}*({}/{}+{})", term.coefficient, term.axis.axis, term.axis.stride, term.add);
    text += fmt::format(" {})", range.index.constant);
  }
  return text;
}

}  // namespace

std::vector<LoneCollective> lone_collectives(const WorkloadPart& part, const PartOptions& options, const System& system,
                                             const std::optional<AxisRings>& rings) {
  std::vector<LoneCollective> found;
  const std::string& name = part.product.algorithm;
  if (!rings || part.kind != WorkloadPart::Kind::product || (name != "collective" && name != "meshslice")) return found;
  const bool by_dimension = part.product.collectives.empty();
  const auto is_wanted = [&](const std::vector<AxisRings::Ring>& along) { return symmetric(along) && (by_dimension ? along.size() > 1 && !alike(along) : !along.empty()); };
  const std::array wanted{is_wanted(rings->row), is_wanted(rings->col)};
  if (!wanted[0] && !wanted[1]) return found;
  const auto algorithm = gemm_algorithm(name);
  if (!algorithm) return found;
  const std::vector<GemmProblem> problems = gemms_of(part);
  for (std::size_t g = 0; g < problems.size(); ++g) {
    const auto gemm = make_gemm(**algorithm, system.mesh, problems[g], gemm_options(options, part.product.slice_count));
    if (!gemm) return {};
    std::array<bool, 2> seen{!wanted[0], !wanted[1]};
    const Program& program = gemm->programs.front();
    for (const Task& task : program.tasks) {
      const auto* collective = std::get_if<Collective>(&task.op);
      if (collective == nullptr) continue;
      const int axis = collective->axes.front().axis;
      if (std::exchange(seen[static_cast<std::size_t>(axis)], true)) continue;
      LoneCollective lone{g, axis, {}, {task.label, gemm->mesh, {{program.devices, program.buffers, {}}}, {}}};
      lone.key = fmt::format("{} {} {} {} {} {}; {}; {}", axis, part.product.collectives, name_of(collective->kind), collective->dim, collective->split_dim,
                             collective->input.buffer == collective->output.buffer, text_of(program, collective->input),
                             text_of(program, collective->output));
      lone.schedule.programs.front().tasks.push_back({task.label, *collective, {}, {}, {}});
      state_collectives(lone.schedule, part.product.collectives);
      found.push_back(std::move(lone));
    }
  }
  return found;
}

}  // namespace podsim
