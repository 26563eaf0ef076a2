// Importers of texts: nccl-tests, tables of HLO statistics.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/config/files.hpp"
#include "validation/calibration/importers/hlo_op.hpp"
#include "validation/calibration/importers/hlo_stats.hpp"
#include "validation/calibration/importers/nccl_tests.hpp"
#include "validation/calibration/importers/testing.hpp"

namespace podsim {
namespace {

using testing::imported;
using testing::error_of;
using testing::notes_say;

using enum ObservedOp;

const std::string nccl_ranks = "# Using devices\n"
                               "#  Rank  0 Group  0 Pid   1 on  host device  0 [0x10] NVIDIA X\n"
                               "#  Rank  1 Group  0 Pid   1 on  host device  1 [0x20] NVIDIA X\n"
                               "#  Rank  2 Group  0 Pid   1 on  host device  2 [0x30] NVIDIA X\n"
                               "#  Rank  3 Group  0 Pid   1 on  host device  3 [0x40] NVIDIA X\n#\n";
const std::string nccl_heading = "#                                         out-of-place                       in-place\n"
                                 "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
                                 "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

TEST(NcclTests, AnAllGathersSizeIsThatOfAllDevices) {
  const std::string text = "# Collective test starting: all_gather_perf\n" + nccl_ranks + nccl_heading +
                           "           0             0  bfloat16    none      -1     5.10    0.00    0.00      0     5.00    0.00    0.00      0\r\n"
                           "        4096           512  bfloat16    none      -1    16.88    0.24    0.18      0    17.00    0.24    0.18      0\r\n"
                           "# Out of bounds values : 0 OK\n";
  const Imported result = imported(import_nccl_tests(text, "log"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].op, all_gather);
  EXPECT_EQ(result.observations[0].devices, 4);
  EXPECT_EQ(result.observations[0].bytes, Bytes{1024});
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 16.88e-6);
  EXPECT_EQ(result.observations[0].dtype, DType::bf16);
  EXPECT_TRUE(notes_say(result, "1 row of size 0"));
}

TEST(NcclTests, OfTheOthersItIsTheInputAndWrongResultsAreSkipped) {
  const std::string row = "  1048576  262144  float  sum  -1  100.0  10.49  7.86  0  99.0  10.6  7.9  0\n";
  const std::string wrong = "  2097152  524288  float  sum  -1  100.0  20.49  15.3  7  99.0  21.6  15.9  0\n";
  const Imported result = imported(import_nccl_tests("$ ./reduce_scatter_perf -g 4\n" + nccl_ranks + nccl_heading + row + wrong, "log"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].op, reduce_scatter);
  EXPECT_EQ(result.observations[0].bytes, Bytes{1048576});
  EXPECT_TRUE(notes_say(result, "1 row with wrong results"));
}

TEST(NcclTests, AReductionWithoutANameIsKnownByItsBusBandwidth) {
  // Rows of one half only are rows cut short.
  EXPECT_EQ(error_of(import_nccl_tests(nccl_ranks + nccl_heading + "  1048576  262144  float  sum  -1  10.0\n", "log")).substr(0, 22), "log:10:1: a row must h");
  const std::string tail = "  0  10.0  100.0  1.0  0\n";
  for (const auto& [bus, op] : {std::pair{"150.00", all_reduce}, {"75.00", reduce_scatter}, {"100.00", reduce}}) {
    const auto result = imported(import_nccl_tests(nccl_ranks + nccl_heading + "  1048576  262144  float  sum  -1  10.0  100.00  " + bus + tail, "log"));
    ASSERT_EQ(result.observations.size(), 1U);
    EXPECT_EQ(result.observations[0].op, op);
  }
  const std::string gather = nccl_ranks + nccl_heading + "  1048576  262144  float  none  -1  10.0  100.00  75.0" + tail;
  EXPECT_EQ(error_of(import_nccl_tests(gather, "log")),
            "log:10:1: nothing tells which collective this is: the text does not name its test (all_gather_perf, ...); `op` tells it");
  EXPECT_EQ(imported(import_nccl_tests(gather, "log", {.op = all_to_all})).observations.at(0).op, all_to_all);
}

/// Every line labelled.
std::string labelled(const std::string& label, std::string_view text) {
  std::string result;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    result += label + std::string{text.substr(begin, end - begin)} + '\n';
  }
  return result;
}

/// The lines of several texts in turn.
std::string interleaved(const std::vector<std::string>& texts) {
  std::string result;
  std::vector<std::size_t> at(texts.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (at[i] >= texts[i].size()) continue;
      const std::size_t end = texts[i].find('\n', at[i]) + 1;
      result += texts[i].substr(at[i], end - at[i]);
      at[i] = end;
      more = true;
    }
  }
  return result;
}

const std::string nccl_rows = "  4096  1024  float  sum  -1  16.88  0.24  0.18  0  17.00  0.24  0.18  0\n"
                              "  8192  2048  float  sum  -1  20.50  0.40  0.60  0  21.00  0.24  0.18  0\n";

/// All-reduces on four devices, of the bytes and times of other rows.
void expect_rows_of(const Imported& result, const std::vector<Observation>& expected) {
  ASSERT_EQ(result.observations.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result.observations[i].op, all_reduce);
    EXPECT_EQ(result.observations[i].devices, 4);
    EXPECT_EQ(result.observations[i].bytes, expected[i].bytes);
    EXPECT_EQ(result.observations[i].time, expected[i].time);
  }
}

TEST(NcclTests, LinesMayBeLabelledWithTheirProcess) {
  const std::string plain = "# Collective test starting: all_reduce_perf\n" + nccl_ranks + nccl_heading + nccl_rows + "# Avg bus bandwidth : 0.4\n";
  const std::vector<Observation> expected = imported(import_nccl_tests(plain, "log")).observations;
  ASSERT_EQ(expected.size(), 2U);
  for (const std::string label : {"0: ", " 0: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-node7-4711@1,0]<stdout>: ", "[0] "}) {
    SCOPED_TRACE(label);
    const std::string text = labelled(label, plain);
    const std::string others = labelled("1: ", "node7:4711:4711 [1] NCCL INFO Bootstrap : Using eth0\nnode7:4711:4711 [1] NCCL INFO done\n");
    for (const std::string& log : {text, interleaved({text, others}), interleaved({others, text})}) {
      const Imported result = imported(import_nccl_tests(log, "log"));
      expect_rows_of(result, expected);
    }
  }
}

TEST(NcclTests, ATableThatSeveralProcessesPrintIsTakenOnce) {
  const std::string table = nccl_ranks + nccl_heading + nccl_rows;
  std::string slower = table;
  slower.replace(slower.find("16.88"), 5, "17.88");
  const std::string log = interleaved({labelled("1: ", slower), labelled("0: ", table), labelled("2: ", slower)});
  const Imported result = imported(import_nccl_tests("+ srun -l ./all_reduce_perf -b 4K\n" + log, "log"));
  ASSERT_EQ(result.observations.size(), 2U);
  EXPECT_EQ(result.observations[0].op, all_reduce) << "as the line without a label says";
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 16.88e-6) << "of process 0";
  EXPECT_TRUE(notes_say(result, "4 rows skipped that another process printed too"));
  // One process that measures twice has two measurements; another test is another table.
  EXPECT_EQ(imported(import_nccl_tests("all_reduce_perf\n" + labelled("0: ", table + table), "log", {.op = all_reduce})).observations.size(), 4U);
  const std::string gathers = "all_gather_perf\n" + table;
  EXPECT_EQ(imported(import_nccl_tests(labelled("0: ", "all_reduce_perf\n" + table) + labelled("1: ", gathers), "log")).observations.size(), 4U);
}

TEST(NcclTests, PlacesInLabelledLinesAreThoseOfTheFile) {
  const std::string row = "  1024  256  float  sum  -1  x10.0  1.00  1.00  0  10.0  1.0  1.0  0\n";
  EXPECT_EQ(error_of(import_nccl_tests(labelled("[1,0]<stdout>:", nccl_heading + row), "log")),
            "log:4:44: the time must be a positive number, got \"x10.0\"");
  EXPECT_EQ(error_of(import_nccl_tests(labelled("0: ", nccl_heading), "log")), "log:2:1: there is no row below this heading");
  EXPECT_EQ(error_of(import_nccl_tests("[1,0]<stdin>:\n[\n[1,\n1:2\n[1]x\n99999999: \n", "log")),
            "log:1:1: there is no heading of nccl-tests: # size count type redop root time algbw busbw");
}

TEST(NcclTests, BadTextsAreToldWithTheirPlace) {
  EXPECT_EQ(error_of(import_nccl_tests("", "log")), "log:1:1: there is no heading of nccl-tests: # size count type redop root time algbw busbw");
  EXPECT_EQ(error_of(import_nccl_tests(nccl_heading, "log")), "log:2:1: there is no row below this heading");
  const std::string row = "  1024  256  float  sum  -1  x10.0  1.00  1.00  0  10.0  1.0  1.0  0\n";
  EXPECT_EQ(error_of(import_nccl_tests(nccl_heading + row, "log")), "log:4:30: the time must be a positive number, got \"x10.0\"");
  const std::string good = "  1024  256  float  sum  -1  10.0  0.10  0.18  0  10.0  0.1  0.2  0\n";
  EXPECT_EQ(error_of(import_nccl_tests("all_reduce_perf\n" + nccl_heading + good, "log")),
            "log:5:1: nothing tells how many devices took part: the text has no \"#  Rank\" lines; `devices` tells it");
  EXPECT_EQ(imported(import_nccl_tests("all_reduce_perf\n" + nccl_heading + good, "log", {.devices = 8})).observations.at(0).devices, 8);
}

/// As versions before 2.11 print it.
const std::string nccl_error_heading = "#                                                       out-of-place                       in-place\n"
                                       "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
                                       "#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
const std::string nccl_error_rows = "  1048576  262144  float  sum  41.20  25.45  38.18  2e-07  40.10  26.15  39.22  2e-07\n"
                                    "  2097152  524288  float  sum  52.30  40.10  60.15  N/A  51.20  40.96  61.44  N/A\n";

TEST(NcclTests, TheColumnErrorIsARoundingError) {
  const auto rows = [](const std::string& more) { return imported(import_nccl_tests(nccl_ranks + nccl_error_heading + nccl_error_rows + more, "log")); };
  const Imported result = rows("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 72.1\n");
  ASSERT_EQ(result.observations.size(), 2U);
  EXPECT_EQ(result.observations[0].op, all_reduce);
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 41.20e-6);
  EXPECT_FALSE(notes_say(result, "wrong"));
  EXPECT_EQ(rows("  4194304  1048576  float  sum  75.40  55.63  83.44  -nan  74.10  56.60  84.91  nan\n").observations.size(), 2U);
  const Imported wrong = rows("# Out of bounds values : 12 FAILED\n");
  EXPECT_TRUE(wrong.observations.empty()) << "the text does not tell which";
  EXPECT_TRUE(notes_say(wrong, "2 rows with wrong results"));
}

TEST(NcclTests, APasteMayHaveLostItsHashesAndGainedMarks) {
  const std::string name = "mpirun -np 2 all_reduce_perf -b 1M\n", end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 72.1\n";
  const std::string plain = nccl_ranks + nccl_error_heading + nccl_error_rows + end;
  const std::vector<Observation> expected = imported(import_nccl_tests(name + plain, "log")).observations;
  ASSERT_EQ(expected.size(), 2U);
  std::string bare = plain;
  std::erase(bare, '#');
  for (const std::string& text : {bare, labelled("> ", plain), labelled("> > ", bare), labelled(">", plain), labelled("2024-05-01 10:01:02,123 ", plain),
                                  labelled("2024-05-01T10:01:02.5Z ", bare), labelled("[10:01:02] ", plain), labelled("> 10:01:02 0: ", plain), labelled("0: 2024/05/01 10:01 ", plain)}) {
    SCOPED_TRACE(text.substr(0, 40));
    const Imported result = imported(import_nccl_tests(name + text, "log"));
    expect_rows_of(result, expected);
    EXPECT_FALSE(notes_say(result, "that are none")) << "comments are no strange lines";
  }
  const std::string bad = "  1024  256  float  sum  x10.0  1.00  1.00  0  10.0  1.0  1.0  0\n";
  EXPECT_EQ(error_of(import_nccl_tests(labelled("> ", nccl_error_heading + bad), "log")), "log:4:28: the time must be a positive number, got \"x10.0\"");
}

TEST(NcclTests, ARowMayLackItsFiguresInPlace) {
  // As programs made of nccl-tests print it (Panlichen/nccl-tests), and a test that is killed in its last row.
  const std::string whole = "  1048576  262144  float  sum  41.20  25.45  38.18  2e-07\n", begun = "  2097152  524288  float  sum\n";
  const Imported result = imported(import_nccl_tests(nccl_ranks + nccl_error_heading + whole + begun, "log"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 41.20e-6);
  EXPECT_TRUE(notes_say(result, "1 row without a time skipped"));
}

TEST(NcclTests, OtherOutputMayStandInARow) {
  // As NCCL_DEBUG=INFO breaks rows (NVIDIA/nccl, issue 1453).
  const std::string row = "       16384          4096     float     sum      -1    89.04    0.18    0.32      0    88.91    0.18    0.32      0\n";
  const std::string broken = "        8192          2048     float     sum      -1[0] h100-1:4978:4978 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.549810\n"
                             "h100-1:4978:4978 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.549810\n"
                             "    75.90    0.11    0.20      0h100-1:4978:4978 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.549810\n"
                             "    75.38    0.11    0.20      0\n";
  const Imported result = imported(import_nccl_tests("all_reduce_perf\n" + nccl_ranks + nccl_heading + broken + row, "log"));
  ASSERT_EQ(result.observations.size(), 2U);
  EXPECT_EQ(result.observations[0].bytes, Bytes{8192});
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 75.90e-6) << "out of place";
  EXPECT_DOUBLE_EQ(result.observations[1].time.count(), 89.04e-6);
}

TEST(NcclTests, ATimeThatContradictsItsBandwidthIsAnError) {
  const std::string row = "  1048576  262144  float  sum  -1  100.0  1.05  1.57  0  99.0  10.6  15.9  0\n";
  EXPECT_EQ(error_of(import_nccl_tests("all_reduce_perf\n" + nccl_ranks + nccl_heading + row, "log")),
            "log:11:43: expected the bandwidth of 1048576 bytes in 100 us, 10.49 GB/s, found 1.05");
}

TEST(NcclTests, ABusBandwidthTellsThatRanksAreMissing) {
  // As a page of AMD has it: two of eight ranks, and dots.
  const std::string text = "all_reduce_perf\n# Using devices\n#  Rank  0 Group  0 Pid 657053 on smci350 device  0 [0000:75:00] AMD Instinct MI350X\n#  Rank  1 Group  0 Pid 657053 on smci350 device  1 [0000:05:00] AMD Instinct MI350X\n...\n" + nccl_heading +
                           "  8589934592    2147483648     float     sum      -1    41644  206.27  360.97       0    40903  210.01  367.51       0\n";
  EXPECT_EQ(error_of(import_nccl_tests(text, "log")), "log:9:1: expected a bus bandwidth of 206.27 GB/s, as all-reduce on 2 devices, found 360.97: are lines of ranks missing? `devices` tells how many there are");
  EXPECT_EQ(imported(import_nccl_tests(text, "log", {.devices = 8})).observations.at(0).devices, 8);
}

TEST(NcclTests, TheNameOfTheFileTellsTheTestLast) {
  const std::string text = nccl_ranks + nccl_heading + "  1024  256  float  none  -1  10.0  0.10  0.08  0  10.0  0.1  0.1  0\n";
  const Imported result = imported(import_nccl_tests(text, "some/all_reduce/nccl_all_gather0.txt"));
  EXPECT_EQ(result.observations.at(0).op, all_gather);
  EXPECT_TRUE(notes_say(result, "all-gather by the file's name"));
}

const std::string hlo_collectives = "kind,hlo_op,input_shape,output_shape,input_bytes,output_bytes,occurrences,avg_self_time_us,in_megacore_fusion\n";

TEST(HloStats, CollectivesSayTheirDevicesByTheirBytes) {
  const std::string text = "# of a test\n" + hlo_collectives +
                           "all_gather,all-gather.1,\"bf16[512,32]\",\"bf16[2048,32]\",32768,131072,32,9.5,no\n"
                           "reduce_scatter(all-reduce-scatter fusion),fusion.1,\"f32[2048,32]\",\"f32[512,32]\",262144,65536,32,19.5,yes\n"
                           "all_reduce,all-reduce.1,bf16[32],bf16[32],64,64,32,6.5,no\n"
                           "async_all_gather_start,x,\"bf16[512,32]\",\"bf16[2048,32]\",32768,131072,32,9.5,no\n";
  const Imported result = imported(import_hlo_stats(text, "stats.csv"));
  ASSERT_EQ(result.observations.size(), 3U);
  EXPECT_EQ(result.observations[0].devices, 4);
  EXPECT_EQ(result.observations[0].dtype, DType::bf16);
  EXPECT_EQ(result.observations[1].op, reduce_scatter);
  EXPECT_EQ(result.observations[1].bytes, Bytes{262144});
  EXPECT_EQ(result.observations[1].schedule, ObservedSchedule::overlapped);
  EXPECT_EQ(result.observations[2].devices, 4);
  EXPECT_TRUE(notes_say(result, "1 collective taken to be of 4 devices"));
  EXPECT_TRUE(notes_say(result, "1 row skipped: starts and ends"));
}

TEST(HloStats, MatmulsAreThoseOfAllCoresAndNoneIsFasterThanItsCore) {
  const std::string text = "category,hlo_op,occurrences,avg_self_time_us,model_GFLOPs,result_shapes_prefix\n"
                           "convolution fusion,fusion.1,512,155.229,193929.5,\"bf16[1,2048,2048]{1,2,0:T(8,128)(2,1)}\"\n"
                           "convolution fusion,fusion.2,512,45.694,188170.5,\"(bf16[1,2048,16,128]{1,3,2,0:T(8,128)(2,1)}, bf16[1,512,16,128]\"\n"
                           "convolution fusion,fusion.3.in_megacore_fusion.1,256,281.172,213912.7,\"bf16[2048,7168]{1,0}\"\n"
                           "custom-call,splash,512,331.911,764427.5,\"(f32[512,128]{1,0}\"\n"
                           "loop fusion,fusion.4,512,331.911,0,\"(f32[512,128]{1,0}\"\n";
  const Imported result = imported(import_hlo_stats(text, "s", {.cores = 2, .core_peak = FlopsPerSecond{233.4e12}}));
  ASSERT_EQ(result.observations.size(), 2U);
  EXPECT_EQ((std::array{result.observations[0].m, result.observations[0].n, result.observations[0].k}), (std::array<std::int64_t, 3>{2048, 2048, 7168}));
  EXPECT_EQ((std::array{result.observations[1].m, result.observations[1].n, result.observations[1].k}), (std::array<std::int64_t, 3>{2048, 2048, 2048}));
  EXPECT_TRUE(notes_say(result, "1 row skipped: rejected: their rate is above the peak"));
  EXPECT_TRUE(notes_say(result, "1 row skipped: matmuls in a megacore fusion"));
}

TEST(HloStats, BadTablesAreToldWithTheirPlace) {
  EXPECT_EQ(error_of(import_hlo_stats("", "s")), "s:1:1: a table of HLO statistics must begin with a heading");
  EXPECT_EQ(error_of(import_hlo_stats("a,b\n", "s")).substr(0, 29), "s:1:1: expected the columns k");
  EXPECT_EQ(error_of(import_hlo_stats(hlo_collectives + "all_gather,x,bf16[4],bf16[9],8,18,32,9.5,no\n", "s")),
            "s:2:32: bytes of an all-gather must be a multiple of each other, got \"8\" in, \"18\" out");
  EXPECT_EQ(error_of(import_hlo_stats(hlo_collectives + "all_gather,x,bf16[4],bf16[8],8,16,32,-9.5,no\n", "s")),
            "s:2:38: a time must be a positive number, got \"-9.5\"");
  EXPECT_EQ(error_of(import_hlo_stats(hlo_collectives + "all_gather,x\n", "s")), "s:2:1: a row must have as many fields as the heading, 9, got 2");
}

TEST(HloOp, TextsTellDevicesAndShapes) {
  const auto op = parse_hlo_op("%all-gather.1 = bf16[2048,8192]{1,0:T(8,128)(2,1)} all-gather(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], dimensions={0}");
  ASSERT_TRUE(op);
  EXPECT_EQ(op->opcode, "all-gather");
  EXPECT_EQ(op->group, 4);
  EXPECT_EQ(op->dimension, 0);
  const auto row = observation_of(*op, {"all-gather", {}, Seconds{1e-3}}, {});
  ASSERT_TRUE(row) << to_text(row.error());
  EXPECT_EQ(row->bytes, Bytes{512 * 8192 * 2});
  const auto listed = parse_hlo_op("%a = (f32[8]{0}, f32[4]{0}) all-reduce(%x, %y), replica_groups={{0,2,4},{1,3,5}}, to_apply=%add");
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->group, 3);
  EXPECT_EQ(observation_of(*listed, {"", {}, Seconds{1}}, {})->bytes, Bytes{48});
}

TEST(HloOp, APermuteIsOneOfRingsOfOneSize) {
  const auto group = [](const std::string& pairs) {
    return parse_hlo_op("%p = f32[8]{0} collective-permute(f32[8]{0} %x), source_target_pairs={" + pairs + "}")->group;
  };
  EXPECT_EQ(group("{0,1},{1,2},{2,3},{3,0}"), 4);
  EXPECT_EQ(group("{0,2},{2,0},{1,3},{3,1}"), 2);
  EXPECT_EQ(group("{0,1},{1,2},{2,3}"), 0);
  EXPECT_EQ(group("{0,1},{1,0},{2,3},{3,4},{4,2}"), 0);
}

TEST(HloOp, WhatIsNoOperationIsNone) {
  for (const char* text : {"", "%", "%a = ", "%a = f32[", "%a = f32[8] ", "%a = f32[8] add", "a b = f32[8] add(", "%a = (f32[8] add("})
    EXPECT_FALSE(parse_hlo_op(text)) << text;
  EXPECT_TRUE(shapes_in("f32[1,f32[-1]f32[99999999999999999999]").empty());
  EXPECT_FALSE(size_of(HloShape{HloType::f32, {1 << 30, 1 << 30}}));
}

}  // namespace
}  // namespace podsim
