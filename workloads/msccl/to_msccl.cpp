#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/schedule/unroll.hpp"
#include "sim/schedule/validate.hpp"
#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/msccl/read_msccl.hpp"
#include "workloads/msccl/write_msccl.hpp"

namespace podsim {

namespace {

constexpr std::size_t few_waits = 8;  // more become a step that waits only
constexpr int most_looked_at = 256;   // steps, to find whether one precedes another

/// One run of a buffer, in elements; of scratch from the start of all scratch on.
struct Run {
  MscclBuffer buffer = MscclBuffer::input;
  std::int64_t offset = 0, length = 0;
};

/// What one GPU does of one task: a step, but for its place among the thread blocks.
struct Node {
  enum class Part { local, send, receive };
  int device = 0;
  TaskId task;
  Part part = Part::local;
  MscclKind kind = MscclKind::nop;
  Run source{}, target{};
  std::vector<std::size_t> before{};  // nodes of the same device
  int block = -1, step = -1;
  bool placed = false;  // costs nothing, where a copy of MSCCL's costs its bytes
};

bool overlap(const Run& a, const Run& b) { return a.buffer == b.buffer && a.offset < b.offset + b.length && b.offset < a.offset + a.length; }
bool contains(const Run& all, const Run& part) {
  return all.buffer == part.buffer && all.offset <= part.offset && part.offset + part.length <= all.offset + all.length;
}
bool same(const Run& a, const Run& b) { return contains(a, b) && contains(b, a); }

bool reads(const Node& node, const Run& run) {
  const bool from_source = node.kind != MscclKind::receive && node.kind != MscclKind::nop;
  return (from_source && overlap(node.source, run)) || (node.kind == MscclKind::reduce && overlap(node.target, run));
}
bool writes(const Node& node, const Run& run) { return node.part != Node::Part::send && node.kind != MscclKind::nop && overlap(node.target, run); }

/// The order in which a device's nodes are written: of its program.
bool in_program_order(const Node& a, const Node& b) { return std::tie(a.device, a.task, a.part) < std::tie(b.device, b.task, b.part); }

class Translator {
 public:
  explicit Translator(const Schedule& schedule) : schedule_{schedule} {}

  Expected<MscclAlgorithm> translate() {
    if (auto ok = check_claim(); !ok) return ok.error();
    if (auto ok = lay_out(); !ok) return ok.error();
    Unrolled unrolled = unroll(schedule_);
    if (!unrolled.problems.empty()) return unrolled.problems.front();
    graph_ = std::move(unrolled.graph);
    ends_.resize(graph_.activities.size());
    for (std::size_t a = 0; a < graph_.activities.size(); ++a)
      if (auto ok = add_nodes(a); !ok) return ok.error();
    for (std::size_t a = 0; a < graph_.activities.size(); ++a) pass_on(a);
    order_nodes();
    take_places_away();
    assign_channels();
    for (std::size_t n = 0; n < nodes_.size(); ++n) place(n);
    if (auto ok = fill_in(); !ok) return ok.error();
    if (const auto order = order_of(algorithm_); !order) return order.error();
    return std::move(algorithm_);
  }

 private:
  [[nodiscard]] const Program& program() const { return schedule_.programs.front(); }
  [[nodiscard]] Diagnostic of_task(TaskId task, const std::string& problem) const {
    return {location_of(program().tasks[task.index()].written_at),
            fmt::format("task {} {}: {}", task.value, quoted(program().tasks[task.index()].label), problem)};
  }

  Status check_claim() {
    const auto* claim = std::get_if<Collective>(&schedule_.computes);
    if (claim == nullptr || !msccl_collective_named(name_of(claim->kind)))
      return Diagnostic{
          {},
          fmt::format("expected a schedule that computes one all-gather, reduce-scatter, all-reduce, all-to-all, broadcast or reduce, found {}",
                      claim == nullptr ? "another one" : name_of(claim->kind))};
    if (schedule_.programs.size() != 1 || size_of(program().devices) != schedule_.mesh.devices())
      return Diagnostic{{}, "expected one program on all devices, found others"};
    std::vector<AxisView> all;
    for (int a = 0; a < static_cast<int>(schedule_.mesh.axes().size()); ++a)
      if (schedule_.mesh.whole(a).size > 1) all.push_back(schedule_.mesh.whole(a));
    std::vector<AxisView> axes = claim->axes;
    std::erase_if(axes, [](const AxisView& axis) { return axis.size == 1; });
    if (axes != all)
      return Diagnostic{
          {}, fmt::format("expected a collective of all devices in their order, along all axes of {}, found another one", to_text(schedule_.mesh))};
    if ((claim->kind == CollectiveKind::broadcast || claim->kind == CollectiveKind::reduce) && claim->root != 0)
      return Diagnostic{{}, fmt::format("expected the root 0, found {}", claim->root)};
    const std::size_t dim = schedule_.mesh.axes().size();
    if ((claim->kind != CollectiveKind::all_reduce && claim->dim != static_cast<int>(dim)) || claim->input.dims.size() < dim)
      return Diagnostic{{}, "expected a collective of one array's rows, found another one"};
    if (schedule_.mesh.devices() > most_msccl_gpus)
      return Diagnostic{{}, fmt::format("expected at most {} devices, found {}", most_msccl_gpus, schedule_.mesh.devices())};
    algorithm_.name = schedule_.name;
    algorithm_.least = Bytes{}, algorithm_.most = Bytes{std::int64_t{1} << 40};  // NCCL's parser asks for them
    algorithm_.gpus.resize(static_cast<std::size_t>(schedule_.mesh.devices()));
    last_.resize(algorithm_.gpus.size());
    for (const char c : name_of(claim->kind))
      if (c != '-') algorithm_.collective += c;
    if (claim->kind == CollectiveKind::reduce_scatter) algorithm_.collective = "reduce_scatter";
    return success();
  }

  /// Where buffers are: the claim's are i and o, all others lie one behind the other in s.
  Status lay_out() {
    const auto& claim = std::get<Collective>(schedule_.computes);
    for (std::size_t b = 0; b < program().buffers.size(); ++b) {
      const Buffer& buffer = program().buffers[b];
      const std::int64_t elements = size_of(buffer).count() / size_of(buffer.dtype).count();
      if (buffer.dtype != program().buffers.front().dtype)
        return Diagnostic{location_of(buffer.written_at),
                          fmt::format("buffer {}: expected the dtype of all others, found another one", quoted(buffer.name))};
      const bool is_input = claim.input.buffer == BufferId{b}, is_output = claim.output.buffer == BufferId{b};
      if ((buffer.role == Role::input) != is_input || (buffer.role == Role::output) != is_output)
        return Diagnostic{location_of(buffer.written_at),
                          fmt::format("buffer {}: expected one input and one output, those of the collective", quoted(buffer.name))};
      const Region* whole = is_input ? &claim.input : is_output ? &claim.output : nullptr;
      if (whole != nullptr && elements_of(*whole) != elements)
        return Diagnostic{location_of(buffer.written_at), fmt::format("buffer {}: expected a collective of all of it", quoted(buffer.name))};
      starts_.push_back(whole == nullptr ? scratch_ : 0);
      if (whole == nullptr) scratch_ += elements;
      chunk_ = std::gcd(chunk_, elements);
      if (is_input) input_ = elements;
      if (is_output) output_ = elements;
    }
    return success();
  }

  /// Errors: several runs.
  Expected<Run> run_of(const Region& region, DeviceId device, TaskId task) {
    const Box box = evaluate(region, schedule_.mesh.coordinates(device));
    const Buffer& buffer = program().buffers[box.buffer.index()];
    std::size_t d = 0;
    while (d < box.length.size() && box.length[d] == 1)
      ++d;  // the first dimension of which there is more than one element may be cut, those behind it not
    for (std::size_t i = d + 1; i < box.length.size(); ++i)
      if (box.length[i] != buffer.extents[i])
        return of_task(task, fmt::format("expected a region that is one run of {}, found several", quoted(buffer.name)));
    Run run{buffer.role == Role::input    ? MscclBuffer::input
            : buffer.role == Role::output ? MscclBuffer::output
                                          : MscclBuffer::scratch,
            0, elements_of(region)};
    for (std::size_t i = 0; i < box.begin.size(); ++i) run.offset = run.offset * buffer.extents[i] + box.begin[i];
    run.offset += starts_[box.buffer.index()];
    chunk_ = std::gcd(chunk_, std::gcd(run.offset, run.length));
    return run;
  }

  /// The steps that a gate waits for; those behind a launch or a join, which are no steps.
  std::vector<std::size_t> before(std::size_t activity, Gate gate) const {
    std::set<std::size_t> nodes;
    for (const Dependency& dependency : graph_.waits_for(activity, gate)) {
      const auto& ends = ends_[dependency.activity][dependency.received ? 1 : 0];
      nodes.insert(ends.begin(), ends.end());
    }
    return {nodes.begin(), nodes.end()};
  }

  std::size_t add(Node node) {
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  Status add_nodes(std::size_t a) {
    const Activity& activity = graph_.activities[a];
    const Task& task = program().tasks[activity.task.index()];
    if (activity.kind == Activity::Kind::work) return add_work(a, activity, task);
    const auto* shift = std::get_if<Shift>(&task.op);
    if (shift != nullptr && shift->in_switch != InSwitch::none)
      return of_task(activity.task, "expected a transfer that the switch only passes on, found one that it works on");
    const Task& receiving = program().tasks[activity.receiver_task.index()];
    const auto* receive = std::get_if<Recv>(&receiving.op);
    const auto source = run_of(shift != nullptr ? shift->source : std::get<Send>(task.op).source, activity.device, activity.task);
    const auto target = run_of(shift != nullptr ? shift->target : receive->target, activity.receiver, activity.receiver_task);
    for (const auto* run : {&source, &target})
      if (!*run) return run->error();
    const Combine combine = shift != nullptr ? shift->combine : receive->combine;
    if (combine == Combine::maximum) return of_task(activity.task, "expected a sum, found a maximum");
    const bool adds = combine == Combine::add;
    const std::size_t send = add({activity.device.value, activity.task, Node::Part::send, MscclKind::send, *source, *target});
    const std::size_t arrive = add({activity.receiver.value, activity.receiver_task, Node::Part::receive,
                                    adds ? MscclKind::receive_reduce_copy : MscclKind::receive, adds ? *target : *source, *target});
    ends_[a] = {std::vector{send}, std::vector{arrive}};
    transfers_.emplace_back(send, arrive);
    activity_of_.resize(nodes_.size(), a);
    return success();
  }

  Status add_work(std::size_t a, const Activity& activity, const Task& task) {
    const auto* local = std::get_if<Local>(&task.op);
    const bool moves = local != nullptr && (local->kind == LocalKind::copy || local->kind == LocalKind::alias || local->kind == LocalKind::add);
    const bool orders = local != nullptr && (local->kind == LocalKind::launch || traits_of(local->kind).role == LocalRole::order);
    if (!moves && !orders) return of_task(activity.task, "expected a transfer, copy or addition, found another operation");
    Node node{activity.device.value, activity.task};
    if (moves) {
      std::vector<Run> runs;
      for (const auto* regions : {&local->reads, &local->writes})
        for (const Region& region : *regions) {
          const auto run = run_of(region, activity.device, activity.task);
          if (!run) return run.error();
          runs.push_back(*run);
        }
      node.kind = local->kind == LocalKind::add ? MscclKind::reduce : MscclKind::copy;
      node.placed = local->kind == LocalKind::alias;
      node.target = runs.back();
      node.source = runs[0];
      if (local->kind == LocalKind::add && same(runs[0], runs[2]))
        node.source = runs[1];
      else if (local->kind == LocalKind::add && !same(runs[1], runs[2]))
        return of_task(activity.task, "expected a sum that takes the place of a summand, found another place");
    }
    if (moves) end_with(a, std::move(node));
    return success();
  }

  void end_with(std::size_t a, Node node) {
    const std::size_t added = add(std::move(node));
    ends_[a] = {std::vector{added}, std::vector{added}};
    activity_of_.resize(nodes_.size(), a);
  }

  /// A launch or join is no step: what waits for it waits for what it waits for. In the order of tasks, as edges lead to earlier ones.
  void pass_on(std::size_t a) {
    const Activity& activity = graph_.activities[a];
    if (activity.kind != Activity::Kind::work || !ends_[a][0].empty()) return;
    const std::vector<std::size_t> waits = before(a, Gate::start);
    if (waits.size() <= few_waits)
      ends_[a] = {waits, waits};
    else
      end_with(a, {activity.device.value, activity.task});
  }

  /// Nodes in program order; what they wait for by their new numbers.
  void order_nodes() {
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      nodes_[n].before = before(activity_of_[n], nodes_[n].part == Node::Part::receive ? Gate::receive
                                                 : nodes_[n].part == Node::Part::send  ? Gate::send
                                                                                       : Gate::start);
    std::vector<std::size_t> order(nodes_.size()), number(nodes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return in_program_order(nodes_[a], nodes_[b]); });
    for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = i;
    std::vector<Node> sorted;
    for (const std::size_t n : order) {
      sorted.push_back(std::move(nodes_[n]));
      for (std::size_t& other : sorted.back().before) other = number[other];
      std::sort(sorted.back().before.begin(), sorted.back().before.end());
    }
    nodes_ = std::move(sorted);
    for (auto& [send, receive] : transfers_) send = number[send], receive = number[receive];
    std::sort(transfers_.begin(), transfers_.end());
  }

  /// What is placed from the input into scratch is read from the input instead, until it is overwritten.
  bool read_from_input(std::size_t place) {
    const Node& placed = nodes_[place];
    if (placed.source.buffer != MscclBuffer::input || placed.target.buffer != MscclBuffer::scratch) return false;
    std::vector<Run> overwritten;
    std::vector<std::size_t> readers;
    const std::size_t last = last_of_device(place);
    for (std::size_t n = place + 1; n <= last; ++n) {
      const Node& node = nodes_[n];
      if (reads(node, placed.target)) {
        const auto is_over = [&](const Run& run) { return overlap(run, node.source); };
        if (node.kind == MscclKind::reduce || !contains(placed.target, node.source)) return false;
        if (std::none_of(overwritten.begin(), overwritten.end(), is_over))
          readers.push_back(n);
        else if (std::none_of(overwritten.begin(), overwritten.end(), [&](const Run& run) { return contains(run, node.source); }))
          return false;
      }
      if (writes(node, placed.target)) overwritten.push_back(node.target);
    }
    for (const std::size_t n : readers)
      nodes_[n].source = {placed.source.buffer, placed.source.offset + nodes_[n].source.offset - placed.target.offset, nodes_[n].source.length};
    return true;
  }

  /// What is received in scratch, in one piece or several, and then placed in the output is received there.
  bool receive_in_output(std::size_t place) {
    const Node& placed = nodes_[place];
    if (placed.source.buffer != MscclBuffer::scratch || placed.target.buffer != MscclBuffer::output) return false;
    std::vector<std::size_t> pieces;
    std::int64_t length = 0;
    for (std::size_t n = last_of_device(place) + 1; n-- > 0 && nodes_[n].device == placed.device;) {
      if (n == place) continue;
      const Node& node = nodes_[n];
      if (reads(node, placed.target) || writes(node, placed.target)) return false;
      const bool is_piece = n < place && node.part == Node::Part::receive && contains(placed.source, node.target);
      if (length == placed.source.length || !(reads(node, placed.source) || writes(node, placed.source))) continue;
      if (!is_piece || std::any_of(pieces.begin(), pieces.end(), [&](std::size_t other) { return overlap(nodes_[other].target, node.target); }))
        return false;
      pieces.push_back(n);
      length += node.target.length;
    }
    if (length != placed.source.length) return false;
    for (const std::size_t n : pieces)
      nodes_[n].target.buffer = MscclBuffer::output, nodes_[n].target.offset += placed.target.offset - placed.source.offset;
    for (const auto& [send, receive] : transfers_)
      if (std::find(pieces.begin(), pieces.end(), receive) != pieces.end()) nodes_[send].target = nodes_[receive].target;
    return true;
  }

  [[nodiscard]] std::size_t last_of_device(std::size_t n) const {
    while (n + 1 < nodes_.size() && nodes_[n + 1].device == nodes_[n].device) ++n;
    return n;
  }

  /// Places between scratch and the buffers of the collective cost nothing in a schedule of ours, and are copies in MSCCL's: none is written where
  /// what is around it can do without.
  void take_places_away() {
    std::vector<bool> gone(nodes_.size());
    for (const auto done_without : {&Translator::receive_in_output, &Translator::read_from_input})
      for (std::size_t n = 0; n < nodes_.size(); ++n) {
        if (!nodes_[n].placed || gone[n] || !(this->*done_without)(n)) continue;
        gone[n] = true;
        nodes_[n].kind = MscclKind::nop;
        const std::size_t last = last_of_device(n);
        for (std::size_t later = n + 1; later <= last; ++later) {
          std::vector<std::size_t>& before = nodes_[later].before;
          if (std::erase(before, n) == 0) continue;
          before.insert(before.end(), nodes_[n].before.begin(), nodes_[n].before.end());
          std::sort(before.begin(), before.end());
          before.erase(std::unique(before.begin(), before.end()), before.end());
        }
      }
    std::vector<std::size_t> number(nodes_.size());
    std::vector<Node> left;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      number[n] = left.size();
      if (!gone[n]) left.push_back(std::move(nodes_[n]));
    }
    nodes_ = std::move(left);
    for (Node& node : nodes_)
      for (std::size_t& other : node.before) other = number[other];
    for (auto& [send, receive] : transfers_) send = number[send], receive = number[receive];
  }

  /// Whether b waits for a, as far as a short look back tells.
  bool precedes(std::size_t a, std::size_t b) const {
    std::vector<std::size_t> pending{b};
    std::set<std::size_t> seen;
    for (int looked_at = 0; !pending.empty() && looked_at < most_looked_at; ++looked_at) {
      const std::size_t n = pending.back();
      pending.pop_back();
      for (const std::size_t other : nodes_[n].before) {
        if (other == a) return true;
        if (other > a && seen.insert(other).second) pending.push_back(other);
      }
    }
    return false;
  }

  /// A channel for every transfer, where it follows the last one at both ends.
  void assign_channels() {
    channel_.assign(nodes_.size(), 0);
    std::map<std::pair<int, int>, std::vector<std::pair<std::size_t, std::size_t>>> last;  // of two devices: by channel, the last transfer
    for (const auto& [send, receive] : transfers_) {
      auto& channels = last[{nodes_[send].device, nodes_[receive].device}];
      std::size_t c = 0;
      while (c < channels.size() && !(precedes(channels[c].first, send) && precedes(channels[c].second, receive))) ++c;
      if (c == channels.size()) channels.emplace_back();
      channels[c] = {send, receive};
      channel_[send] = channel_[receive] = static_cast<int>(c);
      peer_[send] = nodes_[receive].device;
      peer_[receive] = nodes_[send].device;
      algorithm_.channels = std::max(algorithm_.channels, static_cast<int>(c) + 1);
    }
  }

  /// Puts a node at the end of a thread block: that of its connection; a local one where it follows the last step, else in a new one.
  void place(std::size_t n) {
    Node& node = nodes_[n];
    auto& blocks = algorithm_.gpus[static_cast<std::size_t>(node.device)].blocks;
    auto& last = last_[static_cast<std::size_t>(node.device)];
    if (node.part == Node::Part::local) {
      for (const std::size_t other : node.before)
        if (const auto b = static_cast<std::size_t>(nodes_[other].block); node.block < 0 && last[b] == other) node.block = nodes_[other].block;
    } else {
      const auto [entry, is_new] =
          connections_.try_emplace({node.device, node.part == Node::Part::send, peer_.at(n), channel_[n]}, static_cast<int>(blocks.size()));
      if (!is_new) node.block = entry->second;
    }
    if (node.block < 0) {
      node.block = static_cast<int>(blocks.size());
      blocks.push_back({node.part == Node::Part::send ? peer_.at(n) : -1, node.part == Node::Part::receive ? peer_.at(n) : -1, channel_[n], {}});
      last.push_back(n);
    }
    MscclBlock& block = blocks[static_cast<std::size_t>(node.block)];
    std::vector<std::size_t> others;  // in other thread blocks: of each the last
    std::map<int, std::size_t> latest;
    for (const std::size_t other : node.before)
      if (nodes_[other].block != node.block) latest[nodes_[other].block] = other;
    for (const auto& [other_block, other] : latest) others.push_back(other);
    for (std::size_t i = 0; i + 1 < others.size(); ++i) block.steps.push_back(step_after(others[i]));
    MscclStep step;
    if (!others.empty()) step = step_after(others.back());
    step.kind = node.kind;
    node.step = static_cast<int>(block.steps.size());
    block.steps.push_back(step);
    last[static_cast<std::size_t>(node.block)] = n;
  }

  MscclStep step_after(std::size_t other) {
    const Node& node = nodes_[other];
    algorithm_.gpus[static_cast<std::size_t>(node.device)]
        .blocks[static_cast<std::size_t>(node.block)]
        .steps[static_cast<std::size_t>(node.step)]
        .has_dependents = true;
    MscclStep step;
    step.after_block = node.block;
    step.after_step = node.step;
    return step;
  }

  /// Elements as chunks.
  Status fill_in() {
    if (input_ / chunk_ > most_msccl_chunks || output_ / chunk_ > most_msccl_chunks || scratch_ / chunk_ > most_msccl_chunks)
      return Diagnostic{
          {},
          fmt::format("expected buffers of at most {} chunks, found chunks of {} elements, which is what all offsets and sizes have in common",
                      most_msccl_chunks, chunk_)};
    algorithm_.chunks_per_loop = std::max({input_ / chunk_, output_ / chunk_, std::int64_t{1}});
    for (MscclGpu& gpu : algorithm_.gpus)
      gpu.input_chunks = input_ / chunk_, gpu.output_chunks = output_ / chunk_, gpu.scratch_chunks = scratch_ / chunk_;
    std::int64_t moved = 0;
    for (const Node& node : nodes_) {
      MscclStep& step = algorithm_.gpus[static_cast<std::size_t>(node.device)]
                            .blocks[static_cast<std::size_t>(node.block)]
                            .steps[static_cast<std::size_t>(node.step)];
      step.count = node.target.length / chunk_;
      moved += step.count;
      if (node.kind == MscclKind::nop) continue;
      step.source = {node.source.buffer, node.source.offset / chunk_};
      step.target = {node.target.buffer, node.target.offset / chunk_};
    }
    if (moved > most_moved_chunks)
      return Diagnostic{
          {},
          fmt::format(
              "expected steps that move at most {} chunks in all, found {} of {} elements, which is what all offsets and sizes have in common",
              most_moved_chunks, moved, chunk_)};
    return success();
  }

  const Schedule& schedule_;
  MscclAlgorithm algorithm_;
  std::vector<std::int64_t> starts_;                               // by buffer
  std::int64_t input_ = 0, output_ = 0, scratch_ = 0, chunk_ = 0;  // elements
  ActivityGraph graph_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> activity_of_;                        // by node
  std::vector<std::array<std::vector<std::size_t>, 2>> ends_;   // by activity: the nodes that end it, at the sender and at the receiver
  std::vector<std::pair<std::size_t, std::size_t>> transfers_;  // the nodes that send and receive
  std::vector<int> channel_;                                    // by node
  std::map<std::size_t, int> peer_;                             // by node of a transfer: the other device
  std::map<std::tuple<int, bool, int, int>, int> connections_;  // device, whether it sends, other device, channel: the thread block
  std::vector<std::vector<std::size_t>> last_;                  // by device and thread block: its last node
};

}  // namespace

Expected<MscclAlgorithm> to_msccl(const Schedule& lowered) { return Translator{lowered}.translate(); }

}  // namespace podsim
