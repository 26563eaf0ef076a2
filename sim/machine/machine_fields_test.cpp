#include "sim/machine/machine_fields.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podsim {
namespace {

const SourceLocation here{"m.textproto", 3, 9};

const MachineField& field_named(std::string_view path) {
  for (const MachineField& field : machine_fields())
    if (path_of(field, "") == path) return field;
  throw std::runtime_error("no field " + std::string(path));
}

std::string set(Machine& machine, std::string_view path, std::string_view value) {
  const Status outcome = set_machine_value(machine, path, value, "test", here);
  return outcome ? "" : outcome.error().message;
}

std::string error_of(std::string_view path, std::string_view value) {
  Machine machine;
  const std::string message = set(machine, path, value);
  EXPECT_EQ(machine, Machine{}) << "a refused value must change nothing";
  return message;
}

/// Values worth a round trip: the ends of the range and something that no unit prints short.
std::vector<double> samples(const MachineField& field) {
  std::vector<double> values{field.low, field.high};
  if (field.unit == FieldUnit::integer) return {field.low, field.high, field.low + 1};
  if (field.unit == FieldUnit::sharing) return {field.low, field.high};
  if (field.unit == FieldUnit::quarters) return {field.low, field.high, 0.25, 1.5};
  if (field.unit == FieldUnit::bytes) return {1, 0x1p50, 32e9, 3 * 0x1p30, field.high};
  if (field.unit == FieldUnit::flops_per_second) return {1e6, 275e12, 1e14 / 3, field.high};
  if (field.unit == FieldUnit::bytes_per_second) return {1e3, 45e9, 1e11 / 3, 0x1p36, field.high};
  if (field.unit == FieldUnit::seconds) return {0, 1e-6, 1e-6 / 3, 5e-324, field.high};
  return {field.low, field.high, 1.0 / 3, 0.85};
}

TEST(MachineFields, EveryValueOfEveryEntryRoundTripsThroughItsText) {
  for (const MachineField& field : machine_fields()) {
    const std::vector<std::string> names = index_names(field.index);
    for (int entry = 0; entry < static_cast<int>(names.size()); ++entry) {
      for (const double value : samples(field)) {
        Machine written;
        field.set(written, entry, value);
        ASSERT_EQ(field.get(written, entry), value);
        const std::string path = path_of(field, names[static_cast<std::size_t>(entry)]);
        const std::string text = value_text(field, written, entry);
        Machine read;
        ASSERT_EQ(set(read, path, text), "") << path << " = " << text;
        ASSERT_EQ(read.sources, (std::map<std::string, std::string>{{path, "test"}}));
        read.sources.clear();
        ASSERT_EQ(read, written) << path << " = " << text;
      }
    }
  }
}

TEST(MachineFields, EntriesDoNotShareStorage) {
  Machine machine;
  double value = 0;
  const auto distinct = [&](const MachineField& field) {
    value += 1;  // whole, inside every range once it is scaled
    if (field.unit == FieldUnit::number || field.unit == FieldUnit::efficiency) return value / 256;
    if (field.unit == FieldUnit::sharing) return 0.0;
    if (field.unit == FieldUnit::quarters) return 3.25;
    if (field.unit == FieldUnit::integer) return field.high < 10 ? 3.0 : value;
    return std::max(field.low, 1.0) * value;
  };
  std::vector<std::tuple<const MachineField*, int, double>> expected;
  for (const MachineField& field : machine_fields())
    for (int entry = 0; entry < static_cast<int>(index_names(field.index).size()); ++entry) {
      expected.emplace_back(&field, entry, distinct(field));
      field.set(machine, entry, std::get<2>(expected.back()));
    }
  for (const auto& [field, entry, set_to] : expected) EXPECT_EQ(field->get(machine, entry), set_to) << path_of(*field, "") << " entry " << entry;
}

TEST(MachineFields, PathsAreUniqueAndDescribed) {
  std::set<std::string> paths;
  for (const MachineField& field : machine_fields()) {
    EXPECT_TRUE(paths.insert(path_of(field, "")).second) << path_of(field, "");
    EXPECT_FALSE(field.meaning.empty()) << path_of(field, "");
  }
  EXPECT_EQ(paths.size(), 41U);
}

TEST(MachineFields, AnIndexLeftOutSetsEveryEntryAndNotesEverySource) {
  Machine machine;
  ASSERT_EQ(set(machine, "link.bandwidth", "45GB/s"), "");
  for (const LinkParameters& link : machine.link) EXPECT_EQ(link.bandwidth, BytesPerSecond{45e9});
  EXPECT_THAT(machine.sources, ::testing::ElementsAre(testing::Pair("link[w].bandwidth", "test"), testing::Pair("link[x].bandwidth", "test"),
                                                    testing::Pair("link[y].bandwidth", "test"), testing::Pair("link[z].bandwidth", "test")));
  ASSERT_EQ(set(machine, "software.launch", "5us"), "");
  for (const Seconds launch : machine.software.launch) EXPECT_EQ(launch, Seconds{5e-6});
  ASSERT_EQ(set(machine, "chip.peak", "100 TFLOP/s"), "");
  for (const FlopsPerSecond peak : machine.chip.peak) EXPECT_EQ(peak, FlopsPerSecond{100e12});
}

TEST(MachineFields, AnIndexSetsOneEntry) {
  Machine machine;
  ASSERT_EQ(set(machine, "link[y].latency", "1 us"), "");
  ASSERT_EQ(set(machine, "chip.peak[bf16]", "275TFLOP/s"), "");
  ASSERT_EQ(set(machine, "software.launch[all-gather]", "13us"), "");
  Machine expected;
  expected.link[1].latency = Seconds{1e-6};
  expected.chip.peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{275e12};
  expected.software.launch[static_cast<std::size_t>(CostKind::all_gather)] = Seconds{13e-6};
  machine.sources.clear();
  EXPECT_EQ(machine, expected);
}

TEST(MachineFields, OnlyTheFloat32PeakCanBeDerived) {
  Machine machine;
  ASSERT_EQ(set(machine, "chip.peak", "100 TFLOP/s"), "");
  ASSERT_EQ(set(machine, "chip.peak[f32]", "derived"), "");
  EXPECT_EQ(machine.chip.peak[static_cast<std::size_t>(DType::f32)], FlopsPerSecond{});
  EXPECT_EQ(value_text(field_named("chip.peak"), machine, static_cast<int>(DType::f32)), "derived");
  ASSERT_EQ(set(machine, "chip.peak[s8]", "derived"), "");
  EXPECT_EQ(machine.chip.peak[static_cast<std::size_t>(DType::s8)], FlopsPerSecond{});
  EXPECT_NE(error_of("chip.peak[bf16]", "derived"), "");
  EXPECT_NE(error_of("chip.peak", "derived"), "");
  EXPECT_NE(error_of("chip.hbm_bandwidth", "derived"), "");
}

TEST(MachineFields, UnlimitedIsInfiniteForRatesAndTheLargestCountForMemory) {
  Machine machine;
  machine.chip.injection_bandwidth = BytesPerSecond{1e9};
  ASSERT_EQ(set(machine, "chip.injection_bandwidth", "unlimited"), "");
  EXPECT_TRUE(is_unlimited(machine.chip.injection_bandwidth));
  ASSERT_EQ(set(machine, "chip.hbm", "unlimited"), "");
  EXPECT_EQ(machine.chip.hbm, Bytes{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(value_text(field_named("chip.hbm"), machine, 0), "unlimited");
}

TEST(MachineFields, ACollectivesEfficiencyIsAConstantOrACurve) {
  const std::size_t all_gather = static_cast<std::size_t>(CostKind::all_gather);
  const MachineField& field = field_named("collective.efficiency");
  Machine machine;
  ASSERT_EQ(set(machine, "collective[all-gather].efficiency", "0.5"), "");
  EXPECT_EQ(machine.software.efficiency[all_gather], (std::vector<EfficiencyPoint>{{Bytes{1}, 0.5}}));
  ASSERT_EQ(set(machine, "collective[all-gather].efficiency", "0.25 at 1 KiB, 0.85 at 64MiB"), "");
  EXPECT_EQ(machine.software.efficiency[all_gather], (std::vector<EfficiencyPoint>{{Bytes{1024}, 0.25}, {Bytes{64 << 20}, 0.85}}));
  EXPECT_EQ(value_text(field, machine, 0), "0.25 at 1 KiB, 0.85 at 64 MiB");
  EXPECT_EQ(value_text(field, machine, 1), "1");
  // A single point is kept apart from a constant only by its bytes; both come back as they were.
  for (const std::vector<EfficiencyPoint>& points : {std::vector<EfficiencyPoint>{{Bytes{1}, 1}}, {{Bytes{1}, 0.5}}, {{Bytes{4096}, 0.5}}}) {
    machine.software.efficiency[all_gather] = points;
    Machine read;
    ASSERT_EQ(set(read, "collective[all-gather].efficiency", value_text(field, machine, 0)), "");
    EXPECT_EQ(read.software.efficiency[all_gather], points);
  }
  ASSERT_EQ(set(machine, "collective.efficiency", "1"), "");
  for (const auto& points : machine.software.efficiency) EXPECT_TRUE(points.empty());
}

TEST(MachineFields, MessagesNameThePathAndWhatWasExpected) {
  struct Case {
    std::string_view path, value;
    std::string message;
  };
  const std::string bandwidths = "(B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s)";
  const std::string without_unit = "link.bandwidth: a bandwidth needs a unit " + bandwidths + ", got \"45\"";
  const std::string not_a_number =
      "link[x].bandwidth: a bandwidth needs a finite number and a unit " + bandwidths + ", got \"fast\"; \"unlimited\" is allowed";
  const Case cases[] = {
      {"chip.hbm_bandwith", "1GB/s",
       R"(unknown machine field "chip.hbm_bandwith", did you mean "chip.hbm_bandwidth", "chip.inner_bandwidth" or "chip.stack_bandwidth"?)"},
      {"link[x].latencie", "1us",
       R"(unknown machine field "link[x].latencie", did you mean "link[x].latency", "link[x].bandwidth" or "dcn.latency"?)"},
      {"link.latency[x]", "1us", R"(unknown machine field "link.latency[x]", did you mean "link[x].latency" or "dcn.latency"?)"},
      {"", "1us", R"(unknown machine field ""; fields begin with chip., link., software., collective. or dcn.)"},
      {"q.q", "1us", R"(unknown machine field "q.q"; fields begin with chip., link., software., collective. or dcn.)"},
      {"link[x].bandwidth[x]", "1GB/s", R"(unknown machine field "link[x].bandwidth[x]", did you mean "link.bandwidth" or "dcn.nic_bandwidth"?)"},
      {"link[v].latency", "1us", R"(unknown entry "v" of link.latency, expected one of x, y, z, w)"},
      {"link[].latency", "1us", R"(unknown entry "" of link.latency, expected one of x, y, z, w)"},
      {"chip.peak[fp8]", "1TFLOP/s", R"(unknown entry "fp8" of chip.peak, expected one of f32, bf16, f8e4m3fn, f8e5m2, s8, tf32)"},
      {"collective[matmul].efficiency", "1",
       R"(unknown entry "matmul" of collective.efficiency, expected one of all-gather, reduce-scatter, all-reduce, all-to-all, broadcast, reduce, permute)"},
      {"chip.hbm[x]", "1GB", R"(chip.hbm has no entries, got "chip.hbm[x]")"},
      {"link.bandwidth", "45", without_unit},
      {"link[x].bandwidth", "fast", not_a_number},
      {"link.bandwidth", "1 B/s", R"(link.bandwidth must be at least 1 kB/s, got "1 B/s")"},
      {"link[x].latency", "2h", R"(link[x].latency: a time needs a known unit (ps, ns, us, ms, s), got "2h")"},
      {"link[x].latency", "4000 s", R"(link[x].latency must be in [0 s, 3600 s], got "4000 s")"},
      {"chip.overlap_hbm", "1.5", R"(chip.overlap_hbm must be in [0, 1], got "1.5")"},
      {"chip.overlap_hbm", "-0.5", R"(chip.overlap_hbm must be in [0, 1], got "-0.5")"},
      {"chip.overlap_hbm", "nan", R"(chip.overlap_hbm: expected a finite number, got "nan")"},
      {"chip.matmul_tile_m", "0", R"(chip.matmul_tile_m: expected a whole number from 1 to 65536, got "0")"},
      {"chip.float32_passes", "7", R"(chip.float32_passes: expected a whole number from 1 to 6, got "7")"},
      {"chip.devices", "3", R"(chip.devices: expected a whole number from 1 to 2, got "3")"},
      {"dcn.nic_bandwidth", "25", "dcn.nic_bandwidth: a bandwidth needs a unit " + bandwidths + ", got \"25\""},
      {"dcn.sync", "-1 us", R"(dcn.sync: a time must not be negative, got "-1 us")"},
      {"chip.hbm", "2 PiB", R"(chip.hbm must be at most 1 PiB or "unlimited", got "2 PiB")"},
      {"chip.hbm", "0 B", R"(chip.hbm must be at least 1 B, got "0 B")"},
      {"software.core_share[matmul]", "2", R"(software.core_share[matmul] must be in [0, 1], got "2")"},
      {"collective.efficiency", "0", R"(collective.efficiency must be in [0.001, 1], got "0")"},
      {"collective.efficiency", "0.5, 0.6", R"(collective.efficiency: expected points like "0.85 at 1 MiB", got "0.5")"},
      {"collective.efficiency", "0.5 at 2 B, 0.6 at 1 B",
       R"(collective.efficiency: points need increasing, positive amounts of data, got "0.5 at 2 B, 0.6 at 1 B")"},
      {"collective.efficiency", "", R"(collective.efficiency: expected a finite number, got "")"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.path, c.value), c.message);
}

TEST(MachineFields, ErrorsStandWhereTheValueStands) {
  Machine machine;
  const Status outcome = set_machine_value(machine, "chip.overlap_hbm", "2", "test", here);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(to_text(outcome.error()), "m.textproto:3:9: chip.overlap_hbm must be in [0, 1], got \"2\"");
}

TEST(MachineFields, TheMatmulEfficiencyMayBeATableOverExtents) {
  Machine machine;
  ASSERT_EQ(set(machine, "chip.matmul_efficiency", "0.25 at 128x256x512, 0.5 at 4096x4096x4096"), "");
  EXPECT_EQ(machine.chip.matmul_table.points, (std::vector<MatmulPoint>{{128, 256, 512, 0.25}, {4096, 4096, 4096, 0.5}}));
  const std::string text = value_text(field_named("chip.matmul_efficiency"), machine, 0);
  EXPECT_EQ(text, "0.25 at 128x256x512, 0.5 at 4096x4096x4096");
  Machine again;
  ASSERT_EQ(set(again, "chip.matmul_efficiency", text), "");
  EXPECT_EQ(again, machine);
  const std::string path = "chip.matmul_efficiency";
  EXPECT_EQ(error_of(path, "0.5 at 4096"), path + ": expected extents m, n, k like \"1024x4096x4096\", got \"4096\"");
  EXPECT_EQ(error_of(path, "0.5 at 1x2x3, 0.25"), path + ": expected points like \"0.85 at 1024x4096x4096\", got \"0.25\"");
  EXPECT_EQ(error_of(path, "0.5 at 1x2x3, 0.25 at 1x2x3"), path + ": extents are given twice, 1x2x3");
  EXPECT_EQ(error_of(path, "1.5 at 1x2x3"), path + " must be in [0.001, 1], got \"1.5\"");
  EXPECT_EQ(error_of(path, "0.5 at 0x2x3"), path + ": expected extents m, n, k like \"1024x4096x4096\", got \"0x2x3\"");
}

}  // namespace
}  // namespace podsim
