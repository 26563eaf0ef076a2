// What an instruction costs by itself: products, operations of the vector unit, bytes that cross the memory of the device.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/hlo/hlo_custom_call.hpp"
#include "workloads/hlo/hlo_flops.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/hlo/hlo_product_rate.hpp"
#include "workloads/hlo/hlo_traffic.hpp"

namespace podsim {

struct HloTaskCost {
  double matrix = 0;              // flops of products
  HloProductRate rate{};          // of its largest product
  double vector = 0;              // one for each element of a result of elementwise work, and for each one that is reduced
  double bytes = 0;               // read and written in HBM: values in other memory spaces cost none
  std::int64_t products = 0;      // dots and convolutions in it
  bool opaque = false;            // bytes alone are known: a custom-call without a cost, an unknown opcode
};

/// For each instruction of a computation those that have it as an operand, each once.
class HloUsers {
 public:
  explicit HloUsers(const HloComputation& computation);
  [[nodiscard]] const std::vector<int>& of(int instruction) const { return users_[static_cast<std::size_t>(instruction)]; }
  [[nodiscard]] const std::vector<std::vector<int>>& all() const { return users_; }

 private:
  std::vector<std::vector<int>> users_;
};

/// Costs of the instructions of a module; those of called computations are found once.
///
/// Bytes are those of HloTraffic, of custom-calls see custom_call_of(). A fusion counts the flops of everything in it.
class HloTaskCosts {
 public:
  HloTaskCosts(const HloModule& module, HloCustomCallCosts custom) : module_{module}, custom_{std::move(custom)}, traffic_{module} {}

  /// Not of loops, calls, conditionals and collectives: 0. Errors: a product whose shapes do not fit.
  Expected<HloTaskCost> of(const HloComputation& computation, int instruction);

 private:
  /// The flops of a fused computation.
  Expected<HloTaskCost> inside(int computation);
  Expected<HloTaskCost> arithmetic(const HloComputation& computation, int instruction);
  HloTaskCost custom_call(const HloComputation& computation, const HloInstruction& call);

  const HloModule& module_;
  HloCustomCallCosts custom_;
  HloTraffic traffic_;
  std::map<int, HloTaskCost> inside_;
};

}  // namespace podsim
