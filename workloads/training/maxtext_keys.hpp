// What podsim knows of MaxText's keys. Internal to workloads/training.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

/// A key that changes the computation, and the values that leave it as podsim has it. Values are compared as YAML has them: false, 0 and 0.0 alike.
struct FixedKey {
  std::string_view key;
  std::vector<std::string_view> values;
  std::string_view why;  // what it would change
};

enum class KeyUse { read, fixed, sharding_rules, harmless, unknown };
KeyUse use_of_key(std::string_view key);

/// The default in MaxText's base.yml of a key that is read.
std::string_view default_of_key(std::string_view key);
/// Of a key with KeyUse::fixed.
const FixedKey& fixed_key(std::string_view key);
/// All keys with a name of their own, for messages that name similar ones.
std::vector<std::string> known_keys();

}  // namespace podsim
