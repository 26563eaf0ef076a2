// Names that files keep once, and refer to by numbers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace podsim {

/// Numbers names in the order in which they are asked for; `names`, which must outlive it and be empty at first, has them by number.
class NameNumbers {
 public:
  explicit NameNumbers(std::vector<std::string>& names) : names_{names} {}
  std::uint32_t of(const std::string& name) {
    const auto [known, added] = known_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    return known->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::uint32_t> known_;
};

}  // namespace podsim
