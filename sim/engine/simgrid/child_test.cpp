#include "sim/engine/simgrid/child.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>
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

TEST(SimgridChild, WhatEndsItIsTheComputersFailureAndNotTheInputs) {
  for (const auto& work : std::vector<std::function<void(Output&)>>{[](Output&) { std::raise(SIGKILL); }, [](Output&) { std::abort(); },
                                                                   [](Output&) { ::_exit(3); }, [](Output&) { throw std::bad_alloc{}; }}) {
    const auto ended = run_in_child(work);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().cause, Cause::environment) << to_text(ended.error());
  }
}

TEST(SimgridChild, SignalsOfTheTerminalAreTheParentsToDecideOn) {
  const auto bytes = run_in_child([](Output& output) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::raise(signal);
    output.write("alive", 5);
  });
  ASSERT_TRUE(bytes) << to_text(bytes.error());
  EXPECT_EQ(bytes->size(), 5U);
}

TEST(SimgridChild, IsEndedWhenTheParentIsToldToStop) {
  std::atomic<bool> stop{false};
  std::thread soon{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    stop = true;
  }};
  const auto bytes = run_in_child([](Output&) { for (;;) ::pause(); }, {&stop});
  soon.join();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error(), cancelled_work());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(SimgridChild, IsGivenUpWhenItStaysStopped) {
  const ChildLimits soon{{}, std::chrono::milliseconds{100}};
  const auto stopped = run_in_child([](Output&) { std::raise(SIGSTOP); }, soon);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(to_text(stopped.error()), "simgrid: the child process was stopped from outside (SIGSTOP) and not continued within 0.1 s");
  EXPECT_EQ(stopped.error().cause, Cause::environment);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(SimgridChild, GoesOnWhereItWasWhenItIsContinued) {
  const auto bytes = run_in_child([](Output& output) {
    const pid_t stopped = ::getpid();
    if (::fork() == 0) {
      ::usleep(100'000);
      ::kill(stopped, SIGCONT);
      ::_exit(0);
    }
    std::raise(SIGSTOP);
    output.write("on", 2);
  });
  ASSERT_TRUE(bytes) << to_text(bytes.error());
  EXPECT_EQ(bytes->size(), 2U);
}

TEST(SimgridChild, DiesWithItsParent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    static_cast<void>(run_in_child([&](Output&) {
      const pid_t self = ::getpid();
      Output{ends[1]}.write(&self, sizeof self);
      for (;;) ::pause();
    }));
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::kill(parent, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::close(ends[0]);
  ::close(ends[1]);
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
