// Every kind of part, in both layouts and passes, computes what plain float64 does, on every mesh.
#include "workloads/part.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/check.hpp"
#include "workloads/collectives.hpp"
#include "workloads/plan.hpp"
#include "workloads/testing.hpp"

namespace podsim {
namespace {

using testing::activations;
using testing::as_matrix;
using testing::close;
using testing::Heads;
using testing::Matrix;
using testing::TensorsByName;

constexpr std::array<ActivationLayout, 2> layouts{ActivationLayout::tokens_by_row, ActivationLayout::features_by_row};
constexpr std::array<Pass, 2> passes{Pass::forward, Pass::backward};
constexpr double tolerance = 1e-5;

/// The meshes, open and wrapped, and a row that folds two dimensions.
std::vector<Mesh> part_meshes() {
  std::vector<Mesh> all;
  for (const auto& [R, C] : {std::pair{1, 1}, {1, 4}, {4, 1}, {2, 4}, {4, 2}, {3, 2}})
    for (const bool wraps : {true, false})
      if (wraps || std::max(R, C) > 2) all.push_back(testing::mesh_of(R, C, wraps));
  all.push_back(testing::mesh_of(4, 2, true, {{2, true}, {2, true}}));
  return all;
}

std::string describe(const Mesh& mesh, const WorkloadPart& part) {
  return to_text(mesh) + ", wraps " + std::to_string(mesh.axes()[0].wraps) + ": " + key_of(part);
}

/// Runs the part lowered by both choosers and hands what comes out to `expect`.
template <class Expect>
void for_each_run(const WorkloadPart& of, Expect expect) {
  for (const Mesh& mesh : part_meshes())
    for (const ActivationLayout layout : layouts)
      for (const Pass pass : passes) {
        WorkloadPart part = of;
        part.layout = layout;
        part.pass = pass;
        SCOPED_TRACE(describe(mesh, part));
        const auto schedule = part_schedule(mesh, part, {});
        ASSERT_TRUE(schedule) << to_text(schedule.error());
        for (const CollectiveChooser& chooser : {ring_or_line(), by_dimension({})}) {
          const TensorsByName tensors = testing::run_on_numbers(*schedule, chooser);
          ASSERT_FALSE(tensors.empty());
          expect(mesh, part, tensors);
          if (::testing::Test::HasFailure()) return;
        }
      }
}

/// Of a tensor of the part.
Matrix of(const TensorsByName& tensors, const char* name, const WorkloadPart& part) {
  return activations(tensors.at(name), part.tokens, part.layout);
}

std::size_t feature_devices(const Mesh& mesh, ActivationLayout layout) {
  return static_cast<std::size_t>(mesh.axes()[layout == ActivationLayout::tokens_by_row ? 1 : 0].size);
}

WorkloadPart part_of_kind(WorkloadPart::Kind kind, std::int64_t tokens, std::int64_t inputs, std::int64_t outputs) {
  WorkloadPart part;
  part.kind = kind;
  part.name = "part";
  part.dtype = DType::f32;
  part.tokens = tokens;
  part.inputs = inputs;
  part.outputs = outputs;
  return part;
}

TEST(Part, NormsNormaliseEveryTokenOverTheFeaturesOfAllDevices) {
  for (const Norm norm : {Norm::rms, Norm::layer}) {
    WorkloadPart part = part_of_kind(WorkloadPart::Kind::norm, 24, 24, 24);
    part.norm = norm;
    const bool subtract_mean = norm == Norm::layer;
    for_each_run(part, [&](const Mesh&, const WorkloadPart& p, const TensorsByName& t) {
      const Matrix x = of(t, "X", p);
      if (p.pass == Pass::forward) {
        EXPECT_TRUE(close(of(t, "Y", p), testing::plain_norm(subtract_mean, x), tolerance));
        Matrix sums(x.rows, subtract_mean ? 2 : 1);
        for (std::size_t r = 0; r < x.rows; ++r)
          for (std::size_t c = 0; c < x.columns; ++c) {
            sums(r, sums.columns - 1) += x(r, c) * x(r, c);
            if (subtract_mean) sums(r, 0) += x(r, c);
          }
        EXPECT_TRUE(close(of(t, "sums", p), sums, tolerance));
      }
    });
  }
}

// The sums are those that the forward pass leaves: both passes in one program.
TEST(Part, GradientsOfNormsAreThoseOfTheWholeToken) {
  for (const Norm norm : {Norm::rms, Norm::layer})
    for (const Mesh& mesh : part_meshes())
      for (const ActivationLayout layout : layouts) {
        WorkloadPart part = part_of_kind(WorkloadPart::Kind::norm, 24, 24, 24);
        part.norm = norm;
        part.layout = layout;
        SCOPED_TRACE(describe(mesh, part));
        TransformerBlock block;
        block.norm = norm;
        const Workload workload{"norm", block, {{Stage::Kind::norm, "norm1", part.tokens, part.inputs, part.outputs}}, DType::f32};
        const auto both = block_schedule(mesh, workload, {{}, std::string{by_dimension_name}, {{"norm1", layout}}}, Pass::both);
        ASSERT_TRUE(both) << to_text(both.error());
        const TensorsByName t = testing::run_on_numbers(*both, ring_or_line());
        ASSERT_FALSE(t.empty());
        EXPECT_TRUE(close(of(t, "dX", part), testing::plain_norm_gradient(norm == Norm::layer, of(t, "dY", part), of(t, "X", part)), tolerance));
      }
}

TEST(Part, AttentionIsThatOfEverySequenceAndHead) {
  for (const bool causal : {true, false})
    for (const std::int64_t queries : {1, 3}) {
      constexpr std::int64_t sequence = 3, groups = 12, head = 2;
      WorkloadPart part = part_of_kind(WorkloadPart::Kind::attention, 12 * sequence, groups * (queries + 2) * head, groups * queries * head);
      part.causal = causal;
      part.sequence = sequence, part.groups = groups, part.queries = queries, part.head = head;
      const Heads heads{static_cast<std::size_t>(sequence), static_cast<std::size_t>(groups), static_cast<std::size_t>(queries),
                        static_cast<std::size_t>(head), causal};
      for_each_run(part, [&](const Mesh&, const WorkloadPart& p, const TensorsByName& t) {
        const Matrix x = of(t, "X", p);
        if (p.pass == Pass::forward)
          EXPECT_TRUE(close(of(t, "Y", p), testing::plain_attention(heads, x), tolerance));
        else
          EXPECT_TRUE(close(of(t, "dX", p), testing::plain_attention_gradient(heads, of(t, "dY", p), x), tolerance));
      });
    }
}

TEST(Part, ActivationsAreGeluOrSwigluOfGateAndUpSideBySide) {
  for (const bool gated : {true, false}) {
    WorkloadPart part = part_of_kind(WorkloadPart::Kind::activation, 12, gated ? 48 : 24, 24);
    part.gated = gated;
    for_each_run(part, [&](const Mesh& mesh, const WorkloadPart& p, const TensorsByName& t) {
      const Matrix x = of(t, "X", p);
      const std::size_t P = feature_devices(mesh, p.layout);
      if (p.pass == Pass::forward)
        EXPECT_TRUE(close(of(t, "Y", p), testing::plain_activation(gated, P, x), tolerance));
      else
        EXPECT_TRUE(close(of(t, "dX", p), testing::plain_activation_gradient(gated, P, of(t, "dY", p), x), tolerance));
    });
  }
}

TEST(Part, AResidualAddsWhatItSkipped) {
  for_each_run(part_of_kind(WorkloadPart::Kind::residual, 12, 24, 24), [&](const Mesh&, const WorkloadPart& p, const TensorsByName& t) {
    EXPECT_TRUE(close(of(t, "Y", p), of(t, "X", p) + of(t, "skip", p), tolerance));
  });
}

// Place by place on each device, in the order that the header has: (col, row, own) from tokens by row.
TEST(Part, ARelayoutTurnsTheTensorAndItsGradientBack) {
  constexpr std::int64_t tokens = 24, features = 48;
  for (const Mesh& mesh : part_meshes())
    for (const ActivationLayout layout : layouts)
      for (const Pass pass : passes) {
        WorkloadPart part = part_of_kind(WorkloadPart::Kind::relayout, tokens, features, features);
        part.layout = layout;
        part.pass = pass;
        SCOPED_TRACE(describe(mesh, part));
        const auto schedule = part_schedule(mesh, part, {});
        ASSERT_TRUE(schedule) << to_text(schedule.error());
        const bool by_row = layout == ActivationLayout::tokens_by_row;
        const std::size_t Q = feature_devices(mesh, layout), P = feature_devices(mesh, other(layout));
        const std::vector<std::size_t> order = testing::relayout_order(features, P, Q);
        for (const CollectiveChooser& chooser : {ring_or_line(), by_dimension({})}) {
          const auto lowered = lower(*schedule, chooser);
          ASSERT_TRUE(lowered) << to_text(lowered.error());
          ASSERT_EQ(to_text(validate(*lowered).all()), "");
          const auto ran = make_numeric_engine({})->run(*lowered);
          ASSERT_TRUE(ran) << to_text(ran.error());
          const TensorsByName t = testing::whole_tensors(*lowered, *ran);
          const char* const before = pass == Pass::forward ? "X" : "dX";
          const char* const after = pass == Pass::forward ? "Y" : "dY";
          const Matrix x = activations(t.at(before), tokens, layout);
          ASSERT_TRUE(close(activations(t.at(after), tokens, other(layout)), testing::plain_relayout(order, x), 0));
          const std::vector<Buffer>& buffers = lowered->programs.front().buffers;
          const auto turned = static_cast<std::size_t>(
              std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& buffer) { return buffer.tensor == after; }) - buffers.begin());
          for (int d = 0; d < mesh.devices(); ++d) {
            const std::vector<float>& values = ran->values[static_cast<std::size_t>(d)][turned];
            const Coordinates at = mesh.coordinates(DeviceId{d});
            // Now along the features stand the devices that had stood along the tokens.
            const auto p = static_cast<std::size_t>(at[by_row ? 0 : 1]), q = static_cast<std::size_t>(at[by_row ? 1 : 0]);
            const std::size_t own_features = features / P, own_tokens = tokens / Q;
            ASSERT_EQ(values.size(), own_features * own_tokens);
            for (std::size_t f = 0; f < own_features; ++f)
              for (std::size_t s = 0; s < own_tokens; ++s) {
                const std::size_t place = by_row ? f * own_tokens + s : s * own_features + f;
                ASSERT_EQ(static_cast<double>(values[place]), x(q * own_tokens + s, order[p * own_features + f]))
                    << "device " << d << ", feature " << f << ", token " << s;
              }
          }
        }
      }
}

TEST(Part, RelayoutsAreOnlyAFormOfTheTensorWhereNothingIsSplit) {
  const std::vector<std::size_t> one = testing::relayout_order(12, 1, 4), two = testing::relayout_order(12, 2, 2);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i], i);
  EXPECT_EQ(two, (std::vector<std::size_t>{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}));
}

// ---- Products -------------------------------------------------------------------------------------------------------------------------

std::vector<ProductChoice> product_choices() {
  std::vector<ProductChoice> choices;
  for (const auto& [algorithm, S] : {std::pair<const char*, std::int64_t>{"collective", 0}, {"meshslice", 2}, {"meshslice", 3}, {"wang", 0}})
    for (const Dataflow dataflow : {Dataflow::os, Dataflow::ls, Dataflow::rs})
      for (const bool transposed : {false, true}) choices.push_back({algorithm, dataflow, transposed, S});
  return choices;
}

/// The smallest product of unlike extents that divides; nullopt: the algorithm does not take the mesh.
std::optional<WorkloadPart> small_product(const Mesh& mesh, const ProductChoice& choice, const PartOptions& options) {
  GemmOptions gemm;
  gemm.slice_count = choice.slice_count;
  gemm.block = options.block;
  const auto multiples = required_multiples(**gemm_algorithm(choice.algorithm), mesh, choice.dataflow, Pass::both, gemm);
  if (!multiples) return std::nullopt;
  WorkloadPart part = part_of_kind(WorkloadPart::Kind::product, multiples->m, multiples->k * 2, multiples->n);
  if (choice.transposed) std::swap(part.tokens, part.outputs);
  part.product = choice;
  part.layout = input_layout(choice.dataflow, choice.transposed);
  return part;
}

TEST(Part, ProductsAndTheirGradientsAreThoseOfTheWholeMatrices) {
  const PartOptions options{2, 1, true};
  int proven = 0;
  for (const Mesh& mesh : part_meshes())
    for (const ProductChoice& choice : product_choices()) {
      const auto of_mesh = small_product(mesh, choice, options);
      if (!of_mesh) continue;
      for (const Pass pass : passes) {
        WorkloadPart part = *of_mesh;
        part.pass = pass;
        SCOPED_TRACE(describe(mesh, part));
        const auto schedule = part_schedule(mesh, part, options);
        ASSERT_TRUE(schedule) << to_text(schedule.error());
        const CollectiveChooser chooser = proven % 2 == 0 ? ring_or_line() : by_dimension({});
        const TensorsByName t = testing::run_on_numbers(*schedule, chooser);
        ASSERT_FALSE(t.empty());
        const Matrix x = activations(t.at("X"), part.tokens, part.layout), w = testing::weights(t.at("W"), part.inputs, choice);
        const ActivationLayout out = output_layout(choice.dataflow, choice.transposed);
        if (pass == Pass::forward) {
          ASSERT_TRUE(close(activations(t.at("Y"), part.tokens, out), x * w, tolerance));
        } else {
          const Matrix dy = activations(t.at("dY"), part.tokens, out);
          ASSERT_TRUE(close(activations(t.at("dX"), part.tokens, part.layout), dy * testing::transposed(w), tolerance));
          ASSERT_TRUE(close(testing::weights(t.at("dW"), part.inputs, choice), testing::transposed(x) * dy, tolerance));
        }
        // The same by what the schedule says of itself, in another order and to the bit.
        const auto lowered = lower(*schedule, chooser);
        const auto report = check(*lowered, {1, 1, 1});
        ASSERT_TRUE(report) << to_text(report.error());
        ASSERT_TRUE(report->ok && report->bit_equal) << to_text(report->problems);
        ++proven;
      }
    }
  EXPECT_GT(proven, 400);
}

// What holds the operands decides which axis shards them; tokens come first or last.
TEST(Part, LayoutsOfProductsAreThoseOfTheirSchedules) {
  const Mesh mesh = testing::mesh_of(4, 2);
  const PartOptions options{2, 1, true};
  for (const ProductChoice& choice : product_choices()) {
    const auto part = small_product(mesh, choice, options);
    ASSERT_TRUE(part);
    SCOPED_TRACE(key_of(*part));
    const auto schedule = part_schedule(mesh, *part, options);
    ASSERT_TRUE(schedule);
    for (const Buffer& buffer : schedule->programs.front().buffers) {
      if (buffer.role == Role::scratch || buffer.tensor == "W") continue;
      const std::int64_t features = buffer.tensor == "X" ? part->inputs : part->outputs;
      const ActivationLayout layout =
          buffer.tensor == "X" ? input_layout(choice.dataflow, choice.transposed) : output_layout(choice.dataflow, choice.transposed);
      // Row-blocked dimensions come first: as many tokens, or as many features, as `row` splits.
      std::int64_t by_row = 1;
      for (std::size_t d = 0; d < buffer.extents.size() && (d == 0 || buffer.sharding[d].empty()); ++d) by_row *= buffer.extents[d];
      ASSERT_EQ(buffer.sharding.front(), std::vector<AxisView>{mesh.whole(0)}) << buffer.tensor;
      EXPECT_EQ(by_row, (layout == ActivationLayout::tokens_by_row ? part->tokens : features) / 4) << buffer.tensor << " " << name_of(layout);
    }
  }
}

TEST(Part, TheTableOfLayouts) {
  using enum Dataflow;
  constexpr ActivationLayout tokens = ActivationLayout::tokens_by_row, features = ActivationLayout::features_by_row;
  struct Row {
    Dataflow dataflow;
    bool transposed;
    ActivationLayout in, out;
  };
  for (const Row& row : {Row{os, false, tokens, tokens}, Row{ls, false, tokens, tokens}, Row{rs, false, features, tokens},
                         Row{os, true, features, features}, Row{ls, true, tokens, features}, Row{rs, true, features, features}}) {
    EXPECT_EQ(input_layout(row.dataflow, row.transposed), row.in) << name_of(row.dataflow) << row.transposed;
    EXPECT_EQ(output_layout(row.dataflow, row.transposed), row.out) << name_of(row.dataflow) << row.transposed;
  }
}

// ---- Errors ---------------------------------------------------------------------------------------------------------------------------

std::string error_of(const Mesh& mesh, const WorkloadPart& part) {
  const auto schedule = part_schedule(mesh, part, {});
  return schedule ? "" : to_text(schedule.error());
}

TEST(Part, NamesWhatDoesNotDivide) {
  using Kind = WorkloadPart::Kind;
  const Mesh mesh = testing::mesh_of(4, 2);
  EXPECT_EQ(error_of(mesh, part_of_kind(Kind::residual, 6, 8, 8)), "X: 6 must be a multiple of 4, the devices along row");
  EXPECT_EQ(error_of(mesh, part_of_kind(Kind::residual, 8, 7, 7)), "X: 7 must be a multiple of 2, the devices along col");
  EXPECT_EQ(error_of(mesh, part_of_kind(Kind::relayout, 8, 12, 12)), "part: 12 features must be a multiple of 8 devices");
  EXPECT_EQ(error_of(mesh, part_of_kind(Kind::relayout, 6, 16, 16)), "part: 6 tokens must be a multiple of 4 devices");
  EXPECT_EQ(error_of(mesh, part_of_kind(Kind::norm, 12, 8, 8)), "") << "an all-reduce takes any number of tokens";
  WorkloadPart product = part_of_kind(Kind::product, 8, 8, 7);
  product.product = {"collective", Dataflow::os, false, 0};
  EXPECT_THAT(error_of(mesh, product), ::testing::StartsWith("part: n must be a positive multiple of 2"));
  product.product.algorithm = "colective";
  EXPECT_THAT(error_of(mesh, product), ::testing::HasSubstr("collective"));
  WorkloadPart gated = part_of_kind(Kind::activation, 8, 10, 5);
  gated.gated = true;
  EXPECT_EQ(error_of(mesh, gated), "Y: 5 must be a multiple of 2, the devices along col");
  const Mesh one = *Mesh::make({{"ring", 8, true}});
  EXPECT_EQ(error_of(one, part_of_kind(Kind::norm, 8, 8, 8)), "a workload needs a mesh of two axes, row and col, in this order; found ring=8");
}

TEST(Part, KeysTellSchedulesApartAndNothingElse) {
  WorkloadPart part = part_of_kind(WorkloadPart::Kind::product, 8, 16, 32);
  part.product = {"meshslice", Dataflow::os, false, 2};
  WorkloadPart named = part;
  named.name = "another stage";
  EXPECT_EQ(key_of(part), key_of(named));
  std::set<std::string> keys{key_of(part)};
  const auto differs = [&](auto change) {
    WorkloadPart changed = part;
    change(changed);
    EXPECT_TRUE(keys.insert(key_of(changed)).second) << key_of(changed);
  };
  differs([](WorkloadPart& p) { p.kind = WorkloadPart::Kind::norm; });
  differs([](WorkloadPart& p) { p.pass = Pass::backward; });
  differs([](WorkloadPart& p) { p.layout = other(p.layout); });
  differs([](WorkloadPart& p) { p.dtype = DType::bf16; });
  differs([](WorkloadPart& p) { p.tokens = 9; });
  differs([](WorkloadPart& p) { p.inputs = 9; });
  differs([](WorkloadPart& p) { p.outputs = 9; });
  differs([](WorkloadPart& p) { p.product.algorithm = "wang"; });
  differs([](WorkloadPart& p) { p.product.dataflow = Dataflow::rs; });
  differs([](WorkloadPart& p) { p.product.transposed = true; });
  differs([](WorkloadPart& p) { p.product.slice_count = 4; });
  differs([](WorkloadPart& p) { p.norm = Norm::rms; });
  differs([](WorkloadPart& p) { p.gated = true; });
  differs([](WorkloadPart& p) { p.causal = false; });
  differs([](WorkloadPart& p) { p.sequence = 4; });
  differs([](WorkloadPart& p) { p.groups = 4; });
  differs([](WorkloadPart& p) { p.queries = 4; });
  differs([](WorkloadPart& p) { p.head = 4; });
}

// ---- The plain functions themselves ---------------------------------------------------------------------------------------------------

template <class Function>
void expect_gradient(const char* what, Function f, Matrix x, const std::function<Matrix(const Matrix&)>& gradient_for) {
  Rng rng{7};
  Matrix dy = f(x);
  for (double& value : dy.values) value = 2 * rng.uniform() - 1;
  const Matrix gradient = gradient_for(dy);
  Matrix slopes(x.rows, x.columns);
  const auto loss = [&] {
    const Matrix y = f(x);
    double sum = 0;
    for (std::size_t i = 0; i < y.values.size(); ++i) sum += dy.values[i] * y.values[i];
    return sum;
  };
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double middle = x.values[i];
    x.values[i] = middle + 1e-5;
    const double above = loss();
    x.values[i] = middle - 1e-5;
    slopes.values[i] = (above - loss()) / 2e-5;
    x.values[i] = middle;
  }
  EXPECT_TRUE(close(gradient, slopes, 1e-7)) << what;
}

TEST(PlainTransformer, GradientsAreCentralDifferences) {
  Rng rng{3};
  const auto random = [&](std::size_t rows, std::size_t columns) {
    Matrix m(rows, columns);
    for (double& value : m.values) value = 4 * rng.uniform() - 2;
    return m;
  };
  for (const bool flag : {true, false}) {
    const Matrix x = random(3, 8), qkv = random(6, 2 * 4 * 2), wide = random(3, 12);
    expect_gradient(
        "norm", [&](const Matrix& v) { return testing::plain_norm(flag, v); }, x,
        [&](const Matrix& dy) { return testing::plain_norm_gradient(flag, dy, x); });
    const Heads heads{3, 2, 2, 2, flag};
    expect_gradient(
        "attention", [&](const Matrix& v) { return testing::plain_attention(heads, v); }, qkv,
        [&](const Matrix& dy) { return testing::plain_attention_gradient(heads, dy, qkv); });
    expect_gradient(
        "activation", [&](const Matrix& v) { return testing::plain_activation(flag, 3, v); }, wide,
        [&](const Matrix& dy) { return testing::plain_activation_gradient(flag, 3, dy, wide); });
    const std::vector<std::size_t> order = testing::relayout_order(12, 3, 2);
    expect_gradient(
        "re-layout", [&](const Matrix& v) { return testing::plain_relayout(order, v); }, wide,
        [&](const Matrix& dy) { return testing::plain_relayout_gradient(order, dy); });
  }
}

}  // namespace
}  // namespace podsim
