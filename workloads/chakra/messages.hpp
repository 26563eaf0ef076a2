// Matches the messages of traces: every send has its receive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

class MessageTable {
 public:
  struct Key {
    int source = 0, destination = 0;
    std::int32_t tag = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Half {
    std::int64_t bytes = 0;
    int record = 0;
  };

  /// In the order in which the rank of the half has them.
  void add(const Key& key, bool sends, Half half) { (sends ? table_[key].sends : table_[key].receives).push_back(half); }

  /// Errors, by source, destination and tag: a send without its receive, or a receive without its send; different sizes. `files`: by rank.
  [[nodiscard]] Status check(const std::vector<std::string>& files) const;

 private:
  struct Halves {
    std::vector<Half> sends, receives;
  };
  std::map<Key, Halves> table_;
};

}  // namespace podsim
