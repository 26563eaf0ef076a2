// The same command gives the same bytes, whatever the number of threads, folded or not; but for what says how long it took.
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

/// Without what may differ from run to run, or with folding.
void leave_out_costs(nlohmann::ordered_json& json) {
  if (json.is_object())
    for (const char* key : {"wall_s", "build_s", "events", "pass", "device_classes"}) json.erase(key);
  if (json.is_structured())
    for (auto& inner : json) leave_out_costs(inner);
}

std::string result_of(const std::string& line) {
  auto json = test::json_of(line);
  leave_out_costs(json);
  return json.dump(1);
}

const std::vector<std::string> commands{
    "compare --machine tpu_v4 --slice 4x4x4 --mesh all --gemm m=4096,n=4096,k=4096 --algorithms all --slice-count 1,2",
    "compare --machine ideal --slice 4x6 --gemm m=960,n=960,k=960 --algorithms collective,meshslice,wang,summa --dataflow os,ls,rs --slice-count 1,3",
    "compare --machine tpu_v4 --slice 4x4 --wrap none --gemm m=512,n=512,k=512 --algorithms collective,cannon,summa",
};

TEST(Determinism, OfCompareWhateverTheThreads) {
  for (const std::string& command : commands) {
    const std::string one = result_of(command + " --threads 1");
    EXPECT_GT(one.size(), 1000U) << command;
    EXPECT_EQ(one, result_of(command + " --threads 2")) << command;
  }
}

TEST(Determinism, OfCompareFoldedOrNot) {
  for (const std::string& command : commands) EXPECT_EQ(result_of(command), result_of(command + " --fold off")) << command;
}

TEST(Determinism, OfRunFoldedOrNot) {
  for (const std::string work : {"--gemm m=1024,n=1024,k=1024 --algorithm meshslice --slice-count 2", "--gemm m=512,n=512,k=512 --algorithm cannon",
                                 "--collective all-to-all --axis row --bytes 1MiB --algorithm pairwise",
                                 "--collective all-reduce --axis row,col --bytes 64KiB", "--collective broadcast --axis col --bytes 64KiB"}) {
    const std::string command = "run --machine tpu_v4 --slice 4x4 --wrap all " + work;
    EXPECT_EQ(result_of(command), result_of(command + " --fold off")) << command;
  }
}

}  // namespace
}  // namespace podsim
