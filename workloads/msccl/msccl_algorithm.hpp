// An MSCCL algorithm: what every GPU of a collective sends, receives, copies and reduces, as the XML files of Microsoft's collective compiler say it.
//
// A GPU has three buffers, input, output and scratch, cut into chunks of one size. Its thread blocks run at the same time, each does its steps in
// order. A thread block sends to at most one GPU and receives from at most one, over one channel. A connection, from one GPU to another over one
// channel, belongs to one thread block at each end and delivers in order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

enum class MscclBuffer { input, output, scratch };  // "i", "o", "s"

/// The kinds of steps. Local memory: `source` and `target` are chunks of the own GPU where the kind reads or writes them, else what the other GPU
/// does, which nobody reads.
enum class MscclKind {
  nop,                       // nop   waits only
  send,                      // s     sends source
  receive,                   // r     target = what arrives
  copy,                      // cpy   target = source
  reduce,                    // re    target = target + source
  receive_copy_send,         // rcs   target = what arrives, and sends it on
  receive_reduce_copy,       // rrc   target = source + what arrives
  receive_reduce_send,       // rrs   sends source + what arrives, and stores it nowhere
  receive_reduce_copy_send,  // rrcs  target = source + what arrives, and sends it on
};

/// What a kind does with its operands; the one table.
struct MscclKindTraits {
  std::string_view name;  // "rrcs"
  bool receives = false, sends = false, reads_source = false, writes_target = false;
};
inline constexpr std::array<MscclKindTraits, 9> msccl_kinds{{{"nop", false, false, false, false},
                                                             {"s", false, true, true, false},
                                                             {"r", true, false, false, true},
                                                             {"cpy", false, false, true, true},
                                                             {"re", false, false, true, true},
                                                             {"rcs", true, true, false, true},
                                                             {"rrc", true, false, true, true},
                                                             {"rrs", true, true, true, false},
                                                             {"rrcs", true, true, true, true}}};
inline const MscclKindTraits& traits_of(MscclKind kind) { return msccl_kinds[static_cast<std::size_t>(kind)]; }

/// Counted from 1; 0: not read from a file.
struct MscclPosition {
  int line = 0, column = 0;
  friend bool operator==(const MscclPosition&, const MscclPosition&) { return true; }  // no part of what it means
};

/// Chunks [chunk, chunk + count of the step) of a buffer. Of a nop: none, chunk is -1.
struct MscclPlace {
  MscclBuffer buffer = MscclBuffer::input;
  std::int64_t chunk = -1;
  friend bool operator==(const MscclPlace&, const MscclPlace&) = default;
};

struct MscclStep {
  MscclKind kind = MscclKind::nop;
  MscclPlace source{}, target{};
  std::int64_t count = 0;                 // chunks; of a nop 0
  int after_block = -1, after_step = -1;  // depid, deps: a step of the same GPU that it waits for; -1: none
  bool has_dependents = false;            // hasdep: another step may wait for it
  MscclPosition where{};
  friend bool operator==(const MscclStep&, const MscclStep&) = default;
};

struct MscclBlock {
  int send = -1, receive = -1;  // the other GPUs; -1: none
  int channel = 0;
  std::vector<MscclStep> steps;
  MscclPosition where{};
  friend bool operator==(const MscclBlock&, const MscclBlock&) = default;
};

struct MscclGpu {
  std::int64_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  std::vector<MscclBlock> blocks;
  MscclPosition where{};
  [[nodiscard]] std::int64_t chunks(MscclBuffer buffer) const {
    return buffer == MscclBuffer::input ? input_chunks : buffer == MscclBuffer::output ? output_chunks : scratch_chunks;
  }
  friend bool operator==(const MscclGpu&, const MscclGpu&) = default;
};

/// `in_place`: input and output are one buffer. An all-reduce has it as input, an all-gather as output, of which block number (own GPU) is the input.
struct MscclAlgorithm {
  std::string name, protocol = "Simple";  // Simple, LL or LL128
  int channels = 1;
  std::int64_t chunks_per_loop = 1;  // how many chunks of a buffer the kernel works on at a time
  std::string collective;            // "allreduce", as the file has it
  bool in_place = false;
  std::optional<Bytes> least, most;  // minBytes, maxBytes: the sizes that NCCL takes it for
  std::vector<MscclGpu> gpus;
  std::string file;  // for messages
  MscclPosition where{};
  friend bool operator==(const MscclAlgorithm&, const MscclAlgorithm&) = default;
};

/// A step by its numbers.
struct MscclStepId {
  int gpu = 0, block = 0, step = 0;
  friend bool operator==(const MscclStepId&, const MscclStepId&) = default;
};
inline const MscclStep& step_of(const MscclAlgorithm& algorithm, const MscclStepId& id) {
  return algorithm.gpus[static_cast<std::size_t>(id.gpu)].blocks[static_cast<std::size_t>(id.block)].steps[static_cast<std::size_t>(id.step)];
}
inline SourceLocation location_of(const MscclAlgorithm& algorithm, const MscclPosition& where) { return {algorithm.file, where.line, where.column}; }

/// A step that sends, and the step that receives it.
struct MscclTransfer {
  MscclStepId from, to;
};

/// What follows from the steps of all GPUs together.
struct MscclOrder {
  std::vector<MscclStepId> steps;        // every step, none before what it waits for; in the order of their numbers where nothing else decides
  std::vector<MscclTransfer> transfers;  // by connection, in its order
};

/// Matches what is sent with what is received, and orders all steps. A connection holds whatever has been sent and not yet received (NCCL's has 8
/// slots), so that a send waits for no receive.
///
///   cost    O(steps log steps)
///   errors  at the step or thread block: two thread blocks of a GPU with the same connection; a step that waits for one that does not exist, or
///           that does not tell others when it is done; what is sent and not received, or received and not sent, or of other sizes at the two
///           ends; steps that wait for each other
Expected<MscclOrder> order_of(const MscclAlgorithm& algorithm);

}  // namespace podsim
