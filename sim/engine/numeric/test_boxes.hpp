// Boxes of words for tests of kernels: packed, or spread out in memory whose other words must not change.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim::testing {

using Complexes = std::vector<std::complex<double>>;

/// An array with memory of its own. `spread`: a box in a larger array, at an odd place.
class TestBox {
 public:
  explicit TestBox(std::vector<std::int64_t> extents, DType dtype = DType::f32, bool spread = false) : dtype_{dtype} {
    std::vector<std::int64_t> whole = extents, begin(extents.size(), 0);
    for (std::size_t d = 0; spread && d < extents.size(); ++d) whole[d] += 3 - static_cast<std::int64_t>(d % 2), begin[d] = 1 + static_cast<std::int64_t>(d % 2);
    std::int64_t words = words_of(dtype);
    for (const std::int64_t extent : whole) words *= extent;
    memory_.assign(static_cast<std::size_t>(words), untouched);
    layout_ = in_words(box_of(whole, begin, extents), dtype);
  }

  View view() { return {memory_.data(), layout_, dtype_}; }
  [[nodiscard]] std::int64_t size() const { return elements_of(layout_); }  // words

  float& word(std::int64_t i) {
    std::int64_t offset = layout_.offset;
    for (auto d = static_cast<std::size_t>(layout_.rank); d-- > 0; i /= layout_.length[d]) offset += i % layout_.length[d] * layout_.stride[d];
    return memory_[static_cast<std::size_t>(offset)];
  }
  std::int32_t integer(std::int64_t i) { return std::bit_cast<std::int32_t>(word(i)); }
  std::complex<double> complex(std::int64_t i) {
    if (dtype_ != DType::c64) return static_cast<double>(word(i));
    return {static_cast<double>(word(2 * i)), static_cast<double>(word(2 * i + 1))};
  }

  TestBox& random(std::uint64_t seed) {
    Rng rng{seed, stream_of("box")};
    for (std::int64_t i = 0; i < size(); ++i) word(i) = static_cast<float>(2 * rng.uniform() - 1);
    return *this;
  }
  TestBox& integers(const std::vector<std::int32_t>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) word(static_cast<std::int64_t>(i)) = std::bit_cast<float>(values[i]);
    return *this;
  }
  TestBox& numbers(const std::vector<float>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) word(static_cast<std::int64_t>(i)) = values[i];
    return *this;
  }
  std::vector<float> values() {
    std::vector<float> all;
    for (std::int64_t i = 0; i < size(); ++i) all.push_back(word(i));
    return all;
  }
  std::vector<std::int32_t> integers() {
    std::vector<std::int32_t> all;
    for (std::int64_t i = 0; i < size(); ++i) all.push_back(integer(i));
    return all;
  }
  /// The words outside the box that have changed.
  int changed_outside() {
    std::vector<float> others = memory_;
    std::swap(others, memory_);
    for (std::int64_t i = 0; i < size(); ++i) word(i) = untouched;
    std::swap(others, memory_);
    int changed = 0;
    for (const float value : others) changed += value != untouched ? 1 : 0;
    return changed;
  }

 private:
  static constexpr float untouched = 12345;
  DType dtype_;
  std::vector<float> memory_;
  Layout layout_;
};

}  // namespace podsim::testing
