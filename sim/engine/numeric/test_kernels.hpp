// Kernels on numbers, for tests: one run alone on operands inside of larger buffers, and what float64 says of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/transformer_kernels.hpp"

namespace podsim::testing {

using Values = std::vector<double>;
using Lengths = std::vector<std::int64_t>;

// ---- What is expected -----------------------------------------------------------------------------------------------------------------

/// The slope of (sum of dy.f) along each x.
inline Values central_differences(const std::function<Values(const Values&)>& f, Values x, const Values& dy) {
  constexpr double step = 1e-5;
  const auto loss = [&] {
    const Values y = f(x);
    return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
  };
  Values slopes;
  for (double& value : x) {
    const double middle = value;
    value = middle + step;
    const double above = loss();
    value = middle - step;
    slopes.push_back((above - loss()) / (2 * step));
    value = middle;
  }
  return slopes;
}

/// To float32, relative to the largest.
inline void expect_close(const Values& found, const Values& expected, std::string_view what, double tolerance = 1e-6) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance * largest) << what << " " << i;
}

// ---- Running what is found ------------------------------------------------------------------------------------------------------------

/// A tensor [tokens..., features...] with its features first, and back: a transpose, `rows` being the first extents of what is given.
inline Values transposed(const Values& values, std::int64_t rows) {
  const auto m = static_cast<std::size_t>(rows), n = values.size() / m;
  Values result;
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < m; ++i) result.push_back(values[i * n + j]);
  return result;
}
inline std::size_t token_dims(const Lengths& lengths) { return lengths.size() == 2 ? 1 : 2; }
inline Lengths features_first(Lengths lengths) {
  std::rotate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(token_dims(lengths)), lengths.end());
  return lengths;
}
inline std::int64_t tokens_of(const Lengths& lengths) { return lengths[0] * (token_dims(lengths) == 2 ? lengths[1] : 1); }

inline Tensors results_of(const Schedule& schedule, const NumericOptions& options) {
  const Expected<Tensors> tensors = make_numeric_engine(options)->run(schedule);
  EXPECT_TRUE(tensors) << to_text(tensors.error());
  return tensors ? *tensors : Tensors{};
}

/// The elements of the box that leaves out the first and the last of every dimension. Around what is written nothing is written.
inline Values inside(const Buffer& buffer, const std::vector<float>& values) {
  Values result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool in = true;
    std::int64_t rest = static_cast<std::int64_t>(i);
    for (std::size_t d = buffer.extents.size(); d-- > 0; rest /= buffer.extents[d])
      in &= rest % buffer.extents[d] > 0 && rest % buffer.extents[d] < buffer.extents[d] - 1;
    if (in) result.push_back(static_cast<double>(values[i]));
    EXPECT_EQ(std::isnan(values[i]), !in && buffer.role == Role::output) << i;
  }
  return result;
}

/// Executes `local` on uniform data, each operand a box inside of a larger buffer. Lengths and results are tokens first; reads, then writes.
inline std::vector<Values> run_alone(Local local, const std::vector<Lengths>& reads, const std::vector<Lengths>& writes, DType dtype = DType::f32) {
  Schedule schedule{"alone", Mesh{}, {}, {}};
  Program program{every_device(schedule.mesh), {}, {}};
  std::vector<Lengths> shapes = reads;
  shapes.insert(shapes.end(), writes.begin(), writes.end());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Region region{BufferId{i}, {}};
    Lengths extents = local.features_first ? features_first(shapes[i]) : shapes[i];
    for (std::int64_t& extent : extents) {
      region.dims.push_back(span(1, extent));
      extent += 2;
    }
    const std::string name = "operand " + std::to_string(i);
    const std::vector<std::vector<AxisView>> unsharded(extents.size());
    program.buffers.push_back(i < reads.size() ? hand_built::input(name, extents, unsharded, dtype) : hand_built::output(name, extents, unsharded, dtype));
    (i < reads.size() ? local.reads : local.writes).push_back(region);
  }
  hand_built::add(program, "alone", local);
  schedule.programs.push_back(program);
  const Tensors tensors = results_of(schedule, {.filling = Filling::uniform});
  std::vector<Values> results;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Values values = inside(program.buffers[i], tensors.values[0][i]);
    if (local.features_first) values = transposed(values, static_cast<std::int64_t>(values.size()) / tokens_of(shapes[i]));
    results.push_back(std::move(values));
  }
  return results;
}

inline Local local_of(LocalKind kind, bool features_first = false, bool causal = false) { return {kind, {}, {}, 1, Unit::core, features_first, causal}; }

/// A kernel called by itself.
struct Array {
  Lengths lengths;
  std::vector<float> values;
  Array(Lengths of, std::uint64_t seed) : lengths{std::move(of)} {
    Rng rng{seed};
    values.resize(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{1}, std::multiplies<>{})));
    for (float& value : values) value = static_cast<float>(2 * rng.uniform() - 1);
  }
  [[nodiscard]] View view() { return {values.data(), box_of(lengths, Lengths(lengths.size(), 0), lengths), DType::f32}; }
  /// The same elements, features first.
  [[nodiscard]] Array turned() const {
    Array result{features_first(lengths), 0};
    const Values from = transposed(Values(values.begin(), values.end()), tokens_of(lengths));
    std::transform(from.begin(), from.end(), result.values.begin(), [](double value) { return static_cast<float>(value); });
    return result;
  }
};

}  // namespace podsim::testing
