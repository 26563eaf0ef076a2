// One operation of a profile, from its line of HLO text: what it was as an observation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// `bf16[512,1024]`; a scalar has no dimension.
struct HloShape {
  std::string dtype;
  std::vector<std::int64_t> dims;
};

/// Its bytes without padding; nothing for types that are no data, or beyond 2^42 bytes.
std::optional<Bytes> size_of(const HloShape& shape);

/// All shapes in a text, whatever is between them (layouts, names), at most 4096.
std::vector<HloShape> shapes_in(std::string_view text);

/// `%all-gather.1 = bf16[2048,8192]{1,0} all-gather(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], dimensions={0}`
struct HloOp {
  std::string name, opcode;
  std::vector<HloShape> results, operands;  // operands: empty where the text does not give their shapes
  int group = 0;                            // devices that take part: replica_groups, or the cycle of source_target_pairs; 0: not told
  bool open_chain = false;                  // source_target_pairs that are no cycles of one length
  std::optional<int> dimension{};           // the first of dimensions={}
};

/// Nothing if the text is no operation. Never slower than linear in the text.
std::optional<HloOp> parse_hlo_op(std::string_view text);

/// What a profile tells about an operation besides its text.
struct ProfiledOp {
  std::string_view category;  // hlo_category: "convolution fusion"
  Flops flops;                // of one core, one occurrence; 0: not told
  Seconds time;
};

/// Which operation this is, if it is one that observations are made of: a collective or a matmul. The opcode decides, else the category.
std::optional<ObservedOp> observed_op_of(const HloOp& op, std::string_view category);

/// The observation, or why there is none (the message of the error). Of a collective, the devices are those of the text, else follow from the shapes,
/// else are options.devices. Of a matmul, m and n are the dimensions of the first result of two dimensions or more, those of more than two split
/// as near to a square as can be; k is FLOPs of all cores / (2 m n), to the nearest multiple of 128 if that is within 1 %.
Expected<Observation> observation_of(const HloOp& op, const ProfiledOp& profiled, const ImportOptions& options);

/// Of a matmul whose product and FLOPs are known; the message of the error says why not.
Expected<Observation> matmul_of(const std::vector<HloShape>& results, Flops flops, Seconds time);

}  // namespace podsim
