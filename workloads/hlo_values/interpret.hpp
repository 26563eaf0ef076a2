// A whole HLO module on all its devices in lockstep.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "workloads/hlo_values/evaluate.hpp"

namespace podsim {

struct HloRunOptions {
  HloArithmetic arithmetic{};                          // in: how; out: exactness of the run
  std::int64_t most_steps = std::int64_t{1} << 36;     // instructions, elements that they read and make, and multiplications of products
  std::int64_t most_elements = std::int64_t{1} << 26;  // alive at one time on all devices together, beside the parameters
  Cancellation stop{};
  std::map<std::string, int> branches{};  // that conditionals are to take, by name
};

/// Custom-calls whose values are not known (kernels, libraries) have others in their place, which depend on all their operands: what is before and behind them is compared, what they compute is not.
std::vector<const HloInstruction*> calls_without_values(const HloModule& module);

/// The results of the entry computation on devices 0 .. devices_of(module) - 1; device replica * num_partitions + partition.
///
///   parameters  [device][parameter], each the leaves of the parameter's shape
///   result      [device], the leaves of the result's shape
///   semantics   as evaluate(); collectives by their definition: sums in the order of the group, blocks by the position in it; a collective's value
///   is
///               fixed by its -start and seen by its -done. A loop whose condition differs between devices, and a branch that differs between
///               devices and has collectives, is an error
///   cost        steps as above
///   errors      a conditional that takes another branch than it is to, Cause::data; what evaluate() has; parameters that do not fit; a bound that is passed; cancellation
Expected<std::vector<HloArrays>> interpret(const HloModule& module, const std::vector<std::vector<HloArrays>>& parameters, HloRunOptions& options);

}  // namespace podsim
