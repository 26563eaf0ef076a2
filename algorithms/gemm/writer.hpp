// Writing GEMMs into one SPMD program: matrices and their blocks, slots of scratch, tasks and what they wait for. Shared by the algorithms.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/gemm/gemm.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// A scratch buffer of several slots, used in turn: slot i is [i mod slots].
struct Slots {
  BufferId buffer;
  std::vector<std::int64_t> extents;  // extents[0] slots

  [[nodiscard]] std::int64_t count() const { return extents[0]; }
  /// All of slot i; its first dimension has length 1.
  [[nodiscard]] Region slot(std::int64_t i) const;
};

class GemmWriter {
 public:
  GemmWriter(const Mesh& mesh, AxisView row, AxisView col, DType dtype);

  /// What the next GEMM's operands are called, what its labels begin with, and what all of it waits for.
  struct Names {
    std::string out = "Y", left = "X", right = "W";
    std::string prefix{};
  };
  void begin(const GemmProblem& problem, Names names, Tasks start);

  [[nodiscard]] const AxisView& row() const { return row_; }
  [[nodiscard]] const AxisView& col() const { return col_; }
  [[nodiscard]] const Names& names() const { return names_; }

  /// A matrix [rows, columns], sharded P(row, col) unless said otherwise, as one device holds it. A tensor that an earlier GEMM of the program
  /// has is the same buffer. `view` replaces a dimension by several (a view of slices): {dimension, extents}.
  struct View {
    std::size_t dim = 0;
    std::vector<std::int64_t> extents;
  };
  Region left(std::int64_t rows, std::int64_t columns, const View* view = nullptr);
  Region right(std::int64_t rows, std::int64_t columns, const View* view = nullptr);
  Region out(std::int64_t rows, std::int64_t columns, const View* view = nullptr);
  Region matrix(const std::string& tensor, Role role, std::int64_t rows, std::int64_t columns, std::vector<AxisView> row_axes,
                std::vector<AxisView> column_axes, const View* view = nullptr);

  Region scratch(const std::string& name, std::vector<std::int64_t> extents);
  Slots slots(const std::string& name, std::int64_t count, std::vector<std::int64_t> extents);

  TaskId add(std::string label, Op op, std::vector<Edge> after, Guard where = {});
  TaskId add(std::string label, Op op, const Tasks& after, Guard where = {});
  /// A copy that is free in time: data that a real kernel reads where it is.
  TaskId place(std::string label, Region from, Region to, const Tasks& after, Guard where = {});
  TaskId collective(std::string label, CollectiveKind kind, const AxisView& axis, Region input, Region output, int dim, const Tasks& after,
                    std::int64_t root = 0);

  /// The tasks that nothing waits for yet.
  [[nodiscard]] Tasks last_tasks() const;

  Schedule finish(std::string name) &&;

 private:
  Program& program() { return schedule_.programs.front(); }

  AxisView row_, col_;
  DType dtype_;
  Names names_;
  Tasks start_;
  Schedule schedule_;
};

/// `what s3`, or `what` when there is one only.
std::string step_label(std::string_view what, std::int64_t step, std::int64_t steps);

// The algorithms, each in its source file.
void write_meshslice(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
void write_collective(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
void write_summa(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
void write_cannon(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
/// How a collective matmul goes round its ring.
enum class WangStyle {
  both_ways,     // half-blocks in opposite directions, one matmul per hop on both halves
  one_way,       // whole blocks: operands to +1, accumulators to -1
  two_half_dots  // half-blocks in opposite directions, a matmul of its own for each half of an accumulator
};
void write_wang(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options, WangStyle style);
/// tp-ag: rows of X are gathered, by a Collective without a style.
void write_row_gather(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options, std::optional<WangStyle> style);
void write_megatron(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);

}  // namespace podsim
