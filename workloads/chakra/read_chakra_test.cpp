// Files of traces: framing, attributes and what is wrong with them, from bytes written by hand.
#include "workloads/chakra/read_chakra.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "sim/base/test_asked.hpp"
#include "workloads/chakra/chakra_schedule.hpp"
#include "workloads/chakra/test_wire.hpp"

namespace podsim {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Every sort of node, of one of two ranks that do the same.
std::string whole_trace(int other = 1) {
  return metadata() + comp_micros(0, 3) + send_to(1, other, 1000, {0}, 7) + recv_from(2, other, 1000, {0}, 7) + coll(3, 0, 4096, {1, 2}) +
         record(node(4, mem_load, {3}, attribute("tensor_size", uint64_val, 512))) +
         record(node(5, mem_store, {4}, attribute("tensor_size", uint64_val, 512))) + record(node(6, metadata_node, {}));
}

std::string error_of(const std::string& text) {
  const auto trace = parse_chakra(text, "t.0.et");
  return trace ? "none" : to_text(trace.error());
}

TEST(ReadChakra, EveryFieldHasTheMeaningOfTheFormatsTables) {
  const std::string attributes =
      attribute("is_cpu_op", bool_val, 0) + attribute("comm_type", int64_val, 2) + attribute("comm_size", int64_val, 1'000'000'000'000) +
      attribute("involved_dim", bool_list, bytes(1, std::string{"\1\0\1", 3})) + attribute("pg_name", string_val, "12") +
      attribute("comm_priority", int32_val, 3) + attribute("unknown", 21, std::string_view{"x"}) + attribute("stream", int64_val, 7);
  const std::string text =
      metadata("0.0.4") +
      record(number(1, 77) + bytes(2, "gather") + number(3, comm_coll) + bytes(4, varint(1) + varint(300)) + bytes(5, varint(2)) + number(6, 9) +
             number(7, 8) + bytes(8, bytes(1, "in")) + bytes(9, bytes(2, "out")) + attributes) +
      record(node(1, comp, {}, attribute("num_ops", int64_val, 5) + attribute("tensor_size", uint64_val, 6) + attribute("is_cpu_op", bool_val, 1))) +
      record(number(1, 2) + number(3, comm_recv) + attribute("comm_src", int32_val, 4) + attribute("comm_dst", int32_val, 0) +
             attribute("comm_tag", int32_val, ~std::uint64_t{0})) +
      record(node(300, mem_store, {}, attribute("tensor_size", uint64_val, 9) + attribute("duration_ps", uint64_val, 123'456'789'012)));
  const auto trace = parse_chakra(text, "t");
  ASSERT_TRUE(trace) << to_text(trace.error());
  EXPECT_EQ(trace->version, "0.0.4");
  ASSERT_EQ(trace->nodes.size(), 4U);
  const ChakraNode& gather = trace->nodes[0];
  EXPECT_EQ(gather.id, 77U);
  EXPECT_EQ(gather.name, "gather");
  EXPECT_EQ(gather.type, ChakraType::comm_coll);
  EXPECT_THAT(gather.ctrl_deps, ElementsAre(1, 300));
  EXPECT_THAT(gather.data_deps, ElementsAre(2));
  EXPECT_EQ(gather.start_micros, 9U);
  EXPECT_EQ(gather.duration_micros, 8U);
  EXPECT_EQ(gather.comm_type, 2);
  EXPECT_EQ(gather.comm_size, 1'000'000'000'000);
  EXPECT_THAT(gather.involved_dim, ElementsAre(true, false, true));
  EXPECT_EQ(gather.pg_name, "12");
  EXPECT_EQ(gather.comm_priority, 3);
  EXPECT_FALSE(gather.is_cpu_op);
  EXPECT_EQ(gather.record, 1);
  EXPECT_EQ(trace->nodes[1].num_ops, 5);
  EXPECT_EQ(trace->nodes[1].tensor_size, 6U);
  EXPECT_TRUE(trace->nodes[1].is_cpu_op);
  EXPECT_EQ(trace->nodes[2].comm_src, 4);
  EXPECT_EQ(trace->nodes[2].comm_dst, 0);
  EXPECT_EQ(trace->nodes[2].comm_tag, -1);
  EXPECT_EQ(trace->nodes[3].extension.duration, Picoseconds{123'456'789'012});
}

TEST(ReadChakra, GzipIsTheSameInAnyNumberOfMembers) {
  const std::string text = whole_trace();
  const auto plain = parse_chakra(text, "t"), packed = parse_chakra(gzipped(text), "t"),
             members = parse_chakra(gzipped(text.substr(0, 9)) + gzipped("") + gzipped(text.substr(9)), "t");
  ASSERT_TRUE(plain && packed && members);
  EXPECT_EQ(plain->nodes.size(), 7U);
  EXPECT_EQ(packed->nodes, plain->nodes);
  EXPECT_EQ(members->nodes, plain->nodes);
  const std::string whole = gzipped(text);
  EXPECT_EQ(error_of(whole.substr(0, whole.size() / 2)), "t.0.et: the compressed data are truncated");
  std::string corrupt = whole;
  corrupt[corrupt.size() / 2] = static_cast<char>(corrupt[corrupt.size() / 2] ^ 0x55);
  EXPECT_THAT(error_of(corrupt), StartsWith("t.0.et: the compressed data are "));
}

TEST(ReadChakra, ATruncatedFileNamesTheRecordThatIsCut) {
  const std::string text = whole_trace();
  const std::vector<std::string> records = records_of(text);
  std::size_t begin = 0;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const std::size_t end = begin + record(records[r]).size();
    for (std::size_t cut = begin + 1; cut < end; ++cut)
      EXPECT_THAT(error_of(text.substr(0, cut)), StartsWith("t.0.et: record " + std::to_string(r) + ": ")) << cut;
    begin = end;
  }
  EXPECT_EQ(error_of(""), "t.0.et: expected the records of a Chakra trace, found an empty file");
  EXPECT_EQ(error_of(metadata()), "none") << "a rank may have nothing to do";
  EXPECT_EQ(error_of(metadata() + comp_micros(1, 1) + std::string{"\0", 1} + "anything"), "none")
      << "a record of no bytes is the end, as readers have it";
}

TEST(ReadChakra, LengthsAreNotBelieved) {
  EXPECT_EQ(error_of(varint(~std::uint64_t{0})),
            "t.0.et: record 0: at byte 0: expected a record of at most 67108864 bytes, found one of 18446744073709551615");
  EXPECT_EQ(error_of(metadata() + varint(1U << 26) + "x"),
            "t.0.et: record 1: at byte 8: expected a record of 67108864 bytes, found 1: the file is truncated");
  EXPECT_EQ(error_of(std::string(12, '\xff')), "t.0.et: record 0: at byte 0: expected a length of at most ten bytes, found a longer one");
  EXPECT_EQ(error_of(metadata() + record(bytes(2, "x") + "\x0a\x7f")), "t.0.et: record 1: expected a Node, found bytes that are none");
}

TEST(ReadChakra, AnAttributeInAnotherVariantIsToldNotReadAsZero) {
  const std::map<std::string, int> variants{{"is_cpu_op", bool_val},  {"num_ops", int64_val},       {"tensor_size", uint64_val},
                                            {"comm_type", int64_val}, {"comm_size", int64_val},     {"involved_dim", bool_list},
                                            {"pg_name", string_val},  {"comm_priority", int32_val}, {"comm_src", int32_val},
                                            {"comm_dst", int32_val},  {"comm_tag", int32_val},      {"duration_ps", uint64_val}};
  for (const auto& [name, variant] : variants)
    for (const int other : {int32_val, int64_val, static_cast<ValueField>(11), uint64_val, bool_val, static_cast<ValueField>(15)}) {
      const std::string text = error_of(metadata() + record(node(1, comp, {}, attribute(name, other, 1))));
      if (other == variant)
        EXPECT_EQ(text, "none") << name;
      else
        EXPECT_THAT(text, StartsWith("t.0.et: record 1: attribute " + name + ": expected ")) << other;
    }
  EXPECT_EQ(error_of(metadata() + record(node(1, comp, {}, attribute("num_ops", uint64_val, 1)))),
            "t.0.et: record 1: attribute num_ops: expected int64_val, found uint64_val, which readers of this format take for 0");
  EXPECT_EQ(error_of(metadata() + record(node(1, comp, {}, bytes(10, bytes(1, "num_ops"))))),
            "t.0.et: record 1: attribute num_ops: expected int64_val, found no value, which readers of this format take for 0");
}

TEST(ReadChakra, ACollectiveThatTheHostCallsIsItsKernelsAlone) {
  const std::string host = record(node(8, comm_coll, {}, attribute("is_cpu_op", bool_val, 1) + attribute("comm_type", int64_val, 5) + attribute("comm_size", int64_val, 4096)));
  const auto trace = parse_chakra(metadata() + host + coll(9, 0, 4096, {8}), "t.0.et");
  ASSERT_TRUE(trace) << to_text(trace.error());
  EXPECT_EQ(trace->nodes[0].type, ChakraType::comp);
  EXPECT_EQ(trace->nodes[1].type, ChakraType::comm_coll);
}

TEST(ReadChakra, NodesThatNoReaderCouldRunAreErrorsWithTheirRecord) {
  const auto second = [](const std::string& message) { return error_of(metadata() + comp_micros(9, 1) + record(message)); };
  EXPECT_EQ(second(number(1, 3)), "t.0.et: record 2: expected a node with a type, found type 0");
  EXPECT_EQ(second(node(3, 8)), "t.0.et: record 2: expected a type from 1 to 7, found 8");
  EXPECT_EQ(second(node(9, comp)), "t.0.et: record 2: expected an id of its own, found 9, that of record 1");
  EXPECT_EQ(second(node(3, comp, {4})), "t.0.et: record 2: expected dependencies on nodes of this trace, found node 4");
  EXPECT_EQ(second(node(3, comp, {3})), "t.0.et: record 2: expected dependencies without a cycle, found 3, 3");
  EXPECT_EQ(second(node(3, comm_coll, {}, attribute("is_cpu_op", bool_val, 1))),
            "t.0.et: record 2: attribute is_cpu_op: expected false for communication, as in some record, found true in all");
  EXPECT_EQ(second(node(3, comm_coll, {}, attribute("comm_type", int64_val, 10))),
            "t.0.et: record 2: attribute comm_type: expected 0 to 9, found 10");
  EXPECT_EQ(second(node(3, comm_send, {}, attribute("comm_size", int64_val, ~std::uint64_t{0}))),
            "t.0.et: record 2: attribute comm_size: expected 0 to 1125899906842624, found -1");
  EXPECT_EQ(second(node(3, comp, {}, attribute("num_ops", int64_val, 1) + attribute("num_ops", int64_val, 1))),
            "t.0.et: record 2: attribute num_ops: expected it once, found it twice");
  EXPECT_EQ(error_of(metadata() + record(node(1, comp, {3})) + record(node(2, comp, {1})) + record(node(3, comp, {2})) + comp_micros(4, 1, {3})),
            "t.0.et: record 1: expected dependencies without a cycle, found 1, 3, 2, 1");
}

TEST(ReadChakra, DependenciesMayStandBehindTheirNodes) {
  const auto trace = parse_chakra(metadata() + comp_micros(5, 1, {7}) + comp_micros(7, 1) + comp_micros(3, 1, {5}) + comp_micros(1, 1), "t");
  ASSERT_TRUE(trace);
  const auto order = chakra_order(*trace);
  ASSERT_TRUE(order);
  EXPECT_THAT(*order, ElementsAre(3, 1, 0, 2)) << "of those that may come next, the lowest id";
}

TEST(ReadChakra, ProcessGroupsAreAnObjectOfRanks) {
  const auto groups = parse_chakra_groups(R"({"1": [0, 2], "2": [3, 1], "10": [3]})", "g.json", 4);
  ASSERT_TRUE(groups) << to_text(groups.error());
  EXPECT_EQ(*groups, (ChakraGroups{{"1", {0, 2}}, {"10", {3}}, {"2", {3, 1}}}));
  const auto said = [](const char* text) {
    const auto read = parse_chakra_groups(text, "g.json", 4);
    return read ? "none" : to_text(read.error());
  };
  EXPECT_THAT(said("{\"1\": [0,"), StartsWith("g.json: expected a JSON object of process groups: "));
  EXPECT_THAT(said(""), StartsWith("g.json: expected a JSON object of process groups: "));
  EXPECT_EQ(said("[]"), R"(g.json: expected an object {"1": [0, 1], ..} of process groups)");
  EXPECT_EQ(said(R"({"0": [1]})"), R"(g.json: expected the id of a process group as a decimal number above 0, found "0")");
  EXPECT_EQ(said(R"({"1": 5})"), R"(g.json: group "1": expected an array of ranks)");
  EXPECT_EQ(said(R"({"1": []})"), R"(g.json: group "1": expected at least one rank, found none)");
  EXPECT_EQ(said(R"({"1": [0, 4]})"), R"(g.json: group "1": expected ranks from 0 to 3, found 4)");
  EXPECT_EQ(said(R"({"1": [0, 0]})"), R"(g.json: group "1": expected each rank once, found 0 twice)");
  EXPECT_EQ(said(R"({"1": [0], "1": [1]})"), R"(g.json: group "1": expected it once, found it twice)");
}

/// PODSIM_MUTANTS sets another number.
TEST(ReadChakra, NoMutantCrashes) {
  const Mesh mesh = *Mesh::make({{"x", 2, true}});
  const std::string zero = whole_trace(), one = whole_trace(0);
  const std::string packed = gzipped(zero);
  const int mutants = test::asked("PODSIM_MUTANTS", 100'000);
  std::mt19937_64 random{1};
  int schedules = 0, errors = 0;
  for (int m = 0; m < mutants; ++m) {
    std::string text = m % 16 == 0 ? packed : zero;
    for (auto changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 5) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
        case 2: text.erase(at, 1 + random() % 3); break;
        case 3: text.insert(at, text.substr(random() % text.size(), 1 + random() % 16)); break;
        default: text.resize(at); break;
      }
    }
    const auto schedule = chakra_schedule(
        mesh, [&](int rank) { return parse_chakra(rank == 0 ? text : one, "t"); }, {}, ChakraCost::recorded);
    if (schedule) {
      ++schedules;
    } else {
      ++errors;
      ASSERT_FALSE(to_text(schedule.error()).empty()) << m;
    }
  }
  EXPECT_GT(schedules, mutants / 100);
  EXPECT_GT(errors, mutants / 4);
}

}  // namespace
}  // namespace podsim
