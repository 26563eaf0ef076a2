#include "sim/engine/mpi/rank_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

using Part = RankTask::Part;

Status fits_tags(const Schedule& lowered, MPI_Comm comm) {
  int* largest = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  const std::int64_t tags = found != 0 ? *largest : 32767;  // what every MPI has
  for (const Program& program : lowered.programs)
    if (static_cast<std::int64_t>(program.tasks.size()) > tags)
      return Diagnostic{{}, fmt::format("a program has {} tasks; this MPI has {} tags", program.tasks.size(), tags)};
  return success();
}

}  // namespace

RankRunner::RankRunner(const Schedule& lowered, const Team& team, ActivityGraph graph, Storage storage)
    : schedule_{lowered},
      team_{team},
      device_{team.rank()},
      graph_{std::move(graph)},
      storage_{std::move(storage)},
      tasks_{tasks_of_rank(graph_, lowered, device_)},
      memory_{Bytes{[&] {
        const std::size_t first = storage_.first_slot(device_), last = storage_.first_slot(DeviceId{device_.value + 1});
        if (first == last) return std::int64_t{0};
        return (storage_.offset(last - 1) + storage_.words(last - 1) - storage_.offset(first)) * static_cast<std::int64_t>(sizeof(float));
      }()}} {
  if (!buffers().empty()) base_ = storage_.offset(storage_.first_slot(device_));
  beside_.resize(tasks_.size());
  times_.resize(tasks_.size());
  for (const RankTask& task : tasks_) prepare(task);
  for (std::uint32_t t = 0; t < tasks_.size(); ++t)
    if (tasks_[t].on_core) core_.push_back(t);
}

Expected<std::unique_ptr<RankRunner>> RankRunner::make(const Schedule& lowered, const Team& team, Bytes limit) {
  PODSIM_ASSERT(lowered.mesh.devices() == team.size());
  Validation validation = validate(lowered);
  if (!validation.ok()) return std::move(validation.all().front());
  if (const Status room = fits(bytes_of_buffers(lowered), limit, "running the schedule"); !room) return room.error();
  for (const Program& program : lowered.programs)
    for (const Buffer& buffer : program.buffers)
      if (words_in(buffer) > std::numeric_limits<int>::max())
        return Diagnostic{{}, fmt::format("buffer {} has more elements than one MPI message may have", quoted(buffer.name))};
  if (const Status tags = fits_tags(lowered, team.comm()); !tags) return tags.error();
  Unrolled unrolled = unroll(lowered);
  Expected<Storage> storage = Storage::make(lowered);
  if (!storage) return storage.error();
  if (const Status ready = use_one_blas_thread(); !ready) return ready.error();
  std::unique_ptr<RankRunner> runner{new RankRunner{lowered, team, std::move(unrolled.graph), *std::move(storage)}};
  if (runner->memory_.data() == nullptr && !runner->buffers().empty()) return Diagnostic{{}, "the system has no memory for the buffers"};
  return runner;
}

std::span<const Buffer> RankRunner::buffers() const {
  const std::optional<std::size_t> program = storage_.program(device_);
  return program ? std::span<const Buffer>{schedule_.programs[*program].buffers} : std::span<const Buffer>{};
}

std::span<const float> RankRunner::values(BufferId buffer) const {
  const std::size_t slot = storage_.first_slot(device_) + buffer.index();
  return {memory_.data() + (storage_.offset(slot) - base_), static_cast<std::size_t>(storage_.words(slot))};
}

View RankRunner::own_view(const Access& access) const {
  Layout layout = storage_.layout(access);
  layout.offset -= base_;
  return {memory_.data(), layout, storage_.buffer(access.slot).dtype};
}

void RankRunner::prepare(const RankTask& task) {
  const Activity& activity = graph_.activities[task.activity];
  Prepared prepared;
  prepared.first = accesses_.size();
  storage_.append_accesses(activity, accesses_);
  prepared.count = accesses_.size() - prepared.first;
  const std::span<const Access> at = std::span{accesses_}.subspan(prepared.first);
  if (task.part == Part::work) {
    for (const Access& access : at) views_.push_back(own_view(access));
    prepared_.push_back(std::move(prepared));
    return;
  }
  prepared.tag = activity.task.value;
  const DType source_type = storage_.buffer(at[0].slot).dtype;
  if (task.part == Part::send) {
    const View source = own_view(at[0]);
    views_.insert(views_.end(), {source, {}});
    prepared.peer = activity.receiver.value;
    prepared.wire.emplace(source.layout);
  } else {
    const View target = own_view(at[1]);
    prepared.peer = activity.device.value;
    prepared.combine = combine_of(schedule_, activity);
    prepared.beside = prepared.combine != Combine::replace || (is_narrow(target.dtype) && source_type != target.dtype) || activity.device == device_;
    const Layout landing = contiguous(elements_of(target.layout));
    if (prepared.beside) beside_[prepared_.size()].resize(static_cast<std::size_t>(elements_of(target.layout)));
    views_.insert(views_.end(), {View{beside_[prepared_.size()].data(), landing, source_type}, target});
    prepared.wire.emplace(prepared.beside ? landing : target.layout);
  }
  prepared_.push_back(std::move(prepared));
}

void RankRunner::fill(std::uint64_t seed, Filling filling) {
  const InputMaker inputs{schedule_, seed, filling};
  for (std::size_t b = 0; b < buffers().size(); ++b) {
    float* const data = memory_.data() + (storage_.offset(storage_.first_slot(device_) + b) - base_);
    inputs.prepare_buffer(buffers()[b], device_, data);
  }
  for (std::size_t i = 0; i < views_.size(); ++i) views_[i].dtype = carried_in(filling, storage_.buffer(accesses_[i].slot).dtype);
}

void RankRunner::set_pacing(Pacing pacing) {
  PODSIM_ASSERT(pacing.least.empty() || pacing.least.size() == tasks_.size());
  pacing_ = std::move(pacing);
}

void RankRunner::run() {
  missing_.clear();
  for (const RankTask& task : tasks_) missing_.push_back(task.waits);
  dma_.clear();
  failure_.reset();
  lasting_.clear();
  core_lasts_ = false;
  next_core_ = finished_ = 0;
  for (std::uint32_t t = 0; t < tasks_.size(); ++t)
    if (tasks_[t].waits == 0) start(t);
  while (finished_ < tasks_.size()) {
    take_finished(false);
    finish_lasting();
    if (!dma_.empty()) {
      std::pop_heap(dma_.begin(), dma_.end(), std::greater<>{});
      const std::uint32_t next = dma_.back();
      dma_.pop_back();
      work(next);
    } else if (!core_lasts_ && next_core_ < core_.size() && missing_[core_[next_core_]] == 0) {
      work(core_[next_core_++]);
    } else if (finished_ < tasks_.size()) {
      wait_for_any();
    }
  }
}

Seconds RankRunner::left(std::uint32_t task) const { return pacing_.least[task] - (now() - times_[task].start); }

void RankRunner::finish_lasting() {
  std::vector<std::uint32_t> over;
  std::erase_if(lasting_, [&](std::uint32_t task) { return left(task) <= Seconds{} && (over.push_back(task), true); });
  for (const std::uint32_t task : over) {
    if (tasks_[task].on_core) core_lasts_ = false;
    finish(task);
  }
}

/// Until a message has arrived or work may be over.
void RankRunner::wait_for_any() {
  PODSIM_ASSERT((!requests_.empty() || !lasting_.empty()) && "what can progress does");
  if (lasting_.empty()) return take_finished(true);
  Seconds first = left(lasting_.front());
  for (const std::uint32_t task : lasting_) first = std::min(first, left(task));
  rest(first);
}

/// What it waited for is over.
void RankRunner::start(std::uint32_t task) {
  if (tasks_[task].part != Part::work) return post(task);
  if (tasks_[task].on_core) return;  // its turn comes
  dma_.push_back(task);
  std::push_heap(dma_.begin(), dma_.end(), std::greater<>{});
}

void RankRunner::finish(std::uint32_t task) {
  times_[task].end = now();
  ++finished_;
  for (const std::uint32_t follower : tasks_[task].followers)
    if (--missing_[follower] == 0) start(follower);
}

void RankRunner::work(std::uint32_t task) {
  times_[task].start = now();
  const Activity& activity = graph_.activities[tasks_[task].activity];
  const auto [first, count] = std::pair{prepared_[task].first, prepared_[task].count};
  const bool paced = !pacing_.least.empty();
  const Op& op = schedule_.programs[activity.program].tasks[activity.task.index()].op;
  const DevicePlace place{device_, storage_.coordinates(device_), schedule_.source.get()};
  const Status done = paced && pacing_.only_lasts ? success() : perform(op, std::span{accesses_}.subspan(first, count), std::span{views_}.subspan(first, count), place, workspace_);
  // The other ranks wait for what follows, so it is done with whatever there is.
  if (!done && (!failure_ || activity.task.value < failure_->task)) failure_ = Failure{activity.task.value, failure_of(schedule_, activity, done.error())};
  if (!paced || (pacing_.least[task] == Seconds{} && !tasks_[task].on_core)) return finish(task);
  core_lasts_ = core_lasts_ || tasks_[task].on_core;
  lasting_.push_back(task);
}

void RankRunner::post(std::uint32_t task) {
  const Prepared& p = prepared_[task];
  times_[task].start = now();
  MPI_Request request = MPI_REQUEST_NULL;
  const View& view = views_[p.first + (tasks_[task].part == Part::receive && !p.beside ? 1 : 0)];
  float* const data = view.data + view.layout.offset;
  if (tasks_[task].part == Part::send)
    MPI_Isend(data, p.wire->count(), p.wire->type(), p.peer, p.tag, team_.comm(), &request);
  else
    MPI_Irecv(data, p.wire->count(), p.wire->type(), p.peer, p.tag, team_.comm(), &request);
  requests_.push_back(request);
  requested_.push_back(task);
}

void RankRunner::arrived(std::uint32_t task) {
  const Prepared& p = prepared_[task];
  if (p.beside) {
    // Side buffers overlap no buffer, whichever rank sent the data.
    std::array<Access, 2> at{accesses_[p.first], accesses_[p.first + 1]};
    at[0].slot = storage_.slots();
    deliver(p.combine, at, std::span{views_}.subspan(p.first, 2), workspace_);
  }
  finish(task);
}

/// What is shorter than a sleep takes to end is waited for awake: many short tasks, each a little longer than its model's, would add up.
void RankRunner::rest(Seconds at_most) const {
  constexpr Seconds end_of_sleep{50e-6};
  const Seconds sleep = std::min(pacing_.between_looks, at_most - end_of_sleep);
  if (sleep > Seconds{}) std::this_thread::sleep_for(std::chrono::duration<double>(sleep.count()));
}

/// How many requests completed.
int RankRunner::test_or_wait(bool wait) {
  int count = 0;
  const auto ask = [&](auto* function) {
    function(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(), MPI_STATUSES_IGNORE);
  };
  if (wait && pacing_.between_looks == Seconds{}) {
    ask(MPI_Waitsome);
    return count;
  }
  ask(MPI_Testsome);
  while (wait && count == 0) rest(Seconds{std::numeric_limits<double>::infinity()}), ask(MPI_Testsome);
  return count;
}

void RankRunner::take_finished(bool wait) {
  if (requests_.empty()) return;
  completed_.resize(requests_.size());
  const int count = test_or_wait(wait);
  if (count <= 0) return;  // none, or MPI_UNDEFINED
  // In the order of tasks, so that runs differ as little as they can; finished ones are taken out before new ones are posted.
  std::vector<std::uint32_t> over;
  for (const int at : std::span{completed_}.first(static_cast<std::size_t>(count))) over.push_back(requested_[static_cast<std::size_t>(at)]);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    requested_[kept++] = requested_[i];
  }
  requests_.resize(kept);
  requested_.resize(kept);
  std::sort(over.begin(), over.end());
  for (const std::uint32_t task : over) arrived(task);
}

}  // namespace podsim
