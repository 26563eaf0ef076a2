// Collectives on eight devices against their definition, with groups in every spelling and mode.
#include <algorithm>

#include <gmock/gmock.h>

#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using test::array;
using test::module_of;
using test::Reals;
using ::testing::ElementsAre;

using Groups = std::vector<std::vector<std::int64_t>>;

constexpr std::size_t devices = 8;
const std::string functions =
    "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] maximum(a, b) }\n"
    "min { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] minimum(a, b) }\n"
    "product { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] multiply(a, b) }\n"
    "wide { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n x = f32[] convert(a)\n y = f32[] convert(b)\n z = f32[] add(x, y)\n"
    " ROOT s = bf16[] convert(z) }\n"
    "and { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT s = pred[] and(a, b) }\n"
    "or { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT s = pred[] or(a, b) }\n";

std::string module_text(const std::string& lines, const std::string& header = "num_partitions=8") {
  return "HloModule m, " + header + "\n" + functions + "ENTRY e {\n" + lines + "\n}\n";
}

/// Element i of device d.
double value(std::int64_t device, std::size_t i) { return static_cast<double>(100 * device + static_cast<std::int64_t>(i) + 1); }
HloArray own(std::string_view shape, std::int64_t device) {
  HloArray result = zeros(test::shape_of(shape).type, test::shape_of(shape).dims);
  for (std::size_t i = 0; i < result.reals.size(); ++i) result.reals[i] = value(device, i);
  return result;
}

/// The results of lines with one parameter p of this shape on each device.
std::vector<HloArrays> results_of(std::string_view shape, const std::string& lines, const std::string& header = "num_partitions=8") {
  std::vector<HloArrays> parameters;
  for (std::size_t device = 0; device < devices; ++device) parameters.push_back({own(shape, static_cast<std::int64_t>(device))});
  const auto results = test::run(module_of(module_text(fmt::format("p = {} parameter(0)\n{}", shape, lines), header)), parameters);
  EXPECT_TRUE(results) << to_text(results.error()) << "\n" << lines;
  return results ? *results : std::vector<HloArrays>(devices, HloArrays(4));
}
std::string error_of(const std::string& lines, const std::string& header = "num_partitions=8") {
  std::vector<HloArrays> parameters(devices, {own("f32[8]", 0)});
  const auto results = test::run(module_of(module_text("p = f32[8] parameter(0)\n" + lines, header)), parameters);
  return results ? "" : to_text(results.error());
}

/// The same groups in the three spellings, and every device's group and position.
struct Spelled {
  std::vector<std::string> texts;
  Groups groups;
};
const std::vector<Spelled>& spelled_groups() {
  static const std::vector<Spelled> all{
      {{"{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]", "mesh['a'=2,'b'=4] {'b'}"}, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {{"{{0,4},{1,5},{2,6},{3,7}}", "[4,2]<=[2,4]T(1,0)", "mesh['a'=2,'b'=4] {'a'}"}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
      {{"{{0,2,4,6},{1,3,5,7}}", "[2,4]<=[4,2]T(1,0)", "mesh['a'=4,'b'=2] {'a'}"}, {{0, 2, 4, 6}, {1, 3, 5, 7}}},
      {{"{}", "{{0,1,2,3,4,5,6,7}}", "[1,8]<=[8]", "mesh['a'=8] {'a'}"}, {{0, 1, 2, 3, 4, 5, 6, 7}}},
      {{"{{6,2,4,0},{7,3,5,1}}"}, {{6, 2, 4, 0}, {7, 3, 5, 1}}},  // positions that are not sorted
  };
  return all;
}

/// Calls check(text of the groups, groups).
template <class Check>
void for_each_spelling(Check check) {
  for (const Spelled& spelled : spelled_groups())
    for (const std::string& text : spelled.texts) {
      SCOPED_TRACE(text);
      check("channel_id=1, use_global_device_ids=true, replica_groups=" + text, spelled.groups);
      check("replica_groups=" + text, spelled.groups);  // with one replica, ids of all modes are partitions
    }
}

TEST(HloCollectives, AllReduceFoldsTheGroup) {
  for_each_spelling([](const std::string& groups, const Groups& expected) {
    for (const std::string function : {"add", "max", "min", "product"}) {
      const auto results = results_of("f32[3]", fmt::format("ROOT r = f32[3] all-reduce(p), {}, to_apply={}", groups, function));
      for (const auto& group : expected)
        for (std::size_t i = 0; i < 3; ++i) {
          double folded = value(group[0], i);
          for (std::size_t k = 1; k < group.size(); ++k) {
            const double next = value(group[k], i);
            folded = function == "add"   ? folded + next
                     : function == "max" ? std::max(folded, next)
                     : function == "min" ? std::min(folded, next)
                                         : folded * next;
          }
          for (const std::int64_t device : group) EXPECT_EQ(results[to_size(device)][0].reals.at(i), folded) << function;
        }
    }
  });
}

TEST(HloCollectives, AllReduceOfPredsAndOfAFunctionOfSeveralOperations) {
  std::vector<HloArrays> parameters;
  for (std::int64_t device = 0; device < 8; ++device)
    parameters.push_back({integer_array(HloType::pred, {2}, {device == 3 ? 1 : 0, device == 3 ? 0 : 1}), real_array(HloType::bf16, {1}, {0.5})});
  const auto results = test::run(module_of(module_text("p = pred[2] parameter(0)\nq = bf16[1] parameter(1)\n"
                                                       "a = pred[2] all-reduce(p), replica_groups={}, to_apply=and\n"
                                                       "b = pred[2] all-reduce(p), replica_groups={}, to_apply=or\n"
                                                       "c = bf16[1] all-reduce(q), replica_groups={}, to_apply=wide\n"
                                                       "ROOT t = (pred[2], pred[2], bf16[1]) tuple(a, b, c)")),
                                 parameters);
  ASSERT_TRUE(results) << to_text(results.error());
  EXPECT_THAT((*results)[5][0].integers, ElementsAre(0, 0));
  EXPECT_THAT((*results)[5][1].integers, ElementsAre(1, 1));
  EXPECT_THAT((*results)[5][2].reals, ElementsAre(4));
}

TEST(HloCollectives, AllGatherPutsShardsInTheOrderOfTheGroup) {
  for_each_spelling([](const std::string& groups, const Groups& expected) {
    const std::size_t size = expected[0].size();
    const auto results = results_of("f32[2,2]", fmt::format("ROOT r = f32[2,{}] all-gather(p), {}, dimensions={{1}}", 2 * size, groups));
    for (const auto& group : expected)
      for (const std::int64_t device : group)
        for (std::size_t i = 0; i < 2; ++i)
          for (std::size_t j = 0; j < 2 * size; ++j)
            EXPECT_EQ(results[to_size(device)][0].reals.at(i * 2 * size + j), value(group[j / 2], i * 2 + j % 2));
  });
}

TEST(HloCollectives, ReduceScatterGivesEachPositionItsBlock) {
  for_each_spelling([](const std::string& groups, const Groups& expected) {
    const std::size_t size = expected[0].size(), each = 8 / size;
    const auto results =
        results_of("f32[2,8]", fmt::format("ROOT r = f32[2,{}] reduce-scatter(p), {}, dimensions={{1}}, to_apply=add", each, groups));
    for (const auto& group : expected)
      for (std::size_t position = 0; position < size; ++position)
        for (std::size_t i = 0; i < 2; ++i)
          for (std::size_t j = 0; j < each; ++j) {
            double sum = 0;
            for (const std::int64_t device : group) sum += value(device, i * 8 + position * each + j);
            EXPECT_EQ(results[to_size(group[position])][0].reals.at(i * each + j), sum);
          }
  });
}

TEST(HloCollectives, AllToAllTransposesBlocksInBothForms) {
  for_each_spelling([](const std::string& groups, const Groups& expected) {
    const std::size_t size = expected[0].size(), each = 8 / size;
    const auto blocks = results_of("f32[8]", fmt::format("ROOT r = f32[8] all-to-all(p), {}, dimensions={{0}}", groups));
    std::string lines, names, shapes;
    for (std::size_t k = 0; k < size; ++k) {
      lines += fmt::format("s{} = f32[{}] slice(p), slice={{[{}:{}]}}\n", k, each, k * each, (k + 1) * each);
      names += fmt::format("{}s{}", k == 0 ? "" : ", ", k);
      shapes += fmt::format("{}f32[{}]", k == 0 ? "" : ", ", each);
    }
    const auto operands = results_of("f32[8]", fmt::format("{}ROOT r = ({}) all-to-all({}), {}", lines, shapes, names, groups));
    for (const auto& group : expected)
      for (std::size_t target = 0; target < size; ++target)
        for (std::size_t source = 0; source < size; ++source)
          for (std::size_t i = 0; i < each; ++i) {
            const double moved = value(group[source], target * each + i);
            EXPECT_EQ(blocks[to_size(group[target])][0].reals.at(source * each + i), moved);
            EXPECT_EQ(operands[to_size(group[target])].at(source).reals.at(i), moved);
          }
  });
}

TEST(HloCollectives, CollectivePermuteGivesZerosWhereNothingComes) {
  const auto results = results_of("f32[2]", "ROOT r = f32[2] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,2},{3,0},{5,5}}");
  const std::vector<std::int64_t> from{3, 0, 1, -1, -1, 5, -1, -1};
  for (std::size_t device = 0; device < devices; ++device)
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(results[device][0].reals.at(i), from[device] < 0 ? 0 : value(from[device], i)) << device;
}

TEST(HloCollectives, CollectiveBroadcastSendsTheFirstOfTheGroup) {
  const auto results = results_of("f32[1]", "ROOT r = f32[1] collective-broadcast(p), channel_id=1, replica_groups={{3,0,1},{6,7}}");
  const std::vector<std::int64_t> from{3, 3, -1, 3, -1, -1, 6, 6};
  for (std::size_t device = 0; device < devices; ++device)
    EXPECT_EQ(results[device][0].reals.at(0), from[device] < 0 ? 0 : value(from[device], 0)) << device;
}

TEST(HloCollectives, ModesTellWhatIdsCount) {
  // Two replicas of four partitions; device = replica * 4 + partition.
  const auto sums = [](const std::string& attributes) {
    const auto results = results_of("f32[1]", "ROOT r = f32[1] all-reduce(p), to_apply=add, " + attributes, "replica_count=2, num_partitions=4");
    Reals of_devices;
    for (const HloArrays& mine : results) of_devices.push_back(mine[0].reals.at(0));
    return of_devices;
  };
  const auto sum = [](const std::vector<std::int64_t>& group) {
    double total = 0;
    for (const std::int64_t device : group) total += value(device, 0);
    return total;
  };
  const double front = sum({0, 1, 2, 3}), back = sum({4, 5, 6, 7}), all = front + back;
  EXPECT_THAT(sums("replica_groups={{0,1}}"),
              ElementsAre(sum({0, 4}), sum({1, 5}), sum({2, 6}), sum({3, 7}), sum({0, 4}), sum({1, 5}), sum({2, 6}), sum({3, 7})));
  EXPECT_THAT(sums("replica_groups={}"),
              ElementsAre(sum({0, 4}), sum({1, 5}), sum({2, 6}), sum({3, 7}), sum({0, 4}), sum({1, 5}), sum({2, 6}), sum({3, 7})));
  EXPECT_THAT(sums("channel_id=1, replica_groups={{0},{1}}"), ElementsAre(front, front, front, front, back, back, back, back)) << "without use_global_device_ids they are replicas, channel or not";
  EXPECT_THAT(sums("channel_id=1, use_global_device_ids=false, replica_groups={{0},{1}}"),
              ElementsAre(front, front, front, front, back, back, back, back));
  EXPECT_THAT(sums("channel_id=1, use_global_device_ids=false, replica_groups={{0,1}}"), ElementsAre(all, all, all, all, all, all, all, all));
  EXPECT_THAT(sums("channel_id=1, use_global_device_ids=true, replica_groups={{0,5},{1,2,3,4,6,7}}")[5], sum({0, 5}));
  const auto permuted =
      results_of("f32[1]", "ROOT r = f32[1] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}", "replica_count=2, num_partitions=4");
  EXPECT_EQ(permuted[5][0].reals.at(0), value(4, 0));
  const auto between =
      results_of("f32[1]", "ROOT r = f32[1] collective-permute(p), source_target_pairs={{0,1}}", "replica_count=2, num_partitions=4");
  EXPECT_EQ(between[5][0].reals.at(0), value(1, 0));
}

TEST(HloCollectives, VariadicFormsTakeEachOperandByItself) {
  const auto results = results_of("f32[2]",
                                  "n = f32[2] negate(p)\n"
                                  "a = (f32[2], f32[2]) all-reduce(p, n), replica_groups={}, to_apply=add\n"
                                  "b = (f32[16], f32[16]) all-gather(p, n), replica_groups={}, dimensions={0}\n"
                                  "a0 = f32[2] get-tuple-element(a), index=0\na1 = f32[2] get-tuple-element(a), index=1\n"
                                  "b1 = f32[16] get-tuple-element(b), index=1\nROOT t = (f32[2], f32[2], f32[16]) tuple(a0, a1, b1)");
  EXPECT_THAT(results[2][0].reals, ElementsAre(2808, 2816));
  EXPECT_THAT(results[2][1].reals, ElementsAre(-2808, -2816));
  EXPECT_EQ(results[2][2].reals.at(15), -702);
}

TEST(HloCollectives, AsynchronousFormsGiveWhatTheSynchronousOnesDo) {
  const auto results =
      results_of("f32[8]",
                 "ag = (f32[8], f32[64]) all-gather-start(p), replica_groups={}, dimensions={0}\n"
                 "ar = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add\n"
                 "cp = (f32[8], f32[8], u32[], u32[]) collective-permute-start(p), channel_id=1, source_target_pairs={{7,0}}\n"
                 "rs = ((f32[8]), f32[1]) reduce-scatter-start(p), replica_groups={}, dimensions={0}, to_apply=add\n"
                 "aa = ((f32[8]), f32[8], u32[]) async-start(p), calls={ q = f32[8] parameter(0)\n ROOT b = f32[8] all-to-all(q), replica_groups={}, "
                 "dimensions={0} }\n"
                 "au = ((f32[8]), f32[8], u32[]) async-update(aa)\n"
                 "cs = (f32[8], f32[8], u32[]) copy-start(p)\n"
                 "ss = ((f32[8]), f32[2], u32[]) slice-start(p), slice={[2:4]}\n"
                 "agd = f32[64] all-gather-done(ag)\nard = f32[8] all-reduce-done(ar)\ncpd = f32[8] collective-permute-done(cp)\nrsd = f32[1] "
                 "reduce-scatter-done(rs)\n"
                 "aad = f32[8] async-done(au)\ncsd = f32[8] copy-done(cs)\nssd = f32[2] slice-done(ss)\n"
                 "ag1 = f32[64] all-gather(p), replica_groups={}, dimensions={0}\nar1 = f32[8] all-reduce(p), replica_groups={}, to_apply=add\n"
                 "cp1 = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{7,0}}\n"
                 "rs1 = f32[1] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=add\naa1 = f32[8] all-to-all(p), replica_groups={}, "
                 "dimensions={0}\n"
                 "ss1 = f32[2] slice(p), slice={[2:4]}\n"
                 "ROOT t = (f32[64], f32[8], f32[8], f32[1], f32[8], f32[8], f32[2], f32[64], f32[8], f32[8], f32[1], f32[8], f32[8], f32[2]) "
                 "tuple(agd, ard, cpd, rsd, aad, csd, ssd, ag1, ar1, cp1, rs1, aa1, p, ss1)");
  for (const HloArrays& mine : results)
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(mine.at(i), mine.at(i + 7)) << i;
}

TEST(HloCollectives, ACollectiveInAFusionIsOne) {
  const auto results =
      results_of("f32[8]",
                 "ROOT f = f32[1] fusion(p), kind=kCustom, calls={ q = f32[8] parameter(0)\n a = f32[8] all-reduce(q), replica_groups={}, "
                 "to_apply=add\n i = u32[] partition-id()\n ROOT s = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1} }");
  for (std::size_t device = 0; device < devices; ++device) EXPECT_EQ(results[device][0].reals.at(0), 2800 + 8 * (static_cast<double>(device) + 1));
}

TEST(HloCollectives, WhatFitsNoDefinitionIsAnError) {
  EXPECT_EQ(error_of("s = f32[6] slice(p), slice={[0:6]}\nROOT r = f32[3] reduce-scatter(s), replica_groups={}, dimensions={0}, to_apply=add"),
            "m:29:1: r: expected a dimension that 8 devices divide, got 6");
}

TEST(HloCollectives, RaggedAllToAllsSendAsManyRowsAsTheirSizesSay) {
  // Device d sends row 0 to device 0 and d rows from row 1 on to device 1; those of device 1 stand behind those of device 0.
  const std::string text =
      "HloModule m, num_partitions=2\nENTRY e {\n p = f32[3,2] parameter(0)\n room = f32[4,2] parameter(1)\n from = s32[2] parameter(2)\n size = "
      "s32[2] parameter(3)\n"
      " to = s32[2] parameter(4)\n got = s32[2] parameter(5)\n ROOT r = f32[4,2] ragged-all-to-all(p, room, from, size, to, got), "
      "replica_groups={{0,1}}\n}";
  const HloArray own = test::counted("f32[3,2]"), minus = array("f32[4,2]", {-1, -1, -2, -2, -3, -3, -4, -4}), from = array("s32[2]", {0, 1});
  HloArray other = own;
  for (double& value : other.reals) value *= 10;
  const auto run = [&](const HloArray& sizes, const HloArray& sizes_of_other) {
    const auto results = test::run(module_of(text), {{own, minus, from, sizes, array("s32[2]", {0, 0}), sizes},
                                                     {other, minus, from, sizes_of_other, array("s32[2]", {1, 0}), sizes}});
    EXPECT_TRUE(results) << to_text(results.error());
    return results ? *results : std::vector<HloArrays>(2, HloArrays(1));
  };
  const auto sent = run(array("s32[2]", {1, 0}), array("s32[2]", {1, 1}));
  EXPECT_EQ(sent[0][0], array("f32[4,2]", {1, 2, 10, 20, -3, -3, -4, -4}));
  EXPECT_EQ(sent[1][0], array("f32[4,2]", {30, 40, -2, -2, -3, -3, -4, -4}));
  // Rows beyond an array are neither sent nor received.
  EXPECT_EQ(run(array("s32[2]", {0, 9}), array("s32[2]", {0, -1}))[1][0], array("f32[4,2]", {3, 4, 5, 6, -3, -3, -4, -4}));
}

TEST(HloCollectives, StartsThatCallAComputationDoWhatItDoes) {
  const auto results = results_of("f32[8]",
                                  "s = ((f32[8]), f32[4]) reduce-scatter-start(p), calls={ q = f32[8] parameter(0)\n t = f32[4] reduce-scatter(q), "
                                  "replica_groups={{0,4},{1,5},{2,6},{3,7}}, "
                                  "dimensions={0}, to_apply=add\n ROOT n = f32[4] negate(t) }\n ROOT r = f32[4] reduce-scatter-done(s)");
  EXPECT_EQ(results[6][0], array("f32[4]", {-810, -812, -814, -816}));
}

TEST(HloCollectives, ReductionsConvert) {
  const auto results = results_of("bf16[2]", "ROOT r = f32[2] all-reduce(p), replica_groups={}, to_apply=add");
  EXPECT_EQ(results[3][0], array("f32[2]", {2808, 2816}));
}

}  // namespace
}  // namespace podsim
