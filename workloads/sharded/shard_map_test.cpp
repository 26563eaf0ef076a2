// Bodies of shard_map: what they mean, what JAX computes of them, what they move.
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "algorithms/collectives/collectives.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/execute.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/validate.hpp"
#include "workloads/sharded/summary.hpp"
#include "workloads/sharded/testing.hpp"
#include "workloads/sharded/write.hpp"

namespace podsim::testing {
namespace {

const Mesh mesh_of_bodies = mesh_with({{"x", 4}, {"y", 2}});

ProgramPlan only_plan(const ShardedProgram& program) {
  auto plan = plan_program(program, Choose::bytes);
  EXPECT_TRUE(plan) << to_text(plan.error());
  return *std::move(plan);
}

Schedule lowered_by(const CollectiveChooser& chooser, const ShardedProgram& program) {
  auto lowered = lower(write_program(program, only_plan(program)), chooser);
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return *std::move(lowered);
}

CheckReport proof_of(const Schedule& lowered) {
  CheckOptions options;
  options.threads = 1;
  options.random_orders = 1;
  auto report = check(lowered, options);
  EXPECT_TRUE(report) << to_text(report.error());
  return *std::move(report);
}

/// The outputs of a program on given inputs, by rings and lines.
GivenTensors outputs_on(const ShardedProgram& program, const GivenTensors& inputs) {
  auto outputs = execute(lowered_by(ring_or_line(), program), inputs, {.threads = 1});
  EXPECT_TRUE(outputs) << to_text(outputs.error());
  return *std::move(outputs);
}

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

// ---- Meaning ----

TEST(ShardMap, AProductOfBlocksIsAPartialSumThatPsumAddsUp) {
  const ShardedProgram local = program_with(mesh_of_bodies, "shard_map { C = psum(A @ B, y) as x,- }", "A=16x16; B=16x16", "A=x,y; B=y,-");
  const ProgramSummary summary = summary_of(local, only_plan(local));
  ASSERT_EQ(summary.collectives.size(), 1U);
  EXPECT_EQ(summary.collectives[0].kind, "all-reduce");
  EXPECT_EQ(summary.collectives[0].before, "4x16 over x,y");
  EXPECT_EQ(summary.collectives[0].after, "4x16 over x");
  EXPECT_EQ(summary.cost.received.count(), 4 * 16 * 4);  // twice half of the block
  EXPECT_TRUE(proof_of(lowered_by(ring_or_line(), local)).ok);
  const ShardedProgram whole = program_with(mesh_of_bodies, "C = A @ B", "A=16x16; B=16x16", "A=x,y; B=y,-", "C=x,-");
  EXPECT_EQ(flops_of(local).count(), flops_of(whole).count());
  const GivenTensors inputs{{"A", counted(256)}, {"B", counted(256)}};
  EXPECT_EQ(outputs_on(local, inputs), outputs_on(whole, inputs));
}

TEST(ShardMap, TheOutSpecSaysWhichArrayTheBlocksMake) {
  const auto made = [](const std::string& spec) {
    const ShardedProgram program = program_with(mesh_of_bodies, "shard_map { C = A + 0 as " + spec + " }", "A=4x2", "A=x,y");
    EXPECT_EQ(to_text(*program.operations.back().sharding, mesh_of_bodies, 2), spec);
    return std::pair{program.operations.back().extents, outputs_on(program, {{"A", counted(8)}}).at("C")};
  };
  using Made = std::pair<Extents, std::vector<float>>;
  EXPECT_EQ(made("x,y"), (Made{{4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(made("y,x"), (Made{{2, 4}, {0, 2, 4, 6, 1, 3, 5, 7}}));
  EXPECT_EQ(made("(y+x),-"), (Made{{8, 1}, {0, 2, 4, 6, 1, 3, 5, 7}}));
  EXPECT_EQ(made("-,(x+y)"), (Made{{1, 8}, {0, 1, 2, 3, 4, 5, 6, 7}}));
}

TEST(ShardMap, EveryFunctionDoesWhatItsNameSaysInJax) {
  const auto value = [](const std::string& expression, const std::string& spec) {
    const ShardedProgram program = program_with(mesh_of_bodies, "shard_map { C = " + expression + " as " + spec + " }", "A=8x2", "A=x,y");
    EXPECT_TRUE(proof_of(lowered_by(ring_or_line(), program)).ok) << expression;
    return fmt::format("{}: {}", fmt::join(program.operations.back().extents, "x"), fmt::join(outputs_on(program, {{"A", counted(16)}}).at("C"), " "));
  };
  EXPECT_EQ(value("sum(A, 0)", "(x+y)"), "8: 2 4 10 12 18 20 26 28");
  EXPECT_EQ(value("mean(A, 0)", "(x+y)"), "8: 1 2 5 6 9 10 13 14");
  EXPECT_EQ(value("psum(A, x)", "-,y"), "2x2: 24 28 32 36");
  EXPECT_EQ(value("pmean(A, (x, y))", "-,-"), "2x1: 6.5 8.5");
  EXPECT_EQ(value("pmax(-A, x)", "-,y"), "2x2: -0 -1 -2 -3");
  EXPECT_EQ(value("all_gather(A, 0, y)", "-,x,-"), "2x8x1: 0 2 4 6 8 10 12 14 1 3 5 7 9 11 13 15");
  EXPECT_EQ(value("all_gather(A, 1, y, tiled)", "x,-"), "8x2: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
  EXPECT_EQ(value("psum_scatter(A, 0, y)", "(x+y)"), "8: 1 5 9 13 17 21 25 29");
  EXPECT_EQ(value("psum_scatter(A, 0, y, tiled=True)", "x,y"), "4x2: 1 5 9 13 17 21 25 29");
  EXPECT_EQ(value("all_to_all(A, 0, 1, y)", "(x+y),-"), "8x2: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
  EXPECT_EQ(value("all_to_all(A, 0, 1, y, tiled)", "x,y"), "4x4: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
  EXPECT_EQ(value("ppermute(A, x, 1)", "x,y"), "8x2: 12 13 14 15 0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(value("ppermute(A, x, [(0, 1), (3, 0)])", "x,y"), "8x2: 12 13 14 15 0 1 2 3 0 0 0 0 0 0 0 0");
  EXPECT_EQ(value("0 * A + axis_index((y, x))", "x,y"), "8x2: 0 4 0 4 1 5 1 5 2 6 2 6 3 7 3 7");
}

TEST(ShardMap, WhatStandsOutsideReadsItsResultsAndGivesItsArguments) {
  const ShardedProgram program =
      program_with(mesh_of_bodies, "D = A @ B\nshard_map {\n  S = psum(reshaped, y)  # of blocks\n  E = S / 2 as x,-\n}\nF = relu(E) @ B", "A=8x8; B=8x8; reshaped=8x8", "A=x,-; B=-,-; reshaped=x,-");
  EXPECT_EQ(program.outputs.size(), 2U);  // D, F
  EXPECT_TRUE(proof_of(lowered_by(ring_or_line(), program)).ok);
  EXPECT_TRUE(read(mesh_of_bodies, "C = A @ B; D = reshard(C, x,-); shard_map { E = psum(D, x) as -,- }", "A=8x8; B=8x8", "A=x,y; B=y,-"));
}

TEST(ShardMap, AnArrayOfBlocksIsWrittenWhereItStays) {
  const ShardedProgram program = program_with(mesh_of_bodies, "shard_map { C = psum(A @ B, y) as x,- }", "A=16x16; B=16x16", "A=x,y; B=y,-");
  const Program written = write_program(program, only_plan(program)).programs.front();
  EXPECT_EQ(written.tasks.size(), 2U);
  EXPECT_EQ(written.buffers.size(), 4U);  // A, B, the product, C
}

/// A reduce-scatter adds up in an operand that is scratch: what else reads it, before, after or at the same time, has another.
TEST(ShardMap, AReduceScatterLeavesItsOperandToAllThatReadIt) {
  const ShardedProgram program = program_with(mesh_of_bodies,
                                              "shard_map {\n P = A @ B\n Q = psum_scatter(P, 0, y, tiled)\n R = psum_scatter(P, 1, y, tiled)\n S = psum(P, y)\n T = psum_scatter(P, 0, y, tiled)\n"
                                              " C = Q - T as (x+y),-\n D = R as x,y\n E = S as x,-\n F = psum(P * 2, y) as x,-\n}",
                                              "A=16x16; B=16x16", "A=x,y; B=y,-");
  Schedule schedule = write_program(program, only_plan(program));
  const auto report = [](const Schedule& of) {
    const auto lowered = lower(of, ring_or_line());
    EXPECT_TRUE(lowered) << to_text(lowered.error());
    CheckOptions options;
    options.threads = 1, options.random_orders = 20;
    auto checked = check(*lowered, options);
    EXPECT_TRUE(checked) << to_text(checked.error());
    return *std::move(checked);
  };
  const CheckReport right = report(schedule);
  EXPECT_TRUE(right.ok && right.race_free) << to_text(right.problems);
  // One of them in the operand itself.
  Program& written = schedule.programs.front();
  const auto buffer = std::ranges::find(written.buffers, "P", &Buffer::name);
  ASSERT_NE(buffer, written.buffers.end());
  for (Task& task : written.tasks)
    if (auto* scatter = std::get_if<Collective>(&task.op); scatter != nullptr && scatter->kind == CollectiveKind::reduce_scatter) {
      scatter->input.buffer = BufferId{static_cast<std::size_t>(buffer - written.buffers.begin())};
      break;
    }
  EXPECT_FALSE(report(schedule).ok);
}

// ---- Errors ----

std::string problem_of(const std::string& statements, const std::string& shapes = "A=8x8; B=8x8", const std::string& shards = "A=x,y; B=y,-") {
  const auto program = read(mesh_of_bodies, statements, shapes, shards);
  return program ? "no problem" : to_text(program.error());
}

TEST(ShardMap, ErrorsSayWhereAndWhatWasExpected) {
  EXPECT_EQ(problem_of("shard_map C = A"), "program:1:11: expected { behind shard_map, found \"C\"");
  EXPECT_EQ(problem_of("shard_map { C = A @ B as x,y"), "program:1:29: expected } behind the statements of shard_map, found the end");
  EXPECT_EQ(problem_of("shard_map { }"), "program:1:13: expected a result of shard_map with its out spec, as in C = psum(A, x) as x,-, found \"}\"");
  EXPECT_EQ(problem_of("shard_map { shard_map { } }"), "program:1:13: shard_map stands inside of shard_map already");
  EXPECT_EQ(problem_of("shard_map {\n  C = A @ B as x,-\n}"),
            "program:2:16: the blocks of C differ along y, which the out spec x,- leaves out: expected it there, or psum, pmean, pmax or all_gather over it");
  EXPECT_EQ(problem_of("shard_map { C = psum(A, y) as x,z }"), "program:1:33: no mesh axis \"z\" in x=4,y=2");
  EXPECT_EQ(problem_of("shard_map { C = psum(A, y); D = relu(A) as x,y }", "A=8x8", "A=x,y"), "program:1:17: nothing reads \"C\", and it has no out spec: expected C = ... as SPEC");
  EXPECT_EQ(problem_of("shard_map { S = psum(A, y); C = relu(S) as x,- }; D = S + 1"),
            "program:1:55: \"S\" is a block of its shard_map: expected an out spec there, as in S = ... as x,-");
  EXPECT_EQ(problem_of("shard_map { C = B @ A as x,y }"), "program:1:19: expected as many columns on the left of @ as rows on its right, found 4x8 @ 2x4");
  EXPECT_EQ(problem_of("C = A as x,y"), "program:1:7: expected an operator or the end of the statement, found \"as\"");
  EXPECT_EQ(problem_of("C = pmax(A, x)"), "program:1:5: pmax works on the blocks of devices: expected it inside of shard_map { }");
  EXPECT_EQ(problem_of("shard_map { C = reshard(A, x,-) as x,- }"), "program:1:17: reshard works on whole arrays: expected it outside of shard_map");
  EXPECT_EQ(problem_of("shard_map { P, L, U = lu(A) }"), "program:1:13: lu works on whole arrays: expected it outside of shard_map");
  EXPECT_EQ(problem_of("shard_map { C = ppermute(A, x, [(0, 4)]) as x,y }"), "program:1:37: expected a position along the axes, 0 to 3, found 4");
  EXPECT_EQ(problem_of("shard_map { C = ppermute(A, x, [(0, 1), (2, 1)]) as x,y }"),
            "program:1:41: expected every device at most once as sender and as receiver, found (2, 1) beside another pair");
  EXPECT_EQ(problem_of("C = ppermute(A, x, [(0, 1)])"), "program:1:20: pairs of devices belong to ppermute inside of shard_map: expected a shift");
  EXPECT_EQ(problem_of("shard_map { C = psum_scatter(A, 0, x) as x,y }"),
            "program:1:17: dimension 0 of the block has extent 2: expected 4, the number of devices along the axes; with `tiled` a multiple of it");
  EXPECT_EQ(problem_of("shard_map { C = psum_scatter(A, 0, x, tiled) as x,y }"), "program:1:17: dimension 0 of the block of A has extent 2: expected a multiple of 4");
  EXPECT_EQ(problem_of("shard_map { C = all_gather(A, 3, x) as -,y,- }"), "program:1:31: expected a dimension of an array of rank 3, found 3");
  EXPECT_EQ(problem_of("shard_map { C = all_gather(A, 0, x, tall) as -,y }"), "program:1:37: expected tiled, found \"tall\"");
  EXPECT_EQ(problem_of("C = all_gather(A, 0, x, tiled=False)"), "program:1:25: all_gather is tiled outside of shard_map, found tiled=False");
  EXPECT_EQ(problem_of("C = A @ B; shard_map { D = psum(C, x) as -,- }"),
            "program:1:33: shard_map takes the blocks of C, of which sums along y are pending: expected C2 = reshard(C, SPEC) before it, or the like");
  EXPECT_EQ(problem_of("C = A.T @ B; shard_map { D = psum(C, x) as -,- }"),
            "program:1:35: shard_map takes the blocks of C, whose sharding is the compiler's choice: expected C2 = reshard(C, SPEC) before it, or the like");
  EXPECT_EQ(problem_of("shard_map { C = relu(A) as x,y }; D = C", "A=6x8", "A=x,y"), "shard:1:3: dimension 0 of A, divided along x=4, must be a multiple of 4, got 6");
  ProgramText padded = program_text("shard_map { C = relu(A) as x,y }", "A=6x8", "A=x,y");
  padded.pad = true;
  EXPECT_EQ(to_text(read_program(padded, mesh_of_bodies).error()), "program:1:1: the arrays of shard_map are not padded: expected extents that divide, and no --pad");
}

TEST(ShardMap, MutatedBodiesAreReadAsSomethingThatCanBeWrittenOrRefusedWithAPlace) {
  const std::vector<std::string> seeds{"shard_map { C = psum(A @ B, y) as x,- }", "shard_map {\n  P = pmax(A, (x, y))  # all\n  Q = all_gather(A, 0, x) as -,-,y\n  R = P / 2 as -,-\n}; S = R + 1; T = B",
                                       "shard_map { D = ppermute(A, x, [(0, 1), (3, 0)]) as x,y; E = mean(D, -1) * axis_index(y) as (x+y); F = B as y,x }",
                                       "F = A.T @ B\nshard_map { G = all_to_all(A, 0, 1, y, tiled) as (x+y),-; H = psum_scatter(A, 1, y, tiled=True) - G as x,y }"};
  Rng rng{12, stream_of("mutated bodies")};
  int refused = 0, with_bodies = 0;
  constexpr int rounds = 20'000;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutated(seeds, rng);
    SCOPED_TRACE(text);
    const auto program = read(mesh_of_bodies, text, "A=16x16; B=16x16", "A=x,y; B=y,-");
    if (!program) {
      ++refused;
      EXPECT_NE(program.error().where.line, 0) << to_text(program.error());
      continue;
    }
    with_bodies += std::any_of(program->operations.begin(), program->operations.end(), [](const Operation& operation) { return operation.varying.has_value(); }) ? 1 : 0;
    if (i % 10 != 0) continue;
    const Schedule written = write_program(*program, only_plan(*program));
    EXPECT_TRUE(check_shapes(written).empty()) << to_text(check_shapes(written));
    EXPECT_TRUE(check_reference(reference_of(*program), mesh_of_bodies).empty()) << check_reference(reference_of(*program), mesh_of_bodies).front();
  }
  EXPECT_GT(refused, rounds / 2);
  EXPECT_GT(with_bodies, rounds / 50);
}

// ---- Bytes ----

TEST(ShardMap, EveryCollectiveReceivesWhatItsClosedFormSays) {
  constexpr int block = 8 * 8 * 4;
  struct Row {
    std::string body;
    std::int64_t received;  // P = 4 along x
  };
  const std::vector<Row> rows{{"psum(A, x) as -,y", 2 * block * 3 / 4},
                              {"pmean(A, x) as -,y", 2 * block * 3 / 4},
                              {"pmax(A, x) as -,y", 2 * block * 3 / 4},
                              {"psum(A, (x, y)) as -,-", 2 * block * 7 / 8},
                              {"all_gather(A, 0, x) as -,-,y", 3 * block},
                              {"all_gather(A, 0, x, tiled) as -,y", 3 * block},
                              {"psum_scatter(A, 1, x, tiled) as y,x", block * 3 / 4},
                              {"all_to_all(A, 0, 1, x, tiled) as x,y", block * 3 / 4},
                              {"ppermute(A, x, 1) as x,y", block},
                              {"ppermute(A, x, 4) as x,y", 0},
                              {"axis_index(x) + A as x,y", 0},
                              {"all_gather(psum_scatter(A, 0, x, tiled), 0, x, tiled) as -,y", 2 * block * 3 / 4}};
  const SmallSystem pod = small_system(ideal_machine(), {4, 2}, true, {{"x", 4}, {"y", 2}});
  for (const Row& row : rows) {
    SCOPED_TRACE(row.body);
    const ShardedProgram program = program_with(pod.mesh, "shard_map { C = " + row.body + " }", "A=32x16", "A=x,y");
    EXPECT_EQ(summary_of(program, only_plan(program)).cost.received.count(), row.received);
    const bool relays = row.body.starts_with("all_to_all");  // on a ring, what others are to have
    const Schedule lowered = lowered_by(relays ? *always("direct") : ring_or_line(), program);
    const auto model = model_of(pod, lowered);
    ASSERT_TRUE(model) << to_text(model.error());
    const auto timeline = (*timing_engine("des"))->run(*model, {});
    ASSERT_TRUE(timeline) << to_text(timeline.error());
    for (const DeviceMetrics& device : measure_devices(*model, *timeline)) EXPECT_EQ(device.received.count(), row.received);
  }
}

TEST(ShardMap, EveryAlgorithmOfAllReducesTakesMaxima) {
  const ShardedProgram program = program_with(mesh_of_bodies, "shard_map { C = pmax(A, x) as -,y; D = pmax(-A, (x, y)) as -,- }", "A=32x16", "A=x,y");
  int compared = 0;
  for (const CollectiveAlgorithmEntry& algorithm : collective_algorithms()) {
    const auto chooser = always(algorithm.name);
    ASSERT_TRUE(chooser);
    const auto lowered = lower(write_program(program, only_plan(program)), *chooser);
    if (!lowered) continue;  // it has no all-reduce along these axes
    const CheckReport report = proof_of(*lowered);
    EXPECT_TRUE(report.ok && report.bit_equal) << algorithm.name << ": " << to_text(report.problems);
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

// ---- JAX ----

/// What JAX 0.10.2 computes of random bodies on 8 emulated devices: validation/shard_map/make.py.
const nlohmann::json& stored_bodies() {
  static const auto stored = nlohmann::json::parse(std::ifstream{PODSIM_SOURCE_DIR "/validation/shard_map/bodies.json"});
  return stored;
}

/// As make.py's numbers().
std::vector<float> numbers_from_counter(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i)
    values.push_back(static_cast<float>(static_cast<double>(((i + seed * 7919 + 1) * 0x9E3779B97F4A7C15) >> 40) / 0x1p23 - 1));
  return values;
}

std::vector<std::pair<std::string, int>> mesh_of(const nlohmann::json& body) {
  std::vector<std::pair<std::string, int>> sizes;
  for (const auto& [axis, size] : body.at("mesh").items()) sizes.emplace_back(axis, size.get<int>());
  return sizes;
}

Expected<ShardedProgram> program_of_body(const nlohmann::json& body, const Mesh& mesh, GivenTensors& inputs) {
  std::string text = "shard_map {\n", shapes, shards;
  for (const auto& statement : body.at("statements")) text += "  " + statement.get<std::string>() + "\n";
  std::uint64_t seed = 0;
  for (const auto& [name, extents] : body.at("shapes").items()) {
    shapes += fmt::format("{}{}={}", shapes.empty() ? "" : "; ", name, fmt::join(extents.get<Extents>(), "x"));
    shards += fmt::format("{}{}={}", shards.empty() ? "" : "; ", name, body.at("shards").at(name).get<std::string>());
    inputs[name] = numbers_from_counter(element_count(extents.get<Extents>()), ++seed);
  }
  return read(mesh, text + "}", shapes, shards);
}

/// Kept elements, and a weighted sum of all.
void expect_output(const nlohmann::json& wanted, const std::vector<float>& values) {
  SCOPED_TRACE(wanted.at("name").dump());
  const std::vector<double> kept = wanted.at("values").get<std::vector<double>>();
  const auto stride = wanted.at("stride").get<std::size_t>();
  double largest = 1, weighted = 0;  // inputs have elements up to 1, whose sums round however near to 0 they end
  for (const float value : values) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  constexpr double relative = 1e-5;
  for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_NEAR(values[i * stride], kept[i], relative * largest) << "element " << i * stride;
  for (std::size_t i = 0; i < values.size(); ++i) weighted += static_cast<double>(values[i]) * (static_cast<double>(i * 2654435761ULL % 1024) / 1024);
  EXPECT_NEAR(weighted, wanted.at("weighted").get<double>(), relative * wanted.at("weights").get<double>() + relative * largest);
}

class ShardMapBodies : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ShardMapBodies, GiveJaxsNumbersAreProvenAndTakeEqualTimesOnAllEngines) {
  constexpr std::size_t per_test = 20;
  Agreement agreement;
  Folds folds;
  const auto& bodies = stored_bodies().at("bodies");
  for (std::size_t b = GetParam() * per_test; b < (GetParam() + 1) * per_test; ++b) {
    SCOPED_TRACE(fmt::format("seed {}: {}; {}; {}; {}", bodies.at(b).at("seed").dump(), bodies[b].at("mesh").dump(), bodies[b].at("shapes").dump(), bodies[b].at("shards").dump(), bodies[b].at("statements").dump()));
    const SmallSystem pod = small_system(overhead_machine(), {4, 2}, true, mesh_of(bodies[b]));
    GivenTensors inputs;
    const auto program = program_of_body(bodies[b], pod.mesh, inputs);
    ASSERT_TRUE(program) << to_text(program.error());
    const Schedule lowered = lowered_by(ring_or_line(), *program);
    const auto outputs = execute(lowered, inputs, {.threads = 1});
    ASSERT_TRUE(outputs) << to_text(outputs.error());
    for (const auto& wanted : bodies[b].at("outputs")) expect_output(wanted, outputs->at(wanted.at("name").get<std::string>()));
    const CheckReport report = proof_of(lowered);
    EXPECT_TRUE(report.ok) << to_text(report.problems);
    const auto model = model_of(pod, lowered);
    ASSERT_TRUE(model) << to_text(model.error());
    EXPECT_TRUE(engines_agree(*model, 1e-6, agreement));
    EXPECT_TRUE(folding_changes_nothing(lowered, World{pod.machine, std::make_shared<Grid>(pod.grid), pod.placement}, folds));
  }
}

INSTANTIATE_TEST_SUITE_P(Twenty, ShardMapBodies, ::testing::Range<std::size_t>(0, test::cases(10, 3)));

TEST(ShardMap, OutSpecsThatJaxRefusesAreRefused) {
  const auto& refused = stored_bodies().at("refused");
  EXPECT_GE(refused.size(), 30U);
  for (const auto& body : refused) {
    SCOPED_TRACE(body.dump().substr(0, 800));
    GivenTensors inputs;
    const auto program = program_of_body(body, mesh_with(mesh_of(body)), inputs);
    ASSERT_FALSE(program);
    EXPECT_NE(program.error().message.find("which the out spec"), std::string::npos) << to_text(program.error());
  }
}

}  // namespace
}  // namespace podsim::testing
