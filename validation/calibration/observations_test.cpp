#include "validation/calibration/observations.hpp"

#include <gtest/gtest.h>

#include "sim/base/csv.hpp"

namespace podsim {
namespace {

std::string error_of(const std::string& text) {
  const auto observations = read_observations(text, "obs.csv");
  return observations ? "no error" : to_text(observations.error());
}

std::vector<Observation> rows_in(const std::string& text) {
  const auto observations = read_observations(text, "obs.csv");
  EXPECT_TRUE(observations) << to_text(observations.error());
  return observations ? *observations : std::vector<Observation>{};
}

TEST(Observations, ARowHasWhatItsColumnsSay) {
  const auto rows = rows_in("# measured by hand\nop,devices,bytes,seconds\n\nall-gather,4,8388608,680e-6\r\nhbm_copy,1,2097152,1.5e-06\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].op, ObservedOp::all_gather);
  EXPECT_EQ(rows[0].devices, 4);
  EXPECT_EQ(rows[0].bytes, Bytes{8388608});
  EXPECT_EQ(rows[0].time, Seconds{680e-6});
  EXPECT_EQ(rows[0].schedule, ObservedSchedule::unknown);
  EXPECT_FALSE(rows[0].dtype || rows[0].array_dim);
  EXPECT_EQ(rows[0].where, (SourceLocation{"obs.csv", 4, 1}));
  EXPECT_EQ(rows[1].where.line, 5);
}

TEST(Observations, AnFftHasPointsAndAMesh) {
  const std::string heading = "op,devices,bytes,seconds,slice,points,mesh\n";
  const std::string text = heading + "fft,8,4096,0.001,1x8,16,2x4\nifft,4,8192,0.002,,16,4x1\n";
  const auto rows = rows_in(text);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(is_fft(rows[0]) && is_fft(rows[1]) && !is_composite(rows[0]));
  EXPECT_EQ(rows[0].points, 16);
  EXPECT_EQ(rows[0].mesh, (std::vector{2, 4}));
  EXPECT_EQ(write_observations(rows), text);
  EXPECT_EQ(error_of(heading + "fft,8,4096,1,1x8,16,3x4\n"), "obs.csv:2:21: expected the devices that divide the first two dimensions, as 2x4 of 8, got \"3x4\"");
  EXPECT_EQ(error_of(heading + "fft,8,4096,1,1x8,16,8\n"), "obs.csv:2:21: expected the devices that divide the first two dimensions, as 2x4 of 8, got \"8\"");
  EXPECT_EQ(error_of(heading + "fft,8,4096,1,1x8,,2x4\n"), "obs.csv:2:1: this row has no points");
  EXPECT_EQ(error_of(heading + "fft,8,4096,1,1x8,16,\n"), "obs.csv:2:1: this row has no mesh");
  EXPECT_EQ(error_of(heading + "fft,8,4100,1,1x8,16,2x4\n"),
            "obs.csv:2:1: the bytes of an FFT are those of a device's block of complex numbers, which the mesh must divide");
  EXPECT_EQ(error_of(heading + "all-gather,8,4096,1,1x8,16,\n"), "obs.csv:2:25: points does not belong to op all-gather, got \"16\"");
}

TEST(Observations, ATrainingStepHasANameAndSlices) {
  const std::string heading = "op,devices,bytes,seconds,slice,step,pods\n";
  const std::string text = heading + "training-step,64,,26.8,v4-128,22B,\ntraining-step,128,,27.5,v4-128,22B,2\n";
  const auto rows = rows_in(text);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(is_training_step(rows[1]) && !is_composite(rows[1]));
  EXPECT_EQ(rows[1].step, "22B");
  EXPECT_EQ(rows[0].pods, 1);
  EXPECT_EQ(rows[1].pods, 2);
  EXPECT_EQ(write_observations(rows), text);
  EXPECT_EQ(error_of(heading + "training-step,64,,1,,,\n"), "obs.csv:2:1: this row has no step: the name that its study has for it");
  EXPECT_EQ(error_of(heading + "training-step,64,8,1,,22B,\n"), "obs.csv:2:18: bytes does not belong to a training step, got \"8\"");
  EXPECT_EQ(error_of(heading + "training-step,64,,1,,22B,3\n"), "obs.csv:2:26: 64 devices are not on 3 equal slices");
  EXPECT_EQ(error_of(heading + "all-gather,8,4096,1,,22B,\n"), "obs.csv:2:22: step does not belong to op all-gather, got \"22B\"");
}

TEST(Observations, ARunHasANameAndAnyRepeatedRowASpread) {
  const std::string heading = "op,devices,bytes,seconds,run,spread\n";
  const std::string text = heading + "all-gather,8,4096,0.001,,0.02\nrun,16,,0.25,\"gemm: cannon, 4x4\",0\nrun,4,,0.5,pipeline: 1f1b,\n";
  const auto rows = rows_in(text);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(is_run(rows[1]) && is_described(rows[1]) && !is_composite(rows[1]) && !is_described(rows[0]));
  EXPECT_EQ(rows[1].run, "gemm: cannon, 4x4");
  EXPECT_EQ(rows[0].spread, 0.02);
  EXPECT_EQ(rows[1].spread, 0.0);
  EXPECT_EQ(rows[2].spread, std::nullopt);
  EXPECT_EQ(write_observations(rows), text);
  EXPECT_EQ(error_of(heading + "run,16,,1,,\n"), "obs.csv:2:1: this row has no run: the name that its study has for it");
  EXPECT_EQ(error_of(heading + "run,16,8,1,a,\n"), "obs.csv:2:8: bytes does not belong to a run, got \"8\"");
  EXPECT_EQ(error_of(heading + "all-gather,8,4096,1,a,\n"), "obs.csv:2:21: run does not belong to op all-gather, got \"a\"");
  EXPECT_EQ(error_of(heading + "run,16,,1,a,-0.1\n"), "obs.csv:2:13: spread must be a number that is not negative, got \"-0.1\"");
}

TEST(Observations, ATableOfProductsNeedsNoMoreThanExtentsAndTimes) {
  const auto rows = rows_in("# a library's kernels\nm,n,k,latency_ms\n16,4096,8192,0.0251\n1,32,64,3e-3\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].op, ObservedOp::matmul);
  EXPECT_EQ(rows[0].devices, 1);
  EXPECT_EQ((std::array{rows[0].m, rows[0].n, rows[0].k}), (std::array<std::int64_t, 3>{16, 4096, 8192}));
  EXPECT_DOUBLE_EQ(rows[0].time.count(), 25.1e-6);
  EXPECT_DOUBLE_EQ(rows[1].time.count(), 3e-6);
  EXPECT_EQ(write_observations(rows), "op,devices,bytes,seconds,m,n,k\nmatmul,1,,2.51e-05,16,4096,8192\nmatmul,1,,3e-06,1,32,64\n");
  const auto others = rows_in("dtype,k,seconds,source,n,m\nf32,64,1e-3,page 3,32,16\n");
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].dtype, DType::f32);
  EXPECT_EQ(others[0].time, Seconds{1e-3});
  EXPECT_EQ(others[0].source, "page 3");
}

TEST(Observations, ABadTableOfProductsSaysWhere) {
  const std::string heading = "m,n,k,latency_ms\n";
  EXPECT_EQ(error_of(heading + "16,32,64,0\n"), "obs.csv:2:10: latency_ms must be a positive number, got \"0\"");
  EXPECT_EQ(error_of(heading + "16,32,64,-1\n"), "obs.csv:2:10: latency_ms must be a positive number, got \"-1\"");
  EXPECT_EQ(error_of(heading + "16,32,64,nan\n"), "obs.csv:2:10: latency_ms must be a positive number, got \"nan\"");
  EXPECT_EQ(error_of(heading + "16,32,64,inf\n"), "obs.csv:2:10: latency_ms must be a positive number, got \"inf\"");
  EXPECT_EQ(error_of(heading + "16,32,64,\n"), "obs.csv:2:1: this row has no latency_ms");
  EXPECT_NE(error_of(heading + "0,32,64,1\n").find("obs.csv:2:1: m: "), std::string::npos);
  EXPECT_NE(error_of(heading + "16,1.5,64,1\n").find("obs.csv:2:4: n: "), std::string::npos);
  EXPECT_NE(error_of(heading + "16,32,1073741825,1\n").find("obs.csv:2:7: k: "), std::string::npos);
  EXPECT_EQ(error_of(heading + "16,32,64\n"), "obs.csv:2:7: a row must have as many fields as the heading, 4, got 3");
  const std::string alone = "latency_ms belongs to a table of products, with m, n, k and without op, devices and bytes; elsewhere times are seconds";
  EXPECT_EQ(error_of("op,devices,bytes,seconds,latency_ms\n"), "obs.csv:1:26: " + alone);
  EXPECT_EQ(error_of("m,n,k,seconds,latency_ms\n"), "obs.csv:1:15: " + alone);
  EXPECT_EQ(error_of("m,n,latency_ms\n"), "obs.csv:1:5: " + alone);
  EXPECT_EQ(error_of("m,n,k\n"), "obs.csv:1:1: the heading lacks the column op");
}

TEST(Observations, ColumnsComeInAnyOrderAndFieldsMayBeQuoted) {
  const auto rows = rows_in("source,seconds,n,k,m,op,devices,bytes,dtype,schedule,axis,array_dim\n"
                         "\"a \"\"profile\"\", page 3\", 1e-3 ,20,30,10,all-gather,8,4,bf16,overlapped,y,0\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].source, "a \"profile\", page 3");
  EXPECT_EQ(rows[0].time, Seconds{1e-3});
  EXPECT_EQ((std::array{rows[0].m, rows[0].n, rows[0].k}), (std::array<std::int64_t, 3>{10, 20, 30}));
  EXPECT_EQ(rows[0].dtype, DType::bf16);
  EXPECT_EQ(rows[0].schedule, ObservedSchedule::overlapped);
  EXPECT_EQ(rows[0].axis, "y");
  EXPECT_EQ(rows[0].array_dim, 0);
}

TEST(Observations, WhatIsWrittenIsReadBack) {
  std::vector<Observation> rows(4);
  rows[0] = {.op = ObservedOp::reduce_scatter, .devices = 16, .bytes = Bytes{123456789012}, .time = Seconds{1.0 / 3}};
  rows[1] = {.op = ObservedOp::matmul, .time = Seconds{5e-324}, .dtype = DType::f32, .m = 1, .n = 1 << 30, .k = 3};
  rows[2] = {.op = ObservedOp::permute, .devices = 2, .bytes = Bytes{1}, .time = Seconds{1e300}, .axis = " a,b", .array_dim = 3,
             .schedule = ObservedSchedule::bidirectional, .source = "two\nlines, \"quoted\" #1"};
  rows[3] = {.op = ObservedOp::hbm_copy, .bytes = Bytes{64}, .time = Seconds{1e-9}, .source = "# no comment"};
  const std::string text = write_observations(rows);
  const auto again = rows_in(text);
  ASSERT_EQ(again.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(again[i].op, rows[i].op);
    EXPECT_EQ(again[i].devices, rows[i].devices);
    EXPECT_EQ(again[i].bytes, rows[i].bytes);
    EXPECT_EQ(again[i].time, rows[i].time);
    EXPECT_EQ(again[i].axis, rows[i].axis);
    EXPECT_EQ(again[i].array_dim, rows[i].array_dim);
    EXPECT_EQ(again[i].dtype, rows[i].dtype);
    EXPECT_EQ((std::array{again[i].m, again[i].n, again[i].k}), (std::array{rows[i].m, rows[i].n, rows[i].k}));
    EXPECT_EQ(again[i].schedule, rows[i].schedule);
    EXPECT_EQ(again[i].source, rows[i].source);
  }
  EXPECT_EQ(write_observations(again), text);
}

TEST(Observations, OnlyColumnsThatSayAnythingAreWritten) {
  EXPECT_EQ(write_observations({{.op = ObservedOp::all_reduce, .devices = 8, .bytes = Bytes{32768}, .time = Seconds{43.83e-6}}}),
            "op,devices,bytes,seconds\nall-reduce,8,32768,4.383e-05\n");
  EXPECT_EQ(write_observations({}), "op,devices,bytes,seconds\n");
}

TEST(Observations, EveryNameIsUnderstood) {
  for (int i = 0; i <= static_cast<int>(ObservedOp::hbm_copy); ++i) EXPECT_EQ(observed_op_named(name_of(ObservedOp{i})), ObservedOp{i});
  for (int i = 0; i <= static_cast<int>(ObservedSchedule::bidirectional); ++i)
    EXPECT_EQ(observed_schedule_named(name_of(ObservedSchedule{i})), ObservedSchedule{i});
  EXPECT_FALSE(observed_op_named("all_gather"));
}

TEST(Observations, AHeadingIsChecked) {
  EXPECT_EQ(error_of(""), "obs.csv:1:1: observations must begin with a heading: op,devices,bytes,seconds");
  EXPECT_EQ(error_of("# nothing but this\n"), "obs.csv:1:1: observations must begin with a heading: op,devices,bytes,seconds");
  EXPECT_EQ(error_of("op,devices,seconds\n"), "obs.csv:1:1: the heading lacks the column bytes");
  EXPECT_EQ(error_of("#\nop,devices,bytes,op,seconds\n"), "obs.csv:2:18: column \"op\" is there twice");
  EXPECT_NE(error_of("op,device,bytes,seconds\n").find("obs.csv:1:4: \"device\" is no column, did you mean \"devices\""), std::string::npos);
}

TEST(Observations, NumbersArePositiveAndBare) {
  const std::string heading = "op,devices,bytes,seconds\n";
  EXPECT_EQ(error_of(heading + "all-gather,8,1024,0\n"), "obs.csv:2:19: seconds must be a positive number, got \"0\"");
  EXPECT_EQ(error_of(heading + "all-gather,8,1024,-1e-3\n"), "obs.csv:2:19: seconds must be a positive number, got \"-1e-3\"");
  EXPECT_EQ(error_of(heading + "all-gather,8,1024,5us\n"), "obs.csv:2:19: seconds must be a positive number, got \"5us\"");
  for (const std::string bad : {"nan", "inf", "1e999", "1e-999", "0x10"})
    EXPECT_EQ(error_of(heading + "all-gather,8,1024," + bad), "obs.csv:2:19: seconds must be a positive number, got \"" + bad + "\"");
  EXPECT_EQ(error_of(heading + "all-gather,8,1024,\n"), "obs.csv:2:1: this row has no seconds");
  EXPECT_EQ(error_of(heading + "all-gather,8,1KiB,1\n").substr(0, 20), "obs.csv:2:14: bytes:");
  EXPECT_EQ(error_of(heading + "all-gather,8,0,1\n").substr(0, 20), "obs.csv:2:14: bytes:");
  EXPECT_EQ(error_of(heading + "all-gather,8,99999999999999999999,1\n").substr(0, 20), "obs.csv:2:14: bytes:");
  EXPECT_EQ(error_of(heading + "all-gather,-8,8,1\n").substr(0, 22), "obs.csv:2:12: devices:");
}

TEST(Observations, FieldsBelongToTheOperation) {
  const std::string heading = "op,devices,bytes,seconds,axis,array_dim,m,n,k,schedule\n";
  EXPECT_EQ(error_of(heading + "matmul,1,4096,1e-3,,,8,8,8,\n"), "obs.csv:2:10: bytes does not belong to a matmul, got \"4096\"");
  EXPECT_EQ(error_of(heading + "matmul,1,,1e-3,,,8,,8,\n"), "obs.csv:2:1: this row has no n");
  EXPECT_EQ(error_of(heading + "matmul,1,,1e-3,x,,8,8,8,\n"), "obs.csv:2:16: axis does not belong to op matmul, got \"x\"");
  EXPECT_EQ(error_of(heading + "hbm_copy,1,4,1e-3,,,8,,,\n"), "obs.csv:2:21: m does not belong to op hbm_copy, got \"8\"");
  EXPECT_EQ(error_of(heading + "hbm_copy,1,4,1e-3,,,,,,plain\n"), "obs.csv:2:24: schedule does not belong to op hbm_copy, got \"plain\"");
  EXPECT_EQ(error_of(heading + "all-gather,2,4,1e-3,,,8,,,overlapped\n"), "obs.csv:2:1: this row has no n");
  EXPECT_EQ(error_of(heading + "matmul,1,0,1e-3,,,8,8,8,\nall-gather,2,4,1e-3,x,1,,,,bidirectional\n"), "no error");
}

TEST(Observations, WordsMustBeKnown) {
  const std::string heading = "op,devices,bytes,seconds,dtype,schedule\n";
  EXPECT_NE(error_of(heading + "allgather,2,4,1,,\n").find("obs.csv:2:1: \"allgather\" is no operation, did you mean \"all-gather\"?"), std::string::npos);
  EXPECT_EQ(error_of(heading + "reduce,2,4,1,fp16,\n").substr(0, 32), "obs.csv:2:14: \"fp16\" is no dtype");
  EXPECT_EQ(error_of(heading + "reduce,2,4,1,,ring\n").substr(0, 36), "obs.csv:2:15: \"ring\" is no schedule;");
  EXPECT_EQ(error_of(heading + ",2,4,1,,\n"), "obs.csv:2:1: this row has no op");
}

TEST(Observations, RowsHaveAsManyFieldsAsTheHeading) {
  const std::string heading = "op,devices,bytes,seconds\n";
  EXPECT_EQ(error_of(heading + "reduce,2,4\n"), "obs.csv:2:10: a row must have as many fields as the heading, 4, got 3");
  EXPECT_EQ(error_of(heading + "reduce,2,4,1,\n"), "obs.csv:2:14: a row must have as many fields as the heading, 4, got 5");
}

TEST(Observations, GroupsRunAtOnceOnASlice) {
  const std::string heading = "op,devices,bytes,seconds,slice,groups,in_place\n";
  const auto rows = read_observations(heading + "all-gather,4,8,1,1x8,2,yes\nall-gather,4,8,1,,,\n", "obs.csv");
  ASSERT_TRUE(rows) << to_text(rows.error());
  EXPECT_EQ(rows->front().slice, "1x8");
  EXPECT_EQ(rows->front().groups, 2);
  EXPECT_TRUE(rows->front().in_place);
  EXPECT_EQ(tensor_bytes(rows->front()), Bytes{32}) << "what all four gather";
  EXPECT_EQ(rows->back().groups, 1);
  EXPECT_FALSE(rows->back().in_place);
  const auto again = read_observations(write_observations(*rows), "again.csv");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(again->front().slice, "1x8");
  EXPECT_EQ(again->front().groups, 2);
  EXPECT_TRUE(again->front().in_place);
  EXPECT_EQ(error_of(heading + "all-gather,4,8,1,,2,\n"), "obs.csv:2:19: groups at once need the column slice: where they ran");
  EXPECT_EQ(error_of(heading + "all-gather,4,8,1,1x8,0,\n"), "obs.csv:2:22: groups: expected a whole number from 1 to 1048576, got \"0\"");
  EXPECT_EQ(error_of(heading + "all-gather,4,8,1,1x8,2,maybe\n"), "obs.csv:2:24: in_place must be yes or no, got \"maybe\"");
}

TEST(Csv, PlacesAreThoseOfTheFileWhateverIsQuoted) {
  CsvReader reader{"\xEF\xBB\xBF" "a,\"two\nlines\" ,b\n  # comment\n c\t,\"\",d", "f"};
  const auto first = reader.next();
  ASSERT_TRUE(first && *first);
  ASSERT_EQ((*first)->fields.size(), 3U);
  EXPECT_EQ((*first)->fields[1].text, "two\nlines");
  EXPECT_EQ((*first)->fields[1].where, (SourceLocation{"f", 1, 3}));
  EXPECT_EQ((*first)->fields[2].where, (SourceLocation{"f", 2, 9}));
  const auto second = reader.next();
  ASSERT_TRUE(second && *second);
  ASSERT_EQ((*second)->fields.size(), 3U);
  EXPECT_EQ((*second)->fields[0].text, "c");
  EXPECT_EQ((*second)->fields[0].where, (SourceLocation{"f", 4, 2}));
  EXPECT_EQ((*second)->fields[1].text, "");
  const auto end = reader.next();
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
}

TEST(Csv, QuotesMustEnd) {
  CsvReader open{"a,b\n1,\"2\n3,4\n", "f"};
  ASSERT_TRUE(open.next());
  EXPECT_EQ(to_text(open.next().error()), "f:2:3: this quoted field does not end");
  CsvReader more{"\"a\"b,c", "f"};
  EXPECT_EQ(to_text(more.next().error()), "f:1:4: a comma or the end of the line must follow a quoted field, got \"b\"");
}

TEST(Csv, RowsAreTextInUtf8AndPlacesCountBytes) {
  const auto error = [](std::string_view text) {
    CsvReader reader{text, "f"};
    while (true) {
      const auto row = reader.next();
      if (!row) return to_text(row.error());
      if (!*row) return std::string{};
    }
  };
  const std::string expected = "expected text in UTF-8 without NUL, got ";
  EXPECT_EQ(error("a,b\n1,in\xec" "d\n"), "f:2:5: " + expected + "\"\\xec\"");
  EXPECT_EQ(error("a,b\n1,\"in\n\xc3\"\n"), "f:3:1: " + expected + "\"\\xc3\"") << "the first byte of a letter whose second is missing";
  EXPECT_EQ(error("\xEF\xBB\xBF\xff,b\n"), "f:1:1: " + expected + "\"\\xff\"");
  EXPECT_EQ(error(std::string_view{"a\0b", 3}), "f:1:2: " + expected + "\"\\x00\"");
  EXPECT_EQ(error("# \xec: nobody reads this\na,\xc3\xa9t\xc3\xa9\n"), "");
}

}  // namespace
}  // namespace podsim
