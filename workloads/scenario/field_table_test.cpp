// The table of fields is whole: what a row says of itself is true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {
namespace {

TEST(FieldTable, HasEachNameOnceAndHelpThatStandsAlone) {
  std::set<std::string_view> names;
  for (const FieldKind& field : scenario_fields()) {
    SCOPED_TRACE(field.name);
    EXPECT_TRUE(names.insert(field.name).second);
    EXPECT_EQ(field.placeholder.empty(), field.form == Form::flag);
    for (const bool compared : {false, true}) {
      const std::string help = help_of(field, compared);
      EXPECT_GE(help.size(), 10U);
      EXPECT_EQ(help.find("{}"), std::string::npos);
      for (const char* connecting : {"of ", "and ", "where ", "as "}) EXPECT_FALSE(help.starts_with(connecting)) << help;
    }
    for (const std::string_view problem : field.problems)
      EXPECT_TRUE(problem.empty() || problem_kind_named(problem) != nullptr) << problem;
    if (field.form == Form::word) {
      EXPECT_FALSE(words_of(field).empty());
    }
    if (field.form == Form::name) {
      EXPECT_NE(field.names, nullptr);
    }
  }
}

TEST(FieldTable, TakesItsOwnDefaultsWordsAndNames) {
  for (const FieldKind& field : scenario_fields()) {
    SCOPED_TRACE(field.name);
    std::vector<std::string> texts = words_of(field);
    if (!field.otherwise.empty()) texts.emplace_back(field.otherwise);
    if (field.form == Form::name || field.name == "machine" || field.name == "workload" || field.name == "training")
      for (std::string& name : field.names()) texts.push_back(std::move(name));
    for (const std::string& text : texts) EXPECT_TRUE(check_field(field, text, "gemm")) << text;
  }
}

TEST(FieldTable, TellsEveryTextThatIsOutsideOfItsWordsOrItsRange) {
  const auto message = [](std::string_view name, const std::string& text) {
    const Status ok = check_field(*scenario_field(name), text, "gemm");
    return ok ? std::string{} : ok.error().message;
  };
  EXPECT_EQ(message("optimizer", "adam"), "expected adamw or sgd, found \"adam\"");
  EXPECT_EQ(message("rewrite", "none"), "expected reduce-scatter, bf16-reductions, split, combine or prefetch, found \"none\"");
  EXPECT_EQ(message("steps", "1001"), "expected a whole number from 1 to 1000, got \"1001\"");
  EXPECT_EQ(message("given", "X,Z"), "expected X, W or dY, found \"Z\"");
  EXPECT_EQ(message("trip_count", "while.1=2; while.2=x"), "expected a whole number from 0 to 9007199254740992, got \"x\"");
  for (const FieldKind& field : scenario_fields()) {
    SCOPED_TRACE(field.name);
    if (field.form == Form::word || field.form == Form::name) {
      EXPECT_NE(message(field.name, "no such word"), "");
    }
    if (field.form != Form::count) continue;
    EXPECT_NE(message(field.name, "1.5"), "");
    if (field.high < (std::int64_t{1} << 41)) {
      EXPECT_NE(message(field.name, std::to_string(field.high + 1)), "");
    }
    if (field.low > -(std::int64_t{1} << 41)) {
      EXPECT_NE(message(field.name, std::to_string(field.low - 1)), "");
    }
  }
}

}  // namespace
}  // namespace podsim
