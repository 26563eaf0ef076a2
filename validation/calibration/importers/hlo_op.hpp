// One operation of a profile, from its line of HLO text (workloads/hlo reads it), and its conversion to an observation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validation/calibration/importers/imported.hpp"
#include "workloads/hlo/hlo_shape.hpp"

namespace podsim {

/// Bytes of a shape without padding; nullopt for types without data, or beyond 2^42 bytes.
std::optional<Bytes> size_of(const HloShape& shape);

/// All arrays in a text, skipping names and what is no shape; at most 4096.
std::vector<HloShape> shapes_in(std::string_view text);

/// `%all-gather.1 = bf16[2048,8192]{1,0} all-gather(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], dimensions={0}`
struct HloOp {
  std::string name, opcode;
  std::vector<HloShape> results, operands;  // arrays, those of tuples one by one; operands: empty if the text does not give their shapes
  int group = 0;                            // devices that take part: from replica_groups, or the cycle length of source_target_pairs; 0: not stated
  bool open_chain = false;                  // source_target_pairs that do not form cycles of equal length
  std::optional<int> dimension{};           // the first of dimensions={}
};

/// nullopt if the text is not an operation. O(length of the text).
std::optional<HloOp> parse_hlo_op(std::string_view text);

/// Facts about an operation from the profile besides its text.
struct ProfiledOp {
  std::string_view category;  // hlo_category: "convolution fusion"
  Flops flops;                // of one core, one occurrence; 0: not stated
  Seconds time;
};

/// The kind of observation for an operation: a collective or a matmul; nullopt for others. Decided by the opcode, else by the category.
std::optional<ObservedOp> observed_op_of(const HloOp& op, std::string_view category);

/// The observation, or why there is none (the message of the error). For a collective, the number of devices is that of the text, else follows from
/// the shapes, else is options.devices. For a matmul, m and n are the dimensions of the first result with two or more dimensions; more than two are
/// grouped as near to a square as possible. k is FLOPs of all cores / (2 m n), rounded to a multiple of 128 if one is within 1 %.
Expected<Observation> observation_of(const HloOp& op, const ProfiledOp& profiled, const ImportOptions& options);

/// The observation of a matmul with known result and FLOPs, or why there is none.
Expected<Observation> matmul_of(const std::vector<HloShape>& results, Flops flops, Seconds time);

}  // namespace podsim
