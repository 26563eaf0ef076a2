// block_schedule(): parts put one after the other into one program.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/block_reference.hpp"
#include "workloads/compose_parts.hpp"
#include "workloads/plan.hpp"

namespace podsim {

Expected<Schedule> block_schedule(const Mesh& mesh, const Workload& workload, const Plan& plan, Pass pass) {
  if (const auto parts = parts_of(workload, plan, mesh, pass); !parts) return parts.error();  // says where the plan stands that asks for another mesh
  return block_schedule(*workload_submesh(mesh), workload, plan, pass);
}

Expected<Schedule> block_schedule(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass) {
  const auto parts = parts_of(workload, plan, submesh, pass);
  if (!parts) return parts.error();
  const bool chained = workload.data_flows();
  const auto is_forward = [](const WorkloadPart& part) { return part.pass == Pass::forward; };
  const auto forward_parts = static_cast<std::size_t>(std::count_if(parts->begin(), parts->end(), is_forward));

  constexpr std::array<std::string_view, 3> suffix{"", ", backward", ", forward and backward"};
  PartComposer composer{submesh, workload.name + std::string{suffix[static_cast<std::size_t>(pass)]}};
  StageWiring wiring{chained};
  std::vector<std::string> outputs{"Y", "dX"};
  for (std::size_t p = 0; p < parts->size(); ++p) {
    const WorkloadPart& part = (*parts)[p];
    const auto named = is_forward(part) ? wiring.forward(part, p + 1 == forward_parts) : wiring.backward(part, p + 1 == parts->size());
    for (const char* own : {"Y", "dX", "dW"})
      if (const auto found = named.find(own); found != named.end() && (!chained || std::string_view{own} == "dW")) outputs.push_back(found->second);
    if (auto ok = append_part(composer, submesh, part, plan.options, named); !ok) return ok.error();
  }
  Schedule schedule = std::move(composer).finish(outputs);
  schedule.computes = block_reference(workload, plan, submesh, pass);
  return schedule;
}

}  // namespace podsim
