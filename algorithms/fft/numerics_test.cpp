// Distributed FFTs on numbers: the transform of the whole array by FFTW in double precision, and laws of Fourier transforms.
#include <gtest/gtest.h>

#include <complex>
#include <numbers>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/fft/testing.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"

namespace podsim {
namespace {

using testing::FftCase;
using testing::lowered_fft;

void expect_right(const FftCase& c, double& worst) {
  SCOPED_TRACE(c.name);
  CheckOptions options;
  options.random_orders = 1;
  const auto report = check(lowered_fft(c, ring_or_line()), options);
  ASSERT_TRUE(report) << to_text(report.error());
  ASSERT_TRUE(report->ok) << to_text(report->problems) << " error " << report->max_rel_error << " proof " << report->proof_rel_error;
  EXPECT_LE(report->max_rel_error, 1e-5);
  worst = std::max(worst, report->max_rel_error);
}

TEST(FftNumerics, EqualFftwInDoublePrecision) {
  double worst = 0;
  std::size_t number = 0;
  for (const FftCase& c : testing::all_fft_cases())
    if (++number % test::cases(5U, 25U) == 0) expect_right(c, worst);  // every choice, but not with every other
  RecordProperty("worst", std::to_string(worst));
}

TEST(FftNumerics, RandomProblemsAreRightInAnyOrder) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Rng rng{seed, stream_of("fft numerics")};
    FftCase c = testing::random_fft_case(rng);
    const auto multiples = fft_multiples(c.method, c.problem, c.mesh);
    ASSERT_TRUE(multiples) << to_text(multiples.error());
    for (std::size_t d = 0; d < multiples->size(); ++d) c.problem.extents[d] = (*multiples)[d] * rng.between(1, 2);
    c.name += " seed " + std::to_string(seed);
    expect_right(c, worst);
    if (HasFatalFailure()) return;
  }
}

TEST(FftNumerics, BitsDoNotDependOnThreads) {
  for (const FftMethod method : {FftMethod::pencil, FftMethod::naive}) {
    FftCase c = testing::fft_case(method, "x=4,y=2", "x,y,-", {32, 32, 32});
    c.problem.chunks = 2;
    const Schedule lowered = lowered_fft(c, ring_or_line());
    NumericOptions options;
    options.filling = Filling::uniform;
    options.threads = 1;
    const auto one = make_numeric_engine(options)->run(lowered);
    ASSERT_TRUE(one) << to_text(one.error());
    for (const int threads : {2, 3, 8}) {
      options.threads = threads;
      const auto many = make_numeric_engine(options)->run(lowered);
      ASSERT_TRUE(many) << to_text(many.error());
      EXPECT_TRUE(one->values == many->values) << threads;
    }
  }
}

// ---- Laws ----

using Complex = std::complex<double>;
using Numbers = std::vector<Complex>;  // a whole array, row-major

/// A program of one mesh, on numbers.
class Programs {
 public:
  explicit Programs(const Mesh& mesh) : mesh_{mesh}, builder_{mesh_, every_device(mesh_)} {}

  ProgramBuilder& builder() { return builder_; }
  Region block(const std::string& name, Role role, const Extents& extents, const std::vector<std::vector<AxisView>>& sharding) {
    std::vector<ShardedDimension> dimensions;
    for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], d < sharding.size() ? sharding[d] : std::vector<AxisView>{}});
    Buffer buffer = sharded_buffer(name, DType::c64, role, dimensions);
    return builder_.whole(builder_.add_buffer(std::move(buffer)));
  }
  /// The result of a transform of x, in memory of its own.
  Region transform(const FftCase& c, const FftProblem& problem, const Region& x, Tasks& ready, Role role) {
    const auto result = fft_result(c.method, problem, mesh_);
    EXPECT_TRUE(result) << to_text(result.error());
    const Region y = block(role == Role::output ? "Y" : "between", role, result->extents, result->sharding);
    ready = add_fft(builder_, c.method, problem, x, y, ready);
    return y;
  }
  void run(Filling filling) {
    schedule_ = {"laws", mesh_, {std::move(builder_).finish()}, {}};
    const auto lowered = lower(schedule_, ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    NumericOptions options;
    options.filling = filling;
    auto tensors = make_numeric_engine(options)->run(*lowered);
    ASSERT_TRUE(tensors) << to_text(tensors.error());
    tensors_ = *std::move(tensors);
  }
  /// What all devices hold of a buffer, put together.
  [[nodiscard]] Numbers whole(const Region& of, const Extents& extents, const std::vector<std::vector<AxisView>>& sharding) const {
    Numbers numbers(static_cast<std::size_t>(element_count(extents)));
    for (int device = 0; device < mesh_.devices(); ++device) {
      const std::vector<float>& words = tensors_.values[static_cast<std::size_t>(device)][of.buffer.index()];
      const Extents local = lengths_of(of);
      for (std::size_t e = 0; e < words.size() / 2; ++e) {
        std::int64_t rest = static_cast<std::int64_t>(e), stride = 1, at = 0;
        for (std::size_t d = extents.size(); d-- > 0;) {
          std::int64_t position = 0;
          for (const AxisView& axis : sharding[d]) position = position * axis.size + mesh_.coordinate(DeviceId{device}, axis);
          at += (position * local[d] + rest % local[d]) * stride;
          rest /= local[d];
          stride *= extents[d];
        }
        numbers[static_cast<std::size_t>(at)] = {words[2 * e], words[2 * e + 1]};
      }
    }
    return numbers;
  }

 private:
  Mesh mesh_;
  ProgramBuilder builder_;
  Schedule schedule_;
  Tensors tensors_;
};

std::vector<FftCase> law_cases() {
  using enum FftMethod;
  std::vector<FftCase> cases{testing::fft_case(pencil, "x=4,y=2", "x,y,-", {8, 8, 12}), testing::fft_case(slab, "x=4,y=2", "x+y,-", {16, 24}),
                             testing::fft_case(four_step, "x=4,y=2", "x+y", {1024}), testing::fft_case(naive, "x=4,y=2", "x,y,-", {8, 8, 12})};
  for (std::size_t c = cases.size(); c-- > 0;)
    for (const FftOrder order : {FftOrder::natural, FftOrder::transposed}) {
      cases[c].problem.order = order;
      cases[c].problem.slice_copies = order == FftOrder::natural;
      cases[c].problem.chunks = cases[c].method == four_step ? 2 : 1;
      if (order == FftOrder::natural) cases.push_back(cases[c]);
    }
  return cases;
}

/// The number of an element of what is stored in the transform.
std::int64_t number_in_transform(const FftResult& result, std::int64_t stored) {
  Extents at(result.extents.size());  // in the view
  for (std::size_t d = result.extents.size(); d-- > 0; stored /= result.extents[d]) at[static_cast<std::size_t>(result.permutation[d])] = stored % result.extents[d];
  std::int64_t number = 0;
  for (std::size_t d = 0; d < at.size(); ++d) number = number * result.view[d] + at[d];
  return number;
}

/// Sum over dimensions of index i times index j over the extent.
double phase(const Extents& extents, std::int64_t i, std::int64_t j) {
  double turns = 0;
  for (std::size_t d = extents.size(); d-- > 0; i /= extents[d], j /= extents[d])
    turns += static_cast<double>(i % extents[d] * (j % extents[d]) % extents[d]) / static_cast<double>(extents[d]);
  return turns;
}

TEST(FftNumerics, AConstantBecomesOnePeak) {
  for (const FftCase& c : law_cases()) {
    SCOPED_TRACE(c.name);
    Programs program{c.mesh};
    Tasks ready;
    const Region x = program.block("X", Role::input, c.problem.extents, c.problem.sharding), y = program.transform(c, c.problem, x, ready, Role::output);
    program.run(Filling::ones);
    const FftResult result = *fft_result(c.method, c.problem, c.mesh);
    const Numbers found = program.whole(y, result.extents, result.sharding);
    const auto n = static_cast<double>(found.size());
    EXPECT_NEAR(std::abs(found[0] - Complex{n, 0}), 0, 1e-5 * n);
    for (std::size_t e = 1; e < found.size(); ++e) ASSERT_NEAR(std::abs(found[e]), 0, 1e-5 * n) << e;
  }
}

TEST(FftNumerics, AShiftedPeakBecomesAPhaseRamp) {
  for (const FftCase& c : law_cases()) {
    SCOPED_TRACE(c.name);
    // 1 at element (1,0,..,5) of the first device's block, 0 elsewhere.
    Programs program{c.mesh};
    const Region x = program.block("X", Role::input, c.problem.extents, c.problem.sharding), z = program.builder().scratch("peak", lengths_of(x), DType::c64);
    Tasks ready{program.builder().add("clear", Local{.kind = LocalKind::scale, .reads = {x}, .writes = {z}, .factor = 0}, Tasks{})};
    Region one = z, from = x;
    Extents peak(c.problem.extents.size(), 0);
    peak.back() = 5;
    if (peak.size() > 1) peak.front() = 1;
    for (std::size_t d = 0; d < peak.size(); ++d) one = with(one, d, span(peak[d], 1)), from = with(from, d, span(peak[d], 1));
    Guard first;
    for (int a = 0; a < static_cast<int>(c.mesh.axes().size()); ++a) first.push_back({own(c.mesh.whole(a)), 0, 1});
    ready.push_back(program.builder().add("peak", Local{.kind = LocalKind::copy, .reads = {from}, .writes = {one}}, ready, first));
    const Region y = program.transform(c, c.problem, z, ready, Role::output);
    program.run(Filling::ones);
    const FftResult result = *fft_result(c.method, c.problem, c.mesh);
    const Numbers found = program.whole(y, result.extents, result.sharding);
    std::int64_t p = 0;
    for (std::size_t d = 0; d < peak.size(); ++d) p = p * c.problem.extents[d] + peak[d];
    for (std::size_t e = 0; e < found.size(); ++e) {
      const double turns = phase(c.problem.extents, p, number_in_transform(result, static_cast<std::int64_t>(e)));
      ASSERT_NEAR(std::abs(found[e] - std::polar(1.0, -2 * std::numbers::pi * turns)), 0, 1e-5) << e;
    }
  }
}

TEST(FftNumerics, ParsevalHolds) {
  for (const FftCase& c : law_cases()) {
    SCOPED_TRACE(c.name);
    Programs program{c.mesh};
    Tasks ready;
    const Region x = program.block("X", Role::input, c.problem.extents, c.problem.sharding), y = program.transform(c, c.problem, x, ready, Role::output);
    program.run(Filling::uniform);
    const FftResult result = *fft_result(c.method, c.problem, c.mesh);
    double energy = 0, of_transform = 0;
    for (const Complex& value : program.whole(x, c.problem.extents, c.problem.sharding)) energy += std::norm(value);
    for (const Complex& value : program.whole(y, result.extents, result.sharding)) of_transform += std::norm(value);
    EXPECT_NEAR(of_transform / static_cast<double>(element_count(c.problem.extents)) / energy, 1, 1e-5);
  }
}

TEST(FftNumerics, TheInverseOfTheTransformIsTheArray) {
  for (const FftCase& c : law_cases()) {
    SCOPED_TRACE(c.name);
    if (c.method == FftMethod::four_step && c.problem.order == FftOrder::transposed) continue;  // stored as a matrix
    Programs program{c.mesh};
    Tasks ready;
    const Region x = program.block("X", Role::input, c.problem.extents, c.problem.sharding), t = program.transform(c, c.problem, x, ready, Role::scratch);
    const FftResult there = *fft_result(c.method, c.problem, c.mesh);
    FftProblem inverse = c.problem;
    inverse.inverse = true;
    inverse.extents = there.extents;
    inverse.sharding = there.sharding;
    const Region y = program.transform(c, inverse, t, ready, Role::output);
    program.run(Filling::uniform);
    const FftResult back = *fft_result(c.method, inverse, c.mesh);
    const Numbers array = program.whole(x, c.problem.extents, c.problem.sharding), found = program.whole(y, back.extents, back.sharding);
    // Both may have turned the dimensions.
    for (std::size_t e = 0; e < found.size(); ++e) {
      const std::int64_t number = number_in_transform(there, number_in_transform(back, static_cast<std::int64_t>(e)));
      ASSERT_NEAR(std::abs(found[e] - array[static_cast<std::size_t>(number)]), 0, 1e-5) << e;
    }
  }
}

}  // namespace
}  // namespace podsim
