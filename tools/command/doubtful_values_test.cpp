// Values that no hardware has: accepted, with a warning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sim/config/machine_config.hpp"
#include "tools/command/test_command.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string doubted_gather = " --slice 2x2x2 --collective all-gather --bytes 1MiB --axis row";

void write_text_file(const std::string& file, const std::string& text) { std::ofstream{file} << text; }

TEST(DoubtfulValues, OfSetAreNamedWithTheRangeOfHardware) {
  const Outcome run = podsim("run --machine tpu_v4 --set link.latency=1ps --set link.bandwidth=1000PB/s" + doubted_gather + " --format json");
  ASSERT_EQ(run.status, exit_done) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("podsim: warning: --set: link.latency is 1 ps, hardware has 10 ns to 10 ms: "),
                             HasSubstr("podsim: warning: --set: link.bandwidth is 1000 PB/s, hardware has 10 MB/s to 10 TB/s: ")));
  EXPECT_EQ(run.json()["notes"].size(), 2U);
  for (const char* line : {"compare --machine tpu_v4 --vary link.latency=1us,1ps --algorithms ring", "check --machine tpu_v4 --set link.latency=1ps --algorithm ring"})
    EXPECT_THAT(podsim(line + doubted_gather).err, HasSubstr("link.latency is 1 ps, hardware has 10 ns to 10 ms: ")) << line;
  for (const char* line : {"show machine --machine tpu_v4 --set link.latency=1ps", "show topology --machine tpu_v4 --slice 2x2x2 --set link.latency=1ps",
                           "tune --machine tpu_v4 --slice 2x2x1 --set link.latency=1ps --gemm m=256,n=256,k=256 --pass forward"})
    EXPECT_THAT(podsim(line).err, HasSubstr("link.latency is 1 ps, hardware has 10 ns to 10 ms: ")) << line;
}

TEST(DoubtfulValues, OfAFileAreNamedWhereTheyStand) {
  const Folder folder;
  const std::string file = folder.file("m.textproto");
  std::string text = write_machine(*find_machine("tpu_v4"));
  const std::string sane = "value: \"1.2 TB/s\"";
  const std::size_t at = text.find(sane);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, sane.size(), "value: \"1.2 PB/s\"");
  write_text_file(file, text);
  const auto line = std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  const Outcome run = podsim("run --machine " + file + doubted_gather);
  EXPECT_EQ(run.status, exit_done) << run.err;
  EXPECT_THAT(run.err, StartsWith(file + ":" + line + ":"));
  EXPECT_THAT(run.err, HasSubstr(": warning: chip.hbm_bandwidth is 1.2 PB/s, hardware has 1 GB/s to 200 TB/s: "));
  EXPECT_EQ(podsim("run --machine " + file + " --set chip.hbm_bandwidth=1TB/s" + doubted_gather).err, "") << "another value takes its place";
}

TEST(DoubtfulValues, OfASweepAreNamedOnce) {
  const Folder folder;
  const std::string file = folder.file("s.textproto");
  write_text_file(file, "format_version: 1\nsweep {\n  machine: \"tpu_v4\" slice: \"2x2x2\" collective: \"all-gather\" axis: \"row\" bytes: \"1KiB\" bytes: \"2KiB\"\n"
              "  set { path: \"link.latency\" value: \"1us\" value: \"1ps\" }\n}\n");
  const Outcome swept = podsim("sweep " + file);
  ASSERT_EQ(swept.status, exit_done) << swept.err;
  EXPECT_THAT(swept.err, StartsWith(file + ":4:"));
  EXPECT_THAT(swept.err, HasSubstr(": warning: link.latency is 1 ps, hardware has 10 ns to 10 ms: "));
  EXPECT_EQ(std::count(swept.err.begin(), swept.err.end(), '\n'), 1);
}

TEST(DoubtfulValues, OfObservationsAreNamedWhereTheyStand) {
  const Folder folder;
  const std::string file = folder.file("o.csv");
  write_text_file(file, "op,devices,bytes,seconds\nall-gather,4,1048576,0.0001\nall-gather,4,2097152,86400\nall-gather,4,4194304,0.000000013\n");
  for (const char* line : {"validate --machine tpu_v4 --slice 2x2x1 --mesh row=4 --observations ", "calibrate --observations-only "}) {
    const Outcome found = podsim(line + file);
    EXPECT_EQ(found.status, exit_done) << found.err;
    EXPECT_THAT(found.err, HasSubstr(file + ":3:1: warning: the time of all-gather is 86400 s, hardware has 10 ns to 3600 s: ")) << line;
    EXPECT_THAT(found.err, HasSubstr(file + ":4:1: warning: the bytes of all-gather per second is 322.6 TB/s, hardware has 1 B/s to 200 TB/s: ")) << line;
  }
}

}  // namespace
}  // namespace podsim
