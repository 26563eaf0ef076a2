#include "tools/report/hlo_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace podsim {

namespace {

using Part = OperationEvent::Part;

constexpr int most_pairs = 4096;  // of a permute in a text; of larger meshes it has one ring

std::string flat(DType dtype, Bytes bytes) {
  const std::int64_t size = size_of(dtype).count();
  if (bytes.count() % size == 0) return fmt::format("{}[{}]{{0}}", name_of(dtype), bytes.count() / size);
  return fmt::format("s8[{}]{{0}}", bytes.count());
}

std::string matrix(DType dtype, std::int64_t rows, std::int64_t columns) { return fmt::format("{}[{},{}]{{1,0}}", name_of(dtype), rows, columns); }

std::string shape_of(const Program& program, const Region& region) {
  const Buffer& buffer = program.buffers[region.buffer.index()];
  std::vector<std::int64_t> extents, layout;
  for (const Range& range : region.dims) {
    layout.insert(layout.begin(), static_cast<std::int64_t>(extents.size()));
    extents.push_back(range.length);
  }
  return fmt::format("{}[{}]{{{}}}", name_of(buffer.dtype), fmt::join(extents, ","), fmt::join(layout, ","));
}

const Region* moved_by(const Op& op) {
  if (const auto* shift = std::get_if<Shift>(&op)) return &shift->source;
  if (const auto* send = std::get_if<Send>(&op)) return &send->source;
  if (const auto* recv = std::get_if<Recv>(&op)) return &recv->target;
  return nullptr;
}

/// Of what a Collective moves; bytes where nothing tells.
std::optional<DType> dtype_of_collective(const Program& program, TaskId first, int collective) {
  for (std::size_t t = first.index(); t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    if (!task.origin || task.origin->collective != collective) continue;
    if (const Region* region = moved_by(task.op)) return program.buffers[region->buffer.index()].dtype;
  }
  return std::nullopt;
}

/// "[4,4]<=[4,4]T(1,0)": the devices that differ on the views, in the order of the mesh. One group after the other where the views do not say it.
std::string groups_along(const Mesh& mesh, const std::vector<AxisView>& views, int devices) {
  std::vector<int> dims, inside, outside;
  const auto add = [&](int size, bool chosen) {
    if (size == 1) return;
    (chosen ? inside : outside).push_back(static_cast<int>(dims.size()));
    dims.push_back(size);
  };
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) {
    std::vector<AxisView> on_axis;
    for (const AxisView& view : views)
      if (view.axis == static_cast<int>(a)) on_axis.push_back(view);
    std::ranges::sort(on_axis, [](const AxisView& x, const AxisView& y) { return std::pair{x.stride, x.size} > std::pair{y.stride, y.size}; });
    int rest = mesh.axes()[a].size;  // what is below the views so far
    for (const AxisView& view : on_axis) {
      const int above = view.stride * view.size;
      if (above > rest || rest % above != 0) continue;  // within one that came before
      add(rest / above, false);
      add(view.size, true);
      rest = view.stride;
    }
    add(rest, false);
  }
  std::vector<int> order = outside;
  order.insert(order.end(), inside.begin(), inside.end());
  int size = 1;
  for (const int dim : inside) size *= dims[static_cast<std::size_t>(dim)];
  if (size != devices || mesh.devices() % devices != 0)
    return fmt::format("[{},{}]<=[{}]", std::max(1, mesh.devices() / std::max(devices, 1)), devices, mesh.devices());
  const std::string groups = fmt::format("[{},{}]<=", mesh.devices() / devices, devices);
  if (std::ranges::is_sorted(order)) return fmt::format("{}[{}]", groups, mesh.devices());
  return fmt::format("{}[{}]T({})", groups, fmt::join(dims, ","), fmt::join(order, ","));
}

/// "{{0,1},{1,2},...}": who sends to whom.
std::string pairs_of(const Mesh& mesh, const Program& program, const Task& task) {
  const auto& shift = std::get<Shift>(task.op);
  std::string pairs;
  for (int d = 0; d < mesh.devices(); ++d) {
    const DeviceId device{d};
    if (!contains(program.devices, device)) continue;
    const Coordinates at = mesh.coordinates(device);
    if (mesh.devices() > most_pairs) {
      const bool first_ring = std::ranges::all_of(at, [&, a = 0](int coordinate) mutable { return a++ == shift.axis.axis || coordinate == 0; });
      if (!first_ring) continue;
    }
    if (!holds(task.where, at)) continue;
    const DeviceId to = receiver_of(mesh, shift, device);
    if (to != device) pairs += fmt::format("{}{{{},{}}}", pairs.empty() ? "" : ",", d, to.value);
  }
  return "{" + pairs + "}";
}

struct Words {
  CollectiveKind kind;
  std::string_view opcode, kernel;
  bool adds;  // the kernel's name has the operation and the type
};
constexpr std::array<Words, 7> collective_words = {{{CollectiveKind::all_gather, "all-gather", "AllGather", false},
                                                    {CollectiveKind::reduce_scatter, "reduce-scatter", "ReduceScatter", true},
                                                    {CollectiveKind::all_reduce, "all-reduce", "AllReduce", true},
                                                    {CollectiveKind::all_to_all, "all-to-all", "SendRecv", false},
                                                    {CollectiveKind::broadcast, "collective-broadcast", "Broadcast", false},
                                                    {CollectiveKind::reduce, "collective-reduce", "Reduce", true},
                                                    {CollectiveKind::permute, "collective-permute", "SendRecv", false}}};

/// As NCCL names its kernels. The protocol in the name is nominal.
std::string nccl_kernel(const Words& words, std::string_view dtype, bool in_switch) {
  const std::string what = words.adds ? fmt::format("{}_Sum_{}", words.kernel, dtype) : std::string{words.kernel};
  const std::string how = words.kernel == "SendRecv" ? "" : in_switch ? "_NVLS" : "_RING_LL";
  return fmt::format("ncclDevKernel_{}{}(ncclDevKernelArgsStorage<4096ul>)", what, how);
}

class Namer {
 public:
  Namer(const Model& model, std::uint32_t program, const OperationMetrics& operation, TaskId first, const std::vector<AxisView>& views)
      : mesh_{model.schedule->mesh},
        program_{model.schedule->programs[program]},
        task_{program_.tasks[first.index()]},
        first_{first},
        operation_{operation},
        views_{views},
        gpu_{is_gpu(*model.machine)} {
    name_.provenance = fmt::format("jit({})/", model.schedule->name);
    std::string path = operation.name;
    for (std::size_t at = path.find(": "); at != std::string::npos; at = path.find(": ", at)) path.replace(at, 2, "/");
    name_.provenance += path + ":";
  }

  HloName run() && {
    if (task_.origin)
      name_collective(*task_.origin);
    else
      std::visit(*this, task_.op);
    if (name_.base.empty()) name_.base = name_.opcode;
    return std::move(name_);
  }

  void operator()(const Matmul& matmul) {
    const auto& [m, n, k] = operation_.extents;
    const DType in = program_.buffers[matmul.left.buffer.index()].dtype, out = program_.buffers[matmul.out.buffer.index()].dtype;
    name_.opcode = gpu_ ? "dot" : "convolution";
    name_.category = gpu_ ? "dot" : "convolution";
    name_.operands = fmt::format("{} %left, {} %right", matrix(in, m, k), matrix(in, k, n));
    name_.result = matrix(out, m, n);
    name_.attributes = gpu_ ? ", lhs_contracting_dims={1}, rhs_contracting_dims={0}" : ", dim_labels=bf_io->bf";
    name_.kernel = "gemm_fusion_dot";
  }
  void operator()(const Local& local) {
    std::string operands;
    for (const Region& region : local.reads)
      operands += fmt::format("{}{} %p{}", operands.empty() ? "" : ", ", shape_of(program_, region), &region - local.reads.data());
    name_.operands = operands;
    name_.result = local.writes.empty() ? "()" : shape_of(program_, local.writes.front());
    const std::string_view category = operation_.category;
    if (category == "attention") {
      name_.opcode = name_.category = "custom-call";
      name_.base = "flash_attention";
      name_.attributes = R"(, custom_call_target="flash_attention")";
      name_.kernel = "flash_attention";
    } else if (category == "copy") {
      name_.opcode = "copy";
      name_.category = "data formatting";
      name_.kernel = "MemcpyD2D";
    } else {
      name_.opcode = "fusion";
      name_.category = category == "elementwise" ? "loop fusion" : category == "matmul" ? "convolution fusion" : std::string{category};
      name_.attributes = ", kind=kLoop, calls=%" + std::string{traits_of(local.kind).name};
      name_.kernel = std::string{traits_of(local.kind).name} + "_fusion";
    }
  }
  void operator()(const Shift& shift) {
    const std::string shape = shape_of(program_, shift.source);
    name_.opcode = name_.category = "collective-permute";
    name_.operands = shape + " %p";
    name_.result = shape;
    name_.attributes = ", source_target_pairs=" + pairs_of(mesh_, program_, task_);
    name_.kernel = nccl_kernel(collective_words.back(), "", false);
  }
  void operator()(const Send& send) { exchange("send", shape_of(program_, send.source), send.channel, true); }
  void operator()(const Recv& recv) { exchange("recv", shape_of(program_, recv.target), recv.channel, false); }
  void operator()(const Call&) {
    name_.opcode = "call";
    name_.category = "function call";
    name_.result = "()";
    name_.attributes = ", to_apply=%" + operation_.name;
    name_.provenance.insert(name_.provenance.size() - 1, "/" + task_.label);
  }
  void operator()(const Collective&) {}  // not in a lowered schedule

 private:
  void name_collective(const Origin& origin) {
    const auto words = std::ranges::find(collective_words, origin.kind, &Words::kind);
    const auto dtype = dtype_of_collective(program_, first_, origin.collective);
    const std::int64_t devices = std::max(operation_.devices, 1);
    Bytes out = operation_.bytes;
    if (origin.kind == CollectiveKind::all_gather) out = devices * out;
    if (origin.kind == CollectiveKind::reduce_scatter) out = Bytes{out.count() / devices};
    const auto shape = [&dtype](Bytes bytes) { return dtype ? flat(*dtype, bytes) : fmt::format("s8[{}]{{0}}", bytes.count()); };
    name_.opcode = name_.category = words->opcode;
    name_.operands = shape(operation_.bytes) + " %p";
    name_.result = shape(out);
    const std::vector<AxisView> along = views_.empty() ? std::vector<AxisView>{origin.axis} : views_;
    name_.attributes = ", replica_groups=" + groups_along(mesh_, along, operation_.devices);
    if (origin.kind == CollectiveKind::all_gather || origin.kind == CollectiveKind::reduce_scatter || origin.kind == CollectiveKind::all_to_all)
      name_.attributes += ", dimensions={0}";
    if (words->adds) name_.attributes += ", to_apply=%add";
    name_.kernel = nccl_kernel(*words, dtype ? name_of(*dtype) : "u8", origin.in_switch);
  }

  void exchange(std::string_view opcode, const std::string& shape, int channel, bool sends) {
    name_.opcode = name_.category = opcode;
    name_.operands = sends ? shape + " %p, token[] %after" : "token[] %after";
    name_.result = fmt::format("({}, u32[], token[])", shape);
    name_.attributes = fmt::format(", channel_id={}", channel + 1);
    name_.kernel = nccl_kernel(collective_words.back(), "", false);
  }

  const Mesh& mesh_;
  const Program& program_;
  const Task& task_;
  TaskId first_;
  const OperationMetrics& operation_;
  const std::vector<AxisView>& views_;
  bool gpu_;
  HloName name_;
};

/// send and recv begin without -start.
std::string_view ending_of(std::string_view opcode, Part part) {
  const bool exchange = opcode == "send" || opcode == "recv";
  switch (part) {
    case Part::whole: return "";
    case Part::start: return exchange ? "" : "-start";
    case Part::update: return "-update";
    case Part::done: return "-done";
  }
  return "";
}

}  // namespace

std::string HloName::name(Part part, std::size_t number) const { return fmt::format("{}{}.{}", base, ending_of(opcode, part), number); }

std::string HloName::category_of(Part part) const { return category + std::string{ending_of(opcode, part)}; }

std::string HloName::text(Part part, std::size_t number) const {
  const std::string front = fmt::format("%{} = ", name(part, number)), code = opcode + std::string{ending_of(opcode, part)};
  const bool exchange = opcode == "send" || opcode == "recv";
  // The value of a start is its operands and its results; of an all-reduce's, a send's and a receive's only the latter.
  const std::string begun = opcode == "all-reduce" || exchange ? result : fmt::format("({}, {})", operands.substr(0, operands.find(" %")), result);
  switch (part) {
    case Part::whole: return fmt::format("{}{} {}({}){}", front, result, code, operands, attributes);
    case Part::start: return fmt::format("{}{} {}({}){}", front, begun, code, operands, attributes);
    case Part::update: return fmt::format("{}{} {}({} %{})", front, begun, code, begun, name(Part::start, number));
    case Part::done: return fmt::format("{}{} {}({} %{})", front, exchange ? "token[]" : result, code, begun, name(Part::start, number));
  }
  return front;
}

bool is_gpu(const Machine& machine) { return machine.interconnect == Interconnect::rail; }

HloName hlo_name(const Model& model, std::uint32_t program, const OperationMetrics& operation, TaskId first, const std::vector<AxisView>& views) {
  return Namer{model, program, operation, first, views}.run();
}

}  // namespace podsim
