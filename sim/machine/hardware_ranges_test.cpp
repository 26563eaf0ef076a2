// Values that are admissible, and that no hardware has.
#include "sim/machine/hardware_ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "sim/machine/machine_fields.hpp"

namespace podsim {
namespace {

TEST(HardwareRanges, HaveOneRowForEachQuantityWithAUnit) {
  std::vector<std::string> fields, named;
  for (const MachineField& field : machine_fields())
    if (field.unit == FieldUnit::seconds || field.unit == FieldUnit::bytes || field.unit == FieldUnit::bytes_per_second || field.unit == FieldUnit::flops_per_second)
      fields.push_back(path_of(field, ""));
  for (const HardwareRange& range : hardware_ranges()) {
    named.emplace_back(range.quantity);
    EXPECT_LT(range.low, range.high) << range.quantity;
    EXPECT_FALSE(range.evidence.empty()) << range.quantity;
  }
  for (const std::string& field : fields) EXPECT_EQ(std::count(named.begin(), named.end(), field), 1) << field;
}

TEST(HardwareRanges, DoubtWhatLiesBeyondTheirEnds) {
  for (const HardwareRange& range : hardware_ranges()) {
    for (const double inside : {range.low, range.high}) EXPECT_EQ(doubt_about(range.quantity, inside, "it"), std::nullopt) << range.quantity;
    for (const double outside : {range.low / 2, range.high * 2}) EXPECT_TRUE(doubt_about(range.quantity, outside, "it")) << range.quantity;
    for (const double not_modelled : {0.0, std::numeric_limits<double>::infinity()}) EXPECT_EQ(doubt_about(range.quantity, not_modelled, "it"), std::nullopt) << range.quantity;
  }
  EXPECT_EQ(doubt_about("link.latency", 1e-12, "link[x].latency"), "link[x].latency is 1 ps, hardware has 10 ns to 10 ms: from wires on a board to a network across a country");
  EXPECT_EQ(doubt_about("chip.overlap_hbm", 1e9, "it"), std::nullopt) << "no row";
}

TEST(HardwareRanges, AMachineKeepsWhatItDoubtsUntilTheValueIsAnother) {
  Machine machine;
  const SourceLocation first{"m.textproto", 3, 9}, second{"m.textproto", 7, 2};
  ASSERT_TRUE(set_machine_value(machine, "link.bandwidth", "1000 PB/s", "test", first));
  ASSERT_EQ(doubts_about(machine).size(), 1U) << "of all four dimensions one";
  EXPECT_EQ(doubts_about(machine).front().where, first);
  EXPECT_THAT(doubts_about(machine).front().message, ::testing::StartsWith("link.bandwidth is 1000 PB/s, hardware has 10 MB/s to 10 TB/s: "));
  ASSERT_TRUE(set_machine_value(machine, "link[y].bandwidth", "20 TB/s", "test", second));
  EXPECT_EQ(doubts_about(machine).size(), 2U);
  ASSERT_TRUE(set_machine_value(machine, "link.bandwidth", "45 GB/s", "test", second));
  EXPECT_TRUE(doubts_about(machine).empty());
}

}  // namespace
}  // namespace podsim
