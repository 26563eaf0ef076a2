// How often a partial sum is rounded on its way: the n of the bf16 tolerance.
#include <algorithm>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/engine/numeric/task_kernels.hpp"
#include "sim/schedule/happens_before.hpp"

namespace podsim {
namespace {

/// Per slot, the boxes written last and how often what they hold has been rounded.
class Counts {
 public:
  explicit Counts(const Storage& storage) : written_(storage.slots()) {}

  [[nodiscard]] int read(const Access& access) const {
    int most = 0;
    for (const Written& written : written_[access.slot])
      if (overlap(written.box, access)) most = std::max(most, written.count);
    return most;
  }
  void write(const Access& access, int count) {
    std::vector<Written>& boxes = written_[access.slot];
    std::erase_if(boxes, [&](const Written& written) { return contains(access, written.box); });
    boxes.push_back({access, count});
  }
  [[nodiscard]] int most(std::size_t slot) const {
    int most = 0;
    for (const Written& written : written_[slot]) most = std::max(most, written.count);
    return most;
  }

 private:
  struct Written {
    Access box;
    int count = 0;
  };
  std::vector<std::vector<Written>> written_;
};

/// Of what the activity writes; accesses as append_accesses() orders them.
int count_after(const Schedule& schedule, const Activity& activity, std::span<const Access> accesses, const Counts& counts) {
  int before = 0;
  for (const Access& access : accesses)
    if (!access.write) before = std::max(before, counts.read(access));
  const auto of_result = [&] { return counts.read(accesses.back()); };
  if (activity.kind == Activity::Kind::transfer) {
    const Combine combine = combine_of(schedule, activity);
    return combine == Combine::replace ? before : std::max(before, of_result()) + (combine == Combine::add ? 1 : 0);
  }
  const Op& op = schedule.programs[activity.program].tasks[activity.task.index()].op;
  if (const auto* matmul = std::get_if<Matmul>(&op)) return (matmul->accumulate ? std::max(before, of_result()) : before) + 1;
  // One kernel each, rounded when it stores its result.
  return traits_of(std::get<Local>(op).kind).role == LocalRole::compute ? before + 1 : before;
}

}  // namespace

int stores_of_partial_sums(const Schedule& lowered, Cancellation stop) {
  const Unrolled unrolled = unroll(lowered);
  const Expected<Storage> storage = Storage::make(lowered);
  PODSIM_ASSERT(unrolled.problems.empty() && storage);
  Counts counts{*storage};
  std::vector<Access> accesses;
  for (const std::uint32_t next : topological_order(unrolled.graph, lowered, false).order) {  // any legal order gives the same counts
    if (stop.requested()) break;
    const Activity& activity = unrolled.graph.activities[next];
    accesses.clear();
    storage->append_accesses(activity, accesses);
    if (accesses.empty()) continue;
    const int count = count_after(lowered, activity, accesses, counts);
    for (const Access& access : accesses)
      if (access.write) counts.write(access, count);
  }
  int most = 0;
  for (std::size_t slot = 0; slot < storage->slots(); ++slot)
    if (storage->buffer(slot).role != Role::scratch) most = std::max(most, counts.most(slot));
  return most;
}

}  // namespace podsim
