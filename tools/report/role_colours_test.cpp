#include "tools/report/role_colours.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/collective_kind.hpp"
#include "sim/schedule/local_kind.hpp"

namespace podsim {
namespace {

/// What CIELAB calls lightness, green to red, and blue to yellow.
using Lab = std::array<double, 3>;
using Matrix3 = std::array<std::array<double, 3>, 3>;

/// Of linear RGB: as everybody sees it, and as the red-blind and the green-blind do. Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of
/// Color Vision Deficiency", 2009, severity 1.
constexpr std::array<Matrix3, 3> eyes{{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                       {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
                                       {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}}};
constexpr Matrix3 to_xyz{{{0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505}, {0.2126, 0.7152, 0.0722}, {0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089}}};

Lab times(const Matrix3& matrix, const Lab& vector) {
  Lab product{};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column) product[row] += matrix[row][column] * vector[column];
  return product;
}

Lab seen(Colour colour, const Matrix3& eye) {
  const auto linear = [](std::uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  Lab rgb = times(eye, {linear(colour.red), linear(colour.green), linear(colour.blue)});
  for (double& value : rgb) value = std::clamp(value, 0.0, 1.0);
  Lab xyz = times(to_xyz, rgb);
  for (double& value : xyz) value = value > 0.008856 ? std::cbrt(value) : 7.787 * value + 16.0 / 116;
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

/// How far apart two colours are for those who see them as least different. 2.3 is just noticeable side by side.
double distance(Colour a, Colour b) {
  double least = 1e9;
  for (const Matrix3& eye : eyes) {
    const Lab left = seen(a, eye), right = seen(b, eye);
    least = std::min(least, std::hypot(left[0] - right[0], left[1] - right[1], left[2] - right[2]));
  }
  return least;
}

bool is_role(std::string_view role) { return std::ranges::find(role_colours(), role, &RoleColour::role) != role_colours().end(); }

using Stack = std::vector<std::pair<std::string, Colour>>;
Stack of(const std::vector<std::string>& roles) {
  Stack stack;
  for (const std::string& role : roles) {
    EXPECT_TRUE(is_role(role)) << role;
    stack.emplace_back(role, colour_of_role(role));
  }
  return stack;
}

/// The categories of a run's operations: of every kind of work and of communication.
std::vector<std::string> categories() {
  std::vector<std::string> all{"matmul", "call", "send"};
  for (const LocalTraits& traits : local_table)
    if (std::ranges::find(all, traits.category) == all.end()) all.emplace_back(traits.category);
  for (int kind = 0; kind < collective_kind_count; ++kind) all.emplace_back(name_of(static_cast<CollectiveKind>(kind)));
  return all;
}

TEST(RoleColours, EveryCategoryOfOperationsHasOne) {
  for (const std::string& category : categories()) EXPECT_TRUE(is_role(category)) << category;
}

TEST(RoleColours, WhatStandsInOneStackIsToldApartByTheColourBlindToo) {
  std::map<std::string, Stack> stacks{
      {"core", of({"compute", "exposed communication", "waiting"})},
      {"in flight", of({"exposed", "hidden"})},
      {"critical path", of({"compute", "host", "memory", "core share", "launch", "own block", "per message", "latency", "bandwidth", "sharing", "reduction", "waiting"})},
      {"pipeline", of({"forward", "backward", "backward of inputs", "backward of weights", "optimizer"})},
      {"training memory", of({"weights", "gradients", "optimizer", "activations", "working", "functions"})},
      {"memory", of({"inputs", "outputs", "received", "products", "copies and elementwise", "functions", "other"})},
      {"training step", of({"compute", "recompute", "optimizer", "copies", "bubble", "launch", "waiting"})},
      {"operations", of(categories())}};
  for (std::size_t axis = 0; axis < axis_colours().size(); ++axis) stacks["training step"].emplace_back("axis " + std::to_string(axis), axis_colours()[axis]);
  for (std::size_t s = 0; s < series_colours().size(); ++s) stacks["series"].emplace_back(std::to_string(s), series_colours()[s]);
  for (const char* role : {"waiting", "launch", "other"}) stacks["operations"].emplace_back(role, colour_of_role(role));
  constexpr double least = 10;
  for (const auto& [name, stack] : stacks)
    for (std::size_t a = 0; a < stack.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) EXPECT_GT(distance(stack[a].second, stack[b].second), least) << name << ": " << stack[a].first << " and " << stack[b].first;
}

TEST(RoleColours, DifferentWordsForOneThingShareOne) {
  for (const auto& [word, other] : {std::pair{"optimiser", "optimizer"}, {"copies", "copy"}, {"launches", "launch"}, {"exposed communication", "exposed"}})
    EXPECT_EQ(colour_of_role(word), colour_of_role(other)) << word;
}

TEST(RoleColours, ARoleStandsInTheTableOnce) {
  for (const RoleColour& entry : role_colours()) EXPECT_EQ(std::ranges::count(role_colours(), entry.role, &RoleColour::role), 1) << entry.role;
}

}  // namespace
}  // namespace podsim
