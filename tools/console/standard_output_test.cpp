#include "tools/console/standard_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

int opened(const std::string& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); }

TEST(StandardOutput, WritesEveryByteAndKeepsTheStatus) {
  const test::Folder folder;
  std::string expected;
  for (const int status : {exit_done, exit_false, exit_bad_input, exit_interrupted}) {
    StandardOutput output{opened(folder.file("out"))};
    expected.clear();
    for (int i = 0; i < 20'000; ++i) output.stream() << i << '\n' << std::flush, expected += std::to_string(i) + '\n';
    const std::string long_text(200'000, 'x');
    output.stream() << long_text;
    std::ostringstream err;
    EXPECT_EQ(output.finish(status, err), status);
    EXPECT_EQ(err.str(), "");
    EXPECT_EQ(test::bytes_of_file(folder.file("out")), expected + long_text);
  }
}

TEST(StandardOutput, WhatCannotBeWrittenIsToldWithItsReasonAndIsNoSuccess) {
  for (const auto& [status, becomes] : {std::pair{exit_done, exit_bad_input},
                                        {exit_false, exit_bad_input},
                                        {exit_bad_input, exit_bad_input},
                                        {exit_internal, exit_internal},
                                        {exit_interrupted, exit_interrupted}})
    for (const std::size_t size : {1U, 500'000U}) {
      StandardOutput output{opened("/dev/full")};
      output.stream() << std::string(size, 'x');
      std::ostringstream err;
      EXPECT_EQ(output.finish(status, err), becomes);
      EXPECT_EQ(err.str(), "podsim: error: standard output: No space left on device\n");
    }
}

TEST(StandardOutput, ThatIsClosedIsAnErrorOnlyWhereThereIsSomethingToWrite) {
  std::ostringstream err;
  EXPECT_EQ((StandardOutput{987}.finish(exit_done, err)), exit_done);
  EXPECT_EQ(err.str(), "");
  StandardOutput output{987};
  output.stream() << "text";
  EXPECT_EQ(output.finish(exit_done, err), exit_bad_input);
  EXPECT_EQ(err.str(), "podsim: error: standard output: Bad file descriptor\n");
}

}  // namespace
}  // namespace podsim
