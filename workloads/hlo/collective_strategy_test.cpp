// Strategies of collectives as backend_config states them, in the words of libtpu 0.0.42.1.
#include <gtest/gtest.h>

#include "workloads/hlo/collective_strategy.hpp"
#include "workloads/hlo/read_hlo.hpp"

namespace podsim::collective_strategy_tests {
namespace {

std::optional<HloStrategy> strategy_in(const std::string& backend_config) {
  const auto module = parse_hlo("HloModule m\nENTRY e {\n  %p = f32[8] parameter(0)\n  ROOT %c = f32[8] copy(%p), backend_config=" + backend_config + "\n}\n", "m");
  EXPECT_TRUE(module) << to_text(module.error());
  if (!module) return std::nullopt;
  return module->computations.front().instructions.back().attributes->strategy;
}

std::string algorithm_config(const std::string& debug) {
  return R"({"collective_algorithm_config":{"emitter":"RotatedPincerEmitter","strategy":"StrategyND","debug":")" + debug + R"("}})";
}

TEST(CollectiveStrategy, IsReadFromTheTextOfTheTensorCoresAlgorithm) {
  const auto strategy = strategy_in(algorithm_config(R"(\nStrategyND{colors:2 phases:3 cores:{2 2 4},{2 2 4} nophase0:0 reserved_sflags:0})"));
  ASSERT_TRUE(strategy);
  EXPECT_EQ(*strategy, (HloStrategy{"StrategyND", 2, {2, 2, 4}}));
  EXPECT_EQ(to_text(*strategy), "StrategyND: 2 colours, rings of 2, 2, 4");
  EXPECT_EQ(to_text(HloStrategy{"StrategyRing", 1, {16}}), "StrategyRing: 1 colour, a ring of 16");
}

TEST(CollectiveStrategy, IsReadFromTheRingsOfTheSparseCores) {
  const auto strategy = strategy_in(
      R"({"collective_offload_config":{"all_gather_offload_config":{"use_single_sparse_core":true,"ici_strategy_config":{"color_strategies":[{"phase_rings":[{"ring_type":"ICI_RING_TYPE_UNIDIR_CW","core_count":"4"},{"ring_type":"ICI_RING_TYPE_UNIDIR_CW","core_count":"8"}]},{"phase_rings":[{"ring_type":"ICI_RING_TYPE_UNIDIR_CCW","core_count":"4"},{"core_count":"8"}]}]}},"is_conditional_collective_offload":false}})");
  ASSERT_TRUE(strategy);
  EXPECT_EQ(*strategy, (HloStrategy{"SparseCore", 2, {4, 8}}));
}

TEST(CollectiveStrategy, AGatherThroughSeveralDimensionsNamesOnlyTheirNumber) {
  const auto of = [](const std::string& emitter) { return strategy_in(R"({"collective_algorithm_config":{"emitter":")" + emitter + R"(","debug":"\ngroup_size = 256 \nhas_reordering_map: false"}})"); };
  EXPECT_EQ(of("3DAllGatherOnMajorDim"), (HloStrategy{"3DAllGatherOnMajorDim", 3, {}}));
  EXPECT_EQ(to_text(HloStrategy{"3DAllGatherOnMajorDim", 3, {}}), "3DAllGatherOnMajorDim");
  EXPECT_FALSE(of("1DAllGatherNonMajorDim")) << "the machine says whether that is a ring or a line";
  const Mesh mesh = *Mesh::make({{"fsdp", 32, true, {{8}, {4}}}, {"tp", 8, true}});
  EXPECT_EQ(algorithm_of({"3DAllGatherOnMajorDim", 3, {}}, mesh, {mesh.whole(0), mesh.whole(1)}), "rotations") << "not around a ring of 32, then one of 8";
  EXPECT_EQ(algorithm_of({"2DAllGatherOnMajorDim", 2, {}}, mesh, {mesh.whole(1)}), "");
}

/// The compiler puts the devices in an order of its own where those of the group do not follow each other as neighbours.
TEST(CollectiveStrategy, AGatherOfReorderedDevicesIsOneRing) {
  const auto of = [](const std::string& debug) { return strategy_in(R"({"collective_algorithm_config":{"emitter":"1DAllGatherOnMajorDim","debug":")" + debug + R"("}})"); };
  const HloStrategy ring{"1DAllGatherOnMajorDim", 0, {8}};
  EXPECT_EQ(of(R"(\ngroup_size = 8 \nhas_reordering_map: true \nshard_size = 4194304 bytes )"), ring);
  EXPECT_EQ(to_text(ring), "1DAllGatherOnMajorDim: a ring of 8");
  EXPECT_FALSE(of(R"(\nhas_reordering_map: true)"));
  const Mesh folded = *Mesh::make({{"x", 8, false, {{2}, {4}}}}), laid = *Mesh::make({{"x", 8}});
  EXPECT_EQ(algorithm_of(ring, folded, {folded.whole(0)}), "hamiltonian-ring");
  // Where JAX puts the devices of 2x4 on an axis of 8: the third is two hops from the second.
  EXPECT_EQ(algorithm_of(ring, laid, {laid.whole(0)}, [](const Mesh&, const AxisView&) { return AxisCells{{{2}, {4}}, {0, 4, 1, 5, 7, 3, 6, 2}}; }), "hamiltonian-ring");
}

TEST(CollectiveStrategy, IsNotKnownWhereTheTextHasAnotherForm) {
  for (const char* const debug : {"", "StrategyND", "colors:2 phases:2", "colors:0 phases:1 cores:{4}", "colors:2 phases:2 cores:{4}", "colors:2 phases:1 cores:{x}", "colors:99999999999 phases:1 cores:{4}",
                                  "colors:2 phases:0 cores:{}", "colors:-2 phases:1 cores:{4}"})
    EXPECT_FALSE(strategy_in(algorithm_config(debug))) << debug;
  EXPECT_FALSE(strategy_in(R"({"collective_algorithm_config":{"emitter":"AllToAllEmitter","debug":"max_rdma_size_bytes: 32768"}})"));
  for (const char* const rings : {"[]", "{}", "[{}]", R"([{"phase_rings":[]}])", R"([{"phase_rings":[{"core_count":"0"}]}])", R"([{"phase_rings":[{"core_count":"4"},{}]}])", R"([{"phase_rings":[7]}])"})
    EXPECT_FALSE(strategy_in(R"({"collective_offload_config":{"all_reduce_offload_config":{"ici_strategy_config":{"color_strategies":)" + std::string{rings} + "}}}}")) << rings;
}

TEST(CollectiveStrategy, IsNotKnownWhereTheTextContradictsItself) {
  const auto known = [](const std::string& debug) { return strategy_in(algorithm_config(debug)).has_value(); };
  EXPECT_TRUE(known(R"(\nStrategyND{colors:2 phases:3 cores:{2 2 4},{2 4 2} })"));
  EXPECT_FALSE(known(R"(\nStrategyOther{colors:2 phases:3 cores:{2 2 4},{2 4 2} })"));
  EXPECT_FALSE(known(R"(\nStrategyND{colors:9 phases:3 cores:{2 2 4},{2 4 2} })"));
  EXPECT_FALSE(known(R"(\nStrategyND{colors:2 phases:3 cores:{2 2 4},{2 4} })"));
}

TEST(CollectiveStrategy, ChoosesByColoursPhasesAndDimensions) {
  const Mesh mesh = *Mesh::make({{"x", 4, true}, {"y", 8, true, {{2}, {4}}}, {"z", 3}, {"w", 16, true}});
  const AxisView x = mesh.whole(0), y = mesh.whole(1), z = mesh.whole(2), w = mesh.whole(3);
  const HloStrategy at_once{"StrategyND", 2, {4, 8}}, in_turn{"StrategyND", 1, {4, 8}}, ring{"UniDirection1DRingStrategy", 2, {8}};
  EXPECT_EQ(algorithm_of(at_once, mesh, {x, y}), "rotations");
  EXPECT_EQ(algorithm_of(in_turn, mesh, {x, y}), "");
  EXPECT_EQ(algorithm_of(ring, mesh, {y}), "hamiltonian-ring") << "8 devices as 2x4";
  EXPECT_EQ(algorithm_of(ring, mesh, {x}), "") << "one dimension: the machine says whether it is a ring or a line";
  EXPECT_EQ(algorithm_of(at_once, mesh, {x}), "");
  EXPECT_EQ(algorithm_of(ring, mesh, {z, mesh.factor(3, {16, 1}, 1)}), "");
  EXPECT_EQ(algorithm_of(ring, mesh, {y, w}), "") << "128 devices are more than the algorithm takes";
  EXPECT_EQ(algorithm_of(ring, mesh, {x, w}), "hamiltonian-ring");
  // An axis that is not folded, over dimensions that are known.
  const std::vector<int> snake{0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4}, rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto laid = [&](const std::vector<int>& order) { return CellRule{[&, order](const Mesh&, const AxisView& axis) { return axis == w ? std::optional{AxisCells{{{4, false}, {4, false}}, order}} : std::nullopt; }}; };
  const CellRule cells = laid(snake);
  EXPECT_EQ(algorithm_of(at_once, mesh, {w}, cells), "rotations");
  EXPECT_EQ(algorithm_of(in_turn, mesh, {w}, cells), "");
  EXPECT_EQ(algorithm_of(ring, mesh, {w}, cells), "") << "its devices are a ring as they are";
  EXPECT_EQ(algorithm_of(ring, mesh, {w}, laid(rows)), "hamiltonian-ring") << "in the order of their numbers four of them would go three hops and one six";
  EXPECT_EQ(algorithm_of(at_once, mesh, {x}, cells), "");
}

}  // namespace
}  // namespace podsim::collective_strategy_tests
