#include "tools/console/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace podsim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Screen {
  std::ostringstream out, err;
  Console console{out, err, true};
};

TEST(ProgressLine, SaysWhatIsDoneAndIsErased) {
  Screen screen;
  {
    ProgressLine line{screen.console, false, 0};
    line.doing("choosing");
    EXPECT_THAT(screen.err.str(), HasSubstr("choosing, 0 s"));
  }
  EXPECT_TRUE(screen.err.str().ends_with("\r\033[K"));
  EXPECT_THAT(screen.out.str(), IsEmpty());
}

TEST(ProgressLine, CountsOnWhileTheWorkSaysNothing) {
  Screen screen;
  {
    ProgressLine line{screen.console, false, 0.01};
    line.count_seconds();
    line.doing("a long sum");
    EXPECT_THAT(screen.err.str(), IsEmpty()) << "it may be short";
    std::this_thread::sleep_for(std::chrono::milliseconds{1100});
  }
  EXPECT_THAT(screen.err.str(), HasSubstr("a long sum, "));
}

TEST(ProgressLine, ElsewhereItCountsOnToo) {
  std::ostringstream out, err;
  Console console{out, err};
  {
    ProgressLine line{console, false, 1, ProgressLine::Elsewhere::lines, 0.01};
    line.count_seconds();
    line.doing("a long sum");
    std::this_thread::sleep_for(std::chrono::milliseconds{1100});
  }
  EXPECT_THAT(err.str(), HasSubstr("podsim: a long sum, 1 s\n"));
}

TEST(ProgressLine, CountsPartsWithTheirRateAndTheTimeLeft) {
  Screen screen;
  ProgressLine line{screen.console, false, 0};
  line.counting(0, 8);
  line.doing("fits");
  EXPECT_THAT(screen.err.str(), HasSubstr("0 of 8: fits, 0 s"));
  std::this_thread::sleep_for(std::chrono::milliseconds{250});
  line.counting(2, 8);
  line.doing("fits");
  EXPECT_THAT(screen.err.str(), ::testing::ContainsRegex("2 of 8, [0-9.]+/s, [0-9]+ s left: fits, "));
}

TEST(ProgressLine, ElsewhereIsALineOfItsOwnNowAndThenIfItIsWanted) {
  std::ostringstream out, err;
  Console console{out, err};
  {
    ProgressLine none{console, false, 0};
    none.doing("a long sum");
    ProgressLine quiet{console, true, 0, ProgressLine::Elsewhere::lines, 0};
    quiet.doing("a long sum");
    ProgressLine rare{console, false, 0, ProgressLine::Elsewhere::lines};
    rare.doing("a long sum");
  }
  EXPECT_EQ(err.str(), "") << "the first line after ten seconds";
  {
    ProgressLine line{console, false, 1, ProgressLine::Elsewhere::lines, 0};
    line.counting(2, 8);
    line.doing("a long sum");
  }
  EXPECT_THAT(err.str(), ::testing::MatchesRegex("podsim: 2 of 8.*: a long sum, 0 s\n"));
}

TEST(ProgressLine, IsNoWiderThanTheTerminal) {
  Screen screen;
  screen.console.err_columns = 20;
  ProgressLine line{screen.console, false, 0};
  line.doing("a long name \u6771\u4eac \x1b[31m of a file");
  EXPECT_EQ(screen.err.str(), "\r\033[Ka long name \u6771\u4eac...");
}

TEST(ProgressLine, IsForTerminalsAndNotWhereItIsUnwanted) {
  Screen screen;
  {
    ProgressLine quiet{screen.console, true, 0};
    quiet.doing("something");
    screen.console.err_is_terminal = false;
    ProgressLine in_a_pipe{screen.console, false, 0};
    in_a_pipe.doing("something");
    in_a_pipe.show([](double) { return "half"; });
  }
  EXPECT_THAT(screen.err.str(), IsEmpty());
}

TEST(ProgressLine, TellsRunsTheTimeSinceTheyBegan) {
  Screen screen;
  ProgressLine line{screen.console, false, 0};
  constexpr auto before = std::chrono::milliseconds{300};
  std::this_thread::sleep_for(before);
  const auto begin = std::chrono::steady_clock::now();
  line.doing("simulating");
  std::this_thread::sleep_for(std::chrono::milliseconds{250});  // the line may be written over
  double told = -1;
  line.show([&](double seconds) {
    told = seconds;
    return "half";
  });
  EXPECT_GE(told, 0.25);
  EXPECT_LE(told, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()) << "the seconds before do not count";
}

}  // namespace
}  // namespace podsim
