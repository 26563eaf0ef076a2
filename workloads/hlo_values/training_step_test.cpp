// Training steps in the compiler's form: the interpreter's gradients are the derivatives of the loss, computed apart in plain C++.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using test::array;
using test::Reals;

// Two rows of the batch on each of eight devices: h = tanh(x @ w1), y = layer norm(h) @ w2, softmax cross-entropy, gradients of w1 and w2, summed
// over the devices by one variadic all-reduce. Layer norm divides by the root of the mean square and 0.5.
constexpr std::string_view step_module = R"(HloModule step, is_scheduled=true, num_partitions=8

sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }

normed { h = f32[2,6]{1,0} parameter(0)
  square = f32[2,6]{1,0} multiply(h, h)
  zero = f32[] constant(0)
  total = f32[2]{0} reduce(square, zero), dimensions={1}, to_apply=sum
  count = f32[] constant(6)
  counts = f32[2]{0} broadcast(count), dimensions={}
  mean = f32[2]{0} divide(total, counts)
  half = f32[] constant(0.5)
  halves = f32[2]{0} broadcast(half), dimensions={}
  shifted = f32[2]{0} add(mean, halves)
  ROOT r = f32[2]{0} rsqrt(shifted) }

softmax { y = f32[2,3]{1,0} parameter(0)
  low = f32[] constant(-inf)
  top = f32[2]{0} reduce(y, low), dimensions={1}, to_apply=largest
  tops = f32[2,3]{1,0} broadcast(top), dimensions={0}
  below = f32[2,3]{1,0} subtract(y, tops)
  e = f32[2,3]{1,0} exponential(below)
  zero = f32[] constant(0)
  total = f32[2]{0} reduce(e, zero), dimensions={1}, to_apply=sum
  totals = f32[2,3]{1,0} broadcast(total), dimensions={0}
  ROOT p = f32[2,3]{1,0} divide(e, totals) }

ENTRY main { x = f32[2,4]{1,0} parameter(0), sharding={devices=[8,1]<=[8]}
  labels = s32[2]{0} parameter(1), sharding={devices=[8]<=[8]}
  w1 = f32[4,6]{1,0} parameter(2), sharding={replicated}
  w2 = f32[6,3]{1,0} parameter(3), sharding={replicated}
  z = f32[2,6]{1,0} dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[2,6]{1,0} tanh(z)
  r = f32[2]{0} fusion(h), kind=kInput, calls=normed
  rs = f32[2,6]{1,0} broadcast(r), dimensions={0}
  n = f32[2,6]{1,0} multiply(h, rs)
  y = f32[2,3]{1,0} convolution(n, w2), dim_labels=bf_io->bf
  p = f32[2,3]{1,0} fusion(y), kind=kLoop, calls=softmax
  class = s32[2,3]{1,0} iota(), iota_dimension=1
  label = s32[2,3]{1,0} broadcast(labels), dimensions={0}
  is_label = pred[2,3]{1,0} compare(class, label), direction=EQ
  hot = f32[2,3]{1,0} convert(is_label)
  logs = f32[2,3]{1,0} log(p)
  zero = f32[] constant(0)
  zeros = f32[2,3]{1,0} broadcast(zero), dimensions={}
  chosen = f32[2,3]{1,0} select(is_label, logs, zeros)
  gain = f32[] reduce(chosen, zero), dimensions={0,1}, to_apply=sum
  loss = f32[] negate(gain)
  dy = f32[2,3]{1,0} subtract(p, hot)
  dw2 = f32[6,3]{1,0} dot(n, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dn = f32[2,6]{1,0} convolution(dy, w2), dim_labels=bf_oi->bf
  scaled = f32[2,6]{1,0} multiply(dn, rs)
  along = f32[2,6]{1,0} multiply(dn, h)
  inner = f32[2]{0} reduce(along, zero), dimensions={1}, to_apply=sum
  three = f32[] constant(3)
  threes = f32[2]{0} broadcast(three), dimensions={}
  cubed = f32[2]{0} power(r, threes)
  six = f32[] constant(6)
  sixes = f32[2]{0} broadcast(six), dimensions={}
  part = f32[2]{0} divide(cubed, sixes)
  factor = f32[2]{0} multiply(inner, part)
  factors = f32[2,6]{1,0} broadcast(factor), dimensions={0}
  back = f32[2,6]{1,0} multiply(h, factors)
  dh = f32[2,6]{1,0} subtract(scaled, back)
  hh = f32[2,6]{1,0} multiply(h, h)
  one = f32[] constant(1)
  ones = f32[2,6]{1,0} broadcast(one), dimensions={}
  slope = f32[2,6]{1,0} subtract(ones, hh)
  dz = f32[2,6]{1,0} multiply(dh, slope)
  xt = f32[4,2]{0,1} transpose(x), dimensions={1,0}
  xb = f32[4,2]{1,0} copy(xt)
  dw1 = f32[4,6]{1,0} dot(xb, dz), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  all = (f32[], f32[4,6]{1,0}, f32[6,3]{1,0}) all-reduce-start(loss, dw1, dw2), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=sum
  ROOT done = (f32[], f32[4,6]{1,0}, f32[6,3]{1,0}) all-reduce-done(all) }
)";

struct Step {
  std::vector<Reals> x;                           // [device], [2,4]
  std::vector<std::vector<std::int64_t>> labels;  // [device], [2]
  Reals w1, w2;
};

double loss_of(const Step& step) {
  double loss = 0;
  for (std::size_t device = 0; device < 8; ++device)
    for (std::size_t row = 0; row < 2; ++row) {
      Reals h(6, 0), y(3, 0);
      double squares = 0;
      for (std::size_t j = 0; j < 6; ++j) {
        for (std::size_t k = 0; k < 4; ++k) h[j] += step.x[device][row * 4 + k] * step.w1[k * 6 + j];
        h[j] = std::tanh(h[j]);
        squares += h[j] * h[j];
      }
      const double scale = std::sqrt(squares / 6 + 0.5);
      double total = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t j = 0; j < 6; ++j) y[c] += h[j] / scale * step.w2[j * 3 + c];
        total += std::exp(y[c]);
      }
      loss += std::log(total) - y[static_cast<std::size_t>(step.labels[device][row])];
    }
  return loss;
}

/// The derivative of the loss along every weight, by central differences with an error of the order of 1e-9.
Reals derivatives(Step step, Reals Step::*weights) {
  Reals result;
  constexpr double by = 1e-5;
  for (double& weight : step.*weights) {
    const double middle = weight;
    weight = middle + by;
    const double above = loss_of(step);
    weight = middle - by;
    result.push_back((above - loss_of(step)) / (2 * by));
    weight = middle;
  }
  return result;
}

TEST(HloTrainingStep, GradientsAreTheDerivativesOfTheLoss) {
  Rng random{23};
  const auto normal = [&](std::size_t count) {
    Reals values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(2 * random.uniform() - 1);
    return values;
  };
  Step step{{}, {}, normal(24), normal(18)};
  std::vector<HloArrays> parameters;
  for (int device = 0; device < 8; ++device) {
    step.x.push_back(normal(8));
    step.labels.push_back({random.between(0, 2), random.between(0, 2)});
    parameters.push_back({array("f32[2,4]", step.x.back()), integer_array(HloType::s32, {2}, step.labels.back()), array("f32[4,6]", step.w1),
                          array("f32[6,3]", step.w2)});
  }
  HloRunOptions options;
  const auto results = test::run(test::module_of(step_module), parameters, options);
  ASSERT_TRUE(results) << to_text(results.error());
  const Reals dw1 = derivatives(step, &Step::w1), dw2 = derivatives(step, &Step::w2);
  for (const HloArrays& mine : *results) {
    EXPECT_NEAR(mine.at(0).reals.at(0), loss_of(step), 1e-12);
    for (std::size_t i = 0; i < dw1.size(); ++i) EXPECT_NEAR(mine.at(1).reals.at(i), dw1[i], 1e-7);
    for (std::size_t i = 0; i < dw2.size(); ++i) EXPECT_NEAR(mine.at(2).reals.at(i), dw2[i], 1e-7);
  }
  // Roundings of f32 are far above what tells a right program from a wrong one here.
  options.arithmetic.perturb_seed = 1;
  const auto perturbed = test::run(test::module_of(step_module), parameters, options);
  ASSERT_TRUE(perturbed);
  EXPECT_NE((*perturbed)[0][1].reals, (*results)[0][1].reals);
  for (std::size_t i = 0; i < dw1.size(); ++i) EXPECT_NEAR((*perturbed)[0][1].reals.at(i), dw1[i], 1e-5);
}

// ---- testdata/tpu_transformer_step.hlo ----

namespace transformer_step {

// A transformer of two layers on data=2,model=4: one head and 32 of 128 features of the MLP on each of four devices, every weight in halves on two,
// 32 tokens of 64 features for each of the two, 8 on each device. The step returns the loss and the weights less an eighth of their gradients.
constexpr std::size_t layers = 2, heads = 4, tokens = 32, own_tokens = 8, features = 64, width = 16, hidden = 32;
enum Parameter : std::size_t { activations, qkv, out, up, down };
constexpr std::array<const char*, 5> parameter_shapes{"bf16[8,64]", "bf16[2,32,48]", "bf16[2,16,32]", "bf16[2,32,32]", "bf16[2,32,32]"};
using Devices = std::vector<std::vector<Reals>>;  // [device][parameter]

/// [rows, inner] by [inner, columns].
Reals product(const Reals& a, const Reals& b, std::size_t rows, std::size_t inner, std::size_t columns) {
  Reals result(rows * columns, 0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) result[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return result;
}

/// A layer's weights of a head: two devices have half of the rows each, or half of the columns.
Reals whole(const Devices& devices, std::size_t head, Parameter which, std::size_t layer, std::size_t rows, std::size_t columns, bool by_rows) {
  Reals result(rows * columns);
  const std::size_t own_rows = by_rows ? rows / 2 : rows, own_columns = by_rows ? columns : columns / 2;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t half = by_rows ? i / own_rows : j / own_columns;
      result[i * columns + j] = devices[half * heads + head][which][(layer * own_rows + i % own_rows) * own_columns + j % own_columns];
    }
  return result;
}

Reals normed(Reals x) {
  for (std::size_t t = 0; t < tokens; ++t) {
    double squares = 0;
    for (std::size_t f = 0; f < features; ++f) squares += x[t * features + f] * x[t * features + f];
    for (std::size_t f = 0; f < features; ++f) x[t * features + f] /= std::sqrt(squares / features + 0.0625);
  }
  return x;
}

/// Half the sum of squares of what the layers make of all tokens.
double transformer_loss(const Devices& devices) {
  double loss = 0;
  for (std::size_t data = 0; data < 2; ++data) {
    Reals x;
    for (std::size_t model = 0; model < heads; ++model) {
      const Reals& own = devices[data * heads + model][activations];
      x.insert(x.end(), own.begin(), own.end());
    }
    const auto add = [&](const Reals& more) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += more[i];
    };
    for (std::size_t layer = 0; layer < layers; ++layer) {
      Reals n = normed(x);
      for (std::size_t head = 0; head < heads; ++head) {
        const Reals all = product(n, whole(devices, head, qkv, layer, features, 3 * width, true), tokens, features, 3 * width);
        const auto at = [&](std::size_t token, std::size_t part, std::size_t f) { return all[token * 3 * width + part * width + f]; };
        Reals attended(tokens * width, 0);
        for (std::size_t t = 0; t < tokens; ++t) {
          Reals weights(tokens, 0);
          double total = 0;
          for (std::size_t s = 0; s < tokens; ++s) {
            for (std::size_t f = 0; f < width; ++f) weights[s] += at(t, 0, f) * at(s, 1, f) / 4;
            total += weights[s] = std::exp(weights[s]);
          }
          for (std::size_t s = 0; s < tokens; ++s)
            for (std::size_t f = 0; f < width; ++f) attended[t * width + f] += weights[s] / total * at(s, 2, f);
        }
        add(product(attended, whole(devices, head, out, layer, width, features, false), tokens, width, features));
      }
      n = normed(x);
      for (std::size_t head = 0; head < heads; ++head) {
        Reals h = product(n, whole(devices, head, up, layer, features, hidden, true), tokens, features, hidden);
        for (double& value : h) value = std::tanh(value);
        add(product(h, whole(devices, head, down, layer, hidden, features, false), tokens, hidden, features));
      }
    }
    for (const double value : x) loss += value * value / 2;
  }
  return loss;
}

TEST(HloTrainingStep, AShardedTransformersGradientsAreTheDerivativesOfItsLoss) {
  const auto module = read_hlo_file(PODSIM_SOURCE_DIR "/workloads/hlo/testdata/tpu_transformer_step.hlo");
  ASSERT_TRUE(module) << to_text(module.error());
  Rng random{29};
  Devices devices(2 * heads);
  std::vector<HloArrays> parameters;
  for (std::vector<Reals>& mine : devices) {
    HloArrays arrays;
    for (const char* shape : parameter_shapes) {
      const auto elements = static_cast<std::size_t>(elements_of(test::shape_of(shape)));
      Reals& values = mine.emplace_back();
      for (std::size_t i = 0; i < elements; ++i) values.push_back((2 * random.uniform() - 1) / (mine.size() == 1 ? 1 : 4));
      arrays.push_back(array(shape, values));
    }
    parameters.push_back(std::move(arrays));
  }
  const auto results = test::run(*module, parameters);
  ASSERT_TRUE(results) << to_text(results.error());
  const double loss = transformer_loss(devices);
  // A weight of each device's share of every matrix, in either layer.
  for (std::size_t device = 0; device < devices.size(); device += test::cases(1, 5)) {
    EXPECT_NEAR((*results)[device][0].reals.at(0), loss, 1e-9 * loss);
    for (const Parameter which : {qkv, out, up, down}) {
      SCOPED_TRACE(fmt::format("device {} parameter {}", device, static_cast<std::size_t>(which)));
      Reals& values = devices[device][which];
      const std::size_t each = values.size() / layers, i = (device + which) % layers * each + random.below(each);
      const double middle = values[i];
      constexpr double by = 1e-4;
      values[i] = middle + by;
      const double above = transformer_loss(devices);
      values[i] = middle - by;
      const double slope = (above - transformer_loss(devices)) / (2 * by);
      values[i] = middle;
      EXPECT_NEAR(8 * (middle - (*results)[device][which].reals.at(i)), slope, 1e-5 * std::max(1.0, std::abs(slope)));
    }
  }
}

}  // namespace transformer_step
}  // namespace
}  // namespace podsim
