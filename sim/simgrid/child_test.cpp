#include "sim/simgrid/child.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace podsim::simgrid_engine {
namespace {

std::size_t open_files() {
  DIR* directory = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

TEST(SimgridChild, WhatTheParentHasBufferedIsPrintedOnce) {
  ::testing::internal::CaptureStdout();
  std::printf("once\n");
  const auto bytes = run_in_child([](Output&) { std::fflush(nullptr); });
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "once\n");
  EXPECT_TRUE(bytes) << to_text(bytes.error());
}

TEST(SimgridChild, ADeadOneIsADiagnosticWithItsLastWords) {
  const std::size_t before = open_files();
  const auto aborted = run_in_child([](Output&) {
    const char words[] = "first line\nlast line\n";
    Output{2}.write(words, sizeof words - 1);
    std::abort();
  });
  ASSERT_FALSE(aborted);
  EXPECT_EQ(to_text(aborted.error()), "simgrid: the child process died of signal 6 (Aborted): last line");
  const auto thrown = run_in_child([](Output&) { throw std::runtime_error{"no luck"}; });
  ASSERT_FALSE(thrown);
  EXPECT_EQ(to_text(thrown.error()), "simgrid: the child process left with status 1: no luck");
  const auto silent = run_in_child([](Output&) { ::_exit(3); });
  ASSERT_FALSE(silent);
  EXPECT_EQ(to_text(silent.error()), "simgrid: the child process left with status 3");
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, dead or alive
}

TEST(SimgridChild, LargeResultsComeBackWhole) {
  std::vector<std::uint32_t> sent(3'000'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::uint32_t>(i * 2654435761U);
  const auto bytes = run_in_child([&](Output& output) { output.write(sent.data(), sent.size() * sizeof sent[0]); });
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), sent.size() * sizeof sent[0]);
  EXPECT_EQ(std::memcmp(bytes->data(), sent.data(), bytes->size()), 0);
}

}  // namespace
}  // namespace podsim::simgrid_engine
