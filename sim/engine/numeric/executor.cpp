#include "sim/engine/numeric/executor.hpp"

#include <fmt/format.h>

#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr std::int64_t little_work = 1 << 14;  // elements moved or multiply-adds / 16 that are done before another thread wakes up

/// The work of one activity, in elements moved.
std::int64_t work_of(const Op& op, std::span<const Access> accesses) {
  if (accesses.empty()) return 0;
  const auto count = [](const Access& access) {
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(access.rank); ++i) elements *= access.length[i];
    return elements;
  };
  if (const auto* matmul = std::get_if<Matmul>(&op)) {
    const MatmulExtents extents = extents_of(*matmul);
    return saturating_multiply(saturating_multiply(extents.m, extents.n), extents.k) / 16;
  }
  std::int64_t most = 0;  // a norm's sums are few
  for (const Access& access : accesses) most = std::max(most, count(access));
  const auto* local = std::get_if<Local>(&op);
  const double products = local == nullptr ? 0 : flops_of(*local).matrix.count() / 32;
  return saturating_add(most, static_cast<std::int64_t>(std::min(products, 0x1p62)));
}

}  // namespace

Executor::Executor(const Schedule& lowered, ActivityGraph graph, Storage storage, int threads, RunHooks hooks)
    : schedule_{lowered}, hooks_{std::move(hooks)}, graph_{std::move(graph)}, storage_{std::move(storage)}, pool_{threads}, memory_{storage_.bytes()} {
  packed_operands_.resize(pool_.threads());
  for (PackedOperands& workspace : packed_operands_) workspace.stop = hooks_.stop;
  last_access_.assign(storage_.slots(), none);
  for (const Program& program : schedule_.programs) {
    std::vector<bool>& written = writes_input_.emplace_back(program.buffers.size(), false);
    const auto mark = [&](const Region& region) { written[region.buffer.index()] = true; };
    for (const Task& task : program.tasks) {
      if (const auto* matmul = std::get_if<Matmul>(&task.op)) mark(matmul->out);
      if (const auto* shift = std::get_if<Shift>(&task.op)) mark(shift->target);
      if (const auto* recv = std::get_if<Recv>(&task.op)) mark(recv->target);
      if (const auto* local = std::get_if<Local>(&task.op))
        for (const Region& region : local->writes) mark(region);
    }
  }
}

Expected<std::unique_ptr<Executor>> Executor::make(const Schedule& lowered, int threads, const Budget& budget, RunHooks hooks) {
  if (std::vector<Diagnostic> problems = check_shapes(lowered); !problems.empty()) return std::move(problems.front());
  const Bytes need{saturating_add(bytes_of_buffers(lowered).count(), budget.besides.count())};
  if (const Status room = fits(need, budget.limit, fmt::format("executing the schedule on {} devices", lowered.mesh.devices())); !room)
    return room.error();
  Unrolled unrolled = unroll(lowered);
  if (!unrolled.problems.empty()) return std::move(unrolled.problems.front());
  Expected<Storage> storage = Storage::make(lowered);
  if (!storage) return storage.error();
  if (const Status ready = use_one_blas_thread(); !ready) return ready.error();
  std::unique_ptr<Executor> executor{new Executor{lowered, std::move(unrolled.graph), *std::move(storage), threads, std::move(hooks)}};
  if (executor->memory_.data() == nullptr && executor->storage_.bytes() > Bytes{})
    return Diagnostic{{}, fmt::format("the system has no {} bytes of memory for the buffers", executor->storage_.bytes().count())};
  return executor;
}

void Executor::reset(std::uint64_t seed, Filling filling) {
  const bool keep_inputs = filled_ && filled_->seed == seed && filled_->filling == filling;
  filled_ = Filled{seed, filling};
  const InputMaker inputs{schedule_, seed, filling, hooks_.stop, hooks_.inputs};
  pool_.for_each(static_cast<std::size_t>(schedule_.mesh.devices()), [&](std::size_t d, std::size_t) {
    const DeviceId device{d};
    const std::optional<std::size_t> program = storage_.program(device);
    if (!program || hooks_.stop.requested()) return;
    for (std::size_t b = 0; b < schedule_.programs[*program].buffers.size(); ++b) {
      const std::size_t slot = storage_.first_slot(device) + b;
      if (storage_.buffer(slot).role == Role::input && keep_inputs && !writes_input_[*program][b]) continue;
      inputs.prepare_buffer(storage_.buffer(slot), device, memory_.data() + storage_.offset(slot));
    }
  });
}

Status Executor::run(std::uint64_t seed, Filling filling, const Order& order) {
  reset(seed, filling);
  ReadySet ready{graph_, order};
  GraphProgress progress{graph_};
  progress.start([&](std::uint32_t activity) { ready.add(activity); });
  std::vector<std::uint32_t> round;
  while (!ready.empty()) {
    if (hooks_.stop.requested()) return cancelled_work();
    ready.take(round);
    plan(round, ready);
    outcomes_.assign(steps_.size(), success());
    if (work_ < little_work) {
      for (std::size_t i = 0; i < steps_.size(); ++i) outcomes_[i] = execute(steps_[i], packed_operands_[0]);
    } else {
      pool_.for_each(steps_.size(), [&](std::size_t i, std::size_t thread) { outcomes_[i] = execute(steps_[i], packed_operands_[thread]); });
    }
    for (const Status& outcome : outcomes_)
      if (!outcome) return outcome;
    for (const Step& step : steps_) progress.finish(step.activity, [&](std::uint32_t activity) { ready.add(activity); });
    if (hooks_.progress) hooks_.progress(graph_.activities.size() - progress.unfinished(), graph_.activities.size());
  }
  if (hooks_.stop.requested()) return cancelled_work();
  if (progress.unfinished() > 0) return deadlock();
  return success();
}

void Executor::plan(const std::vector<std::uint32_t>& round, ReadySet& ready) {
  for (const Access& access : accesses_) last_access_[access.slot] = none;
  steps_.clear();
  accesses_.clear();
  next_access_.clear();
  work_ = 0;
  for (const std::uint32_t activity : round) {
    const std::size_t first = accesses_.size();
    storage_.append_accesses(graph_.activities[activity], accesses_);
    if (conflicts(first, accesses_.size())) {
      accesses_.resize(first);
      ready.add(activity);
      continue;
    }
    for (std::size_t i = first; i < accesses_.size(); ++i) {
      next_access_.push_back(last_access_[accesses_[i].slot]);
      last_access_[accesses_[i].slot] = static_cast<std::uint32_t>(i);
    }
    steps_.push_back({activity, first, accesses_.size() - first});
    const Activity& a = graph_.activities[activity];
    work_ = saturating_add(work_, work_of(schedule_.programs[a.program].tasks[a.task.index()].op, std::span{accesses_}.subspan(first)));
  }
}

bool Executor::conflicts(std::size_t first, std::size_t last) const {
  for (std::size_t i = first; i < last; ++i)
    for (std::uint32_t other = last_access_[accesses_[i].slot]; other != none; other = next_access_[other])
      if ((accesses_[i].write || accesses_[other].write) && overlap(accesses_[i], accesses_[other])) return true;
  return false;
}

View Executor::view(const Access& access) const {
  return {memory_.data(), storage_.layout(access), carried_in(filled_->filling, storage_.buffer(access.slot).dtype)};
}

Status Executor::execute(const Step& step, PackedOperands& workspace) {
  if (hooks_.stop.requested()) return success();
  const std::span<const Access> at = std::span{accesses_}.subspan(step.first, step.count);
  const Activity& activity = graph_.activities[step.activity];
  std::array<View, most_accesses> few;
  std::vector<View> many(at.size() > few.size() ? at.size() : 0);  // of an opaque operation
  const std::span<View> views = many.empty() ? std::span{few}.first(at.size()) : std::span{many};
  std::transform(at.begin(), at.end(), views.begin(), [&](const Access& access) { return view(access); });
  const std::span<const View> seen = views;
  if (activity.kind == Activity::Kind::transfer) {
    deliver(combine_of(schedule_, activity), at, seen, workspace);
    return success();
  }
  const Status done = perform(schedule_.programs[activity.program].tasks[activity.task.index()].op, at, seen,
                              {activity.device, storage_.coordinates(activity.device), schedule_.source.get()}, workspace);
  return done ? done : failure_of(schedule_, activity, done.error());
}

std::span<const float> Executor::values(DeviceId device, BufferId buffer) const {
  const std::size_t slot = storage_.first_slot(device) + buffer.index();
  return {memory_.data() + storage_.offset(slot), static_cast<std::size_t>(storage_.words(slot))};
}

Diagnostic Executor::deadlock() const {
  const std::vector<std::uint32_t> cycle = topological_order(graph_, schedule_, false).cycle;
  constexpr std::size_t most_named = 8;
  std::string text = "deadlock: ";
  for (std::size_t i = 0; i < cycle.size() && i < most_named; ++i) {
    const Activity& activity = graph_.activities[cycle[i]];
    text += fmt::format("task {} on device {} ({}) waits for ", task_name(schedule_.programs[activity.program], activity.task), activity.device.value,
                        schedule_.mesh.name(activity.device));
  }
  text += cycle.size() > most_named ? fmt::format("{} more, which wait for the first", cycle.size() - most_named) : "the first";
  const Activity& first = graph_.activities[cycle.front()];
  return {location_of(schedule_.programs[first.program].tasks[first.task.index()].written_at), text};
}

}  // namespace podsim
