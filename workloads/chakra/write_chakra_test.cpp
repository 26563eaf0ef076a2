// Traces of runs: taken apart by a decoder of the format's tables, and run again to the same picosecond.
#include "workloads/chakra/write_chakra.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chakra/chakra_schedule.hpp"
#include "workloads/chakra/read_chakra.hpp"
#include "workloads/chakra/test_wire.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using namespace test;
using ::testing::ElementsAre;
using testing::fields;
using Given = std::vector<std::pair<std::string, std::string>>;

RunOptions every_task() {
  RunOptions how;
  how.fold = false, how.inline_calls = how.write_out_calls = true;
  return how;
}

struct Written {
  Run run;
  std::vector<std::string> files;
  ChakraGroups groups;
};

Written written(const Given& given, ChakraCollectives collectives) {
  const Fields asked = fields(given);
  const auto system = read_system(asked);
  EXPECT_TRUE(system) << to_text(system.error());
  const auto problem = read_problem(asked, *system, DType::bf16);
  EXPECT_TRUE(problem) << to_text(problem.error());
  auto run = simulate(*system, *problem, every_task());
  EXPECT_TRUE(run) << to_text(run.error());
  Written result{*std::move(run), {}, {}};
  const CollectivePolicy& policy = result.run.problem->collectives;
  const auto writer =
      ChakraWriter::make({result.run.problem->schedule, result.run.model, result.run.timeline, policy.algorithm, policy.chunks}, collectives);
  EXPECT_TRUE(writer) << to_text(writer.error());
  for (int rank = 0; rank < writer->ranks(); ++rank) result.files.push_back(chakra_bytes(writer->trace(rank)));
  result.groups = writer->groups();
  return result;
}

Picoseconds again(const Written& written) {
  const auto traces = chakra_schedule(
      written.run.lowered->mesh, [&](int rank) { return parse_chakra(written.files[static_cast<std::size_t>(rank)], "t." + std::to_string(rank)); },
      written.groups, ChakraCost::recorded);
  EXPECT_TRUE(traces) << to_text(traces.error());
  if (!traces) return {};
  CollectivePolicy policy{traces->collective_algorithm, {}};
  if (traces->collective_chunks > 0) policy.chunks = traces->collective_chunks;
  const auto run = simulate(*written.run.system, traces->schedule, {}, policy);
  EXPECT_TRUE(run) << to_text(run.error());
  return run ? run->timeline.makespan : Picoseconds{};
}

const std::vector<Given>& schedules() {
  static const auto gemm = [](const std::string& machine, const std::string& slice, const std::string& algorithm, Given more = {}) {
    Given given{{"machine", machine}, {"slice", slice}, {"gemm", "m=2048,n=2048,k=2048"}, {"algorithm", algorithm}};
    given.insert(given.end(), more.begin(), more.end());
    return given;
  };
  static const auto collective = [](const std::string& machine, const std::string& slice, const std::string& kind, Given more = {}) {
    Given given{{"machine", machine}, {"slice", slice}, {"collective", kind}, {"bytes", "1MiB"}};
    given.insert(given.end(), more.begin(), more.end());
    return given;
  };
  static const std::vector<Given> all{
      gemm("tpu_v4", "4x4", "collective"),
      gemm("tpu_v4", "4x4", "collective", {{"dataflow", "rs"}}),
      gemm("tpu_v4", "4x4", "meshslice", {{"slice_count", "4"}}),
      gemm("tpu_v4", "4x4", "meshslice", {{"slice_count", "2"}, {"dataflow", "ls"}, {"pass", "both"}}),
      gemm("tpu_v4", "4x4", "wang"),
      gemm("tpu_v4", "4x4", "wang", {{"dataflow", "ls"}}),
      gemm("tpu_v4", "4x4", "cannon"),
      gemm("tpu_v4", "4x4", "summa"),
      gemm("tpu_v4", "4x4", "1d-fsdp"),
      gemm("tpu_v5e", "4x4", "meshslice", {{"slice_count", "2"}}),
      gemm("dgx_h100", "2x8", "collective"),
      gemm("dgx_h100", "2x8", "meshslice", {{"slice_count", "2"}}),
      collective("tpu_v4", "4x4", "all-gather"),
      collective("tpu_v5e", "4x8", "all-gather", {{"axis", "col"}}),
      collective("tpu_v5p", "2x2x4", "all-reduce"),
      collective("dgx_h100", "2x8", "reduce-scatter"),
      collective("tpu_v4", "4x4", "all-to-all"),
      collective("tpu_v4", "4x4", "broadcast", {{"axis", "row"}, {"root", "1"}}),
      collective("tpu_v4", "4x4", "reduce", {{"axis", "row"}, {"root", "2"}}),
      collective("tpu_v4", "4x4", "permute", {{"axis", "row"}, {"shift", "2"}}),
      collective("tpu_v4", "8x4", "all-gather", {{"axis", "row"}, {"algorithm", "halving-doubling"}}),
      collective("dgx_a100", "1x8", "all-reduce", {{"algorithm", "tree"}}),
  };
  return all;
}

std::string text_of(const Given& given) {
  std::string text;
  for (const auto& [name, value] : given) text += name + "=" + value + " ";
  return text;
}

TEST(ChakraRoundTrip, WholeCollectivesRunAgainToThePicosecond) {
  for (const Given& given : schedules()) {
    SCOPED_TRACE(text_of(given));
    const Written once = written(given, ChakraCollectives::whole);
    EXPECT_EQ(again(once), once.run.timeline.makespan);
  }
}

/// A tree sends half way round the ring, from some ranks alone: as messages between different ranks they go the other way.
bool sends_half_way(const Given& given) {
  return std::find(given.begin(), given.end(), std::pair<std::string, std::string>{"collective", "reduce"}) != given.end();
}

TEST(ChakraRoundTrip, LoweredSendsRunAgainToThePicosecond) {
  for (const Given& given : schedules()) {
    if (sends_half_way(given)) continue;
    SCOPED_TRACE(text_of(given));
    const Written once = written(given, ChakraCollectives::lowered);
    EXPECT_EQ(again(once), once.run.timeline.makespan);
  }
}

// ---- Field by field ---------------------------------------------------------------------------------------------------------------------

/// The variant in which readers look for each attribute that they know (and ours), by its number.
const std::map<std::string, int>& variants() {
  static const std::map<std::string, int> known{
      {"is_cpu_op", bool_val},        {"num_ops", int64_val},      {"tensor_size", uint64_val}, {"comm_type", int64_val},
      {"comm_size", int64_val},       {"pg_name", string_val},     {"comm_src", int32_val},     {"comm_dst", int32_val},
      {"comm_tag", int32_val},        {"duration_ps", uint64_val}, {"work_s", double_list},     {"dma", bool_val},
      {"launch", bool_val},           {"adds", bool_val},          {"rendezvous", bool_val},    {"shift_axis", string_val},
      {"shift_by", int64_val},        {"axes", string_val},        {"dtype", string_val},       {"input_extents", int64_list},
      {"output_extents", int64_list}, {"dim", int64_val},          {"split_dim", int64_val},    {"root", int64_val},
      {"in_place", bool_val},         {"origin_kind", string_val}, {"origin_axis", string_val}, {"origin", int64_val},
      {"origin_bytes", int64_list},   {"route_order", int64_list}};
  return known;
}

TEST(WriteChakra, EveryFieldStandsWhereTheFormatsTablesSay) {
  for (const ChakraCollectives collectives : {ChakraCollectives::whole, ChakraCollectives::lowered})
    for (const Given& given : schedules()) {
      SCOPED_TRACE(text_of(given));
      const Written once = written(given, collectives);
      for (std::size_t rank = 0; rank < once.files.size(); ++rank) {
        const std::vector<std::string> records = records_of(once.files[rank]);
        const WireNode header = taken_apart(records.at(0), 2);
        ASSERT_EQ(header.fields.at(1).content, "1.0.0");
        std::set<std::uint64_t> seen;
        for (std::size_t r = 1; r < records.size(); ++r) {
          const WireNode one = taken_apart(records[r]);
          const std::uint64_t id = one.value(1), type = one.value(3);
          ASSERT_TRUE(seen.insert(id).second);
          ASSERT_TRUE(one.fields.contains(2));
          ASSERT_LE(comp - 2, static_cast<int>(type));
          ASSERT_LE(type, 7U);
          ASSERT_GE(one.value(7), 1U) << "at least a microsecond, rounded up";
          ASSERT_EQ((one.value("duration_ps") + 999'999) / 1'000'000, one.value("duration_ps") == 0 ? 0 : one.value(7));
          for (const int list : {4, 5})
            for (const std::uint64_t dependency : packed_numbers(one.fields.contains(list) ? one.fields.at(list).content : "")) {
              ASSERT_LT(dependency, id);
              ASSERT_TRUE(seen.contains(dependency));
            }
          for (const auto& [name, value] : one.attributes) {
            ASSERT_TRUE(variants().contains(name)) << name;
            ASSERT_EQ(value.number, variants().at(name)) << name;
          }
          ASSERT_TRUE(one.attributes.contains("is_cpu_op"));
          ASSERT_EQ(one.value("is_cpu_op"), 0U);
          const bool half = type == comm_send || type == comm_recv;
          ASSERT_EQ(one.attributes.contains("num_ops"), type == comp);
          ASSERT_EQ(one.attributes.contains("comm_size"), half || type == comm_coll);
          ASSERT_EQ(one.attributes.contains("comm_type"), type == comm_coll);
          ASSERT_EQ(one.attributes.contains("comm_tag"), half);
          ASSERT_EQ(one.attributes.contains("pg_name"), type == comm_coll);
          ASSERT_EQ(half ? one.value(type == comm_send ? "comm_src" : "comm_dst") : rank, rank);
        }
      }
    }
}

TEST(WriteChakra, AMessageHasATagOfItsOwnAndIsOnceSentAndOnceReceived) {
  for (const Given& given : schedules()) {
    SCOPED_TRACE(text_of(given));
    const Written once = written(given, ChakraCollectives::lowered);
    std::map<std::array<std::uint64_t, 3>, std::uint64_t> sends, receives;  // source, destination, tag -> bytes
    for (const std::string& file : once.files)
      for (const WireNode& one : nodes_of(file)) {
        if (one.value(3) != comm_send && one.value(3) != comm_recv) continue;
        auto& halves = one.value(3) == comm_send ? sends : receives;
        ASSERT_TRUE(halves.emplace(std::array{one.value("comm_src"), one.value("comm_dst"), one.value("comm_tag")}, one.value("comm_size")).second);
      }
    EXPECT_EQ(sends, receives);
    EXPECT_FALSE(sends.empty());
  }
}

/// The collectives of rank 0: type, size and group.
std::vector<std::array<std::string, 3>> collectives_of(const Written& once) {
  std::vector<std::array<std::string, 3>> found;
  for (const WireNode& one : nodes_of(once.files[0]))
    if (one.value(3) == comm_coll)
      found.push_back({std::to_string(one.value("comm_type")), std::to_string(one.value("comm_size")), one.attributes.at("pg_name").content});
  return found;
}

TEST(WriteChakra, WholeCollectivesTellTheShardOfAnAllGatherAndTheBufferOfOthers) {
  using Row = std::array<std::string, 3>;
  const auto of = [](const std::string& kind, Given more = {}) {
    Given given{{"machine", "tpu_v4"}, {"slice", "4x4"}, {"collective", kind}, {"bytes", "1MiB"}};
    given.insert(given.end(), more.begin(), more.end());
    return written(given, ChakraCollectives::whole);
  };
  EXPECT_THAT(collectives_of(of("all-reduce")), ElementsAre(Row{"0", "1048576", "0"}));
  EXPECT_THAT(collectives_of(of("all-gather")), ElementsAre(Row{"2", "1048576", "0"})) << "of 16 MiB";
  EXPECT_THAT(collectives_of(of("reduce-scatter")), ElementsAre(Row{"7", "1048576", "0"}));
  EXPECT_THAT(collectives_of(of("all-to-all")), ElementsAre(Row{"6", "1048576", "0"}));
  EXPECT_THAT(collectives_of(of("broadcast", {{"axis", "row"}})), ElementsAre(Row{"5", "1048576", "1"}));
  EXPECT_THAT(collectives_of(of("reduce", {{"axis", "row"}})), ElementsAre(Row{"1", "1048576", "1"}));
  EXPECT_THAT(collectives_of(of("permute", {{"axis", "row"}, {"shift", "1"}})), ElementsAre());
  EXPECT_EQ(of("all-gather", {{"axis", "row"}}).groups,
            (ChakraGroups{{"1", {0, 4, 8, 12}}, {"2", {1, 5, 9, 13}}, {"3", {2, 6, 10, 14}}, {"4", {3, 7, 11, 15}}}));
  EXPECT_TRUE(of("all-gather").groups.empty());
}

TEST(WriteChakra, ComputationsTellTheirFlopsBytesAndTime) {
  const Written once =
      written({{"machine", "tpu_v4"}, {"slice", "2x2"}, {"gemm", "m=1024,n=512,k=256"}, {"algorithm", "collective"}}, ChakraCollectives::whole);
  const auto trace = parse_chakra(once.files[3], "t");
  ASSERT_TRUE(trace);
  const auto product = std::find_if(trace->nodes.begin(), trace->nodes.end(), [](const ChakraNode& node) { return node.num_ops > 0; });
  ASSERT_NE(product, trace->nodes.end());
  EXPECT_EQ(product->num_ops, 2 * 512 * 256 * 256);
  EXPECT_EQ(product->tensor_size, 2U * (512 * 256 + 256 * 256 + 512 * 256));
  EXPECT_EQ(product->extension.duration, once.run.timeline.makespan - (once.run.timeline.makespan - *product->extension.duration));
  EXPECT_EQ(product->duration_micros, static_cast<std::uint64_t>((product->extension.duration->count() + 999'999) / 1'000'000));
}

TEST(WriteChakra, TheSameRunGivesTheSameBytes) {
  const Given& given = schedules()[3];
  EXPECT_EQ(written(given, ChakraCollectives::whole).files, written(given, ChakraCollectives::whole).files);
}

TEST(WriteChakra, CollectivesInASwitchHaveNoSends) {
  const Given given{{"machine", "dgx_h100"}, {"slice", "1x8"}, {"collective", "all-reduce"}, {"bytes", "16MiB"}, {"algorithm", "in-switch"}};
  const Written whole = written(given, ChakraCollectives::whole);
  EXPECT_EQ(again(whole), whole.run.timeline.makespan);
  const auto lowered = ChakraWriter::make({whole.run.problem->schedule, whole.run.model, whole.run.timeline}, ChakraCollectives::lowered);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().message, "a collective that a switch adds up or copies has no sends that could be written one by one");
}

}  // namespace
}  // namespace podsim
