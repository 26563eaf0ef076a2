// `show machine`: what people read, and the machine file that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/scenario_options.hpp"
#include "tools/command/test_command.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using test::podsim;

TEST(ShowMachine, WritesAFileFromWhichEveryShippedMachineReadsBackEqual) {
  const test::Folder folder;
  for (const std::string& name : shipped_machines()) {
    const std::string file = folder.file(name + ".textproto");
    const auto written = podsim("show machine --machine " + name + " -o " + file);
    ASSERT_EQ(written.status, exit_done) << written.err;
    EXPECT_EQ(written.out, "");
    const auto machine = find_machine(file), shipped = find_machine(name);
    ASSERT_TRUE(machine) << to_text(machine.error());
    EXPECT_TRUE(*machine == *shipped) << name << ": values and sources";
  }
}

TEST(ShowMachine, WritesWhatWasSetAndSaysSo) {
  const test::Folder folder;
  const std::string file = folder.file("mine.textproto"), again = folder.file("again.textproto");
  ASSERT_EQ(podsim("show machine --machine tpu_v5p --set link[y].bandwidth=123456789012B/s --set software.launch=2us -o " + file).status, exit_done);
  const auto machine = find_machine(file);
  ASSERT_TRUE(machine) << to_text(machine.error());
  EXPECT_TRUE(*machine == *load_machine("tpu_v5p", {{"link[y].bandwidth", "123456789012B/s"}, {"software.launch", "2us"}})) << "not a digit lost";
  EXPECT_EQ(machine->sources.at("link[y].bandwidth"), "--set");
  EXPECT_EQ(machine->sources.at("link[x].bandwidth"), find_machine("tpu_v5p")->sources.at("link[x].bandwidth"));
  EXPECT_EQ(machine->trust.level, TrustLevel::hypothetical);
  ASSERT_EQ(podsim("show machine --machine " + file + " -o " + again).status, exit_done);
  EXPECT_EQ(test::bytes_of_file(again), test::bytes_of_file(file));
}

TEST(ShowMachine, AFileTakesAMachine) {
  const auto outcome = podsim("show machine -o x.textproto");
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_EQ(outcome.err, "podsim: error: --output: a machine file is written of --machine, which is missing\n");
}

TEST(ShowMachine, TheTableRoundsWhatIsLongAndJsonDoesNot) {
  const std::vector<std::string> words{"show",
                                       "machine",
                                       "--machine",
                                       "tpu_v5p",
                                       "--set",
                                       "link[y].bandwidth=1307607350504.8179 B/s",
                                       "--set",
                                       "collective[all-gather].efficiency=0.123456 at 1 KiB, 0.2 at 2 KiB, 0.3 at 4 KiB, 0.4 at 1 GiB"};
  const std::string shown = test::run_words(words).out;
  EXPECT_THAT(shown, AllOf(HasSubstr("1.308 TB/s"), HasSubstr("0.1235 at 1 KiB to 0.4 at 1 GiB (4 points)"), Not(HasSubstr("1307607"))));
  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"--format", "json"});
  EXPECT_THAT(test::run_words(as_json).out, AllOf(HasSubstr("\"1.3076073505048179 TB/s\""), HasSubstr("0.123456 at 1 KiB, 0.2 at 2 KiB, ")));
}

}  // namespace
}  // namespace podsim
