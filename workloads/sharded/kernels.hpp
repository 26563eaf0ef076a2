// Transforms and linear systems in programs: how they are computed on operands in given shardings, and their tasks. algorithms/fft and algorithms/lu
// do the work; this file says what they need and leave.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/schedule/program_builder.hpp"
#include "workloads/sharded/cyclic.hpp"
#include "workloads/sharded/program.hpp"

namespace podsim {

/// fft, ifft, lu, solve.
bool is_kernel(ArrayOp op);

/// How a kernel is computed.
struct KernelWay {
  std::variant<FftMethod, LuMethod, SolveMethod> method;
  std::vector<Sharding> operands;      // what the operands have to be converted to
  std::vector<CyclicBlocks> cyclic{};  // of each operand
  Sharding result;
  CyclicBlocks result_cyclic{};
};
std::string_view name_of_method(const KernelWay& way);  // "pencil"

/// `operands`: the shardings that the operands have. Sums that are pending are added up first. Errors (at the operation): an algorithm that does not
/// suit the shardings or extents, with the sharding or the multiple that would.
Expected<KernelWay> kernel_way(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands);

/// What the extents of a transform's operand must be multiples of; nullopt: they are, or something else is wrong.
std::optional<Extents> multiples_of_fft(const ShardedProgram& program, const Operation& operation, const Sharding& operand);

/// What a kernel reads and writes: this device's blocks.
struct KernelBlocks {
  std::vector<Region> operands;
  std::vector<Region> results;  // of lu: P, L, U
};
/// Appends the tasks of a kernel, of lu for all three results. Returns the tasks after which each result is complete. `way`: of any of the three.
std::vector<Tasks> write_kernel(ProgramBuilder& builder, const ShardedProgram& program, const Operation& operation, const KernelWay& way,
                                const KernelBlocks& blocks, const Tasks& after);

/// Collectives that a kernel's own algorithm has, of one kind and along the same axes.
struct KernelCollectives {
  CollectiveKind kind = CollectiveKind::all_to_all;
  std::vector<int> axes{};
  std::int64_t count = 0;
  Bytes input{}, received{};  // of all of them, per device on average
};
std::vector<KernelCollectives> collectives_of(const ShardedProgram& program, const Operation& operation, const KernelWay& way);

}  // namespace podsim
