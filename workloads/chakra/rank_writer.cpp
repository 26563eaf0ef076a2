#include "workloads/chakra/rank_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "sim/schedule/program_builder.hpp"
#include "workloads/chakra/groups.hpp"
#include "workloads/chakra/read_chakra.hpp"

namespace podsim {

namespace {

std::string listed(const std::vector<int>& group) {
  std::string text;
  constexpr std::size_t most = 16;
  for (std::size_t i = 0; i < std::min(group.size(), most); ++i) text += fmt::format("{}{}", i == 0 ? "" : ",", group[i]);
  return text + (group.size() > most ? ",.." : "");
}

}  // namespace

GroupTable::GroupTable(const Mesh& mesh, const ChakraGroups& groups) : mesh_{mesh}, groups_{groups} {
  every_.resize(static_cast<std::size_t>(mesh.devices()));
  std::iota(every_.begin(), every_.end(), 0);
  for (const auto& [name, ranks] : groups) given_.insert(name);
}

Status GroupTable::add(const ChakraGroups& groups) {
  for (const auto& [name, ranks] : groups) {
    if (given_.contains(name)) continue;
    for (const int rank : ranks)
      if (rank >= mesh_.devices())
        return Diagnostic{{}, fmt::format("process group {}: expected ranks from 0 to {}, found {}", quoted(name), mesh_.devices() - 1, rank)};
    const std::vector<int>& all = ranks.empty() ? every_ : ranks;
    if (const auto [known, is_new] = groups_.emplace(name, all); !is_new && known->second != all)
      return Diagnostic{
          {},
          fmt::format("process group {}: expected the ranks {} of the traces before, found {}", quoted(name), listed(known->second), listed(all))};
  }
  return success();
}

Expected<std::vector<AxisView>> GroupTable::axes(const ChakraNode& node, int rank) {
  const std::vector<int>* group = &every_;
  const bool all = node.pg_name.empty() || node.pg_name == "0";
  if (!all) {
    const auto found = groups_.find(node.pg_name);
    if (found == groups_.end()) return Diagnostic{{}, fmt::format("expected a process group that is given, found {}", quoted(node.pg_name))};
    group = &found->second;
    if (!members_.contains(node.pg_name)) members_.emplace(node.pg_name, std::set<int>(group->begin(), group->end()));
    if (!members_.at(node.pg_name).contains(rank))
      return Diagnostic{{}, fmt::format("expected a process group with rank {}, found {} without it", rank, quoted(node.pg_name))};
  }
  const std::string key = node.pg_name + "|" + node.extension.axes;
  if (const auto known = axes_.find(key); known != axes_.end() && (!all || node.involved_dim.empty())) return known->second;
  if (all && std::find(node.involved_dim.begin(), node.involved_dim.end(), false) != node.involved_dim.end()) return of_dimensions(node.involved_dim);
  std::optional<std::vector<AxisView>> axes;
  if (!node.extension.axes.empty())
    if (auto named = axes_from_text(mesh_, node.extension.axes); named && podsim::devices_along(mesh_, *named, DeviceId{rank}) == *group)
      axes = named;
  if (!axes) axes = axes_of_group(mesh_, *group);
  if (!axes)
    return Diagnostic{{},
                      fmt::format("expected a process group along axes of the mesh {} or strided views of them, found {} with ranks {}",
                                  to_text(mesh_), quoted(node.pg_name), listed(*group))};
  axes_[key] = *axes;
  return *axes;
}

/// Network dimensions count from the one whose neighbours are nearest in rank: the last axis.
std::vector<AxisView> GroupTable::of_dimensions(const std::vector<bool>& involved) const {
  std::vector<AxisView> axes;
  const int count = static_cast<int>(mesh_.axes().size());
  for (int a = 0; a < count; ++a) {
    const auto dimension = static_cast<std::size_t>(count - 1 - a);
    if (dimension < involved.size() && involved[dimension] && mesh_.whole(a).size > 1) axes.push_back(mesh_.whole(a));
  }
  return axes;
}

namespace {

constexpr double most_total = 0x1p60;
constexpr DType wire = DType::bf16;  // of what a trace does not tell: its elements have two bytes

std::int64_t wire_elements(std::int64_t bytes) { return (bytes + 1) / 2; }

std::int64_t product_of(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents)
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product) || product > std::int64_t{1} << 52) return -1;
  return product;
}

std::optional<CollectiveKind> kind_of(ChakraCollective type) {
  switch (type) {
    case ChakraCollective::all_reduce:
    case ChakraCollective::barrier: return CollectiveKind::all_reduce;
    case ChakraCollective::reduce: return CollectiveKind::reduce;
    case ChakraCollective::all_gather: return CollectiveKind::all_gather;
    case ChakraCollective::broadcast: return CollectiveKind::broadcast;
    case ChakraCollective::all_to_all: return CollectiveKind::all_to_all;
    case ChakraCollective::reduce_scatter:
    case ChakraCollective::reduce_scatter_block: return CollectiveKind::reduce_scatter;
    case ChakraCollective::gather:
    case ChakraCollective::scatter: break;
  }
  return std::nullopt;
}

class RankWriter {
 public:
  RankWriter(const Mesh& mesh, GroupTable& groups, int rank, ChakraCost cost, bool shifts)
      : mesh_{mesh}, groups_{groups}, rank_{rank}, cost_{cost}, shifts_{shifts}, at_{mesh.coordinates(DeviceId{rank})} {}

  Expected<RankProgram> write(const ChakraTrace& trace, MessageTable& messages) {
    const auto order = chakra_order(trace);
    if (!order) return order.error();
    result_.file = trace.file;
    file_ = std::make_shared<const std::string>(trace.file);
    result_.program.devices = {{{rank_, rank_ + 1}}};
    result_.program.buffers.push_back({"sent", {1}, wire, Role::scratch, {}, {}});
    for (std::size_t i = 0; i < order->size(); ++i) {
      const ChakraNode& node = trace.nodes[(*order)[i]];
      const ChakraNode* next = i + 1 < order->size() ? &trace.nodes[(*order)[i + 1]] : nullptr;
      if (is_half(node))
        if (auto ok = announce(node, messages); !ok) return at_record(ok.error(), node);
      if (shifts_ && next != nullptr && is_shift(node, *next)) {
        if (auto ok = announce(*next, messages); !ok) return at_record(ok.error(), *next);
        if (auto ok = write_shift(node, *next); !ok) return at_record(ok.error(), node);
        ++i;
        continue;
      }
      if (auto ok = write(node); !ok) return at_record(ok.error(), node);
      if (total_ > most_total) return at_record({{}, "expected messages of at most 2^60 bytes together, found more"}, node);
    }
    return std::move(result_);
  }

 private:
  static bool is_half(const ChakraNode& node) { return node.type == ChakraType::comm_send || node.type == ChakraType::comm_recv; }
  Diagnostic at_record(const Diagnostic& problem, const ChakraNode& node) const { return chakra_error(result_.file, node.record, problem.message); }

  // ---- Tasks --------------------------------------------------------------------------------------------------------------------------

  /// What the dependencies of a node wait for.
  Edges edges_of(const ChakraNode& node, Half gates = Half::both) {
    Edges edges;
    for (const auto* dependencies : {&node.ctrl_deps, &node.data_deps})
      for (const std::uint64_t id : *dependencies)
        for (Edge edge : ends_.at(id)) {
          edge.gates = gates;
          if (std::find(edges.begin(), edges.end(), edge) == edges.end()) edges.push_back(edge);
        }
    return edges;
  }

  TaskId add(const ChakraNode& node, Op op, Edges after) {
    Task task{{}, std::move(op), std::move(after), {}, origin_of(node.extension), {file_, 0, 0}};
    result_.program.tasks.push_back(std::move(task));
    result_.labels.push_back(node.name.empty() ? fmt::format("node {}", node.id) : node.name);
    result_.records.push_back(node.record);
    return TaskId{static_cast<int>(result_.program.tasks.size()) - 1};
  }
  void finish(const ChakraNode& node, TaskId task, Half done = Half::both) { ends_[node.id] = {Edge{task, done}}; }

  std::optional<Origin> origin_of(const ChakraExtension& extension) const {
    const auto kind = collective_kind_named(extension.origin_kind);
    if (!kind) return std::nullopt;
    const auto axis = axes_from_text(mesh_, extension.origin_axis);
    if (!axis || axis->size() != 1 || extension.origin < 0 || extension.origin > 1 << 30 || extension.origin_input_bytes < 0 ||
        extension.origin_own_block < 0)
      return std::nullopt;
    return Origin{static_cast<int>(extension.origin), *kind, axis->front(), Bytes{extension.origin_input_bytes}, Bytes{extension.origin_own_block}};
  }

  Region scratch(std::string name, std::vector<std::int64_t> extents, DType dtype, bool on_host = false) {
    Buffer buffer{std::move(name), extents, dtype, Role::scratch, {}, {}};
    total_ += static_cast<double>(product_of(extents)) * static_cast<double>(size_of(dtype).count());
    buffer.on_host = on_host;
    result_.program.buffers.push_back(std::move(buffer));
    return whole_buffer(BufferId{static_cast<int>(result_.program.buffers.size()) - 1}, extents);
  }
  /// What is sent is read from one place: it is never written.
  Region sent(std::int64_t bytes) {
    std::int64_t& extent = result_.program.buffers.front().extents.front();
    const std::int64_t elements = wire_elements(bytes);
    extent = std::max(extent, elements);
    return {BufferId{0}, {all(elements)}};
  }
  Region received(std::int64_t bytes) { return scratch("received", {wire_elements(bytes)}, wire); }

  Status write(const ChakraNode& node) {
    switch (node.type) {
      case ChakraType::invalid: break;  // the reader refuses it
      case ChakraType::metadata: finish(node, add(node, Local{LocalKind::join, {}, {}, 1, Unit::dma}, edges_of(node))); break;
      case ChakraType::comp: write_comp(node); break;
      case ChakraType::mem_load:
      case ChakraType::mem_store: write_memory(node); break;
      case ChakraType::comm_send: return write_send(node);
      case ChakraType::comm_recv: return write_recv(node);
      case ChakraType::comm_coll: return write_collective(node);
    }
    return success();
  }

  OpaqueCost cost_of(const ChakraNode& node) const {
    OpaqueCost cost;
    if (cost_ == ChakraCost::recorded) {
      const std::vector<double>& work = node.extension.work_s;
      if (!work.empty()) {
        cost.time = Seconds{work[0]}, cost.launch = Seconds{work[1]}, cost.rest = Seconds{work[2]};
        cost.bytes = Bytes{static_cast<std::int64_t>(node.tensor_size)};
        return cost;
      }
      if (node.extension.duration || node.duration_micros > 0) {
        cost.time = node.extension.duration ? to_seconds(*node.extension.duration) : Seconds{static_cast<double>(node.duration_micros) * 1e-6};
        cost.bytes = Bytes{};
        return cost;
      }
    }
    cost.matrix = Flops{static_cast<double>(node.num_ops)};
    cost.bytes = Bytes{static_cast<std::int64_t>(node.tensor_size)};
    if (node.num_ops == 0 && node.tensor_size == 0) cost.time = Seconds{};
    return cost;
  }

  void write_comp(const ChakraNode& node) {
    Edges after = edges_of(node);
    if (node.extension.launch && origin_of(node.extension)) {
      finish(node, add(node, Local{LocalKind::launch, {}, {}, 1, Unit::dma}, std::move(after)));
      return;
    }
    Local local{LocalKind::opaque, {}, {}};
    local.unit = node.is_cpu_op || node.extension.dma ? Unit::dma : Unit::core;
    local.opaque = cost_of(node);
    if (node.is_cpu_op && last_of_host_) after = join(std::move(after), {Edge{*last_of_host_}});
    const TaskId task = add(node, std::move(local), std::move(after));
    if (node.is_cpu_op) last_of_host_ = task;
    finish(node, task);
  }

  void write_memory(const ChakraNode& node) {
    const bool loads = node.type == ChakraType::mem_load;
    const bool recorded = cost_ == ChakraCost::recorded && (node.extension.duration || node.duration_micros > 0);
    if (recorded) {
      Local local{LocalKind::opaque, {}, {}, 1, Unit::dma};
      local.opaque = cost_of(node);
      local.opaque.bytes = Bytes{};
      finish(node, add(node, std::move(local), edges_of(node)));
      return;
    }
    const std::int64_t elements = wire_elements(static_cast<std::int64_t>(node.tensor_size));
    const Region on_host = scratch("on the host", {elements}, wire, true), here = scratch("on the device", {elements}, wire);
    Local local = loads ? Local{LocalKind::from_host, {on_host}, {here}} : Local{LocalKind::to_host, {here}, {on_host}};
    local.unit = Unit::dma;
    finish(node, add(node, std::move(local), edges_of(node)));
  }

  // ---- Messages -----------------------------------------------------------------------------------------------------------------------

  /// Errors: a peer that is no other rank.
  Expected<int> peer_of(const ChakraNode& node) const {
    const bool sends = node.type == ChakraType::comm_send;
    const std::optional<std::int32_t>& given = sends ? node.comm_dst : node.comm_src;
    const std::optional<std::int32_t>& own = sends ? node.comm_src : node.comm_dst;
    if (!given) return Diagnostic{{}, fmt::format("attribute comm_{} is missing", sends ? "dst" : "src")};
    if (*given < 0 || *given >= mesh_.devices() || *given == rank_)
      return Diagnostic{
          {}, fmt::format("attribute comm_{}: expected another rank from 0 to {}, found {}", sends ? "dst" : "src", mesh_.devices() - 1, *given)};
    if (own && *own != rank_)
      return Diagnostic{{}, fmt::format("attribute comm_{}: expected the own rank {}, found {}", sends ? "src" : "dst", rank_, *own)};
    return *given;
  }

  Status announce(const ChakraNode& node, MessageTable& messages) const {
    const auto peer = peer_of(node);
    if (!peer) return peer.error();
    const bool sends = node.type == ChakraType::comm_send;
    messages.add({sends ? rank_ : *peer, sends ? *peer : rank_, node.comm_tag}, sends, {node.comm_size, node.record});
    return success();
  }

  /// Relative to the own coordinates.
  Peer peer(int rank) const {
    const Coordinates there = mesh_.coordinates(DeviceId{rank});
    Peer peer;
    for (std::size_t a = 0; a < there.size(); ++a) {
      const AxisView axis = mesh_.whole(static_cast<int>(a));
      peer.push_back(own(axis, ((there[a] - at_[a]) % axis.size + axis.size) % axis.size));
    }
    return peer;
  }

  Status write_send(const ChakraNode& node) {
    const auto to = peer_of(node);
    if (!to) return to.error();
    finish(node, add(node, Send{node.comm_tag, peer(*to), sent(node.comm_size), route_of(node)}, edges_of(node)));
    return success();
  }

  Status write_recv(const ChakraNode& node) {
    const auto from = peer_of(node);
    if (!from) return from.error();
    const Combine combine = node.extension.adds ? Combine::add : Combine::replace;
    Edges after = edges_of(node);
    Edges gates = node.extension.waits ? after : Edges{};
    const TaskId message = add(node, Recv{node.comm_tag, peer(*from), received(node.comm_size), combine}, std::move(gates));
    finish(node, message);
    if (node.extension.waits || after.empty()) return success();
    after.push_back({message});
    ChakraNode taken;
    taken.name = node.name + " (received)";
    taken.record = node.record;
    finish(node, add(taken, Local{LocalKind::join, {}, {}, 1, Unit::dma}, std::move(after)));
    return success();
  }

  std::vector<int> route_of(const ChakraNode& node) const {
    std::vector<int> order;
    for (const std::int64_t dimension : node.extension.route_order)
      if (0 <= dimension && dimension < 64) order.push_back(static_cast<int>(dimension));
    return order;
  }

  /// The two halves of a shift, as podsim writes them: one behind the other, with one tag.
  static bool is_shift(const ChakraNode& send, const ChakraNode& recv) {
    return send.type == ChakraType::comm_send && recv.type == ChakraType::comm_recv && !send.extension.shift_axis.empty() && recv.id == send.id + 1 &&
           recv.comm_tag == send.comm_tag && recv.comm_size == send.comm_size && recv.extension.waits &&
           recv.extension.shift_axis == send.extension.shift_axis && recv.extension.shift_by == send.extension.shift_by &&
           std::find(recv.data_deps.begin(), recv.data_deps.end(), send.id) == recv.data_deps.end() &&
           std::find(recv.ctrl_deps.begin(), recv.ctrl_deps.end(), send.id) == recv.ctrl_deps.end();
  }

  Status write_shift(const ChakraNode& send, const ChakraNode& recv) {
    const auto axis = axes_from_text(mesh_, send.extension.shift_axis);
    const auto to = peer_of(send), from = peer_of(recv);
    const DeviceId own{rank_};
    const std::int64_t by = send.extension.shift_by;
    if (!axis || axis->size() != 1 || std::abs(by) >= axis->front().size || mesh_.shifted(own, axis->front(), by).value != *to ||
        mesh_.shifted(own, axis->front(), -by).value != *from) {
      // The trace belongs to another mesh: its messages count.
      if (auto ok = write_send(send); !ok) return ok;
      return write_recv(recv);
    }
    Edges after = edges_of(send, Half::send);
    for (const Edge& edge : edges_of(recv, Half::receive)) {
      const auto same =
          std::find_if(after.begin(), after.end(), [&](const Edge& other) { return other.task == edge.task && other.done == edge.done; });
      if (same == after.end())
        after.push_back(edge);
      else
        same->gates = Half::both;
    }
    const TaskId task = add(send,
                            Shift{axis->front(), by, sent(send.comm_size), received(recv.comm_size),
                                  recv.extension.adds ? Combine::add : Combine::replace, route_of(send)},
                            std::move(after));
    finish(send, task, Half::send);
    finish(recv, task, Half::receive);
    return success();
  }

  // ---- Collectives --------------------------------------------------------------------------------------------------------------------

  Status write_collective(const ChakraNode& node) {
    const auto axes = groups_.axes(node, rank_);
    if (!axes) return axes.error();
    const auto type = static_cast<ChakraCollective>(node.comm_type);
    const auto kind = kind_of(type);
    if (!kind)
      return Diagnostic{{}, fmt::format("expected a collective that podsim has, found {}", type == ChakraCollective::gather ? "GATHER" : "SCATTER")};
    if (axes->empty()) {
      finish(node, add(node, Local{LocalKind::join, {}, {}, 1, Unit::dma}, edges_of(node)));
      return success();
    }
    std::int64_t devices = 1;
    for (const AxisView& axis : *axes) devices *= axis.size;
    if (static_cast<double>(node.comm_size) * static_cast<double>(devices) > most_total)
      return Diagnostic{{}, "expected messages of at most 2^60 bytes together, found more"};
    Collective collective;
    collective.kind = *kind;
    collective.axes = *axes;
    if (!add_regions(node, devices, collective)) add_plain_regions(node, devices, collective);
    finish(node, add(node, std::move(collective), edges_of(node)));
    return success();
  }

  /// As podsim wrote them. False: it did not, or not for this.
  bool add_regions(const ChakraNode& node, std::int64_t devices, Collective& collective) {
    const ChakraExtension& extension = node.extension;
    const auto dtype = dtype_named(extension.dtype);
    const std::int64_t in = product_of(extension.input_extents), out = product_of(extension.output_extents);
    if (!dtype || in <= 0 || out <= 0) return false;
    const auto rank = static_cast<std::int64_t>(std::max(extension.input_extents.size(), extension.output_extents.size()));
    if (extension.input_extents.size() != extension.output_extents.size() && extension.in_place) return false;
    if (extension.dim < 0 || extension.dim >= rank || extension.split_dim < 0 || extension.split_dim >= rank || extension.root < 0 ||
        extension.root >= devices)
      return false;
    const bool gathers = collective.kind == CollectiveKind::all_gather, scatters = collective.kind == CollectiveKind::reduce_scatter;
    const std::int64_t bytes = in * size_of(*dtype).count();
    if (bytes != node.comm_size || in * (gathers ? devices : 1) != out * (scatters ? devices : 1)) return false;
    collective.dim = static_cast<int>(extension.dim);
    collective.split_dim = static_cast<int>(extension.split_dim);
    collective.root = extension.root;
    const auto dim = static_cast<std::size_t>(extension.dim);
    const std::string name = "buffer";
    if (!extension.in_place) {
      collective.input = scratch(name, extension.input_extents, *dtype);
      collective.output = scratch(name, extension.output_extents, *dtype);
      return true;
    }
    const std::vector<std::int64_t>& larger = out >= in ? extension.output_extents : extension.input_extents;
    const std::vector<std::int64_t>& smaller = out >= in ? extension.input_extents : extension.output_extents;
    const Region whole = scratch(name, larger, *dtype);
    Region part = whole;
    if (in != out) {
      if (smaller[dim] * devices != larger[dim]) return false;
      part = with(whole, dim, block(position_on(collective.axes), smaller[dim]));
    }
    collective.input = out >= in ? part : whole;
    collective.output = out >= in ? whole : part;
    return true;
  }

  /// One dimension, in place where the kind allows it; rounded up to whole elements, and to as many as divide.
  void add_plain_regions(const ChakraNode& node, std::int64_t devices, Collective& collective) {
    const std::int64_t given = std::max<std::int64_t>(wire_elements(node.comm_size), 1), whole = (given + devices - 1) / devices * devices;
    switch (collective.kind) {
      case CollectiveKind::all_gather:
        collective.output = scratch("gathered", {given * devices}, wire);
        collective.input = with(collective.output, 0, block(position_on(collective.axes), given));
        break;
      case CollectiveKind::reduce_scatter:
        collective.input = scratch("scattered", {whole}, wire);
        collective.output = with(collective.input, 0, block(position_on(collective.axes), whole / devices));
        break;
      case CollectiveKind::all_to_all:
        collective.input = scratch("to all", {whole}, wire);
        collective.output = scratch("from all", {whole}, wire);
        break;
      case CollectiveKind::all_reduce: collective.input = collective.output = scratch("reduced", {whole}, wire); break;
      default: collective.input = collective.output = scratch("buffer", {given}, wire); break;
    }
  }

  static Affine position_on(const std::vector<AxisView>& axes) {
    Affine position;
    std::int64_t weight = 1;
    for (auto view = axes.rbegin(); view != axes.rend(); ++view) {
      if (view->size > 1) position.terms.insert(position.terms.begin(), {*view, weight});
      weight *= view->size;
    }
    return position;
  }

  const Mesh& mesh_;
  GroupTable& groups_;
  int rank_;
  ChakraCost cost_;
  bool shifts_;
  Coordinates at_;
  RankProgram result_;
  std::shared_ptr<const std::string> file_;
  std::unordered_map<std::uint64_t, Edges> ends_;
  std::optional<TaskId> last_of_host_;
  double total_ = 0;  // bytes of all buffers
};

}  // namespace

Expected<RankProgram> write_rank(const Mesh& mesh, GroupTable& groups, int rank, ChakraCost cost, bool shifts, const ChakraTrace& trace,
                                 MessageTable& messages) {
  return RankWriter{mesh, groups, rank, cost, shifts}.write(trace, messages);
}

}  // namespace podsim
