// What an instruction costs by itself: products, operations of the vector unit, bytes that cross the memory of the device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/machine.hpp"
#include "workloads/hlo/hlo_custom_call.hpp"
#include "workloads/hlo/hlo_flops.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/hlo/hlo_product_rate.hpp"
#include "workloads/hlo/hlo_traffic.hpp"
#include "workloads/hlo/tpu_kernels.hpp"

namespace podsim {

struct HloTaskCost {
  double matrix = 0;                    // FLOPs of products
  HloProductRate rate{};                // of its largest product
  /// Where it is the only one: the extents of one pass, which the matrix unit pads; there are as many passes as its FLOPs need. Of a convolution a pass has a row
  /// for each output position and contracts the features under one tap of the window; where three or more such taps fit into the 128 lanes of a register, those of a
  /// row of the window that fit; all taps where the window covers the image. Of windows of few passes storing the results decides: five to eight; of few features to contract and few results
  /// two or three positions lie side by side. Groups of few features lie side by side in the lanes: of a depthwise convolution 128.
  /// Source: cycles that libtpu 0.0.42.1 estimates, validation/aot/README.md.
  std::optional<HloProduct> product{};
  double vector = 0;                    // one for each element of a result of elementwise work; of each two elements that are reduced to one the operations of the function
  double transforms = 0;                // of `vector`: of Fourier transforms
  double bytes = 0;                     // read and written in HBM: values in other memory spaces cost none
  std::int64_t products = 0;            // dots and convolutions in it
  Seconds launch{};                     // before all of it: on TPUs what a kernel waits for HBM, on GPUs the launches of the kernels behind its first
  Seconds core{};                       // of what the rates of its units do not say, beside the memory: on TPUs sorts, rows that are moved one by one, and what passes between memory on the chip and vector registers, on GPUs radix sorts and the pivots of LU factorisations
  int kernels = 1;                      // one after the other, each over all of its bytes: a sort of XLA's on a GPU
  std::optional<RadixSort> sort{};      // by cub on a GPU, with kernels and bytes of its own
  HloEvidence evidence = HloEvidence::known;
  std::string why{};                    // it is not known, or what an estimate rests on
  std::string not_known{};              // what is unknown or only a lower bound: a target, of kernels of one target the name without a number, or an opcode
};

/// Elementwise work that makes a scalar, and a fusion of fewer than 1024 bytes that does: they cost nothing.
bool is_light_scalar(const HloInstruction& instruction, const HloTaskCost& cost);

/// As a schedule has it.
OpaqueCost opaque_cost_of(const HloTaskCost& cost);

/// On a machine, of one execution: behind the launch the matrix unit and the vector unit work side by side, over the machine's memory.
Seconds time_of(const HloTaskCost& cost, const Machine& machine);

/// Operations of reducing the windows of reduce-window, one dimension after the other, as a box of taps can be: in each dimension the taps that read an
/// element; at most 3 for each element, by sums (or maxima, forwards and backwards) of blocks of the window's size; 1 for each element where every window holds
/// the whole row. Sources: van Herk 1992; Gil and Werman 1993.
double reduce_window_operations(const HloShape& input, const HloShape& result, const std::vector<HloWindowDimension>& window);

/// For each instruction of a computation those that have it as an operand, each once.
class HloUsers {
 public:
  explicit HloUsers(const HloComputation& computation);
  [[nodiscard]] const std::vector<int>& of(int instruction) const { return users_[static_cast<std::size_t>(instruction)]; }
  [[nodiscard]] const std::vector<std::vector<int>>& all() const { return users_; }

 private:
  std::vector<std::vector<int>> users_;
};

/// Costs of the instructions of a module, for counting as for simulating; those of called computations are found once.
///
/// Bytes are those of HloTraffic, of custom-calls see custom_call_of(). A fusion counts the arithmetic of everything in it. Estimated are sorts, accesses by
/// index, factorisations; unknown are custom-calls and opcodes that nothing is known of, and transfers whose other end is not in the module.
class HloTaskCosts {
 public:
  /// `machine`: whose kernels wait for HBM; none: no machine's. `tolerant`: products whose operands are missing or do not fit are of unknown cost.
  HloTaskCosts(const HloModule& module, HloCustomCallCosts custom, const Machine* machine = nullptr, bool tolerant = false);

  /// Not of loops, calls, conditionals, collectives, and of asynchronous operations, which the core only begins: 0. Errors: a product whose shapes do not fit.
  Expected<HloTaskCost> of(const HloComputation& computation, int instruction);

 private:
  /// The arithmetic of a fused computation.
  Expected<HloTaskCost> inside(int computation);
  Expected<HloTaskCost> arithmetic(const HloComputation& computation, int instruction);
  [[nodiscard]] Seconds core_time(const HloComputation& computation, const HloInstruction& instruction) const;
  [[nodiscard]] Seconds time_of_lanes(const HloComputation& computation, const HloInstruction& instruction, bool is_fused) const;
  /// Of the computation to_apply of a reduction or scatter, for two elements, or two of each array.
  double operations_of_function(const HloInstruction& instruction);
  HloTaskCost custom_call(const HloComputation& computation, const HloInstruction& call);
  /// What cub takes for the sort in it, if the module is one of the GPU's compiler.
  void add_radix_sort(HloTaskCost& cost) const;

  const HloModule* module_;
  HloCustomCallCosts custom_;
  std::optional<TpuKernels> kernels_;
  std::optional<Seconds> gpu_launch_;  // of a kernel, where the module is one of the GPU's compiler
  BytesPerSecond gpu_memory_{};        // of that GPU
  Seconds pivot_latency_{};            // of the machine
  bool tolerant_;
  HloTraffic traffic_, chip_traffic_;
  std::map<int, HloTaskCost> inside_;
};

}  // namespace podsim
