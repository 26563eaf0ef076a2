// FFTs as XLA compiles them: right on numbers, and with the passes that the compiled programs have.
#include "validation/calibration/fit/fft_schedule.hpp"

#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/numeric/check.hpp"
#include "validation/calibration/fit/predict.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

Observation observed_fft(ObservedOp op, std::vector<int> mesh, std::int64_t points = 16) {
  Observation o;
  o.op = op;
  o.mesh = std::move(mesh);
  o.devices = o.mesh[0] * o.mesh[1];
  o.points = points;
  o.bytes = Bytes{points * points * points / o.devices * 8};
  o.slice = o.devices > 8 ? "2x8" : "1x8";
  return o;
}

TEST(FftSchedule, ComputesTheTransform) {
  for (const ObservedOp op : {ObservedOp::fft, ObservedOp::ifft})
    for (const std::vector<int>& sizes : {std::vector{1, 8}, {8, 1}, {2, 4}, {4, 2}}) {
      const Mesh mesh = *Mesh::make({{"x", sizes[0], true}, {"y", sizes[1], true}});
      const auto schedule = fft_schedule(observed_fft(op, sizes), mesh);
      ASSERT_TRUE(schedule) << to_text(schedule.error());
      const auto lowered = lower(*schedule, *always("direct"));
      ASSERT_TRUE(lowered) << to_text(lowered.error());
      const auto report = check(*lowered, {});
      ASSERT_TRUE(report && report->ok) << (report ? to_text(report->problems) : to_text(report.error()));
    }
}

TEST(FftSchedule, HasThePassesOfTheCompiledPrograms) {
  const auto passes = [](ObservedOp op, std::vector<int> sizes) {
    const auto schedule = fft_schedule(observed_fft(op, sizes), *Mesh::make({{"x", sizes[0], true}, {"y", sizes[1], true}}));
    std::string text;
    for (const Task& task : schedule->programs[0].tasks)
      if (task.label != "view") text += (text.empty() ? "" : ", ") + task.label;
    return text;
  };
  EXPECT_EQ(passes(ObservedOp::fft, {2, 4}),
            "convert, fft, transpose, all-to-all, put together, fft, transpose, all-to-all, put together, fft");
  EXPECT_EQ(passes(ObservedOp::fft, {8, 1}), "convert, fft, transpose, fft, transpose, all-to-all, put together, fft");
  EXPECT_EQ(passes(ObservedOp::fft, {1, 8}), "convert, fft, transpose, all-to-all, put together, fft, transpose, fft");
  EXPECT_EQ(passes(ObservedOp::ifft, {1, 8}), "ifft, scale, transpose, all-to-all, put together, ifft, scale, transpose, ifft, scale");
}

TEST(FftSchedule, OfTwoNodesGoesOverTheNetworkOnce) {
  const auto system = system_of_slice(*find_machine("dgx_a100"), "2x8");
  ASSERT_TRUE(system) << to_text(system.error());
  const Observation o = observed_fft(ObservedOp::fft, {1, 16}, 512);
  const auto own = system_of(o, *system);
  ASSERT_TRUE(own) << to_text(own.error());
  EXPECT_EQ(to_text(own->mesh), "node=2,gpu=8");
  const auto slow = [&](double rate) {
    System changed = *system;
    changed.machine.link[0].bandwidth = BytesPerSecond{rate};
    const auto time = predict(o, *with_machine(*system, changed.machine));
    EXPECT_TRUE(time) << to_text(time.error());
    return time->count();
  };
  // Half of each block of 64 MiB leaves its node.
  EXPECT_NEAR(slow(1e9) - slow(2e9), 32.0 * 1048576 / efficiency_at(system->machine.software.efficiency[static_cast<std::size_t>(CostKind::all_to_all)], Bytes{64 << 20}) * 0.5e-9, 1e-6);
}

TEST(FftSchedule, NeedsItsSlice) {
  const auto schedule = fft_schedule(observed_fft(ObservedOp::fft, {2, 4}), *Mesh::make({{"row", 1, false}, {"col", 8, true}}));
  ASSERT_FALSE(schedule);
  EXPECT_EQ(to_text(schedule.error()), "an FFT needs the slice that it ran on: the column slice");
}

}  // namespace
}  // namespace podsim
