#include "sim/config/result_config.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace podsim {
namespace {

Result every_field() {
  Result result;
  result.engine = "simgrid";
  result.machine = "tpu_v4";
  result.slice = "4x4x8";
  result.schedule = "gemm \"large\"";
  result.hypothetical = true;
  result.mesh = {{"row", 16}, {"col", 8}};
  result.devices = 128;
  result.device_classes = 3;
  result.makespan_s = 1.0 / 3;
  result.compute_s = 0.1;
  result.exposed_communication_s = 5e-324;
  result.waiting_s = 0;
  result.flops = 1e300;
  result.mfu = 0.625;
  result.link_bytes = 123456789;
  result.peak_memory_bytes = std::numeric_limits<std::int64_t>::max();
  result.tasks = 8300000;
  result.events = 12345678901;
  result.pass = "events";
  result.wall_s = 0.5;
  result.build_s = 0.25;
  result.trust = {"extrapolated", "v4 2x2", -0.125, 0.5, 0.03125, "other scale", {"all-reduce over 64 devices, fitted over 4", "and more"}};
  return result;
}

TEST(ResultConfig, EveryFieldIsSavedAndReadBackEqual) {
  Result without = every_field();
  without.mfu = std::nullopt;
  without.trust = {"spec"};
  without.mesh.clear();
  without.hypothetical = false;
  for (const Result& result : {every_field(), without, Result{}}) {
    for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
      const std::string bytes = write_result(result, encoding);
      const auto read = read_result(bytes, "saved");
      ASSERT_TRUE(read) << to_text(read.error());
      EXPECT_EQ(*read, result);
      EXPECT_EQ(write_result(*read, encoding), bytes);
    }
  }
}

TEST(ResultConfig, ATextIsWrittenForPeople) {
  EXPECT_EQ(write_result(every_field(), Encoding::text), R"(# proto-file: sim/config/result.proto
# proto-message: podsim.proto.Result

format_version: 1
engine: "simgrid"
machine: "tpu_v4"
slice: "4x4x8"
schedule: "gemm \"large\""
hypothetical: true
mesh { name: "row" size: 16 }
mesh { name: "col" size: 8 }
devices: 128
device_classes: 3
makespan_s: 0.33333333333333331
compute_s: 0.1
exposed_communication_s: 4.94065645841247e-324
waiting_s: 0
flops: 1e+300
mfu: 0.625
link_bytes: 123456789
peak_memory_bytes: 9223372036854775807
tasks: 8300000
events: 12345678901
wall_s: 0.5
build_s: 0.25
trust_level: "extrapolated"
trust_dataset: "v4 2x2"
trust_error: -0.125
trust_p95_error: 0.5
trust_fitted_error: 0.03125
trust_rung: "other scale"
trust_beyond: "all-reduce over 64 devices, fitted over 4"
trust_beyond: "and more"
pass: "events"
)");
}

TEST(ResultConfig, ABinaryFileCutAnywhereIsRefused) {
  const std::string bytes = write_result(every_field(), Encoding::binary);
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(read_result(bytes.substr(0, length), "cut")) << length;
}

}  // namespace
}  // namespace podsim
