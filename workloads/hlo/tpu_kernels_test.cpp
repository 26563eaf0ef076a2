// What kernels take beside arithmetic and bytes: waiting for HBM, rows that are moved one by one, the passes of sorts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/byte_source.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/task_costs.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::module_of;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// 1.5 GHz, so that a cycle is 1 / 1.5 ns.
Machine v5e() {
  Machine machine;
  machine.name = "tpu_v5e";
  for (auto& peak : machine.chip.peak) peak = FlopsPerSecond{1.5e9 * 131072};
  machine.chip.cycle = Seconds{1 / 1.5e9};
  machine.chip.memory_wait = 1825 * machine.chip.cycle;
  machine.chip.vmem_load_bandwidth = BytesPerSecond{3 * 4096 * 1.5e9};
  machine.chip.vmem_store_bandwidth = BytesPerSecond{4096 * 1.5e9};
  machine.chip.vector_peak = FlopsPerSecond{6e12};
  machine.chip.hbm_bandwidth = BytesPerSecond{8e11};
  return machine;
}
Machine gpu() {
  Machine machine;
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{2e-6};
  machine.chip.hbm_bandwidth = BytesPerSecond{1e12};
  return machine;
}

constexpr const char* of_libtpu = ", backend_config={\"window_config\":{\"estimated_cycles\":\"1826\"}}";

HloTaskCost cost_of_root(const HloModule& module, const Machine& machine) {
  const HloComputation& entry = module.entry_computation();
  const auto cost = HloTaskCosts{module, {}, &machine}.of(entry, entry.root);
  EXPECT_TRUE(cost) << to_text(cost.error());
  return cost ? *cost : HloTaskCost{};
}
/// Of the root of an entry; a copy beside it says whose compiler made the module.
HloTaskCost cost_on(const Machine& machine, const std::string& instructions, const std::string& functions = "") {
  return cost_of_root(module_of("HloModule m, is_scheduled=true\n" + functions + "ENTRY e { z = f32[8]{0:S(1)} parameter(0)\n y = f32[8]{0:S(1)} copy(z)" +
                                (machine.name.empty() ? "" : of_libtpu) + "\n " + instructions + " }\n"),
                      machine);
}
double cycles(Seconds time) { return time.count() * 1.5e9; }

TEST(TpuKernels, AKernelWaitsForHbmWhateverItMoves) {
  EXPECT_NEAR(cycles(cost_on(v5e(), "a = f32[8] parameter(1)\n ROOT r = f32[8]{0:S(1)} negate(a)").launch), 1825, 1e-6) << "reads";
  EXPECT_NEAR(cycles(cost_on(v5e(), "a = f32[8]{0:S(1)} parameter(1)\n ROOT r = f32[8] negate(a)").launch), 1825, 1e-6) << "writes";
  EXPECT_EQ(cost_on(v5e(), "a = f32[8]{0:S(1)} parameter(1)\n ROOT r = f32[8]{0:S(1)} negate(a)").launch, Seconds{}) << "in VMEM alone: code of ten bundles, without a wait";
  EXPECT_EQ(cost_on(v5e(), "a = f32[] parameter(1)\n ROOT r = f32[] negate(a)").launch, Seconds{}) << "scalars cost nothing";
  EXPECT_EQ(cost_on(v5e(), "a = s32[] parameter(1)\n ROOT r = s32[]{:S(6)} copy(a)").launch, Seconds{}) << "nor copies of them";
  EXPECT_EQ(cost_on(v5e(), "c = f32[] constant(0)\n ROOT r = f32[8]{0:S(1)} broadcast(c), dimensions={}").launch, Seconds{}) << "a constant is in the code";
  EXPECT_NEAR(cycles(cost_on(v5e(), "c = f32[8] parameter(1)\n ROOT r = f32[8]{0:S(1)} broadcast(c), dimensions={0}").launch), 1825, 1e-6);
  EXPECT_EQ(cost_on(gpu(), "a = f32[8] parameter(1)\n ROOT r = f32[8] negate(a)").launch, Seconds{}) << "a GPU has its launches";
}

TEST(TpuKernels, OnlyModulesOfItsCompilerHaveItsKernels) {
  const HloModule module = module_of("HloModule m, is_scheduled=true\nENTRY e { a = f32[8] parameter(0)\n ROOT r = f32[8] negate(a) }\n");
  EXPECT_EQ(cost_of_root(module, v5e()).launch, Seconds{});
}

/// As the recurrence of a state-space model: a kernel that reads a slice of HBM in each trip.
TEST(TpuKernels, ALoopOfSmallKernelsTakesAsLongAsTheyWait) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true\n"
      "%body { t = (s32[], f32[1024,8]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n x = f32[1024,8] get-tuple-element(t), index=1\n one = s32[] constant(1)\n j = s32[] add(i, one)\n"
      " zero = s32[] constant(0)\n row = f32[1,8]{1,0:S(1)} dynamic-slice(x, i, zero), dynamic_slice_sizes={1,8}" + std::string{of_libtpu} + "\n ROOT n = (s32[], f32[1024,8]) tuple(j, x) }\n"
      "%condition { t = (s32[], f32[1024,8]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] constant(1000)\n ROOT l = pred[] compare(i, n), direction=LT }\n"
      "ENTRY e { x = f32[1024,8] parameter(0)\n z = s32[] constant(0)\n s = (s32[], f32[1024,8]) tuple(z, x)\n ROOT w = (s32[], f32[1024,8]) while(s), condition=%condition, body=%body }\n");
  const auto summary = summary_of(module, v5e());
  ASSERT_TRUE(summary) << to_text(summary.error());
  EXPECT_NEAR(cycles(summary->coverage.known.time), 1000 * 1825, 1000) << "and 32 bytes";
}

/// A kernel in VMEM of less than a microsecond is named where its trips add up to more than a hundredth of the module's time.
TEST(TpuKernels, WhatTheCompilerEstimatesOtherwiseIsSummedOverTheTripsOfALoop) {
  const auto others = [](int trips) {
    const HloModule module = module_of(
        "HloModule m, is_scheduled=true\n"
        "%body { t = (s32[], f32[8]{0:S(1)}) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n x = f32[8]{0:S(1)} get-tuple-element(t), index=1\n one = s32[] constant(1)\n j = s32[] add(i, one)\n"
        " y = f32[8]{0:S(1)} negate(x)" + std::string{of_libtpu} + "\n ROOT n = (s32[], f32[8]{0:S(1)}) tuple(j, y) }\n"
        "%condition { t = (s32[], f32[8]{0:S(1)}) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] constant(" + std::to_string(trips) + ")\n ROOT l = pred[] compare(i, n), direction=LT }\n"
        "ENTRY e { b = f32[10000,10000] parameter(1)\n c = f32[10000,10000] copy(b)\n x = f32[8]{0:S(1)} parameter(0)\n z = s32[] constant(0)\n s = (s32[], f32[8]{0:S(1)}) tuple(z, x)\n"
        " ROOT w = (s32[], f32[8]{0:S(1)}) while(s), condition=%condition, body=%body }\n");
    return trust_of(module, v5e()).other_estimates;
  };
  // The copy takes 800 MB / 800 GB/s = 1 ms, the estimate of a trip 1.2 us.
  EXPECT_THAT(others(5), IsEmpty());
  const auto named = others(100);
  ASSERT_THAT(named, SizeIs(1));
  EXPECT_EQ(named[0].first, "y");
  EXPECT_EQ(named[0].second.count, 100);
}

/// A reduction in VMEM that takes 2 us by the compiler, beside a copy of 10 us; here it is next to nothing.
TEST(TpuKernels, WhatTakesNextToNothingIsInDoubtByTheCompilersTime) {
  const auto trust = [](const std::string& estimated) {
    return trust_of(module_of("HloModule m, is_scheduled=true\nENTRY e { b = f32[1000,1000] parameter(1)\n c = f32[1000,1000] copy(b)\n x = f32[8]{0:S(1)} parameter(0)\n"
                              " ROOT y = f32[8]{0:S(1)} negate(x), backend_config={\"window_config\":{\"estimated_cycles\":\"" + estimated + "\"}} }\n"),
                    v5e());
  };
  const HloTrust doubtful = trust("3000");
  ASSERT_THAT(doubtful.other_estimates, SizeIs(1));
  EXPECT_EQ(doubtful.other_estimates[0].first, "y");
  EXPECT_NEAR(cycles(doubtful.coverage.in_doubt.longer), 3000, 1e-6);
  EXPECT_LT(cycles(doubtful.coverage.in_doubt.time), 10);
  EXPECT_THAT(trust("1400").other_estimates, IsEmpty()) << "less than a microsecond, and once";
}

/// A copy of 1 ms, without an estimate, beside what has one.
TEST(TpuKernels, WhatTheCompilerEstimatedNothingOfIsCounted) {
  const HloCoverage coverage = trust_of(module_of("HloModule m, is_scheduled=true\nENTRY e { b = f32[10000,10000] parameter(1)\n c = f32[10000,10000] copy(b)\n x = f32[8]{0:S(1)} parameter(0)\n"
                                                  " ROOT y = f32[8]{0:S(1)} negate(x)" + std::string{of_libtpu} + " }\n"),
                                        v5e()).coverage;
  EXPECT_EQ(coverage.compared.instructions, 1);
  EXPECT_EQ(coverage.not_compared.instructions, 1);
  EXPECT_NEAR(coverage.not_compared.time.count(), 1e-3, 2e-5);
  EXPECT_NEAR((coverage.compared.time + coverage.not_compared.time).count(), coverage.time().count(), 1e-12);
}

/// A register is 4096 bytes: f32[1024,1024] has 1024 of them.
TEST(TpuKernels, AKernelInVmemTakesItsLoadsOrItsStores) {
  const std::string array = "f32[1024,1024]{1,0:T(8,128)S(1)}", in_hbm = "f32[1024,1024]{1,0:T(8,128)}";
  const auto core = [](const std::string& text) { return cycles(cost_on(v5e(), text).core); };
  EXPECT_NEAR(core("a = " + array + " parameter(1)\n ROOT r = " + array + " copy(a)"), 1024, 1e-3) << "a store in a cycle";
  EXPECT_NEAR(core("a = " + array + " parameter(1)\n b = " + array + " parameter(2)\n ROOT r = " + array + " add(a, b)"), 1024, 1e-3) << "two loads beside each";
  EXPECT_NEAR(core("a = " + array + " parameter(1)\n b = " + array + " parameter(2)\n ROOT r = " + in_hbm + " add(a, b)"), 2048 / 3.0, 1e-3) << "three loads in a cycle";
  EXPECT_EQ(core("a = " + in_hbm + " parameter(1)\n ROOT r = " + in_hbm + " negate(a)"), 0);
  EXPECT_EQ(core("a = " + array + " parameter(1)\n b = " + array + " parameter(2)\n ROOT r = " + array + " dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), 0) << "a product has its unit";
  const HloTaskCost copy = cost_on(v5e(), "a = " + array + " parameter(1)\n ROOT r = " + array + " copy(a)");
  EXPECT_NEAR(cycles(time_of(copy, v5e())), 1024, 1e-3);
}

/// CMEM of v4: `cld` loads a register from there, or a transfer through VMEM does. What only moves within it cost nothing before.
TEST(TpuKernels, AKernelInCmemTakesItsLoadsAndStores) {
  const std::string array = "f32[1024,1024]{1,0:T(8,128)S(3)}";
  const auto core = [](const std::string& text) { return cycles(cost_on(v5e(), text).core); };
  EXPECT_NEAR(core("a = " + array + " parameter(1)\n ROOT r = " + array + " copy(a)"), 1024, 1e-3);
  EXPECT_NEAR(core("a = f32[8192,1024]{1,0:T(8,128)S(3)} parameter(1)\n ROOT r = " + array + " slice(a), slice={[1024:2048], [0:1024]}"), 1024, 1e-3);
}

/// Of the shorter modules for v4; on that machine every kernel of which the compiler says a microsecond takes something.
TEST(TpuKernels, NoKernelOfAStoredModuleForV4IsFree) {
  Machine machine = v5e();
  machine.chip.cycle = Seconds{953.25e-12};
  int kernels = 0;
  for (const char* const name : {"cannon_v4", "collectives_v4", "product_scatter_v4", "fourier_v4", "permutes_v4", "converted_maximum_v4"}) {
    const std::string path = PODSIM_SOURCE_DIR "/validation/aot/modules/" + std::string{name} + ".hlo.gz";
    const auto source = source_of_file(path);
    ASSERT_TRUE(source) << path;
    const auto text = read_all(**source, std::size_t{1} << 24, path);
    ASSERT_TRUE(text) << path;
    const HloModule module = module_of(*text);
    HloTaskCosts costs{module, {}, &machine};
    for (const HloComputation& computation : module.computations)
      for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
        const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(i)];
        if (instruction.attributes->estimated_cycles.value_or(0) * machine.chip.cycle < Seconds{1e-6}) continue;
        const auto cost = costs.of(computation, i);
        ASSERT_TRUE(cost) << to_text(cost.error());
        EXPECT_GT(time_of(*cost, machine), Seconds{}) << name << " " << instruction.name;
        ++kernels;
      }
  }
  EXPECT_GT(kernels, 40);
}

TEST(TpuKernels, TwoCoresShareATranspositionButNoReverse) {
  Machine machine = v5e();
  const std::string a = "a = f32[512,512]{1,0:T(8,128)} parameter(1)\n ROOT r = f32[512,512]";
  const std::string transposition = a + "{0,1:T(8,128)} copy(a)", reverse = a + "{1,0:T(8,128)} reverse(a), dimensions={1}";
  EXPECT_NEAR(cycles(cost_on(machine, transposition).core), 512, 1e-3);
  EXPECT_NEAR(cycles(cost_on(machine, reverse).core), 1280, 1e-3);
  machine.slices.cores_per_chip = 2;
  EXPECT_NEAR(cycles(cost_on(machine, transposition).core), 256, 1e-3);
  EXPECT_NEAR(cycles(cost_on(machine, reverse).core), 1280, 1e-3);
  machine.chip.devices = 2;
  EXPECT_NEAR(cycles(cost_on(machine, transposition).core), 512, 1e-3) << "a device has one of them";
}

TEST(TpuKernels, APartOfAnArrayInVmemTakesWholeRegisters) {
  const std::string array = "f32[16,131072]{1,0:T(8,128)S(1)}";
  EXPECT_NEAR(cycles(cost_on(v5e(), "a = " + array + " parameter(1)\n i = s32[] parameter(2)\n o = s32[] constant(0)\n ROOT r = f32[1,131072]{1,0:T(8,128)} "
                                                                   "dynamic-slice(a, i, o), dynamic_slice_sizes={1,131072}")
                         .core),
              1024, 1e-3)
      << "a row of each of 1024 tiles, whose other seven are loaded with it, three in a cycle; each row comes into the first sublane of another register";
  EXPECT_NEAR(cycles(cost_on(v5e(), "a = " + array + " parameter(1)\n u = f32[1,131072]{1,0:T(1,128)S(1)} parameter(2)\n i = s32[] parameter(3)\n o = s32[] constant(0)\n ROOT r = " + array +
                                        " dynamic-update-slice(a, u, i, o)")
                         .core),
              1024, 1e-3)
      << "stored into 1024 tiles";
}

/// Arrays of 512 registers.
TEST(TpuKernels, AStoreIntoTilesOfFewRowsFillsOneOfThem) {
  const auto core = [](const std::string& from, const std::string& to) { return cycles(cost_on(v5e(), "a = f32[512,1024]{1,0:" + from + "S(1)} parameter(1)\n ROOT r = f32[512,1024]{1,0:" + to + "S(1)} copy(a)").core); };
  EXPECT_NEAR(core("T(8,128)", "T(2,128)"), 4 * 512, 1e-3) << "code of v5e: 2119";
  EXPECT_NEAR(core("T(8,128)", "T(4,128)"), 2 * 512, 1e-3) << "code of v5e: 1036";
  EXPECT_NEAR(core("T(2,128)", "T(8,128)"), 512, 1e-3) << "code of v5e: 524";
}

/// Another dimension comes into the sublanes: 8 loads of each register, three in a cycle, then the stores of the result's tiles.
TEST(TpuKernels, RowsThatAreCopiedIntoTilesOfFewRowsAreLoadedAndStored) {
  const auto core = [](const std::string& to) { return cycles(cost_on(v5e(), "a = f32[128,4,1024]{2,0,1:T(8,128)} parameter(1)\n ROOT r = f32[128,4,1024]{2,1,0:" + to + "} copy(a)").core); };
  EXPECT_NEAR(core("T(4,128)"), (8 / 3.0 + 2) * 512, 1e-3) << "code of v5e: 2575";
  EXPECT_NEAR(core("T(8,128)"), 8 / 3.0 * 1024, 1e-3) << "of padded registers, in whole stores beside the loads";
  const auto half = [](const std::string& to) { return cycles(cost_on(v5e(), "a = bf16[128,4,1024]{2,0,1:T(8,128)(2,1)} parameter(1)\n ROOT r = bf16[128,4,1024]{2,1,0:" + to + "} copy(a)").core); };
  EXPECT_NEAR(half("T(4,128)(2,1)"), (4 / 3.0 + 2) * 512, 1e-3) << "code of v5e: 1678";
}

TEST(TpuKernels, AStoreIntoNarrowTilesFillsOneRowOfARegister) {
  const auto core = [](const std::string& tiles) {
    const std::string array = "bf16[64,2,4096]{2,1,0:" + tiles + "S(1)}";
    return cycles(cost_on(v5e(), "a = " + array + " parameter(1)\n ROOT r = " + array + " copy(a)").core);
  };
  EXPECT_NEAR(core("T(2,128)(2,1)"), 8 * 256, 1e-3) << "1 MiB in tiles of 512 bytes";
  EXPECT_NEAR(core("T(8,128)(2,1)"), 1024, 1e-3) << "padded to four times, but a register a store";
}

TEST(TpuKernels, ACopyThatPutsOtherRowsIntoARegisterLoadsEachByItself) {
  const auto core = [](const std::string& from, const std::string& to) {
    return cycles(cost_on(v5e(), "a = f32[32,128,1024]{" + from + ":T(8,128)S(1)} parameter(1)\n ROOT r = f32[32,128,1024]{" + to + ":T(8,128)S(1)} copy(a)").core);
  };
  EXPECT_NEAR(core("2,1,0", "2,0,1"), 8 * 4096 / 3.0, 1e-3);
  EXPECT_NEAR(core("2,1,0", "2,1,0"), 4096, 1e-3);
  EXPECT_NEAR(core("2,1,0", "1,2,0"), 2 * 4096, 1e-3) << "other lanes: two cycles a register";
}

HloModule of_one_kernel(const std::string& lines) { return module_of("HloModule m, is_scheduled=true\nENTRY e { " + lines + std::string{of_libtpu} + " }\n"); }

/// What its only task takes when it is simulated.
double simulated(const HloModule& module, const Machine& machine) {
  HloScheduleOptions options;
  options.machine = &machine;
  const auto made = hlo_schedule(module, *Mesh::make({{"x", 1}}), options);
  EXPECT_TRUE(made) << to_text(made.error());
  if (!made) return -1;
  const Program& program = made->schedule.programs.front();
  EXPECT_THAT(program.tasks, SizeIs(1));
  return cycles(local_work(machine, program, program.tasks.front()).total);
}

TEST(TpuKernels, ASimulatedKernelInVmemTakesWhatACountedOneDoes) {
  const HloModule module = of_one_kernel("a = f32[1024,1024]{1,0:T(8,128)S(1)} parameter(0)\n ROOT r = f32[1024,1024]{1,0:T(8,128)S(1)} copy(a)");
  const Machine machine = v5e();
  EXPECT_NEAR(simulated(module, machine), 1024, 1e-3);
  const auto summary = summary_of(module, machine);
  ASSERT_TRUE(summary) << to_text(summary.error());
  EXPECT_NEAR(cycles(summary->coverage.known.time), 1024, 1e-3) << "coverage has the same time";
}

HloTaskCost gathered(const std::string& table, const std::string& row, int rows) {
  return cost_on(v5e(), fmt::format("t = f32[{0}]{{1,0{1}}} parameter(1)\n i = s32[{2}]{{0:S(1)}} parameter(2)\n ROOT r = f32[{2},{3}]{{1,0:S(1)}} gather(t, i), offset_dims={{1}}, "
                                    "collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{3}}}",
                                    "4096," + row, table, rows, row));
}
TEST(TpuKernels, RowsAreGatheredOneByOne) {
  EXPECT_NEAR(cycles(gathered(":S(1)", "128", 65536).core), 2 * 65536, 1e-3);
  EXPECT_NEAR(cycles(gathered(":S(1)", "512", 65536).core), 4 * 65536, 1e-3);
  EXPECT_NEAR(cycles(gathered("", "1024", 4096).core), 14 * 4096, 1e-3) << "each a transfer of its own from HBM";
}

HloTaskCost scattered(const std::string& space) {
  return cost_on(v5e(), "t = f32[4096,128]{1,0" + space + "} parameter(1)\n i = s32[1000,1]{1,0:S(1)} parameter(2)\n u = f32[1000,128]{1,0:S(1)} parameter(3)\n c = f32[4096,128]{1,0" + space +
                            "} copy(t)\n ROOT r = f32[4096,128]{1,0" + space +
                            "} scatter(c, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add",
                 "%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n");
}
TEST(TpuKernels, RowsAreScatteredOneByOne) {
  EXPECT_NEAR(cycles(scattered(":S(1)").core), 6 * 1000, 1e-3) << "the indices are vectors of one";
  EXPECT_NEAR(cycles(scattered("").core), 48 * 1000, 1e-3);
}

TEST(TpuKernels, InAFusionTheResultOfAScatterSaysWhereItLies) {
  const HloTaskCost cost = cost_on(v5e(), "t = f32[4096,128]{1,0:S(1)} parameter(1)\n i = s32[1000,1]{1,0:S(1)} parameter(2)\n u = f32[1000,128]{1,0:S(1)} parameter(3)\n "
                                          "ROOT r = f32[4096,128]{1,0:S(1)} fusion(t, i, u), kind=kCustom, calls=%fused",
                                   "%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
                                   "%fused { t = f32[4096,128]{1,0} parameter(0)\n i = s32[1000,1] parameter(1)\n u = f32[1000,128] parameter(2)\n ROOT r = f32[4096,128]{1,0:S(1)} scatter(t, i, u), "
                                   "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add }\n");
  EXPECT_NEAR(cycles(cost.core), 6 * 1000, 1e-3);
}

TEST(TpuKernels, ASortTakesThePassesOfItsNetwork) {
  const auto core = [](const std::string& shape, const std::string& sort) { return cycles(cost_on(v5e(), "a = " + shape + " parameter(1)\n ROOT r = " + shape + " sort(a), dimensions={" + sort + "}").core); };
  EXPECT_NEAR(core("f32[65536]{0:S(1)}", "0"), 136 * 64 * 9, 1e-3) << "16 x 17 / 2 passes over 64 registers";
  EXPECT_NEAR(core("f32[1024]{0:S(1)}", "0"), 55 * 15, 1e-3) << "one register waits for itself in each";
  EXPECT_NEAR(core("f32[1024,128]{1,0:S(1)}", "1"), 28 * 128 * 4, 1e-3) << "rows side by side";
  const HloTaskCost pairs = cost_on(v5e(), "a = f32[65536]{0:S(1)} parameter(1)\n b = s32[65536]{0:S(1)} parameter(2)\n ROOT r = (f32[65536]{0:S(1)}, s32[65536]{0:S(1)}) sort(a, b), dimensions={0}");
  EXPECT_NEAR(cycles(pairs.core), 136 * 64 * 11, 1e-3);
  EXPECT_EQ(pairs.vector, 65536 * 16) << "what is counted as operations stays n log2 n";
  EXPECT_NEAR(cycles(time_of(pairs, v5e())), 136 * 64 * 11, 1e-3);
}

TEST(TpuKernels, ASimulatedSortTakesWhatACountedOneDoes) {
  const HloModule module = of_one_kernel("a = f32[65536] parameter(0)\n ROOT r = f32[65536] sort(a), dimensions={0}");
  EXPECT_NEAR(simulated(module, v5e()), 1825 + 136 * 64 * 9, 1e-3);
}

}  // namespace
}  // namespace podsim
