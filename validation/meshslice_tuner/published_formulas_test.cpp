// The published tuner of MeshSlice, calculated a second time from its formulas alone: all figures at hand are of GPT-3, so this is what holds our
// tuner to it for Megatron-NLG, whose slice counts come from other rows of its tables. Plain doubles and whole numbers; a GEMM's blocks stand here
// one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "workloads/tuning/reference_tuner.hpp"

namespace podsim {
namespace {

constexpr double formula_rounding = 1e-12;  // relative

using SliceCounts = std::vector<int>;
using Rows = std::vector<std::pair<std::int64_t, SliceCounts>>;

const Rows of_main = {{48, {3, 4, 6, 8, 12, 16, 24}}, {40, {4, 5, 8, 10, 20}}, {24, {3, 4, 6, 8, 12, 24}}, {20, {4, 5, 10, 20}},
                      {16, {4, 8, 16}},               {12, {3, 4, 12}},        {10, {5, 10}},              {8, {4, 8}},
                      {6, {3, 6}},                    {4, {4}},                {5, {5}}};
const Rows of_simulation = {{96, {3, 4, 6, 8, 12, 16, 24, 32}}, {160, {4, 5, 8, 10, 16, 20, 32}}, {32, {4, 8, 16, 32}},
                            {48, {3, 4, 6, 8, 12, 16, 24}},     {80, {4, 5, 8, 10, 16, 20, 40}},  {40, {4, 5, 8, 10, 20}},
                            {24, {3, 4, 6, 8, 12, 24}},         {20, {4, 5, 10, 20}},             {16, {4, 8, 16}},
                            {12, {3, 4, 12}},                   {10, {5, 10}},                    {8, {4, 8}},
                            {6, {3, 6}},                        {4, {4}},                         {5, {5}}};

/// A published set. Index 0: along the rows of the mesh; 1: along its columns.
struct Set {
  std::string name;
  std::array<double, 2> gather, scatter;  // B/s
  double hop, gather_base, scatter_base, flops;
  bool mean;
  const Rows& rows;
};
constexpr double tebi = 1099511627776;
const std::array<Set, 2> sets = {{{"tpu_measured", {27.472e9, 79.751e9}, {37.506e9, 63.167e9}, 5e-6, 13e-6, 26e-6, 242 * tebi, false, of_main},
                                  {"simulation_fit", {60e9, 60e9}, {50e9, 50e9}, 6e-6, 100e-6, 100e-6, 249e12, true, of_simulation}}};

/// The formulas on a mesh of R x C.
class Formulas {
 public:
  Formulas(const Set& set, std::int64_t R, std::int64_t C) : set_{set}, R_{R}, C_{C} {}

  [[nodiscard]] SliceCounts slice_counts(std::int64_t cut) const {
    const std::int64_t n = cut / std::lcm(R_, C_) / 8;
    for (const auto& [divisor, counts] : set_.rows)
      if (n % divisor == 0) return counts;
    return {static_cast<int>(n)};
  }

  [[nodiscard]] double os(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t S) const {
    return steps(gather(M / R_, K / C_ / S, 1), gather(K / R_ / S, N / C_, 0), matmul(M / R_, N / C_, K / S), S, true);
  }
  [[nodiscard]] double ls(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t S) const {
    return steps(gather(N / R_ / S, K / C_, 0), scatter(M / R_, N / C_ / S, 1), matmul(M / R_, N / S, K / C_), S, false);
  }
  [[nodiscard]] double rs(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t S) const {
    return steps(gather(K / R_, M / C_ / S, 1), scatter(M / R_ / S, N / C_, 0), matmul(M / S, N / C_, K / R_), S, false);
  }

  /// Traffic, latency, pipeline and emulated time of a layer [B, I] -> [B, O].
  [[nodiscard]] std::array<double, 4> layer(bool is_os, std::int64_t B, std::int64_t I, std::int64_t O, std::int64_t S) const {
    const auto [ag0, ag1] = set_.gather;
    const auto [rs0, rs1] = set_.scatter;
    const auto moved = [](std::int64_t a, std::int64_t b, std::int64_t devices) { return static_cast<double>(2 * a * b * (devices - 1)); };
    const double in = moved(B, I, C_), weight = moved(I, O, R_), out = moved(B, O, C_);
    const auto chips = static_cast<double>(R_ * C_), slices = static_cast<double>(S);
    const auto wait = [&](double base, std::int64_t devices) { return static_cast<double>(devices - 1) * set_.hop + base; };
    const double gather0 = wait(set_.gather_base, R_), gather1 = wait(set_.gather_base, C_), scatter0 = wait(set_.scatter_base, R_),
                 scatter1 = wait(set_.scatter_base, C_);
    if (is_os)
      return {(std::max(in / ag1, weight / ag0) + std::max(in / rs1, weight / ag0) + std::max(in / ag1, weight / rs0)) / chips,
              slices * (std::max(gather1, gather0) + std::max(scatter1, gather0) + std::max(gather1, scatter0)),
              (std::max(in / ag1, weight / ag0) + (in / rs1 + weight / ag0) + (in / ag1 + weight / rs0)) / (chips * slices),
              os(B, O, I, S) + ls(B, I, O, S) + rs(I, O, B, S)};
    return {(std::max(weight / ag0, out / rs1) + std::max(weight / ag0, out / ag1) + std::max(weight / rs0, out / ag1)) / chips,
            slices * (std::max(gather0, scatter1) + std::max(gather1, gather0) + std::max(gather1, scatter0)),
            ((weight / ag0 + out / rs1) + std::max(weight / ag0, out / ag1) + (weight / rs0 + out / ag1)) / (chips * slices),
            ls(B, O, I, S) + os(B, I, O, S) + rs(O, I, B, S)};
  }

 private:
  [[nodiscard]] double collective(std::int64_t a, std::int64_t b, int dimension, double base, double rate) const {
    const auto others = static_cast<double>((dimension == 0 ? R_ : C_) - 1);
    return base + others * 2 * static_cast<double>(a * b) / rate + others * set_.hop;
  }
  [[nodiscard]] double gather(std::int64_t a, std::int64_t b, int d) const {
    return collective(a, b, d, set_.gather_base, set_.gather.at(static_cast<std::size_t>(d)));
  }
  [[nodiscard]] double scatter(std::int64_t a, std::int64_t b, int d) const {
    return collective(a, b, d, set_.scatter_base, set_.scatter.at(static_cast<std::size_t>(d)));
  }
  [[nodiscard]] double matmul(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / set_.flops;
  }
  [[nodiscard]] double steps(double first, double second, double t, std::int64_t S, bool is_os) const {
    const auto more = static_cast<double>(S - 1);
    if (set_.mean) return (first + second) / 2 + std::max((first + second) / 2, t) * more + t;
    return (is_os ? std::max(first, second) : first + second) + std::max({first, second, t}) * more + t;
  }

  const Set& set_;
  std::int64_t R_, C_;
};

void expect_equal(const char* what, Seconds ours, double theirs) {
  EXPECT_LE(std::abs(ours.count() - theirs), formula_rounding * theirs) << what << ": " << ours.count() << ", by the formulas " << theirs;
}

struct Choice {
  ReferenceShape shape;
  SliceCounts slice_counts;
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// Compares all figures of a block of width H on every mesh; the choice that the formulas make.
Choice compare_block(const ReferenceTuning& tuning, const Set& set, std::int64_t H, int chips) {
  Choice best;
  double least = 0;
  std::size_t next = 0;
  for (int R = 4; R <= chips / 4; R *= 2, ++next) {
    const ReferenceShape shape{R, chips / R};
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.cols));
    const Formulas formulas{set, shape.rows, shape.cols};
    if (next >= tuning.shapes.size()) return ADD_FAILURE() << "this shape is missing", best;
    EXPECT_EQ(tuning.shapes[next].shape, shape);
    Choice choice{shape, {}};
    double cost = 0;
    for (std::size_t l = 0; l < 4; ++l) {
      const ReferenceLayerPlan& plan = tuning.shapes[next].layers.at(l);
      SCOPED_TRACE(plan.layer.name);
      const bool is_os = l == 0 || l == 2;
      const std::int64_t B = std::int64_t{chips} * 2048, I = l == 3 ? 4 * H : H, O = std::array{3 * H, H, 4 * H, H}.at(l);
      EXPECT_EQ(plan.dataflow, is_os ? Dataflow::os : Dataflow::ls);
      const SliceCounts counts = formulas.slice_counts(is_os ? I : O);
      SliceCounts ours;
      for (const ReferenceTimes& times : plan.candidates) ours.push_back(times.slice_count);
      EXPECT_EQ(ours, counts);
      double score = 0, cost_of_layer = 0;
      int chosen = 0;
      for (std::size_t i = 0; i < std::min(counts.size(), ours.size()); ++i) {
        const auto [traffic, latency, pipeline, emulated] = formulas.layer(is_os, B, I, O, counts[i]);
        expect_equal("traffic", plan.traffic, traffic);
        expect_equal("latency", plan.candidates[i].latency, latency);
        expect_equal("pipeline", plan.candidates[i].pipeline, pipeline);
        expect_equal("emulated", plan.candidates[i].emulated, emulated);
        if (chosen != 0 && latency + 2 * pipeline >= score) continue;
        score = latency + 2 * pipeline, cost_of_layer = traffic + latency, chosen = counts[i];
      }
      EXPECT_EQ(plan.choice().slice_count, chosen);
      choice.slice_counts.push_back(chosen);
      cost += cost_of_layer;
    }
    if (least == 0 || cost < least) least = cost, best = std::move(choice);
  }
  EXPECT_EQ(tuning.shapes.size(), next);
  return best;
}

struct PublishedModel {
  std::string name;
  std::int64_t heads = 0;  // of 128
};

TEST(MeshSliceTuner, AsItsFormulasHaveItForBothModelsAndBothSets) {
  for (const Set& set : sets)
    for (const PublishedModel& model : {PublishedModel{"GPT-3", 96}, PublishedModel{"Megatron-NLG", 160}})
      for (int chips = 32; chips <= 2048; chips *= 2) {
        SCOPED_TRACE(set.name + ", " + model.name + ", " + std::to_string(chips) + " chips");
        const auto parameters = reference_parameters(set.name);
        ASSERT_TRUE(parameters) << to_text(parameters.error());
        const auto tuning = tune_by_reference(block_layers(model.heads, 128, std::int64_t{chips} * 2048), chips, *parameters);
        ASSERT_TRUE(tuning) << to_text(tuning.error());
        const Choice formulas = compare_block(*tuning, set, model.heads * 128, chips);
        Choice ours{tuning->choice().shape, {}};
        for (const ReferenceLayerPlan& layer : tuning->choice().layers) ours.slice_counts.push_back(layer.choice().slice_count);
        EXPECT_EQ(ours, formulas);
      }
}

// README.md has this table; the choices and times are of a calculation apart from both others, in Python.
TEST(MeshSliceTuner, ItsPlansForMegatronNlg) {
  struct Plan {
    const char* set;
    int chips;
    ReferenceShape shape;
    SliceCounts slice_counts;
    double ms, best_ms;
  };
  for (const Plan& expected : {Plan{"tpu_measured", 32, {4, 8}, {20, 20, 20, 20}, 248.935, 248.581},
                                   {"tpu_measured", 256, {32, 8}, {10, 10, 20, 20}, 253.869, 251.521},
                                   {"tpu_measured", 2048, {256, 8}, {5, 5, 5, 5}, 294.965, 291.464},
                                   {"simulation_fit", 32, {8, 4}, {16, 10, 16, 16}, 255.727, 252.835},
                                   {"simulation_fit", 256, {32, 8}, {10, 10, 10, 10}, 264.146, 257.319},
                                   {"simulation_fit", 2048, {256, 8}, {5, 5, 5, 5}, 287.056, 279.294}}) {
    SCOPED_TRACE(std::string{expected.set} + ", " + std::to_string(expected.chips) + " chips");
    const std::vector<ReferenceLayer> layers = block_layers(160, 128, std::int64_t{expected.chips} * 2048);
    const auto tuning = tune_by_reference(layers, expected.chips, *reference_parameters(expected.set));
    ASSERT_TRUE(tuning) << to_text(tuning.error());
    EXPECT_EQ(tuning->choice().shape, expected.shape);
    for (std::size_t l = 0; l < 4; ++l) EXPECT_EQ(tuning->choice().layers.at(l).choice().slice_count, expected.slice_counts.at(l));
    EXPECT_NEAR(1e3 * tuning->choice().emulated().count(), expected.ms, 0.0006);
    EXPECT_NEAR(1e3 * tuning->choice().best_emulated().count(), expected.best_ms, 0.0006);
  }
}

}  // namespace
}  // namespace podsim
