// MSCCL's XML: what is read, what is refused and where, and that no text crashes the reader.
#include "workloads/msccl/read_msccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sim/base/test_asked.hpp"
#include "sim/schedule/validate.hpp"
#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/msccl/testing.hpp"
#include "workloads/msccl/write_msccl.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string two_gpus = R"(<!-- a comment -->
<algo name="swap" proto="LL128" nchannels="2" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1" outofplace="0" minBytes="16" maxBytes="1024">
  <gpu id="1" i_chunks="0" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="1">
      <step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="0" i_chunks="0" o_chunks="2" s_chunks="0">
    <tb id="1" send="1" recv="-1" chan="1">
      <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
    <tb id="0" send="-1" recv="1" chan="1">
      <step s="0" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"></step>
    </tb>
  </gpu>
</algo>
)";

/// The file with one text in place of another.
std::string with(const std::string& from, const std::string& to) {
  std::string text = two_gpus;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto read = read_msccl(text, "f");
  return read ? "" : to_text(read.error());
}

TEST(ReadMsccl, TakesGpusAndThreadBlocksByTheirIdsInAnyOrder) {
  const MscclAlgorithm algorithm = testing::msccl(two_gpus);
  EXPECT_EQ(algorithm.name, "swap");
  EXPECT_EQ(algorithm.protocol, "LL128");
  EXPECT_EQ(algorithm.channels, 2);
  EXPECT_EQ(algorithm.chunks_per_loop, 2);
  EXPECT_EQ(algorithm.collective, "allgather");
  EXPECT_TRUE(algorithm.in_place);
  EXPECT_EQ(algorithm.least, Bytes{16});
  EXPECT_EQ(algorithm.most, Bytes{1024});
  ASSERT_EQ(algorithm.gpus.size(), 2U);
  ASSERT_EQ(algorithm.gpus[0].blocks.size(), 2U);
  EXPECT_EQ(algorithm.gpus[0].output_chunks, 2);
  EXPECT_EQ(algorithm.gpus[0].blocks[0].receive, 1);
  EXPECT_EQ(algorithm.gpus[0].blocks[1].send, 1);
  const MscclStep& step = algorithm.gpus[0].blocks[1].steps[0];
  EXPECT_EQ(step.kind, MscclKind::send);
  EXPECT_EQ(step.after_block, 0);
  EXPECT_EQ(step.after_step, 0);
  EXPECT_EQ(step.where.line, 11);
  EXPECT_TRUE(algorithm.gpus[0].blocks[0].steps[0].has_dependents);
}

TEST(ReadMsccl, SaysWhereAndWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "f:1:1: expected the element \"algo\", found none"},
      {"<algo", "f:1:5: expected XML, found: error parsing start element tag"},
      {"hello", "f:1:5: expected the element \"algo\", found none"},
      {"<html/>", "f:1:2: expected the element \"algo\", found \"html\""},
      {two_gpus + "<algo/>", "f:18:2: expected one element \"algo\", found a second one"},
      {with("<tb id=\"1\"", "hello <tb id=\"1\""), "f:10:5: expected elements \"tb\", found text"},
      {with("    <tb id=\"1\"", "<bt/> <tb id=\"1\""), "f:10:2: expected elements \"tb\", found \"bt\""},
      {with("></step>", "><more/></step>"), "f:14:113: expected no elements in \"step\", found \"more\""},
      {with("</gpu>\n  <gpu id=\"0\"", "</gpu>\n  <gpu id=\"0\" ids=\"1\""), "f:9:15: \"gpu\" has no attribute \"ids\", did you mean \"id\"?"},
      {with(" coll=\"allgather\"", ""), "f:2:2: expected \"algo\" with the attribute \"coll\", found none"},
      {with("chan=\"1\"", "chan=\"1\" chan=\"1\""), "f:4:43: expected \"chan\" once, found it twice"},
      {with("LL128", "LL64"), "f:2:26: expected proto Simple, LL or LL128, found \"LL64\""},
      {with("inplace=\"1\"", "inplace=\"2\""), "f:2:102: expected inplace from 0 to 1, found \"2\""},
      {with("ngpus=\"2\"", "ngpus=\"two\""), "f:2:73: expected ngpus from 1 to 1024, found \"two\""},
      {with("ngpus=\"2\"", "ngpus=\"1000000\""), "f:2:73: expected ngpus from 1 to 1024, found \"1000000\""},
      {with("ngpus=\"2\"", "ngpus=\"3\""), "f:2:73: expected ngpus=2, as there are so many elements \"gpu\", found 3"},
      {with("gpu id=\"0\"", "gpu id=\"1\""), "f:9:12: expected every GPU once, found 1 twice"},
      {with("<gpu id=\"0\" i_chunks=\"0\"", "<gpu id=\"0\" i_chunks=\"1e9\""), "f:9:25: expected i_chunks from 0 to 1048576, found \"1e9\""},
      {with("tb id=\"1\"", "tb id=\"0\""), "f:13:13: expected every thread block once, found 0 twice"},
      {with("tb id=\"1\"", "tb id=\"2\""), "f:10:13: expected id from 0 to 1, found \"2\""},
      {with("send=\"1\"", "send=\"0\""), "f:10:22: expected another GPU than 0 itself as send"},
      {with("send=\"1\"", "send=\"-0\""), "f:10:22: expected another GPU than 0 itself as send"},
      {with("chan=\"1\"", "chan=\"2\""), "f:4:40: expected chan from 0 to 1, found \"2\""},
      {with("type=\"s\"", "type=\"send\""), "f:5:25: expected the type nop, s, r, cpy, re, rcs, rrc, rrs or rrcs, found \"send\""},
      {with("send=\"1\" recv=\"-1\"", "send=\"-1\" recv=\"1\""), "f:11:25: expected a thread block with send for a step s, found send=\"-1\""},
      {with("step s=\"1\"", "step s=\"2\""), "f:6:16: expected s from 1 to 1, found \"2\""},
      {with("srcbuf=\"o\"", "srcbuf=\"x\""), "f:5:36: expected srcbuf i, o or s, found \"x\""},
      {with("srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\"", "srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"2\""),
       "f:5:47: expected 2 chunks of the buffer o, which has 2, found those from 1 on"},
      {with("srcbuf=\"o\"", "srcbuf=\"i\""), "f:5:47: expected 1 chunks of the buffer i, which has 0, found those from 1 on"},
      {with("cnt=\"1\"", "cnt=\"0\""), "f:5:77: expected cnt from 1 to 1048576, found \"0\""},
      {with("depid=\"0\" deps=\"0\"", "depid=\"0\" deps=\"-1\""), "f:11:96: expected deps from 0 to 1048576, found \"-1\""},
      {with("depid=\"0\"", "depid=\"7\""), "f:11:8: expected a thread block of GPU 0, which has 2, as depid, found 7"},
      {with("deps=\"0\"", "deps=\"3\""), "f:11:8: expected a step of thread block 0, which has 1, as deps, found 3"},
      {with("hasdep=\"1\"", "hasdep=\"0\""),
       "f:11:8: expected hasdep=\"1\" of step 0 of thread block 0, which this one waits for, found 0: nobody would tell it"},
      {with("type=\"r\"", "type=\"nop\""),
       "f:11:8: expected GPU 1 to receive what this step sends it over channel 1, found 0 such steps there for 1 messages"},
      {with("type=\"s\" srcbuf=\"o\" srcoff=\"1\"", "type=\"nop\" srcbuf=\"o\" srcoff=\"1\""),
       "f:14:8: expected GPU 1 to send what this step receives over channel 1, found 0 messages for 1 such steps"},
      {with("depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n      <step s=\"1\"", "depid=\"0\" deps=\"1\" hasdep=\"0\"/>\n      <step s=\"1\""),
       "f:5:8: expected hasdep=\"1\" of step 1 of thread block 0, which this one waits for, found 0: nobody would tell it"},
      {std::string("<algo>\0</algo>", 14), "f:1:7: expected XML, found a zero byte"},
  };
  for (const auto& [text, message] : wrong) EXPECT_EQ(error_of(text), message);
}

TEST(ReadMsccl, RefusesMessagesOfTwoSizesAndConnectionsOfTwoThreadBlocks) {
  EXPECT_THAT(error_of(testing::msccl_text("custom", false, {"2 2 0 | 1 -1 0: s i0 o0 x2", "2 2 0 | -1 0 0: r i0 o0"})),
              HasSubstr("expected cnt=2, as message 0 from GPU 0 over channel 0 has 2 chunks, found 1"));
  EXPECT_THAT(error_of(testing::msccl_text("custom", false, {"2 2 0 | 1 -1 0: s i0 o0 | 1 -1 0: s i1 o1", "2 2 0 | -1 0 0: r i0 o0; r i1 o1"})),
              HasSubstr("f:6:2: expected one thread block at each end of a connection, found two, 0 and 1, from GPU 0 to GPU 1 over channel 0"));
}

TEST(ReadMsccl, TellsACircleOfWaitingSteps) {
  // Of one GPU; and over two, where each receives before it sends.
  EXPECT_THAT(
      error_of(testing::msccl_text("custom", false, {"1 1 0 | -1 -1 0: nop @1.0 ! | -1 -1 0: nop @0.0 !"})),
      HasSubstr("f:4:2: expected steps that can all run, found 2 that wait for each other (GPU, thread block, step): 0 0 0, which waits for 0 1 0"));
  EXPECT_THAT(error_of(testing::msccl_text("custom", false, {"1 1 0 | 1 1 0: r i0 o0; s i0 o0", "1 1 0 | 0 0 0: r i0 o0; s i0 o0"})),
              HasSubstr("found 4 that wait for each other"));
}

TEST(ReadMsccl, IsReadAgainAsItIsWritten) {
  for (const std::string& text : {two_gpus, testing::ring_text(4, true), testing::ring_text(3, false)}) {
    const MscclAlgorithm algorithm = testing::msccl(text);
    MscclAlgorithm again = testing::msccl(write_msccl(algorithm));
    again.file = algorithm.file;
    EXPECT_EQ(again, algorithm);
  }
}

TEST(ReadMsccl, TakesLittleOfWhatIsMadeToTakeMuch) {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "<algo>";
  EXPECT_THAT(error_of(deep), StartsWith("f:1:"));
  std::string wide = "<algo ";
  for (int i = 0; i < 1'000'000; ++i) wide += "a='' ";
  EXPECT_THAT(error_of(wide + "/>"), HasSubstr("\"algo\" has no attribute \"a\""));
  EXPECT_THAT(error_of(std::string(20'000'000, ' ')), HasSubstr("expected at most 16000000 bytes"));
  std::string blocks = "1048576 1048576 0";
  for (int i = 0; i < 8; ++i) blocks += " | -1 -1 0: cpy i0 o0 x1048576";
  EXPECT_THAT(error_of(testing::msccl_text("custom", false, {blocks})),
              HasSubstr("expected steps that move at most 4194304 chunks in all, found more"));
}

/// A text with some bytes changed, runs of it taken out, doubled or exchanged, and numbers replaced.
std::string mutated(std::string text, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1)); };
  static constexpr std::string_view odd = "<>/\"=&;'! \n\t\x80\xff-9i";
  static const std::vector<std::string> numbers{"-1", "0", "1", "7", "999999999999999999999", "-9", "1e3", "", "4194305"};
  for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
    const std::size_t at = below(text.size()), length = std::min(below(40), text.size() - at);
    switch (below(6)) {
      case 0: text[at] = odd[below(odd.size())]; break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(below(text.size()), length)); break;
      case 3: text.insert(at, 1, static_cast<char>(random())); break;
      default: {
        const std::size_t quote = text.find('"', at), end = quote == std::string::npos ? quote : text.find('"', quote + 1);
        if (end != std::string::npos) text.replace(quote + 1, end - quote - 1, numbers[below(numbers.size())]);
      }
    }
    if (text.empty()) text = "<";
  }
  return text;
}

/// PODSIM_MSCCL_MUTANTS of them; the suite has 100,000.
TEST(ReadMsccl, NoMutantCrashesIt) {
  const int mutants = test::asked("PODSIM_MSCCL_MUTANTS", 100'000);
  const Mesh two = *Mesh::make({{"row", 2, true}}), three = *Mesh::make({{"row", 3, true}});
  const std::vector<std::string> seeds{two_gpus, testing::ring_text(3, true),
                                       testing::msccl_text("alltoall", false,
                                                           {"2 2 1 | 1 1 0: s i1 o0; r i0 s0 ! | -1 -1 0: cpy i0 o0; nop; cpy s0 o1 @0.1",
                                                            "2 2 1 | 0 0 0: s i0 o1; r i1 o0 | -1 -1 1: cpy i1 o1"})};
  std::mt19937_64 random{19};
  int accepted = 0, refused = 0, proven = 0;
  for (int m = 0; m < mutants; ++m) {
    const std::string text = mutated(seeds[static_cast<std::size_t>(m) % seeds.size()], random);
    const auto read = read_msccl(text, "f");
    if (!read) {
      ++refused;
      ASSERT_EQ(read.error().where.file, "f") << text;
      ASSERT_FALSE(read.error().message.empty()) << text;
      continue;
    }
    ++accepted;
    const auto schedule = msccl_schedule(*read, read->gpus.size() == 2 ? two : three, Bytes{96}, DType::f32);
    if (schedule && validate(*schedule).ok()) ++proven;
  }
  EXPECT_GT(accepted, mutants / 100);
  EXPECT_GT(refused, mutants / 2);
  EXPECT_GT(proven, mutants / 200);
}

}  // namespace
}  // namespace podsim
