#include "tools/command/vary.hpp"

#include <algorithm>

#include "sim/machine/machine_fields.hpp"

namespace podsim {

namespace {

/// The values of one path.
Expected<std::vector<Varied>> values_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Diagnostic{option("vary"), "expected PATH=VALUE,VALUE,..., as link.bandwidth=45GB/s,90GB/s, found " + quoted(text)};
  std::vector<Varied> values;
  for (std::string& value : split(text.substr(equals + 1))) {
    Machine any;  // whether a path takes a value does not depend on the machine
    values.push_back({text.substr(0, equals), std::move(value)});
    if (auto ok = set_machine_value(any, values.back().path, values.back().value, "--vary", option("vary")); !ok) return ok.error();
  }
  return values;
}

}  // namespace

Expected<std::vector<std::vector<Varied>>> variations_of(const Options& options) {
  std::vector<std::vector<Varied>> variations{{}};
  for (const std::string& text : options.texts("vary")) {
    const auto values = values_of(text);
    if (!values) return values.error();
    std::vector<std::vector<Varied>> longer;
    for (const std::vector<Varied>& before : variations) {
      const std::string& path = values->front().path;
      if (std::any_of(before.begin(), before.end(), [&](const Varied& other) { return other.path == path; }))
        return Diagnostic{option("vary"), quoted(path) + " is varied twice"};
      for (const Varied& value : *values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    }
    variations = std::move(longer);
  }
  return variations;
}

std::string to_text(const std::vector<Varied>& varied) {
  std::string text;
  for (const auto& [path, value] : varied) text += (text.empty() ? "" : " ") + path + "=" + value;
  return text;
}

}  // namespace podsim
