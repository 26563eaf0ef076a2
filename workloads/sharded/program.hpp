// Sharded programs: statements on whole arrays, as under jax.jit, and on local blocks, as in jax.shard_map.
//
//   C = A @ B; Y = relu(C) @ W                  whole arrays: the compiler chooses shardings and inserts collectives (insertion.hpp)
//   Y = X / psum(X, p)                          a collective on the local blocks of a whole array
//   shard_map { C = psum(A @ B, y) as x,- }     every operation is on the blocks of a device; the out spec makes an array of them
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

/// What an operation does. The first group takes whole arrays, or the blocks of devices inside of shard_map. The second is of shard_map alone. The third takes
/// the local block of each device: of whole arrays, if the operand's sharding is known from the program's text alone.
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

  to_blocks,    // a whole array as the block of each device
  from_blocks,  // the array whose blocks the out spec puts together
  expand_dims,  // a dimension of extent 1 at `dim`
  squeeze,      // without dimension `dim`, of extent 1
  axis_index,   // the position of the device along `axes`, a scalar of the program's dtype

  psum,          // the sum over the blocks of the devices along `axes`
  all_gather,    // the blocks along `axes`, side by side in dimension `dim`
  psum_scatter,  // psum, of which each device keeps its own piece of dimension `dim`
  ppermute,      // the block of the device `shift` positions before, cyclic
  pmax,          // the largest of each element over the blocks of the devices along `axes`
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
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs{};  // ppermute, in place of the shift: sender, receiver; who receives nothing has zeros
  std::vector<int> axes{};    // of operations on local blocks, first most significant
  std::optional<std::vector<int>> varying{};  // inside of shard_map: the axes along which the blocks may differ, increasing (JAX: vma). Nothing: a whole array
  Extents extents{};          // of the whole array; inside of shard_map of the block
  DType dtype = DType::f32;
  bool stored_transposed = false;  // fft: dimensions in the order 1, 2, 0 (1, 0); ifft: the way back
  std::optional<Sharding> sharding{};  // of an input, reshard or from_blocks; of others if it follows without any choice or collective. Of blocks: none divides them
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
/// already; an operation on local blocks of an array whose sharding the text does not fix; an out spec of shard_map without an axis along which the blocks
/// may differ; a result of shard_map that nothing reads and no out spec makes an array of; more than 4 mesh axes, 10,000 operations, rank 6, 2^50 elements.
Expected<ShardedProgram> read_program(const ProgramText& text, const Mesh& mesh);

/// What the program computes, on whole arrays. What is inside of shard_map is on arrays of the blocks of all devices: shard_map_reference.hpp.
ReferenceProgram reference_of(const ShardedProgram& program);

/// The node of an operation without its operands, extents and name.
ReferenceKind reference_kind_of(ArrayOp op);
/// What a collective on blocks does, without `from` and `to`.
BlockCollective block_collective_of(const Operation& operation);

/// Whether a collective on blocks leaves them where they are: it is over one device, or shifts by nothing.
bool is_in_place(const Operation& operation, const Mesh& mesh);

/// Of an operation inside of shard_map: "4x16 over x,y", the block and the axes along which it differs.
std::string block_text(const Operation& operation, const Mesh& mesh);

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

/// Multiplications and additions of the program's products: of whole arrays, once; of blocks inside of shard_map, once for each of those that may differ.
Flops flops_of(const ShardedProgram& program);

}  // namespace podsim
