// Two-dimensional GEMMs on a mesh of R x C devices (axes `row` of size R and `col` of size C). Every matrix is block-partitioned P(row, col):
// device (r, c) holds block (r, c). Y[M,N] is the result, K the contraction.
//
//   dataflow                computes                    moves                                          must divide (S: slice count, B: block)
//   OS, output-stationary   Y = X.W    X[M,K] W[K,N]    X gathered along col, W gathered along row     M%R, N%C, K%(lcm(R,C).S.B)
//   LS, left-stationary     Y = X.W^T  X[M,K] W[N,K]    W gathered along row, Y reduced along col      M%R, K%C, N%(lcm(R,C).S.B)
//   RS, right-stationary    Y = X^T.W  X[K,M] W[K,N]    X gathered along col, Y reduced along row      N%C, K%R, M%(lcm(R,C).S.B)
// (S = 1: without S.B.) "Reduced" is a reduce-scatter, on the way of which partial products travel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

enum class Dataflow { os, ls, rs };
std::string_view name_of(Dataflow dataflow);  // "os"
std::optional<Dataflow> dataflow_named(std::string_view name);

struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::bf16;
  Dataflow dataflow = Dataflow::os;
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};

/// What an algorithm may be told. Algorithms see no machine: the caller knows what suits it.
struct GemmOptions {
  std::int64_t slice_count = 1;
  std::int64_t block = 8;    // slices are cut of interleaved blocks of this many rows or columns
  int prefetch = 1;          // slices that run ahead; prefetch + 1 buffers of each moving operand
  bool slice_copies = true;  // cuts and joins of slices are copies on the core; false: free
};

/// Cuts the moving extent (K for OS, N for LS, M for RS) into S slices of interleaved blocks: a local extent L is viewed as [L/(S.B), S, B]
/// and slice s takes [:, s, :], so that the gathered slices of both operands line up. Every slice is a `collective` GEMM on 1/S of the data;
/// the collectives of the next slices overlap the matmul of this one.
///
///   before   X and W block-partitioned P(row, col)
///   after    Y block-partitioned P(row, col)
///   cost     ideal machine, p >= 1, per slice G = max of its gathers, D = reduce-scatter, T = matmul:
///              OS: G + (S-1) max(G, T) + T      LS, RS: G + (S-1) max(G, T, D) + T + D, exact when one of the three is largest in every slice
///   S = 1    is collective_gemm()
///   errors   the mesh is not row x col; an extent does not divide (names it and the multiple); slice count, block or prefetch out of range
///   source   MeshSlice (ISCA 2025)
Expected<Schedule> meshslice_gemm(const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options);

/// Gather what moves, multiply once, reduce-scatter: no overlap.
///
///   cost     OS: max(AG(X, col), AG(W, row)) + T      LS, RS: AG + T + RdS
///   errors   as above, with S = 1
Expected<Schedule> collective_gemm(const Mesh& mesh, const GemmProblem& problem);

struct GemmAlgorithmEntry {
  std::string_view name, summary;
  bool sliced;  // takes a slice count
  Expected<Schedule> (*make)(const Mesh&, const GemmProblem&, const GemmOptions&);
};
std::span<const GemmAlgorithmEntry> gemm_algorithms();
/// Errors: no such algorithm (names the near ones).
Expected<const GemmAlgorithmEntry*> gemm_algorithm(std::string_view name);

/// What each extent must be a multiple of.
struct Multiples {
  std::int64_t m = 1, n = 1, k = 1;
};
Expected<Multiples> required_multiples(const Mesh& mesh, Dataflow dataflow, std::int64_t slice_count, std::int64_t block);

/// The problem with every extent rounded up to its multiple.
GemmProblem padded(const GemmProblem& problem, const Multiples& multiples);

}  // namespace podsim
