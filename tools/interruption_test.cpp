// Signals, in children: their handlers are of the whole process.
#include "tools/interruption.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/output_file.hpp"
#include "tools/console/console.hpp"

namespace podsim {
namespace {

std::string all_bytes_of(int descriptor) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t count = 0; (count = ::read(descriptor, piece.data(), piece.size())) > 0;) text.append(piece.data(), static_cast<std::size_t>(count));
  ::close(descriptor);
  return text;
}

struct DeafChild {
  int status = 0;
  std::string out, err;
};

/// What a child prints that gets SIGTERM and does not hear of it.
template <class Before>
DeafChild deaf_child(Before before) {
  std::array<int, 2> out{}, err{};
  EXPECT_EQ(::pipe(out.data()) + ::pipe(err.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO), ::dup2(err[1], STDERR_FILENO);
    for (const int end : {out[0], out[1], err[0], err[1]}) ::close(end);
    interruption::handle_signals();
    before();
    std::raise(SIGTERM);
    for (;;) ::pause();
  }
  ::close(out[1]), ::close(err[1]);
  DeafChild ended;
  ended.out = all_bytes_of(out[0]);  // first: it may be more than a pipe holds
  ended.err = all_bytes_of(err[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// Two signals while a set of files takes its place, as soon as the first of them is there. Before, 101 of 256 were left.
TEST(Interruption, LeavesNoHalfSetOfFiles) {
  const std::filesystem::path folder = std::filesystem::path{::testing::TempDir()} / ("podsim_set_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  constexpr std::ptrdiff_t all = 1000;
  const DeafChild ended = deaf_child([&] {
    std::vector<OutputFile> files;
    for (std::ptrdiff_t f = 0; f < all; ++f) {
      auto file = OutputFile::open((folder / std::to_string(f)).string());
      if (!file || !file->finish()) ::_exit(1);
      files.push_back(*std::move(file));
    }
    std::thread signals{[&] {
      while (!std::filesystem::exists(folder / std::to_string(all - 1))) {}  // the first to appear
      ::kill(::getpid(), SIGTERM), ::kill(::getpid(), SIGTERM);
    }};
    const bool closed = OutputFile::close_together(files).has_value();
    signals.join();
    ::_exit(closed ? 0 : 1);
  });
  const auto left = std::distance(std::filesystem::directory_iterator{folder}, std::filesystem::directory_iterator{});
  EXPECT_TRUE(left == 0 || left == all) << left;
  EXPECT_NE(ended.status, 1);
  std::filesystem::remove_all(folder);
}

TEST(Interruption, EndsWorkThatDoesNotHearOfIt) {
  const DeafChild ended = deaf_child([] {});
  EXPECT_EQ(ended.status, exit_interrupted);
  EXPECT_EQ(ended.err, "podsim: interrupted\n");
  EXPECT_EQ(ended.out, "");
}

TEST(Interruption, PrintsTheLastAnswerSoFar) {
  const std::string large(100'000, 'x');  // more than a pipe holds
  const DeafChild ended = deaf_child([&] {
    for (const char* earlier : {"a", "b", "c", "d"}) interruption::known_so_far(earlier, "earlier");
    interruption::known_so_far(large, "the best so far\n");
  });
  EXPECT_EQ(ended.status, exit_interrupted);
  EXPECT_EQ(ended.err, "the best so far\n");
  EXPECT_EQ(ended.out, large);
}

TEST(Interruption, PrintsNoOtherAnswerOnceThereIsOne) {
  const DeafChild ended = deaf_child([] {
    interruption::known_so_far("so far", "so far\n");
    interruption::answering();
  });
  EXPECT_EQ(ended.status, exit_interrupted);
  EXPECT_EQ(ended.out, "");
}

}  // namespace
}  // namespace podsim
