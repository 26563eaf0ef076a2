// Reads the arguments of functions: dimensions, mesh axes, shardings, pairs of devices.
#pragma once

#include <string>
#include <vector>

#include "workloads/sharded/functions.hpp"
#include "workloads/sharded/program_source.hpp"

namespace podsim {

/// Of a collective on blocks.
struct BlockArguments {
  std::size_t rank = 0;  // of its operand
  std::size_t most_axes = 1;
  bool in_shard_map = false;
};

class ArgumentReader : public ProgramSource {
 protected:
  ArgumentReader(const std::vector<ProgramText::Entry>& entries, const Mesh& mesh) : ProgramSource{entries}, mesh_{mesh} {}

  /// "psum(A, axes)"
  static std::string form_of(const ProgramFunction& function);
  Status comma(const ProgramFunction& function);
  /// A dimension of an array of this rank; -1 is the last one.
  Status dimension(std::size_t of_rank, int& dim);
  /// x, x+y, (x+y) or (x, y)
  Status axes(Operation& operation, std::size_t most);
  Status spec(Operation& operation, std::size_t rank);
  /// [(0, 1), (1, 2)]: positions along the axes of the operation, sender and receiver
  Status pairs(Operation& operation);
  /// The dimensions and axes of a collective that gathers or splits, and whether it is tiled. As in JAX it is not inside of shard_map, unless it says so.
  Status tiles(const ProgramFunction& function, Operation& operation, const BlockArguments& blocks, bool& tiled);

 private:
  const Mesh& mesh_;
};

}  // namespace podsim
