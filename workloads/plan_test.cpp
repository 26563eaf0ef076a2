// What a plan has to do, in order; what it may not say; what it holds.
#include "workloads/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/test_blocks.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::plan_with;
using enum ActivationLayout;

const ProductChoice os{"collective", Dataflow::os, false, 0}, turned{"collective", Dataflow::os, true, 0};
const ProductChoice w_first{"collective", Dataflow::ls, true, 0}, w_second{"collective", Dataflow::rs, false, 0};

Workload small(Only only = Only::everything) { return *workload_of(testing::small_block(), 8, only); }
const Mesh& mesh() {
  static const Mesh of = testing::mesh_of(2, 4);
  return of;
}

std::vector<std::string> names_of(const Workload& workload, const Plan& plan, Pass pass) {
  const auto parts = parts_of(workload, plan, mesh(), pass);
  EXPECT_TRUE(parts) << to_text(parts.error());
  std::vector<std::string> names;
  if (parts)
    for (const WorkloadPart& part : *parts) names.push_back((part.pass == Pass::backward ? "d " : "") + part.name);
  return names;
}
std::string error_of(const Workload& workload, const Plan& plan, const Mesh& on = mesh(), Pass pass = Pass::both) {
  const auto parts = parts_of(workload, plan, on, pass);
  return parts ? "" : to_text(parts.error());
}

TEST(Plan, PartsAreTheStagesThenTheirGradientsBackwards) {
  const Workload workload = small();
  const Plan plan = plan_with(workload, {os}, tokens_by_row);
  const std::vector<std::string> forward{"norm1", "in_proj", "attention", "out_proj", "residual1", "norm2", "ff1", "activation", "ff2", "residual2"};
  // What a residual joined is added up where it parted.
  const std::vector<std::string> backward{"d ff2",      "d activation", "d ff1",     "d norm2", "d residual2",
                                          "d out_proj", "d attention",  "d in_proj", "d norm1", "d residual1"};
  EXPECT_THAT(names_of(workload, plan, Pass::forward), ElementsAreArray(forward));
  EXPECT_THAT(names_of(workload, plan, Pass::backward), ElementsAreArray(backward));
  std::vector<std::string> both = forward;
  both.insert(both.end(), backward.begin(), backward.end());
  EXPECT_THAT(names_of(workload, plan, Pass::both), ElementsAreArray(both));
}

TEST(Plan, ReLayoutsStandBeforeTheStageAndBehindItsGradient) {
  const Workload workload = small(Only::gemm);
  const Plan plan = plan_with(workload, {os, turned, w_second, os}, tokens_by_row);
  EXPECT_THAT(names_of(workload, plan, Pass::both), ElementsAre("in_proj", "out_proj re-layout", "out_proj", "ff1", "ff2",  //
                                                                "d ff2", "d ff1", "d out_proj", "d out_proj re-layout", "d in_proj"));
  const auto parts = parts_of(workload, plan, mesh(), Pass::both);
  EXPECT_EQ((*parts)[1].layout, tokens_by_row) << "what is there";
  EXPECT_EQ((*parts)[8].layout, tokens_by_row) << "the inverse of the same";
  EXPECT_EQ((*parts)[1].inputs, 32);
  // Weight-stationary pairs need none.
  EXPECT_EQ(names_of(workload, plan_with(workload, {w_first, w_second}, tokens_by_row), Pass::forward).size(), 4U);
}

TEST(Plan, ProductsWithoutABlockHaveNothingToDoWithEachOther) {
  const auto workload = workload_of({{8, 16, 32, DType::f32}, {64, 8, 8, DType::f32}});
  EXPECT_THAT(names_of(*workload, plan_with(*workload, {os, turned}, tokens_by_row), Pass::both),
              ElementsAre("gemm1", "gemm2", "d gemm2", "d gemm1"));
}

TEST(Plan, BranchesEndAtResiduals) {
  const auto text = [](const Workload& workload) {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (const Branch& branch : branches_of(workload)) all.emplace_back(branch.first, branch.last);
    return all;
  };
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(text(small()), (Pairs{{0, 4}, {5, 9}}));
  EXPECT_EQ(text(small(Only::gemm)), Pairs{});
  EXPECT_EQ(text(small(Only::other)), (Pairs{{0, 2}, {3, 5}}));
}

TEST(Plan, SaysWhatIsNotTheWorkloads) {
  const Workload workload = small();
  const Plan good = plan_with(workload, {os}, tokens_by_row);
  EXPECT_EQ(error_of(workload, good), "");
  const auto with = [&](auto change) {
    Plan plan = good;
    change(plan);
    return error_of(workload, plan);
  };
  EXPECT_EQ(with([](Plan& p) { p.stages.pop_back(); }), "the plan has 9 stages, the workload small has 10");
  EXPECT_EQ(with([](Plan& p) { p.stages[3].name = "outproj"; }), "stage 3 of the plan is outproj, of the workload out_proj");
  EXPECT_EQ(with([](Plan& p) { p.stages[1].product.reset(); }), "the plan says how to compute products, in_proj is one");
  EXPECT_EQ(with([](Plan& p) { p.stages[0].product = os; }), "the plan says how to compute products, norm1 is not one");
  EXPECT_EQ(with([](Plan& p) { p.stages[1].layout = features_by_row; }), "in_proj: os reads tokens-by-row, the plan has features-by-row");
  EXPECT_EQ(with([](Plan& p) { p.stages[1].product = turned; }), "in_proj: transposed os reads features-by-row, the plan has tokens-by-row");
  EXPECT_EQ(with([](Plan& p) { p.stages[4].layout = features_by_row; }), "residual1 joins what is features-by-row with what is tokens-by-row");
  EXPECT_EQ(with([](Plan& p) { p.stages[9].layout = features_by_row; }), "the block ends features-by-row, the next one begins tokens-by-row");
  EXPECT_EQ(with([](Plan& p) { p.stages[5].layout = p.stages[9].layout = features_by_row; }),
            "the block ends features-by-row, the next one begins tokens-by-row");
  EXPECT_EQ(error_of(workload, good, *Mesh::make({{"ring", 8, true}})),
            "a workload needs a mesh of two axes, row and col, in this order; found ring=8");
  EXPECT_EQ(error_of(workload, good, *Mesh::make({{"col", 2, true}, {"row", 4, true}})),
            "a workload needs a mesh of two axes, row and col, in this order; found col=2,row=4");
}

TEST(Plan, SaysWhereItsFileIsWrong) {
  const Workload workload = small();
  Plan plan = plan_with(workload, {os}, tokens_by_row);
  const auto file = std::make_shared<const std::string>("plan.textproto");
  for (std::size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].written_at = {file, static_cast<int>(s) + 10, 3};
  const auto schedule = block_schedule(mesh(), workload, plan, Pass::forward);
  ASSERT_TRUE(schedule);
  for (const Task& task : schedule->programs.front().tasks)
    EXPECT_EQ(location_of(task.written_at) == (SourceLocation{"plan.textproto", 11, 3}), task.label.starts_with("in_proj: ")) << task.label;
  EXPECT_EQ(error_of(workload, plan, testing::mesh_of(8, 1)),
            "plan.textproto:12:3: attention: 4 sequences cannot be shared by 8 devices: attention needs whole ones");
  plan.stages[4].layout = features_by_row;
  EXPECT_EQ(error_of(workload, plan), "plan.textproto:14:3: residual1 joins what is features-by-row with what is tokens-by-row");
  EXPECT_EQ(error_of(workload, plan, *Mesh::make({{"ring", 8, true}})),
            "plan.textproto: a workload needs a mesh of two axes, row and col, in this order; found ring=8");
}

TEST(Plan, SaysWhichHeadsAndSequencesCannotBeShared) {
  const Workload workload = small();
  const Plan plan = plan_with(workload, {os}, tokens_by_row);
  EXPECT_EQ(error_of(workload, plan, testing::mesh_of(1, 3)),
            "in_proj: 4 heads of 4 groups cannot be shared by 3 devices: attention would need heads of its neighbours");
  EXPECT_EQ(error_of(workload, plan, testing::mesh_of(8, 1)), "attention: 4 sequences cannot be shared by 8 devices: attention needs whole ones");
  EXPECT_EQ(error_of(workload, plan_with(workload, {turned}, features_by_row), testing::mesh_of(8, 1)),
            "in_proj: 4 heads of 4 groups cannot be shared by 8 devices: attention would need heads of its neighbours");
  TransformerBlock block = testing::small_gated_block();
  const auto gated = workload_of(block, 8);
  EXPECT_EQ(error_of(*gated, testing::turned_before(plan_with(*gated, {os, turned}, tokens_by_row), "attention")),
            "attention: 4 groups of heads tokens-by-row cannot become 2 features-by-row: keys and values are computed on other devices");
}

TEST(Plan, AttentionHasCopiesOfKeysAndValuesWhereDevicesAreMoreThanTheirHeads) {
  const auto workload = workload_of(testing::small_gated_block(), 8);
  const auto parts = parts_of(*workload, plan_with(*workload, {os}, tokens_by_row), mesh(), Pass::forward);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[1].outputs, (4 + 2 * 4) * 8) << "in_proj on 4 devices, 2 kv heads";
  EXPECT_EQ((*parts)[2].inputs, (4 + 2 * 4) * 8);
  EXPECT_EQ((*parts)[2].groups, 4);
  EXPECT_EQ((*parts)[2].queries, 1);
  EXPECT_EQ((*parts)[2].outputs, 32);
  const auto across = parts_of(*workload, plan_with(*workload, {turned}, features_by_row), mesh(), Pass::forward);
  ASSERT_TRUE(across);
  EXPECT_EQ((*across)[1].outputs, (4 + 2 * 2) * 8) << "on 2 devices none";
  EXPECT_EQ((*across)[2].queries, 2);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------------------------

TEST(ResidentMemory, OfAGptBlock) {
  TransformerBlock block = *find_transformer_block("gpt3-block");
  block.layers = 3, block.batch = 16;
  const auto workload = workload_of(block, 16);
  const Mesh on = testing::mesh_of(4, 4);
  const Plan plan = plan_with(*workload, {os}, tokens_by_row);
  constexpr std::int64_t H = 12288;
  const std::int64_t parameters = 12 * H * H / 16 * 3, tokens = block.sequence * 16;
  const MemoryUse use = resident_memory(*workload, plan, on, Pass::both);
  EXPECT_EQ(use.weights.count(), 2 * parameters);
  EXPECT_EQ(use.gradients.count(), 2 * parameters);
  EXPECT_EQ(use.optimizer.count(), 12 * parameters);
  // Read by norm1, in_proj, attention (3), out_proj, norm2, ff1, activation (4), ff2 (4).
  EXPECT_EQ(use.activations.count(), 2 * tokens * 16 * H / 16 * 3);
  EXPECT_EQ(use.working.count(), 0);
  EXPECT_EQ(use.total(), use.weights + use.gradients + use.optimizer + use.activations);
  const MemoryUse forward = resident_memory(*workload, plan, on, Pass::forward);
  EXPECT_EQ(forward.weights, use.weights);
  EXPECT_EQ(forward.total(), forward.weights) << "nothing is kept";
  EXPECT_EQ(resident_memory(*workload, plan, on, Pass::backward).total(), use.total());
}

TEST(ResidentMemory, CountsCopiesOfKeysAndValues) {
  const auto workload = workload_of(testing::small_gated_block(), 8);
  const auto weights = [&](const ProductChoice& choice, ActivationLayout layout) {
    return resident_memory(*workload, plan_with(*workload, {choice}, layout), mesh(), Pass::forward).weights.count();
  };
  const std::int64_t rest = 32 * 32 + 32 * 128 + 64 * 32;
  EXPECT_EQ(weights(os, tokens_by_row), 4 * (32 * 96 + rest) / 8);
  EXPECT_EQ(weights(turned, features_by_row), 4 * (32 * 64 + rest) / 8);
  EXPECT_EQ(parameters_of(*workload), 32 * 64 + rest) << "without copies";
}

TEST(ResidentMemory, OfProductsHasNoOptimizer) {
  const auto workload = workload_of({{8, 16, 32, DType::f32}});
  const MemoryUse use = resident_memory(*workload, plan_with(*workload, {os}, tokens_by_row), mesh(), Pass::both);
  EXPECT_EQ(use.weights.count(), 4 * 16 * 32 / 8);
  EXPECT_EQ(use.gradients, use.weights);
  EXPECT_EQ(use.optimizer.count(), 0);
  EXPECT_EQ(use.activations.count(), 4 * 8 * 32 / 8);
}

}  // namespace
}  // namespace podsim
