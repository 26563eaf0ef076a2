// The worked problems of the scaling book: podsim's answer is what the reading in README.md says to the picosecond, and the book's answer, from
// worked_problems.csv, within its rounding, or as far from it as README.md says.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "algorithms/collectives/testing.hpp"
#include "sim/schedule/testing.hpp"
#include "topologies/machines.hpp"
#include "topologies/networks.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;
using testing::Writer;

constexpr double link = 45e9;           // one direction
constexpr double both_ways = 2 * link;  // what the book calls bidirectional bandwidth
constexpr double hop = 1e-6;
constexpr double book_rounding = 0.02;  // the book's two digits
constexpr double one_event = 1e-12;

/// The book's answer to a problem, seconds.
double book(const std::string& id) {
  std::ifstream file(std::string{PODSIM_SOURCE_DIR} + "/validation/worked_problems/worked_problems.csv");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields{line};
    std::string name, chip, problem, answer;
    std::getline(fields, name, ',');
    if (name != id) continue;
    for (std::string* field : {&chip, &problem, &answer}) std::getline(fields, *field, ',');
    return std::stod(answer) * 1e-6;
  }
  ADD_FAILURE() << "no problem " << id;
  return 0;
}

/// Only bandwidth and a latency per hop cost anything.
SmallSystem pod(const std::vector<int>& extents, bool wraps, double latency) { return small_system(ideal_machine(link, latency), extents, wraps); }

void expect_time(const SmallSystem& pod, const Schedule& schedule, double seconds) {
  for (const std::string_view engine : {"des", "simgrid"})
    EXPECT_NEAR(testing::seconds_of(pod, schedule, engine), seconds, 64 * one_event + 1e-9 * seconds) << engine;
}

void expect_time(const SmallSystem& pod, CollectiveKind kind, const std::vector<std::string>& axes, std::int64_t bytes, std::string_view algorithm,
                 double seconds) {
  SCOPED_TRACE(algorithm);
  expect_time(pod, testing::lowered_collective(pod, kind, axes, Bytes{bytes}, algorithm, {}, {}, DType::bf16), seconds);
}

void expect_about(double seconds, const std::string& id) { EXPECT_NEAR(seconds / book(id), 1, book_rounding) << id; }

/// Sends to (0,0), each half of `elements` in one order of dimensions where two orders differ in the port that they arrive at, else all of it.
/// From every chip, or from the far corner only.
class ToCorner {
 public:
  ToCorner(const SmallSystem& pod, std::int64_t elements, bool from_all) : w_{pod.mesh} {
    data_ = w_.scratch("data", {elements}, DType::bf16);
    arrivals_ = w_.scratch("arrivals", {pod.mesh.devices(), elements}, DType::bf16);
    const int rows = pod.mesh.axes()[0].size, columns = pod.mesh.axes()[1].size;
    for (int row = 0; row < rows; ++row)
      for (int col = 0; col < columns; ++col) {
        if (row + col == 0 || (!from_all && (row != rows - 1 || col != columns - 1))) continue;
        const bool two_ports = row > 0 && col > 0;
        const std::int64_t first = two_ports ? elements / 2 : elements;
        transfer(row, col, columns, 0, first, {0, 1});
        if (two_ports) transfer(row, col, columns, first, elements - first, {1, 0});
      }
  }
  [[nodiscard]] const Schedule& schedule() const { return w_.schedule; }

 private:
  void transfer(int row, int col, int columns, std::int64_t begin, std::int64_t length, std::vector<int> order) {
    const auto at = [&](int r, int c) { return Guard{{own(w_.axis(0), 0, false), r, r + 1}, {own(w_.axis(1), 0, false), c, c + 1}}; };
    const std::int64_t from = row * columns + col;
    const Region landing{arrivals_, {span(from, 1), span(begin, length)}};
    w_.add("send", Send{channel_, {Affine{0}, Affine{0}}, testing::part(data_, begin, length), std::move(order)}, {}, at(row, col));
    w_.add("receive", Recv{channel_, {Affine{row}, Affine{col}}, landing, Combine::replace}, {}, at(0, 0));
    ++channel_;
  }

  Writer w_;
  BufferId data_, arrivals_;
  int channel_ = 0;
};

TEST(WorkedProblems, Q5TheFirstByteTakesSixHopsFromCornerToCorner) {
  const SmallSystem corner = pod({4, 4}, false, hop);
  expect_time(corner, ToCorner{corner, 2, false}.schedule(), 6 * hop + 2 / link);  // two bytes on each port
  EXPECT_EQ(book("tpus.Q5.first"), 6 * hop);
}

TEST(WorkedProblems, Q5BothPortsCarryHalfOfWhatGoesFromCornerToCorner) {
  const std::int64_t elements = 8 * 128 * 8192;
  const SmallSystem corner = pod({4, 4}, false, hop);
  const double seconds = 6 * hop + 2.0 * elements / both_ways;
  expect_time(corner, ToCorner{corner, elements, false}.schedule(), seconds);
  expect_about(seconds, "tpus.Q5.total");
}

TEST(WorkedProblems, Q6TheLinksOfTheCornerSetTheTimeOfAGather) {
  const std::int64_t elements = 500'000'000;  // 1 GB a chip; the corner has its own
  const SmallSystem corner = pod({4, 4}, false, 0);
  const double seconds = 15 * 2.0 * elements / both_ways;
  expect_time(corner, ToCorner{corner, elements, true}.schedule(), seconds);
  expect_about(seconds, "tpus.Q6b");
}

TEST(WorkedProblems, PopQuiz2aOnAnOpenAxisTakesThreeStepsOfWholeShards) {
  const std::int64_t shard = 2 * 2048 * 8192 / 4;
  const double seconds = 3 * (hop + shard / link);
  expect_time(pod({4}, false, hop), CollectiveKind::all_gather, {"row"}, shard, "line", seconds);
  expect_about(seconds, "sharding.PopQuiz2a.open");
}

TEST(WorkedProblems, PopQuiz2aTwoWaysRoundIsTheRingOfWholeShards) {
  const std::int64_t shard = 2 * 2048 * 8192 / 4;
  const double seconds = 2 * (hop + shard / link);  // array / bidirectional bandwidth, and two hops
  expect_time(pod({4}, true, hop), CollectiveKind::all_gather, {"row"}, shard, "ring-shortest", seconds);
  expect_about(seconds, "sharding.PopQuiz2a.wrap");
}

TEST(WorkedProblems, PopQuiz2aHalvesBothWaysLeaveOutTheOwnShard) {
  const std::int64_t shard = 2 * 2048 * 8192 / 4;
  expect_time(pod({4}, true, hop), CollectiveKind::all_gather, {"row"}, shard, "ring", 3 * hop + 3.0 / 4 * 4 * shard / both_ways);
}

TEST(WorkedProblems, PopQuiz2bIsThreeHopsOnceTheBytesAreFree) {
  const std::int64_t shard = 2 * 256 * 256 / 4;
  expect_time(pod({4}, false, hop), CollectiveKind::all_gather, {"row"}, shard, "line", 3 * (hop + shard / link));
  expect_time(small_system(ideal_machine(1e18, hop), {4}, false), CollectiveKind::all_gather, {"row"}, shard, "line", book("sharding.PopQuiz2b"));
}

TEST(WorkedProblems, Q2AllGatherOnOneAxis) {
  const std::int64_t shard = 2 * 1024 * 4096 / 16;  // sharded along x and y
  const double seconds = 4.0 * shard / both_ways;
  const SmallSystem cube = pod({4, 4, 4}, true, 0);
  expect_time(cube, CollectiveKind::all_gather, {"row"}, shard, "ring-shortest", seconds);
  expect_time(cube, CollectiveKind::all_gather, {"row"}, shard, "ring", 3.0 / 4 * seconds);
  expect_about(seconds, "sharding.Q2.1");
}

TEST(WorkedProblems, Q2AllGatherOnTwoAxes) {
  const std::int64_t array = 2 * 1024 * 4096;
  const double seconds = array / (2 * both_ways);  // the book's: the whole array over the links of both axes
  const SmallSystem cube = pod({4, 4, 4}, true, 0);
  expect_time(cube, CollectiveKind::all_gather, {"row", "col"}, array / 16, "rotations", 15.0 / 16 * seconds);  // all but the own shard
  expect_time(cube, CollectiveKind::all_gather, {"row", "col"}, array / 16, "ring", 15.0 / 8 * seconds);     // one axis after the other
  expect_about(seconds, "sharding.Q2.2");
}

TEST(WorkedProblems, Q2AllReduceOfTheWholeArray) {
  const std::int64_t array = 2 * 1024 * 4096;
  const double seconds = 2.0 * array / both_ways;
  const SmallSystem cube = pod({4, 4, 4}, true, 0);
  expect_time(cube, CollectiveKind::all_reduce, {"depth"}, array, "ring-shortest", seconds);
  expect_time(cube, CollectiveKind::all_reduce, {"depth"}, array, "ring", 3.0 / 4 * seconds);
  expect_about(seconds, "sharding.Q2.3");
}

/// Eight GPUs of a DGX H100 around their switch. The book counts neither latency nor launches.
void expect_time_on_h100(CollectiveKind kind, std::int64_t bytes, const std::vector<std::string>& algorithms, double seconds) {
  const auto machine = find_machine("dgx_h100");
  ASSERT_TRUE(machine) << to_text(machine.error());
  const LinkParameters nvlink{machine->link[1].bandwidth, {}};
  const auto node = crossbar(8, nvlink);
  ASSERT_TRUE(node) << to_text(node.error());
  const SmallSystem gpus = small_system(ideal_machine(nvlink.bandwidth.count()), {8});
  for (const std::string& algorithm : algorithms) {
    const Schedule schedule = testing::lowered_collective(gpus, kind, {"row"}, Bytes{bytes}, algorithm, {}, {}, DType::bf16);
    const auto model = make_model(schedule, gpus.machine, *node, gpus.placement);  // refers to the schedule
    ASSERT_TRUE(model) << to_text(model.error());
    for (const std::string_view engine : {"des", "simgrid"}) {
      const auto timeline = (*timing_engine(engine))->run(*model, {});
      ASSERT_TRUE(timeline) << to_text(timeline.error());
      EXPECT_NEAR(to_seconds(timeline->makespan).count(), seconds, 64 * one_event + 1e-9 * seconds) << algorithm << " " << engine;
    }
  }
}

TEST(WorkedProblems, GpuQuiz2EveryGpuReceivesSevenShards) {
  const std::int64_t shard = std::int64_t{2} * 4096 * 65536 / 8;
  const double seconds = 7.0 * static_cast<double>(shard) / 450e9;
  expect_time_on_h100(CollectiveKind::all_gather, shard, {"ring", "direct", "halving-doubling"}, seconds);
  expect_about(seconds, "gpus.Quiz2.Q3");
}

TEST(WorkedProblems, GpuAllReducesReachTheBusBandwidthOfTheDataSheet) {
  for (const auto& [id, bytes] : {std::pair{"gpus.AR", std::int64_t{10'000'000'000}}, {"gpus.AR.58MB", std::int64_t{2} * 8192 * 3584}}) {
    const double seconds = 2 * 7.0 / 8 * static_cast<double>(bytes) / 450e9;
    expect_time_on_h100(CollectiveKind::all_reduce, bytes, {"ring", "halving-doubling"}, seconds);
    expect_about(seconds, id);
  }
}

}  // namespace
}  // namespace podsim
