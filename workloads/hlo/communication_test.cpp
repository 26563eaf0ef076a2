#include <gtest/gtest.h>

#include <string>

#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::error_of;

/// Of a module whose entry has these lines behind x, which stands in line 6.
std::string error_in(const std::string& lines, const std::string& header = "num_partitions=4") {
  return error_of("HloModule m, " + header + "\n%sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\nENTRY e {\n x = f32[4] parameter(0)\n " + lines + "\n}\n");
}

TEST(Communication, ADeviceOfAPermuteSendsAndReceivesOnce) {
  const auto error = [](const std::string& pairs) { return error_in("ROOT r = f32[4] collective-permute(x), channel_id=1, source_target_pairs={" + pairs + "}"); };
  EXPECT_EQ(error("{0,1},{1,0}"), "");
  EXPECT_EQ(error("{0,1},{0,2}"), "m:7:2: r: expected pairs in which a device sends at most once and receives at most once, got {0,2} beside another one");
  EXPECT_EQ(error("{0,1},{2,1}"), "m:7:2: r: expected pairs in which a device sends at most once and receives at most once, got {2,1} beside another one");
}

TEST(Communication, GroupsHaveEveryDeviceOnce) {
  const auto reduce = [](const std::string& groups) { return error_in("ROOT r = f32[4] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=%sum, replica_groups=" + groups); };
  for (const std::string groups : {"{}", "{{}}", "{{0,1},{3,2}}", "{{0,1,2},{3}}", "[2,2]<=[4]", "mesh['a'=4] {'a'}"}) EXPECT_EQ(reduce(groups), "") << groups;
  EXPECT_EQ(reduce("{{0,1,2}}"), "m:7:2: r: expected groups that have each of 4 devices once, got {{0,1,2}}");
  EXPECT_EQ(reduce("{{0,3}}"), "m:7:2: r: expected groups that have each of 4 devices once, got {{0,3}}");
  EXPECT_EQ(reduce("[1,2]<=[2]"), "m:7:2: r: expected groups that have each of 4 devices once, got [1,2]<=[2]");
}

TEST(Communication, GroupsAreOfEqualSizeButForAllReduces) {
  const auto exchange = [](const std::string& groups) { return error_in("ROOT r = f32[4] all-to-all(x), channel_id=1, dimensions={0}, replica_groups=" + groups); };
  EXPECT_EQ(exchange("{{0,1},{2,3}}"), "");
  EXPECT_EQ(exchange("{{0},{1,2},{3}}"), "m:7:2: r: expected groups of equal size that have each of 4 devices once, got {{0},{1,2},{3}}");
  const auto broadcast = [](const std::string& groups) { return error_in("ROOT r = f32[4] collective-broadcast(x), channel_id=1, replica_groups=" + groups); };
  EXPECT_EQ(broadcast("{{0,1,2}}"), "") << "device 3 gets zeros";
}

TEST(Communication, IdsAreThoseOfTheMode) {
  const auto error = [](const std::string& attributes) { return error_in("ROOT r = f32[4] all-reduce(x), to_apply=%sum, " + attributes, "replica_count=2, num_partitions=4"); };
  EXPECT_EQ(error("replica_groups={{0,1}}"), "") << "replicas";
  EXPECT_EQ(error("channel_id=1, use_global_device_ids=false, replica_groups={{0},{1}}"), "") << "replicas of all partitions";
  EXPECT_EQ(error("channel_id=1, replica_groups={{0},{1}}"), "") << "the same: XLA's parser takes use_global_device_ids=false where an all-reduce does not say it";
  EXPECT_EQ(error("channel_id=1, replica_groups={{0,1},{2,3}}"), "m:7:2: r: expected groups that have each of 2 replicas (use_global_device_ids is not true) once, got {{0,1},{2,3}}");
  EXPECT_EQ(error_in("ROOT r = f32[4] all-to-all(x), channel_id=1, dimensions={0}, replica_groups={{0,1},{2,3}}", "replica_count=2, num_partitions=4"), "") << "partitions";
  EXPECT_EQ(error("channel_id=1, use_global_device_ids=true, replica_groups={{0,1,2,3,4,5,6,7}}"), "");
  EXPECT_EQ(error("channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}"), "m:7:2: r: expected groups that have each of 8 devices once, got {{0,1}}");
  EXPECT_EQ(error("replica_groups={{0}}"), "m:7:2: r: expected groups that have each of 2 devices once, got {{0}}");
}

TEST(Communication, WhatStartsEndsOnce) {
  const std::string start = "s = (f32[4], f32[4]) all-gather-start(x), channel_id=1, replica_groups={{0},{1},{2},{3}}, dimensions={0}, use_global_device_ids=true\n ";
  EXPECT_EQ(error_in(start + "ROOT d = f32[4] all-gather-done(s)"), "");
  EXPECT_EQ(error_in(start + "ROOT c = f32[4] copy(x)"), "m:7:2: s: expected a -done of it");
  EXPECT_EQ(error_in(start + "d = f32[4] all-gather-done(s)\n ROOT e = f32[4] all-gather-done(s)"), "m:9:2: e: expected one end of s, got d before");
  EXPECT_EQ(error_in(start + "g = f32[4] get-tuple-element(s), index=1\n ROOT d = f32[4] all-gather-done(s)"), "");
  EXPECT_EQ(error_in("t = (f32[4], f32[4]) tuple(x, x)\n ROOT d = f32[4] all-gather-done(t)"), "m:8:2: d: expected the -start of it as its operand");
  EXPECT_EQ(error_in(start + "ROOT d = f32[4] all-to-all-done(s)"), "m:8:2: d: expected the -start of it as its operand");
}

TEST(Communication, ALoopMayCarryWhatARecvBegan) {
  const std::string carried = "t = ((f32[4], u32[], token[])) parameter(1)\n g = (f32[4], u32[], token[]) get-tuple-element(t), index=0\n ";
  EXPECT_EQ(error_in(carried + "d = (f32[4], token[]) recv-done(g), channel_id=1\n ROOT r = f32[4] get-tuple-element(d), index=0"), "");
  EXPECT_EQ(error_in("k = token[] after-all()\n u = u32[] constant(0)\n q = (f32[4], u32[], token[]) tuple(x, u, k)\n ROOT d = (f32[4], token[]) recv-done(q), channel_id=1"), "m:10:2: d: expected the beginning of it as its operand");
}

TEST(Communication, AnUpdateStandsBetweenStartAndDone) {
  const std::string start = "s = ((f32[4]), f32[4]) custom-call-start(x), custom_call_target=\"f\"\n u = ((f32[4]), f32[4]) custom-call-update(s)\n ";
  EXPECT_EQ(error_in(start + "ROOT d = f32[4] custom-call-done(u)"), "");
  EXPECT_EQ(error_in(start + "ROOT c = f32[4] copy(x)"), "m:8:2: u: expected a -done of it");
  EXPECT_EQ(error_in(start + "ROOT d = f32[4] custom-call-done(s)"), "m:9:2: d: expected one end of s, got u before");
}

}  // namespace
}  // namespace podsim
