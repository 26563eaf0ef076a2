#include "tools/command/options.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tools/command/options.hpp"
#include "tools/command/test_command.hpp"
#include "tools/command/scenario_options.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using test::podsim;

/// A file with every name that it may be called by.
struct Names {
  explicit Names(const Folder& folder, const std::string& name, const std::string& bytes) : file{folder.file(name, bytes)} {
    std::filesystem::create_symlink(name, folder.file("link_" + name));
    std::filesystem::create_hard_link(file, folder.file("hard_" + name));
    all = {file, folder.file("./" + name), folder.file("link_" + name), folder.file("hard_" + name)};
  }
  std::string file;
  std::vector<std::string> all;
};

TEST(FileOptions, NoVerbWritesOverWhatItReads) {
  const Folder folder;
  const std::string gather = " --slice 4 --collective all-gather --axis row --bytes 1KiB ";
  // Each with what reads the file; what is in it does not matter, because nothing is read.
  for (const auto& [line, option] : std::vector<std::pair<std::string, std::string>>{
           {"run" + gather + "--machine F -o O", "--machine"},
           {"run --machine ideal --schedule F -o O", "--schedule"},
           {"run --machine ideal --plan F -o O", "--plan"},
           {"run --machine ideal --workload F -o O", "--workload"},
           {"run --machine ideal --slice 4 --topology F -o O", "--topology"},
           {"run --machine ideal --slice 4 --mesh-order F -o O", "--mesh-order"},
           {"run --machine ideal --slice 4 --collective permute --pairs F -o O", "--pairs"},
           {"check --schedule F -o O", "--schedule"},
           {"compare --machine ideal,F --slice 4 --gemm m=8,n=8,k=8 -o O", "--machine"},
           {"tune --machine F --chips 4 -o O", "--machine"},
           {"tune --machine ideal --chips 4 --baseline meshslice-reference:F -o O", "--baseline"},
           {"show schedule --schedule F -o O", "--schedule"},
           {"show machine --machine F -o O", "--machine"},
           {"show plan --plan F -o O", "--plan"},
           {"calibrate x.csv F --base ideal --slice 4 -o O", "--observations"},
           {"calibrate x.csv --base F --slice 4 -o O", "--base"},
           {"validate --observations F --machine ideal --slice 4 -o O", "--observations"},
           {"diff --measured F plan -o O", "--measured"},
           {"diff --measured x.json F -o O", "--plan"},
           {"sweep F -o O", "--file"},
           {"sweep --store F --export csv -o O", "--store"},
           {"sweep x.textproto --store F -o O", "--store"},
       }) {
    const Names names{folder, "f.json", "as it was"};
    for (const std::string& output : names.all) {
      std::string command = line;
      command.replace(command.rfind(" O") + 1, 1, output);
      for (const char before : {' ', ',', ':'})
        if (const std::size_t at = command.find(std::string{before} + "F"); at != std::string::npos) command.replace(at + 1, 1, names.file);
      const test::Outcome outcome = podsim(command);
      EXPECT_EQ(outcome.status, exit_bad_input) << command;
      EXPECT_EQ(outcome.err, "podsim: error: --output: expected a file of its own, found \"" + output + "\", the file of " + option + "\n");
      EXPECT_EQ(bytes_of_file(names.file), "as it was");
    }
    std::filesystem::remove_all(folder.file(""));
    std::filesystem::create_directory(folder.file(""));
  }
}

TEST(FileOptions, OtherOutputsAndFilesThatOptionsOnlyImplyAreLookedAtToo) {
  const Folder folder;
  const std::string file = folder.file("f.json", "as it was"), observations = folder.file("observations.csv", "as it was"),
                    store = folder.file("s.sqlite", "as it was"), schedule = folder.file("s.pb", "as it was");
  const std::string sweep = folder.file("s.textproto", "format_version: 1 sweep { machine: \"ideal\" schedule: \"" + schedule + "\" }");
  std::filesystem::create_symlink("none.json", folder.file("dangling.json"));
  const std::string none = folder.file("none.json"), dangling = folder.file("dangling.json"), at = folder.file("");
  for (const auto& [line, option, found, other] : std::vector<std::array<std::string, 4>>{
           {"run --machine ideal --schedule " + file + " --trace " + file, "--trace", file, "--schedule"},
           {"run --machine ideal --slice 4 -o " + file + " --trace " + file, "--output", file, "--trace"},
           {"run --machine ideal --slice 4 -o " + none + " --trace " + none, "--output", none, "--trace"},
           {"run --machine ideal --slice 4 -o " + dangling + " --trace " + at + "./none.json", "--output", dangling, "--trace"},
           {"calibrate " + file + " --base ideal --slice 4 --plot " + file, "--plot", file, "--observations"},
           {"validate " + at + " --plot " + observations, "--plot", observations, "--dataset"},
           {"sweep " + sweep + " -o " + store, "--output", store, "--store"},
           {"sweep " + sweep + " -o " + store + "-wal", "--output", store + "-wal", "--store"},
           {"sweep " + sweep + " --store " + none + " -o " + schedule, "--output", schedule, "--schedule"},
       }) {
    const test::Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    // Which of two outputs is blamed follows the order in which they are described.
    const std::string found_first = "podsim: error: " + option + ": expected a file of its own, found \"" + found + "\", the file of " + other + "\n";
    EXPECT_EQ(outcome.err, found_first) << line;
  }
  for (const std::string& path : {file, observations, store, schedule}) EXPECT_EQ(bytes_of_file(path), "as it was") << path;
  EXPECT_FALSE(std::filesystem::exists(none));
}

TEST(FileOptions, DevicesAndNamesOfShippedThingsAreNoFiles) {
  const Folder folder;
  const std::string run = "run --machine ideal --slice 4 --collective all-gather --axis row --bytes 1KiB ";
  EXPECT_EQ(podsim(run + "-o /dev/null --quiet").status, exit_done);
  EXPECT_EQ(podsim(run + "-o " + folder.file("ideal")).status, exit_done);
  EXPECT_EQ(podsim(run + "--trace " + folder.file("t.json") + " -o " + folder.file("r.json")).status, exit_done);
  EXPECT_EQ(podsim(run + "--trace " + folder.file("t.json") + " -o " + folder.file("r.json")).status, exit_done) << "again";
  EXPECT_TRUE(outputs_stand_alone({{"--output", "/dev/null", true}, {"--plot", "/dev/null", true}, {"--pairs", "/dev/null", false}}));
}

TEST(FileOptions, EveryOptionThatNamesAFileSaysSo) {
  for (const OptionSpec& spec : joined({field_options({FieldKind::Group::system, FieldKind::Group::what_if, FieldKind::Group::problem, FieldKind::Group::workload, FieldKind::Group::hlo}), output_options(table_json)})) {
    if (spec.value.name.find("FILE") == std::string::npos) continue;
    EXPECT_NE(spec.value.files, nullptr) << spec.name;
  }
}

}  // namespace
}  // namespace podsim
