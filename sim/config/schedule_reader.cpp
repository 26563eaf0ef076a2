#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/config/checked_number.hpp"
#include "sim/config/message_file.hpp"
#include "sim/config/reference_reader.hpp"
#include "sim/config/schedule.pb.h"
#include "sim/config/schedule_config.hpp"
#include "sim/config/schedule_names.hpp"
#include "sim/config/text_places.hpp"

namespace podsim {
namespace {

constexpr std::int64_t most_devices = std::int64_t{1} << 24;
constexpr int most_axes = 64;  // more than 24 axes have more than 2^24 devices, or size 1

/// Which entries of a list have a name: how many, and the first.
struct Named {
  int count = 0;
  int first = 0;
};
using Names = std::unordered_map<std::string, Named>;

class ScheduleReader {
 public:
  explicit ScheduleReader(const std::string& file) : name_{file}, file_{schedule_format, file, message_} {}

  Expected<Schedule> read(std::string_view bytes) {
    if (!file_.parse(bytes)) return file_.error();
    const Place root;
    schedule_.name = message_.name();
    read_mesh(root);
    if (!file_.ok()) return file_.error();  // everything else names axes
    read_functions(root);
    for (int p = 0; p < message_.program_size(); ++p) schedule_.programs.push_back(read(message_.program(p), root.at("program", p)));
    read_computes(root);
    if (!file_.ok()) return file_.error();
    note_places(bytes);
    return std::move(schedule_);
  }

 private:
  /// Where tasks and buffers stand, for problems that are found later. A binary file has no lines.
  void note_places(std::string_view bytes) {
    const auto file = std::make_shared<const std::string>(name_);
    const bool text = bytes.front() != binary_magic.front();
    const auto note = [&](Program& program, const PlacesInEntry* places) {
      const auto note_field = [&](const char* field, auto& entries) {
        for (std::size_t i = 0; i < entries.size(); ++i) {
          const TextPlace place = places != nullptr ? places->find(field)->second.at(i) : TextPlace{};
          entries[i].written_at = {file, place.line, place.column};
        }
      };
      note_field("task", program.tasks);
      note_field("buffer", program.buffers);
    };
    const auto places_of = [&](const char* field) { return text ? places_in(bytes, field, {"task", "buffer"}) : std::vector<PlacesInEntry>{}; };
    const auto programs = places_of("program"), functions = schedule_.functions.empty() ? programs : places_of("function");
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) note(schedule_.programs[p], text ? &programs.at(p) : nullptr);
    for (std::size_t f = 0; f < schedule_.functions.size(); ++f) note(schedule_.functions[f].body, text ? &functions.at(f) : nullptr);
  }

  template <class... Args>
  void problem(const Place& place, fmt::format_string<Args...> format, Args&&... args) {
    file_.problem(place, file_.full() ? std::string() : fmt::format(format, std::forward<Args>(args)...));
  }

  /// `names` is a function, called only while the text of a problem is still wanted.
  template <class Function>
  std::string near(const std::string& word, Function names) const {
    return file_.full() ? std::string() : did_you_mean(word, names());
  }

  // ---- The mesh -----------------------------------------------------------------------------------------------------------------------

  void read_mesh(const Place& root) {
    std::vector<MeshAxis> axes;
    Checked devices = 1;
    if (message_.mesh_size() > most_axes)
      problem(root.at("mesh", most_axes), "expected at most {} mesh axes, found {}", most_axes, message_.mesh_size());
    for (int a = 0; a < std::min(message_.mesh_size(), most_axes); ++a) {
      const proto::MeshAxis& axis = message_.mesh(a);
      const Place place = root.at("mesh", a);
      if (axis.name().empty()) problem(place.at("name"), "a mesh axis has an empty name");
      if (std::any_of(axes.begin(), axes.end(), [&](const MeshAxis& other) { return other.name == axis.name(); }))
        problem(place.at("name"), "there are two mesh axes {}", quoted(axis.name()));
      if (axis.size() < 1) problem(place.at("size"), "the size of a mesh axis must be at least 1, got {}", axis.size());
      const bool were_few = devices.value() <= most_devices;
      devices = devices * std::max(axis.size(), 1);
      if (were_few && devices.value() > most_devices) problem(place.at("size"), "the mesh has more than 2^24 devices");
      axes.push_back({axis.name(), axis.size(), axis.wraps(), {}});
      for (const auto& factor : axis.factor()) axes.back().factors.push_back({factor.size(), factor.wraps()});
    }
    if (!file_.ok()) return;
    Expected<Mesh> mesh = Mesh::make(std::move(axes));
    if (mesh) {
      schedule_.mesh = *std::move(mesh);
    } else {
      problem(root.at("mesh", 0), "{}", mesh.error().message);
    }
  }

  AxisView read(const proto::AxisView& message, const Place& place) {
    const std::vector<MeshAxis>& axes = schedule_.mesh.axes();
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const MeshAxis& a) { return a.name == message.name(); });
    if (axis == axes.end()) {
      problem(place.at("name"), "unknown mesh axis {}{}", quoted(message.name()), near(message.name(), [&] { return axis_names(); }));
      return {};
    }
    AxisView view{static_cast<int>(axis - axes.begin()), message.stride(), message.size()};
    if (!message.has_size()) view.size = view.stride >= 1 ? axis->size / view.stride : 0;
    const std::int64_t covered = std::int64_t{view.stride} * view.size;
    if (view.stride < 1 || view.size < 1 || axis->size % covered != 0) {
      problem(place, "stride {} and size {} are no factor of the mesh axis {} of size {}", view.stride, view.size, quoted(axis->name), axis->size);
      return {};
    }
    return view;
  }

  std::vector<std::string> axis_names() const {
    std::vector<std::string> names;
    for (const MeshAxis& axis : schedule_.mesh.axes()) names.push_back(axis.name);
    return names;
  }

  template <class List>
  std::vector<AxisView> read_views(const List& list, const char* field, const Place& place) {
    std::vector<AxisView> views;
    for (int i = 0; i < list.size(); ++i) views.push_back(read(list[i], place.at(field, i)));
    return views;
  }

  // ---- Indices and regions ------------------------------------------------------------------------------------------------------------

  Affine read(const proto::Affine& message, const Place& place) {
    Affine affine;
    affine.constant = message.constant();
    affine.modulus = message.modulus();
    Checked reach = Checked{affine.constant}.size();
    for (int t = 0; t < message.term_size(); ++t) {
      affine.terms.push_back({read(message.term(t).axis(), place.at("term", t).at("axis")), message.term(t).coefficient(), message.term(t).add()});
      reach = reach + Checked{affine.terms.back().coefficient}.size() * Checked{affine.terms.back().axis.size - 1} +
              Checked{affine.terms.back().add}.size();
    }
    if (affine.modulus < 0) problem(place.at("modulus"), "a modulus must not be negative, got {}", affine.modulus);
    if (!reach.ok()) problem(place, "this index reaches beyond 2^62");
    return affine;
  }

  /// The largest index in size, given that it passed the check above.
  static Checked reach_of(const Affine& affine) {
    if (affine.modulus > 0) return affine.modulus;
    Checked reach = Checked{affine.constant}.size();
    for (const AxisTerm& term : affine.terms) reach = reach + Checked{term.coefficient}.size() * Checked{term.axis.size - 1};
    return reach;
  }

  Range read(const proto::Range& message, const Place& place) {
    Range range;
    const Place index_place = place.at("index");
    if (message.has_index()) range.index = read(message.index(), index_place);
    range.stride = message.stride();
    range.offset = message.offset();
    range.length = message.length();
    if (range.length < 0) problem(place.at("length"), "a length must not be negative, got {}", range.length);
    const Checked reach = reach_of(range.index);  // if that is too much, it has been told
    const Checked end = Checked{range.offset}.size() + reach * Checked{range.stride}.size() + Checked{range.length};
    if (reach.ok() && !end.ok()) problem(place, "this range reaches beyond 2^62");
    return range;
  }

  Region read(const proto::Region& message, const Place& place) {
    Region region;
    region.buffer = buffer_of(message, "a region", place);
    Checked elements = 1;
    for (int d = 0; d < message.dim_size(); ++d) {
      region.dims.push_back(read(message.dim(d), place.at("dim", d)));
      elements = elements * Checked{region.dims.back().length};
    }
    if (!elements.ok()) problem(place, "this region has more than 2^62 elements");
    return region;
  }

  /// Of a region or an argument.
  template <class Message>
  BufferId buffer_of(const Message& message, std::string_view what, const Place& place) {
    const int buffers = buffer_count_;
    switch (message.buffer_of_program_case()) {
      case Message::kBuffer: {
        const auto named = buffers_.find(message.buffer());
        if (named == buffers_.end()) {
          problem(place.at("buffer"), "unknown buffer {}{}", quoted(message.buffer()), near(message.buffer(), [&] { return names_of(buffers_); }));
        } else if (named->second.count > 1) {
          problem(place.at("buffer"), "{} buffers are named {}: give the position instead", named->second.count, quoted(message.buffer()));
        } else {
          return BufferId{named->second.first};
        }
        return {};
      }
      case Message::kPosition:
        if (message.position() < 0 || message.position() >= buffers)
          problem(place.at("position"), "the program has {} buffers, there is none at position {}", buffers, message.position());
        return BufferId{message.position()};
      case Message::BUFFER_OF_PROGRAM_NOT_SET: break;
    }
    problem(place, "{} needs a buffer", what);
    return {};
  }

  /// The names of a table, sorted.
  static std::vector<std::string> names_of(const Names& table) {
    std::vector<std::string> names;
    for (const auto& [name, named] : table) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }

  // ---- Programs -----------------------------------------------------------------------------------------------------------------------

  void read_functions(const Place& root) {
    for (int f = 0; f < message_.function_size(); ++f) {
      const proto::Function& message = message_.function(f);
      const Place place = root.at("function", f);
      if (message.name().empty()) problem(place.at("name"), "a function has an empty name");
      if (!functions_.emplace(message.name(), f).second) problem(place.at("name"), "there are two functions {}", quoted(message.name()));
      if (message.parameters() < 0 || message.parameters() > message.buffer_size())
        problem(place, "expected parameters among the {} buffers, found {}", message.buffer_size(), message.parameters());
      Function function{message.name(), message.parameters(), {}};
      enter(message);
      read_body(function.body, message, place);
      schedule_.functions.push_back(std::move(function));
    }
  }

  /// Regions and edges are read with the names of this program or function.
  template <class Message>
  void enter(const Message& message) {
    buffer_count_ = message.buffer_size();
    task_count_ = message.task_size();
    buffers_.clear();
    labels_.clear();
    const auto note = [](Names& names, const std::string& name, int position) {
      Named& named = names[name];
      if (named.count++ == 0) named.first = position;
    };
    for (int b = 0; b < message.buffer_size(); ++b) note(buffers_, message.buffer(b).name(), b);
    for (int t = 0; t < message.task_size(); ++t) note(labels_, message.task(t).label(), t);
  }

  Program read(const proto::Program& message, const Place& place) {
    enter(message);
    Program program;
    program.devices = message.has_devices() ? read(message.devices(), place.at("devices")) : every_device(schedule_.mesh);
    read_body(program, message, place);
    return program;
  }

  template <class Message>
  void read_body(Program& program, const Message& message, const Place& place) {
    for (int b = 0; b < message.buffer_size(); ++b) program.buffers.push_back(read(message.buffer(b), place.at("buffer", b)));
    for (int t = 0; t < message.task_size(); ++t) program.tasks.push_back(read(message.task(t), t, place.at("task", t)));
  }

  DeviceSet read(const proto::DeviceSet& message, const Place& place) {
    DeviceSet devices;
    for (int r = 0; r < message.range_size(); ++r) {
      const DeviceSet::Interval interval{message.range(r).first(), message.range(r).last()};
      if (interval.first < 0 || interval.first > interval.last || interval.last > schedule_.mesh.devices())
        problem(place.at("range", r), "devices {} to {} are not among the {} of the mesh", interval.first, interval.last, schedule_.mesh.devices());
      devices.intervals.push_back(interval);
    }
    return devices;
  }

  Buffer read(const proto::Buffer& message, const Place& place) {
    Buffer buffer;
    buffer.name = message.name();
    buffer.dtype = dtype_numbered(message.dtype());
    buffer.role = static_cast<Role>(message.role());
    buffer.tensor = message.tensor();
    // The global tensor, too, has to fit: engines and references multiply its extents.
    Checked bytes = size_of(buffer.dtype).count();
    for (int e = 0; e < message.extents_size(); ++e) {
      buffer.extents.push_back(message.extents(e));
      if (message.extents(e) < 0) problem(place.at("extents", e), "an extent must not be negative, got {}", message.extents(e));
      bytes = bytes * Checked{message.extents(e)};
    }
    for (int s = 0; s < message.sharding_size(); ++s) {
      buffer.sharding.push_back(read_views(message.sharding(s).axis(), "axis", place.at("sharding", s)));
      for (const AxisView& view : buffer.sharding.back()) bytes = bytes * Checked{view.size};
    }
    buffer.unreduced = read_views(message.unreduced(), "unreduced", place);
    if (!bytes.ok()) problem(place, "the tensor of this buffer has more than 2^62 bytes");
    for (int e = 0; e < message.unpadded_size(); ++e) {
      buffer.unpadded.push_back(message.unpadded(e));
      if (message.unpadded(e) < 0) problem(place.at("unpadded", e), "an extent must not be negative, got {}", message.unpadded(e));
    }
    buffer.grouped.assign(message.grouped().begin(), message.grouped().end());
    buffer.on_host = message.on_host();
    buffer.on_chip = message.on_chip();
    return buffer;
  }

  Task read(const proto::Task& message, int position, const Place& place) {
    Task task;
    task.label = message.label();
    switch (message.op_case()) {
      case proto::Task::kMatmul: task.op = read(message.matmul(), place.at("matmul")); break;
      case proto::Task::kLocal: task.op = read(message.local(), place.at("local")); break;
      case proto::Task::kShift: task.op = read(message.shift(), place.at("shift")); break;
      case proto::Task::kSend: task.op = read(message.send(), place.at("send")); break;
      case proto::Task::kRecv: task.op = read(message.recv(), place.at("recv")); break;
      case proto::Task::kCollective: task.op = read(message.collective(), place.at("collective")); break;
      case proto::Task::kCall: task.op = read(message.call(), place.at("call")); break;
      case proto::Task::OP_NOT_SET: problem(place, "a task needs one of matmul, local, shift, send, recv, collective, call"); break;
    }
    for (int e = 0; e < message.after_size(); ++e) {
      const proto::Edge& edge = message.after(e);
      task.after.push_back({earlier_task(edge, position, place.at("after", e)), static_cast<Half>(edge.done()), static_cast<Half>(edge.gates())});
    }
    for (int c = 0; c < message.where_size(); ++c) {
      const Place condition = place.at("where", c);
      task.where.push_back({read(message.where(c).value(), condition.at("value")), message.where(c).low(), message.where(c).high()});
    }
    if (message.has_origin()) task.origin = read(message.origin(), place.at("origin"));
    task.recompute = message.recompute();
    return task;
  }

  TaskId earlier_task(const proto::Edge& edge, int position, const Place& place) {
    const int tasks = task_count_;
    int task = 0;
    switch (edge.earlier_case()) {
      case proto::Edge::kTask:
        task = edge.task();
        if (task < 0 || task >= tasks) {
          problem(place.at("task"), "the program has {} tasks, there is none at position {}", tasks, task);
          return {};
        }
        break;
      case proto::Edge::kLabel: {
        const auto named = labels_.find(edge.label());
        if (named == labels_.end()) {
          problem(place.at("label"), "no task is labelled {}{}", quoted(edge.label()), near(edge.label(), [&] { return names_of(labels_); }));
          return {};
        }
        if (named->second.count > 1) {
          problem(place.at("label"), "{} tasks are labelled {}: give the position instead", named->second.count, quoted(edge.label()));
          return {};
        }
        task = named->second.first;
        break;
      }
      case proto::Edge::EARLIER_NOT_SET: problem(place, "an edge needs a task or a label"); return {};
    }
    if (task >= position) problem(place, "an edge must lead to an earlier task, got one from task {} to task {}", position, task);
    return TaskId{task};
  }

  // ---- Operations ---------------------------------------------------------------------------------------------------------------------

  /// A count or a position.
  template <class Int>
  Int natural(Int value, const char* field, const Place& place) {
    if (value < 0) problem(place.at(field), "{} must not be negative, got {}", field, value);
    return value;
  }

  Matmul read(const proto::Matmul& message, const Place& place) {
    Matmul op;
    op.left = read(message.left(), place.at("left"));
    op.right = read(message.right(), place.at("right"));
    op.out = read(message.out(), place.at("out"));
    op.left_split = natural(message.left_split(), "left_split", place);
    op.right_split = natural(message.right_split(), "right_split", place);
    op.out_split = natural(message.out_split(), "out_split", place);
    op.transpose_left = message.transpose_left();
    op.transpose_right = message.transpose_right();
    op.accumulate = message.accumulate();
    op.float32_passes = natural(message.float32_passes(), "float32_passes", place);
    return op;
  }

  Local read(const proto::Local& message, const Place& place) {
    Local op;
    op.kind = local_kind_numbered(message.kind());
    for (int r = 0; r < message.read_size(); ++r) op.reads.push_back(read(message.read(r), place.at("read", r)));
    for (int w = 0; w < message.write_size(); ++w) op.writes.push_back(read(message.write(w), place.at("write", w)));
    op.factor = message.factor();
    op.features_first = message.features_first();
    op.causal = message.causal();
    op.unit = static_cast<Unit>(message.unit());
    if (message.dims_size() != 0 && message.dims_size() != 2) problem(place, "expected two dims, found {}", message.dims_size());
    if (message.dims_size() == 2) op.dims = {message.dims(0), message.dims(1)};
    op.splits.assign(message.splits().begin(), message.splits().end());
    for (int n = 0; n < message.numbering_size(); ++n) {
      const Place numbering = place.at("numbering", n);
      op.numbering.push_back({read(message.numbering(n).first(), numbering.at("first")), message.numbering(n).block(), message.numbering(n).apart()});
    }
    op.classes = natural(message.classes(), "classes", place);
    const proto::Local::Optimiser& of = message.optimiser();
    op.optimiser = {of.learning_rate(), of.beta1(), of.beta2(), of.epsilon(), of.weight_decay(), of.step()};
    const proto::Local::OpaqueCost& cost = message.opaque_cost();
    const Place cost_place = place.at("opaque_cost");
    op.opaque = {Flops{natural(cost.matrix_flops(), "matrix_flops", cost_place)}, Flops{natural(cost.vector_flops(), "vector_flops", cost_place)},
                 dtype_numbered(cost.dtype()), {}, {}, Seconds{natural(cost.launch_s(), "launch_s", cost_place)}, Seconds{natural(cost.rest_s(), "rest_s", cost_place)}};
    if (cost.has_bytes()) op.opaque.bytes = Bytes{natural(cost.bytes(), "bytes", cost_place)};
    if (cost.has_time_s()) op.opaque.time = Seconds{natural(cost.time_s(), "time_s", cost_place)};
    op.opaque.float32_passes = natural(cost.float32_passes(), "float32_passes", cost_place);
    if (cost.product_size() != 0 && cost.product_size() != 3) problem(cost_place, "expected m, n and k of a product, found {} numbers", cost.product_size());
    op.opaque.attention = cost.attention();
    if (cost.product_size() == 3) op.opaque.product = {cost.product(0), cost.product(1), cost.product(2)};
    return op;
  }

  template <class List>
  std::vector<int> read_route_order(const List& list, const Place& place) {
    std::vector<int> order(list.begin(), list.end());
    for (std::size_t i = 0; i < order.size(); ++i)
      if (order[i] < 0) problem(place.at("route_order", static_cast<int>(i)), "a dimension must not be negative, got {}", order[i]);
    return order;
  }

  Shift read(const proto::Shift& message, const Place& place) {
    Shift op;
    op.axis = read(message.axis(), place.at("axis"));
    op.by = read(message.by(), place.at("by"));
    op.source = read(message.source(), place.at("source"));
    op.target = read(message.target(), place.at("target"));
    op.combine = static_cast<Combine>(message.combine());
    op.route_order = read_route_order(message.route_order(), place);
    op.in_switch = static_cast<InSwitch>(message.in_switch());
    op.by_dimension = message.by_dimension();
    return op;
  }

  template <class List>
  Peer read_peer(const List& list, const char* field, const Place& place) {
    Peer peer;
    for (int a = 0; a < list.size(); ++a) peer.push_back(read(list[a], place.at(field, a)));
    return peer;
  }

  Send read(const proto::Send& message, const Place& place) {
    Send op;
    op.channel = message.channel();
    op.to = read_peer(message.to(), "to", place);
    op.source = read(message.source(), place.at("source"));
    op.route_order = read_route_order(message.route_order(), place);
    return op;
  }

  Recv read(const proto::Recv& message, const Place& place) {
    Recv op;
    op.channel = message.channel();
    op.from = read_peer(message.from(), "from", place);
    op.target = read(message.target(), place.at("target"));
    op.combine = static_cast<Combine>(message.combine());
    return op;
  }

  Collective read(const proto::Collective& message, const Place& place) {
    Collective op;
    op.kind = collective_kind_numbered(message.kind());
    op.axes = read_views(message.axis(), "axis", place);
    op.input = read(message.input(), place.at("input"));
    op.output = read(message.output(), place.at("output"));
    op.dim = natural(message.dim(), "dim", place);
    op.split_dim = natural(message.split_dim(), "split_dim", place);
    op.root = natural(message.root(), "root", place);
    for (int p = 0; p < message.pair_size(); ++p)
      op.pairs.push_back({natural(message.pair(p).from(), "from", place.at("pair", p)), natural(message.pair(p).to(), "to", place.at("pair", p))});
    op.algorithm = message.algorithm();
    op.reduction = static_cast<Reduction>(message.reduction());
    return op;
  }

  Call read(const proto::Call& message, const Place& place) {
    Call op;
    const auto function = functions_.find(message.function());
    if (function == functions_.end())
      problem(place.at("function"), "unknown function {}{}", quoted(message.function()), near(message.function(), [&] {
                std::vector<std::string> names;
                for (const auto& [name, number] : functions_) names.push_back(name);
                return names;
              }));
    else
      op.function = function->second;
    for (int a = 0; a < message.argument_size(); ++a) op.arguments.push_back(buffer_of(message.argument(a), "an argument", place.at("argument", a)));
    return op;
  }

  Origin read(const proto::Origin& message, const Place& place) {
    Origin origin;
    origin.collective = natural(message.collective(), "collective", place);
    origin.kind = collective_kind_numbered(message.kind());
    origin.axis = read(message.axis(), place.at("axis"));
    origin.input_bytes = Bytes{natural(message.input_bytes(), "input_bytes", place)};
    origin.own_block = Bytes{natural(message.own_block(), "own_block", place)};
    origin.in_switch = message.in_switch();
    return origin;
  }

  // ---- What it computes ---------------------------------------------------------------------------------------------------------------

  void read_computes(const Place& root) {
    if (message_.product_size() > 0 && message_.has_collective()) {
      problem(root.at("collective"), "a schedule computes products or a collective, not both");
      return;
    }
    if (message_.has_reference() && (message_.product_size() > 0 || message_.has_collective())) {
      problem(root.at("reference"), "a schedule computes a reference, or products or a collective, not both");
      return;
    }
    if (message_.product_size() > 0) {
      Products products;
      for (int p = 0; p < message_.product_size(); ++p) products.push_back(read(message_.product(p), root.at("product", p)));
      schedule_.computes = std::move(products);
    } else if (message_.has_collective()) {
      if (message_.program_size() == 0) {
        problem(root.at("collective"), "the regions of this collective are of the first program, but there is none");
        return;
      }
      enter(message_.program(0));
      schedule_.computes = read(message_.collective(), root.at("collective"));
    } else if (message_.has_reference()) {
      schedule_.computes = read_reference(message_.reference(), root.at("reference"), schedule_.mesh, file_);
    }
  }

  Product read(const proto::Product& message, const Place& place) {
    Product product;
    product.out = message.out();
    product.left = message.left();
    product.right = message.right();
    product.m = natural(message.m(), "m", place);
    product.n = natural(message.n(), "n", place);
    product.k = natural(message.k(), "k", place);
    const Checked m = product.m, n = product.n, k = product.k, bytes = 4;
    if (!(m * n * bytes).ok() || !(m * k * bytes).ok() || !(n * k * bytes).ok()) problem(place, "a matrix of this product has more than 2^62 bytes");
    product.transpose_left = message.transpose_left();
    product.transpose_right = message.transpose_right();
    return product;
  }

  std::string name_;
  proto::Schedule message_;
  MessageFile file_;
  Schedule schedule_;
  int buffer_count_ = 0, task_count_ = 0;  // of the program that is being read
  Names buffers_, labels_;  // of that program
  std::map<std::string, int> functions_;
};

}  // namespace

Expected<Schedule> read_schedule(std::string_view bytes, const std::string& file) { return ScheduleReader{file}.read(bytes); }

}  // namespace podsim
