// Peak memory of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/engine/times_reader.hpp"

namespace podsim {

/// Storage that a device holds: a buffer of its program, or the scratch buffers of a played Call.
struct LiveBuffer {
  std::string name;  // of the buffer; of the scratch buffers: the Call's label
  Bytes size;
  std::optional<BufferId> buffer;  // of the program; nullopt: scratch buffers of a Call
};

/// The memory that is live on a device from a moment on, until the next.
struct LiveMemory {
  Picoseconds from;
  Bytes size;
  friend bool operator==(const LiveMemory&, const LiveMemory&) = default;
};

/// Storage of a device that becomes live, or ends.
struct MemoryChange {
  Picoseconds at;
  Bytes by;                        // negative: it ends
  std::optional<BufferId> buffer;  // as of LiveBuffer
};

/// When the buffers of each node are live: a scratch buffer from its earliest write to its last use, inputs and outputs always. Buffers on the host are not the
/// device's. The buffers of a played Call are live as they are when its tasks run.
///   cost    O(task instances) to read; 16 bytes per scratch buffer and node
class BufferLives final : public TimesReader {
 public:
  /// The model must outlive it.
  explicit BufferLives(const Model& model);

  void read(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) override;

  /// Per node, the largest sum of live buffers over time. Cost O(n log n) per node for the n buffers and Calls of its program.
  [[nodiscard]] std::vector<Bytes> peaks() const;
  /// What is live on a device at the first moment of its peak, whose sizes sum to it: buffers in the program's order, then Calls.
  [[nodiscard]] std::vector<LiveBuffer> live_at_peak(DeviceId device) const;
  /// What is live on a device over time, from 0 on; times increase, and sizes that follow one another differ. The largest is its peak. Empty for a
  /// device that idles.
  [[nodiscard]] std::vector<LiveMemory> over_time(DeviceId device) const;
  /// What a device holds at time 0, inputs and outputs, as changes; then all changes in order of time, at one time those that end first. Their largest sum
  /// is the peak.
  [[nodiscard]] std::vector<MemoryChange> history(DeviceId device) const;
  /// Of a model of one function: what a Call of it does with its arguments and takes beside them, on this node.
  void describe(PlayedCall& call, std::uint32_t node, std::size_t parameters) const;

 private:
  struct CallScratch {
    std::size_t task = 0;
    Picoseconds begin;
  };
  struct OfProgram {
    std::vector<std::uint32_t> scratch;           // position of a buffer among the scratch buffers of the device; no_device: it is none
    std::vector<Picoseconds> begin, end;          // [scratch buffer][node of the program]
    std::vector<std::vector<CallScratch>> calls;  // by node of the program
  };
  /// Something becomes live or ends: a buffer, by its position in the program, or the scratch buffers of a Call, by its position behind those.
  struct Change {
    Picoseconds at;
    Bytes by;
    std::size_t of = 0;
  };
  [[nodiscard]] Picoseconds* times_of(std::vector<Picoseconds> OfProgram::* times, std::uint32_t program, const Region& region);
  void used(std::uint32_t program, const Region& region, const Participants& who, std::span<const Picoseconds> end);
  void written(std::uint32_t program, const Region& region, const Participants& who, std::span<const Picoseconds> begin, std::span<const Picoseconds> end);
  void arrive(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start, std::span<const Picoseconds> sent);
  void call(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start);
  [[nodiscard]] std::vector<Change> changes(std::uint32_t program, std::size_t local, std::size_t first_buffer = 0) const;
  [[nodiscard]] Bytes peak(std::uint32_t program, std::size_t local) const;

  const Model& model_;
  std::vector<OfProgram> programs_;
};

/// BufferLives::peaks() of a timeline.
std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline);
/// BufferLives::live_at_peak() of a timeline.
std::vector<LiveBuffer> live_at_peak(const Model& model, const Timeline& timeline, DeviceId device);
/// BufferLives::history() of a timeline.
std::vector<std::vector<MemoryChange>> memory_histories(const Model& model, const Timeline& timeline, const std::vector<DeviceId>& devices);

}  // namespace podsim
