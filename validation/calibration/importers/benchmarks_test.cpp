// Results of benchmarks and training runs as their programs write them: real files to the figures that they carry, recognition by content, bad ones.
#include <gtest/gtest.h>

#include "sim/config/files.hpp"
#include "validation/calibration/importers/collective_row.hpp"
#include "validation/calibration/importers/nccl_inspector.hpp"
#include "validation/calibration/importers/nccl_json.hpp"
#include "validation/calibration/importers/osu.hpp"
#include "validation/calibration/importers/testing.hpp"
#include "validation/calibration/importers/training_log.hpp"

namespace podsim {
namespace {

using testing::error_of;
using testing::imported;
using testing::notes_say;

const std::string real_files = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/";

/// As nccl-tests 2.18 writes it (src/util.cu): two processes of four GPUs, of each of which the first rank is listed.
const std::string report = R"({"version":3,"start_time":"2026-11-30 06:00:00","args":["./build/all_gather_perf","-J","out.json"],"env":["A=[{}]"],"nccl_version":22803,
"config":{"nthreads":1,"ngpus":4,"minimum_bytes":8,"devices":[{"rank":0,"group":0,"hostname":"a"},{"rank":4,"group":0,"hostname":"b"}]},
"results":[
{"size":0,"count":0,"type":"float","redop":"none","root":"    -1","out_of_place":{"time":5.1,"alg_bw":0,"bus_bw":0,"nwrong":0},"in_place":{"time":5.0,"alg_bw":0,"bus_bw":0,"nwrong":0},"actual_iterations":20,"experiment_name":"AllGather"},
{"size":8388608,"count":262144,"type":"float","redop":"none","root":"    -1","out_of_place":{"time":91.5,"alg_bw":91.7,"bus_bw":80.2,"nwrong":0},"in_place":{"time":90,"alg_bw":92,"bus_bw":81,"nwrong":0},"actual_iterations":20,"experiment_name":"AllGather"},
{"size":16777216,"count":524288,"type":"float","redop":"none","root":"    -1","out_of_place":{"time":150,"alg_bw":111,"bus_bw":97,"nwrong":3},"in_place":{"time":150,"alg_bw":1,"bus_bw":1,"nwrong":0},"actual_iterations":20,"experiment_name":"AllGather"}],
"out_of_bounds":{"count":3,"okay":false},"errors":[],"end_time":"2026-11-30 06:00:09"})";

TEST(NcclJson, TheReportOfNcclTests) {
  const Imported result = imported(import_nccl_json(report, "r.json"));
  ASSERT_EQ(result.observations.size(), 1U);
  const Observation& row = result.observations.front();
  EXPECT_EQ(row.op, ObservedOp::all_gather);
  EXPECT_EQ(row.devices, 8);
  EXPECT_EQ(row.bytes, Bytes{1048576});
  EXPECT_DOUBLE_EQ(row.time.count(), 91.5e-6);
  EXPECT_EQ(row.dtype, DType::f32);
  EXPECT_EQ(row.where.line, 5);
  EXPECT_TRUE(notes_say(result, "1 row of size 0"));
  EXPECT_TRUE(notes_say(result, "1 row with wrong results"));
}

TEST(NcclJson, ALineOfRcclTests) {
  const Imported result = imported(import_file("", real_files + "rccl_tests.json"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].op, ObservedOp::all_reduce);
  EXPECT_EQ(result.observations[0].devices, 4);
  EXPECT_EQ(result.observations[0].bytes, Bytes{1024});
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 18.978e-6);
}

TEST(NcclJson, RowsInPlaceAreSkipped) {
  const std::string row = R"({"name":"ReduceScatter","ranks":8,"size":1048576,"type":"bfloat16","inPlace":)", tail = R"(,"time":"40.5","algBw":25.9,"busBw":22.7,"wrong":"N/A"})";
  for (const std::string& text : {row + "0" + tail + "\n" + row + "1" + tail + "\n", "[" + row + "0" + tail + ",\n" + row + "1" + tail + "]"}) {
    const Imported result = imported(import_observations("", text, "f"));
    ASSERT_EQ(result.observations.size(), 1U);
    EXPECT_EQ(result.observations[0].op, ObservedOp::reduce_scatter);
    EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 40.5e-6);
    EXPECT_TRUE(notes_say(result, "1 row in place skipped"));
  }
}

TEST(NcclJson, TheSameAsCsv) {
  const std::string text = "numCycle, name, nodes, ranks, ranksPerNode, gpusPerRank, size, type, redop, inPlace, time, algBw, busBw, #wrong\n"
                           "0, AllReduce, 1, 8, 8, 1, 1048576, float, sum, 0, 33.2, 31.6, 55.3, 0\n0, AllReduce, 1, 8, 8, 1, 1048576, float, sum, 1, 33.1, 31.6, 55.3, 0\n";
  const Imported result = imported(import_observations("", text, "f"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].op, ObservedOp::all_reduce);
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 33.2e-6);
  EXPECT_EQ(error_of(import_nccl_csv("numCycle,name,size,time\n", "f")), "f:1:1: expected the columns name, ranks, size and time, found none named \"ranks\"");
}

TEST(NcclJson, BadOnesSayWhere) {
  EXPECT_EQ(error_of(import_nccl_json("{\"results\":[{\"size\":8}]}", "f")), "f:1:13: expected a row with the number time, found none (a time on the CPU alone does not count)");
  EXPECT_EQ(error_of(import_nccl_json("{\"size\":8,\"time\":1,\"name\":\"Gather\"}", "f")), "f:1:1: expected a collective, as AllReduce, found \"Gather\"");
  EXPECT_EQ(error_of(import_nccl_json("{\"size\":8,\"time\":1,\"name\":\"AllReduce\"}", "f")), "f:1:1: nothing tells how many devices took part; `devices` tells it");
  EXPECT_EQ(error_of(import_nccl_json("{\"size\":8,\"time\":-1,\"name\":\"AllReduce\",\"ranks\":2}", "f")), "f:1:1: expected a time above 0 us, found -1");
  for (std::size_t length = 0; length < report.size(); length += 7) EXPECT_FALSE(import_nccl_json(report.substr(0, length), "f")) << length;
}

TEST(Osu, AllReduceOfAnExercise) {
  const Imported result = imported(import_file("", real_files + "osu_allreduce.txt"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].op, ObservedOp::all_reduce);
  EXPECT_EQ(result.observations[0].devices, 4);  // -n 4
  EXPECT_EQ(result.observations[0].bytes, Bytes{std::int64_t{1} << 30});
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 7327.25e-6);
}

TEST(Osu, SizesAreTheDevicesInput) {
  const std::string all_to_all = "# OSU MPI All-to-All Personalized Exchange Latency Test v5.6.2\n# Size       Avg Latency(us)\n1024  10.5\n";
  EXPECT_EQ(imported(import_osu(all_to_all, "f", {.devices = 8})).observations.at(0).bytes, Bytes{8192});
  const Imported bandwidth = imported(import_osu("# OSU MPI-ROCM Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n1048576  12000.00\n", "f"));
  EXPECT_EQ(bandwidth.observations.at(0).op, ObservedOp::permute);
  EXPECT_EQ(bandwidth.observations[0].devices, 2);
  EXPECT_NEAR(bandwidth.observations[0].bytes.count() / bandwidth.observations[0].time.count(), 12e9, 1);
  const Imported latency = imported(import_osu("# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n0  1.1\n8  1.5\n", "f"));
  ASSERT_EQ(latency.observations.size(), 1U);
  EXPECT_DOUBLE_EQ(latency.observations[0].time.count(), 1.5e-6);
}

TEST(Osu, BadOnesSayWhere) {
  EXPECT_EQ(error_of(import_osu("# OSU MPI Allreduce Latency Test v7\n# Size  Avg Latency(us)\n8 1.0\n", "f")), "f:3:1: nothing tells how many ranks took part: no -n N before the table; `devices` tells it");
  EXPECT_EQ(error_of(import_osu("# OSU MPI Allreduce Latency Test v7\n# Size  Avg Latency(us)\n8\n", "f")), "f:3:1: expected a row of a size and a figure, found the size alone");
  EXPECT_EQ(error_of(import_osu("# OSU MPI Barrier Latency Test v7\n# Avg Latency(us)\n", "f")), "f:1:1: expected a test of a collective, of latency or of bandwidth, found \"Barrier Latency\"");
}

TEST(Perftest, BothDirectionsAtOnce) {
  const Imported result = imported(import_file("", real_files + "ib_write_bw.txt"));
  ASSERT_EQ(result.observations.size(), 4U);
  const Observation& last = result.observations.back();
  EXPECT_EQ(last.op, ObservedOp::permute);
  EXPECT_EQ(last.devices, 2);
  EXPECT_EQ(last.bytes, Bytes{std::int64_t{8388608} * 5000});
  EXPECT_NEAR(last.bytes.count() / last.time.count(), 204.59e9 / 8 / 2, 1);
}

TEST(Osu, TheLibraryMayBeNccl) {
  const std::string table = "# OSU NCCL-CUDA Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n1073741824          13482.19\n$\n";
  for (const auto& [command, ranks] : {std::pair{"mpirun -n 16 -N 8 osu_xccl_allreduce", 16}, {"srun -n4 osu_xccl_allreduce", 4}, {"srun --ntasks=32 osu_xccl_allreduce", 32}, {"srun -N2 --ntasks-per-node 8 osu_xccl_allreduce", 16}}) {
    const Imported result = imported(import_osu(std::string{"$ "} + command + "\n" + table, "o"));
    ASSERT_EQ(result.observations.size(), 1U);
    EXPECT_EQ(result.observations[0].op, ObservedOp::all_reduce);
    EXPECT_EQ(result.observations[0].devices, ranks) << command;
  }
  EXPECT_TRUE(is_osu_table(table));
  EXPECT_TRUE(is_osu_table("$ mpirun -np 2 osu_latency\n# OSU MPI Latency Test (Version 2.1)\n"));
  EXPECT_FALSE(is_osu_table("# OSU MPI Benchmarks\n"));
}

TEST(Osu, BothDirectionsAreAddedUp) {
  const Imported result = imported(import_osu("# OSU MPI-CUDA Bi-Directional Bandwidth Test v7.0\n# Size      Bandwidth (MB/s)\n4194304             40000.00\n", "o"));
  EXPECT_DOUBLE_EQ(result.observations.at(0).time.count(), 64 * 4194304 / 20e9);
}

TEST(Perftest, ColumnsAreThoseOfTheHeading) {
  const auto row = [](const std::string& text) { return imported(import_perftest(text, "f")).observations.at(0); };
  EXPECT_DOUBLE_EQ(row(" #bytes    #sl      #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536     3        1000           12000.00           11000.00             0.176\n").time.count(),
                   65536.0 * 1000 / (11000.0 * 1048576));
  EXPECT_DOUBLE_EQ(row(" #bytes        #iterations       t_avg[usec]    tps average\n 2             1000              1.80           277777\n").time.count(), 1.8e-6) << "-D";
  EXPECT_DOUBLE_EQ(row(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n 2       1000          1.76           6.12         1.79\n").time.count(), 1.79e-6) << "old";
}

TEST(NcclInspector, MediansOfCollectives) {
  const auto line = [](const std::string& name, const std::string& size, const std::string& micros) {
    return R"({"header":{"id":"0x1","rank":0,"n_ranks":4,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","hostname":"a"},"coll_perf":{"coll":")" + name +
           R"(","coll_sn":0,"coll_msg_size_bytes":)" + size + R"(,"coll_exec_time_us":)" + micros + R"(,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":0.1,"coll_busbw_gbs":0.07}})" + "\n";
  };
  const std::string send = R"({"header":{"id":"0x1","rank":0,"n_ranks":4,"nnodes":1},"metadata":{},"p2p_perf":{"p2p":"Send"}})";
  const std::string text = line("AllGather", "1024", "44") + line("AllGather", "1024", "90") + line("AllGather", "1024", "46") + line("ReduceScatter", "1024", "50") + send;
  EXPECT_TRUE(is_nccl_inspector(text));
  const Imported result = imported(import_nccl_inspector(text, "i"));
  ASSERT_EQ(result.observations.size(), 2U);
  EXPECT_EQ(result.observations[0].op, ObservedOp::all_gather);
  EXPECT_EQ(result.observations[0].bytes, Bytes{1024});
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 46e-6);
  EXPECT_EQ(result.observations[0].devices, 4);
  EXPECT_EQ(result.observations[1].bytes, Bytes{4096}) << "the input";
  EXPECT_TRUE(notes_say(result, "1 line of sends"));
  EXPECT_EQ(error_of(import_nccl_inspector(line("AllReduce", "0", "1"), "i")), "i:1:1: expected coll_msg_size_bytes from 1 to 4398046511104, found none");
  EXPECT_EQ(error_of(import_nccl_inspector(line("AllReduce", "8", "1") + "{\n", "i")).substr(0, 6), "i:2:1:");
}

TEST(Perftest, UnitsAndBadOnes) {
  const std::string row = " 65536  5000  11025.44  11024.71  0.176396\n";
  const Imported result = imported(import_perftest(" #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n" + row, "f"));
  EXPECT_NEAR(result.observations.at(0).bytes.count() / result.observations[0].time.count(), 11024.71 * 1048576, 1);
  const Imported latency = imported(import_perftest(" #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec]\n 2 1000 2.64 5.50 2.69 2.70 0.02\n", "f"));
  EXPECT_DOUBLE_EQ(latency.observations.at(0).time.count(), 2.7e-6);
  EXPECT_EQ(error_of(import_perftest("#bytes #iterations BW peak[furlongs] BW average[furlongs]\n", "f")), "f:1:49: expected Gb/sec, MB/sec, MiB/sec or GiB/sec, found \"furlongs\"");
  EXPECT_EQ(error_of(import_perftest("#bytes #iterations BW average[Gb/sec]\n 65536 5000\n", "f")), "f:2:2: expected a row of at least 3 columns, found 2");
}

TEST(TrainingLog, Torchtitan) {
  const Imported result = imported(import_file("", real_files + "torchtitan_qwen3.log", {.devices = 8}));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].op, ObservedOp::training_step);
  EXPECT_EQ(result.observations[0].step, "torchtitan_qwen3");
  EXPECT_EQ(result.observations[0].devices, 8);
  EXPECT_NEAR(result.observations[0].time.count(), 7.474, 1e-6);  // of nine differences of stamps, in Python
  EXPECT_TRUE(notes_say(result, "6577 tokens a second and device"));
  EXPECT_TRUE(notes_say(result, "memory up to 125.1 GB"));
  EXPECT_EQ(error_of(import_file("", real_files + "torchtitan_qwen3.log")).substr(real_files.size()),
            "torchtitan_qwen3.log:1:1: nothing tells how many devices took part: no line says the world size; `devices` tells it");
}

TEST(TrainingLog, MegatronLm) {
  const Imported result = imported(import_file("", real_files + "megatron_gpt2.log"));
  ASSERT_EQ(result.observations.size(), 1U);
  EXPECT_EQ(result.observations[0].devices, 1);
  EXPECT_NEAR(result.observations[0].time.count(), 0.8376, 1e-9);  // of 820.7 821.8 849.8 904.5 837.6; the first line's 1147.6 is left out
  EXPECT_TRUE(notes_say(result, "9780 tokens a second and device"));
  EXPECT_TRUE(notes_say(result, "memory up to 1.535 GB"));
}

TEST(TrainingLog, BadOnesSayWhere) {
  EXPECT_EQ(error_of(import_training_log("step:  1  loss: 1 tps: 3\n", "f")), "f:1:1: expected the date and time of a step before it, found none");
  EXPECT_EQ(error_of(import_training_log("2026-01-01 00:00:00 step: 1 loss: 1 tps: 3\n2026-01-01 00:00:00 step: 2 loss: 1 tps: 3\n", "f")), "f:2:27: expected a later time than that of step 1, found none");
  EXPECT_EQ(error_of(import_training_log("x | elapsed time per iteration (ms): soon |\n", "f")).substr(0, 6), "f:1:38");
}

TEST(Import, KnowsFormsByTheirContent) {
  const auto name = [](std::string_view text) {
    const ImportFormat* const format = format_of(text, "file");
    return format == nullptr ? std::string_view{"none"} : format->name;
  };
  EXPECT_EQ(name("# a comment\nop,devices,bytes,seconds\n"), "csv");
  EXPECT_EQ(name("# nThread 1 nGpus 8 minBytes 8\n"), "nccl-tests");
  EXPECT_EQ(name("hlo_op,category,avg_self_time_us,model_GFLOPs\n"), "hlo-stats");
  EXPECT_EQ(name("Running benchmark on (8, 4) devices.\n"), "meshslice-log");
  EXPECT_EQ(name("{\"traceEvents\":[]}"), "trace-json");
  EXPECT_EQ(name("hello"), "none");
  EXPECT_EQ(name(""), "none");
}

}  // namespace
}  // namespace podsim
