// What people and machines can get wrong in a file, and exactly what they are told: FILE:LINE:COLUMN, what was expected, what was found.
#include <cstdint>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/config/machine_config.hpp"
#include "sim/config/message_file.hpp"
#include "sim/config/result_config.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/config/test_schedules.hpp"

namespace podsim {
namespace {

/// A text with one thing changed, and what the reader says of it.
struct Case {
  std::string from, to, message;
};

std::string changed(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the test's text has no " + from);
  return std::string(text).replace(at, from.size(), to);
}

template <class T>
std::string error_of(const Expected<T>& outcome) {
  return outcome ? "accepted" : to_text(outcome.error());
}

const std::string rates = "(B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s)";
const std::string chip_fields =
    "peak, float32_passes, vector_peak, matmul_tile_m, matmul_tile_n, matmul_tile_k, layout_sublanes, layout_lanes, matmul_efficiency, hbm, "
    "hbm_bandwidth, overlap_hbm, reduce_bandwidth, injection_bandwidth, ejection_bandwidth, devices, inner_bandwidth, inner_latency, memory_sharing, "
    "transfer_memory_passes, matmul_units, own_block_bandwidth, attention_efficiency, stack_bandwidth, pivot_latency, cycle, memory_wait, vmem_load_bandwidth, vmem_store_bandwidth";

// ---- Machines -------------------------------------------------------------------------------------------------------------------------

const std::string machine = R"(format_version: 1
name: "m"
chip {
  peak { value: "1 TFLOP/s" source: "s" }
  float32_passes { value: "1" source: "s" }
  vector_peak { value: "1 TFLOP/s" source: "s" }
  matmul_tile_m { value: "1" source: "s" }
  matmul_tile_n { value: "1" source: "s" }
  matmul_tile_k { value: "1" source: "s" }
  layout_sublanes { value: "1" source: "s" }
  layout_lanes { value: "1" source: "s" }
  matmul_efficiency { value: "1" source: "s" }
  hbm { value: "32 GB" source: "s" }
  hbm_bandwidth { value: "1 TB/s" source: "s" }
  overlap_hbm { value: "0.5" source: "s" }
  reduce_bandwidth { value: "1 TB/s" source: "s" }
  injection_bandwidth { value: "1 TB/s" source: "s" }
  ejection_bandwidth { value: "1 TB/s" source: "s" }
}
link {
  bandwidth { value: "45 GB/s" source: "s" }
  latency { value: "1 us" source: "s" }
}
software {
  per_message { value: "1 us" source: "s" }
  launch { value: "1 us" source: "s" }
  core_share { value: "0" source: "s" }
}
collective {
  efficiency { value: "1" source: "s" }
}
slices { cube: 4 largest: "16x16x16" open: "2x2x1" open: "2x2x2" source: "s" }
slice_copies { value: true source: "s" }
)";

TEST(BadMachine, TheUnchangedTextIsAccepted) { EXPECT_EQ(error_of(read_machine(machine, "m")), "accepted"); }

void expect_machine_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(error_of(read_machine(changed(machine, c.from, c.to), "m")), c.message) << c.from << " -> " << c.to;
}

TEST(BadMachine, IsToldExactlyOfFields) {
  expect_machine_errors({
      {"hbm {", "hbmm {", R"(m:13:3: unknown field "hbmm", did you mean "hbm"?)"},
      {"hbm {", "quicksilver {", R"(m:13:3: unknown field "quicksilver", expected one of )" + chip_fields},
      {"link {", "links {", R"(m:20:1: unknown field "links", did you mean "link" or "slices"?)"},
      {"  hbm { value: \"32 GB\" source: \"s\" }\n", "", "m:3:1: chip.hbm is missing (memory of one device)"},
      {"software {\n  per_message { value: \"1 us\" source: \"s\" }\n  launch { value: \"1 us\" source: \"s\" }\n  core_share { value: \"0\" source: "
       "\"s\" }\n}\n",
       "", R"(m: software.per_message is missing (before every transfer)
m: software.launch is missing (once per operation of an algorithm)
m: software.core_share is missing (of the time of a transfer or copy beside the core, taken from the core))"},
      {"launch { value", "launch { of: \"permute\" value",
       "m:24:1: software.launch is missing for matmul, local, all-gather, reduce-scatter, all-reduce, all-to-all, broadcast, reduce (once per "
       "operation of an algorithm)"},
      {"hbm { value: \"32 GB\" source: \"s\" }", "hbm { value: \"32 GB\" }", "m:13:3: source is missing in hbm"},
      {"hbm { value: \"32 GB\" source: \"s\" }", "hbm { value: \"32 GB\" source: \"\" }", "m:13:24: chip.hbm has an empty source"},
      {"hbm { value: \"32 GB\" source: \"s\" }", "hbm { source: \"s\" }", "m:13:3: value is missing in hbm"},
      {"hbm {", "hbm { value: \"1 B\" source: \"s\" } hbm {", "m:13:36: hbm is given twice"},
      {"peak {", "peak { value: \"1 TFLOP/s\" source: \"s\" } peak {", "m:4:43: chip.peak is given twice"},
      {"launch {", "launch { of: \"permute\" value: \"1 us\" source: \"s\" } launch { of: \"permute\" value: \"1 us\" source: \"s\" } launch {",
       "m:26:54: software.launch[permute] is given twice"},
      {"peak {", "peak { of: \"fp8\" value: \"1 TFLOP/s\" source: \"s\" } peak {",
       R"(m:4:10: unknown entry "fp8" of chip.peak, expected one of f32, bf16, f8e4m3fn, f8e5m2, s8, tf32)"},
      {"hbm {", "hbm { of: \"x\"", R"(m:13:9: unknown entry "x" of chip.hbm, it has no entries)"},
      {"efficiency { value: \"1\" source: \"s\" }\n}", "efficiency { of: \"matmul\" value: \"1\" source: \"s\" }\n}",
       R"(m:29:1: collective.efficiency is missing (share of the link bandwidth that its transfers reach, by input bytes per device)
m:30:16: unknown entry "matmul" of collective.efficiency, expected one of all-gather, reduce-scatter, all-reduce, all-to-all, )"
       "broadcast, reduce, permute"},
  });
}

TEST(BadMachine, IsToldExactlyOfValues) {
  expect_machine_errors({
      {"\"45 GB/s\"", "\"45\"", R"(m:21:15: link.bandwidth: a bandwidth needs a unit )" + rates + R"(, got "45")"},
      {"\"45 GB/s\"", "\"45 GBps\"",
       R"(m:21:15: link.bandwidth: a bandwidth needs a known unit )" + rates + R"(, got "45 GBps", did you mean "GB/s", "B/s" or "kB/s"?)"},
      {"\"45 GB/s\"", "\"fast\"",
       R"(m:21:15: link.bandwidth: a bandwidth needs a finite number and a unit )" + rates + R"(, got "fast"; "unlimited" is allowed)"},
      {"\"45 GB/s\"", "\"0 GB/s\"", R"(m:21:15: link.bandwidth: a bandwidth must be positive, got "0 GB/s")"},
      {"\"45 GB/s\"", "\"-45 GB/s\"", R"(m:21:15: link.bandwidth: a bandwidth must not be negative, got "-45 GB/s")"},
      {"\"45 GB/s\"", "\"nan GB/s\"",
       R"(m:21:15: link.bandwidth: a bandwidth needs a finite number and a unit )" + rates + R"(, got "nan GB/s"; "unlimited" is allowed)"},
      {"\"45 GB/s\"", "\"inf GB/s\"",
       R"(m:21:15: link.bandwidth: a bandwidth needs a finite number and a unit )" + rates + R"(, got "inf GB/s"; "unlimited" is allowed)"},
      {"\"45 GB/s\"", "\"1e400 GB/s\"",
       R"(m:21:15: link.bandwidth: a bandwidth needs a finite number and a unit )" + rates + R"(, got "1e400 GB/s"; "unlimited" is allowed)"},
      {"\"45 GB/s\"", "45", "m:21:22: Expected string, got: 45"},
      {"\"45 GB/s\"", "\"45 GB/s", "m:21:44: String literals cannot cross line boundaries."},
      {"\"1 us\"", "\"1 us \"", R"(m:22:13: link.latency: a time needs a known unit (ps, ns, us, ms, s), got "1 us ", did you mean "us"?)"},
      {"\"1 us\"", "\"2 h\"", R"(m:22:13: link.latency: a time needs a known unit (ps, ns, us, ms, s), got "2 h")"},
      {"\"1 us\"", "\"4000 s\"", R"(m:22:13: link.latency must be in [0 s, 3600 s], got "4000 s")"},
      {"\"0.5\"", "\"1.5\"", R"(m:15:17: chip.overlap_hbm must be in [0, 1], got "1.5")"},
      {"\"0.5\"", "\"50%\"", R"(m:15:17: chip.overlap_hbm: expected a number without a unit, got "50%")"},
      {"matmul_tile_m { value: \"1\"", "matmul_tile_m { value: \"0\"",
       R"(m:7:19: chip.matmul_tile_m: expected a whole number from 1 to 65536, got "0")"},
      {"matmul_tile_m { value: \"1\"", "matmul_tile_m { value: \"1.5\"",
       R"(m:7:19: chip.matmul_tile_m: expected a whole number from 1 to 65536, got "1.5")"},
      {"matmul_tile_m { value: \"1\"", "matmul_tile_m { value: \"99999999999999999999\"",
       R"(m:7:19: chip.matmul_tile_m: expected a whole number from 1 to 65536, got "99999999999999999999")"},
      {"\"32 GB\"", "\"32.0000000001 GB\"", R"(m:13:9: chip.hbm: an amount of data must be whole bytes, got "32.0000000001 GB")"},
      {"peak {", "peak { of: \"bf16\" value: \"derived\" source: \"s\" } peak {",
       R"(m:4:21: chip.peak[bf16]: a rate of work needs a finite number and a unit (FLOP/s, kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, )"
       R"(EFLOP/s), got "derived"; "unlimited" is allowed)"},
      {"efficiency { value: \"1\" source: \"s\" }\n}", "efficiency { value: \"0.5 at 2 MiB, 0.6 at 1 MiB\" source: \"s\" }\n}",
       R"(m:30:16: collective.efficiency: points need increasing, positive amounts of data, got "0.5 at 2 MiB, 0.6 at 1 MiB")"},
      {"efficiency { value: \"1\" source: \"s\" }\n}", "efficiency { value: \"0.5 at 2\" source: \"s\" }\n}",
       R"(m:30:16: collective.efficiency: an amount of data needs a unit (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB), got "2")"},
  });
}

TEST(BadMachine, IsToldExactlyOfVersionAndSlices) {
  expect_machine_errors({
      {"format_version: 1\n", "", "m: format_version is missing; this program reads 1"},
      {"format_version: 1\n", "format_version: 2\nnew_field: 7\n", "m:1:1: format_version 2 is newer than what this program reads, 1"},
      {"format_version: 1\n", "format_version: 0\n", "m:1:1: format_version must be at least 1, got 0"},
      {"format_version: 1\n", "format_version: 99999999999\n", "m:1:17: Integer out of range (99999999999)"},
      {"name: \"m\"\n", "", "m: name is missing"},
      {"name: \"m\"", "name: \"\"", "m:2:1: name is empty"},
      {"name: \"m\"", "name: \"\\xff\"", R"(m:2:1: name must be text in UTF-8 without NUL, got "\xff")"},
      {"name: \"m\"", "name: \"\\000\"", R"(m:2:1: name must be text in UTF-8 without NUL, got "\x00")"},
      {"name: \"m\"", "name: m", "m:2:7: Expected string, got: m"},
      {"chip {", "chip <", R"(m:19:1: Expected ">", found "}".)"},
      {"slices {", "slices { [type.googleapis.com/podsim.proto.Machine.Value] {} ", R"(m:32:30: Expected "]", found "/".)"},
      {"slices {", "slices { } slices {", "m:32:12: slices is given twice"},
      // Slices.
      {"cube: 4", "cube: 5", "m:32:10: the largest slice 16x16x16 is not made of cubes of 5"},
      {"cube: 4", "cube: 0", "m:32:10: the cube must be at least 1, got 0"},
      {"cube: 4", "any_shape: true", "m:32:1: slices of any shape have no cube, largest or open"},
      {"largest: \"16x16x16\"", "", "m:32:1: slices need the largest, or any_shape: true"},
      {"\"16x16x16\"", "\"16*16\"", R"(m:32:18: expected extents like "4x4x8", got "16*16")"},
      {"\"16x16x16\"", "\"16x16x16x4x4\"", R"(m:32:18: expected at most 4 extents, got "16x16x16x4x4")"},
      {"\"16x16x16\"", "\"4096x4096x4\"", R"(m:32:18: expected at most 16777216 chips, got "4096x4096x4")"},
      {"\"2x2x1\"", "\"2x2\"", "m:32:38: the open slice 2x2 does not fit the largest, 16x16x16"},
      {"\"2x2x1\"", "\"2x2x32\"", "m:32:38: the open slice 2x2x32 does not fit the largest, 16x16x16"},
      {"\"2x2x1\"", "\"2x2x2\"", "m:32:52: the open slice 2x2x2 is given twice"},
      {"cube: 4", "host: \"2x2\" cube: 4", "m:32:10: the host 2x2 does not fit the largest slice, 16x16x16"},
      {"cube: 4", "host: \"two\" cube: 4", R"(m:32:10: expected extents like "4x4x8", got "two")"},
      {"cube: 4", "cores_per_chip: 0 cube: 4", "m:32:10: cores_per_chip must be in [1, 16], got 0"},
      {"cube: 4", "name_prefix: \"v5p-\" cube: 4", R"(m:32:10: a name_prefix is made of lower-case letters and digits, got "v5p-")"},
      {"cube: 4 largest: \"16x16x16\" open: \"2x2x1\" open: \"2x2x2\"", "any_shape: true host: \"2x2x1\"",
       "m:32:1: slices of any shape have no host, cores_per_chip or name_prefix"},
      {"slices {", "interconnect { value: \"ring\" source: \"s\" }\nslices {", R"(m:32:16: the interconnect must be grid or rail, got "ring")"},
      {"slices {", "interconnect { value: \"grid\" source: \"\" }\nslices {", "m:32:30: interconnect has an empty source"},
      {"slices {", "routes { value: \"hops\" source: \"s\" }\nslices {", R"(m:32:10: the routes must be sign or endpoints, got "hops")"},
      {"slices {", "interconnect { value: \"rail\" source: \"s\" }\nslices {",
       "m:33:1: slices of a rail interconnect have a largest of two extents, nodes and GPUs of a node, and no cube or open"},
      {"slices {", "dcn { sync { value: \"1\" source: \"s\" } }\nslices {",
       R"(m:32:14: dcn.sync: a time needs a unit (ps, ns, us, ms, s), got "1")"},
      {"value: true", "value: yes", R"(m:33:23: expected true or false, found "yes")"},
      {"value: true source: \"s\"", "value: true", "m:33:1: source is missing in slice_copies"},
  });
}

TEST(BadMachine, WhatIsNoTextproto) {
  EXPECT_EQ(error_of(read_machine("", "m")), "m: expected a machine, found an empty file");
  EXPECT_EQ(error_of(read_machine(" \n\t", "m")), "m: expected a machine, found an empty file");
  EXPECT_EQ(error_of(read_machine("# nothing\n", "m")), "m: format_version is missing; this program reads 1");
  EXPECT_EQ(error_of(read_machine(std::string("format_version: 1\n\0", 19), "m")),
            "m:2:1: expected a machine as textproto, found the byte 0x00, which is not text");
  EXPECT_EQ(error_of(read_machine("\177ELF\x02\x01", "m")), "m:1:1: Expected identifier, got: \x7F");
  EXPECT_EQ(error_of(read_machine("name: \"\xc3(\"", "m")), "m:1:8: expected a machine as textproto, found the byte 0xc3, which is not text");
  EXPECT_EQ(error_of(read_machine(write_schedule(Schedule{}, Encoding::binary), "m")), "m: expected a machine as textproto, found a binary file");
  EXPECT_EQ(error_of(read_machine("{}", "m")), "m:1:1: Expected identifier, got: {");
  EXPECT_EQ(error_of(read_machine("name: \"m\"\n}", "m")), "m:2:1: Expected identifier, got: }");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "chip {";
  EXPECT_EQ(error_of(read_machine(deep, "m")), R"(m:1:7: unknown field "chip", expected one of )" + chip_fields);
}

// ---- Schedules ------------------------------------------------------------------------------------------------------------------------

const std::string schedule = R"(format_version: 1
mesh { name: "row" size: 4 wraps: true }
mesh { name: "col" size: 8 }
program {
  devices { range { first: 0 last: 32 } }
  buffer { name: "X" extents: [4, 16] dtype: bf16 role: input tensor: "X" sharding { axis { name: "row" } } sharding { } }
  buffer { name: "Y" extents: [4, 16] dtype: bf16 }
  buffer { name: "Y" extents: [4, 16] dtype: bf16 }
  task {
    label: "first"
    shift {
      axis { name: "row" }
      by { term { axis { name: "col" } } constant: 1 }
      source { buffer: "X" dim { index { term { axis { name: "row" } } modulus: 4 } length: 1 } dim { length: 16 } }
      target { position: 1 dim { length: 1 } dim { length: 16 } }
      route_order: [1, 0]
    }
  }
  task { label: "second" local { kind: scale read { buffer: "X" } write { position: 2 } factor: 0.5 } after { label: "first" done: sent } }
  task { label: "second" matmul { left { buffer: "X" } right { buffer: "X" } out { buffer: "X" } } after { task: 1 } }
  task { collective { kind: all_gather axis { name: "col" stride: 2 size: 4 } input { buffer: "X" } output { buffer: "X" } } }
  task { send { channel: 1 to { constant: 0 } source { buffer: "X" } } where { value { constant: 1 } low: 0 high: 1 } }
  task { recv { channel: 1 from { constant: 0 } target { buffer: "X" } } origin { collective: 0 kind: permute axis { name: "row" } input_bytes: 4 } }
}
product { m: 16 n: 16 k: 16 }
)";

TEST(BadSchedule, TheUnchangedTextIsAccepted) { EXPECT_EQ(error_of(read_schedule(schedule, "s")), "accepted"); }

void expect_schedule_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(error_of(read_schedule(changed(schedule, c.from, c.to), "s")), c.message) << c.from << " -> " << c.to;
}

TEST(BadSchedule, IsToldExactlyOfMeshAndNames) {
  expect_schedule_errors({
      {"size: 4 wraps", "size: 0 wraps", "s:2:20: the size of a mesh axis must be at least 1, got 0"},
      {"size: 4 wraps", "wraps", "s:2:1: size is missing in mesh"},
      {"size: 4 wraps", "size: 4194304 wraps", "s:3:20: the mesh has more than 2^24 devices"},
      {"name: \"col\" size: 8", "name: \"row\" size: 8", R"(s:3:8: there are two mesh axes "row")"},
      {"name: \"col\" size: 8", "name: \"\" size: 8", "s:3:8: a mesh axis has an empty name"},
      {"size: 4 wraps", "size: 4294967296 wraps", "s:2:26: Integer out of range (4294967296)"},
      // Names.
      {"      axis { name: \"row\" }", "      axis { name: \"rwo\" }", R"(s:12:14: unknown mesh axis "rwo", did you mean "row"?)"},
      {"      axis { name: \"row\" }", "      axis { name: \"depth\" }", R"(s:12:14: unknown mesh axis "depth")"},
      {"      axis { name: \"row\" }", "      axis { name: \"row\" stride: 3 }",
       R"(s:12:7: stride 3 and size 1 are no factor of the mesh axis "row" of size 4)"},
      {"stride: 2 size: 4", "stride: 2 size: 8", R"(s:21:40: stride 2 and size 8 are no factor of the mesh axis "col" of size 8)"},
      {"stride: 2 size: 4", "stride: 0 size: 4", R"(s:21:40: stride 0 and size 4 are no factor of the mesh axis "col" of size 8)"},
      {"stride: 2 size: 4", "stride: 2 size: -1", R"(s:21:40: stride 2 and size -1 are no factor of the mesh axis "col" of size 8)"},
      {"stride: 2 size: 4", "stride: 2000000000 size: 2000000000",
       R"(s:21:40: stride 2000000000 and size 2000000000 are no factor of the mesh axis "col" of size 8)"},
      {"source { buffer: \"X\"", "source { buffer: \"Z\"", R"(s:14:16: unknown buffer "Z")"},
      {"source { buffer: \"X\"", "source { buffer: \"XY\"", R"(s:14:16: unknown buffer "XY", did you mean "X" or "Y"?)"},
      {"source { buffer: \"X\"", "source { buffer: \"Y\"", R"(s:14:16: 2 buffers are named "Y": give the position instead)"},
      {"source { buffer: \"X\"", "source { position: 3", "s:14:16: the program has 3 buffers, there is none at position 3"},
      {"source { buffer: \"X\"", "source { position: -1", "s:14:16: the program has 3 buffers, there is none at position -1"},
      {"source { buffer: \"X\"", "source { position: 0 buffer: \"X\"",
       R"(s:14:34: Field "buffer" is specified along with field "position", another member of oneof "buffer_of_program".)"},
      {"source { buffer: \"X\"", "source {", "s:14:7: a region needs a buffer"},
      {"after { label: \"first\"", "after { label: \"frist\"", R"(s:19:111: no task is labelled "frist", did you mean "first"?)"},
      {"after { task: 1 }", "after { label: \"second\" }", R"(s:20:108: 2 tasks are labelled "second": give the position instead)"},
      {"after { label: \"first\" done: sent }", "after { task: 1 }", "s:19:103: an edge must lead to an earlier task, got one from task 1 to task 1"},
      {"after { label: \"first\" done: sent }", "after { task: 4 }", "s:19:103: an edge must lead to an earlier task, got one from task 1 to task 4"},
      {"after { label: \"first\" done: sent }", "after { task: 6 }", "s:19:111: the program has 6 tasks, there is none at position 6"},
      {"after { label: \"first\" done: sent }", "after { task: -1 }", "s:19:111: the program has 6 tasks, there is none at position -1"},
      {"after { label: \"first\" done: sent }", "after { done: sent }", "s:19:103: an edge needs a task or a label"},
      {"label: \"first\"\n", "label: \"last\" after { label: \"first\" }\n", R"(s:10:27: no task is labelled "first"
s:19:111: no task is labelled "first")"},
      {"label: \"first\"\n", "label: \"first\" after { label: \"first\" }\n",
       "s:10:20: an edge must lead to an earlier task, got one from task 0 to task 0"},
  });
}

TEST(BadSchedule, IsToldExactlyOfNumbers) {
  expect_schedule_errors({
      {"[4, 16] dtype: bf16 role", "[4, -16] dtype: bf16 role", "s:6:22: an extent must not be negative, got -16"},
      {"[4, 16] dtype: bf16 role", "[4294967296, 4294967296] dtype: bf16 role", "s:6:3: the tensor of this buffer has more than 2^62 bytes"},
      {"[4, 16] dtype: bf16 role", "[4, 1152921504606846976] dtype: bf16 role", "s:6:3: the tensor of this buffer has more than 2^62 bytes"},
      {"[4, 16] dtype: bf16 role", "[4, 99999999999999999999] dtype: bf16 role", "s:6:35: Integer out of range (99999999999999999999)"},
      {"length: 1 } dim", "length: -1 } dim", "s:14:85: a length must not be negative, got -1"},
      {"length: 1 } dim", "} dim", "s:14:28: length is missing in dim"},
      {"modulus: 4", "modulus: -4", "s:14:72: a modulus must not be negative, got -4"},
      {"modulus: 4", "constant: 9223372036854775807", "s:14:34: this index reaches beyond 2^62"},
      {"modulus: 4", "constant: -9223372036854775808", "s:14:34: this index reaches beyond 2^62"},
      {"modulus: 4 }", "modulus: 4 } stride: 4611686018427387904", "s:14:28: this range reaches beyond 2^62"},
      {"dim { length: 16 } }\n      target", "dim { length: 4611686018427387904 } dim { length: 2 } }\n      target",
       "s:14:7: this region has more than 2^62 elements"},
      {"route_order: [1, 0]", "route_order: [1, -1]", "s:16:7: a dimension must not be negative, got -1"},
      {"factor: 0.5", "factor: nan", "s:19:89: factor must be a finite number, got nan"},
      {"factor: 0.5", "factor: -inf", "s:19:89: factor must be a finite number, got -inf"},
      {"factor: 0.5", "classes: -5", "s:19:89: classes must not be negative, got -5"},
      {"factor: 0.5", "optimiser { learning_rate: inf }", "s:19:101: learning_rate must be a finite number, got inf"},
      {"factor: 0.5", "optimiser { momentum: 1 }", R"(s:19:101: unknown field "momentum", expected one of learning_rate, beta1, beta2, epsilon, weight_decay, step)"},
      {"factor: 0.5", "factor: \"half\"", R"(s:19:97: Expected double, got: "half")"},
      {"first: 0 last: 32", "first: 0 last: 33", "s:5:13: devices 0 to 33 are not among the 32 of the mesh"},
      {"first: 0 last: 32", "first: 8 last: 4", "s:5:13: devices 8 to 4 are not among the 32 of the mesh"},
      {"matmul { ", "matmul { left_split: -1 ", "s:20:35: left_split must not be negative, got -1"},
      {"kind: all_gather", "kind: all_gather dim: -1", "s:21:40: dim must not be negative, got -1"},
      {"kind: all_gather", "kind: all_gather pair { from: 0 to: -1 }", "s:21:55: to must not be negative, got -1"},
      {"kind: all_gather", "kind: all_gather pair { from: 0 }", "s:21:40: to is missing in pair"},
      {"term { axis { name: \"col\" } }", "term { axis { name: \"col\" } add: 9223372036854775807 }", "s:13:7: this index reaches beyond 2^62"},
      {"kind: all_gather", "kind: all_gather root: -1", "s:21:40: root must not be negative, got -1"},
      {"input_bytes: 4", "input_bytes: -4", "s:23:132: input_bytes must not be negative, got -4"},
      {"m: 16 n: 16", "m: -16 n: 16", "s:25:11: m must not be negative, got -16"},
      {"m: 16 n: 16", "m: 4294967296 n: 4294967296", "s:25:1: a matrix of this product has more than 2^62 bytes"},
      {"product {", "collective { kind: reduce input { buffer: \"X\" } output { buffer: \"X\" } } product {",
       "s:25:1: a schedule computes products or a collective, not both"},
  });
}

TEST(BadSchedule, IsToldExactlyOfForm) {
  expect_schedule_errors({
      {"kind: all_gather", "kind: all_gathr", R"(s:21:29: unknown value "all_gathr" of kind, did you mean "all_gather"?)"},
      {"role: input", "role: 99", R"(s:6:57: unknown value "99" of role, expected one of input, output, scratch)"},
      {"kind: all_gather", "kind: \"all_gather\"", R"(s:21:29: Expected integer or identifier, got: "all_gather")"},
      {"done: sent", "done: send", R"(s:19:132: unknown value "send" of done, did you mean "sent"?)"},
      {"dtype: bf16 role", "dtype: fp8 role", R"(s:6:46: unknown value "fp8" of dtype, expected one of f32, bf16, c64, s32, f8e4m3fn, f8e5m2, s8)"},
      {"dtype: bf16 role", "role", "s:6:3: dtype is missing in buffer"},
      {"role: input", "role: quicksilver", R"(s:6:57: unknown value "quicksilver" of role, expected one of input, output, scratch)"},
      {"shift {", "shfit {", R"(s:11:5: unknown field "shfit", did you mean "shift"?)"},
      {"collective { kind: all_gather axis { name: \"col\" stride: 2 size: 4 } input { buffer: \"X\" } output { buffer: \"X\" } }", "",
       "s:21:3: a task needs one of matmul, local, shift, send, recv, collective, call"},
      {"collective { kind: all_gather", "send { source { buffer: \"X\" } } collective { kind: all_gather",
       R"(s:21:53: Field "collective" is specified along with field "send", another member of oneof "op".)"},
      {"label: \"first\"\n", "label: \"first\" label: \"again\"\n", "s:10:20: label is given twice"},
      {"label: \"first\"\n", "label: \"\\377\\376\"\n", R"(s:10:5: label must be text in UTF-8 without NUL, got "\xff\xfe")"},
      {"by { term { axis { name: \"col\" } } constant: 1 }\n", "", "s:11:5: by is missing in shift"},
      {"low: 0 high: 1", "low: 0", "s:22:72: high is missing in where"},
      {"format_version: 1", "format_version: 2", "s:1:1: format_version 2 is newer than what this program reads, 1"},
      {"format_version: 1", "format_version: -1", "s:1:1: format_version must be at least 1, got -1"},
      {"format_version: 1", "", "s: format_version is missing; this program reads 1"},
      {"product { m: 16 n: 16 k: 16 }", "product { m: 16 n: 16 k: 16", "s:26:1: Expected identifier, got: the end of the file"},
  });
}

TEST(BadSchedule, IsToldExactlyOfAReference) {
  const std::string before = "product { m: 16 n: 16 k: 16 }";
  const std::string input = R"(reference { node { kind: input extents: [4] tensor: "X" } )";
  expect_schedule_errors({
      {before, before + " reference { }", "s:25:31: a schedule computes a reference, or products or a collective, not both"},
      {before, input + "node { kind: relu operand: 1 extents: [4] } }", "s:25:77: an operand must be an earlier node, got 1 in node 1"},
      {before, input + "node { kind: relu operand: 0 extents: [4] } output { tensor: \"Y\" node: 2 } }",
       "s:25:124: the reference has 2 nodes, there is none at position 2"},
      {before, input + "node { kind: scale operand: 0 extents: [4] number: nan } }", "s:25:102: number must be a finite number, got nan"},
      {before, input + "node { kind: relu operand: 0 extents: [4611686018427387904] } }", "s:25:59: the array of this node has more than 2^62 bytes"},
      {before, input + "node { kind: block_collective operand: 0 extents: [4] } }", "s:25:59: blocks belong to a block_collective, and to nothing else"},
      {before, input + "node { kind: block_collective operand: 0 extents: [4] blocks { kind: permute axis: \"roww\" } } }",
       R"(s:25:136: unknown mesh axis "roww", did you mean "row"?)"},
  });
}

TEST(BadSchedule, TooMuchOfEverything) {
  std::string axes = "format_version: 1\n";
  for (int i = 0; i < 65; ++i) axes += fmt::format("mesh {{ name: \"a{}\" size: 1 }}\n", i);
  EXPECT_EQ(error_of(read_schedule(axes, "s")), "s:66:1: expected at most 64 mesh axes, found 65");
  std::string problems = "format_version: 1\nprogram {\n";
  for (int i = 0; i < 1000; ++i) problems += "task {}\n";
  const std::string message = error_of(read_schedule(problems + "}", "s"));
  EXPECT_EQ(message.substr(0, message.find('\n')), "s:3:1: a task needs one of matmul, local, shift, send, recv, collective, call");
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_EQ(message.substr(message.rfind('\n') + 1), "s: and 980 more");
  EXPECT_EQ(error_of(read_schedule("format_version: 1\ncollective { kind: reduce input {} output {} }", "s")),
            "s:2:1: the regions of this collective are of the first program, but there is none");
}

// ---- Binary files ---------------------------------------------------------------------------------------------------------------------

TEST(BadBinary, IsToldExactly) {
  using namespace std::string_literals;
  const std::string good = write_schedule(every_operation(), Encoding::binary);
  const std::string version = "\x08\x01"s;
  struct BinaryCase {
    std::string bytes, message;
  };
  const BinaryCase cases[] = {
      {"\x89", "b: cut short: expected a header of 16 bytes, found 1"},
      {"\x89PODSIM", "b: cut short: expected a header of 16 bytes, found 7"},
      {"\x89PODSIMS\x01\x02", "b: cut short: expected a header of 16 bytes, found 10"},
      {"\x89PNG\r\n\x1a\n", "b: expected a schedule, found an unknown binary file"},
      {good.substr(0, good.size() - 1),
       fmt::format("b: cut short: expected {} bytes behind the header, found {}", good.size() - 16, good.size() - 17)},
      {good + "x", fmt::format("b: expected {} bytes behind the header, found {}", good.size() - 16, good.size() - 15)},
      {"\x89PODSIMS\xff\xff\xff\xff\xff\xff\xff\xff"s, "b: cut short: expected 18446744073709551615 bytes behind the header, found 0"},
      {write_result(Result{}, Encoding::binary), "b: expected a schedule, found a binary file of another kind"},
      {framed('S', ""), "b: format_version is missing; this program reads 1"},
      {framed('S', "\x08\x02"), "b: format_version: format_version 2 is newer than what this program reads, 1"},
      {framed('S', version + "\xff\xff\xff"), "b: malformed binary form of a schedule"},
      {framed('S', version + "\x0f"), "b: malformed binary form of a schedule"},                                          // a field of wire type 7
      {framed('S', version + "\xf8\x07\x01"), "b: unknown field or value of field number 127"},                           // field 127
      {framed('S', version + "\x12\x02\xff\xfe"), R"(b: name: name must be text in UTF-8 without NUL, got "\xff\xfe")"},  // a name that is not UTF-8
      {framed('S', version + "\x1a\x05\x0a\x01r\x10"s + '\0'),
       "b: mesh[0].size: the size of a mesh axis must be at least 1, got 0"},                         // mesh { name: "r" size: 0 }
      {framed('S', version + "\x22\x06\x12\x04\x18\x09\x0a" + '\0'), R"(b: program[0].buffer[0]: unknown field or value of field number 3
b: program[0].buffer[0]: dtype is missing in buffer)"},                                               // a dtype that there is not
      {framed('S', version + std::string(200, '\x0b')), "b: malformed binary form of a schedule"},    // groups in groups
      {framed('S', version + "\x12\xff\xff\xff\xff\x07"), "b: malformed binary form of a schedule"},  // a name of 2 GiB
  };
  for (const BinaryCase& c : cases) EXPECT_EQ(error_of(read_schedule(c.bytes, "b")), c.message) << ::testing::PrintToString(c.bytes.substr(0, 60));
}

TEST(BadBinary, AProblemIsFoundByThePathOfItsField) {
  Schedule wrong = every_operation();
  std::get<Matmul>(wrong.programs[0].tasks[0].op).left.dims[1].length = -1;
  wrong.programs[0].tasks[1].after[0].task = TaskId{5};
  EXPECT_EQ(error_of(read_schedule(write_schedule(wrong, Encoding::binary), "b")),
            R"(b: program[0].task[0].matmul.left.dim[1].length: a length must not be negative, got -1
b: program[0].task[1].after[0]: an edge must lead to an earlier task, got one from task 1 to task 5)");
}

// ---- Results --------------------------------------------------------------------------------------------------------------------------

TEST(BadResult, IsToldExactly) {
  Result result;
  result.mesh = {{"row", 4}};
  result.mfu = 0.5;
  const std::string text = write_result(result, Encoding::text);
  ASSERT_EQ(error_of(read_result(text, "r")), "accepted");
  const Case cases[] = {
      {"makespan_s: 0\n", "", "r: makespan_s is missing"},
      {"makespan_s: 0\n", "makespan_s: -1\n", "r:13:1: makespan_s must not be negative, got -1"},
      {"makespan_s: 0\n", "makespan_s: nan\n", "r:13:1: makespan_s must be a finite number, got nan"},
      {"makespan_s: 0\n", "makespan_s: inf\n", "r:13:1: makespan_s must be a finite number, got inf"},
      {"makespan_s: 0\n", "makespan_s: 1e999\n", "r:13:1: makespan_s must be a finite number, got inf"},
      {"makespan_s: 0\n", "makespan: 0\n", R"(r:13:1: unknown field "makespan", did you mean "makespan_s"?)"},
      {"devices: 0\n", "devices: 4.5\n", "r:11:10: Expected integer, got: 4.5"},
      {"devices: 0\n", "devices: 3000000000\n", "r:11:10: Integer out of range (3000000000)"},
      {"tasks: 0\n", "tasks: -1\n", "r:21:1: tasks must not be negative, got -1"},
      {"size: 4", "size: 0", "r:10:1: the size of a mesh axis must be at least 1, got 0"},
      {"hypothetical: false", "hypothetical: maybe", R"(r:9:15: expected true or false, found "maybe")"},
      {"format_version: 1", "format_version: 3", "r:4:1: format_version 3 is newer than what this program reads, 1"},
      {"engine: \"\"", "engine: \"\" engine: \"\"", "r:5:12: engine is given twice"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(read_result(changed(text, c.from, c.to), "r")), c.message) << c.from << " -> " << c.to;
  EXPECT_EQ(error_of(read_result("", "r")), "r: expected a result, found an empty file");
  EXPECT_EQ(error_of(read_result(write_schedule(Schedule{}, Encoding::binary), "r")), "r: expected a result, found a binary file of another kind");
}

}  // namespace
}  // namespace podsim
