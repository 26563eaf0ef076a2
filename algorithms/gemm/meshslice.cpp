#include <fmt/format.h>

#include <algorithm>

#include "algorithms/gemm/gemm.hpp"

namespace podsim {

namespace {

/// A matrix as one device holds it, its moving dimension viewed as [L/(S.B), S, B] when it is sliced.
struct Operand {
  BufferId buffer;
  std::vector<std::int64_t> extents;  // local
  int moving = -1;                    // first dimension of the view; -1: not sliced
  std::int64_t slices = 1;

  /// All of the matrix, or slice s of it.
  [[nodiscard]] Region slice(std::int64_t s) const {
    Region region{buffer, {}};
    for (std::size_t i = 0; i < extents.size(); ++i)
      region.dims.push_back(slices > 1 && static_cast<int>(i) == moving + 1 ? span(s, 1) : all(extents[i]));
    return region;
  }
};

/// A scratch buffer of several slots that holds what is gathered, or what is still to be scattered: [slots, ..., P, ...].
struct Gathered {
  BufferId buffer;
  std::vector<std::int64_t> extents;
  int blocks = 1;  // the dimension of P blocks
  AxisView axis;

  [[nodiscard]] Region slot(std::int64_t s) const {
    Region region{buffer, {span(s % extents[0], 1)}};
    for (std::size_t i = 1; i < extents.size(); ++i) region.dims.push_back(all(extents[i]));
    return region;
  }
  [[nodiscard]] Region own_block(std::int64_t s) const {
    Region region = slot(s);
    region.dims[static_cast<std::size_t>(blocks)] = block(own(axis), 1);
    return region;
  }
};

/// Writes the schedule of one GEMM. The three dataflows differ in which operand stands still; the pieces are the same.
class MeshSlice {
 public:
  MeshSlice(const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options)
      : problem_{problem}, row_{mesh.whole(0)}, col_{mesh.whole(1)}, S_{options.slice_count}, B_{options.block}, p_{options.prefetch},
        copies_{options.slice_copies && options.slice_count > 1}, slots_{std::min<std::int64_t>(p_ + 1, S_)} {
    schedule_.mesh = mesh;
    schedule_.programs.push_back({every_device(mesh), {}, {}});
    schedule_.computes = Products{{"Y", "X", "W", problem.m, problem.n, problem.k, problem.dataflow == Dataflow::rs, problem.dataflow == Dataflow::ls}};
  }

  Schedule write(std::string name) && {
    schedule_.name = std::move(name);
    switch (problem_.dataflow) {
      case Dataflow::os: write_os(); break;
      case Dataflow::ls: write_ls(); break;
      case Dataflow::rs: write_rs(); break;
    }
    return std::move(schedule_);
  }

 private:
  using Tasks = std::vector<TaskId>;

  Program& program() { return schedule_.programs.front(); }

  TaskId add(std::string label, Op op, const Tasks& after) {
    Task task{std::move(label), std::move(op), {}, {}, {}};
    for (const TaskId earlier : after) task.after.push_back(Edge{earlier});
    program().tasks.push_back(std::move(task));
    return TaskId{program().tasks.size() - 1};
  }
  [[nodiscard]] std::string label(std::string_view what, std::int64_t s) const { return S_ == 1 ? std::string{what} : fmt::format("{} s{}", what, s); }

  /// A matrix [rows, columns] sharded P(row, col); `moving` is the dimension cut into slices, -1 for none.
  Operand matrix(const std::string& tensor, Role role, std::int64_t rows, std::int64_t columns, int moving) {
    Buffer buffer{tensor, {}, problem_.dtype, role, tensor, {}};
    const std::int64_t local[] = {rows / row_.size, columns / col_.size};
    const AxisView axes[] = {row_, col_};
    for (int d = 0; d < 2; ++d) {
      if (d == moving && S_ > 1) {
        buffer.extents.insert(buffer.extents.end(), {local[d] / (S_ * B_), S_, B_});
        buffer.sharding.insert(buffer.sharding.end(), {{axes[d]}, {}, {}});
      } else {
        buffer.extents.push_back(local[d]);
        buffer.sharding.push_back({axes[d]});
      }
    }
    Operand operand{BufferId{program().buffers.size()}, buffer.extents, moving, moving < 0 ? 1 : S_};
    program().buffers.push_back(std::move(buffer));
    return operand;
  }

  Gathered gathered(const std::string& name, std::vector<std::int64_t> extents, int blocks, AxisView axis) {
    extents.insert(extents.begin(), slots_);
    Gathered result{BufferId{program().buffers.size()}, extents, blocks + 1, axis};
    program().buffers.push_back({name, std::move(extents), problem_.dtype, Role::scratch, {}, {}});
    return result;
  }

  /// The gather of slice s of an operand, cut before it where cuts are copies. `slot_free`: what must be over before the slot is written.
  TaskId gather(const std::string& tensor, const Operand& from, const Gathered& to, std::int64_t s, const Tasks& slot_free) {
    Region input = from.slice(s);
    Tasks after = slot_free;
    if (copies_) {
      after = {add(label("cut " + tensor, s), Local{LocalKind::copy, {std::move(input)}, {to.own_block(s)}, 1, Unit::core}, slot_free)};
      input = to.own_block(s);
    }
    return add(label("gather " + tensor, s), Collective{CollectiveKind::all_gather, {to.axis}, std::move(input), to.slot(s), to.blocks, 0, 0}, after);
  }

  [[nodiscard]] Tasks one_of(const Tasks& tasks, std::int64_t s) const { return s < 0 ? Tasks{} : Tasks{tasks[static_cast<std::size_t>(s)]}; }

  /// Runs `ahead(s)` p slices before `now(s)`.
  template <class Ahead, class Now>
  void pipeline(Ahead&& ahead, Now&& now) {
    for (std::int64_t s = 0; s < std::min<std::int64_t>(p_, S_); ++s) ahead(s);
    for (std::int64_t s = 0; s < S_; ++s) {
      if (s + p_ < S_) ahead(s + p_);
      now(s);
    }
  }

  void write_os() {
    const auto [m, n, k, dtype, dataflow] = problem_;
    const Operand X = matrix("X", Role::input, m, k, 1), W = matrix("W", Role::input, k, n, 0), Y = matrix("Y", Role::output, m, n, -1);
    const Gathered Xg = gathered("X gathered", {m / row_.size, col_.size, k / (col_.size * S_)}, 1, col_);
    const Gathered Wg = gathered("W gathered", {row_.size, k / (row_.size * S_), n / col_.size}, 0, row_);
    Tasks gathers_X, gathers_W, matmuls;
    pipeline(
        [&](std::int64_t s) {
          gathers_X.push_back(gather("X", X, Xg, s, one_of(matmuls, s - p_ - 1)));
          gathers_W.push_back(gather("W", W, Wg, s, one_of(matmuls, s - p_ - 1)));
        },
        [&](std::int64_t s) {
          Tasks after{gathers_X[static_cast<std::size_t>(s)], gathers_W[static_cast<std::size_t>(s)]};
          if (s > 0) after.push_back(matmuls.back());
          matmuls.push_back(add(label("matmul", s), Matmul{Xg.slot(s), Wg.slot(s), Y.slice(0), 2, 3, 1, false, false, s > 0}, after));
        });
  }

  void write_ls() {
    const auto [m, n, k, dtype, dataflow] = problem_;
    const Operand X = matrix("X", Role::input, m, k, -1), W = matrix("W", Role::input, n, k, 0), Y = matrix("Y", Role::output, m, n, 1);
    const Gathered Wg = gathered("W gathered", {row_.size, n / (row_.size * S_), k / col_.size}, 0, row_);
    const Gathered sums = gathered("Y partial", {m / row_.size, col_.size, n / (col_.size * S_)}, 1, col_);
    reduce_slices("W", W, Wg, sums, Y, [&](std::int64_t s) { return Matmul{X.slice(0), Wg.slot(s), sums.slot(s), 1, 3, 2, false, true, false}; });
  }

  void write_rs() {
    const auto [m, n, k, dtype, dataflow] = problem_;
    const Operand X = matrix("X", Role::input, k, m, 1), W = matrix("W", Role::input, k, n, -1), Y = matrix("Y", Role::output, m, n, 0);
    const Gathered Xg = gathered("X gathered", {k / row_.size, col_.size, m / (col_.size * S_)}, 1, col_);
    const Gathered sums = gathered("Y partial", {row_.size, m / (row_.size * S_), n / col_.size}, 0, row_);
    reduce_slices("X", X, Xg, sums, Y, [&](std::int64_t s) { return Matmul{Xg.slot(s), W.slice(0), sums.slot(s), 2, 1, 3, true, false, false}; });
  }

  /// LS and RS: gather one operand, multiply into partial sums, scatter these into a slice of Y.
  template <class Product>
  void reduce_slices(const std::string& tensor, const Operand& from, const Gathered& to, const Gathered& sums, const Operand& Y, Product&& product) {
    Tasks gathers, matmuls, out;  // out: slice s of Y is in its place, its partial sums are free
    std::vector<TaskId> scatters;
    const auto copy_out = [&](std::int64_t s) {
      out.push_back(add(label("join Y", s), Local{LocalKind::copy, {sums.own_block(s)}, {Y.slice(s)}, 1, Unit::core}, {scatters[static_cast<std::size_t>(s)]}));
    };
    pipeline([&](std::int64_t s) { gathers.push_back(gather(tensor, from, to, s, one_of(matmuls, s - p_ - 1))); },
             [&](std::int64_t s) {
               Tasks after{gathers[static_cast<std::size_t>(s)]};
               if (s > p_) after.push_back(out[static_cast<std::size_t>(s - p_ - 1)]);
               matmuls.push_back(add(label("matmul", s), product(s), after));
               const Region output = copies_ ? sums.own_block(s) : Y.slice(s);
               scatters.push_back(add(label("reduce Y", s), Collective{CollectiveKind::reduce_scatter, {sums.axis}, sums.slot(s), output, sums.blocks, 0, 0},
                                      {matmuls.back()}));
               if (!copies_)
                 out.push_back(scatters.back());
               else if (s >= p_)
                 copy_out(s - p_);
             });
    if (copies_)
      for (std::int64_t s = std::max<std::int64_t>(S_ - p_, 0); s < S_; ++s) copy_out(s);
  }

  GemmProblem problem_;
  AxisView row_, col_;
  std::int64_t S_, B_;
  std::int64_t p_;
  bool copies_;
  std::int64_t slots_;
  Schedule schedule_;
};

}  // namespace

Expected<Schedule> meshslice_gemm(const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options) {
  const auto multiples = required_multiples(mesh, problem.dataflow, options.slice_count, options.block);
  if (!multiples) return multiples.error();
  if (options.prefetch < 0 || options.prefetch > 1024) return Diagnostic{{}, fmt::format("the prefetch depth must be 0 to 1024, found {}", options.prefetch)};
  const auto divides = [&](std::string_view name, std::int64_t extent, std::int64_t multiple) -> Done {
    if (extent >= 1 && extent % multiple == 0) return done();
    return Diagnostic{{}, fmt::format("{} must be a positive multiple of {} ({} on {}, S={}, B={}), found {}; --pad rounds it up", name, multiple,
                                      name_of(problem.dataflow), to_text(mesh), options.slice_count, options.block, extent)};
  };
  for (const Done& ok : {divides("m", problem.m, multiples->m), divides("n", problem.n, multiples->n), divides("k", problem.k, multiples->k)})
    if (!ok) return ok.error();
  const std::string name = options.slice_count == 1 ? fmt::format("collective {}", name_of(problem.dataflow))
                                                    : fmt::format("meshslice {} S={}", name_of(problem.dataflow), options.slice_count);
  return MeshSlice{mesh, problem, options}.write(name);
}

Expected<Schedule> collective_gemm(const Mesh& mesh, const GemmProblem& problem) {
  return meshslice_gemm(mesh, problem, {1, 8, 1, false});
}

}  // namespace podsim
