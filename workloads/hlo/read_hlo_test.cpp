#include "workloads/hlo/read_hlo.hpp"

#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/test_files.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::error_of;
using test::instruction_named;
using test::module_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A module with these lines in its entry.
std::string entry_with(const std::string& lines) { return "HloModule m\n\nENTRY %main {\n" + lines + "\n}\n"; }

TEST(ReadHlo, HeadersTellDevicesScheduleAndAliases) {
  const HloModule module = module_of(
      "HloModule jit_f.1, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias), {1, 2}: (0, {3}, must-alias) }, buffer_donor={ (2, {}), "
      "(3, {1}) }, "
      "replica_count=2, num_partitions=4, frontend_attributes={a=\"x, y\"}, "
      "entry_computation_layout={((f32[8], f32[8], f32[8], f32[8]), f32[8], f32[8], (f32[8], f32[8]))->(f32[8], (f32[8], f32[8], f32[8]))}\n"
      "ENTRY e {\n p = (f32[8], f32[8], f32[8], f32[8]) parameter(0)\n q = f32[8] parameter(1)\n r = f32[8] parameter(2)\n s = (f32[8], f32[8]) parameter(3)\n"
      " t = (f32[8], f32[8], f32[8]) tuple(q, q, r)\n ROOT u = (f32[8], (f32[8], f32[8], f32[8])) tuple(r, t)\n}\n");
  EXPECT_EQ(module.name, "jit_f.1");
  EXPECT_TRUE(module.is_scheduled);
  EXPECT_EQ(devices_of(module), 8);
  ASSERT_EQ(module.aliases.size(), 2u);
  EXPECT_EQ(module.aliases[1], (HloAlias{{1, 2}, 0, {3}, true}));
  ASSERT_EQ(module.donors.size(), 2u);
  EXPECT_EQ(module.donors[1], (HloDonor{3, {1}}));
  ASSERT_EQ(module.others.size(), 2u);
  EXPECT_EQ(module.others[0].text, "{a=\"x, y\"}");
}

TEST(ReadHlo, InstructionsHaveShapesOperandsAndPlaces) {
  const HloModule module =
      module_of(entry_with("  %p = f32[8]{0:T(1024)} parameter(0), sharding={replicated}\n"
                           "  %n = f32[8]{0} negate(f32[8]{0} %p), metadata={op_name=\"jit(f)/\\\"neg\\\"\" source_file=\"/a b.py\" source_line=7}\n"
                           "  ROOT %a = f32[8]{0} add(n, /*index=1*/%p), control-predecessors={%n}"));
  const HloComputation& entry = module.entry_computation();
  ASSERT_EQ(entry.instructions.size(), 3u);
  EXPECT_EQ(entry.root, 2);
  EXPECT_THAT(entry.parameters, ElementsAre(0));
  EXPECT_EQ(entry.instructions[0].attributes->sharding, "{replicated}");
  EXPECT_EQ(entry.instructions[1].op_name, "jit(f)/\"neg\"");
  EXPECT_THAT(entry.instructions[2].operands, ElementsAre(1, 0));
  EXPECT_THAT(entry.instructions[2].attributes->control_predecessors, ElementsAre(1));
  EXPECT_EQ(module.where(entry.instructions[2]), (SourceLocation{"m", 6, 3}));
  EXPECT_EQ(to_text(*entry.instructions[0].shape), "f32[8]{0:T(1024)}");
}

TEST(ReadHlo, AttributesAreTyped) {
  const HloModule module = module_of(
      entry_with("  %p = f32[8,16] parameter(0)\n  %i = s32[] constant(3)\n"
                 "  %s = f32[4,8] slice(%p), slice={[0:8:2], [8:16]}\n"
                 "  %d = f32[1,16] dynamic-slice(%p, %i, %i), dynamic_slice_sizes={1,16}\n"
                 "  %pad = f32[11,23] pad(%p, %i), padding=1_2x-1_8_0\n"
                 "  %c = pred[] compare(%i, %i), direction=GE, type=SIGNED\n"
                 "  %f = c64[8,9] fft(%p), fft_type=RFFT, fft_length={16}\n"
                 "  %g = f32[8,64] all-gather(%p), channel_id=7, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={1}, use_global_device_ids=true\n"
                 "  %q = f32[8,16] collective-permute(%p), source_target_pairs={{0,1},{1,0}}, channel_id=8\n"
                 "  %u = f32[8,16] custom-call(%p), custom_call_target=\"my \\\"target\\\"\", api_version=API_VERSION_TYPED_FFI, "
                 "backend_config={heads = 8 : i64, f = true}\n"
                 "  %w = f32[3,4] iota(), iota_dimension=1\n"
                 "  ROOT %z = f32[8,16] copy(%p), strange_thing={a,{b=\"},\"}}, "
                 "frontend_attributes={async_collective_name=\"all-gather-start.3\",kernel_metadata={\n"
                 "\"xprof_metadata\":\"{\\\"block\\\": 1}\"\n}}, metadata={op_name=\"x\"}"));
  EXPECT_EQ(instruction_named(module, "s").attributes->slice, (std::vector<HloSliceExtent>{{0, 8, 2}, {8, 16, 1}}));
  EXPECT_THAT(instruction_named(module, "d").attributes->dynamic_slice_sizes, ElementsAre(1, 16));
  EXPECT_EQ(instruction_named(module, "pad").attributes->padding, (std::vector<HloPadding>{{1, 2, 0}, {-1, 8, 0}}));
  EXPECT_EQ(instruction_named(module, "c").attributes->direction, HloDirection::ge);
  EXPECT_EQ(instruction_named(module, "f").attributes->fft_type, "RFFT");
  const HloModule products = module_of(
      entry_with("  %p = f32[8,8] parameter(0)\n"
                 "  %h = f32[8,8] dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={default,highest}\n"
                 "  %a = f32[8,8] dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32_x3\n"
                 "  ROOT %c = f32[8,8] convolution(%p, %p), dim_labels=bf_io->bf, operand_precision={high, packed_nibble}"));
  EXPECT_EQ(instruction_named(products, "h").attributes->precision, HloPrecision::highest);
  EXPECT_EQ(instruction_named(products, "a").attributes->precision, HloPrecision::standard);
  EXPECT_EQ(instruction_named(products, "a").attributes->algorithm, "dot_bf16_bf16_f32_x3");
  EXPECT_EQ(instruction_named(products, "c").attributes->precision, HloPrecision::high) << "a word that is not known is no reason to refuse a module";
  const HloAttributes& gather = *instruction_named(module, "g").attributes;
  EXPECT_EQ(gather.channel_id, 7);
  EXPECT_EQ(group_mode_of(instruction_named(module, "g")), HloGroupMode::flattened);
  EXPECT_THAT(gather.dimensions, ElementsAre(1));
  EXPECT_EQ(to_text(*gather.replica_groups), "[2,4]<=[4,2]T(1,0)");
  EXPECT_EQ(instruction_named(module, "q").attributes->source_target_pairs, (std::vector<SourceTarget>{{0, 1}, {1, 0}}));
  const HloAttributes& call = *instruction_named(module, "u").attributes;
  EXPECT_EQ(call.custom_call_target, "my \"target\"");
  EXPECT_EQ(call.backend_config, "{heads = 8 : i64, f = true}");
  ASSERT_EQ(call.others.size(), 1u);
  EXPECT_TRUE(call.others[0].known);
  EXPECT_THAT(instruction_named(module, "w").attributes->dimensions, ElementsAre(1));
  const HloAttributes& copy = *instruction_named(module, "z").attributes;
  ASSERT_EQ(copy.others.size(), 1u);
  EXPECT_EQ(copy.others[0], (HloAttribute{"strange_thing", "{a,{b=\"},\"}}", false}));
  EXPECT_EQ(copy.async_collective_name, "all-gather-start.3");
  EXPECT_EQ(instruction_named(module, "z").op_name, "x");
}

TEST(ReadHlo, BackendConfigsTellTripCountsCyclesAndSynchrony) {
  const HloModule module =
      module_of(entry_with("  %p = f32[8] parameter(0)\n"
                           "  %a = f32[8] copy(%p), backend_config={\"window_config\":{\"estimated_cycles\":\"1876\"}}\n"
                           "  %b = f32[8] copy(%p), backend_config={\"window_config\":{\"estimated_cycles\":\"9223372036854775807\"}}\n"
                           "  %c = f32[8] all-reduce-start(%p), to_apply={ x = f32[] parameter(0)\n ROOT y = f32[] parameter(1) }, "
                           "backend_config={\"collective_backend_config\":{\"is_sync\":true}}\n"
                           "  %done = f32[8] all-reduce-done(%c)\n"
                           "  %d = f32[8] copy(%p), backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"32\\\"}}\"\n"
                           "  ROOT %e = f32[8] copy(%p), backend_config={is_sync nonsense}"));
  EXPECT_EQ(instruction_named(module, "a").attributes->estimated_cycles, 1876);
  EXPECT_EQ(instruction_named(module, "b").attributes->estimated_cycles, std::nullopt);
  EXPECT_TRUE(instruction_named(module, "c").attributes->is_sync);
  EXPECT_EQ(instruction_named(module, "d").attributes->known_trip_count, 32);
  ASSERT_EQ(module.warnings.size(), 1u);
  EXPECT_EQ(module.warnings[0].message, "backend_config that is no JSON");
}

TEST(ReadHlo, NumbersOfBackendConfigsAreNumbers) {
  const auto error = [](const std::string& config) { return error_of(entry_with("  %p = f32[8] parameter(0)\n  ROOT %a = f32[8] copy(%p), backend_config=" + config)); };
  EXPECT_EQ(error(R"({"known_trip_count":{"n":"abc"}})"), R"(m:5:47: expected known_trip_count to have a whole number of trips as n, got "known_trip_count\":{\"n\":\"abc\"}}")");
  EXPECT_THAT(error(R"({"known_trip_count":"abc"})"), HasSubstr("m:5:47: expected known_trip_count"));
  EXPECT_THAT(error(R"({"known_trip_count":{"n":"-1"}})"), HasSubstr("m:5:47: expected known_trip_count"));
  EXPECT_THAT(error(R"({"known_trip_count":{"n":"99999999999999999999"}})"), HasSubstr("m:5:47: expected known_trip_count"));
  EXPECT_THAT(error(R"("{\"known_trip_count\":{\"n\":1.5}}")"), HasSubstr("m:5:49: expected known_trip_count"));
  EXPECT_THAT(error(R"({"window_config":{"estimated_cycles":"many"}})"), HasSubstr("m:5:64: expected estimated_cycles to be a whole number"));
  EXPECT_EQ(error(R"({"known_trip_count":{"n":"0"}})"), "");
  EXPECT_EQ(error(R"({"known_trip_count":{}})"), "") << "not told";
  EXPECT_EQ(error(R"({"known_trip_count":null})"), "");
}

TEST(ReadHlo, ConstantsAreNumbersUnlessTheyAreElided) {
  const HloModule module =
      module_of(entry_with("  %p = f32[8] parameter(0)\n"
                           "  %a = s32[2,2] constant({ { 1, 2 }, /*i0=1*/ { -3, 4 } })\n"
                           "  %b = pred[3] constant({true, 0, false})\n"
                           "  %c = bf16[] constant(-1.5e-3), metadata={op_name=\"{...}\"}\n"
                           "  %d = f32[2] constant({inf, -nan})\n"
                           "  %e = f32[4096] constant({...})\n"
                           "  %f = c64[1] constant({(1, -2)})\n"
                           "  %g = u64[] constant(18446744073709551615)\n"
                           "  %h = (s32[], f32[2]) constant((1, {2, 3}))\n"
                           "  ROOT %z = f32[8] copy(%p)"));
  const auto literal = [&](std::string_view name) { return instruction_named(module, name).attributes->literal; };
  EXPECT_THAT(literal("a").integers, ElementsAre(1, 2, -3, 4));
  EXPECT_THAT(literal("b").integers, ElementsAre(1, 0, 0));
  EXPECT_THAT(literal("c").reals, ElementsAre(-1.5e-3));
  EXPECT_EQ(literal("d").reals[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(literal("e").kind, HloLiteral::Kind::elided);
  EXPECT_THAT(literal("f").reals, ElementsAre(1, -2));
  EXPECT_THAT(literal("g").integers, ElementsAre(-1));
  EXPECT_EQ(literal("h").kind, HloLiteral::Kind::unread);
}

TEST(ReadHlo, ComputationsMayStandInsideAttributesAndLackParameterLists) {
  const HloModule module = module_of(
      "HloModule m\n"
      "%cond { %t = (s32[]) parameter(0)\n ROOT %r = pred[] constant(false) }\n"
      "ENTRY main {\n  p = f32[8] parameter(0)\n  z = f32[] constant(0)\n"
      "  s = f32[] reduce(p, z), dimensions={0}, to_apply=\n  {\n    a = f32[] parameter(0)\n    b = f32[] parameter(1)\n    ROOT c = f32[] add(a, "
      "b)\n  }\n"
      "  i = s32[] constant(0)\n  t = (s32[]) tuple(i)\n"
      "  w = (s32[]) while(t), condition=cond, body={ ROOT u = (s32[]) parameter(0) }\n"
      "  ROOT q = f32[] conditional(i, s, s), branch_computations={ cheap, %dear }\n}\n"
      "cheap { ROOT x = f32[] parameter(0) }\n\n%dear (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}, execution_thread=\"host\"\n");
  EXPECT_EQ(module.computations.size(), 6u);
  const HloInstruction& reduce = instruction_named(module, "s");
  ASSERT_NE(called(module, reduce, HloRole::to_apply), nullptr);
  EXPECT_EQ(called(module, reduce, HloRole::to_apply)->instructions.size(), 3u);
  EXPECT_EQ(called(module, instruction_named(module, "w"), HloRole::condition)->name, "cond");
  EXPECT_EQ(called(module, instruction_named(module, "q"), HloRole::branch, 1)->execution_thread, "host");
  // Called computations come before their callers.
  for (std::size_t c = 0; c < module.computations.size(); ++c)
    for (const HloInstruction& instruction : module.computations[c].instructions)
      for (const HloCall& call : instruction.calls) EXPECT_LT(call.computation, static_cast<int>(c));
}

TEST(ReadHlo, AsynchronousFormsAreOneOperationInPhases) {
  const HloModule module = module_of(
      entry_with("  %p = f32[8] parameter(0)\n"
                 "  %s = ((f32[8]), f32[8], u32[]) async-start(%p), calls={ ROOT x = f32[8] parameter(0) }, async_execution_thread=\"sparsecore\"\n"
                 "  %u = ((f32[8]), f32[8], u32[]) async-update(%s)\n  %d = f32[8] async-done(%u)\n"
                 "  %t = ((f32[8]), f32[4]) slice-start(%p), slice={[0:4]}\n  %e = f32[4] slice-done(%t)\n"
                 "  ROOT %z = f32[8] copy(%p)"));
  EXPECT_EQ(instruction_named(module, "s").opcode, HloOpcode::async);
  EXPECT_EQ(instruction_named(module, "s").phase, HloPhase::start);
  EXPECT_EQ(instruction_named(module, "s").attributes->async_execution_thread, "sparsecore");
  EXPECT_EQ(instruction_named(module, "u").phase, HloPhase::update);
  EXPECT_EQ(instruction_named(module, "e").opcode, HloOpcode::slice);
  EXPECT_EQ(opcode_text(instruction_named(module, "e")), "slice-done");
}

TEST(ReadHlo, UnknownOpcodesAreKeptAndCounted) {
  const HloModule module =
      module_of(entry_with("  %p = f32[8] parameter(0)\n  %a = f32[8] hyper-blend(%p), how={x}\n  ROOT %z = f32[8] hyper-blend(%a)"));
  EXPECT_EQ(opcode_text(instruction_named(module, "a")), "hyper-blend");
  ASSERT_EQ(module.warnings.size(), 1u);
  EXPECT_EQ(module.warnings[0], (HloWarning{"instructions of unknown opcode \"hyper-blend\"", 2, {"m", 5, 3}}));
}

TEST(ReadHlo, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(error_of(""), "m:1:1: expected \"HloModule\" and the name of a module, got the end");
  EXPECT_EQ(error_of("HloModule m, num_partitions=x\n"), "m:1:29: expected a number from 1 to 2^24, got \"x\"");
  EXPECT_EQ(error_of("HloModule m\n%a { ROOT x = f32[] parameter(0) }\n"), "m:3:1: expected a computation marked ENTRY, got none in 1 computations");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)\n  %n = f32[8] negate(%q)")),
            "m:5:22: expected the name of an instruction before this one, got \"%q)\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)\n  %p = f32[8] negate(%p)")),
            "m:5:3: expected a name that is not yet taken in computation \"main\", got \"%p = f32[8] negate(%p)\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)\n  %n = f32[8] negate(f32[9] %p)")), "m:5:29: expected p of shape f32[8], got f32[9]");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8,8] parameter(0)\n  %c = f32[8,8] convolution(%p, %p), dim_labels=b?f_io->bf")),
            "m:5:49: expected the letters b and f and the spatial dimensions from 0 on, got \"b?f_io->bf\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8 parameter(0)")), "m:4:14: expected \",\" and the next dimension, or \"]\", got \"parameter(0)\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(1)")), "m:3:1: expected the parameters 0 to 0 of computation \"main\", each once, got 1");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)\n  %f = f32[8] fusion(%p), calls=%gone")),
            "m:5:33: expected the name of a computation of this module, got \"%gone\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)\n  %c = f32[2] constant({1, 2, 3})")),
            "m:5:31: expected 2 values of a constant, and nothing behind them, got \"3})\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)\n  %c = f32[2] constant({1})")), "m:5:24: expected 2 values of a constant, got 1");
  EXPECT_EQ(error_of(entry_with("  ROOT %p = f32[8] parameter(0)\n  ROOT %c = f32[8] copy(%p)")),
            "m:5:3: expected one ROOT in a computation, got a second one");
  EXPECT_EQ(error_of(entry_with("")), "m:3:1: expected instructions in computation \"main\", got none");
  EXPECT_EQ(error_of(entry_with("  %p = (f32[8], s32[]) parameter(0)\n  %g = s32[] get-tuple-element(%p), index=2")),
            "m:5:3: expected an index below the 2 elements of the tuple, got 2");
  EXPECT_EQ(error_of(entry_with("  %p = (f32[8], s32[]) parameter(0)\n  %g = s32[] get-tuple-element(%p), index=0")),
            "m:5:3: expected the shape of element 0, f32[8], got s32[]");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0), operand_precision={high,}")), "m:4:53: expected default, high or highest, got \"}\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0), operand_precision=high")), "m:4:47: expected \"{\" and the precision of each operand, got \"high\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0), window={size=2 shape=3}")),
            "m:4:44: expected size, stride, pad, lhs_dilate, rhs_dilate or rhs_reversal, got \"shape=3}\"");
  EXPECT_EQ(error_of(entry_with("  %p = f32[8] parameter(0)") + "ENTRY x { ROOT y = f32[] parameter(0) }"),
            "m:6:1: expected one ENTRY, got a second one");
  EXPECT_THAT(error_of("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n"),
              HasSubstr("m:4:1: expected an instruction, or \"}\" behind the last one, got the end"));
}

TEST(ReadHlo, ComputationsThatCallThemselvesAreRefused) {
  const std::string cyclic =
      "HloModule m\n%a {\n  p = f32[] parameter(0)\n  ROOT c = f32[] call(p), to_apply=%b\n}\n%b {\n  q = f32[] parameter(0)\n  ROOT d = f32[] "
      "call(q), to_apply=%a\n}\n"
      "ENTRY e {\n  r = f32[] parameter(0)\n  ROOT f = f32[] call(r), to_apply=%a\n}\n";
  EXPECT_EQ(error_of(cyclic), "m:8:3: expected computations that do not call themselves, but \"d\" closes a cycle");
  const HloModule module = module_of(cyclic, true);
  EXPECT_THAT(instruction_named(module, "d").calls, IsEmpty());
  EXPECT_EQ(instruction_named(module, "c").calls.size(), 1u);
}

TEST(ReadHlo, CutFilesAreReadIfTolerant) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true\n\nFileNames\n\nStackFrames\n1 {file_location_id=1}\n\n"
      "%f (a: f32[8]) -> f32[8] {\n  %a = f32[8] parameter(0)\n  %b = f32[8] add(%a, %gone)\n  ROOT %c = f32[8] fusion(%b), kind=kLoop, "
      "calls=%nowhere\n}\n\n"
      "%g (p.0: f32[8], p.1: f32[8]) -> f32[8] {\n  %p.1 = f32[8] parameter(1)\n  %all-gather.1 = f32[32]{0} all-gather(%p.1), replica_gro",
      true);
  EXPECT_EQ(module.entry, HloInstruction::missing);
  EXPECT_EQ(instructions_of(module), 4u);
  EXPECT_THAT(instruction_named(module, "b").operands, ElementsAre(0, HloInstruction::missing));
  std::vector<std::string> warnings;
  for (const HloWarning& warning : module.warnings) warnings.push_back(fmt::format("{} {}", warning.count, warning.message));
  EXPECT_THAT(warnings, ElementsAre("1 operands of unknown name", "1 instructions that are cut off", "1 computations that are cut off",
                                    "1 computations that lack parameters", "1 computations that are missing", "1 no ENTRY"));
  EXPECT_THAT(module.computations.back().parameters, ElementsAre(HloInstruction::missing, 0));
}

TEST(ReadHlo, DeepNestingAndLongListsTakeLinearTimeOrAreRefused) {
  EXPECT_NE(error_of(entry_with("  %p = " + std::string(200000, '(') + "f32[8] parameter(0)")), "");
  EXPECT_NE(error_of(entry_with("  %p = f32[8] parameter(0), x=" + std::string(200000, '{'))), "");
  std::string nested;
  for (int i = 0; i < 5000; ++i) nested += "c = f32[] call(), to_apply={ ";
  EXPECT_THAT(error_of("HloModule m\nENTRY e { " + nested), HasSubstr("expected at most 16 computations written in each other"));
  std::string operands = "%p";
  for (int i = 1; i < 1000000; ++i) operands += ",%p";
  EXPECT_EQ(instruction_named(
                module_of(entry_with("  %p = f32[8] parameter(0)\n  %c = f32[8] custom-call(" + operands + "), custom_call_target=\"t\"")), "c")
                .operands.size(),
            1000000u);
  std::string chain = "HloModule m\n%c0 { ROOT x = f32[] parameter(0) }\n";
  for (int i = 1; i < 20000; ++i) chain += fmt::format("%c{} {{ x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=%c{} }}\n", i, i - 1);
  EXPECT_EQ(module_of(chain + "ENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] call(x), to_apply=%c19999 }\n").computations.size(), 20001u);
}

// Work that grew with the square of these would take minutes, and CTest ends it.
TEST(ReadHlo, WhatIsReadIsCountedInLinearTime) {
  constexpr int n = 20000;
  std::string tuple_shape = "f32[8]", operands = "p", elements, inlined, fused, fusions;
  for (int i = 1; i < n; ++i) tuple_shape += ", f32[8]", operands += ", p";
  for (int i = 0; i < n; ++i) {
    elements += fmt::format("  g{} = f32[8] get-tuple-element(t), index={}\n", i, i);
    inlined += fmt::format(
        "  r{} = f32[] reduce(p, z), dimensions={{0}}, to_apply={{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}\n",
        i);
    fused += fmt::format(" a{} = f32[8] all-reduce(a{}), replica_groups={{}}, to_apply=%add\n", i + 1, i);
    fusions += fmt::format("  f{} = f32[8] fusion(p), kind=kLoop, calls=%fused\n", i);
  }
  std::string chain = fmt::format("s0 = f32[8] slice(a{}), slice={{[0:8]}}", n);
  for (int i = 1; i < n; ++i) chain += fmt::format("\n s{} = f32[8] copy(s{})", i, i - 1);
  const HloModule module = module_of(
      "HloModule m, num_partitions=2\n%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n%fused { a0 = f32[8] "
      "parameter(0)\n" +
      fused + " " + chain + " }\nENTRY e {\n  p = f32[8] parameter(0)\n  z = f32[] constant(0)\n  t = (" + tuple_shape + ") tuple(" + operands +
      ")\n" + elements + inlined + fusions + "}\n");
  const auto summary = summary_of(module, Machine{});
  ASSERT_TRUE(summary) << to_text(summary.error());
  EXPECT_EQ(summary->collectives.size(), static_cast<std::size_t>(n));
  EXPECT_EQ(summary->collectives.back().count, n);
  EXPECT_EQ(summary->collectives.back().kind, HloOpcode::reduce_scatter);
  EXPECT_EQ(instruction_named(module, "r19999").line, 10 + 3 * n + 3 * (n - 1));
  EXPECT_TRUE(peak_memory_of(module));
}

TEST(ReadHlo, LargeTextsAreRefusedByTheirSize) {
  const auto none = read_hlo_file("/dev/zero");
  ASSERT_FALSE(none);
  EXPECT_THAT(to_text(none.error()), HasSubstr("expected at most"));
}

TEST(ReadHlo, LinesOfProfilesNeedNoDefinitions) {
  const auto line = parse_hlo_line(
      "ROOT %fusion.3 = bf16[8,128]{1,0:T(8,128)(2,1)} fusion(bf16[8,64]{1,0} %a, %b), kind=kOutput, calls=%c, metadata={op_name=\"x\"}");
  ASSERT_TRUE(line) << to_text(line.error());
  EXPECT_TRUE(line->is_root);
  EXPECT_EQ(line->instruction.name, "fusion.3");
  EXPECT_THAT(line->operand_names, ElementsAre("a", "b"));
  EXPECT_EQ(to_text(*line->operand_shapes[0]), "bf16[8,64]{1,0}");
  EXPECT_FALSE(line->operand_shapes[1]);
  EXPECT_EQ(line->called[0].second, "c");
  const auto cut = parse_hlo_line("%all-gather.1 = f32[8] all-gather(f32[2] %p), dimensions={0}, replica_groups=[2,4]<=[8], metadata={op_na");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->instruction.attributes->replica_groups->uniform_size(), 4);
  const auto in_operands = parse_hlo_line("%all-gather.1 = f32[8] all-gather(f32[2] %p, f32[");
  ASSERT_TRUE(in_operands);
  EXPECT_THAT(in_operands->operand_names, ElementsAre("p"));
  EXPECT_FALSE(parse_hlo_line("not an instruction"));
}

// A module of our own in the form that the TPU's compiler prints.
TEST(ReadHlo, ReadsTheFormOfTheTpusCompiler) {
  const auto module = read_hlo_file(PODSIM_SOURCE_DIR "/workloads/hlo/testdata/tpu_layers.hlo");
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_THAT(module->warnings, IsEmpty());
  EXPECT_EQ(instructions_of(*module), 61u);
  EXPECT_EQ(instruction_named(*module, "fusion.1").attributes->estimated_cycles, 1876);
  EXPECT_EQ(instruction_named(*module, "slice-done.1").shape->layout.memory_space, HloMemory::vmem);
}

TEST(ReadHlo, InstructionsAndWhatTheyCallAgreeOnShapes) {
  const auto error = [](const std::string& lines) {
    return test::error_of("HloModule m\n%twice { p = f32[4] parameter(0)\n ROOT t = f32[4] add(p, p) }\n%is { q = f32[4] parameter(0)\n ROOT y = pred[] constant(true) }\n"
                          "ENTRY e {\n x = f32[4] parameter(0)\n z = f32[5] parameter(1)\n" + lines + "\n}\n");
  };
  EXPECT_EQ(error("ROOT r = f32[4] call(x), to_apply=%twice"), "");
  EXPECT_EQ(error("ROOT r = f32[4] call(z), to_apply=%twice"), "m:9:1: r: expected f32[4], the shape of parameter 0 of computation twice, got f32[5]");
  EXPECT_EQ(error("ROOT r = f32[5] fusion(x), kind=kLoop, calls=%twice"), "m:9:1: r: expected a computation that gives f32[5], but twice gives f32[4]");
  EXPECT_EQ(error("ROOT r = f32[4] call(x, x), to_apply=%twice"), "m:9:1: r: expected as many operands as computation twice has parameters, 1, got 2");
  EXPECT_EQ(error("ROOT r = f32[4] while(x), condition=%is, body=%twice"), "");
  EXPECT_EQ(error("ROOT r = f32[4] while(x), condition=%twice, body=%twice"), "m:9:1: r: expected a computation that gives pred[], but twice gives f32[4]");
  EXPECT_EQ(error("ROOT r = f32[5] while(x), condition=%is, body=%twice"), "m:9:1: r: expected one operand of its shape, f32[5]");
  EXPECT_EQ(error("i = s32[] constant(0)\nROOT r = f32[4] conditional(i, x, z), branch_computations={%twice, %twice}"),
            "m:10:1: r: expected f32[4], the shape of parameter 0 of computation twice, got f32[5]");
  EXPECT_EQ(error("ROOT r = f32[4] add(x, z)"), "m:9:1: expected operands of the dimensions of the result, f32[4], got f32[5]");
  EXPECT_EQ(error("ROOT r = (f32[4], f32[4]) tuple(x, z)"), "m:9:1: expected the shape of operand 1, f32[5], got f32[4]");
}

TEST(ReadHlo, GroupsAndPairsNameDevicesThatTheModuleHas) {
  const auto error = [](const std::string& line) {
    return test::error_of("HloModule m, num_partitions=4\n%sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n%unused { u = f32[4] parameter(0)\n ROOT v = " + line +
                          " }\nENTRY e { ROOT x = f32[4] parameter(0) }\n");
  };
  EXPECT_EQ(error("f32[4] all-reduce(u), replica_groups={{0,1},{2,3}}, to_apply=%sum"), "");
  EXPECT_EQ(error("f32[4] all-reduce(u), replica_groups={{0,1},{2,4}}, to_apply=%sum"), "m:6:2: v: expected ids below 4, got 4");
  EXPECT_EQ(error("f32[4] collective-permute(u), source_target_pairs={{0,1},{1,9}}"), "m:6:2: v: expected ids below 4, got 9");
}

}  // namespace
}  // namespace podsim
