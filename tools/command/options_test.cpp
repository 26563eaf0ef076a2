#include "tools/command/options.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

OptionGroup described() {
  return {{"word", words("W"), "positional too"}, {"set", words("S"), ""}, {"letter,l", words("L"), ""}, {"quiet", flag(), ""}};
}

TEST(Options, AreTheSameHoweverManyStandBeforeThem) {
  for (std::size_t before = 240; before < 270; ++before) {
    SCOPED_TRACE(before);
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < before; ++i) arguments.push_back("--set=a");
    const std::vector<std::string> some{"--set", "b", "w", "-l", "c", "-ld", "--letter=e", "--quiet", "x", "--", "--set", "y"};
    arguments.insert(arguments.end(), some.begin(), some.end());
    const auto options = parse_options(arguments, described(), "word");
    ASSERT_TRUE(options) << to_text(options.error());
    const auto sets = options->texts("set");
    ASSERT_EQ(sets.size(), before + 1);
    EXPECT_EQ(sets.back(), "b");
    EXPECT_EQ(options->texts("letter"), (std::vector<std::string>{"c", "d", "e"}));
    EXPECT_EQ(options->texts("word"), (std::vector<std::string>{"w", "x", "--set", "y"}));
    EXPECT_TRUE(options->flag("quiet"));
    arguments = {arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(before)};
    arguments.emplace_back("--set");
    EXPECT_FALSE(parse_options(arguments, described(), "word")) << "its value is missing";
  }
}

TEST(Options, ThatBoostNeedNotReadAreTheSame) {
  for (const std::vector<std::string>& plain : std::vector<std::vector<std::string>>{{"--set=a=b", "--quiet", "--set=--c d", "--letter=\"=\""},
                                                                                     {"--quiet", "--quiet"},
                                                                                     {"--set="},
                                                                                     {"--set"},
                                                                                     {"--quiet=1"},
                                                                                     {"--se=a"},
                                                                                     {"--=a"},
                                                                                     {"--sets=a"}}) {
    SCOPED_TRACE(::testing::PrintToString(plain));
    std::vector<std::string> with_word = plain;
    with_word.insert(with_word.begin(), "-ld");  // a letter is for Boost
    const auto one = parse_options(plain, described());
    const auto other = parse_options(with_word, described());
    ASSERT_EQ(one.has_value(), other.has_value());
    if (!one) {
      EXPECT_EQ(to_text(one.error()), to_text(other.error()));
      continue;
    }
    EXPECT_EQ(one->texts("set"), other->texts("set"));
    EXPECT_EQ(one->texts("letter").back(), other->texts("letter").back());
    EXPECT_EQ(one->flag("quiet"), other->flag("quiet"));
  }
}

}  // namespace
}  // namespace podsim
