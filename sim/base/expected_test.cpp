#include "sim/base/expected.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace podsim {
namespace {

using Text = Expected<std::string>;

const std::string long_text(100, 'x');  // on the heap, so that a sanitizer sees what is freed twice or never

Diagnostic problem() { return {{"file", 1, 2}, long_text}; }

TEST(Expected, HoldsAValueOrADiagnostic) {
  const Text value{long_text}, error{problem()};
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, long_text);
  EXPECT_EQ(value->size(), 100U);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, long_text);
}

TEST(Expected, CopiesAreIndependent) {
  Text value{long_text};
  const Text copy{value}, error{problem()}, copied_error{error};
  value->clear();
  EXPECT_EQ(*copy, long_text);
  EXPECT_EQ(copied_error.error().where.file, "file");
}

TEST(Expected, AssignmentReplacesEitherByEither) {
  Text one{long_text};
  const Text value{"short"}, error{problem()};
  one = error;
  ASSERT_FALSE(one);
  one = value;
  ASSERT_TRUE(one);
  EXPECT_EQ(*one, "short");
  one = problem();
  EXPECT_EQ(one.error().message, long_text);
  one = std::string{"again"};
  EXPECT_EQ(*one, "again");
  const Text& itself = one;
  one = itself;
  EXPECT_EQ(*one, "again");
}

TEST(Expected, WhatCannotBeCopiedIsMoved) {
  using Owner = Expected<std::unique_ptr<int>>;
  static_assert(!std::is_copy_constructible_v<Owner> && std::is_nothrow_move_constructible_v<Owner>);
  Owner owner{std::make_unique<int>(7)};
  std::vector<Owner> owners;
  owners.push_back(std::move(owner));
  owners.emplace_back(problem());
  owners.emplace_back(std::make_unique<int>(8));  // the vector grows by moving
  EXPECT_EQ(**owners[0] + **owners[2], 15);
  const std::unique_ptr<int> taken = *std::move(owners[0]);
  EXPECT_EQ(*taken, 7);
}

}  // namespace
}  // namespace podsim
