// What a compiled module does, as a table and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_summary.hpp"

namespace podsim {

/// What `podsim show hlo` was asked for.
struct ShownHlo {
  HloModule module;
  HloSummary summary;
  std::optional<Mesh> mesh{};
  std::string machine;                 // whose core's times are told
  std::optional<Bytes> hbm{};          // that its chip has, as far as known
  std::vector<std::string> assumed{};  // of its system, in sentences
};

/// Collectives, products, windows, copies, custom-calls, loops and what is not known, each a table; rows that are alike are one, with their number.
/// Errors: those of collective_axes().
Expected<std::string> hlo_table(const ShownHlo& shown);

/// `module, file, scheduled, devices, computations, instructions, opcodes{opcode: instructions}, machine`; `collectives: [ {instruction, runs_as,
/// kind, axes, groups, group_size, shift, bytes, result_bytes, operands, asynchronous, async_collective_name, count, overlap_s, overlap_flops,
/// hidden_at_bytes_per_s} ]` (overlap of asynchronous ones: the core's work between start and done; the rate at which each device must receive to
/// hide it), `dots: [ {instruction, runs_as, kind, m, n, k, batch, flops, count} ]`, `windows: [ {start, done, core_s, flops, bytes, count} ]`,
/// `copies: [ {instruction, from, to, bytes, asynchronous, count} ]`, `custom_calls` and `opaque: [ {instruction, target, flops, bytes, count} ]`,
/// `loops: [ {instruction, trip_count, source, count} ]`, `conditionals: [ {instruction, branch, given, count} ]`, `unknown_attributes: [ {name,
/// count, line} ]`, `totals`, `peak_memory_bytes`, `hbm_bytes` (that the machine's chip has; null: not told),
/// `module_memory_bytes`, `warnings: [ {message, count, line, column} ]`.
Expected<Json> hlo_json(const ShownHlo& shown);

/// `module_memory_bytes{hbm_peak, hbm_allocated, hbm_required, parameters, outputs, temporary, aliased, vmem, cmem, host}`.
Json module_memory_json(const HloPeakMemory& memory);
/// "peak 2.9 GB, allocated 4.4 GB, required 2.9 GB of 17 GB HBM; parameters 95 MB, VMEM 105 MB"; hbm: what the chip has, where it is known.
std::string module_memory_text(const HloPeakMemory& memory, std::optional<Bytes> hbm);

}  // namespace podsim
