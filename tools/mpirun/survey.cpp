#include "tools/mpirun/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "topologies/machines.hpp"
#include "validation/calibration/fit/predict.hpp"

namespace podsim {

namespace {

constexpr std::int64_t KiB = 1024;
constexpr int least_runs = 10, most_runs = 2000;

struct Extents3 {
  std::int64_t m, n, k;  // of each device's product
};

class Points {
 public:
  Points(const System& system, int ranks, Bytes most) : system_{system}, ranks_{ranks}, most_{most} {}

  Status add(Observation observation) {
    observation.dtype = DType::f32;
    auto lowered = lowered_schedule_of(observation, system_);
    if (!lowered) return lowered.error();
    points_.push_back({std::move(observation), *std::move(lowered)});
    return success();
  }

  /// A product with an all-gather of the left operand's rows, or with a reduce-scatter of the result's; extents of one rank's product.
  Status add_with_product(ObservedOp op, ObservedSchedule schedule, const Extents3& each) {
    const std::int64_t m = (each.m + ranks_ - 1) / ranks_ * ranks_;  // rounded up to what divides
    const std::int64_t elements = op == ObservedOp::all_gather ? m / ranks_ * each.k : m * each.n;
    return add({.op = op, .devices = ranks_, .bytes = elements * size_of(DType::f32), .m = m, .n = each.n, .k = each.k, .schedule = schedule});
  }

  Status add_all() {
    Status added = success();
    const auto keep = [&](const Status& one) { added = added ? one : added; };
    using enum ObservedOp;
    if (ranks_ > 1) {
      for (const ObservedOp op : {all_gather, reduce_scatter, all_reduce, all_to_all, permute})
        for (std::int64_t bytes = 1 * KiB; bytes <= most_.count(); bytes *= 2) {
          const std::int64_t unit = 4 * ranks_;  // rounded up to what divides
          keep(add({.op = op, .devices = ranks_, .bytes = Bytes{(bytes + unit - 1) / unit * unit}, .schedule = ObservedSchedule::plain}));
        }
    }
    for (const auto& [m, n, k] : std::to_array<Extents3>({{128, 128, 128},
                                                          {256, 256, 256},
                                                          {384, 384, 384},
                                                          {512, 512, 512},
                                                          {512, 512, 256},
                                                          {256, 256, 64},
                                                          {256, 256, 1024},
                                                          {512, 512, 128},
                                                          {1024, 1024, 32},
                                                          {1024, 1024, 64},
                                                          {1024, 1024, 128},
                                                          {256, 1024, 256}}))
      keep(add({.op = matmul, .devices = 1, .m = m, .n = n, .k = k}));
    for (std::int64_t bytes = 16 * KiB; bytes <= most_.count(); bytes *= 2) keep(add({.op = hbm_copy, .devices = 1, .bytes = Bytes{bytes}}));
    if (ranks_ > 1)
      for (const Extents3& each : std::to_array<Extents3>({{256, 256, 64}, {256, 256, 256}, {1024, 1024, 64}, {256, 1024, 256}}))
        for (const ObservedOp op : {all_gather, reduce_scatter})
          for (const ObservedSchedule schedule : {ObservedSchedule::plain, ObservedSchedule::overlapped}) keep(add_with_product(op, schedule, each));
    return added;
  }

  std::vector<SurveyPoint> take() { return std::move(points_); }

 private:
  const System& system_;
  int ranks_;
  Bytes most_;
  std::vector<SurveyPoint> points_;
};

}  // namespace

Expected<std::vector<SurveyPoint>> survey_points(int ranks, Bytes most) {
  constexpr int most_ranks = 4096;
  if (ranks > most_ranks) return Diagnostic{{}, fmt::format("a survey is of at most {} ranks, found {}", most_ranks, ranks)};
  const auto machine = find_machine("ideal");
  if (!machine) return machine.error();
  const auto system = system_of_slice(*machine, fmt::format("{}", ranks));
  if (!system) return system.error();
  Points points{*system, ranks, most};
  if (const Status added = points.add_all(); !added) return added.error();
  return points.take();
}

Expected<std::vector<Observation>> survey(const std::vector<SurveyPoint>& points, const Team& team, Bytes limit, const SurveyEffort& effort,
                                          const std::function<void(int, std::size_t, Seconds)>& progress) {
  std::vector<Observation> found;
  for (const SurveyPoint& point : points) found.push_back(point.observation);
  for (int round = 0; round < effort.rounds; ++round)
    for (std::size_t p = 0; p < points.size(); ++p) {
      const auto runner = RankRunner::make(points[p].lowered, team, limit);
      if (const Status made = team.agree(runner ? success() : Status{runner.error()}); !made) return made.error();
      (*runner)->set_pacing({effort.between_looks, {}});
      Seconds least = minimum(measure(**runner, team, {least_runs, false, 1}));
      // All ranks have the same least, hence as many runs.
      const double runs = std::min(effort.each.count() / std::max(least.count(), 1e-9) - least_runs, double{most_runs});
      if (runs >= 1) least = std::min(least, minimum(measure(**runner, team, {static_cast<int>(runs), false, 1})));
      found[p].time = round == 0 ? least : std::min(found[p].time, least);
      progress(round, p, found[p].time);
    }
  return found;
}

}  // namespace podsim
