// LU with partial pivoting, and linear systems, on R x C devices: P A = L U, A x = b. README.md describes the steps.
//
// Block-cyclic arrays: the matrix is cut into blocks of b x b, K = n / b of them each way. Device (r, c) holds the blocks (i R + r, j C + c): the
// buffer [ceil(K/R), 1 over rows, b, ceil(K/C), 1 over columns, b], which flattens to the matrix. Where R or C does not divide K, the blocks beyond
// K are padding (Buffer::unpadded).
//
// Symbols of the costs: bytes over links of the whole machine, one direction each, by collectives that send every byte over each link once (rings and
// chains of neighbours).
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

enum class LuMethod {
  block,  // block-cyclic, right-looking: panels are gathered along rows and factored there, pivot rows are exchanged, U and L are broadcast
  naive,  // A is gathered, and every device factors all of it
};
std::string_view name_of(LuMethod method);

enum class SolveMethod {
  block,    // factors [A | b] as LuMethod::block does, then substitutes back
  naive,    // A and b are gathered, and every device solves the system
  batched,  // independent systems, divided over the devices: no communication
};
std::string_view name_of(SolveMethod method);

/// What is factored or solved, and on which axes. Device (r, c) has position r along `rows` and c along `columns` (first axis most significant; none:
/// one device). Devices that differ in other axes do the same.
struct LuProblem {
  Extents matrix;                       // A: [n, n]; batched: [systems, n, n]
  Extents right{};                      // b of a system: [n] or [n, m]; batched: with `systems` in front
  std::int64_t block = 32;              // b
  std::vector<AxisView> rows, columns;  // the axes over which rows and columns of A are divided
  int look_ahead = 0;                   // 1: the next panel is factored before the rest of an update. Changes no bit of the result
  DType dtype = DType::f32;             // of A and b; factorisations lose too much in others
};

/// The block-cyclic layout of a problem.
struct LuLayout {
  LuProblem problem;
  std::int64_t n = 0, b = 0, K = 0;  // K = n / b
  int R = 1, C = 1;
  std::int64_t Q = 0, W = 0;  // a device's rows and columns of blocks: ceil(K/R), ceil(K/C)
  bool has_right = false;
  std::int64_t m = 0;  // a device's columns of b: m / C of m where C divides m, else all of them
  bool right_is_divided = false;

  /// Block-cyclic buffers of this layout: [n, n] over rows and columns, and b (or x) over rows.
  [[nodiscard]] Buffer matrix_buffer(std::string name, Role role) const;
  [[nodiscard]] Buffer right_buffer(std::string name, Role role) const;
  [[nodiscard]] Buffer pivots_buffer(std::string name, Role role) const;  // s32 [n], replicated
};

/// Errors: A is not square; a dtype other than f32; n is no multiple of the block (the message names the next ones); b of another length; rows and
/// columns along the same mesh axis; another look-ahead than 0 or 1; more than 2,048 blocks.
Expected<LuLayout> lu_layout(const Mesh& mesh, const LuProblem& problem);

struct LuOutputs {
  Region packed;  // block-cyclic: U on and above the diagonal, L below it (its diagonal is 1)
  Region pivots;  // P, s32 [n], on every device: row i of P A is row P[i] of A
  Tasks tasks;    // both are complete after these
};

/// Appends the factorisation of the block-cyclic matrix `a`, which stays as it is.
///   cost   rows' axes: panels R 4 b^2 sum over k of ceil((K-k)/R) (up to Q - floor(k/R) instead where rows are divided over several axes and R
///   does
///          not divide K); exchanges and U 4 n^2 (2 + (1 + C/K) / 2); columns' axes: L (C-1) 4 n^2 (1 + R/K) / 2 and the pivots R (C-1) 12 n;
///          look-ahead 1 adds at most 8 n b along rows. Flops 2/3 n^3, and n^2 b / 2 for panels, which all devices of a column factor
///   edges  exactly those that races need; two buffers of each sort, so that one step's communication runs beside another's products
LuOutputs add_lu(ProgramBuilder& builder, const LuLayout& layout, const Region& a, const Tasks& after);

/// Writes L (ones on its diagonal) and U into block-cyclic arrays of their own.
Tasks add_triangles(ProgramBuilder& builder, const LuLayout& layout, const Region& packed, const Region& lower, const Region& upper,
                    const Tasks& after);

/// Appends the solution of A x = b: factors [A | b] (b takes part in every exchange and update; columns left of the panel do not), then substitutes
/// back. All arrays are block-cyclic; `a` and `b` stay as they are. Returns the tasks after which x is complete.
///   cost   that of add_lu() with exchanges of 4 n^2 (1 + C/K) instead of 8 n^2; for m columns of b: rows' axes 16 n m, C times
///          as much where C does not divide m; columns' axes (C-1) 4 n^2 (1 + (R+C)/K) / 2 at most, for U. Flops 2/3 n^3 + 2 n^2 m, the latter C
///          times where C does not divide m
Tasks add_solve(ProgramBuilder& builder, const LuLayout& layout, const Region& a, const Region& b, const Region& x, const Tasks& after);

/// A whole program: input A, outputs P, L and U; claims P A = L U. `block`: all but P block-cyclic. `naive`: A divided by rows and columns in one
/// block each, P, L and U replicated. Errors: those of lu_layout(), for `naive` extents that R or C does not divide.
Expected<Schedule> make_lu(LuMethod method, const Mesh& mesh, const LuProblem& problem);

/// A whole program: inputs A and b, output x. `block`: block-cyclic. `naive`: A divided by rows and columns, b by rows, x replicated. `batched`: all
/// divided by systems over the axes of rows and columns. Errors: those of lu_layout(); extents that the devices do not divide.
Expected<Schedule> make_solve(SolveMethod method, const Mesh& mesh, const LuProblem& problem);

}  // namespace podsim
