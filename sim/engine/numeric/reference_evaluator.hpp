// Evaluates a ReferenceProgram in float64, node by node on whole arrays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/reference_program.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Random relative errors, as another precision would make them: +unit or -unit of every result that rounds. What adds up K terms also gets
/// unit * sqrt(K) of each term, which is how far the roundings of K partial sums walk at random.
struct Noise {
  std::uint64_t seed = 0;
  double unit = 0;  // 0: exact
};

/// The array of an input node, row-major.
using ReferenceInputs = std::function<std::vector<double>(const ReferenceNode&)>;

/// Arrays of nodes that are not to be evaluated.
using GivenArrays = std::map<int, std::vector<double>>;

/// The arrays of the outputs, in their order. The program passed check_reference(). Cost: the arithmetic once, BLAS for products; arrays are freed
/// after their last use. If cancelled, the result is not complete. Errors: devices that a block-collective's `to` gives one block have different
/// results (the message names node and devices).
Expected<std::vector<std::vector<double>>> evaluate(const ReferenceProgram& program, const Mesh& mesh, const ReferenceInputs& inputs,
                                                    ThreadPool& pool, Cancellation stop = {}, Noise noise = {}, const GivenArrays& given = {});

/// The devices of a group of a block-collective.
std::int64_t group_size(const ReferenceNode& node, const Mesh& mesh);
/// The number of terms of each sum of a node; 1: it adds nothing, or two operands.
std::int64_t terms_of(const ReferenceProgram& program, const ReferenceNode& node, const Mesh& mesh);

/// An upper bound on what evaluate() allocates, with the arrays that it returns; saturates.
Bytes bytes_to_evaluate(const ReferenceProgram& program, const Mesh& mesh);

/// The same claim as a graph; input nodes are named "left operand" and "right operand".
ReferenceProgram program_of(const Products& products);

/// How large integer inputs may be so that nothing rounds in float32, in any order of additions.
struct ExactRange {
  std::int64_t range = 1;     // inputs of at most this magnitude
  std::vector<bool> exact{};  // per node: all of its sums are integers of at most 2^24 then
  std::string why_not{};      // the first node that is not exact, and why; empty: all are
};
/// The bound on the magnitudes of a node follows from those of its operands: a K-term sum of products has K |a| |b|, a sum of D elements D |a|, one
/// over P devices P |a|, a sum or difference |a| + |b|; so the bound also holds for partial sums, and for any order in which linear steps are done.
/// The range is the largest for which no exact node exceeds 2^24. Nodes that exceed it even at 1 are not exact, and neither are division, gelu, and
/// numbers that are no integers, nor what follows from these. Where a gelu is among them the range is 1: it leaves large numbers as they are.
ExactRange exact_range(const ReferenceProgram& program, const Mesh& mesh);

/// The same for the inputs of any filling: nothing is exact on those that are no integers, and of arange and ones the magnitudes are known.
ExactRange exactness(const ReferenceProgram& program, const Mesh& mesh, Filling filling);
/// The same for any claim; `exact` is left out. Products and collectives are exact on Filling::integers, whose range is made for them.
std::string why_inexact(const Schedule& schedule, Filling filling);

}  // namespace podsim
