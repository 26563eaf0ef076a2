#include "tools/sweep/asked_points.hpp"

#include "tools/sweep/content_key.hpp"
#include "tools/sweep/sweep_check.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

std::optional<int> devices_of_point(const PointInputs& inputs) {
  const auto fields = with_plan(fields_of(inputs));
  const auto system = fields ? read_system(*fields) : Expected<System>{fields.error()};
  if (!system) return std::nullopt;
  return system->mesh.devices();
}

}  // namespace

Expected<Points> checked_points(std::vector<SweepBlock> blocks) {
  if (auto ok = check_sweep(blocks); !ok) return ok.error();
  return expand(std::move(blocks), devices_of_point);
}

AskedPoints asked_points(const SweepText& sweep, const Points& points) {
  AskedPoints asked{&points, positions_of(sweep.shard.value_or(SweepShard{}), points.size()), {}, {}};
  InputKeys key_of{sweep.version};
  for (const std::size_t position : asked.positions) asked.input_keys.push_back(key_of(points.inputs(position)));
  asked.contents = key_of.contents();
  return asked;
}

}  // namespace podsim
