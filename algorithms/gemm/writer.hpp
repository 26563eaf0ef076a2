// Writes GEMMs into one SPMD program: matrices and their blocks, scratch slots, products. Used by all GEMM algorithms.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/gemm/gemm.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// A scratch buffer of several slots used in turn: slot i is [i mod slots].
struct Slots {
  BufferId buffer;
  std::vector<std::int64_t> extents;  // extents[0] slots

  [[nodiscard]] std::int64_t count() const { return extents[0]; }
  /// The whole of slot i; its first dimension has length 1.
  [[nodiscard]] Region slot(std::int64_t i) const;
};

/// One device's blocks of the three matrices of a product.
struct Matrices {
  Region left, right, out;
  [[nodiscard]] const Region& of(Operand operand) const { return operand == Operand::left ? left : operand == Operand::right ? right : out; }
};

/// Replaces a matrix of a matmul by a region whose first `split` dimensions are the matrix's rows.
void set_operand(Matmul& matmul, Operand operand, Region region, int split);

class GemmWriter : public ProgramBuilder {
 public:
  /// The submesh must outlive the writer.
  GemmWriter(const Submesh& submesh, DType dtype);

  /// For the next GEMM: the names of its operands, the prefix of its labels, and the tasks that all of it waits for.
  struct Names {
    std::string out = "Y", left = "X", right = "W";
    std::string prefix{};
    [[nodiscard]] const std::string& of(Operand operand) const { return operand == Operand::left ? left : operand == Operand::right ? right : out; }
  };
  void begin(const GemmProblem& problem, Names names, Tasks start);

  [[nodiscard]] const AxisView& rows() const { return submesh_.rows; }
  [[nodiscard]] const AxisView& columns() const { return submesh_.columns; }
  /// The axis that splits dimension 0 (rows) or 1 (columns) of a matrix.
  [[nodiscard]] const AxisView& axis(std::size_t dim) const { return dim == 0 ? rows() : columns(); }
  [[nodiscard]] const DataflowTraits& flow() const { return traits_of(problem_.dataflow); }
  [[nodiscard]] const Names& names() const { return names_; }

  /// One device's block of a matrix, sharded P(rows, columns). A tensor that an earlier GEMM of the program uses is the same buffer. `view` replaces
  /// a dimension by several (a view of slices): {dimension, extents}.
  struct View {
    std::size_t dim = 0;
    std::vector<std::int64_t> extents;
  };
  Region matrix(Operand operand, const View* view = nullptr) { return matrix(operand, {rows()}, {columns()}, view); }
  /// The same, with rows and columns sharded along these axes.
  Region matrix(Operand operand, std::vector<AxisView> row_axes, std::vector<AxisView> column_axes, const View* view = nullptr);
  Matrices matrices();
  /// One device's extents of a matrix.
  [[nodiscard]] std::vector<std::int64_t> local_extents(Operand operand) const;
  /// out (+)= left . right, with the transposes of the dataflow.
  [[nodiscard]] Matmul product(const Matrices& matrices, bool accumulate = false) const;

  /// Room for elements of a matrix.
  Region scratch(const std::string& name, Operand of, std::vector<std::int64_t> extents);
  Slots slots(const std::string& name, Operand of, std::int64_t count, std::vector<std::int64_t> extents);
  TaskId collective(std::string label, CollectiveKind kind, const AxisView& axis, Region input, Region output, int dim, const Tasks& after,
                    std::int64_t root = 0);
  /// Every device (of those where `where` holds, the same along the axis) passes `source` on to the next position along `axis` (sign +1) or to the one
  /// before (-1), around the end. On an open axis that is two tasks, and the device at the end sends over the whole line to its other end; what waits for
  /// the step names both. No device sends or receives in more than one of them.
  Tasks pass_on(const std::string& label, const AxisView& axis, int sign, const Region& source, const Region& target, const Edges& after,
                const Guard& where = {});

  Schedule finish(std::string name) &&;

 private:
  const Submesh& submesh_;
  DType dtype_;
  GemmProblem problem_;
  Names names_;
  Products products_;
};

/// `what s3`, or `what` if there is only one step.
std::string step_label(std::string_view what, std::int64_t step, std::int64_t steps);

// The algorithms, each in its source file.
void write_meshslice(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
void write_collective(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
void write_summa(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
void write_cannon(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);
/// How a collective matmul uses its ring.
enum class WangStyle {
  both_ways,     // half-blocks in opposite directions, one matmul per hop on both halves
  one_way,       // whole blocks: operands to +1, accumulators to -1
  two_half_dots  // half-blocks in opposite directions, a separate matmul for each half of an accumulator
};
void write_wang(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options, WangStyle style);
/// tp-ag: gathers rows of X in the given style, or by one Collective without a style.
void write_row_gather(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options, std::optional<WangStyle> style);
void write_megatron(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options);

}  // namespace podsim
