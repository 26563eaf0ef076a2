// Random small schedules, for property tests of several folders. All are well-shaped; they may be unmatched, race or deadlock.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim::testing {

struct RandomScheduleOptions {
  bool exchanges = true;     // Send and Recv, which may deadlock through the cores' program order
  bool careless = true;      // guards may disagree, shifts may leave open axes, regions their buffers
  double edge_chance = 0.7;  // of an edge to each earlier task: near 1 there is no race
  bool guards = true;
  std::vector<MeshAxis> axes{};  // none: one or two, of 1 to 4 devices
  int most_tasks = 9;
  bool far = false;        // shifts as far as half round an axis, Sends along all axes at once; else neighbours, mostly
  std::int64_t scale = 1;  // regions of 2 x 2 elements become 2 scale x 2 scale
  bool every_kind = false;  // buffers of every dtype, moves between them, and the Locals of transforms, factorisations, rows that are picked and training
};
inline constexpr auto first_random_kind = static_cast<std::size_t>(LocalKind::fft);  // of those, to the last of the table

class RandomScheduleWriter {
 public:
  RandomScheduleWriter(std::uint64_t seed, const RandomScheduleOptions& options) : rng_{seed, stream_of("schedule")}, options_{options}, w_{axes()} {}

  Schedule write() {
    for (int b = 0, count = rng_.between(1, 3); b < count; ++b) w_.scratch(std::string(1, static_cast<char>('a' + b)), {6 * options_.scale, 6 * options_.scale});
    if (options_.every_kind) {
      for (const DType dtype : {DType::f32, DType::c64, DType::c64, DType::s32, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::s8})
        w_.scratch("of " + std::string{name_of(dtype)} + std::to_string(w_.now().buffers.size()), {6 * options_.scale, 6 * options_.scale}, dtype);
      w_.scratch("blocks", {4, 3 * options_.scale, 6 * options_.scale});
    }
    for (int t = 0, count = rng_.between(1, options_.most_tasks); t < count; ++t) {
      const std::string label = "t" + std::to_string(t);
      if (options_.every_kind && chance(0.6)) {
        local(label);
        continue;
      }
      switch (rng_.below(options_.exchanges ? 6 : 4)) {
        case 0: matmul(label); break;
        case 1: copy_of(label); break;
        case 2:
        case 3: move(label); break;
        default: exchange(label); break;
      }
    }
    for (; !receives_.empty(); receives_.erase(receives_.begin())) add_receive(receives_.front());
    return std::move(w_.schedule);
  }

 private:
  struct Receive {
    Recv op;
    Guard where;
  };

  std::vector<MeshAxis> axes() {
    if (!options_.axes.empty()) return options_.axes;
    std::vector<MeshAxis> result;
    for (int a = 0, count = rng_.between(1, 2); a < count; ++a)
      result.push_back({std::string(1, static_cast<char>('x' + a)), rng_.between(1, 4), rng_.below(2) == 0});
    return result;
  }
  bool chance(double part) { return rng_.uniform() < part; }
  AxisView axis() { return w_.axis(static_cast<int>(rng_.below(w_.schedule.mesh.axes().size()))); }

  /// 2 x 2 elements, times the scale; block indices may be affine.
  Region region(DType dtype = DType::f32) {
    const std::int64_t s = options_.scale;
    std::vector<int> buffers;
    for (std::size_t b = 0; b < w_.now().buffers.size(); ++b)
      if (w_.now().buffers[b].dtype == dtype && w_.now().buffers[b].extents.size() == 2) buffers.push_back(static_cast<int>(b));
    Region result{BufferId{buffers[rng_.below(buffers.size())]}, {}};
    for (int d = 0; d < 2; ++d) {
      const AxisView view = axis();
      const bool out = options_.careless && chance(0.005);
      if (chance(0.3))
        result.dims.push_back(block(Affine{{AxisTerm{view, 1}}, rng_.between(-2, 2), 3}, 2 * s));
      else
        result.dims.push_back(span(s * (out ? 5 : rng_.between(0, 4)), 2 * s));
    }
    return result;
  }

  DType any_dtype() { return options_.every_kind ? static_cast<DType>(rng_.below(dtype_count)) : DType::f32; }

  Guard guard() {
    if (!options_.guards || !chance(0.3)) return {};
    const AxisView view = axis();
    const int low = rng_.between(0, view.size - 1);
    return between(view, low, rng_.between(low + 1, view.size));
  }

  std::vector<Edge> edges(const Op& op) {
    std::vector<Edge> result;
    const auto& tasks = w_.now().tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (chance(options_.edge_chance)) result.push_back({TaskId{t}, half_of(tasks[t].op), half_of(op)});
    return result;
  }
  /// Both, or now and then one that the operation has.
  Half half_of(const Op& op) {
    if (chance(0.7)) return Half::both;
    if (std::holds_alternative<Shift>(op)) return chance(0.5) ? Half::send : Half::receive;
    if (std::holds_alternative<Send>(op)) return Half::send;
    if (std::holds_alternative<Recv>(op)) return Half::receive;
    return Half::both;
  }
  void add(const std::string& label, Op op, Guard where) {
    std::vector<Edge> after = edges(op);
    w_.add(label, std::move(op), std::move(after), std::move(where));
  }

  void matmul(const std::string& label) { add(label, Matmul{region(), region(), region(), 1, 1, 1, chance(0.3), chance(0.3), chance(0.3)}, guard()); }
  void copy_of(const std::string& label) {
    const DType dtype = any_dtype();
    add(label, copy(region(dtype), region(dtype), chance(0.7) ? Unit::core : Unit::dma), guard());
  }

  void move(const std::string& label) {
    const AxisView view = axis();
    const int farthest = options_.far ? std::max(1, view.size / 2) : 2;
    Affine by{rng_.between(-farthest, farthest)};
    if (w_.schedule.mesh.axes().size() == 2 && w_.schedule.mesh.wraps(view) && chance(0.3))
      by = Affine{{AxisTerm{w_.axis(1 - view.axis), chance(0.5) ? 1 : -1}}, rng_.between(-1, 1)};
    Guard where = guard();
    const bool by_dimension = !w_.schedule.mesh.axes()[static_cast<std::size_t>(view.axis)].factors.empty() && by.terms.empty() && chance(0.25);
    if (!by_dimension && !w_.schedule.mesh.wraps(view) && !(options_.careless && chance(0.03))) {
      const std::int64_t distance = by.constant;  // an open axis: only devices that have a partner
      for (const Condition& condition : between(view, std::max<std::int64_t>(0, -distance), view.size - std::max<std::int64_t>(0, distance)))
        where.push_back(condition);
    }
    const DType dtype = any_dtype();
    Shift op = shift(view, std::move(by), region(dtype), region(dtype), chance(0.3) ? (chance(0.3) ? Combine::maximum : Combine::add) : Combine::replace);
    op.by_dimension = by_dimension;
    add(label, std::move(op), std::move(where));
  }

  /// A Local of one of the kinds from first_random_kind on. Those that pick rows get an index that names some, made right before.
  void local(const std::string& label) {
    const std::int64_t n = 2 * options_.scale;
    Local op;
    op.kind = static_cast<LocalKind>(first_random_kind + rng_.below(local_kind_count - first_random_kind));
    op.unit = chance(0.7) ? Unit::core : Unit::dma;
    const Guard where = guard();
    const DType real = chance(0.8) ? DType::f32 : DType::bf16;
    switch (op.kind) {
      case LocalKind::fft:
      case LocalKind::ifft:
        op.dims = {rng_.between(0, 1), rng_.between(0, 1)};
        op.reads = {region(chance(0.5) ? DType::f32 : DType::c64)}, op.writes = {region(DType::c64)};
        break;
      case LocalKind::twiddle:
        op.dims = chance(0.5) ? std::array{0, 1} : std::array{1, 0};
        op.factor = (chance(0.5) ? 1 : -1) * rng_.between(1, 100);
        op.numbering = {numbering(), numbering()};
        op.reads = {region(DType::c64)}, op.writes = {region(DType::c64)};
        break;
      case LocalKind::iota:
        op.numbering = {numbering()};
        op.writes = {region(chance(0.5) ? DType::s32 : real)};
        break;
      case LocalKind::getrf_panel: op.reads = {region()}, op.writes = {region(), index(3, n)}; break;
      case LocalKind::lower_triangle:
      case LocalKind::upper_triangle:
        op.numbering = {numbering(), numbering()};
        op.reads = {region(real)}, op.writes = {region(real)};
        break;
      case LocalKind::gather_rows:
      case LocalKind::scatter_rows:
      case LocalKind::swap_rows: return pick(label, std::move(op), where);
      case LocalKind::pack_blocks:
      case LocalKind::unpack_blocks: {
        op.dims = {rng_.between(0, 1), rng_.between(0, 1)};
        const bool packs = op.kind == LocalKind::pack_blocks;
        const bool rows = op.dims[packs ? 0 : 1] == 0;
        Region blocks{BufferId{0}, {span(rng_.between(0, 2), 2), span(0, rows ? n / 2 : n), span(rng_.between(0, 2), rows ? n : n / 2)}};
        for (const Buffer& buffer : w_.now().buffers)
          if (buffer.extents.size() == 3) blocks.buffer = BufferId{static_cast<int>(&buffer - w_.now().buffers.data())};
        op.reads = {packs ? region() : blocks}, op.writes = {packs ? blocks : region()};
        break;
      }
      case LocalKind::convert:
      case LocalKind::mean_square:
      case LocalKind::mean_square_grad:
      case LocalKind::softmax_statistics:
      case LocalKind::cross_entropy:
      case LocalKind::cross_entropy_grad:
      case LocalKind::add_rows:
      case LocalKind::one_hot:
      case LocalKind::sgd:
      case LocalKind::adamw: return train(label, std::move(op), where);
      case LocalKind::opaque:  // without results, so that it can be executed
        op.reads = {region(any_dtype()), region(any_dtype())};
        op.opaque = {Flops{static_cast<double>(rng_.between(0, 1000))}, Flops{static_cast<double>(rng_.between(0, 100))}, real, {}, {}};
        if (chance(0.5)) op.opaque.bytes = Bytes{rng_.between(0, 1000)};
        if (chance(0.5)) op.opaque.time = Seconds{1e-9 * rng_.between(0, 1000)};
        break;
      default: op.reads = {region(), region()}, op.writes = {region()}; break;  // triangular solves, systems
    }
    add(label, std::move(op), where);
  }

  void pick(const std::string& label, Local op, const Guard& where) {
    const std::int64_t n = 2 * options_.scale;
    const bool swaps = op.kind == LocalKind::swap_rows;
    const DType dtype = any_dtype();
    const Region named = index(1, swaps ? n / 2 : n);
    Local iota{LocalKind::iota, {}, {named}};
    iota.numbering = {swaps ? Numbering{n / 2} : numbering()};
    add(label + " index", iota, where);
    const TaskId made{w_.now().tasks.size() - 1};
    if (!swaps) op.numbering = {numbering()}, op.factor = 1 << 20;
    op.reads = {region(dtype)};
    if (op.kind == LocalKind::scatter_rows) op.reads.push_back(region(dtype));
    op.reads.push_back(named);
    op.writes = {region(dtype)};
    std::vector<Edge> after = edges(op);
    after.push_back({made, Half::both, Half::both});
    w_.add(label, std::move(op), std::move(after), where);
  }

  /// Losses and optimisers. Targets and squares are made right before.
  void train(const std::string& label, Local op, const Guard& where) {
    const std::int64_t n = 2 * options_.scale;
    const DType real = chance(0.5) ? DType::f32 : DType::bf16;
    std::vector<Edge> made;
    const auto make = [&](const std::string& what, Local first) {
      add(label + what, std::move(first), where);
      made.push_back({TaskId{w_.now().tasks.size() - 1}, Half::both, Half::both});
    };
    const auto square = [&](const Region& of) { make(" squares", Local{LocalKind::multiply, {of, of}, {of}}); };
    op.factor = rng_.between(1, 9);
    op.optimiser = {0.125, 0.5, 0.75, 0.0625, chance(0.5) ? 0 : 0.25, rng_.between(1, 4)};
    op.features_first = chance(0.5);
    op.classes = 4 * n;
    op.reads = {region(real)};
    switch (op.kind) {
      case LocalKind::convert: op.writes = {region(chance(0.5) ? DType::f32 : DType::bf16)}; break;
      case LocalKind::mean_square: op.reads.push_back(region(real)), op.writes = {box(DType::f32, 1, 1)}; break;
      case LocalKind::mean_square_grad: op.reads.push_back(region(real)), op.writes = {region(real)}; break;
      case LocalKind::softmax_statistics:
        op.classes = rng_.between(1, 4 * static_cast<int>(n));
        op.numbering = {numbering()}, op.writes = {box(DType::f32, n, 2)};
        break;
      case LocalKind::cross_entropy:
      case LocalKind::cross_entropy_grad: {
        Region statistics{BufferId{0}, {span(0, 4), span(rng_.between(0, static_cast<int>(options_.scale)), n), span(rng_.between(0, 4) * options_.scale, 2)}};
        for (const Buffer& buffer : w_.now().buffers)
          if (buffer.extents.size() == 3) statistics.buffer = BufferId{static_cast<int>(&buffer - w_.now().buffers.data())};
        const Region targets = index(1, n);
        Local iota{LocalKind::iota, {}, {targets}};
        iota.numbering = {numbering()};
        make(" targets", std::move(iota)), square(statistics);
        op.numbering = {numbering()};
        op.reads.push_back(statistics), op.reads.push_back(targets);
        op.writes = {op.kind == LocalKind::cross_entropy ? box(DType::f32, 1, 1) : chance(0.5) ? op.reads[0] : region(real)};
        break;
      }
      case LocalKind::add_rows: {
        Local iota{LocalKind::iota, {}, {index(1, n)}};
        iota.numbering = {numbering()};
        op.reads.push_back(iota.writes[0]), op.writes = {region(chance(0.5) ? DType::f32 : DType::bf16)};
        op.numbering = {numbering()}, op.factor = 1 << 20;
        make(" index", std::move(iota));
        break;
      }
      case LocalKind::one_hot: {
        Local iota{LocalKind::iota, {}, {index(1, n)}};
        iota.numbering = {numbering()};
        op.reads = {iota.writes[0]}, op.writes = {region(real)};
        op.numbering = {numbering()}, op.factor = 1 << 20;
        make(" index", std::move(iota));
        break;
      }
      default:  // optimisers
        op.reads.push_back(region(chance(0.5) ? DType::f32 : DType::bf16));
        op.writes = {chance(0.7) ? op.reads[0] : region(real)};
        if (op.kind == LocalKind::sgd) break;
        for (int moment = 0; moment < 2; ++moment) op.reads.push_back(region()), op.writes.push_back(chance(0.7) ? op.reads.back() : region());
        square(op.reads.back());
        break;
    }
    std::vector<Edge> after = edges(op);
    after.insert(after.end(), made.begin(), made.end());
    w_.add(label, std::move(op), std::move(after), where);
  }

  Numbering numbering() { return {own(axis()), rng_.between(0, 2), rng_.between(1, 3)}; }
  Region index(std::int64_t rows, std::int64_t columns) { return box(DType::s32, rows, columns); }
  Region box(DType dtype, std::int64_t rows, std::int64_t columns) {
    Region result = region(dtype);
    result.dims = {span(rng_.between(0, 3), rows), span(rng_.between(0, 4) * options_.scale, columns)};
    return result;
  }

  /// A Send along an axis (unless `far`, others keep their coordinates), with its Recv some time before or after it.
  void exchange(const std::string& label) {
    const AxisView view = axis();
    const int by = rng_.between(1, std::max(1, view.size - 1));
    if (view.size == 1) return copy_of(label);
    Peer to, from;
    for (int a = 0; a < static_cast<int>(w_.schedule.mesh.axes().size()); ++a) {
      const int along = a == view.axis ? by : options_.far ? rng_.between(0, w_.axis(a).size - 1) : 0;
      to.push_back(own(w_.axis(a), along));
      from.push_back(own(w_.axis(a), -along));
    }
    const int channel = rng_.between(0, 1);
    const DType dtype = options_.every_kind ? static_cast<DType>(channel) : DType::f32;  // the same for all of a channel
    const Region source = region(dtype);
    Receive receive{{channel, from, region(dtype), chance(0.2) ? Combine::add : Combine::replace}, {}};
    const bool first = chance(0.5);
    if (first) add_receive(receive);
    add(label, Send{channel, to, source, {}}, options_.careless && chance(0.05) ? guard() : Guard{});
    if (first) return;
    if (chance(0.5))
      add_receive(receive);
    else
      receives_.push_back(receive);
  }
  void add_receive(const Receive& receive) { add("r", receive.op, options_.careless && chance(0.05) ? guard() : receive.where); }

  Rng rng_;
  RandomScheduleOptions options_;
  Writer w_;
  std::vector<Receive> receives_;  // still to come
};

inline Schedule random_schedule(std::uint64_t seed, const RandomScheduleOptions& options = {}) { return RandomScheduleWriter{seed, options}.write(); }

}  // namespace podsim::testing
