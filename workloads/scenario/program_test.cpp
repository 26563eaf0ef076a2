// Sharded programs through all engines: numbers, times, traffic.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/lower.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"
#include "workloads/sharded/test_table.hpp"
#include "workloads/sharded/testing.hpp"
#include "workloads/sharded/write.hpp"

namespace podsim::testing {
namespace {

ProgramSpec spec_on(const System& system, const std::string& text, const std::string& shapes, const std::string& shards = "", const std::string& outs = "",
                    Choose choose = Choose::bytes) {
  ProgramText program = program_text(text, shapes, shards, outs);
  auto read = read_program(program, system.mesh);
  EXPECT_TRUE(read) << to_text(read.error());
  return {*std::move(read), choose};
}

Schedule lowered_with_rings(const Schedule& schedule) {
  auto lowered = lower(schedule, ring_or_line());
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return *std::move(lowered);
}

TEST(Program, EveryRowOfTheTableIsTheTrafficOfItsRun) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4x2"}, {"mesh", "x=4,y=2"}});
  for (const TableRow& row : table_rows)
    for (const bool scattered : {false, true}) {
      if (scattered && row.scattered.empty()) continue;
      SCOPED_TRACE(row.a + " @ " + row.b);
      const ProgramSpec spec = spec_on(system, "C = A @ B", "A=48x24; B=24x96", "A=" + row.a + "; B=" + row.b, scattered ? "C=" + row.scattered : "", Choose::by_default);
      const auto run = simulate(system, pose(system, spec, {})->problem);
      ASSERT_TRUE(run) << to_text(run.error());
      for (const DeviceMetrics& device : measure_devices(run->model, run->timeline))
        EXPECT_EQ(device.received.count(), scattered ? row.scattered_received : row.received);
    }
}

TEST(Program, AllShardingsAreConvertedRightly) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4x2"}, {"mesh", "x=4,y=2"}});
  const std::vector<std::string> specs{"-,-", "x,-", "-,x", "y,-", "-,y", "x,y", "y,x", "(x+y),-", "(y+x),-", "-,(x+y)", "-,(y+x)"};
  for (const std::string& from : specs)
    for (const std::string& to : specs) {
      SCOPED_TRACE(from + " to " + to);
      const ProgramSpec spec = spec_on(system, "B = reshard(A, " + to + ")", "A=16x8", "A=" + from);
      const auto posed = pose(system, spec, {});
      ASSERT_TRUE(posed) << to_text(posed.error());
      CheckOptions options;
      options.threads = 1;
      options.random_orders = 1;
      const auto report = check(lowered_with_rings(posed->problem.schedule), options);
      ASSERT_TRUE(report) << to_text(report.error());
      EXPECT_TRUE(report->ok) << to_text(report->problems);
    }
}

// ---- Random programs ----

class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : rng_{seed, stream_of("programs")} {
    const int count = 1 + static_cast<int>(rng_.below(3));
    int devices = 1;
    for (int a = 0; a < count; ++a) {
      const int size = 2 + static_cast<int>(rng_.below(3));
      if (devices * size > 16) break;
      axes_.emplace_back(1, static_cast<char>('x' + a));
      sizes_.push_back(size);
      devices *= size;
    }
    const int statements = 1 + static_cast<int>(rng_.below(6));
    for (int s = 0; s < statements; ++s) add_statement(s);
  }

  std::string mesh, text, shapes, shards;

  void name_mesh() {
    for (std::size_t a = 0; a < axes_.size(); ++a) mesh += fmt::format("{}{}={}", a > 0 ? "," : "", axes_[a], sizes_[a]);
  }

 private:
  /// Every array is square, of a side that all axes together divide.
  static constexpr int side = 144;

  std::string spec() {
    std::vector<std::string> left = axes_, dims{"", ""};
    for (std::size_t a = left.size(); a > 1; --a) std::swap(left[a - 1], left[rng_.below(a)]);
    for (const std::string& axis : left) {
      const auto d = rng_.below(3);
      if (d < 2) dims[d] += (dims[d].empty() ? "" : "+") + axis;
    }
    std::string result;
    for (const std::string& dim : dims) result += (result.empty() ? "" : ",") + (dim.empty() ? "-" : "(" + dim + ")");
    return result;
  }

  std::string operand() {
    if (!made_.empty() && rng_.below(3) > 0) return made_[rng_.below(made_.size())];
    const std::string name = fmt::format("I{}", inputs_++);
    shapes += fmt::format("{}{}={}x{}", shapes.empty() ? "" : "; ", name, side, side);
    shards += fmt::format("{}{}={}", shards.empty() ? "" : "; ", name, spec());
    return name;
  }

  std::string axis() { return axes_[rng_.below(axes_.size())]; }

  std::string expression() {
    switch (rng_.below(14)) {
      case 0:
      case 1:
      case 2: return operand() + " @ " + operand();
      case 3: return operand() + ".T @ " + operand();
      case 4: return operand() + " @ " + operand() + ".T";
      case 5: return operand() + " + " + operand();
      case 6: return operand() + " - 2 * " + operand();
      case 7: return "(" + operand() + " @ " + operand() + ") + " + operand();
      case 8: return "relu(" + operand() + ")";
      case 9: return "reshard(" + operand() + ", " + spec() + ")";
      case 10: return operand() + " * " + operand() + " - 1";
      case 11: return operand() + " + sum(" + operand() + ", 0)";
      case 12: return fmt::format("ppermute(reshard({}, {}), {}, {})", operand(), spec(), axis(), static_cast<int>(rng_.below(5)) - 2);
      default: return fmt::format("gelu({}) / 4", operand());
    }
  }

  void add_statement(int s) {
    const std::string name = fmt::format("S{}", s);
    text += fmt::format("{}{} = {}", s > 0 ? "; " : "", name, expression());
    made_.push_back(name);
  }

  Rng rng_;
  std::vector<std::string> axes_, made_;
  std::vector<int> sizes_;
  int inputs_ = 0;
};

class RandomPrograms : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomPrograms, GiveTheRightNumbersAndEqualTimesOnAllEngines) {
  constexpr std::uint64_t per_test = 30;
  Agreement agreement;
  Folds folds;
  for (std::uint64_t seed = GetParam() * per_test; seed < (GetParam() + 1) * per_test; ++seed) {
    RandomProgram program{seed};
    program.name_mesh();
    SCOPED_TRACE(fmt::format("seed {}: mesh {}, {}; {}; {}", seed, program.mesh, program.text, program.shapes, program.shards));
    const System system = system_with({{"machine", "tpu_v4"}, {"mesh", program.mesh}, {"set", "chip.float32_passes=1"}});
    const auto choose = static_cast<Choose>(seed % 2);
    const ProgramSpec spec = spec_on(system, program.text, program.shapes, program.shards, "", choose);
    const auto posed = pose(system, spec, {});
    ASSERT_TRUE(posed) << to_text(posed.error());
    const Schedule lowered = lowered_with_rings(posed->problem.schedule);
    CheckOptions options;
    options.threads = 1;
    options.random_orders = 1;
    const auto report = check(lowered, options);
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
    const auto model = make_model(lowered, system.machine, *system.topology, system.placement);
    ASSERT_TRUE(model) << to_text(model.error());
    EXPECT_TRUE(engines_agree(*model, 1e-6, agreement));
    EXPECT_TRUE(folding_changes_nothing(lowered, World{system.machine, system.topology, system.placement}, folds));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range<std::uint64_t>(0, test::cases(10, 3)));

}  // namespace
}  // namespace podsim::testing
