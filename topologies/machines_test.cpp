#include "topologies/machines.hpp"

#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/machine_config.hpp"

namespace podsim {
namespace {

TEST(FindMachine, FindsEveryShippedMachineByItsName) {
  EXPECT_THAT(shipped_machines(), testing::IsSupersetOf({"ideal", "tpu_v4"}));
  for (const std::string& name : shipped_machines()) {
    const auto machine = find_machine(name);
    ASSERT_TRUE(machine) << to_text(machine.error());
    EXPECT_EQ(machine->name, name);
  }
}

TEST(FindMachine, ReadsAFileByItsPath) {
  Machine expected = *find_machine("ideal");
  expected.name = "mine";
  const std::string path = testing::TempDir() + "mine.textproto";
  std::ofstream(path) << write_machine(expected);
  const auto machine = find_machine(path);
  std::remove(path.c_str());
  ASSERT_TRUE(machine) << to_text(machine.error());
  EXPECT_EQ(*machine, expected);
}

TEST(FindMachine, NamesWhatItCannotFind) {
  EXPECT_THAT(to_text(find_machine("tpu_v4x").error()), testing::StartsWith("unknown machine \"tpu_v4x\", did you mean \"tpu_v4\""));
  EXPECT_THAT(to_text(find_machine("qqqqqqqqqqqq").error()), testing::StartsWith("unknown machine \"qqqqqqqqqqqq\", expected one of "));
  EXPECT_EQ(to_text(find_machine("no/such/file").error()), "no/such/file: cannot be read, expected a machine file");
  EXPECT_EQ(to_text(find_machine("mine.textproto").error()), "mine.textproto: cannot be read, expected a machine file");
  EXPECT_EQ(to_text(find_machine("./").error()), "./: cannot be read, expected a machine file");
}

TEST(FindMachine, TellsWhereAFileIsWrong) {
  const std::string path = testing::TempDir() + "wrong.textproto";
  std::ofstream(path) << "format_version: 1\nnam: \"x\"\n";
  const auto machine = find_machine(path);
  std::remove(path.c_str());
  ASSERT_FALSE(machine);
  EXPECT_EQ(to_text(machine.error()), path + ":2:1: unknown field \"nam\", did you mean \"name\"?");
}

}  // namespace
}  // namespace podsim
