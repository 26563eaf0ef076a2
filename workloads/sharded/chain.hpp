// Products of several matrices: the order of the products and the shardings of all arrays, by search.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "workloads/sharded/plan.hpp"

namespace podsim {

enum class Minimise { bytes, collectives, time };

/// What a chain is searched for. Operands whose shardings are not fixed are divided by all axes of the mesh, or replication costs nothing and is always best;
/// those in `replicate` may be replicated along some axes or all.
struct ChainRequest {
  ShardedProgram program;        // one statement: a product of inputs, each read once
  std::set<std::string> fixed;   // inputs that have the sharding of the program
  std::set<std::string> replicate;
  Minimise minimise = Minimise::bytes;
  Cancellation stop{};
};

/// An answer: a program with its operands' shardings set, in the order of its products, and the plan of its collectives.
struct Chain {
  std::string association;  // "((A @ B) @ C)"
  ShardedProgram program;
  ProgramPlan plan;
  ReshardCost cost;
  bool replicated = false;  // no operand is divided
};

/// Seconds of a candidate. Errors end the search.
using ChainTimer = std::function<Expected<double>(const Chain&)>;

/// The best chain; exact for bytes and collectives: a dynamic program over intervals and shardings, with cheapest conversions between any two. By time: of
/// every order of the products the one with the fewest bytes and the one with the fewest collectives, timed by `timer`. An iterated program (X = A @ X)
/// gives its result in the sharding of its input. Errors: not such a product; fewer than 3 matrices (iterated: 2) or more than 8; no sharding over all
/// axes divides an operand; cancelled work.
Expected<Chain> find_chain(const ChainRequest& request, const ChainTimer& timer = {});

}  // namespace podsim
