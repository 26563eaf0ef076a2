// What traces mean: schedules of hand-written traces, their times, and what is wrong with them.
#include "workloads/chakra/chakra_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/schedule/validate.hpp"
#include "workloads/chakra/groups.hpp"
#include "workloads/chakra/read_chakra.hpp"
#include "workloads/chakra/test_wire.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using namespace test;
using ::testing::ElementsAre;
using testing::system_with;
using Given = std::vector<std::pair<std::string, std::string>>;

Expected<ChakraSchedule> schedule_of(const Mesh& mesh, const std::vector<std::string>& traces, const ChakraGroups& groups = {},
                                     ChakraCost cost = ChakraCost::recorded) {
  return chakra_schedule(
      mesh, [&](int rank) { return parse_chakra(traces[static_cast<std::size_t>(rank)], "t." + std::to_string(rank) + ".et"); }, groups, cost);
}

/// Of traces that must be right.
Run run_of(const System& system, const std::vector<std::string>& traces, const ChakraGroups& groups = {}, ChakraCost cost = ChakraCost::recorded,
           const CollectivePolicy& policy = {}) {
  const auto schedule = schedule_of(system.mesh, traces, groups, cost);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  auto run = simulate(system, schedule->schedule, {}, policy);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}
Picoseconds time_of(const System& system, const std::vector<std::string>& traces, const ChakraGroups& groups = {},
                    ChakraCost cost = ChakraCost::recorded, const CollectivePolicy& policy = {}) {
  return run_of(system, traces, groups, cost, policy).timeline.makespan;
}

/// 100 GB/s in both directions, without latency.
System ring_of(int devices, Given more = {}) {
  Given given{{"machine", "ideal"}, {"slice", std::to_string(devices)}};
  given.insert(given.end(), more.begin(), more.end());
  return system_with(given);
}

std::string error_of(int devices, const std::vector<std::string>& traces, const ChakraGroups& groups = {}) {
  const auto schedule = schedule_of(ring_of(devices).mesh, traces, groups);
  return schedule ? "none" : to_text(schedule.error());
}

constexpr std::int64_t us = 1'000'000;

TEST(ChakraSchedule, ComputationsTakeTheirRecordedTimeOneAfterTheOther) {
  const std::string trace =
      metadata() + comp_micros(1, 3) + comp_micros(2, 4) + record(node(3, comp, {}, number(7, 9) + attribute("duration_ps", uint64_val, 123)));
  EXPECT_EQ(time_of(ring_of(1), {trace}), Picoseconds{7 * us + 123});
}

TEST(ChakraSchedule, ComputationsByFlopsFollowTheRoofline) {
  const std::string by_flops =
      metadata() + record(node(1, comp, {}, number(7, 50) + attribute("num_ops", int64_val, 100'000'000) + attribute("tensor_size", uint64_val, 8)));
  EXPECT_EQ(time_of(ring_of(1), {by_flops}), Picoseconds{50 * us}) << "recorded";
  EXPECT_EQ(time_of(ring_of(1), {by_flops}, {}, ChakraCost::flops), Picoseconds{us}) << "1e8 FLOPs at 100 TFLOP/s";
  const std::string by_bytes =
      metadata() + record(node(1, comp, {}, attribute("num_ops", int64_val, 1) + attribute("tensor_size", uint64_val, 5'000'000)));
  const System bound = ring_of(1, {{"set", "chip.hbm_bandwidth=1TB/s"}});
  EXPECT_EQ(time_of(bound, {by_bytes}), Picoseconds{5 * us}) << "nothing is recorded: by flops and bytes";
  EXPECT_EQ(time_of(bound, {metadata() + comp_micros(1, 7)}, {}, ChakraCost::flops), Picoseconds{}) << "neither flops nor bytes";
}

TEST(ChakraSchedule, DependenciesOfBothSortsAreWaitedFor) {
  const std::string all =
      metadata() + comp_micros(1, 2) + send_to(2, 1, 100'000, {1}) + record(node(3, comp, {}, bytes(4, varint(2)) + number(7, 5)));
  const std::string other = metadata() + recv_from(1, 0, 100'000);
  EXPECT_EQ(time_of(ring_of(2), {all, other}), Picoseconds{2 * us + us + 5 * us}) << "100 kB at 100 GB/s";
}

TEST(ChakraSchedule, HostComputationsRunBesideTheCoreOneAtATime) {
  const auto on_host = [](std::uint64_t id, std::uint64_t micros) {
    return record(node(id, comp, {}, number(7, micros) + attribute("is_cpu_op", bool_val, 1)));
  };
  EXPECT_EQ(time_of(ring_of(1), {metadata() + comp_micros(1, 6) + on_host(2, 3) + on_host(3, 4)}), Picoseconds{7 * us});
}

TEST(ChakraSchedule, MessagesMatchBySourceDestinationAndTagInOrder) {
  // The first with tag 5 is long, the second short; that with tag 6 comes first in the receiver's file.
  const std::string sends = metadata() + send_to(1, 1, 300'000, {}, 5) + send_to(2, 1, 100'000, {1}, 6) + send_to(3, 1, 200'000, {2}, 5);
  const std::string receives =
      metadata() + recv_from(1, 0, 100'000, {}, 6) + recv_from(2, 0, 300'000, {}, 5) + recv_from(3, 0, 200'000, {2}, 5) + comp_micros(4, 1, {1});
  EXPECT_EQ(time_of(ring_of(2), {sends, receives}), Picoseconds{6 * us});
  EXPECT_EQ(error_of(2, {sends, metadata() + recv_from(1, 0, 100'000, {}, 6) + recv_from(2, 0, 300'000, {}, 5)}),
            "t.0.et: record 3: expected rank 1 to receive message 1 from rank 0 to rank 1 with tag 5, found no receive");
  EXPECT_EQ(error_of(2, {metadata(), metadata() + recv_from(1, 0, 100)}),
            "t.1.et: record 1: expected rank 0 to send message 0 from rank 0 to rank 1 with tag 0, found no send");
  EXPECT_EQ(
      error_of(2, {metadata() + send_to(1, 1, 100), metadata() + recv_from(1, 0, 102)}),
      "t.0.et: record 1: expected message 0 from rank 0 to rank 1 with tag 0 to have the 102 bytes that record 1 of t.1.et receives, found 100");
  EXPECT_EQ(error_of(2, {metadata() + send_to(1, 0, 100), metadata()}),
            "t.0.et: record 1: attribute comm_dst: expected another rank from 0 to 1, found 0");
  EXPECT_EQ(error_of(2, {metadata() + send_to(1, 2, 100), metadata()}),
            "t.0.et: record 1: attribute comm_dst: expected another rank from 0 to 1, found 2");
  EXPECT_EQ(error_of(2, {metadata() + record(node(1, comm_recv)), metadata()}), "t.0.et: record 1: attribute comm_src is missing");
}

TEST(ChakraSchedule, AMessageNeverWaitsForItsReceiver) {
  // As thread blocks of a ring do: everybody sends, then receives, then sends on. With a rendezvous nobody could begin.
  const std::string sender = metadata() + send_to(1, 1, 100'000),
                    busy = metadata() + comp_micros(1, 5) + recv_from(2, 0, 100'000, {1}) + comp_micros(3, 2, {2});
  EXPECT_EQ(time_of(ring_of(2), {sender, busy}), Picoseconds{7 * us}) << "it has arrived before rank 1 asks for it";
  const std::string late = metadata() + comp_micros(1, 9) + send_to(2, 1, 100'000, {1});
  EXPECT_EQ(time_of(ring_of(2), {late, busy}), Picoseconds{12 * us});
}

/// The trace of a rank of a ring all-reduce of n messages of `size`: sends, and receives that are added in `reduction` microseconds.
std::string ring_all_reduce(int rank, int n, std::uint64_t size, std::uint64_t reduction) {
  std::string trace = metadata("1.0.2-chakra.0.0.4");
  std::uint64_t id = 0;
  const auto after = [&] { return id == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{id - 1}; };
  for (int step = 0; step < 2 * (n - 1); ++step) {
    trace += send_to(id, (rank + 1) % n, size, after()), ++id;
    trace += recv_from(id, (rank + n - 1) % n, size, after()), ++id;
    if (step < n - 1) trace += comp_micros(id, reduction, after()), ++id;
  }
  return trace;
}

TEST(ChakraSchedule, ARingOfSendsTakesItsStepsAndItsReductions) {
  for (const int n : {2, 3, 4, 8}) {
    std::vector<std::string> traces;
    for (int rank = 0; rank < n; ++rank) traces.push_back(ring_all_reduce(rank, n, 131'072, 7));
    const podsim::Run run = run_of(ring_of(n), traces);
    EXPECT_EQ(run.timeline.makespan, Picoseconds{2 * (n - 1) * 1'310'720 + (n - 1) * 7 * us}) << n;
    EXPECT_EQ(run.row.result.device_classes, 1) << "all ranks share one program";
    EXPECT_EQ(run.row.result.link_bytes, 2.0 * (n - 1) * n * 131'072);
    EXPECT_TRUE(validate(*run.lowered).ok());
  }
}

TEST(ChakraSchedule, NamesDoNotKeepRanksApart) {
  const auto named = [](const std::string& name) { return metadata() + record(number(1, 1) + bytes(2, name) + number(3, comp) + number(7, 3)); };
  const auto schedule = schedule_of(ring_of(2).mesh, {named("a"), named("b")});
  ASSERT_TRUE(schedule);
  ASSERT_EQ(schedule->schedule.programs.size(), 1U);
  EXPECT_EQ(schedule->schedule.programs[0].tasks[0].label, "a");
}

// ---- Collectives ------------------------------------------------------------------------------------------------------------------------

std::vector<std::string> same(int ranks, const std::string& records) {
  return std::vector<std::string>(static_cast<std::size_t>(ranks), metadata() + records);
}

/// notes of ASTRA-sim's ring collectives, which 206 of 206 of its runs met to the nanosecond: B in 2^30 bytes per second of one direction, latency L
/// of a hop, `ep` of each message and at the end, 3 ns for each whole 1600 bytes that are added, all cut to whole nanoseconds.
struct AstraRing {
  double bytes_per_ns;
  std::int64_t latency, endpoint = 10;
  [[nodiscard]] std::int64_t f(double bytes) const {
    return static_cast<std::int64_t>(std::floor(bytes / bytes_per_ns + static_cast<double>(latency)));
  }
  [[nodiscard]] static std::int64_t r(double bytes) { return 3 * static_cast<std::int64_t>(std::floor(bytes / 1600)); }
  [[nodiscard]] std::int64_t all_gather(double shard, int n) const { return (n - 1) * (f(shard) + endpoint) + endpoint; }
  [[nodiscard]] std::int64_t reduce_scatter(double full, int n) const { return (n - 1) * f(full / n) + n * endpoint + (n - 1) * r(full / n); }
  [[nodiscard]] std::int64_t all_reduce(double full, int n) const {
    return 2 * (n - 1) * f(full / n) + (2 * n - 1) * endpoint + (n - 1) * r(full / n);
  }
};

TEST(AstraRing, IsTheFormulaOfTheNotes) {
  const AstraRing ring{50 * 0x1p30 / 1e9, 500};
  EXPECT_EQ(ring.all_gather(0x1p24, 16), 4695160);
  EXPECT_EQ(ring.reduce_scatter(0x1p24, 16), 330100);
  EXPECT_EQ(ring.all_reduce(0x1p24, 16), 630715);
}

TEST(ChakraSchedule, WholeCollectivesHaveTheSizesThatAstraSimReads) {
  constexpr int all_reduce = 0, all_gather = 2, reduce_scatter = 7;
  for (const int n : {2, 4, 8, 16})
    for (const std::int64_t shard : {16'000, 1'600'000, 16'000'000}) {
      // The endpoint delay of the last message is that of the collective's launch.
      const System system = ring_of(n, {{"set", "link.bandwidth=53.6870912GB/s"},
                                        {"set", "link.latency=500ns"},
                                        {"set", "software.per_message=10ns"},
                                        {"set", "software.launch=10ns"},
                                        {"set", "chip.reduce_bandwidth=533.3333333333334GB/s"}});
      const AstraRing ring{53.6870912, 500};
      const auto full = static_cast<std::uint64_t>(shard) * static_cast<std::uint64_t>(n);
      const auto nanoseconds = [&](int type, std::uint64_t comm_size) {
        return static_cast<double>(time_of(system, same(n, coll(1, type, comm_size)), {}, ChakraCost::recorded, {"ring-one-way", {}}).count()) * 1e-3;
      };
      EXPECT_NEAR(nanoseconds(all_gather, static_cast<std::uint64_t>(shard)), static_cast<double>(ring.all_gather(static_cast<double>(shard), n)),
                  n - 1)
          << n << " " << shard;
      EXPECT_NEAR(nanoseconds(reduce_scatter, full), static_cast<double>(ring.reduce_scatter(static_cast<double>(full), n)), n - 1)
          << n << " " << shard;
      EXPECT_NEAR(nanoseconds(all_reduce, full), static_cast<double>(ring.all_reduce(static_cast<double>(full), n)), 2 * (n - 1))
          << n << " " << shard;
    }
}

TEST(ChakraSchedule, GroupsAreAxesOrStridedViewsOfThem) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "2x4"}});
  const auto axes_of = [&](const std::vector<int>& group) {
    const auto axes = axes_of_group(system.mesh, group);
    return axes ? axes_text(system.mesh, *axes) : "none";
  };
  EXPECT_EQ(axes_of({0, 1, 2, 3}), "col:1:4");
  EXPECT_EQ(axes_of({4, 5, 6, 7}), "col:1:4");
  EXPECT_EQ(axes_of({2, 6}), "row:1:2");
  EXPECT_EQ(axes_of({0, 1, 2, 3, 4, 5, 6, 7}), "row:1:2,col:1:4");
  EXPECT_EQ(axes_of({0, 4, 1, 5, 2, 6, 3, 7}), "col:1:4,row:1:2");
  EXPECT_EQ(axes_of({1, 3}), "col:2:2");
  EXPECT_EQ(axes_of({2, 3}), "col:1:2");
  EXPECT_EQ(axes_of({0, 2, 4, 6}), "row:1:2,col:2:2");
  EXPECT_EQ(axes_of({5}), "");
  EXPECT_EQ(axes_of({1, 2}), "none") << "not aligned";
  EXPECT_EQ(axes_of({0, 1, 3}), "none");
  EXPECT_EQ(axes_of({1, 0}), "none");
  EXPECT_EQ(axes_of({0, 5}), "none");
  for (const std::string text : {"col:1:4", "row:1:2,col:2:2"}) {
    const auto axes = axes_from_text(system.mesh, text);
    ASSERT_TRUE(axes);
    EXPECT_EQ(axes_text(system.mesh, *axes), text);
  }
  for (const std::string text : {"depth:1:2", "col:1:8", "col:3:1", "col:0:4", "col:1:4,col:1:4", "col", "col:1:4:1", "col:-1:4"})
    EXPECT_FALSE(axes_from_text(system.mesh, text)) << text;
}

TEST(ChakraSchedule, CollectivesOfGroupsRunAlongTheirAxes) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "2x4"}});
  const ChakraGroups groups{{"1", {0, 1, 2, 3}}, {"2", {4, 5, 6, 7}}};
  std::vector<std::string> traces;
  for (int rank = 0; rank < 8; ++rank) traces.push_back(metadata() + coll(1, 2, 400'000, {}, attribute("pg_name", string_val, rank < 4 ? "1" : "2")));
  const auto schedule = schedule_of(system.mesh, traces, groups);
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  ASSERT_EQ(schedule->schedule.programs.size(), 1U);
  const auto& gather = std::get<Collective>(schedule->schedule.programs[0].tasks[0].op);
  EXPECT_EQ(gather.kind, CollectiveKind::all_gather);
  EXPECT_THAT(gather.axes, ElementsAre(system.mesh.whole(1)));
  EXPECT_EQ(bytes_of(schedule->schedule.programs[0], gather.input), Bytes{400'000});
  EXPECT_EQ(bytes_of(schedule->schedule.programs[0], gather.output), Bytes{1'600'000});
  EXPECT_EQ(time_of(system, traces, groups, ChakraCost::recorded, {"ring", {}}), Picoseconds{6 * us}) << "both directions carry half of three shards";
}

TEST(ChakraSchedule, MetadataOfPyTorchTellsGroups) {
  const Mesh mesh = system_with({{"machine", "ideal"}, {"slice", "2x4"}}).mesh;
  const auto trace = [&](const std::string& ranks, const std::string& group) {
    const std::string list = R"(['[{"pg_name": "7", "backend": "nccl", "ranks": )" + ranks + R"(}, {"pg_name": "8", "ranks": []}]'])";
    return metadata() + record(node(1, metadata_node, {}, bytes(8, bytes(1, list)))) + coll(2, 0, 1600, {1}, attribute("pg_name", string_val, group));
  };
  const auto along = [&](const std::vector<std::string>& traces, const ChakraGroups& groups = {}) {
    const auto schedule = schedule_of(mesh, traces, groups);
    return schedule ? axes_text(mesh, std::get<Collective>(schedule->schedule.programs[0].tasks[1].op).axes) : to_text(schedule.error());
  };
  std::vector<std::string> halves;
  for (int rank = 0; rank < 8; ++rank) halves.push_back(trace("[0, 1, 2, 3, 4, 5, 6, 7]", "7"));
  EXPECT_EQ(along(halves), "row:1:2,col:1:4");
  EXPECT_EQ(along(std::vector<std::string>(8, trace("[0]", "8"))), "row:1:2,col:1:4") << "no ranks: all";
  EXPECT_EQ(along(halves, {{"7", {0, 4, 1, 5, 2, 6, 3, 7}}}), "col:1:4,row:1:2") << "the file counts first";
  halves[5] = trace("[5]", "7");
  EXPECT_EQ(along(halves), R"(t.5.et: process group "7": expected the ranks 0,1,2,3,4,5,6,7 of the traces before, found 5)");
  EXPECT_EQ(along(std::vector<std::string>(8, trace("[8]", "7"))), R"(t.0.et: process group "7": expected ranks from 0 to 7, found 8)");
  EXPECT_EQ(along(std::vector<std::string>(8, trace("[1, 1]", "7"))), R"(t.0.et: record 1: process group "7": expected each rank once, found [1,1])");
  EXPECT_EQ(error_of(1, {metadata() + record(node(1, metadata_node, {}, bytes(8, bytes(1, "anything else"))))}), "none");
}

TEST(ChakraSchedule, InvolvedDimensionsCountFromTheLastAxis) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "2x4"}});
  const auto along = [&](const std::string& bits) {
    const auto schedule = schedule_of(system.mesh, same(8, coll(1, 0, 1600, {}, attribute("involved_dim", bool_list, bytes(1, bits)))));
    return schedule ? axes_text(system.mesh, std::get<Collective>(schedule->schedule.programs[0].tasks[0].op).axes) : to_text(schedule.error());
  };
  EXPECT_EQ(along({'\1', '\0'}), "col:1:4");
  EXPECT_EQ(along({'\0', '\1'}), "row:1:2");
  EXPECT_EQ(along({'\1', '\1', '\1', '\1'}), "row:1:2,col:1:4");
}

TEST(ChakraSchedule, WhatCannotBeACollectiveIsAnErrorWithItsRecord) {
  const std::string group = attribute("pg_name", string_val, "3");
  EXPECT_EQ(error_of(2, same(2, coll(1, 3, 10))), "t.0.et: record 1: expected a collective that podsim has, found GATHER");
  EXPECT_EQ(error_of(2, same(2, coll(1, 0, 10, {}, group))), R"(t.0.et: record 1: expected a process group that is given, found "3")");
  EXPECT_EQ(error_of(4, same(4, coll(1, 0, 10, {}, group)), {{"3", {1, 2}}}),
            R"(t.0.et: record 1: expected a process group with rank 0, found "3" without it)");
  EXPECT_EQ(error_of(4, same(4, coll(1, 0, 10, {}, group)), {{"3", {0, 1, 3}}}),
            R"(t.0.et: record 1: expected a process group along axes of the mesh row=4 or strided views of them, found "3" with ranks 0,1,3)");
  std::vector<std::string> unequal = same(2, coll(1, 0, 10));
  unequal[1] += comp_micros(2, 3);
  EXPECT_EQ(error_of(2, unequal),
            "t.0.et: record 1: expected a collective of ranks whose traces have the same nodes and dependencies, found one of 2 ranks with others");
}

TEST(ChakraSchedule, RanksOfACollectiveMayTakeOtherTimesAndSendOtherMessages) {
  const System system = ring_of(4);
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank)
    traces.push_back(metadata() + comp_micros(1, static_cast<std::uint64_t>(rank == 2 ? 9 : 3 + rank % 2)) + coll(2, 2, 100'000, {1}) +
                     comp_micros(3, 2, {2}) +
                     (rank == 0   ? send_to(4, 2, 100'000, {3})
                      : rank == 1 ? send_to(4, 3, 200'000, {3})
                                  : recv_from(4, rank - 2, rank == 2 ? 100'000 : 200'000)));
  // Ranks 0 and 1 have other nodes than 2 and 3 behind the collective.
  EXPECT_EQ(error_of(4, traces),
            "t.0.et: record 2: expected a collective of ranks whose traces have the same nodes and dependencies, found one of 4 ranks with others");
  for (std::string& trace : traces) {
    const std::vector<std::string> records = records_of(trace);
    trace = metadata() + record(records[1]) + record(records[2]) + record(records[3]);
  }
  // All begin the collective when the last is there: 9 us, three steps of one way round at 1 us, 2 us.
  const podsim::Run run = run_of(system, traces, {}, ChakraCost::recorded, {"ring-one-way", {}});
  EXPECT_EQ(run.lowered->programs.size(), 1U);
  EXPECT_EQ(run.timeline.makespan, Picoseconds{(9 + 3 + 2) * us});
  EXPECT_TRUE(validate(*run.lowered).ok());
  // Messages of other sizes to others, beside the collective.
  for (int rank = 0; rank < 4; ++rank)
    traces[static_cast<std::size_t>(rank)] +=
        send_to(4, rank ^ 1, rank < 2 ? 100'000 : 200'000, {3}) + recv_from(5, rank ^ 1, rank < 2 ? 100'000 : 200'000, {3});
  const podsim::Run with_messages = run_of(system, traces, {}, ChakraCost::recorded, {"ring-one-way", {}});
  EXPECT_EQ(with_messages.timeline.makespan, Picoseconds{(14 + 2) * us});
  EXPECT_TRUE(validate(*with_messages.lowered).ok());
}

TEST(ChakraSchedule, MemoryNodesGoToTheHostAndBack) {
  const System system = ring_of(1, {{"set", "dcn.host_bandwidth=10GB/s"}});
  for (const int type : {mem_load, mem_store})
    EXPECT_EQ(time_of(system, {metadata() + record(node(1, type, {}, attribute("tensor_size", uint64_val, 100'000)))}), Picoseconds{10 * us}) << type;
}

}  // namespace
}  // namespace podsim
