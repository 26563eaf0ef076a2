#include "topologies/machines.hpp"

#include <cstdio>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/machine_config.hpp"
#include "topologies/slice.hpp"

namespace podsim {
namespace {

TEST(FindMachine, FindsEveryShippedMachineByItsName) {
  EXPECT_THAT(shipped_machines(),
              ::testing::ElementsAre("dgx_a100", "dgx_b200", "dgx_h100", "dgx_h200", "gb200_nvl72", "ideal", "tpu7x", "tpu_v3", "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e"));
  for (const std::string& name : shipped_machines()) {
    const auto machine = find_machine(name);
    ASSERT_TRUE(machine) << to_text(machine.error());
    EXPECT_EQ(machine->name, name);
  }
}

TEST(FindMachine, ReadsAFileByItsPath) {
  Machine expected = *find_machine("ideal");
  expected.name = "mine";
  const std::string path = ::testing::TempDir() + "mine.textproto";
  std::ofstream(path) << write_machine(expected);
  const auto machine = find_machine(path);
  std::remove(path.c_str());
  ASSERT_TRUE(machine) << to_text(machine.error());
  EXPECT_EQ(*machine, expected);
}

TEST(FindMachine, NamesWhatItCannotFind) {
  for (const auto& [word, name] : {std::pair{"v5p", "tpu_v5p"}, {"TPU-v5e", "tpu_v5e"}, {"tpu_7x", "tpu7x"}, {"H100", "dgx_h100"}, {"gb200", "gb200_nvl72"}, {"dgx-a100", "dgx_a100"}})
    EXPECT_EQ(find_machine(word)->name, name) << word;
  EXPECT_THAT(to_text(find_machine("tpu_v4x").error()), ::testing::StartsWith("unknown machine \"tpu_v4x\", did you mean \"tpu_v4\""));
  EXPECT_THAT(to_text(find_machine("qqqqqqqqqqqq").error()), ::testing::StartsWith("unknown machine \"qqqqqqqqqqqq\", expected one of "));
  EXPECT_EQ(to_text(find_machine("no/such/file").error()), "no/such/file: cannot read the file: No such file or directory");
  EXPECT_EQ(to_text(find_machine("mine.textproto").error()), "mine.textproto: cannot read the file: No such file or directory");
  EXPECT_EQ(to_text(find_machine("./").error()), "./: expected a file, found a directory");
}

TEST(FindMachine, TellsWhereAFileIsWrong) {
  const std::string path = ::testing::TempDir() + "wrong.textproto";
  std::ofstream(path) << "format_version: 1\nnam: \"x\"\n";
  const auto machine = find_machine(path);
  std::remove(path.c_str());
  ASSERT_FALSE(machine);
  EXPECT_EQ(to_text(machine.error()), path + ":2:1: unknown field \"nam\", did you mean \"name\"?");
}

// ---- The shipped machines -------------------------------------------------------------------------------------------------------------

// Per chip, as the data sheets have it: bf16 FLOP/s, HBM bytes, HBM B/s; and per link and direction, B/s. The TPUs of tpu_specs_scaling_book.csv,
// the others of their vendors' pages; NVLink (y) as NCCL has it. HBM of TPUs from v4 on: what libtpu has there.
struct Specification {
  const char* name;
  int devices;
  double flops, hbm, hbm_bandwidth, link_x, link_y;
};
const Specification specifications[] = {
    {"tpu_v3", 2, 140e12, 32e9, 900e9, 100e9, 100e9},        {"tpu_v4", 1, 275e12, 30.75 * 0x1p30, 1.2e12, 45e9, 45e9},
    {"tpu_v5p", 1, 459e12, 102.8e9, 2.8e12, 90e9, 90e9},        {"tpu_v5e", 1, 197e12, 15.75 * 0x1p30, 810e9, 45e9, 45e9},
    {"tpu_v6e", 1, 920e12, 31.25 * 0x1p30, 1.6e12, 90e9, 90e9},        {"tpu7x", 2, 2307e12, 189.5 * 0x1p30, 7.38e12, 100e9, 100e9},
    {"dgx_a100", 1, 312e12, 80e9, 2.039e12, 25e9, 240e9},    {"dgx_h100", 1, 989.4e12, 80e9, 3.35e12, 50e9, 370.8e9},
    {"dgx_h200", 1, 989.4e12, 141e9, 4.8e12, 50e9, 370.8e9}, {"dgx_b200", 1, 2.25e15, 180e9, 8e12, 50e9, 721.8e9},
    {"gb200_nvl72", 1, 2.5e15, 186e9, 8e12, 50e9, 721.8e9},
};

TEST(ShippedMachines, HaveTheRatesOfTheirDataSheetsSharedByTheDevicesOfAChip) {
  for (const Specification& s : specifications) {
    const Machine m = *find_machine(std::string{s.name} + ":spec");
    EXPECT_EQ(m.chip.devices, s.devices) << s.name;
    EXPECT_DOUBLE_EQ(m.chip.devices * peak_of(m, DType::bf16).count(), s.flops) << s.name;
    EXPECT_DOUBLE_EQ(m.chip.devices * static_cast<double>(m.chip.hbm.count()), s.hbm) << s.name;
    EXPECT_DOUBLE_EQ(m.chip.devices * m.chip.hbm_bandwidth.count(), s.hbm_bandwidth) << s.name;
    EXPECT_EQ(m.link[0].bandwidth, BytesPerSecond{s.link_x}) << s.name;
    EXPECT_EQ(m.link[1].bandwidth, BytesPerSecond{s.link_y}) << s.name;
    EXPECT_EQ(is_unlimited(m.chip.inner.bandwidth), s.devices == 1) << s.name;
    EXPECT_FALSE(is_unlimited(m.dcn.nic_bandwidth) || is_unlimited(m.dcn.host_bandwidth)) << s.name;
    EXPECT_GT(m.dcn.latency, Seconds{}) << s.name;
    EXPECT_EQ(m.interconnect == Interconnect::rail, m.name.starts_with("dgx") || m.name.starts_with("gb200")) << s.name;
    EXPECT_EQ(m.slices.host.size(), m.slices.largest.size()) << s.name;
  }
}

TEST(ShippedMachines, HaveMeasuredValuesThatSpecReplaces) {
  for (const char* name : {"dgx_h100", "dgx_h200"}) {
    const Machine shipped = *find_machine(name), spec = *find_machine(std::string{name} + ":spec");
    EXPECT_EQ(spec.name, std::string{name} + ":spec");
    EXPECT_LT(shipped.chip.attention_efficiency, 1) << name;
    EXPECT_LT(shipped.chip.hbm_bandwidth, spec.chip.hbm_bandwidth) << name;
    EXPECT_FALSE(shipped.chip.matmul_surface.empty()) << name;
    EXPECT_EQ(spec.chip.attention_efficiency, 1) << name;
    EXPECT_EQ(spec.chip.matmul_efficiency, 1) << name;
    EXPECT_TRUE(spec.chip.matmul_surface.empty()) << name;
    EXPECT_EQ(find_machine("h100:spec")->name, "dgx_h100:spec");
  }
  const Machine v4 = *find_machine("tpu_v4"), v4_spec = *find_machine("tpu_v4:spec");
  EXPECT_EQ(v4.chip.hbm_bandwidth, v4_spec.chip.hbm_bandwidth) << "it has the data sheet's";
}

// Per chip, dense: int8, fp8, and float32 as jax.lax.Precision.DEFAULT and HIGHEST compute it. What a chip has no units for is at bf16's rate.
TEST(ShippedMachines, HaveTheRatesOfElementTypesOfTheirDataSheets) {
  struct Rates {
    const char* name;
    double s8, f8, one_pass, six_passes;
  };
  const Rates rates[] = {
      {"tpu_v3", 140e12, 140e12, 140e12, 140e12 / 6},         {"tpu_v4", 275e12, 275e12, 275e12, 275e12 / 6},
      {"tpu_v5e", 394e12, 197e12, 197e12, 197e12 / 6},        {"tpu_v5p", 918e12, 459e12, 459e12, 459e12 / 6},
      {"tpu_v6e", 1836e12, 920e12, 920e12, 920e12 / 6},       {"tpu7x", 2307e12, 4614e12, 2307e12, 2307e12 / 6},
      {"dgx_a100", 624e12, 312e12, 156e12, 19.5e12},          {"dgx_h100", 1978.9e12, 1978.9e12, 494.7e12, 66.9e12},
      {"dgx_h200", 1978.9e12, 1978.9e12, 494.7e12, 66.9e12},  {"dgx_b200", 4.5e15, 4.5e15, 1.125e15, 75e12},
      {"gb200_nvl72", 5e15, 5e15, 1.25e15, 80e12},
  };
  for (const Rates& r : rates) {
    const Machine m = *find_machine(r.name);
    const auto rate = [&](DType dtype, int passes = 0) { return m.chip.devices * peak_of(m, dtype, passes).count(); };
    EXPECT_DOUBLE_EQ(rate(DType::s8), r.s8) << r.name;
    EXPECT_DOUBLE_EQ(rate(DType::f8e4m3fn), r.f8) << r.name;
    EXPECT_DOUBLE_EQ(rate(DType::f8e5m2), r.f8) << r.name;
    EXPECT_DOUBLE_EQ(rate(DType::f32), r.one_pass) << r.name;
    EXPECT_DOUBLE_EQ(rate(DType::f32, 6), r.six_passes) << r.name;
  }
}

TEST(ShippedMachines, AreWithinTheRangeOfHardware) {
  for (const std::string& name : shipped_machines()) EXPECT_THAT(doubts_about(*find_machine(name)), ::testing::IsEmpty()) << name;
}

TEST(ShippedMachines, TellWhereSourcesDisagreeOnTheLinks) {
  EXPECT_THAT(find_machine("tpu_v5p")->sources.at("link[x].bandwidth"), ::testing::HasSubstr("implies 100 GB/s"));
  EXPECT_THAT(find_machine("tpu_v5e")->sources.at("link[x].bandwidth"), ::testing::HasSubstr("implies 50 GB/s"));
  EXPECT_THAT(find_machine("tpu_v6e")->sources.at("link[x].bandwidth"), ::testing::HasSubstr("implies 100 GB/s"));
}

std::string named(const Machine& m, const std::string& name) {
  const auto slice = parse_slice(name, m, {});
  return slice ? to_text(*slice) : to_text(slice.error());
}

// Google Cloud's pages on v4, v5p, v5e and v6e, and AI-Hypercomputer/maxtext, MaxText/accelerator_to_spec_map.py @035dd3d.
TEST(ShippedMachines, GiveSliceNamesTheirDocumentedTopologies) {
  const std::map<std::string, std::map<std::string, std::string>> topologies{
      {"tpu_v3", {{"v3-8", "2x2"}, {"v3-32", "4x4"}, {"v3-64", "4x8"}, {"v3-128", "8x8"}, {"v3-256", "8x16"}, {"v3-512", "16x16"},
                  {"v3-1024", "16x32"},
                  {"v3-2048", "32x32"}}},
      {"tpu_v4", {{"v4-8", "2x2x1"}, {"v4-16", "2x2x2"}, {"v4-32", "2x2x4"}, {"v4-64", "2x4x4"}, {"v4-128", "4x4x4"}, {"v4-256", "4x4x8"},
                  {"v4-384", "4x4x12"}, {"v4-512", "4x8x8"}, {"v4-1024", "8x8x8"}, {"v4-1536", "8x8x12"}, {"v4-2048", "8x8x16"},
                  {"v4-4096", "8x16x16"}, {"v4-8192", "16x16x16"}}},
      {"tpu_v5p", {{"v5p-8", "2x2x1"}, {"v5p-16", "2x2x2"}, {"v5p-32", "2x2x4"}, {"v5p-64", "2x4x4"}, {"v5p-128", "4x4x4"}, {"v5p-256", "4x4x8"},
                   {"v5p-384", "4x4x12"}, {"v5p-512", "4x8x8"}, {"v5p-640", "4x4x20"}, {"v5p-768", "4x8x12"}, {"v5p-896", "4x4x28"},
                   {"v5p-1024", "8x8x8"}, {"v5p-1152", "4x12x12"}, {"v5p-1280", "4x8x20"}, {"v5p-1536", "8x8x12"}, {"v5p-2048", "8x8x16"},
                   {"v5p-2304", "8x12x12"}, {"v5p-3072", "8x12x16"}, {"v5p-3200", "4x20x20"}, {"v5p-3456", "12x12x12"}, {"v5p-3840", "8x12x20"},
                   {"v5p-4096", "8x16x16"}, {"v5p-4608", "12x12x16"}, {"v5p-5120", "8x16x20"}, {"v5p-6144", "12x16x16"}, {"v5p-6912", "12x12x24"},
                   {"v5p-7680", "12x16x20"}, {"v5p-8192", "16x16x16"}, {"v5p-8960", "8x20x28"}, {"v5p-9216", "12x16x24"}, {"v5p-12288", "16x16x24"},
                   {"v5p-17920", "16x20x28"}}},
      {"tpu_v5e", {{"v5e-1", "1x1"}, {"v5e-4", "2x2"}, {"v5e-8", "2x4"}, {"v5e-16", "4x4"}, {"v5e-32", "4x8"}, {"v5e-64", "8x8"}, {"v5e-128", "8x16"},
                   {"v5e-256", "16x16"}}},
      {"tpu_v6e", {{"v6e-1", "1x1"}, {"v6e-4", "2x2"}, {"v6e-8", "2x4"}, {"v6e-16", "4x4"}, {"v6e-32", "4x8"}, {"v6e-64", "8x8"}, {"v6e-128", "8x16"},
                   {"v6e-256", "16x16"}}},
      {"tpu7x", {{"tpu7x-8", "2x2x1"}, {"tpu7x-32", "2x2x4"}, {"tpu7x-64", "2x4x4"}, {"tpu7x-128", "4x4x4"}, {"tpu7x-18432", "16x24x24"}}}};
  for (const auto& [machine, names] : topologies) {
    const Machine m = *find_machine(machine);
    for (const auto& [name, shape] : names) EXPECT_EQ(named(m, name), shape) << name;
  }
}

TEST(ShippedMachines, RefuseNamesThatNobodyOffers) {
  EXPECT_EQ(named(*find_machine("tpu_v5p"), "v4-512"),
            "slices of tpu_v5p are called v5p-N, where N counts cores, 2 per chip, got \"v4-512\"");
  EXPECT_EQ(named(*find_machine("tpu_v4"), "v4-9"), "the N of v4-N counts cores, 2 per chip, got \"v4-9\"");
  EXPECT_EQ(named(*find_machine("tpu_v5e"), "v5e-12"),
            "tpu_v5e has no slice of 12 chips, got \"v5e-12\"; near are v5e-8 (2x4), v5e-16 (4x4), v5e-4 (2x2)");
  EXPECT_EQ(named(*find_machine("dgx_h100"), "h100-8"),
            "slices of dgx_h100 have no names, expected chips per dimension, such as 128x8, got \"h100-8\"");
}

TEST(ShippedMachines, WrapWhereTheirVendorBuildsIt) {
  const auto wraps = [](const char* machine, const char* slice) {
    const Machine m = *find_machine(machine);
    const Slice parsed = *parse_slice(slice, m, {});
    EXPECT_FALSE(parsed.hypothetical) << machine << ' ' << slice;
    std::string text;
    const std::vector<bool> built = *wraps_of(m, parsed, {});
    for (const bool wrap : built) text += wrap ? 'w' : '-';
    return text;
  };
  EXPECT_EQ(wraps("tpu_v4", "4x4x8"), "www");
  EXPECT_EQ(wraps("tpu_v4", "2x2x4"), "---");
  EXPECT_EQ(wraps("tpu_v4", "2x4x4"), "---");
  EXPECT_EQ(wraps("tpu_v5p", "4x4x12"), "www");
  EXPECT_EQ(wraps("tpu_v5p", "16x20x28"), "www");
  EXPECT_EQ(wraps("tpu_v5e", "8x16"), "-w");
  EXPECT_EQ(wraps("tpu_v5e", "16x16"), "ww");
  EXPECT_EQ(wraps("tpu_v5e", "4x8"), "--");
  EXPECT_EQ(wraps("tpu_v6e", "8x16"), "-w");
  EXPECT_EQ(wraps("tpu_v3", "16x16"), "--");
  EXPECT_EQ(wraps("tpu_v3", "16x32"), "-w");
  EXPECT_EQ(wraps("tpu_v3", "32x32"), "ww");
  EXPECT_EQ(wraps("tpu7x", "4x4x4"), "www");
  EXPECT_EQ(wraps("dgx_h100", "4x8"), "--");
}

TEST(ShippedMachines, OfferWhatIfsToBeRefused) {
  const Machine v4 = *find_machine("tpu_v4");
  EXPECT_EQ(to_text(check_offered(v4, *parse_slice("32x8", v4, {}), {"--strict-slice", 0, 0}).error()),
            "--strict-slice: tpu_v4 is not offered with a slice 32x8 (256 chips), expected one such as 4x8x8 (256 chips), 4x4x16 (256 chips) or "
            "4x4x12 (192 chips)");
}

}  // namespace
}  // namespace podsim
