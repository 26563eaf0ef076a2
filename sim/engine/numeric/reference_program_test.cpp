// Graphs of operations as claims: what each node means, and that wrong schedules are found.
#include "sim/schedule/reference_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"

namespace podsim {
namespace {

using namespace hand_built;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Values = std::vector<double>;
using Kind = ReferenceKind;

/// Builds a graph whose inputs have given values.
struct Graph {
  Mesh mesh{};
  ReferenceProgram program{};
  std::map<std::string, Values> values{};

  int input(const std::string& tensor, Extents extents, Values of = {}) {
    values[tensor] = std::move(of);
    ReferenceNode node;
    node.tensor = tensor, node.extents = std::move(extents);
    return add(std::move(node));
  }
  int add(ReferenceNode node) {
    program.nodes.push_back(std::move(node));
    return static_cast<int>(program.nodes.size()) - 1;
  }
  int add(Kind kind, std::vector<int> operands, Extents extents, double number = 1, int dim = 0) {
    ReferenceNode node;
    node.kind = kind, node.operands = std::move(operands), node.extents = std::move(extents), node.number = number, node.dim = dim;
    return add(std::move(node));
  }
  int add(BlockCollective collective, int operand, Extents extents) {
    ReferenceNode node;
    node.kind = Kind::block_collective, node.operands = {operand}, node.extents = std::move(extents), node.collective = std::move(collective);
    return add(std::move(node));
  }
  Expected<Values> value(int node) {
    program.outputs = {{"Y", node}};
    EXPECT_THAT(check_reference(program, mesh), IsEmpty());
    ThreadPool pool{2};
    auto found = evaluate(
        program, mesh, [&](const ReferenceNode& of) { return values.at(of.tensor); }, pool);
    if (!found) return found.error();
    return found->front();
  }
  std::vector<std::string> problems(int node) {
    program.outputs = {{"Y", node}};
    return check_reference(program, mesh);
  }
};

Values counting(std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i);
  return values;
}

TEST(ReferenceProgram, ElementwiseOperationsBroadcastAsNumpyDoes) {
  Graph g;
  const int a = g.input("A", {2, 3}, {1, 2, 3, 4, 5, 6}), row = g.input("r", {3}, {10, 20, 30}), column = g.input("c", {2, 1}, {1, 2});
  EXPECT_EQ(*g.value(g.add(Kind::add, {a, row}, {2, 3})), (Values{11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(*g.value(g.add(Kind::subtract, {row, a}, {2, 3})), (Values{9, 18, 27, 6, 15, 24}));
  EXPECT_EQ(*g.value(g.add(Kind::multiply, {a, column}, {2, 3})), (Values{1, 2, 3, 8, 10, 12}));
  EXPECT_EQ(*g.value(g.add(Kind::divide, {column, row}, {2, 3})), (Values{1.0 / 10, 1.0 / 20, 1.0 / 30, 2.0 / 10, 2.0 / 20, 2.0 / 30}));
  EXPECT_EQ(*g.value(g.add(Kind::scale, {a}, {2, 3}, -2)), (Values{-2, -4, -6, -8, -10, -12}));
  EXPECT_EQ(*g.value(g.add(Kind::add_number, {row}, {3}, 0.5)), (Values{10.5, 20.5, 30.5}));
  EXPECT_EQ(*g.value(g.add(Kind::reciprocal, {column}, {2, 1}, 3)), (Values{3, 1.5}));
  EXPECT_EQ(*g.value(g.add(Kind::relu, {g.add(Kind::add_number, {a}, {2, 3}, -3)}, {2, 3})), (Values{0, 0, 0, 1, 2, 3}));
  EXPECT_NEAR((*g.value(g.add(Kind::gelu, {column}, {2, 1})))[0], 0.8411919906, 1e-9);
}

TEST(ReferenceProgram, ProductsSumsAndTransposes) {
  Graph g;
  const int a = g.input("A", {2, 2, 3}, counting(12)), b = g.input("B", {2, 3, 2}, counting(12));
  const int product = g.add(Kind::product, {a, b}, {2, 2, 2});
  EXPECT_EQ(*g.value(product), (Values{10, 13, 28, 40, 172, 193, 244, 274})) << "numpy's matmul";
  const int turned = g.add(Kind::product, {a, a}, {2, 3, 3});
  g.program.nodes.back().transpose_left = true;
  EXPECT_EQ((*g.value(turned))[0], 9) << "0*0 + 3*3";
  EXPECT_EQ((*g.value(turned))[5], 1 * 2 + 4 * 5);
  EXPECT_EQ(*g.value(g.add(Kind::sum, {a}, {2, 3}, 1, 1)), (Values{3, 5, 7, 15, 17, 19}));
  EXPECT_EQ(*g.value(g.add(Kind::sum, {a}, {2, 2}, 1, 2)), (Values{3, 12, 21, 30}));
  const int matrix = g.input("M", {2, 3}, counting(6));
  EXPECT_EQ(*g.value(g.add(Kind::transpose, {matrix}, {3, 2})), (Values{0, 3, 1, 4, 2, 5}));
  const int moved = g.add(Kind::transpose, {a}, {2, 3, 2});
  g.program.nodes.back().permutation = {1, 2, 0};
  EXPECT_EQ(*g.value(moved), (Values{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
}

// As shard_map does them; P = 4 along x.
TEST(ReferenceProgram, CollectivesOnBlocks) {
  Graph g{mesh_of({{"x", 4, true}})};
  const int a = g.input("A", {8}, counting(8));
  const Sharding split{{{0}}}, none{};
  using enum CollectiveKind;
  EXPECT_EQ(*g.value(g.add({all_reduce, {0}, 0, 0, 0, split, none}, a, {2})), (Values{12, 16}));
  EXPECT_EQ(*g.value(g.add({all_reduce, {0}, 0, 0, 0, split, split}, a, {8})), (Values{12, 16, 12, 16, 12, 16, 12, 16}));
  EXPECT_EQ(*g.value(g.add({all_gather, {0}, 0, 0, 0, split, none}, a, {8})), counting(8));
  EXPECT_EQ(*g.value(g.add({reduce_scatter, {0}, 0, 0, 0, none, split}, a, {8})), (Values{0, 4, 8, 12, 16, 20, 24, 28}));
  EXPECT_EQ(*g.value(g.add({permute, {0}, 0, 0, 1, split, split}, a, {8})), (Values{6, 7, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(*g.value(g.add({permute, {0}, 0, 0, -1, split, split}, a, {8})), (Values{2, 3, 4, 5, 6, 7, 0, 1}));
  EXPECT_EQ(*g.value(g.add({all_reduce, {0}, 0, 0, 0, split, none, Reduction::maximum}, g.add(Kind::scale, {a}, {8}, -1), {2})), (Values{0, -1}));
  EXPECT_EQ(*g.value(g.add({reduce_scatter, {0}, 0, 0, 0, none, split, Reduction::maximum}, a, {8})), counting(8));
  EXPECT_EQ(*g.value(g.add({permute, {0}, 0, 0, 0, split, split, Reduction::sum, {{3, 0}, {0, 1}}}, a, {8})), (Values{6, 7, 0, 1, 0, 0, 0, 0}));
  EXPECT_THAT(g.problems(g.add({permute, {0}, 0, 0, 0, split, split, Reduction::sum, {{0, 4}}}, a, {8})), ElementsAre(HasSubstr("the pair of 0 and 4 is not of two of 4 positions")));
  g.program.nodes.pop_back();
  const int m = g.input("M", {4, 4}, counting(16));
  EXPECT_EQ(*g.value(g.add({all_to_all, {0}, 0, 1, 0, {{{0}}}, {{{}, {0}}}}, m, {4, 4})), counting(16)) << "rows become columns: the same array";
}

TEST(ReferenceProgram, CollectivesAlongTwoAxesCountTheFirstAsMostSignificant) {
  Graph g{mesh_of({{"x", 2, true}, {"y", 3, true}})};
  const int a = g.input("A", {2, 3}, counting(6));  // device (x, y) has element 3x + y
  const Sharding split{{{0}, {1}}};
  EXPECT_EQ(*g.value(g.add({CollectiveKind::all_gather, {0, 1}, 1, 0, 0, split, {}}, a, {1, 6})), counting(6));
  EXPECT_EQ(*g.value(g.add({CollectiveKind::all_gather, {1, 0}, 1, 0, 0, split, {}}, a, {1, 6})), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(*g.value(g.add({CollectiveKind::all_reduce, {1}, 0, 0, 0, split, {{{0}}}}, a, {2, 1})), (Values{3, 12}));
}

TEST(ReferenceProgram, PositionsAlongADimension) {
  Graph g;
  EXPECT_EQ(*g.value(g.add(Kind::iota, {}, {2, 3}, 1, 1)), (Values{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(*g.value(g.add(Kind::iota, {}, {2, 3}, 1, 0)), (Values{0, 0, 0, 1, 1, 1}));
  EXPECT_THAT(g.problems(g.add(Kind::iota, {}, {2, 3}, 1, 2)), ElementsAre(HasSubstr("there is no dimension 2")));
}

TEST(ReferenceProgram, ShapesArePutApartAndTogether) {
  Graph g;
  const int a = g.input("A", {2, 6}, counting(12));
  const int apart = g.add(Kind::reshape, {a}, {2, 3, 2});
  EXPECT_EQ(*g.value(apart), counting(12));
  const int first = g.add(Kind::slice, {apart}, {2, 1, 2}, 1, 1);
  EXPECT_EQ(*g.value(first), (Values{0, 1, 6, 7}));
  const int rest = g.add(Kind::slice, {apart}, {2, 2, 2}, 1, 1);
  g.program.nodes.back().offset = 1;
  EXPECT_EQ(*g.value(rest), (Values{2, 3, 4, 5, 8, 9, 10, 11}));
  EXPECT_EQ(*g.value(g.add(Kind::concatenate, {rest, first}, {2, 3, 2}, 1, 1)), (Values{2, 3, 4, 5, 0, 1, 8, 9, 10, 11, 6, 7}));
  EXPECT_THAT(g.problems(g.add(Kind::slice, {apart}, {2, 4, 2}, 1, 1)),
              ElementsAre("node 5 (slice): [2,4,2] from element 0 of dimension 1 on is no part: node 1 (reshape) is [2,3,2]"));
}

TEST(ReferenceProgram, ASharingThatIsNoneIsTold) {
  Graph g{mesh_of({{"x", 2, true}})};
  const int a = g.input("A", {4}, counting(4));
  const auto found = g.value(g.add({CollectiveKind::permute, {0}, 0, 0, 1, {{{0}}}, {}}, a, {2}));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, R"(node 1 (block-collective): its sharding gives x=0 and x=1 the same block, but their results differ)");
}

TEST(ReferenceProgram, BadGraphsAreToldByNodeAndTensor) {
  Graph g{mesh_of({{"x", 2, true}})};
  const int a = g.input("A", {4, 6}), b = g.input("B", {4, 6});
  const auto said = [&](int node) {
    const std::vector<std::string> problems = g.problems(node);
    g.program.nodes.pop_back();
    return problems;
  };
  EXPECT_THAT(said(g.add(Kind::product, {a, b}, {4, 6})),
              ElementsAre(R"(node 2 (product): these do not multiply: node 0 (input "A") is [4,6], node 1 (input "B") is [4,6])"));
  EXPECT_THAT(said(g.add(Kind::add, {a, b}, {4, 5})), ElementsAre("node 2 (add): the result is [4,5]; expected [4,6]"));
  EXPECT_THAT(said(g.add(Kind::add, {a}, {4, 6})), ElementsAre("node 2 (add): 1 operands; expected 2"));
  EXPECT_THAT(said(g.add(Kind::relu, {2}, {4, 6})), ElementsAre("node 2 (relu): the operand 2 is not an earlier node"));
  EXPECT_THAT(said(g.add(Kind::sum, {a}, {4}, 1, 2)), ElementsAre(R"(node 2 (sum): there is no dimension 2: node 0 (input "A") is [4,6])"));
  EXPECT_THAT(said(g.add(Kind::scale, {a}, {4, 6}, NAN)), ElementsAre("node 2 (scale): the number nan is not finite"));
  EXPECT_THAT(said(g.add(Kind::relu, {a}, {std::int64_t{1} << 40, 1 << 20})), ElementsAre(HasSubstr("at most 2^58 elements")));
  EXPECT_THAT(said(g.add({CollectiveKind::all_reduce, {1}, 0, 0, 0, {}, {}}, a, {4, 6})),
              ElementsAre("node 2 (block-collective): the axis 1 is not one of the mesh, or is named twice"));
  EXPECT_THAT(said(g.add({CollectiveKind::all_gather, {0}, 0, 0, 0, {}, {}}, a, {4, 6})),
              ElementsAre("node 2 (block-collective): the all-gather gives blocks [8,6]; the sharding of the result [4,6] has blocks [4,6]"));
  EXPECT_THAT(said(g.add({CollectiveKind::all_reduce, {0}, 0, 0, 0, {{}, {0}}, {}}, a, {4, 6})),
              ElementsAre("node 2 (block-collective): the operand has a partial sum pending"));
  EXPECT_THAT(said(g.add({CollectiveKind::all_reduce, {0}, 0, 0, 0, {{{0}, {0}}}, {}}, a, {4, 6})),
              ElementsAre("node 2 (block-collective): the sharding of the operand: axis 0 is not one of the mesh, or is named twice"));
}

// ---- How large integers may be --------------------------------------------------------------------------------------------------------

TEST(ExactRange, IsTheLargestThatKeepsEveryNodeExact) {
  Graph g{mesh_of({{"x", 4, true}})};
  const int a = g.input("A", {8, 64}), b = g.input("B", {64, 8});
  const int c = g.add(Kind::product, {a, b}, {8, 8});
  EXPECT_EQ(exact_range(g.program, g.mesh).range, 512) << "64 r^2 <= 2^24";
  const int d = g.add(Kind::product, {c, c}, {8, 8});
  EXPECT_EQ(exact_range(g.program, g.mesh).range, 4) << "8 (64 r^2)^2 <= 2^24";
  g.add({CollectiveKind::all_reduce, {0}, 0, 0, 0, {{{0}}}, {}}, c, {2, 8});
  EXPECT_EQ(exact_range(g.program, g.mesh).range, 4);
  const int far = g.add(Kind::product, {d, d}, {8, 8});
  const ExactRange range = exact_range(g.program, g.mesh);
  EXPECT_EQ(range.range, 4) << "of what can be exact";
  EXPECT_FALSE(range.exact[static_cast<std::size_t>(far)]);
  EXPECT_TRUE(range.exact[static_cast<std::size_t>(d)]);
  EXPECT_EQ(range.why_not, "node 5 (product) may reach 8.59e+09, more than 2^24");
}

TEST(ExactRange, EndsWhereSomethingRounds) {
  Graph g;
  const int a = g.input("A", {8});
  const int half = g.add(Kind::scale, {a}, {8}, 0.5), twice = g.add(Kind::scale, {a}, {8}, 2), after = g.add(Kind::relu, {half}, {8});
  const ExactRange range = exact_range(g.program, g.mesh);
  EXPECT_THAT(range.exact, ElementsAre(true, false, true, false));
  EXPECT_EQ(range.why_not, "node 1 (scale) rounds");
  EXPECT_EQ(range.range, 1 << 23);
  EXPECT_EQ(twice + 1, after);
}

// ---- Schedules ------------------------------------------------------------------------------------------------------------------------

/// Y = X / psum(X) on P devices, each with n elements: every device adds up its own, a one-way ring passes the sums round, each divides.
Schedule normalise(int P, std::int64_t n) {
  Schedule schedule{"normalise", mesh_of({{"x", P, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program;
  program.devices = every_device(schedule.mesh);
  program.buffers = {input("X", {n}, {{x}}), output("Y", {n}, {{x}}), scratch("passing", {2, n}), scratch("sum", {n})};
  const auto slot = [&](std::int64_t s) { return Region{BufferId{2}, {span(s, 1), all(n)}}; };
  int last = add(program, "copy", copy(whole(program, 0), whole(program, 3)));
  int held = add(program, "pass on", copy(whole(program, 0), slot(0)));
  for (int step = 1; step < P; ++step) {
    const int shift = add(program, "shift", Shift{x, 1, slot((step - 1) % 2), slot(step % 2), Combine::replace, {}}, {held, last});
    held = shift;
    last = add(program, "add", Local{LocalKind::add, {whole(program, 3), slot(step % 2)}, {whole(program, 3)}}, {shift, last});
  }
  add(program, "divide", Local{LocalKind::divide, {whole(program, 0), whole(program, 3)}, {whole(program, 1)}}, {last});
  schedule.programs = {program};
  ReferenceProgram reference;
  ReferenceNode in, sum, out;
  in.tensor = "X", in.extents = {P * n};
  sum.kind = Kind::block_collective, sum.operands = {0}, sum.extents = {n}, sum.collective = {CollectiveKind::all_reduce, {0}, 0, 0, 0, {{{0}}}, {}};
  sum.name = "psum(X)";
  ReferenceNode spread = sum;
  spread.extents = {P * n}, spread.collective.to = {{{0}}};
  out.kind = Kind::divide, out.operands = {0, 1}, out.extents = {P * n};
  reference.nodes = {in, spread, out};
  reference.outputs = {{"Y", 2}};
  schedule.computes = reference;
  return schedule;
}

TEST(CheckReferenceProgram, ProvesWithinAToleranceWhatRounds) {
  for (const int P : {2, 3, 8}) {
    const auto report = check(normalise(P, 5), {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << (report->problems.empty() ? "" : to_text(report->problems.front()));
    EXPECT_EQ(report->compared, "Y = X / psum(X)");
    EXPECT_EQ(report->inexact, R"(node 2 (divide) rounds)");
    EXPECT_LE(report->proof_rel_error, report->proof_tolerance);
    EXPECT_LE(report->proof_tolerance, 0x1p-7) << "a narrow one";
  }
}

TEST(CheckReferenceProgram, FindsALostOrAWrongContribution) {
  const Schedule right = normalise(4, 3);
  const std::size_t tasks = right.programs[0].tasks.size();
  int mutants = 0;
  for (std::size_t t = 0; t + 1 < tasks; ++t) {
    if (!std::holds_alternative<Local>(right.programs[0].tasks[t].op)) continue;
    Schedule wrong = right;
    auto& local = std::get<Local>(wrong.programs[0].tasks[t].op);
    if (local.kind != LocalKind::add) continue;
    local = Local{LocalKind::add, {local.reads[0], whole(wrong.programs[0], 0)}, local.writes};  // its own again
    const auto report = check(wrong, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_FALSE(report->ok) << t;
    ++mutants;
  }
  EXPECT_EQ(mutants, 3);
  Schedule wrong = right;
  std::get<Local>(wrong.programs[0].tasks.back().op).kind = LocalKind::multiply;
  EXPECT_FALSE(check(wrong, {})->ok);
}

// Whatever a file claims: an error or a verdict, within the memory that is allowed.
TEST(CheckReferenceProgram, AnyGraphIsJudgedOrRefused) {
  int judged = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng{seed};
    Schedule schedule = normalise(2, 3);
    auto& program = std::get<ReferenceProgram>(schedule.computes);
    for (std::uint64_t changes = 1 + rng.below(4); changes > 0; --changes) {
      ReferenceNode& node = program.nodes[rng.below(program.nodes.size())];
      const auto number = [&] { return static_cast<std::int64_t>(rng.below(8)) - 1; };
      switch (rng.below(10)) {
        case 0: node.kind = static_cast<Kind>(rng.below(reference_kind_count)); break;
        case 1: node.operands.assign(rng.below(4), static_cast<int>(rng.below(3))); break;
        case 2: node.extents.assign(rng.below(10), number()); break;
        case 3: node.extents = {std::int64_t{1} << rng.below(62)}; break;
        case 4: node.collective.kind = static_cast<CollectiveKind>(rng.below(collective_kind_count)); break;
        case 5: node.collective.axes.assign(rng.below(3), static_cast<int>(number())); break;
        case 6: node.dim = node.collective.dim = static_cast<int>(number()), node.collective.split_dim = static_cast<int>(number()); break;
        case 7: (rng.below(2) == 0 ? node.collective.from : node.collective.to).dims.assign(rng.below(3), {static_cast<int>(number())}); break;
        case 8: node.permutation.assign(rng.below(3), static_cast<int>(number())), node.offset = number(), node.collective.shift = number(); break;
        default: program.outputs = {{"Y", static_cast<int>(number())}}; break;
      }
    }
    const auto report = check(schedule, {.random_orders = 0, .threads = 1, .max_bytes = Bytes{1 << 20}});
    report && report->matched ? ++judged : ++refused;
  }
  EXPECT_GE(judged, 100);
  EXPECT_GE(refused, 1000);
}

TEST(CheckReferenceProgram, NamesTensorsThatBuffersDoNotHold) {
  Schedule schedule = normalise(2, 2);
  std::get<ReferenceProgram>(schedule.computes).nodes[0].tensor = "Z";
  EXPECT_EQ(check(schedule, {}).error().message, R"(no input buffer holds "Z", the input of the reference)");
  schedule = normalise(2, 2);
  std::get<ReferenceProgram>(schedule.computes).outputs[0].first = "Z";
  EXPECT_EQ(check(schedule, {}).error().message, R"(no output buffer holds "Z", the result of the reference)");
  schedule = normalise(2, 2);
  schedule.programs[0].buffers[3].role = Role::output;
  schedule.programs[0].buffers[3].tensor = "sums", schedule.programs[0].buffers[3].sharding = {{}};
  EXPECT_THAT(to_text(check(schedule, {})->problems.front()), HasSubstr(R"(does not say what its output "sums" is to hold)"));
}

TEST(CheckReferenceProgram, ComputesOnArangeAndOnes) {
  const auto report = check(normalise(8, 1), {.data = InputData::arange});
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok && report->bit_equal);
  ASSERT_EQ(report->outputs.size(), 1U);
  EXPECT_EQ(report->outputs[0].name, "Y");
  EXPECT_THAT(report->outputs[0].extents, ElementsAre(8));
  float sum = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(report->outputs[0].values[i], static_cast<float>(i) / 28.0F) << "as float32 has it";
    sum += report->outputs[0].values[i];
  }
  EXPECT_EQ(sum, 1);
  const auto ones = check(normalise(4, 3), {.data = InputData::ones});
  ASSERT_TRUE(ones && ones->ok);
  EXPECT_THAT(ones->outputs[0].values, ::testing::Each(0.25F));
  EXPECT_THAT(check(normalise(8, 9), {.data = InputData::ones})->outputs, IsEmpty()) << "72 elements";
  EXPECT_THAT(check(normalise(4, 3), {})->outputs, IsEmpty());
}

TEST(CheckReferenceProgram, ProductsAreExactOnArangeWhileTheyAreSmall) {
  const auto small = check(sliced_product(2, {4, 4, 8}, 2, 2), {.data = InputData::arange});
  ASSERT_TRUE(small) << to_text(small.error());
  EXPECT_TRUE(small->ok && small->bit_equal && small->inexact.empty() && small->tolerance == 0);
  const auto large = check(sliced_product(3, {6, 12, 72}, 3, 4), {.data = InputData::arange});
  ASSERT_TRUE(large && large->ok);
  EXPECT_EQ(large->inexact, "node 2 (product) may reach 2.68e+07, more than 2^24");
  EXPECT_TRUE(check(ring_reduce_scatter(4, 3), {.data = InputData::ones})->ok);
}

// A sum over 10 numbers on 4 devices, 3 each with two of padding.
Schedule padded_sum(std::int64_t claimed) {
  Schedule schedule{"padded", mesh_of({{"x", 4, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program;
  program.devices = every_device(schedule.mesh);
  program.buffers = {input("X", {3}, {{x}}), output("Y", {3}, {{x}})};
  for (Buffer& buffer : program.buffers) buffer.unpadded = {10};
  add(program, "add", Local{LocalKind::add_number, {whole(program, 0)}, {whole(program, 1)}, 7});
  schedule.programs = {program};
  ReferenceNode in, out;
  in.tensor = "X", in.extents = {claimed};
  out.kind = Kind::add_number, out.operands = {0}, out.extents = {claimed}, out.number = 7;
  schedule.computes = ReferenceProgram{{in, out}, {{"Y", 1}}, ""};
  return schedule;
}

TEST(CheckReferenceProgram, PaddingIsZeroAndClaimedOrNot) {
  for (const std::int64_t claimed : {10, 12}) {
    const auto report = check(padded_sum(claimed), {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok && report->bit_equal && report->inexact.empty()) << claimed;
  }
  const auto tensors = make_numeric_engine({})->run(padded_sum(10));
  ASSERT_TRUE(tensors);
  EXPECT_THAT(tensors->values[3][1], ElementsAre(::testing::Ne(7), 7, 7)) << "zeros, and the number";
  EXPECT_THAT(check(padded_sum(11), {}).error().message, HasSubstr("shards a tensor of 12 elements; the input of the reference has 11"));
  Schedule wrong = padded_sum(10);
  wrong.programs[0].buffers[0].unpadded = {13};
  EXPECT_THAT(to_text(check(wrong, {})->problems.front()), HasSubstr("the extents without padding, 13, are not within those of its tensor"));
}

}  // namespace
}  // namespace podsim
