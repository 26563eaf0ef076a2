// A sweep that is killed at any moment goes on as if nothing had happened. tools/scripts/kill_sweep.sh does the same with the program itself.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::exported;
using test::Folder;

const std::string file = "tools/sweep/examples/gemm.textproto";

/// Runs the sweep in a child and kills it after so long. Returns whether it had ended by then.
bool ended_before(std::chrono::duration<double> time, const std::string& store) {
  const pid_t child = fork();
  if (child == 0) _exit(test::run_words({"sweep", file, "--store", store, "--threads", "2"}).status);
  std::this_thread::sleep_for(time);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == exit_done) << status;
  return WIFEXITED(status);
}

/// Points that the store knows; none while there is no table.
int known_points(const std::string& store) {
  const test::Outcome status = test::podsim("sweep --store " + store + " --status --format json");
  if (status.status != exit_done) {
    EXPECT_TRUE(status.err.ends_with("found nothing in it\n") || status.err.ends_with("cannot open the file\n")) << status.err;
    return 0;
  }
  return status.json()["done"].get<int>() + status.json()["skipped"].get<int>();
}

TEST(KilledSweep, LosesNothingAndExportsTheBytesOfAnUndisturbedOne) {
  const Folder folder;
  const std::string undisturbed = folder.file("undisturbed.sqlite");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(test::run_words({"sweep", file, "--store", undisturbed, "--threads", "2"}).status, exit_done);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
  const std::string expected = exported(undisturbed);
  ASSERT_GT(known_points(undisturbed), 500);

  std::mt19937 random{20};
  for (int round = 0; round < 2; ++round) {
    const std::string store = folder.file("killed_" + std::to_string(round) + ".sqlite");
    int known = 0;
    for (int kills = 0; kills < 5; ++kills) {
      if (ended_before(whole * std::uniform_real_distribution<double>{0, 0.6}(random), store)) break;
      const int now = known_points(store);
      EXPECT_GE(now, known) << "kill " << kills;
      known = now;
    }
    ASSERT_EQ(test::run_words({"sweep", file, "--store", store}).status, exit_done);
    EXPECT_TRUE(exported(store) == expected) << "round " << round;
  }
}

}  // namespace
}  // namespace podsim
