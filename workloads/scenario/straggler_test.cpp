// One slow device never makes a run faster, but for scheduling anomalies, which are named here: 200 random runs, each with and without it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {
namespace {

template <class T>
T one_of(const std::vector<T>& values, Rng& rng) {
  return values[rng.below(values.size())];
}

std::optional<System> random_system(Rng& rng) {
  const std::string name = one_of<std::string>({"ideal", "tpu_v4", "tpu_v5e", "tpu_v5p", "dgx_a100", "dgx_h100"}, rng);
  const std::vector<std::vector<int>> slices = name.starts_with("dgx")                       ? std::vector<std::vector<int>>{{1, 8}, {2, 8}, {3, 8}}
                                               : name == "tpu_v4" || name == "tpu_v5p" ? std::vector<std::vector<int>>{{2, 2, 2}, {2, 2, 4}, {2, 4, 2}}
                                                                                       : std::vector<std::vector<int>>{{2, 4}, {4, 4}, {3, 5}};
  SystemSpec spec;
  spec.machine = *find_machine(name);
  spec.slice = Slice{one_of(slices, rng), false};
  const std::vector<int>& extents = spec.slice->extents;
  if (extents.size() == 3) spec.mesh = {{"row", extents[0] * extents[1]}, {"col", extents[2]}};
  if (rng.below(4) == 0) spec.machine.software.core_share.fill(0.1 * rng.between(1, 5));
  if (name == "ideal") {  // everything takes time, in unlike measures
    spec.machine.chip.peak.fill(FlopsPerSecond{rng.between(1, 9) * 1e12});
    spec.machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e10};
    spec.machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e9};
    for (LinkParameters& link : spec.machine.link) link = {BytesPerSecond{rng.between(1, 9) * 1e9}, Seconds{rng.between(0, 3) * 1e-7}};
  }
  auto system = make_system(spec);
  if (!system) return std::nullopt;
  return *std::move(system);
}

ProblemSpec random_gemm(Rng& rng) {
  GemmSpec spec;
  spec.algorithm = &gemm_algorithms()[rng.below(gemm_algorithms().size())];
  const auto extent = [&] { return std::int64_t{16} << rng.between(0, 7); };
  spec.problem = {extent(), extent(), extent(), DType::bf16, spec.algorithm->only.value_or(one_of<Dataflow>({Dataflow::os, Dataflow::ls, Dataflow::rs}, rng))};
  spec.pass = one_of<Pass>({Pass::forward, Pass::backward, Pass::both}, rng);
  spec.pad = true;
  if (spec.algorithm->takes_slice_count || spec.algorithm->needs_slice_count) spec.options.slice_count = one_of<std::int64_t>({1, 2, 4}, rng);
  spec.options.prefetch = rng.between(0, 2);
  return spec;
}

ProblemSpec random_collective(const System& system, Rng& rng) {
  CollectiveSpec spec;
  using enum CollectiveKind;
  spec.kind = one_of<CollectiveKind>({all_gather, reduce_scatter, reduce_scatter, all_reduce, all_reduce, all_reduce, reduce, all_to_all}, rng);
  if (rng.below(3) == 0) spec.axes = {one_of<std::string>({"row", "col"}, rng)};
  spec.input = Bytes{(std::int64_t{2 * system.mesh.devices()} << rng.between(0, 16)) * rng.between(1, 3)};
  const auto algorithms = collective_algorithms();
  spec.policy.algorithm = algorithms[rng.below(algorithms.size())].name;
  return spec;
}

struct Case {
  System system;
  ProblemSpec problem;
  SlowDevices slow;
};

std::optional<Case> random_case(Rng& rng) {
  auto system = random_system(rng);
  if (!system) return std::nullopt;
  ProblemSpec problem = rng.below(2) == 0 ? random_gemm(rng) : random_collective(*system, rng);
  auto used = system_for(problem, *system);
  if (!used) return std::nullopt;
  return Case{*std::move(used), std::move(problem),
              {ChipId{rng.below(static_cast<std::uint64_t>(system->layout.chips()))}, 0, 1 - 0.1 * rng.between(1, 8)}};
}

/// nullopt: the algorithm does not take the problem.
std::optional<Run> run_on(const System& system, const ProblemSpec& spec, std::string_view engine) {
  const auto problem = make_problem(system, spec);
  if (!problem) return std::nullopt;
  RunOptions options;
  options.engine = *timing_engine(engine);
  auto run = simulate(system, *problem, options);
  if (!run) return std::nullopt;
  return *std::move(run);
}

/// One case without and with its slow device.
struct Comparison {
  Picoseconds before, after;
  std::string algorithm, text;

  /// By more than rounding: ends of flows are rounded to picoseconds, one after the other.
  [[nodiscard]] bool faster() const { return after + Picoseconds{2 + before.count() / 1'000'000'000} < before; }
};

std::optional<Comparison> compare(std::uint64_t seed, std::string_view engine) {
  Rng rng{seed, 4};
  const auto c = random_case(rng);
  if (!c) return std::nullopt;
  const auto healthy = run_on(c->system, c->problem, engine);
  if (!healthy) return std::nullopt;
  const auto with_straggler = with_faults(c->system, {.slow_devices = {c->slow}});
  const auto slow = with_straggler ? run_on(*with_straggler, c->problem, engine) : std::nullopt;
  EXPECT_TRUE(slow) << "seed " << seed;
  if (!slow) return std::nullopt;
  Comparison found{healthy->timeline.makespan, slow->timeline.makespan, healthy->row.problem.algorithm, {}};
  found.text = fmt::format("seed {}, {}: {} ps without the slow device, {} with it: {}, {}, {}, chip {} at {}", seed, engine, found.before.count(),
                           found.after.count(), to_text(c->system), healthy->lowered->name, found.algorithm, c->slow.chip->index(), c->slow.speed);
  return found;
}

/// List-scheduling anomalies: a later start changes which transfers share links, and the new order is the better one. 19 of 14,000 cases; in all of them
/// transfers that the algorithm takes for independent meet on links: those that go back over an axis without wraparound, and rings through rails. A new row
/// in a table of algorithms makes other cases of the seeds.
struct Anomaly {
  std::uint64_t seed;
  std::string_view what;
};
constexpr std::array anomalies{Anomaly{269, "tpu_v5e 3x5 as ring=15, 1d-ls: what goes round comes back over the line: 0.01 % faster"},
                               Anomaly{339, "tpu_v5e 2x4 as ring=8, jax-ag-bidirectional, likewise: 0.2 %"},
                               Anomaly{7068, "tpu_v5e 4x4 as ring=16, jax-ag-plain, likewise: 0.3 %"},
                               Anomaly{11137, "tpu_v5e 4x4 as ring=16, jax-rs-plain, likewise: 1.1 %"},
                               Anomaly{11529, "ideal 3x5, reduce-scatter by channels, whose rings share rails round an odd number of nodes: 0.1 %"},
                               Anomaly{12011, "ideal 4x4, cannon's skew beside itself: 0.1 %"}};

TEST(Straggler, NeverMakesARunFaster) {
  int compared = 0, slower = 0;
  std::set<std::string> algorithms;
  for (std::uint64_t seed = 0; compared < 240; ++seed) {
    const auto c = compare(seed, "des");
    if (!c) continue;
    const bool is_known = std::ranges::any_of(anomalies, [&](const Anomaly& anomaly) { return anomaly.seed == seed; });
    EXPECT_EQ(c->faster(), is_known) << c->text;
    ++compared;
    slower += c->after > c->before;
    algorithms.insert(c->algorithm);
  }
  EXPECT_GT(slower, 100) << "of " << compared;
  EXPECT_GT(algorithms.size(), 25U);
}

/// The analytic engine shares no links: so it is the sharing that makes them faster.
TEST(Straggler, MakesNamedAnomaliesFasterByTheOrderInWhichLinksAreShared) {
  for (const auto& [seed, what] : anomalies) {
    SCOPED_TRACE(what);
    const auto shared = compare(seed, "des"), unshared = compare(seed, "analytic");
    ASSERT_TRUE(shared && unshared);
    EXPECT_TRUE(shared->faster()) << "no anomaly any more: " << shared->text;
    EXPECT_GT(static_cast<double>(shared->after.count()), 0.98 * static_cast<double>(shared->before.count())) << shared->text;
    EXPECT_FALSE(unshared->faster()) << unshared->text;
  }
}

}  // namespace
}  // namespace podsim
