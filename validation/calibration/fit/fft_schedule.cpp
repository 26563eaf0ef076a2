#include "validation/calibration/fit/fft_schedule.hpp"

#include <array>

#include "sim/base/invariant.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

using Axes = std::vector<AxisView>;

/// Writes one pass after the other; each reads what the one before it wrote.
class XlaFft {
 public:
  XlaFft(const Mesh& mesh, const Observation& observation) : builder_{mesh, every_device(mesh)}, inverse_{observation.op == ObservedOp::ifft}, n_{observation.points} {}

  Schedule write(const Axes& x, const Axes& y) && {
    const std::int64_t a = n_ / devices(x), b = n_ / devices(y);
    now_ = builder_.whole(builder_.add_buffer(sharded_buffer("X", inverse_ ? DType::c64 : DType::f32, Role::input, {{n_, x}, {n_, y}, {n_, {}}})));
    y_ = builder_.whole(builder_.add_buffer(sharded_buffer("Y", DType::c64, Role::output, {{n_, x}, {n_, y}, {n_, {}}})));
    if (!inverse_) convert();
    transform(false);
    to_front(y, a, b);
    transform(false);
    to_front(x, n_ / devices(y), a);
    transform(true);
    ReferenceProgram claim;
    const Extents extents(3, n_);
    claim.nodes.push_back({.kind = ReferenceKind::input, .extents = extents, .tensor = "X", .complex = inverse_});
    claim.nodes.push_back({.kind = ReferenceKind::fft, .operands = {0}, .extents = extents, .dims = {0, 1, 2}, .inverse = inverse_, .complex = true});
    claim.nodes.push_back({.kind = ReferenceKind::transpose, .operands = {1}, .extents = extents, .permutation = {1, 2, 0}, .complex = true});
    claim.outputs = {{"Y", 2}};
    Schedule schedule{inverse_ ? "ifft" : "fft", builder_.mesh(), {}, std::move(claim)};
    schedule.programs.push_back(std::move(builder_).finish());
    return schedule;
  }

 private:
  static std::int64_t devices(const Axes& axes) {
    std::int64_t count = 1;
    for (const AxisView& axis : axes) count *= axis.size;
    return count;
  }

  void pass(const std::string& label, LocalKind kind, const Region& to, std::array<int, 2> dims = {}) {
    Local local{.kind = kind, .reads = {now_}, .writes = {to}, .dims = dims};
    local.features_first = kind == LocalKind::transpose;  // the last dimension comes to the front
    ready_ = {builder_.add(label, std::move(local), ready_)};
    now_ = to;
  }
  Region room(const std::string& name, Extents extents) { return builder_.scratch(name, std::move(extents), DType::c64); }

  /// FFTs of one point: real numbers become complex ones.
  void convert() {
    const Region as_columns = builder_.scratch("real", append_one(lengths_of(now_)), DType::f32), complex = room("converted", append_one(lengths_of(now_)));
    const Extents extents = lengths_of(now_);
    ready_ = {builder_.alias("view", now_, as_columns, ready_)};
    now_ = as_columns;
    pass("convert", LocalKind::fft, complex, {3, 3});
    const Region view = room("complex", extents);
    ready_ = {builder_.alias("view", now_, view, ready_)};
    now_ = view;
  }
  static Extents append_one(Extents extents) {
    extents.push_back(1);
    return extents;
  }

  void transform(bool last) {
    const Region to = last ? y_ : room("transformed", lengths_of(now_));
    pass(inverse_ ? "ifft" : "fft", inverse_ ? LocalKind::ifft : LocalKind::fft, to, {2, 2});
    if (inverse_) pass("scale", LocalKind::scale, to);
  }

  /// [a, b, n] divided by `axes` along b -> [n / devices, a, all of b].
  void to_front(const Axes& axes, std::int64_t a, std::int64_t b) {
    const std::int64_t P = devices(axes), c = n_ / P;
    pass("transpose", LocalKind::transpose, room("transposed", {n_, a, b}));
    if (P == 1) return;
    const Region received = room("received", {P, c, a, b});
    ready_ = {builder_.add("all-to-all", Collective{CollectiveKind::all_to_all, axes, now_, received, 0, 0, 0, {}}, ready_)};
    now_ = received;
    pass("put together", LocalKind::unpack_blocks, room("together", {c, a, n_}), {0, 2});
  }

  ProgramBuilder builder_;
  bool inverse_;
  std::int64_t n_;
  Region now_, y_;
  Tasks ready_;
};

}  // namespace

MeshSizes fft_mesh(const Observation& observation, const Slice& slice) {
  const int nodes = slice.extents.size() > 1 ? slice.extents.front() : 1;
  if (nodes > 1 && (observation.mesh[0] == 1 || observation.mesh[1] == 1)) return {{"node", nodes}, {"gpu", observation.devices / nodes}};
  return {{"x", observation.mesh[0]}, {"y", observation.mesh[1]}};
}

Expected<Schedule> fft_schedule(const Observation& observation, const Mesh& mesh) {
  PODSIM_ASSERT(is_fft(observation) && observation.mesh.size() == 2);
  const auto named = [&](std::initializer_list<std::string_view> names) {
    Axes axes;
    for (const std::string_view name : names)
      if (const auto axis = mesh.axis(name); axis && axis->size > 1) axes.push_back(*axis);
    return axes;
  };
  const Axes whole = named({"node", "gpu"});
  const Axes x = whole.empty() ? named({"x"}) : observation.mesh[0] > 1 ? whole : Axes{};
  const Axes y = whole.empty() ? named({"y"}) : observation.mesh[1] > 1 ? whole : Axes{};
  std::int64_t devices = 1;
  for (const Axes& axes : {x, y})
    for (const AxisView& axis : axes) devices *= axis.size;
  if (devices != observation.devices) return Diagnostic{observation.where, "an FFT needs the slice that it ran on: the column slice"};
  return XlaFft{mesh, observation}.write(x, y);
}

}  // namespace podsim
