// Where the buffers of all devices lie in one array, and which boxes of them an activity touches.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/engine/numeric/layout.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// A box of one device's buffer that an activity reads or writes.
struct Access {
  std::size_t slot = 0;
  bool write = false;
  int rank = 0;
  Extents begin{}, length{};
};
bool overlap(const Access& a, const Access& b);
bool same_box(const Access& a, const Access& b);
/// Whether every element of `inner` is one of `outer`; both of one slot.
bool contains(const Access& outer, const Access& inner);

/// Sums of sizes that may be absurd: they stop at the largest number.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a > most - b ? most : a + b;
}
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a != 0 && b > most / a ? most : a * b;
}

/// A slot is one buffer on one device; slots count by device, then by buffer. The schedule must outlive the storage.
class Storage {
 public:
  /// Errors: a buffer of more than max_rank dimensions. The schedule is well-shaped; cost O(devices * buffers).
  static Expected<Storage> make(const Schedule& lowered);

  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  [[nodiscard]] std::size_t first_slot(DeviceId device) const { return first_slot_[device.index()]; }
  /// nullopt: the device idles.
  [[nodiscard]] std::optional<std::size_t> program(DeviceId device) const;
  [[nodiscard]] const Buffer& buffer(std::size_t slot) const { return *slots_[slot].buffer; }
  [[nodiscard]] std::int64_t offset(std::size_t slot) const { return slots_[slot].offset; }
  [[nodiscard]] std::int64_t elements(std::size_t slot) const;
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  /// The reads, then the writes of an activity: left, right, out; source, target. Launches touch nothing.
  void append_accesses(const Activity& activity, std::vector<Access>& accesses) const;
  [[nodiscard]] Access access(DeviceId device, const Region& region, bool write) const;
  [[nodiscard]] Layout layout(const Access& access) const;

 private:
  struct Slot {
    const Buffer* buffer = nullptr;
    std::int64_t offset = 0;
  };
  const Schedule* schedule_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<std::size_t> first_slot_;    // per device, and the end
  std::vector<std::uint32_t> program_of_;  // per device
  std::vector<Coordinates> coordinates_;   // per device
  Bytes bytes_;
};

/// What a Storage of a well-shaped schedule will need, all devices together, in float32 whatever the buffers' types; and its inputs and outputs
/// alone. Both stop at the largest number. Cost O(buffers of the programs).
Bytes bytes_of_buffers(const Schedule& lowered);
Bytes bytes_of_results(const Schedule& lowered);

/// A Diagnostic that names the need and the limit if there is not room for `what`.
Status fits(Bytes need, Bytes limit, std::string_view what);

}  // namespace podsim
