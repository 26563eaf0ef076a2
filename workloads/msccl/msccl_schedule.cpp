#include "workloads/msccl/msccl_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/base/text.hpp"
#include "sim/schedule/lower.hpp"
#include "workloads/msccl/msccl_buffers.hpp"

namespace podsim {

namespace {

constexpr std::size_t few_edges = 8;  // more wait for a join

/// The last tasks of a thread block, at some step.
struct BlockState {
  std::optional<TaskId> last, send;  // the last task that is no Send; the last Send, if nothing after it waits for it
  Edges pending;                     // what the steps of others that this one waits for have made, until a task other than a Send waits for it
  std::unordered_map<std::int64_t, TaskId> sent;  // by chunk of a buffer: the last Send that reads it and that `last` does not wait for
};

/// Writes the one program. `buffered`: by number of the step, whether what it receives lands in a slot.
class MscclWriter {
 public:
  MscclWriter(const MscclAlgorithm& algorithm, const MscclOrder& order, const Mesh& mesh, MscclBuffers buffers, const Origin& origin)
      : algorithm_{algorithm},
        order_{order},
        mesh_{mesh},
        buffers_{std::move(buffers)},
        origin_{origin},
        file_{std::make_shared<const std::string>(algorithm.file)} {
    int steps = 0;
    for (const MscclGpu& gpu : algorithm_.gpus) {
      first_.emplace_back();
      for (const MscclBlock& block : gpu.blocks) first_.back().push_back(steps), steps += static_cast<int>(block.steps.size());
    }
    buffered_.resize(static_cast<std::size_t>(steps));
  }

  /// Where receiving in place makes steps wait in a circle, those that are part of it are buffered. Each attempt buffers more, the last one all.
  Program write() {
    for (int attempt = 0;; ++attempt) {
      Program program = write_once();
      const std::vector<TaskId> stuck = in_circles(program);
      if (stuck.empty()) return program;
      if (attempt == 3) std::fill(buffered_.begin(), buffered_.end(), true);
      for (const TaskId task : stuck)
        if (std::holds_alternative<Recv>(program.tasks[task.index()].op)) buffered_[step_of_receive_.at(task.value)] = true;
    }
  }

 private:
  [[nodiscard]] std::size_t number_of(const MscclStepId& id) const {
    return static_cast<std::size_t>(first_[static_cast<std::size_t>(id.gpu)][static_cast<std::size_t>(id.block)] + id.step);
  }

  Program write_once() {
    builder_.emplace(mesh_, every_device(mesh_));
    step_of_receive_.clear();
    sends_.assign(buffered_.size(), {});
    receives_.assign(buffered_.size(), {});
    std::int64_t slots = 0;
    slot_of_.assign(buffered_.size(), -1);
    std::vector<std::int64_t> used(algorithm_.gpus.size());
    for (const MscclStepId& id : order_.steps) {
      const MscclStep& step = podsim::step_of(algorithm_, id);
      if (!traits_of(step.kind).receives || (step.kind != MscclKind::receive_reduce_send && !buffered_[number_of(id)])) continue;
      std::int64_t& next = used[static_cast<std::size_t>(id.gpu)];
      slot_of_[number_of(id)] = next;
      next += step.count;
      slots = std::max(slots, next);
    }
    buffers_.add_to(*builder_, slots);
    start_.clear();
    if (mesh_.devices() > 1) start_ = {Edge{add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma}, {}, {}, algorithm_.where)}};
    if (const auto placed = buffers_.placed_first())
      start_ = {Edge{add("place", Local{LocalKind::alias, {placed->first}, {placed->second}, 1, Unit::dma}, start_, {}, algorithm_.where)}};
    states_.clear();
    for (const MscclGpu& gpu : algorithm_.gpus) states_.emplace_back(gpu.blocks.size());
    ends_.assign(buffered_.size(), {});
    for (const MscclStepId& id : order_.steps) write_step(id);
    for (std::size_t g = 0; g < algorithm_.gpus.size(); ++g) write_last(static_cast<int>(g));
    return std::move(*builder_).finish();
  }

  TaskId add(std::string label, Op op, Edges after, Guard where, const MscclPosition& position) {
    return builder_->add(
        Task{std::move(label), std::move(op), std::move(after), std::move(where), origin_, WrittenAt{file_, position.line, position.column}});
  }

  [[nodiscard]] Guard only_on(int gpu) const {
    Guard guard;
    for (int a = 0; a < static_cast<int>(mesh_.axes().size()); ++a) {
      const AxisView axis = mesh_.whole(a);
      const std::int64_t at = mesh_.coordinate(DeviceId{gpu}, axis);
      if (axis.size > 1) guard.push_back({own(axis), at, at + 1});
    }
    return guard;
  }
  [[nodiscard]] Peer device(int gpu) const {
    Peer peer;
    for (const int coordinate : mesh_.coordinates(DeviceId{gpu})) peer.emplace_back(coordinate);
    return peer;
  }

  static void add_edges(Edges& edges, const std::optional<TaskId>& task) {
    if (task) edges.push_back(Edge{*task});
  }

  /// A key per chunk of the three buffers.
  template <class Do>
  void for_chunks(const Region& region, Do each) const {
    const Range& chunks = region.dims[mesh_.axes().size()];
    for (std::int64_t c = 0; c < chunks.length; ++c) each((static_cast<std::int64_t>(region.buffer.value) << 40) + chunks.offset + c);
  }

  /// A step being written.
  struct Here {
    MscclStepId id;
    const MscclStep& step;
    const MscclBlock& block;
    BlockState& state;
  };

  TaskId add_here(const Here& here, std::string_view what, Op op, Edges after) {
    if (after.empty()) after = start_;
    std::string label = fmt::format("gpu {} block {} step {} {}{}{}", here.id.gpu, here.id.block, here.id.step, traits_of(here.step.kind).name,
                                    what.empty() ? "" : " ", what);
    return add(std::move(label), std::move(op), join(std::move(after), {}), only_on(here.id.gpu), here.step.where);
  }

  /// A task of this device alone: waits for all before it.
  TaskId local(const Here& here, std::string_view what, LocalKind kind, std::vector<Region> reads, std::vector<Region> writes,
               const std::optional<TaskId>& also = {}) {
    BlockState& state = here.state;
    Edges after = std::move(state.pending);
    add_edges(after, state.last);
    add_edges(after, state.send);
    add_edges(after, also);
    const TaskId task = add_here(here, what, Local{kind, std::move(reads), std::move(writes), 1, Unit::dma}, std::move(after));
    state = {task, {}, {}, {}};
    return task;
  }

  void send(const Here& here, const Region& source) {
    BlockState& state = here.state;
    Edges after = state.pending;
    add_edges(after, state.last);
    add_edges(after, state.send);
    state.send = add_here(here, "send", Send{here.block.channel, device(here.block.send), source, {}}, std::move(after));
    sends_[number_of(here.id)] = *state.send;
    for_chunks(source, [&](std::int64_t chunk) { state.sent[chunk] = *state.send; });
  }

  /// What a task that receives into `written` waits for: all before it but the thread block's Sends, and of these the last that reads `written`.
  Edges before_receiving(BlockState& state, const Region& written) {
    Edges after = std::move(state.pending);
    state.pending.clear();
    add_edges(after, state.last);
    std::optional<TaskId> overlapped;
    for_chunks(written, [&](std::int64_t chunk) {
      if (const auto found = state.sent.find(chunk); found != state.sent.end() && (!overlapped || *overlapped < found->second))
        overlapped = found->second;
    });
    add_edges(after, overlapped);
    return after;
  }

  void receive(const Here& here, const Region& target, Combine combine, Edges after) {
    here.state.last = add_receive(here, target, combine, std::move(after));
  }
  TaskId add_receive(const Here& here, const Region& target, Combine combine, Edges after) {
    const TaskId task = add_here(here, "receive", Recv{here.block.channel, device(here.block.receive), target, combine}, std::move(after));
    receives_[number_of(here.id)] = task;
    step_of_receive_.emplace(task.value, number_of(here.id));
    return task;
  }

  /// Lands in its target: where that is to be the sum with something else, that is placed there first.
  void receive_in_place(const Here& here, const Region& source, const Region& target) {
    const MscclKindTraits& traits = traits_of(here.step.kind);
    Edges after = before_receiving(here.state, target);
    if (traits.reads_source && source != target) {
      here.state.last = add_here(here, "place", Local{LocalKind::alias, {source}, {target}, 1, Unit::dma}, std::move(after));
      after = {Edge{*here.state.last}};
    }
    receive(here, target, traits.reads_source ? Combine::add : Combine::replace, std::move(after));
  }

  /// Lands in a slot as soon as it is sent; the step then copies or adds it.
  void receive_in_slot(const Here& here, const Region& source, const Region& target) {
    const MscclKindTraits& traits = traits_of(here.step.kind);
    const Region slot = buffers_.slot(slot_of_[number_of(here.id)], here.step.count);
    const TaskId arrived = add_receive(here, slot, Combine::replace, {});
    if (traits.reads_source)
      local(here, "", LocalKind::add, {source, slot}, {target}, arrived);
    else
      local(here, "place", LocalKind::alias, {slot}, {target}, arrived);
  }

  void write_step(const MscclStepId& id) {
    const MscclStep& step = podsim::step_of(algorithm_, id);
    const MscclBlock& block = algorithm_.gpus[static_cast<std::size_t>(id.gpu)].blocks[static_cast<std::size_t>(id.block)];
    BlockState& state = states_[static_cast<std::size_t>(id.gpu)][static_cast<std::size_t>(id.block)];
    const Here here{id, step, block, state};
    if (step.after_block >= 0) {
      const Edges& others = ends_[number_of({id.gpu, step.after_block, step.after_step})];
      state.pending.insert(state.pending.end(), others.begin(), others.end());
    }
    if (state.pending.size() > few_edges || (step.kind == MscclKind::nop && step.has_dependents && !state.pending.empty())) {
      Edges after = std::move(state.pending);
      state.pending.clear();
      add_edges(after, state.last);
      state.last = add_here(here, "join", Local{LocalKind::join, {}, {}, 1, Unit::dma}, std::move(after));
    }
    const MscclKindTraits& traits = traits_of(step.kind);
    const Region source = traits.reads_source ? buffers_.at(step.source, step.count, id.gpu) : Region{};
    const Region target = traits.writes_target ? buffers_.at(step.target, step.count, id.gpu)
                          : traits.receives    ? buffers_.slot(slot_of_[number_of(id)], step.count)
                                               : Region{};
    switch (step.kind) {
      case MscclKind::nop: break;
      case MscclKind::send: send(here, source); break;
      case MscclKind::copy:
        if (source != target) local(here, "", buffers_.is_own_copy(step) ? LocalKind::alias : LocalKind::copy, {source}, {target});
        break;
      case MscclKind::reduce: local(here, "", LocalKind::add, {target, source}, {target}); break;
      case MscclKind::receive:
      case MscclKind::receive_copy_send:
      case MscclKind::receive_reduce_copy:
      case MscclKind::receive_reduce_send:
      case MscclKind::receive_reduce_copy_send:
        if (buffered_[number_of(id)])
          receive_in_slot(here, source, target);
        else
          receive_in_place(here, source, target);
        if (traits.sends) send(here, target);
        break;
    }
    if (!step.has_dependents) return;
    Edges& ends = ends_[number_of(id)];
    add_edges(ends, state.last);
    add_edges(ends, state.send);
  }

  void write_last(int gpu) {
    const auto placed = buffers_.placed_last(gpu);
    if (!placed) return;
    Edges after;
    for (const BlockState& state : states_[static_cast<std::size_t>(gpu)]) {
      after.insert(after.end(), state.pending.begin(), state.pending.end());
      add_edges(after, state.last);
      add_edges(after, state.send);
    }
    if (after.empty()) after = start_;
    add("place", Local{LocalKind::alias, {placed->first}, {placed->second}, 1, Unit::dma}, join(std::move(after), {}), only_on(gpu),
        algorithm_.where);
  }

  /// Takes away, one after the other, what nothing that is left leads to.
  static void peel(const std::vector<std::vector<std::size_t>>& followers, const std::vector<std::vector<std::size_t>>& before,
                   std::vector<bool>& gone) {
    std::vector<std::size_t> left(followers.size()), ready;
    for (std::size_t t = 0; t < followers.size(); ++t) {
      if (gone[t]) continue;
      left[t] = static_cast<std::size_t>(std::count_if(before[t].begin(), before[t].end(), [&](std::size_t other) { return !gone[other]; }));
      if (left[t] == 0) ready.push_back(t);
    }
    while (!ready.empty()) {
      const std::size_t t = ready.back();
      ready.pop_back();
      gone[t] = true;
      for (const std::size_t follower : followers[t])
        if (!gone[follower] && --left[follower] == 0) ready.push_back(follower);
    }
  }

  /// The tasks in circles, or between two circles, where the two halves of a transfer are one.
  [[nodiscard]] std::vector<TaskId> in_circles(const Program& program) const {
    const std::size_t count = program.tasks.size();
    std::vector<std::size_t> node(count);
    for (std::size_t t = 0; t < count; ++t) node[t] = t;
    for (const MscclTransfer& transfer : order_.transfers) node[receives_[number_of(transfer.to)].index()] = sends_[number_of(transfer.from)].index();
    std::vector<std::vector<std::size_t>> followers(count), before(count);
    for (std::size_t t = 0; t < count; ++t)
      for (const Edge& edge : program.tasks[t].after) {
        followers[node[edge.task.index()]].push_back(node[t]);
        before[node[t]].push_back(node[edge.task.index()]);
      }
    std::vector<bool> gone(count);
    for (std::size_t t = 0; t < count; ++t) gone[t] = node[t] != t;
    peel(followers, before, gone);
    peel(before, followers, gone);
    std::vector<TaskId> stuck;
    for (std::size_t t = 0; t < count; ++t)
      if (!gone[node[t]]) stuck.emplace_back(t);
    return stuck;
  }

  const MscclAlgorithm& algorithm_;
  const MscclOrder& order_;
  const Mesh& mesh_;
  MscclBuffers buffers_;
  Origin origin_;
  std::shared_ptr<const std::string> file_;
  std::vector<std::vector<int>> first_;  // number of a thread block's first step, by GPU
  std::vector<bool> buffered_;           // by number of the step
  std::optional<ProgramBuilder> builder_;
  std::vector<std::int64_t> slot_of_;                     // by number of the step: its first slot; -1: none
  std::vector<TaskId> sends_, receives_;                  // by number of the step
  std::unordered_map<int, std::size_t> step_of_receive_;  // by task
  std::vector<Edges> ends_;                               // the same: of steps that others may wait for
  std::vector<std::vector<BlockState>> states_;           // by GPU and thread block
  Edges start_;
};

}  // namespace

std::optional<CollectiveKind> msccl_collective_named(std::string_view name) {
  const std::string text = plain_spelling(name);
  if (text == "all2all") return CollectiveKind::all_to_all;
  for (int k = 0; k < collective_kind_count; ++k)
    if (const auto kind = static_cast<CollectiveKind>(k); kind != CollectiveKind::permute && plain_spelling(name_of(kind)) == text) return kind;
  return std::nullopt;
}

Expected<Schedule> msccl_schedule(const MscclAlgorithm& algorithm, const Mesh& mesh, Bytes input, DType dtype) {
  if (static_cast<int>(algorithm.gpus.size()) != mesh.devices())
    return Diagnostic{location_of(algorithm, algorithm.where),
                      fmt::format("expected a mesh of {} devices, as ngpus says, found {}", algorithm.gpus.size(), to_text(mesh))};
  const auto kind = msccl_collective_named(algorithm.collective);
  auto buffers = MscclBuffers::make(algorithm, mesh, kind, input, dtype);
  if (!buffers) return buffers.error();
  const auto order = order_of(algorithm);
  if (!order) return order.error();
  std::vector<AxisView> axes;
  for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a)
    if (mesh.whole(a).size > 1) axes.push_back(mesh.whole(a));
  if (axes.empty() && !mesh.axes().empty()) axes.push_back(mesh.whole(0));

  Collective claim;
  Origin origin{0, kind.value_or(CollectiveKind::permute), axes.empty() ? AxisView{} : axes.front(), input, {}};
  if (kind) {
    // The buffers of a claim are numbered as those of the program.
    ProgramBuilder sketch{mesh, every_device(mesh)};
    buffers->add_to(sketch, 0);
    const int dim = static_cast<int>(mesh.axes().size());
    claim = {*kind, axes, buffers->input(), buffers->output(), dim, dim, 0, {}};
    if (*kind != CollectiveKind::all_to_all) claim.split_dim = 0;
    if (!algorithm.in_place) origin.own_block = own_block_of(std::move(sketch).finish(), claim);
  }
  Program program = MscclWriter{algorithm, *order, mesh, *std::move(buffers), origin}.write();
  Schedule schedule{algorithm.name, mesh, {std::move(program)}, {}};
  if (kind) schedule.computes = std::move(claim);
  return schedule;
}

}  // namespace podsim
