// Flat YAML: a mapping of keys to scalars and lists, with the place of each. The only use of yaml-cpp, by its events: no tree is built.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

struct YamlValue {
  enum class Kind { scalar, list, other };  // other: a mapping, or a list that holds more than scalars
  Kind kind = Kind::scalar;
  std::string text{};               // of a scalar, without quotes; "" for null
  bool quoted = false;              // a scalar in quotes is a text whatever it looks like
  std::vector<std::string> items{};  // of a list
  SourceLocation where{};
};

struct YamlEntry {
  std::string key;
  YamlValue value;
  SourceLocation where;  // of the key
};

/// The entries in the order of the file. Errors, with `file:line:column`: what is no YAML; a document that is not a mapping, or several; keys that are no
/// scalars, or given twice; anchors, aliases and tags; nesting deeper than 64; a text longer than yaml_limit.
inline constexpr std::size_t yaml_limit = 1'000'000;
Expected<std::vector<YamlEntry>> read_yaml(std::string_view text, const std::string& file);

/// One value, as behind `KEY=`. Columns count from `where`, its first character.
Expected<YamlValue> read_yaml_value(std::string_view text, const SourceLocation& where);

}  // namespace podsim
