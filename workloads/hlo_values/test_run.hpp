// Modules of one line, run on arrays: for the tests of the interpreter.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo/testing.hpp"
#include "workloads/hlo_values/interpret.hpp"

namespace podsim::test {

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

/// An array of a shape, "f32[2,3]", with these numbers.
inline HloArray array(std::string_view shape_text, const std::vector<double>& values) {
  const HloShape shape = shape_of(shape_text);
  HloArray result{shape.type, shape.dims, {}, {}};
  for (const double value : values)
    if (is_float(shape.type))
      result.reals.push_back(value);
    else
      result.integers.push_back(wrapped(shape.type, static_cast<std::uint64_t>(static_cast<std::int64_t>(value))));
  EXPECT_TRUE(fits(result, shape)) << shape_text;
  return result;
}

/// 1, 2, .. : as many as the shape has elements.
inline HloArray counted(std::string_view shape_text) {
  std::vector<double> values;
  const std::int64_t count = elements_of(shape_of(shape_text));
  for (std::int64_t i = 1; i <= count; ++i) values.push_back(static_cast<double>(i));
  return array(shape_text, values);
}

/// `parameters[device][parameter]`, single arrays, of every device.
inline Expected<std::vector<HloArrays>> run(const HloModule& module, const std::vector<HloArrays>& parameters, HloRunOptions options = {}) {
  std::vector<std::vector<HloArrays>> values;
  for (const HloArrays& mine : parameters) {
    auto& device = values.emplace_back();
    for (const HloArray& parameter : mine) device.push_back({parameter});
  }
  return interpret(module, values, options);
}

/// A module whose entry has the parameters p0, p1, .. of these arrays and then these lines.
inline std::string text_with(const HloArrays& parameters, const std::string& lines, const std::string& before = "") {
  std::string text = "HloModule m\n" + before + "ENTRY e {\n";
  for (std::size_t i = 0; i < parameters.size(); ++i) text += fmt::format("p{} = {} parameter({})\n", i, short_text(parameters[i]), i);
  return text + lines + "\n}\n";
}

/// The results on one device.
inline HloArrays results_of(const HloArrays& parameters, const std::string& lines, const std::string& before = "") {
  const auto results = run(module_of(text_with(parameters, lines, before)), {parameters});
  EXPECT_TRUE(results) << to_text(results.error()) << "\n" << lines;
  return results ? results->front() : HloArrays{{}};
}
inline HloArray result_of(const HloArrays& parameters, const std::string& lines, const std::string& before = "") {
  return results_of(parameters, lines, before).at(0);
}
/// Of the reader, else of the interpreter.
inline std::string run_error(const HloArrays& parameters, const std::string& lines, const std::string& before = "") {
  const std::string text = text_with(parameters, lines, before);
  if (std::string error = error_of(text); !error.empty()) return error;
  const auto results = run(module_of(text), {parameters});
  return results ? "" : to_text(results.error());
}

}  // namespace podsim::test
