#include "sim/config/network_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/topology/graph.hpp"

namespace podsim {
namespace {

const std::string triangle = R"(format_version: 1
name: "triangle"
source: "invented"
chip: "a"
chip: "b"
switch: "s"
cable { from: "a" to: "s" bandwidth: "45 GB/s" latency: "1 us" }
cable { from: "b" to: "s" bandwidth: "45 GB/s" latency: "1 us" }
cable { from: "a" to: "b" bandwidth: "10 GB/s" latency: "2 us" source: "measured" }
)";

TEST(NetworkConfig, ReadsChipsSwitchesAndCables) {
  const auto network = read_network(triangle, "t");
  ASSERT_TRUE(network) << to_text(network.error());
  EXPECT_EQ(network->chips(), 2);
  EXPECT_EQ(network->nodes(), 3);
  EXPECT_EQ(network->link_slots(), 6);
  std::vector<LinkId> route;
  ASSERT_TRUE(network->route(ChipId{0}, ChipId{1}, {}, route));
  ASSERT_EQ(route.size(), 1u);
  EXPECT_EQ(network->link(route[0]), (LinkParameters{BytesPerSecond{10e9}, Seconds{2e-6}}));
}

/// The file with one line replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = triangle;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(NetworkConfig, SaysWhereAndWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {with("to: \"s\" bandwidth: \"45 GB/s\"", "to: \"t\" bandwidth: \"45 GB/s\""), "n:7:19: there is no chip or switch named \"t\""},
      {with("bandwidth: \"45 GB/s\"", "bandwidth: \"45\""), "n:7:27: "},
      {with("to: \"s\" bandwidth: \"45 GB/s\"", "to: \"a\" bandwidth: \"45 GB/s\""), "n:7:19: a cable joins two different nodes"},
      {with("chip: \"b\"", "chip: \"a\""), "n:5:1: there are two nodes named \"a\""},
      {with("source: \"invented\"\n", ""), "n:6:1: a cable needs a source"},
      {with("chip: \"b\"", "chips: \"b\""), "n:5:1: "},
      {with("cable { from: \"a\" to: \"b\"", "cable { from: \"a\" to: \"s\"") + "chip: \"lonely\"\n", "n:1:1: chip lonely cannot be reached from a"},
  };
  for (const auto& [text, message] : cases) {
    const auto network = read_network(text, "n");
    ASSERT_FALSE(network) << message;
    EXPECT_THAT(to_text(network.error()), ::testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace podsim
