// The operations of a simulated run as XLA would name them: opcode, text with shapes and groups, category, kernel. What the importers of profiles
// (validation/calibration/importers) tell from such names is what the run's own JSON says of the operation.
#pragma once

#include <string>
#include <string_view>

#include "sim/analysis/operations.hpp"
#include "sim/model/model.hpp"
#include "tools/report/operation_lines.hpp"

namespace podsim {

/// One operation.
///   matmul            convolution (on GPUs dot) of [m,k] and [k,n]
///   attention         a custom call
///   elementwise, ...  a loop fusion; other categories of podsim's are the category
///   copy              copy
///   collectives       by their kind, with replica_groups along their axes; shapes are flat. What HLO has no opcode for is collective-reduce
///   permute           collective-permute with its pairs
///   send              send and recv
///   call              call
struct HloName {
  std::string opcode;
  std::string base;                // of its name: "all-gather", "flash_attention"
  std::string operands, result;    // "bf16[8,4]{1,0} %left, bf16[4,8]{1,0} %right", "bf16[8,8]{1,0}"
  std::string attributes;          // ", replica_groups=[4,4]<=[16], dimensions={0}"
  std::string category;            // hlo_category
  std::string kernel;              // on a GPU
  std::string provenance;          // tf_op: "jit(step)/ff1/gather W:"

  /// "all-gather-start.3"
  [[nodiscard]] std::string name(OperationEvent::Part part, std::size_t number) const;
  /// The HLO text of that.
  [[nodiscard]] std::string text(OperationEvent::Part part, std::size_t number) const;
  /// "all-gather-start"
  [[nodiscard]] std::string category_of(OperationEvent::Part part) const;
};

/// Whether the machine's devices are GPUs: those of rails are.
bool is_gpu(const Machine& machine);

/// The name of an operation. `first`: a task of it. Cost O(devices of the mesh) for a permute.
HloName hlo_name(const Model& model, std::uint32_t program, const OperationMetrics& operation, TaskId first, const std::vector<AxisView>& views);

}  // namespace podsim
