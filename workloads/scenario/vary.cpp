#include "workloads/scenario/vary.hpp"

#include <algorithm>

#include "sim/base/text.hpp"
#include "sim/machine/machine_fields.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

/// The values of one path.
Expected<std::vector<Override>> values_of(const std::string& text, const SourceLocation& where) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Diagnostic{where, "expected PATH=VALUE,VALUE,..., as link.bandwidth=45GB/s,90GB/s, found " + quoted(text)};
  std::vector<Override> values;
  for (std::string& value : split(text.substr(equals + 1))) {
    values.push_back({text.substr(0, equals), std::move(value)});
    // Whether a path takes a value does not depend on the machine.
    if (auto ok = with_values({}, {values.back()}, "varied", where); !ok) return ok.error();
  }
  return values;
}

}  // namespace

Expected<std::vector<std::vector<Override>>> parse_variations(const std::vector<std::string>& texts, const SourceLocation& where) {
  std::vector<std::vector<Override>> variations{{}};
  for (const std::string& text : texts) {
    const auto values = values_of(text, where);
    if (!values) return values.error();
    std::vector<std::vector<Override>> longer;
    for (const std::vector<Override>& before : variations) {
      const std::string& path = values->front().path;
      if (std::any_of(before.begin(), before.end(), [&](const Override& other) { return other.path == path; }))
        return Diagnostic{where, quoted(path) + " is varied twice"};
      for (const Override& value : *values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    }
    variations = std::move(longer);
  }
  return variations;
}

bool same_values(const Machine& a, const Machine& b) {
  for (const MachineField& field : machine_fields())
    for (int entry = 0; entry < static_cast<int>(index_names(field.index).size()); ++entry)
      if (value_text(field, a, entry) != value_text(field, b, entry)) return false;
  return true;
}

Expected<Machine> with_values(Machine machine, const std::vector<Override>& values, const std::string& source, const SourceLocation& where) {
  const Machine before = machine;
  for (const Override& value : values)
    if (auto ok = set_machine_value(machine, value.path, value.value, source, where); !ok) return ok.error();
  if (!values.empty() && !same_values(before, machine)) machine.trust.level = TrustLevel::hypothetical;  // what it was fitted to had other values
  return machine;
}

std::string to_text(const std::vector<Override>& varied) {
  std::string text;
  for (const auto& [path, value] : varied) text += (text.empty() ? "" : " ") + path + "=" + value;
  return text;
}

}  // namespace podsim
