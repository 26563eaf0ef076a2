// The insertion rules: the shardings that an operation's operands may be converted to, so that every device can compute its block of the result alone. A
// pure function of shardings; costs are reshard.hpp's.
//
//   A[I,J] @ B[J,K], an axis on    by default                                       other ways
//   J of one operand only          this operand is gathered                         the other one is sliced; partial sums
//   J of both, in equal places     partial sums                                     gather both
//   J of both, otherwise           both are gathered                                convert one to the other's places
//   I of A and K of B              A is gathered; B, if there are partial sums      the other one is gathered
//   J of one, I or K of the other  this operand is gathered, the other keeps it     the other one moves it to J; partial sums
// Partial sums stay pending until something that is not linear in them, a second product over the axis, or an output needs their sum.
//
// Source: jax-ml/scaling-book, sharding.md (the four cases); jax/_src/lax/lax.py, sharding rule of dot_general.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/sharded/program.hpp"

namespace podsim {

/// One way to compute an operation.
struct ShardingAlternative {
  std::vector<Sharding> operands;      // what the operands are converted to
  Sharding result;                     // what the operation then makes, with its partial sums pending
  std::optional<Sharding> then{};      // what the result is converted to at once
  std::map<int, std::string> reasons{};  // per mesh axis why the operands are converted along it
  friend bool operator==(const ShardingAlternative& a, const ShardingAlternative& b) { return a.operands == b.operands && a.result == b.result && a.then == b.then; }
};

/// All ways, the default first. Of products on meshes of at most 3 axes also those that compute the result in any sharding and convert it: to `asked`, or to
/// what one of the other ways gives. `operands` and `asked` have no axes of size 1; `asked` is the sharding that the result is needed in, if that is known.
std::vector<ShardingAlternative> alternatives_of(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands,
                                         const std::optional<Sharding>& asked);

}  // namespace podsim
