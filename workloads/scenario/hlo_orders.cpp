#include "workloads/scenario/hlo_orders.hpp"

#include "workloads/scenario/faults.hpp"

namespace podsim {

using Order = HloScheduleOptions::Order;

Expected<std::optional<double>> other_order_makespan(const System& system, const ProblemSpec& problem, const RunOptions& options) {
  const auto* asked = std::get_if<HloSpec>(&problem);
  if (asked == nullptr || asked->module->is_scheduled) return std::optional<double>{};
  HloSpec other = *asked;
  other.options.order = order_of(*asked->module, asked->options) == Order::text ? Order::overlap : Order::text;
  RunOptions how = options;
  if (how.engine->name == "simgrid") how.engine = &des_engine();
  how.fold = true;
  how.inline_calls = how.write_out_calls = false;
  options.tell(other.options.order == Order::text ? "the instructions in the order of the text" : "the instructions with overlap");
  const auto run = simulate(system, ProblemSpec{std::move(other)}, how);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return std::optional{run->row.result.makespan_s};
}

HloOrderTimes both_orders(const ProblemSpec& problem, double makespan_s, double other_s) {
  const auto& spec = std::get<HloSpec>(problem);
  return order_of(*spec.module, spec.options) == Order::text ? HloOrderTimes{makespan_s, other_s} : HloOrderTimes{other_s, makespan_s};
}

}  // namespace podsim
