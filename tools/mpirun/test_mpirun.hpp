// The program started by mpirun, in tests: what it prints and how it ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "sim/config/schedule_config.hpp"

namespace podsim::test {

/// A folder of this test alone: CTest runs several at once.
inline std::string file_of_test(const std::string& name) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string folder = std::string{test->test_suite_name()} + "." + test->name();
  std::replace(folder.begin(), folder.end(), '/', '_');
  const auto path = std::filesystem::path{::testing::TempDir()} / folder;
  std::filesystem::create_directories(path);
  return (path / name).string();
}

struct Ended {
  int status = -1;
  std::string text;  // both streams
};

/// Without leak detection: Open MPI 4.1 keeps what it allocates in MPI_Init until the process ends. Everything else of the sanitizers stays on. Ranks
/// yield and are bound to no core, since other tests run at the same time; mpirun ends what has not ended after two minutes.
inline Ended mpirun(int ranks, const std::string& arguments) {
  // mpirun's own folder is named by host and user only, and two that make it at the same moment fail. The name is short: sockets lie in it.
  std::string session = "/tmp/podsim.XXXXXX";
  if (mkdtemp(session.data()) == nullptr) return {-1, "no folder " + session};
  const std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" OPENBLAS_NUM_THREADS=1 " PODSIM_MPIEXEC
      " --oversubscribe --bind-to none --timeout 120 --mca btl self,vader --mca mpi_yield_when_idle 1 --mca odls_base_sigkill_timeout 0 --mca orte_tmpdir_base " +
      session + " -n " +
      std::to_string(ranks) + " " + PODSIM_MPIRUN + " " + arguments + " 2>&1";
  Ended ended;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ended;
  std::array<char, 4096> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) ended.text.append(piece.data(), count);
  const int status = pclose(pipe);
  std::filesystem::remove_all(session);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

inline std::string saved(const std::string& name, const std::string& bytes) {
  const std::string path = file_of_test(name);
  std::ofstream{path, std::ios::binary} << bytes;
  return path;
}
inline std::string saved(const Schedule& schedule) { return saved("schedule.pb", write_schedule(schedule, Encoding::binary)); }

inline void expect_refused(int ranks, const std::string& arguments, const std::string& message) {
  const Ended ended = mpirun(ranks, arguments);
  EXPECT_EQ(ended.status, 2) << ended.text;
  EXPECT_NE(ended.text.find(message), std::string::npos) << ended.text;
  EXPECT_EQ(ended.text.find(message), ended.text.rfind(message)) << "said by more than one rank: " << ended.text;
}

}  // namespace podsim::test
