#include "sim/config/machine_config.hpp"

#include <cmath>
#include <filesystem>
#include <iterator>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/base/test_files.hpp"
#include "sim/config/machine.pb.h"
#include "sim/machine/machine_fields.hpp"

namespace podsim {
namespace {

std::vector<std::filesystem::path> shipped_files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(PODSIM_SOURCE_DIR) + "/topologies/machines"))
    if (entry.path().extension() == ".textproto") paths.push_back(entry.path());
  return paths;
}

Machine shipped(const std::string& name) {
  const auto machine = read_machine(test::bytes_of_file(std::string(PODSIM_SOURCE_DIR) + "/topologies/machines/" + name + ".textproto"), name);
  if (!machine) throw std::runtime_error(to_text(machine.error()));
  return *machine;
}

/// Every value within its range, each entry its own, each with its own source.
Machine random_machine(std::uint64_t seed) {
  Rng rng{seed};
  Machine machine = shipped("ideal");
  for (const MachineField& field : machine_fields()) {
    const std::vector<std::string> names = index_names(field.index);
    const bool equal = rng.below(3) == 0;
    for (std::size_t entry = 0; entry < names.size(); ++entry) {
      if (equal && entry > 0) continue;
      const double high = std::isinf(field.high) ? 1e14 : field.high;
      double value = field.low + rng.uniform() * (high - field.low);
      if (field.unit == FieldUnit::integer || field.unit == FieldUnit::bytes) value = std::floor(value);
      if (field.unit == FieldUnit::sharing) value = std::round(value);
      if (field.unit == FieldUnit::quarters) value = std::floor(4 * value) / 4;
      for (std::size_t e = entry; e < (equal ? names.size() : entry + 1); ++e) {
        field.set(machine, static_cast<int>(e), value);
        machine.sources[path_of(field, names[e])] = equal ? "measured" : "measured \"" + std::to_string(rng.below(2)) + "\" \xc2\xb5s";
      }
    }
  }
  return machine;
}

TEST(MachineConfig, EveryShippedMachineIsWrittenAndReadBackEqual) {
  const auto paths = shipped_files();
  ASSERT_GE(paths.size(), 2u);
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    const auto machine = read_machine(test::bytes_of_file(path), path);
    ASSERT_TRUE(machine) << to_text(machine.error());
    EXPECT_EQ(machine->name, path.stem());
    const std::string text = write_machine(*machine);
    const auto again = read_machine(text, "written");
    ASSERT_TRUE(again) << to_text(again.error());
    EXPECT_EQ(*again, *machine);
    EXPECT_EQ(write_machine(*again), text);
  }
}

TEST(MachineConfig, AnyMachineIsWrittenAndReadBackEqual) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Machine machine = random_machine(seed);
    const auto again = read_machine(write_machine(machine), "written");
    ASSERT_TRUE(again) << "seed " << seed << ": " << to_text(again.error());
    ASSERT_EQ(*again, machine) << "seed " << seed;
  }
}

TEST(MachineConfig, EveryValueOfAShippedMachineHasASource) {
  for (const auto& path : shipped_files()) {
    const Machine machine = shipped(path.stem());
    std::set<std::string> expected{"slices", "slice_copies", "interconnect"};
    for (const MachineField& field : machine_fields())
      for (const std::string& name : index_names(field.index)) expected.insert(path_of(field, name));
    std::set<std::string> found;
    for (const auto& [value, source] : machine.sources) {
      EXPECT_FALSE(source.empty() || source == "not stated") << value;
      found.insert(value);
    }
    EXPECT_EQ(found, expected) << path;
  }
}

// The message is the second place that lists the fields, so it must not differ from the table.
TEST(MachineConfig, TheMessageHasExactlyTheFieldsOfTheTable) {
  std::set<std::string> in_table;
  for (const MachineField& field : machine_fields()) in_table.insert(path_of(field, "") + (field.index == FieldIndex::none ? "" : "[]"));
  std::set<std::string> in_message;
  const google::protobuf::Descriptor& machine = *proto::Machine::descriptor();
  for (int g = 0; g < machine.field_count(); ++g) {
    const google::protobuf::Descriptor* group = machine.field(g)->message_type();
    if (group == nullptr || group == proto::Machine::Slices::descriptor() || group == proto::Machine::Switch::descriptor()) continue;
    if (group == proto::Machine::Choice::descriptor() || group == proto::Machine::Trust::descriptor()) continue;
    for (int f = 0; f < group->field_count(); ++f) {
      EXPECT_EQ(group->field(f)->message_type(), proto::Machine::Value::descriptor());
      in_message.insert(machine.field(g)->name() + "." + group->field(f)->name() + (group->field(f)->is_repeated() ? "[]" : ""));
    }
  }
  EXPECT_EQ(in_message, in_table);
}

TEST(MachineConfig, ValuesOfOneEntryWinOverTheGeneralValueWhereverTheyStand) {
  const std::string general = R"(  launch { value: "7 us" source: "general" })";
  const std::string one = R"(  launch { of: "all-gather" value: "9 us" source: "one" })";
  const std::string text = write_machine(shipped("ideal"));
  const std::string begin = "  launch { value: \"0 s\" source: \"by definition\" }";
  const std::size_t at = text.find(begin);
  ASSERT_NE(at, std::string::npos);
  for (const std::string& both : {general + "\n" + one, one + "\n" + general}) {
    const auto machine = read_machine(std::string(text).replace(at, begin.size(), both), "m");
    ASSERT_TRUE(machine) << to_text(machine.error());
    for (int kind = 0; kind < cost_kind_count; ++kind) {
      const bool named = static_cast<CostKind>(kind) == CostKind::all_gather;
      EXPECT_EQ(machine->software.launch[static_cast<std::size_t>(kind)], Seconds{named ? 9e-6 : 7e-6});
    }
    EXPECT_EQ(machine->sources.at("software.launch[all-gather]"), "one");
    EXPECT_EQ(machine->sources.at("software.launch[permute]"), "general");
  }
}

TEST(MachineConfig, TpuV4IsTheMachineOfItsSources) {
  const Machine v4 = shipped("tpu_v4");
  const auto launch = [&](CostKind kind) { return v4.software.launch[static_cast<std::size_t>(kind)]; };
  EXPECT_EQ(v4.chip.peak[static_cast<std::size_t>(DType::bf16)], FlopsPerSecond{275e12});
  EXPECT_EQ(v4.chip.peak[static_cast<std::size_t>(DType::f32)], FlopsPerSecond{}) << "derived";
  EXPECT_EQ(v4.chip.float32_passes, 1);
  EXPECT_EQ(v4.chip.vector_peak, FlopsPerSecond{2 * 128 * 16 * 1.05e9});
  EXPECT_EQ(v4.chip.hbm, Bytes{33'017'561'088});
  EXPECT_EQ(v4.chip.hbm_bandwidth, BytesPerSecond{1.2e12});
  EXPECT_EQ(v4.chip.matmul_tile_m * v4.chip.matmul_tile_n * v4.chip.matmul_tile_k, 128 * 128 * 128);
  EXPECT_EQ(std::pair(v4.chip.layout_sublanes, v4.chip.layout_lanes), std::pair(8, 128));
  for (const LinkParameters& link : v4.link) EXPECT_EQ(link, (LinkParameters{BytesPerSecond{45e9}, Seconds{1e-6}}));
  EXPECT_EQ(v4.software.per_message, Seconds{4e-6});
  EXPECT_EQ(launch(CostKind::matmul), Seconds{});
  EXPECT_EQ(launch(CostKind::local), Seconds{});
  EXPECT_EQ(launch(CostKind::all_gather), Seconds{13e-6});
  EXPECT_EQ(launch(CostKind::reduce_scatter), Seconds{26e-6});
  EXPECT_EQ(launch(CostKind::all_reduce), Seconds{39e-6});
  EXPECT_EQ(launch(CostKind::broadcast), Seconds{13e-6});
  EXPECT_EQ(launch(CostKind::permute), Seconds{13e-6});
  EXPECT_EQ(v4.slices, (SliceRules{false, 4, {16, 16, 16}, {{2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}}, {2, 2, 1}, 2, "v4"}));
  EXPECT_TRUE(v4.slice_copies);
}

TEST(MachineConfig, WhatAFileLeavesOutHasTheDefaultAndNoSource) {
  Machine expected = shipped("ideal");
  std::string text = write_machine(expected);
  const auto drop = [&](const std::string& from, const std::string& upto) {
    const std::size_t begin = text.find(from);
    ASSERT_NE(begin, std::string::npos) << from;
    text.erase(begin, text.find(upto, begin) + upto.size() - begin);
  };
  drop("dcn {", "\n}\n");
  drop("interconnect {", "}\n");
  for (const std::string field : {"devices", "inner_bandwidth", "inner_latency"}) drop("  " + field + " {", "}\n");
  for (const std::string path : {"chip.devices", "chip.inner_bandwidth", "chip.inner_latency", "dcn.nic_bandwidth", "dcn.host_bandwidth",
                                 "dcn.latency", "dcn.sync", "interconnect"})
    expected.sources[path] = "not stated";
  const auto machine = read_machine(text, "m");
  ASSERT_TRUE(machine) << to_text(machine.error());
  EXPECT_EQ(*machine, expected);
  EXPECT_EQ(*read_machine(write_machine(*machine), "written"), expected);
}

TEST(MachineConfig, AMachineOfRailsIsWrittenAndReadBackEqual) {
  Machine machine = shipped("ideal");
  machine.interconnect = Interconnect::rail;
  machine.slices = {false, 0, {128, 8}, {}, {1, 8}, 3, "pod"};
  const auto again = read_machine(write_machine(machine), "written");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(*again, machine);
}

TEST(MachineConfig, RoutesByEndpointsAreWrittenAndReadBackEqual) {
  Machine machine = shipped("ideal");
  EXPECT_EQ(machine.routes, Routes::sign);
  machine.routes = Routes::endpoints;
  machine.sources["routes"] = "addresses alone";
  const auto again = read_machine(write_machine(machine), "written");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(*again, machine);
}

TEST(MachineConfig, IdealLimitsNothingButArithmeticAndLinks) {
  const Machine ideal = shipped("ideal");
  Chip chip;
  chip.peak.fill(FlopsPerSecond{100e12});
  chip.hbm = Bytes{std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(ideal.chip, chip) << "all else at the defaults of the struct";
  EXPECT_EQ(ideal.software, Software{});
  for (const LinkParameters& link : ideal.link) EXPECT_EQ(link, (LinkParameters{BytesPerSecond{100e9}, Seconds{}}));
  EXPECT_TRUE(ideal.slices.any_shape);
  EXPECT_FALSE(ideal.slice_copies);
}

TEST(MachineConfig, AWrittenMachineReadsLikeAHandWrittenOne) {
  Machine machine = shipped("tpu_v4");
  machine.description.clear();
  EXPECT_THAT(write_machine(machine), ::testing::StartsWith(R"(# proto-file: sim/config/machine.proto
# proto-message: podsim.proto.Machine

format_version: 1
name: "tpu_v4"
chip {
  peak { of: "f32" value: "derived" source: "assumed: bf16 peak over float32_passes" }
  peak { of: "bf16" value: "275 TFLOP/s" source: "scaling-book tpus.md @0819a7d" }
  peak { of: "f8e4m3fn" value: "derived" source: "no fp8 units: libtpu 0.0.42.1 estimates 0.84 times the rate of bf16" }
  peak { of: "f8e5m2" value: "derived" source: "no fp8 units: libtpu 0.0.42.1 estimates 0.84 times the rate of bf16" }
  peak { of: "s8" value: "derived" source: "275 TOP/s of int8 in Google Cloud TPU v4 documentation, as bf16" }
  peak { of: "tf32" value: "derived" source: "no TF32 units: float32 products take passes of bf16" }
  float32_passes { value: "1" source: "jax.lax.Precision.DEFAULT: one bf16 pass; libtpu 0.0.42.1 estimates 1.0 times the cycles of a bf16 product" }
  vector_peak {
    value: "4.3008 TFLOP/s"
    source: "derived: 2 TensorCores x 128 lanes)"));
}

/// scaling-book tpus.md @0819a7d: "VMEM bandwidth is around 22x higher than HBM bandwidth", of v5e.
TEST(MachineConfig, LoadsFromVmemHaveThePublishedMultipleOfHbm) {
  const Chip chip = shipped("tpu_v5e").chip;
  EXPECT_NEAR(chip.vmem_load_bandwidth.count() / chip.hbm_bandwidth.count(), 22, 1.1);
}

TEST(MachineConfig, AllProblemsOfAFileAreTold) {
  std::string text = write_machine(shipped("tpu_v4"));
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("\"45 GB/s\"", "\"45\"");
  replace("\"275 TFLOP/s\"", "\"-1 TFLOP/s\"");
  replace("\"16x16x16\"", "\"16x16x18\"");
  replace("source: \"assumed: transfers do not occupy the core\"", "source: \"\"");
  const auto machine = read_machine(text, "v4");
  ASSERT_FALSE(machine);
  EXPECT_EQ(to_text(machine.error()), R"(v4:9:21: chip.peak[bf16]: a rate of work must not be negative, got "-1 TFLOP/s"
v4:68:15: link.bandwidth: a bandwidth needs a unit (B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s), got "45"
v4:84:27: software.core_share has an empty source
v4:89:3: the largest slice 16x16x18 is not made of cubes of 4)");
}

TEST(MachineConfig, AFittedMachineKeepsItsTableItsDatasetAndItsError) {
  Machine machine = shipped("tpu_v5p");
  machine.trust = {};
  EXPECT_EQ(read_machine(write_machine(machine), "no trust")->trust, Trust{}) << "specified, where the file says nothing";
  machine.trust = {TrustLevel::fitted, "v5p 2x2 \"profile\"", 0.0125, {}};
  machine.trust.covers = {{CostKind::all_reduce, 16, "x,y", {8, std::int64_t{1} << 33}, {}, {}, {}},
                          {CostKind::matmul, 1, "", {}, {128, 4096}, {256, 256}, {512, 8192}}};
  ASSERT_TRUE(set_machine_value(machine, "chip.matmul_efficiency", "0.1 at 128x128x128, 0.9 at 4096x8192x4096", "fitted: here, 2 observations", {}));
  const auto again = read_machine(write_machine(machine), "written");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(*again, machine);
}

TEST(MachineConfig, MeasuredValuesStandBesideThoseOfTheDataSheet) {
  std::string text = write_machine(shipped("ideal"));
  const std::string begin = "hbm_bandwidth { value: \"unlimited\"";
  const std::size_t at = text.find(begin);
  ASSERT_NE(at, std::string::npos);
  const auto with = [&](const std::string& values) { return std::string(text).replace(at, begin.size(), "hbm_bandwidth { " + values); };
  const std::string both = with("value: \"4 TB/s\" spec: \"5 TB/s\"");
  EXPECT_EQ(read_machine(both, "m")->chip.hbm_bandwidth, BytesPerSecond{4e12});
  EXPECT_EQ(read_machine(both, "m", MachineValues::spec)->chip.hbm_bandwidth, BytesPerSecond{5e12});
  EXPECT_EQ(read_machine(both, "m", MachineValues::spec)->name, "ideal:spec");
  EXPECT_EQ(read_machine(text, "m", MachineValues::spec)->chip.hbm_bandwidth, read_machine(text, "m")->chip.hbm_bandwidth) << "where there is none, the value";
  for (const MachineValues values : {MachineValues::measured, MachineValues::spec}) {
    EXPECT_THAT(to_text(read_machine(with("value: \"4 TB/s\" spec: \"5 TB\""), "m", values).error()), ::testing::HasSubstr("a bandwidth needs a known unit")) << "both are read";
    EXPECT_FALSE(read_machine(with("value: \"4 TB\" spec: \"5 TB/s\""), "m", values));
  }
}

TEST(MachineConfig, TrustThatSaysNothingIsRefused) {
  const std::string text = write_machine(shipped("ideal"));
  const auto error = [&](const std::string& trust) {
    const auto machine = read_machine(text + trust + "\n", "m");
    return machine ? "" : machine.error().message;
  };
  EXPECT_EQ(error("trust { level: \"measured\" }"), "");
  EXPECT_EQ(error("trust { level: \"good\" }"), "the level of trust must be spec or fitted or measured or hypothetical, got \"good\"");
  EXPECT_EQ(error("trust { level: \"fitted\" }"), "a fitted machine names its dataset");
  EXPECT_EQ(error("trust { level: \"fitted\" dataset: \"d\" error: -1 }"), "the median relative error must be in [0, 1000000], got -1");
  EXPECT_EQ(error("trust { level: \"fitted\" dataset: \"d\" error: nan }"), "error must be a finite number, got nan");
}

TEST(MachineConfig, WhatAMachineWasFittedToIsReadWithCare) {
  const std::string text = write_machine(shipped("ideal"));
  const auto error = [&](const std::string& covers) {
    const auto machine = read_machine(text + "trust { level: \"fitted\" dataset: \"d\" covers { " + covers + " } }\n", "m");
    return machine ? "" : machine.error().message;
  };
  EXPECT_EQ(error("operation: \"all-gather\" devices: 8 along: \"x,y\" bytes { least: 1 most: 8 }"), "");
  EXPECT_EQ(error("operation: \"local\" devices: 1"), "");
  EXPECT_EQ(error("operation: \"gather\" devices: 8"),
            "expected one of matmul, local, all-gather, reduce-scatter, all-reduce, all-to-all, broadcast, reduce, permute, got \"gather\"");
  EXPECT_EQ(error("operation: \"permute\" devices: 0"), "devices must be in [1, 16777216], got 0");
  EXPECT_EQ(error("operation: \"permute\" devices: 2 along: \"x,q\""), "expected x, y, z, w, core, slice, separated by commas, got \"q\"");
  EXPECT_EQ(error("operation: \"permute\" devices: 2 bytes { least: 9 most: 8 }"), "expected a range from 0 or more upwards, got 9 to 8");
}

}  // namespace
}  // namespace podsim
