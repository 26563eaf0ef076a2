#include "sim/simgrid/simgrid_engine.hpp"

#include "sim/engine/stuck.hpp"
#include "sim/simgrid/simulate.hpp"

namespace podsim {

namespace {

class SimgridEngine final : public TimingEngine {
 public:
  SimgridEngine(const Machine& machine, const Topology& topology, const Placement& placement)
      : machine_{machine}, topology_{topology}, placement_{placement} {}

  [[nodiscard]] std::string_view name() const override { return "simgrid"; }

  [[nodiscard]] Expected<Timeline> run(const Schedule& lowered) const override {
    const auto graph = cost(lowered, machine_, topology_, placement_);
    if (!graph) return graph.error();
    auto simulation = simgrid_engine::simulate(*graph);
    if (!simulation) return simulation.error();
    if (!simulation->finished.empty()) return stuck(lowered, *graph, simulation->finished);
    return make_timeline(graph->graph, std::move(simulation->times), simulation->events);
  }

 private:
  const Machine& machine_;
  const Topology& topology_;
  const Placement& placement_;
};

}  // namespace

std::unique_ptr<TimingEngine> make_simgrid_engine(const Machine& machine, const Topology& topology, const Placement& placement) {
  return std::make_unique<SimgridEngine>(machine, topology, placement);
}

}  // namespace podsim
