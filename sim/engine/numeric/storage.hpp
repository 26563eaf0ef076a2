// The layout of all devices' buffers in one array, and the boxes that an activity accesses.
#pragma once

#include <bit>
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
  BoxExtents begin{}, length{};
};
bool overlap(const Access& a, const Access& b);
bool same_box(const Access& a, const Access& b);
/// Whether `outer` contains `inner`; both must be of one slot.
bool contains(const Access& outer, const Access& inner);

/// A sum of sizes that saturates at the largest number.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a > most - b ? most : a + b;
}
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return a != 0 && b > most / a ? most : a * b;
}

/// Memory is an array of words of 4 bytes: a real number, whatever its dtype, is a float32 and has one; an s32 one with the bits of its int32; a complex
/// number two, the real part first.
constexpr std::int64_t words_of(DType dtype) { return dtype == DType::c64 ? 2 : 1; }
/// The number that a word holds.
inline double number_in(float word, DType dtype) {
  return dtype == DType::s32 ? static_cast<double>(std::bit_cast<std::int32_t>(word)) : static_cast<double>(word);
}
/// The words of a buffer; saturates.
std::int64_t words_in(const Buffer& buffer);
/// A layout of elements of this dtype, in words.
inline Layout in_words(const Layout& elements, DType dtype) { return in_words(elements, words_of(dtype)); }

/// A slot is one buffer on one device, numbered by device, then by buffer. The schedule must outlive the storage.
class Storage {
 public:
  /// Errors: a buffer of more than max_rank dimensions. The schedule is well-shaped; cost O(devices * buffers).
  static Expected<Storage> make(const Schedule& lowered);

  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  [[nodiscard]] std::size_t first_slot(DeviceId device) const { return first_slot_[device.index()]; }
  /// nullopt: the device idles.
  [[nodiscard]] std::optional<std::size_t> program(DeviceId device) const;
  [[nodiscard]] const Buffer& buffer(std::size_t slot) const { return *slots_[slot].buffer; }
  [[nodiscard]] std::int64_t offset(std::size_t slot) const { return slots_[slot].offset; }  // in words
  [[nodiscard]] std::int64_t words(std::size_t slot) const { return words_in(buffer(slot)); }
  [[nodiscard]] const Coordinates& coordinates(DeviceId device) const { return coordinates_[device.index()]; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  /// Appends the accesses of an activity, reads first: left, right, out; source, target. A launch has none.
  void append_accesses(const Activity& activity, std::vector<Access>& accesses) const;
  [[nodiscard]] Access access(DeviceId device, const Region& region, bool write) const;
  /// Of words.
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

/// The bytes that Storage needs for a well-shaped schedule, all devices together, in words whatever the buffers' dtypes; and for its inputs and
/// outputs only. Both saturate. Cost O(buffers of the programs).
Bytes bytes_of_buffers(const Schedule& lowered);
Bytes bytes_of_results(const Schedule& lowered);

/// Error if `need` exceeds `limit`; the message names both and `what` needs the memory.
Status fits(Bytes need, Bytes limit, std::string_view what);

}  // namespace podsim
