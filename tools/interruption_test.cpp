// Signals, in children: their handlers are of the whole process.
#include "tools/interruption.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>

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
