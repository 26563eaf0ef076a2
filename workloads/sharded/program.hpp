// Sharded programs: statements on whole arrays, as under jax.jit, and on local blocks, as in jax.shard_map.
//
//   C = A @ B; Y = relu(C) @ W            whole arrays: the compiler chooses shardings and inserts collectives (insertion.hpp)
//   Y = X / psum(X, p)                    local blocks: the collective is written out
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/fft/fft.hpp"
#include "algorithms/lu/lu.hpp"
#include "sim/mesh/sharding.hpp"
#include "sim/schedule/reference_program.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// What an operation does. The first group takes whole arrays; the second takes the local block of each device, and its operand's sharding must be known
/// from the program's text alone.
enum class ArrayOp {
  input,
  product,      // A @ B: of rank 2, or with equal leading batch dimensions
  add, subtract, multiply, divide,  // elementwise; dimensions are aligned at the last one, and those of extent 1, or missing, are stretched
  scale,        // number * A
  add_number,   // A + number
  reciprocal,   // number / A
  transpose,    // A.T, of rank 2 or less
  relu, gelu,
  sum,          // over one dimension, which the result does not have
  reshard,
  process_allgather,  // to every host
  fft, ifft,    // over all dimensions
  lu_pivots, lu_lower, lu_upper,  // P, L, U = lu(A) with P A = L U: row i of P A is row P[i] of A
  solve,        // solve(A, b): x with A x = b; A [.., n, n], b [.., n] or [.., n, m]

  psum,          // the sum over the blocks of the devices along `axes`
  all_gather,    // the blocks along `axes`, side by side in dimension `dim`
  psum_scatter,  // psum, of which each device keeps its own piece of dimension `dim`
  ppermute,      // the block of the device `shift` positions before, cyclic
  all_to_all,    // pieces of dimension `split_dim` go to the devices along the axis, and are put side by side in dimension `dim`
};
/// "psum_scatter"; of operators "@", "+".
std::string_view name_of(ArrayOp op);
bool is_local(ArrayOp op);

/// An operation and the array that it makes. Operands are positions of earlier operations.
struct Operation {
  ArrayOp op = ArrayOp::input;
  std::vector<int> operands{};
  std::string name{};   // of the array; "C.2" for the second intermediate result of the statement that makes C
  int statement = -1;   // position in ShardedProgram::statements; -1: an input
  double number = 0;
  int dim = 0, split_dim = 0;
  std::int64_t shift = 0;
  std::vector<int> axes{};    // of operations on local blocks, first most significant
  Extents extents{};          // of the whole array
  DType dtype = DType::f32;
  bool stored_transposed = false;  // fft: dimensions in the order 1, 2, 0 (1, 0); ifft: the way back
  std::optional<Sharding> sharding{};  // of an input or reshard; of others if it follows without any choice or collective
  SourceLocation where{};
};

/// How transforms and linear systems are computed.
struct KernelChoice {
  std::optional<FftMethod> fft{};  // none: the distributed one
  FftOrder order = FftOrder::natural;
  int chunks = 1;             // of the FFTs before an all-to-all
  bool slice_copies = false;  // blocks are packed before an all-to-all
  std::optional<LuMethod> lu{};  // none: block where A is divided
  std::optional<SolveMethod> solve{};
  std::optional<std::int64_t> block{};  // rows and columns of a block; none: default_block()
  int look_ahead = 0;
};

/// A program with the shapes and shardings of all that its text fixes. Mesh axes of size 1 are left out of shardings.
struct ShardedProgram {
  Mesh mesh;
  DType dtype = DType::f32;                     // of products
  std::vector<Operation> operations;
  std::vector<std::string> statements;          // as written
  std::vector<int> results;                     // what statements assign: one operation each, three of P, L, U = lu(A)
  std::vector<int> outputs;                     // operations whose results nobody reads, those in `out`, and of lu and solve; in program order
  std::map<int, Sharding> out;                  // the asked-for shardings of outputs
  KernelChoice kernels{};
  std::optional<int> iterated{};                // X = A @ X: the input that the result takes the place of, in the next iteration
  std::vector<Extents> unpadded;                // per operation its extents before padding; empty: nothing was padded
};

/// The texts that make a program; each with its place.
struct ProgramText {
  struct Entry {
    std::string text;
    SourceLocation where;
  };
  std::vector<Entry> statements;  // texts of statements, separated by ; or new lines; # begins a comment
  std::vector<Entry> shapes;    // "A=48x24"
  std::vector<Entry> shards;    // "A=x,-"
  std::vector<Entry> outs;      // "C=x,y"
  DType dtype = DType::f32;     // of arrays whose shape does not name one
  KernelChoice kernels{};
  bool iterate = false;         // a statement may assign to an input: X = A @ X. Its result is called "X.next"
  bool pad = false;             // round extents up to what the axes divide; the added elements are 0
};

/// Errors, with the place in the text: anything that the grammar does not have; a name without a shape, assigned twice, or that of a function; an array
/// without any use; shapes that do not meet; shardings that do not divide (without `pad`); psum over an axis along which partial sums are pending
/// already; an operation on local blocks of an array whose sharding the text does not fix; more than 4 mesh axes, 10,000 operations, rank 6, 2^50 elements.
Expected<ShardedProgram> read_program(const ProgramText& text, const Mesh& mesh);

/// What the program computes, on whole arrays.
ReferenceProgram reference_of(const ShardedProgram& program);

/// The sharding of a product's result if its operands need no collective: contractions divided alike, no axis on rows and columns at once.
std::optional<Sharding> direct_product(const Sharding& left, const Sharding& right, std::size_t rank);

struct ElementwiseOperand {
  const Extents& extents;
  const Sharding& sharding;
};
/// The sharding of an elementwise result if its operands need no collective; slicing is none. Of sums, an operand without partial sums that is replicated
/// along the axes of the other's partial sums counts on the first device along them alone.
std::optional<Sharding> direct_elementwise(ArrayOp op, const Extents& result, const ElementwiseOperand& a, const ElementwiseOperand& b);

/// The block of an n x n matrix of which one dimension is divided over so many devices: the largest divisor of n that leaves each of them eight blocks, powers of
/// two preferred; 1 at least. More blocks pay for messages, fewer leave devices idle while a panel is factored (validation/studies/sharded).
std::int64_t default_block(std::int64_t n, std::int64_t devices);

/// Multiplications and additions of the program's products: of whole arrays, once.
Flops flops_of(const ShardedProgram& program);

}  // namespace podsim
