// Instructions of one computation of a module, as text: what the test writer of HLO writes with.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace podsim::testing::as_hlo {

using Lengths = std::vector<std::int64_t>;

/// An array of the module.
struct Array {
  std::string name;
  Lengths dims;
};

/// Instructions of one computation.
class Instructions {
 public:
  explicit Instructions(std::string_view dtype) : dtype_{dtype} {}

  [[nodiscard]] std::string shape(const Lengths& dims) const {
    Lengths minor_to_major(dims.size());
    std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
    return dims.empty() ? fmt::format("{}[]", dtype_) : fmt::format("{}[{}]{{{}}}", dtype_, fmt::join(dims, ","), fmt::join(minor_to_major, ","));
  }
  std::string add(const std::string& base, const std::string& shape, const std::string& rest) {
    const std::string name = fmt::format("{}.{}", base, count_++);
    text_ += fmt::format("  %{} = {} {}\n", name, shape, rest);
    return name;
  }
  Array array(const std::string& base, const Lengths& dims, const std::string& rest) { return {add(base, shape(dims), rest), dims}; }
  /// Free: arrays are row-major.
  Array as(const Array& from, const Lengths& dims) {
    if (from.dims == dims) return from;
    const auto found = shaped_.find(from.name);
    const Array source = found == shaped_.end() ? from : found->second;
    if (source.dims == dims) return source;
    Array made = array("bitcast", dims, fmt::format("bitcast(%{})", source.name));
    shaped_.emplace(made.name, source);
    return made;
  }
  std::string number(std::int64_t n) {
    std::string& name = numbers_[n];
    if (name.empty()) name = add("constant", "s32[]", fmt::format("constant({})", n));
    return name;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// The text with this instruction as the root.
  [[nodiscard]] std::string with_root(const std::string& name) const {
    std::string text = text_;
    const std::size_t at = text.find("  %" + name + " = ");
    return text.insert(at + 2, "ROOT ");
  }
  [[nodiscard]] std::string_view dtype() const { return dtype_; }

 private:
  std::string_view dtype_;
  std::string text_;
  int count_ = 0;
  std::map<std::int64_t, std::string> numbers_;
  std::map<std::string, Array> shaped_;  // what bitcasts are of
};

}  // namespace podsim::testing::as_hlo
