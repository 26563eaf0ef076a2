// Runs computations on devices in lockstep: every device makes an instruction before any makes the next one. Internal: evaluate() and interpret() use
// it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/hlo_values/array_operation.hpp"

namespace podsim {

/// Arrays are shared: tuples, loops and calls pass them on without a copy.
using HloLeaf = std::shared_ptr<const HloArray>;
using HloValue = std::vector<HloLeaf>;  // leaves of a shape

class HloInterpreter {
 public:
  HloInterpreter(const HloModule& module, HloArithmetic& arithmetic, HloBudget& budget, std::int64_t most_elements);

  using Devices = std::vector<HloDevice>;
  using Values = std::vector<HloValue>;  // [device]

  /// By name of the conditional. They outlive this object.
  void expect_branches(const std::map<std::string, int>& branches) { branches_ = &branches; }

  /// The results on each of the devices. arguments[parameter][device]. Collectives need all devices of each group that has one of them.
  Expected<Values> run(const HloComputation& computation, const Devices& devices, const std::vector<Values>& arguments);

  /// One instruction with its operands, [operand][device]. `pending` holds results that a -start made for its -done.
  struct Frame {
    std::vector<Values> values;   // [instruction]; empty before it is made and after its last use
    std::vector<Values> pending;  // [instruction]: of -start and -update
    const std::vector<Values>* arguments = nullptr;
  };
  Expected<Values> step(const HloComputation& computation, const HloInstruction& instruction, const Devices& devices,
                        const std::vector<const Values*>& operands, Frame& frame);

  /// An array as a leaf; it counts as alive until nothing refers to it.
  HloLeaf leaf(HloArray array);

 private:
  struct Step;  // an instruction, its devices and operands

  Expected<Values> whole(const Step& step, Frame& frame);
  Expected<Values> started(const Step& step, Frame& frame);
  Expected<Values> arrays(const Step& step);
  Expected<Values> collective(const Step& step);
  Expected<Values> calls(const Step& step, HloRole role);
  Expected<Values> while_loop(const Step& step);
  Expected<Values> conditional(const Step& step);
  Expected<Values> custom_call(const Step& step);
  /// A buffer that nothing has been written to, and flags: values that show where they are used.
  Expected<Values> uninitialised(const Step& step);
  /// Of a call whose values are not known: real numbers by which the rest can be compared. Each is the sum of one element of every operand, divided by a power of 2 that is larger than their number;
  /// whole numbers are 0.
  Expected<Values> stand_in(const Step& step);
  Expected<Values> same_on_all(const Step& step, HloArray array);
  Status check_branch(const Step& step, std::size_t chosen) const;
  Status check_room(const Step& step) const;
  Status check_value(const Step& step, const HloShape& shape, const HloValue& value, std::string_view what) const;
  Expected<Values> with_operands_in_front(const Step& step, const Values& results);
  const std::vector<int>& last_uses(const HloComputation& computation);
  ArrayOperation::Call scalar_call(const HloDevice& device);

  const HloModule& module_;
  HloArithmetic& arithmetic_;
  HloBudget& budget_;
  std::int64_t most_elements_;
  std::shared_ptr<std::int64_t> alive_ = std::make_shared<std::int64_t>(0);
  const std::map<std::string, int>* branches_ = nullptr;
  int depth_ = 0;
  std::unordered_map<const HloComputation*, std::vector<int>> last_uses_;
};

}  // namespace podsim
