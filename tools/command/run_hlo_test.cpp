// `run --hlo`: what it prints of compiled modules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using nlohmann::ordered_json;
using test::json_of;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::Not;

/// An all-reduce whose result nothing needs until the product is done. Not scheduled.
const std::string unscheduled_module = R"(HloModule m, num_partitions=4

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }

ENTRY e {
  x = f32[1024,1024] parameter(0)
  r = f32[1024,1024] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  p = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[1024,1024] add(r, p)
}
)";

TEST(RunHlo, AModuleThatIsNotScheduledIsTimedInBothOrders) {
  const test::Folder folder;
  const std::string command = "run --machine ideal --slice 4 --hlo " + folder.file("m.hlo", unscheduled_module);
  const ordered_json overlapped = json_of(command), in_order = json_of(command + " --hlo-schedule text");
  EXPECT_LT(overlapped["makespan_s"], in_order["makespan_s"]);
  for (const char* const more : {"", " --hlo-schedule text", " --engine simgrid", " --calls inline", " --fold off", " --explain"}) {
    const ordered_json orders = json_of(command + more)["orders"];
    EXPECT_EQ(orders["text_s"], in_order["makespan_s"]) << more;
    EXPECT_EQ(orders["overlap_s"], overlapped["makespan_s"]) << more;
  }
  EXPECT_LT(json_of(command + " --engine analytic")["orders"]["overlap_s"], in_order["makespan_s"]);
  const test::Outcome table = podsim(command);
  EXPECT_THAT(table.out, ::testing::ContainsRegex("both orders +text order, collectives block: [0-9.]+ us; overlap: [0-9.]+ us"));
}

TEST(RunHlo, AScheduledModuleHasOneOrder) {
  const std::string command = "run --machine tpu_v5e --slice 2x4 --mesh data=2,model=4 --hlo workloads/hlo/testdata/tpu_layers.hlo";
  EXPECT_FALSE(json_of(command).contains("orders"));
  EXPECT_THAT(podsim(command).out, Not(HasSubstr("both orders")));
}

TEST(RunHlo, TimesOfModulesWithUnknownCostsAreLowerBounds) {
  const std::string module =
      "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = f32[1024,1024] parameter(0)\n  y = f32[1024,1024] custom-call(x), custom_call_target=\"pfft3d\"\n"
      "  z = f32[1024,1024] custom-call(y), custom_call_target=\"pfft3d\"\n  ROOT n = f32[1024,1024] negate(z)\n}\n";
  const test::Folder folder;
  const std::string command = "run --machine tpu_v5e --slice 1x1 --mesh x=1 --hlo " + folder.file("m.hlo", module);
  EXPECT_THAT(podsim(command).out, ::testing::ContainsRegex("time +at least [0-9.]+ us  \\(2 of 3 instructions, unknown: pfft3d x 2\\)"));
  EXPECT_EQ(podsim(command).status, exit_done);
  EXPECT_EQ(podsim(command + " --strict").status, exit_false);
  const std::string given = command + " --custom-call pfft3d=1GFLOP --strict";
  EXPECT_EQ(podsim(given).status, exit_done);
  EXPECT_THAT(podsim(given).out, Not(HasSubstr("at least")));
  const ordered_json coverage = json_of(command)["coverage"];
  EXPECT_EQ(coverage["known"]["instructions"], 1);
  EXPECT_EQ(coverage["unknown"]["instructions"], 2);
  EXPECT_EQ(coverage["unknown"]["bytes"], 4 * 4194304);
  EXPECT_EQ(coverage["unknown_names"]["pfft3d"], 2);
  EXPECT_EQ(json_of("show hlo " + folder.file("m.hlo", module) + " --machine tpu_v5e")["coverage"], coverage) << "counting and running say the same";
}

TEST(RunHlo, TimesOfModulesWithSequentialFactorisationsAreLowerBounds) {
  const std::string module =
      "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = f32[256,128] parameter(0)\n  ROOT q = (f32[256,128], f32[128]) custom-call(x), custom_call_target=\"QrDecompositionBlock\"\n}\n";
  const test::Folder folder;
  const std::string file = folder.file("m.hlo", module), command = "run --machine tpu_v5e --slice 1x1 --mesh x=1 --hlo " + file;
  EXPECT_THAT(podsim(command).out, ::testing::ContainsRegex("time +at least [0-9.]+ us  \\(1 of 1 instructions, a lower bound: QrDecompositionBlock\\)"));
  EXPECT_THAT(podsim("show hlo " + file + " --machine tpu_v5e").out, HasSubstr("times are at least these: 1 of 1 instructions, a lower bound: QrDecompositionBlock"));
  EXPECT_EQ(podsim(command + " --strict").status, exit_false);
  const ordered_json coverage = json_of(command)["coverage"];
  EXPECT_EQ(coverage["lower_bound"]["instructions"], 1);
  EXPECT_EQ(coverage["lower_bound_names"]["QrDecompositionBlock"], 1);
  EXPECT_EQ(podsim(command + " --custom-call QrDecompositionBlock=1GFLOP --strict").status, exit_done);
}

/// A product that takes a millisecond of a v5e by the compiler's estimate.
constexpr const char* product_of_a_millisecond =
    "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = bf16[1024,1024] parameter(0)\n  ROOT n = bf16[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
    "backend_config={\"window_config\":{\"estimated_cycles\":\"1503000\"}}\n}\n";

TEST(RunHlo, TheClockOfEstimatedCyclesIsThatOfTheTpu) {
  const test::Folder folder;
  const std::string command = "run --slice 1x1 --mesh x=1 --hlo " + folder.file("m.hlo", product_of_a_millisecond) + " --hlo-cost estimated-cycles";
  EXPECT_NEAR(json_of(command + " --machine tpu_v5e")["makespan_s"].get<double>(), 1e-3, 1e-6);
  EXPECT_THAT(podsim(command + " --machine ideal").err, HasSubstr("that of ideal is not known"));
  EXPECT_THAT(podsim(command.substr(0, command.find(" --hlo-cost")) + " --machine tpu_v5e").out, HasSubstr("  in doubt"));
}

/// The compiler's cycles are the time then: nothing is far from them.
TEST(RunHlo, NothingIsInDoubtWhereTheCompilersOwnCyclesAreTaken) {
  const test::Folder folder;
  const std::string command = "run --machine tpu_v5e --slice 1x1 --mesh x=1 --hlo " + folder.file("m.hlo", product_of_a_millisecond);
  EXPECT_THAT(podsim(command).out, HasSubstr("in doubt"));
  EXPECT_THAT(podsim(command + " --hlo-cost estimated-cycles").out, Not(HasSubstr("in doubt")));
  const ordered_json run = json_of(command + " --hlo-cost estimated-cycles");
  EXPECT_NEAR(run["coverage"]["known"]["time_s"].get<double>(), run["makespan_s"].get<double>(), 1e-9) << "costs have the times that the run has";
  EXPECT_EQ(run["coverage"]["in_doubt"]["instructions"], 0);
}

TEST(RunHlo, AShareOfTheTimeThatIsEstimatedStandsBesideTheTime) {
  const auto time = [](const std::string& last) {
    const test::Folder folder;
    return podsim("run --machine tpu_v6e --slice 1x1 --mesh x=1 --hlo " +
                  folder.file("m.hlo", "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = f32[65536,128] parameter(0)\n  i = s32[65536] parameter(1)\n  ROOT n = f32[65536,128] " + last + "\n}\n")).out;
  };
  EXPECT_THAT(time("gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}"), ::testing::ContainsRegex("time +[0-9.]+ us  \\(100 % of the core's time estimated\\)"));
  EXPECT_THAT(time("copy(x)"), Not(HasSubstr("time estimated")));
}

/// A transform runs on the vector unit, where no metric of schedules looks for products.
TEST(RunHlo, CountsTheFlopsThatShowCounts) {
  const test::Folder folder;
  const std::string file = folder.file("m.hlo", "HloModule m, is_scheduled=true, num_partitions=4\nENTRY e {\n  x = f32[64,1024] parameter(0)\n  y = bf16[64,64] parameter(1)\n"
                                                "  p = bf16[64,64] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT n = c64[64,513] fft(x), fft_type=RFFT, fft_length={1024}\n}\n");
  const ordered_json run = json_of("run --machine ideal --slice 4 --mesh x=4 --hlo " + file), shown = json_of("show hlo " + file)["totals"];
  const double transforms = 2.5 * 1024 * 10 * 64, products = 2.0 * 64 * 64 * 64;
  EXPECT_EQ(shown["transform_flops"], transforms);
  EXPECT_EQ(shown["dot_flops"], products);
  EXPECT_EQ(run["flops"], 4 * (transforms + products));
  const std::string alone = folder.file("fft.hlo", "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = f32[64,1024] parameter(0)\n  ROOT n = c64[64,513] fft(x), fft_type=RFFT, fft_length={1024}\n}\n");
  const ordered_json only = json_of("run --machine tpu_v5e --slice 1x1 --mesh x=1 --hlo " + alone);
  EXPECT_NEAR(only["mfu"].get<double>() * only["makespan_s"].get<double>(), transforms / 197e12, 1e-12) << "over the peak of f32 in one pass";
  EXPECT_THAT(podsim("run --machine tpu_v5e --slice 1x1 --mesh x=1 --hlo " + alone).out, HasSubstr("\nMFU"));
}

/// Rounds of a tree from device 2: to 1, then to 0 and from 1 to 3. Devices 4 to 7 are in no group and get zeros.
TEST(RunHlo, ABroadcastMayLeaveDevicesOut) {
  const test::Folder folder;
  const std::string file = folder.file("m.hlo", "HloModule m, is_scheduled=true, num_partitions=8\nENTRY e {\n  x = f32[4096] parameter(0)\n  ROOT r = f32[4096] collective-broadcast(x), channel_id=1, replica_groups={{2,1,0,3}}\n}\n");
  for (const char* const engine : {"des", "simgrid", "analytic"}) {
    const ordered_json run = json_of("run --machine ideal --slice 8 --mesh x=8 --hlo " + file + " --engine " + engine);
    EXPECT_EQ(run["link_bytes"], (1 + 2 + 2) * 16384) << engine;
    EXPECT_GE(run["makespan_s"].get<double>(), 2 * 16384 / 100e9 * (1 - 1e-9)) << engine;
  }
  EXPECT_EQ(podsim("show hlo " + file).status, exit_done);
  EXPECT_THAT(podsim("check --slice 8 --mesh x=8 --hlo " + file).out, HasSubstr("yes"));
  const std::string differ = folder.file("n.hlo", "HloModule m, is_scheduled=true, num_partitions=8\nENTRY e {\n  x = f32[4096] parameter(0)\n  ROOT r = f32[4096] collective-broadcast(x), channel_id=1, replica_groups={{5},{0,1,2},{3,4}}\n}\n");
  EXPECT_EQ(json_of("run --machine ideal --slice 8 --mesh x=8 --hlo " + differ)["link_bytes"], (1 + 2 + 1) * 16384);
  EXPECT_THAT(podsim("check --slice 8 --mesh x=8 --hlo " + differ).out, HasSubstr("yes"));
}

/// By their names: 3, 6, 9 products in bf16, 3 in TF32.
TEST(RunHlo, AlgorithmsOfProductsTakeAsManyProductsAsTheySay) {
  const auto time = [](const std::string& machine, const std::string& algorithm) {
    const test::Folder folder;
    return json_of("run --mesh x=1 " + machine + " --hlo " + folder.file("m.hlo", "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = f32[4096,4096] parameter(0)\n  ROOT d = f32[4096,4096] dot(x, x), lhs_contracting_dims={1}, "
                                                                        "rhs_contracting_dims={0}, algorithm=" + algorithm + "\n}\n"))["makespan_s"].get<double>();
  };
  const double flops = 2.0 * 4096 * 4096 * 4096;
  const std::string tpu = "--machine tpu_v6e:spec --slice 1x1", gpu = "--machine dgx_h100:spec --slice 1x1";
  for (const auto& [machine, peak] : {std::pair{tpu, 920e12}, std::pair{gpu, 989.4e12}}) {
    const double one = time(machine, "dot_bf16_bf16_f32");  // with the launch
    for (const int products : {3, 6, 9}) EXPECT_NEAR(time(machine, "dot_bf16_bf16_f32_x" + std::to_string(products)), one + (products - 1) * flops / peak, 1e-9) << machine << ", " << products;
  }
  EXPECT_NEAR(time(gpu, "dot_tf32_tf32_f32_x3"), time(gpu, "dot_tf32_tf32_f32") + 2 * flops / 494.7e12, 1e-9);
}

/// A dot of 11 us, of which the compiler says 1 ms, or of which it says 1 us; and a copy of 10 ms beside it.
TEST(RunHlo, TheShareOfTheTimeThatTheCompilerEstimatesFarOtherwiseStandsBesideTheTime) {
  const auto run = [](const std::string& cycles, const std::string& more, const std::string& how) {
    const test::Folder folder;
    return podsim("run --slice 1x1 --mesh x=1 --machine tpu_v5e --hlo " +
                  folder.file("m.hlo", "HloModule m, is_scheduled=true, num_partitions=1\nENTRY e {\n  x = bf16[1024,1024] parameter(0)\n  y = f32[32768,32768] parameter(1)\n" + more +
                                           "  ROOT n = bf16[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, backend_config={\"window_config\":{\"estimated_cycles\":\"" +
                                           cycles + "\"}}\n}\n") +
                  how);
  };
  for (const char* const cycles : {"1503000", "1503"}) {
    EXPECT_THAT(run(cycles, "", "").out, ::testing::ContainsRegex("time +[0-9.]+ us  \\(100 % of the core's time in doubt\\)"));
    EXPECT_THAT(run(cycles, "", "").out, ::testing::ContainsRegex("costs +known: 1 instruction, [^;]*; in doubt: [0-9.]+ us, 1 [mu]s by the compiler's own cycles"));
    EXPECT_EQ(run(cycles, "", " --strict").status, exit_done) << "either may be wrong";
    EXPECT_THAT(run(cycles, "  z = f32[32768,32768] copy(y)\n", "").out, Not(HasSubstr("time in doubt")));
    EXPECT_THAT(run(cycles, "  z = f32[32768,32768] copy(y)\n", "").out, ::testing::ContainsRegex("without an estimate of the compiler: 1 instruction, [0-9.]+ ms \\(100 % of the core's time\\)"));
    EXPECT_THAT(run(cycles, "", "").out, Not(HasSubstr("without an estimate")));
  }
  EXPECT_THAT(run("16000", "", "").out, Not(HasSubstr("in doubt")));
  const ordered_json doubt = ordered_json::parse(run("1503000", "", " --format json").out)["coverage"]["in_doubt"];
  EXPECT_EQ(doubt["instructions"], 1);
  EXPECT_NEAR(doubt["compiler_s"].get<double>(), 1e-3, 1e-7);
}

TEST(RunHlo, AnEstimateBelowTheWaitForTheMemoryIsTheTime) {
  const std::string module =
      "HloModule m, is_scheduled=true, num_partitions=1\n%f { p = f32[1024,1024] parameter(0)\n ROOT n = f32[1024,1024] negate(p) }\nENTRY e {\n  x = f32[1024,1024] parameter(0)\n"
      "  ROOT n = f32[1024,1024] fusion(x), kind=kLoop, calls=%f, backend_config={\"window_config\":{\"estimated_cycles\":\"300\"}}\n}\n";
  const test::Folder folder;
  const std::string command = "run --slice 1x1 --mesh x=1 --machine tpu_v5e --hlo " + folder.file("m.hlo", module);
  EXPECT_NEAR(json_of(command + " --hlo-cost estimated-cycles")["makespan_s"].get<double>(), 300 / 1.503e9, 1e-11) << "the machine has the cycle in five digits";
  EXPECT_GT(json_of(command)["makespan_s"].get<double>(), 300 / 1.503e9) << "waits and bytes";
}

/// Of reshapes that move nothing the compiler made bitcasts.
TEST(RunHlo, AReshapeThatIsLeftInAScheduleTakesTheTimeOfACopy) {
  const auto time = [](const std::string& header, const std::string& last) {
    const test::Folder folder;
    return json_of("run --slice 1x1 --mesh x=1 --machine tpu_v5e --hlo " +
                   folder.file("m.hlo", "HloModule m" + header + ", num_partitions=1\nENTRY e {\n  p = f32[4194304]{0:T(1024)} parameter(0)\n  ROOT r = " + last + "\n}\n"))["makespan_s"]
        .get<double>();
  };
  const std::string reshape = "f32[16,262144]{1,0:T(8,128)} reshape(p)", copy = "f32[4194304]{0:T(1024)} copy(p)";
  EXPECT_EQ(time(", is_scheduled=true", reshape), time(", is_scheduled=true", copy));
  EXPECT_GT(time(", is_scheduled=true", copy), 2 * 4.0 * 4194304 / 819e9);
  EXPECT_EQ(time("", reshape), 0) << "before the compiler has chosen layouts";
}

}  // namespace
}  // namespace podsim
