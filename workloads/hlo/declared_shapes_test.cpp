// Signatures and the layout of the entry say what the instructions say.
#include <gtest/gtest.h>

#include <string>

#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

TEST(DeclaredShapes, OfTheEntryAreThoseOfTheHeader) {
  const auto error = [](const std::string& layout) {
    return test::error_of("HloModule m, entry_computation_layout={" + layout + "}\nENTRY e {\n x = f32[4]{0} parameter(0)\n ROOT r = (f32[4]{0}, f32[4]{0}) tuple(x, x)\n}\n");
  };
  EXPECT_EQ(error("(f32[4]{0})->(f32[4]{0}, /*index=1*/f32[4]{0})"), "");
  EXPECT_EQ(error("(f32[5]{0})->(f32[4]{0}, f32[4]{0})"), "m:3:2: x: expected f32[5], which entry_computation_layout says, got f32[4]");
  EXPECT_EQ(error("(f32[4]{0})->(f32[4]{0}, f32[8]{0})"), "m:4:2: r: expected (f32[4], f32[8]), which entry_computation_layout says, got (f32[4], f32[4])");
  EXPECT_EQ(error("(f32[4]{0}, f32[4]{0})->(f32[4]{0}, f32[4]{0})"), "m:2:1: expected the 2 parameters of entry_computation_layout, got 1");
}

TEST(DeclaredShapes, OfTheEntryAreReadWhole) {
  const auto error = [](const std::string& layout) { return test::error_of("HloModule m, entry_computation_layout={" + layout + "}\nENTRY e {\n ROOT x = f32[4]{0} parameter(0)\n}\n"); };
  EXPECT_EQ(error("(f32[4]{0:T(128)})->f32[4]{0}"), "");
  EXPECT_EQ(error("(f32[4]{1:T(128)})->f32[4]{0}"), "m:1:48: expected each of the 1 dimensions once in a layout, got \"1:T(128)})->f32[4]{0}}\"");
  EXPECT_EQ(error("(f32[4]{0:T(0)})->f32[4]{0}"), "m:1:52: expected the extent of a tile, got \"0)})->f32[4]{0}}\"");
  EXPECT_EQ(error("(f32[4]{0}) f32[4]{0}"), "m:1:51: expected \"->\" and the shape of the entry's result, got \" f32[4]{0}}\"");
}

TEST(DeclaredShapes, OfASignatureAreThoseOfParametersAndRoot) {
  const auto error = [](const std::string& signature) {
    return test::error_of("HloModule m\nENTRY %e " + signature + " {\n %x = f32[4]{0} parameter(0)\n %n = s32[] parameter(1)\n ROOT %r = (f32[4]{0}, s32[]) tuple(%x, %n)\n}\n");
  };
  EXPECT_EQ(error("(x: f32[4], n: s32[]) -> (f32[4], s32[])"), "");
  EXPECT_EQ(error("(%x: f32[4]{0:T(128)}, /*index=1*/ n: s32[]) -> (f32[4]{0}, /*index=1*/s32[])"), "") << "layouts may differ";
  EXPECT_EQ(error("(x: f32[5], n: s32[]) -> (f32[4], s32[])"), "m:2:14: expected f32[4], the shape of parameter 0, x, got f32[5]");
  EXPECT_EQ(error("(x: f32[4], n: f32[]) -> (f32[4], s32[])"), "m:2:25: expected s32[], the shape of parameter 1, n, got f32[]");
  EXPECT_EQ(error("(x: f32[4], n: s32[]) -> f32[4]"), "m:2:35: expected (f32[4], s32[]), the shape of the root, r, got f32[4]");
  EXPECT_EQ(error("(x: f32[4]) -> (f32[4], s32[])"), "m:2:14: expected the 2 parameters of computation \"e\", got 1");
  EXPECT_EQ(error("() -> (f32[4], s32[])"), "m:2:16: expected the 2 parameters of computation \"e\", got 0");
  EXPECT_EQ(error("(x f32[4]) -> f32[4]"), "m:2:13: expected \":\" and the shape of a parameter, got \"f32[4]) -> f32[4] {\"");
  EXPECT_EQ(error("(f32[4]) -> f32[4]"), "m:2:14: expected \":\" and the shape of a parameter, got \"[4]) -> f32[4] {\"");
  EXPECT_EQ(error("(x: f32[4] n: s32[]) -> f32[4]"), "m:2:21: expected \",\" and the next parameter, or \")\", got \"n: s32[]) -> f32[4] {\"");
}

TEST(DeclaredShapes, OfComputationsThatAreCalledAsWell) {
  EXPECT_EQ(test::error_of("HloModule m\n%f (p: f32[4]) -> f32[2] {\n  ROOT %p = f32[4] parameter(0)\n}\nENTRY e {\n x = f32[4] parameter(0)\n ROOT r = f32[4] call(x), to_apply=%f\n}\n"),
            "m:2:19: expected f32[4], the shape of the root, p, got f32[2]");
}

TEST(DeclaredShapes, AliasesAndDonorsAreOfTheEntry) {
  const auto error = [](const std::string& header) {
    return test::error_of("HloModule m, " + header + "\nENTRY e {\n x = f32[4] parameter(0)\n y = (f32[4], f32[4]) parameter(1)\n ROOT r = (f32[4], f32[4]) tuple(x, x)\n}\n");
  };
  EXPECT_EQ(error("input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {1}, must-alias) }, buffer_donor={ (1, {0}) }"), "");
  EXPECT_EQ(error("input_output_alias={ {2}: (0, {}, may-alias) }"), "m:2:1: input_output_alias: expected outputs of the entry, got {2}");
  EXPECT_EQ(error("input_output_alias={ {0}: (2, {}, may-alias) }"), "m:2:1: input_output_alias: expected parameters of the entry, got (2, {})");
  EXPECT_EQ(error("input_output_alias={ {0}: (1, {2}, may-alias) }"), "m:2:1: input_output_alias: expected parameters of the entry, got (1, {2})");
  EXPECT_EQ(error("input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}, may-alias) }"), "m:2:1: input_output_alias: expected one output in each parameter, got two in (0, {})");
  EXPECT_EQ(test::error_of("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e {\n x = f32[8] parameter(0)\n ROOT r = f32[4] slice(x), slice={[0:4]}\n}\n"),
            "m:2:1: input_output_alias: expected a parameter of the size of output {}, f32[4], got (0, {}), f32[8]");
  EXPECT_EQ(error("buffer_donor={ (0, {0}) }"), "m:2:1: buffer_donor: expected parameters of the entry, got (0, {0})");
}

TEST(CallShapes, AnAsynchronousOperationRunsOnTheThreadOfItsComputation) {
  const auto error = [](const std::string& thread) {
    return test::error_of("HloModule m\n%f { ROOT p = f32[4] parameter(0) }, execution_thread=\"sparsecore\"\nENTRY e {\n x = f32[4] parameter(0)\n s = ((f32[4]), f32[4], u32[]) async-start(x), calls=%f, async_execution_thread=\"" + thread +
                          "\"\n ROOT d = f32[4] async-done(s)\n}\n");
  };
  EXPECT_EQ(error("sparsecore"), "");
  EXPECT_EQ(error("host"), "m:5:2: s: expected the execution_thread of computation f, \"sparsecore\", got \"host\"");
}

TEST(CallShapes, ReductionsCombineNumbersAndAConditionalIsChosenByOne) {
  const auto error = [](const std::string& instruction) {
    return test::error_of("HloModule m\n%wide { p = f32[8] parameter(0)\n q = f32[8] parameter(1)\n ROOT r = f32[8] add(p, q) }\n%sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q) }\n"
                          "%one { ROOT p = f32[8] parameter(0) }\n"
                          "ENTRY e {\n x = f32[8] parameter(0)\n zero = f32[] constant(0)\n n = s32[] constant(0)\n ROOT r = " + instruction + "\n}\n");
  };
  EXPECT_EQ(error("f32[8] all-reduce(x), replica_groups={}, to_apply=%sum"), "");
  EXPECT_EQ(error("f32[8] all-reduce(x), replica_groups={}, to_apply=%wide"), "m:13:2: r: expected a computation of numbers, but wide takes f32[8]");
  EXPECT_EQ(error("f32[] reduce(x, zero), dimensions={0}, to_apply=%wide"), "m:13:2: r: expected a computation of numbers, but wide takes f32[8]");
  EXPECT_EQ(error("f32[8] conditional(n, x, x), branch_computations={%one, %one}"), "");
  EXPECT_EQ(error("f32[8] conditional(x, x, x), branch_computations={%one, %one}"), "m:13:2: r: expected pred[] or s32[], which branch to take, got f32[8]");
}

}  // namespace
}  // namespace podsim
