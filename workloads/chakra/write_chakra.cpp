#include "workloads/chakra/write_chakra.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <set>

#include "sim/base/invariant.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/chakra/attributes.hpp"
#include "workloads/chakra/groups.hpp"

namespace podsim {

namespace {

std::int64_t chakra_number(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather: return static_cast<std::int64_t>(ChakraCollective::all_gather);
    case CollectiveKind::reduce_scatter: return static_cast<std::int64_t>(ChakraCollective::reduce_scatter);
    case CollectiveKind::all_reduce: return static_cast<std::int64_t>(ChakraCollective::all_reduce);
    case CollectiveKind::all_to_all: return static_cast<std::int64_t>(ChakraCollective::all_to_all);
    case CollectiveKind::broadcast: return static_cast<std::int64_t>(ChakraCollective::broadcast);
    case CollectiveKind::reduce: return static_cast<std::int64_t>(ChakraCollective::reduce);
    case CollectiveKind::permute: break;
  }
  PODSIM_ASSERT(!"a permute is written as sends and receives");
  return 0;
}

/// Whether a task leaves no trace but that of its dependencies.
bool is_transparent(const Task& task) {
  const auto* local = std::get_if<Local>(&task.op);
  return local != nullptr && local->unit == Unit::dma && traits_of(local->kind).cost == LocalCost::free;
}

void keep_once(std::vector<std::uint64_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Expected<ChakraWriter> ChakraWriter::make(const ChakraRun& run, ChakraCollectives collectives) {
  PODSIM_ASSERT(!run.model.folded() && run.model.calls == nullptr);
  ChakraWriter writer{run, collectives};
  const Schedule& lowered = *run.model.schedule;
  for (std::size_t p = 0; p < lowered.programs.size(); ++p)
    for (const Task& task : lowered.programs[p].tasks) {
      const auto* shift = std::get_if<Shift>(&task.op);
      const bool inside = task.origin && static_cast<std::size_t>(task.origin->collective) < writer.programs_[p].whole.size() &&
                          writer.programs_[p].whole[static_cast<std::size_t>(task.origin->collective)] != nullptr;
      if (shift != nullptr && shift->in_switch != InSwitch::none && !inside)
        return Diagnostic{{}, "a collective that a switch adds up or copies has no sends that could be written one by one"};
    }
  return writer;
}

ChakraWriter::ChakraWriter(const ChakraRun& run, ChakraCollectives collectives) : run_{run} {
  const Schedule& lowered = *run.model.schedule;
  const Mesh& mesh = lowered.mesh;
  std::int32_t tags = 0;
  for (std::size_t p = 0; p < lowered.programs.size(); ++p) {
    OfProgram of{{}, {}, {}, tags};
    tags += static_cast<std::int32_t>(lowered.programs[p].tasks.size());
    const std::vector<Task>& given = run.original.programs[p].tasks;
    const bool was_lowered = std::any_of(given.begin(), given.end(), [](const Task& task) { return task.origin.has_value(); });
    for (const Task& task : given) {
      const auto* collective = std::get_if<Collective>(&task.op);
      if (collective == nullptr) continue;
      of.labels.push_back(task.label);
      of.whole.push_back(was_lowered || collectives == ChakraCollectives::lowered || collective->kind == CollectiveKind::permute ? nullptr
                                                                                                                                 : collective);
    }
    of.launch.assign(of.whole.size(), 0);
    for (std::size_t t = 0; t < lowered.programs[p].tasks.size(); ++t) {
      const Task& task = lowered.programs[p].tasks[t];
      if (is_launch(task.op) && task.origin && static_cast<std::size_t>(task.origin->collective) < of.launch.size())
        of.launch[static_cast<std::size_t>(task.origin->collective)] = t;
    }
    programs_.push_back(std::move(of));
    std::set<std::vector<AxisView>> seen;
    for (const Collective* collective : programs_.back().whole) {
      if (collective == nullptr || !seen.insert(collective->axes).second) continue;
      for (int d = 0; d < mesh.devices(); ++d) {
        if (!contains(lowered.programs[p].devices, DeviceId{d})) continue;
        std::vector<int> group = devices_along(mesh, collective->axes, DeviceId{d});
        if (group_names_.contains(group)) continue;
        const bool all = static_cast<int>(group.size()) == mesh.devices() && std::is_sorted(group.begin(), group.end());
        const std::string name = all ? "0" : fmt::format("{}", groups_.size() + 1);
        if (!all) groups_[name] = group;
        group_names_[std::move(group)] = name;
      }
    }
  }
}

/// The nodes of one rank.
class ChakraWriter::RankTrace {
 public:
  RankTrace(const ChakraWriter& writer, int rank)
      : writer_{writer}, run_{writer.run_}, model_{run_.model}, mesh_{model_.schedule->mesh}, rank_{rank}, at_{mesh_.coordinates(DeviceId{rank})} {
    const Deployment::Place place = model_.deployment.places[static_cast<std::size_t>(rank)];
    program_ = place.program, local_ = place.local;
  }

  std::vector<ChakraNode> nodes() {
    if (program_ == no_device) return {};
    find_collective_ends();
    const auto& tasks = model_.schedule->programs[program_].tasks;
    ends_.resize(tasks.size());
    for (std::size_t t = 0; t < tasks.size(); ++t) write(t, tasks[t]);
    return std::move(nodes_);
  }

 private:
  struct Interval {
    Picoseconds start, end;
  };
  /// The nodes that stand for a task, by half. Work has the same in both.
  struct Ends {
    std::vector<std::uint64_t> send, receive;
  };

  const Participants& who(std::size_t t) const { return model_.deployment.who(program_, t); }
  const Program& program() const { return model_.schedule->programs[program_]; }
  const OfProgram& of() const { return writer_.programs_[program_]; }

  /// The activity of work or of what is sent.
  Interval own(std::size_t t) const {
    const std::uint32_t a = model_.deployment.activity(program_, t, local_);
    return {run_.timeline.start(a), run_.timeline.sent(a)};
  }
  /// The sender's place and task of what is received.
  struct Sender {
    Deployment::Place place;
    std::size_t task = 0;
    int rank = 0;
  };
  Sender sender(std::size_t t) const {
    const std::uint32_t from = who(t).from[local_];
    return {model_.deployment.places[from], who(t).from_task.empty() ? t : who(t).from_task[local_], static_cast<int>(from)};
  }
  Interval incoming(std::size_t t) const {
    const Sender from = sender(t);
    const ActivityTimes times = run_.timeline.at(model_.deployment.activity(from.place.program, from.task, from.place.local));
    return {times.start, times.received};
  }

  const Collective* whole_of(const Task& task) const {
    if (!task.origin) return nullptr;
    const auto number = static_cast<std::size_t>(task.origin->collective);
    return number < of().whole.size() ? of().whole[number] : nullptr;
  }

  void find_collective_ends() {
    collective_end_.assign(of().whole.size(), Picoseconds{});
    const auto& tasks = program().tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      if (whole_of(tasks[t]) == nullptr) continue;
      Picoseconds& end = collective_end_[static_cast<std::size_t>(tasks[t].origin->collective)];
      if (who(t).does(local_)) end = std::max(end, own(t).end);
      if (who(t).receives(local_)) end = std::max(end, incoming(t).end);
    }
  }

  /// What the dependencies of a half of a task wait for.
  std::vector<std::uint64_t> dependencies(const Task& task, Half half) const {
    std::vector<std::uint64_t> ids;
    for (const Edge& edge : task.after) {
      if (edge.gates != Half::both && half != Half::both && edge.gates != half) continue;
      const Ends& ends = ends_[edge.task.index()];
      if (edge.done != Half::receive) ids.insert(ids.end(), ends.send.begin(), ends.send.end());
      if (edge.done != Half::send) ids.insert(ids.end(), ends.receive.begin(), ends.receive.end());
    }
    keep_once(ids);
    return ids;
  }

  ChakraNode& add(std::size_t t, const Task& task, ChakraType type, bool receives, Interval when, Half half) {
    ChakraNode node;
    node.id = 2 * t + (receives ? 1 : 0);
    node.name = task.label;
    node.type = type;
    node.data_deps = dependencies(task, half);
    std::erase(node.data_deps, node.id);
    constexpr std::int64_t micro = 1'000'000;
    node.start_micros = static_cast<std::uint64_t>(when.start.count() / micro);
    const Picoseconds duration = when.end - when.start;
    node.duration_micros = static_cast<std::uint64_t>(std::max<std::int64_t>((duration.count() + micro - 1) / micro, 1));
    node.extension.duration = duration;
    Ends& ends = ends_[t];
    (receives ? ends.receive : ends.send).push_back(node.id);
    nodes_.push_back(std::move(node));
    return nodes_.back();
  }

  void set_origin(const Task& task, ChakraExtension& extension) const {
    if (!task.origin) return;
    extension.origin_kind = name_of(task.origin->kind);
    extension.origin_axis = axes_text(mesh_, {task.origin->axis});
    extension.origin = task.origin->collective;
    extension.origin_input_bytes = task.origin->input_bytes.count();
    extension.origin_own_block = task.origin->own_block.count();
  }

  void write(std::size_t t, const Task& task) {
    if (const Collective* collective = whole_of(task)) {
      const std::size_t launch = of().launch[static_cast<std::size_t>(task.origin->collective)];
      if (t != launch)
        ends_[t].send = ends_[launch].send;
      else if (who(t).does(local_))
        write_collective(t, task, *collective);
      return;
    }
    if (is_transparent(task)) {
      if (who(t).does(local_)) ends_[t].send = dependencies(task, Half::both);
      return;
    }
    std::visit(Overloaded{
                   [&](const Matmul& m) { write_work(t, task, 2 * volume(m), matmul_work(*model_.machine, program(), m), true); },
                   [&](const Local& l) {
                     const LocalFlops flops = flops_of(l);
                     write_work(t, task, flops.matrix.count() + flops.vector.count(), local_work(*model_.machine, program(), task),
                                l.unit == Unit::core);
                   },
                   [&](const Shift& s) {
                     const std::int64_t by = evaluate(s.by, at_);
                     if (who(t).does(local_)) set_shift(s, by, write_send(t, task, s.source, s.route_order));
                     if (!who(t).receives(local_)) return;
                     ChakraNode& half = write_recv(t, task, s.target, s.combine);
                     set_shift(s, evaluate(s.by, mesh_.coordinates(DeviceId{sender(t).rank})), half);
                   },
                   [&](const Send& s) {
                     if (who(t).does(local_)) write_send(t, task, s.source, s.route_order);
                   },
                   [&](const Recv& r) {
                     if (who(t).receives(local_)) write_recv(t, task, r.target, r.combine);
                   },
                   [](const Collective&) { PODSIM_ASSERT(!"lowered"); },
                   [](const Call&) { PODSIM_ASSERT(!"written out"); },
               },
               task.op);
  }

  static double volume(const Matmul& matmul) {
    const MatmulExtents e = extents_of(matmul);
    return static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
  }

  void write_work(std::size_t t, const Task& task, double flops, const WorkTime& work, bool on_core) {
    if (!who(t).does(local_)) return;
    const auto* local = std::get_if<Local>(&task.op);
    const bool to_host = local != nullptr && local->kind == LocalKind::to_host, from_host = local != nullptr && local->kind == LocalKind::from_host;
    const bool memory = (to_host || from_host) && !on_core;
    ChakraNode& node = add(t, task, !memory ? ChakraType::comp : to_host ? ChakraType::mem_store : ChakraType::mem_load, false, own(t), Half::both);
    constexpr double most = 0x1p62;
    node.num_ops = static_cast<std::int64_t>(std::min(flops, most));
    node.tensor_size =
        memory ? static_cast<std::uint64_t>(bytes_of(program(), local->reads.front()).count()) : static_cast<std::uint64_t>(work.bytes);
    node.extension.work_s = {work.total.count(), work.launch.count(), work.rest.count()};
    node.extension.dma = !on_core && !memory;
    node.extension.launch = is_launch(task.op);
    set_origin(task, node.extension);
    if (!on_core) return;
    if (last_on_core_ && !std::binary_search(node.data_deps.begin(), node.data_deps.end(), *last_on_core_)) node.ctrl_deps = {*last_on_core_};
    last_on_core_ = node.id;
  }

  ChakraNode& write_send(std::size_t t, const Task& task, const Region& source, const std::vector<int>& route) {
    ChakraNode& node = add(t, task, ChakraType::comm_send, false, own(t), Half::send);
    node.comm_size = bytes_of(program(), source).count();
    node.comm_src = rank_;
    node.comm_dst = static_cast<std::int32_t>(who(t).to[local_]);
    node.comm_tag = of().first_tag + static_cast<std::int32_t>(t);
    node.extension.route_order.assign(route.begin(), route.end());
    set_origin(task, node.extension);
    return node;
  }

  ChakraNode& write_recv(std::size_t t, const Task& task, const Region& target, Combine combine) {
    const Sender from = sender(t);
    ChakraNode& node = add(t, task, ChakraType::comm_recv, true, incoming(t), Half::receive);
    node.comm_size = bytes_of(program(), target).count();
    node.comm_src = from.rank;
    node.comm_dst = rank_;
    node.comm_tag = writer_.programs_[from.place.program].first_tag + static_cast<std::int32_t>(from.task);
    node.extension.waits = true;
    node.extension.adds = combine != Combine::replace;  // a trace has times, no numbers: a maximum takes as long as a sum
    set_origin(task, node.extension);
    return node;
  }

  void set_shift(const Shift& shift, std::int64_t by, ChakraNode& half) const {
    if (shift.by_dimension || std::abs(by) >= shift.axis.size) return;  // sent and received by ranks
    half.extension.shift_axis = axes_text(mesh_, {shift.axis});
    half.extension.shift_by = by;
  }

  void write_collective(std::size_t t, const Task& task, const Collective& collective) {
    ChakraNode& node =
        add(t, task, ChakraType::comm_coll, false, {own(t).start, collective_end_[static_cast<std::size_t>(task.origin->collective)]}, Half::both);
    const Program& original = run_.original.programs[program_];
    node.name = of().labels[static_cast<std::size_t>(task.origin->collective)];
    node.comm_type = chakra_number(collective.kind);
    node.comm_size = bytes_of(original, collective.input).count();
    node.pg_name = writer_.group_names_.at(devices_along(mesh_, collective.axes, DeviceId{rank_}));
    ChakraExtension& extension = node.extension;
    extension.axes = axes_text(mesh_, collective.axes);
    extension.dtype = name_of(original.buffers[collective.input.buffer.index()].dtype);
    extension.input_extents = lengths_of(collective.input);
    extension.output_extents = lengths_of(collective.output);
    extension.dim = collective.dim;
    extension.split_dim = collective.split_dim;
    extension.root = collective.root;
    extension.in_place = collective.input.buffer == collective.output.buffer;
  }

  const ChakraWriter& writer_;
  const ChakraRun& run_;
  const Model& model_;
  const Mesh& mesh_;
  int rank_;
  Coordinates at_;
  std::uint32_t program_ = no_device, local_ = 0;
  std::vector<ChakraNode> nodes_;
  std::vector<Ends> ends_;  // by task
  std::vector<Picoseconds> collective_end_;
  std::optional<std::uint64_t> last_on_core_;
};

ChakraTrace ChakraWriter::trace(int rank) const {
  ChakraTrace trace;
  trace.version = "1.0.0";
  trace.collective_algorithm = run_.collective_algorithm;
  trace.collective_chunks = run_.collective_chunks.value_or(0);
  trace.mesh = to_text(run_.model.schedule->mesh);
  trace.nodes = RankTrace{*this, rank}.nodes();
  return trace;
}

std::string chakra_bytes(const ChakraTrace& trace) {
  std::string bytes;
  const auto append = [&](const google::protobuf::Message& message) {
    google::protobuf::io::StringOutputStream stream{&bytes};
    google::protobuf::io::CodedOutputStream coded{&stream};
    coded.WriteVarint64(message.ByteSizeLong());
    message.SerializeToCodedStream(&coded);
  };
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(trace.version);
  const auto add = [&](const char* name) {
    ChakraProtoMsg::AttributeProto& attribute = *metadata.add_attr();
    attribute.set_name(name);
    return &attribute;
  };
  if (!trace.collective_algorithm.empty()) add("collective_algorithm")->set_string_val(trace.collective_algorithm);
  if (!trace.mesh.empty()) add("mesh")->set_string_val(trace.mesh);
  if (trace.collective_chunks != 0) add("collective_chunks")->set_int64_val(trace.collective_chunks);
  append(metadata);
  for (const ChakraNode& node : trace.nodes) {
    ChakraProtoMsg::Node message;
    message.set_id(node.id);
    message.set_name(node.name);
    message.set_type(static_cast<ChakraProtoMsg::NodeType>(node.type));
    for (const std::uint64_t id : node.ctrl_deps) message.add_ctrl_deps(id);
    for (const std::uint64_t id : node.data_deps) message.add_data_deps(id);
    message.set_start_time_micros(node.start_micros);
    message.set_duration_micros(node.duration_micros);
    write_attributes(node, message);
    append(message);
  }
  return bytes;
}

}  // namespace podsim
