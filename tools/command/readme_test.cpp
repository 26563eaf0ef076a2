// What READMEs and docs/ print is what the command prints. In every *.md a block (indented by four spaces) that begins with `podsim ` and has lines that are
// no commands shows output: its commands are run in order, in a folder of their own per file in which the repository's folders can be seen, and the
// lines behind each, if any, are held against its output. (Commands without output: tools/python/tests/test_readme.py.)
//
//   podsim VERB ... \      a command; `  # ...` behind it is a comment
//          OPTION ...
//                          a blank line between command and output does not count
//   some output
//   ...                    any number of lines that are left out
//   begin of a line ...    the rest of the line is left out
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

struct Example {
  int line = 0;  // in the file
  std::string command;
  Lines shown;
};

std::string without_trailing_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// Without blank lines at either end.
Lines trimmed(Lines lines) {
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  while (!lines.empty() && lines.front().empty()) lines.erase(lines.begin());
  return lines;
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(without_trailing_blanks(line));
  return lines;
}

/// The examples of one block, whose first line is line `first`.
std::vector<Example> examples_of(const Lines& block, int first) {
  std::vector<Example> examples;
  bool goes_on = false;  // the command
  for (std::size_t l = 0; l < block.size(); ++l) {
    std::string line = block[l];
    if (!goes_on && !line.starts_with("podsim ")) {
      examples.back().shown.push_back(line);
      continue;
    }
    if (!goes_on) examples.push_back({first + static_cast<int>(l), "", {}});
    line = without_trailing_blanks(line.substr(0, line.find("  # ")));
    goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    examples.back().command += line + " ";
  }
  for (Example& example : examples) example.shown = trimmed(example.shown);
  return examples;
}

/// Those of every block that shows output.
std::vector<Example> examples_in(const Lines& readme) {
  std::vector<Example> examples;
  Lines block;
  for (std::size_t l = 0; l <= readme.size(); ++l) {
    const bool indented = l < readme.size() && readme[l].starts_with("    ");
    if (indented || (l < readme.size() && readme[l].empty() && !block.empty())) {
      block.push_back(indented ? readme[l].substr(4) : "");
      continue;
    }
    const std::vector<Example> found =
        !block.empty() && block.front().starts_with("podsim ") ? examples_of(block, static_cast<int>(l - block.size()) + 1) : std::vector<Example>{};
    if (std::any_of(found.begin(), found.end(), [](const Example& example) { return !example.shown.empty(); }))
      examples.insert(examples.end(), found.begin(), found.end());
    block.clear();
  }
  return examples;
}

bool agrees(const std::string& shown, const std::string& printed) {
  if (!shown.ends_with(" ...")) return shown == printed;
  return printed.starts_with(shown.substr(0, shown.size() - 3));
}

/// The first shown line that is not there; the number of lines if all are.
std::size_t first_wrong(const Lines& shown, const Lines& printed) {
  std::size_t at = 0;     // in what was printed
  bool anywhere = false;  // behind `...`
  for (std::size_t l = 0; l < shown.size(); ++l) {
    if (shown[l] == "...") {
      anywhere = true;
      continue;
    }
    while (anywhere && at < printed.size() && !agrees(shown[l], printed[at])) ++at;
    if (at == printed.size() || !agrees(shown[l], printed[at])) return l;
    anywhere = false;
    ++at;
  }
  return anywhere || at == printed.size() ? shown.size() : shown.size() - 1;
}

/// A folder that looks like the root of the repository, but for what commands write into it.
class Root {
 public:
  Root() : before_{fs::current_path()} {
    for (const auto& entry : fs::directory_iterator(PODSIM_SOURCE_DIR))
      if (entry.is_directory()) fs::create_directory_symlink(entry.path(), folder_.file(entry.path().filename()));
    fs::current_path(folder_.file(""));
  }
  ~Root() { fs::current_path(before_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

 private:
  test::Folder folder_;
  fs::path before_;
};

std::vector<std::string> files_with_examples() {
  std::vector<std::string> found;
  const fs::path root{PODSIM_SOURCE_DIR};
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename();
    if (entry->is_directory() && (name.starts_with("build") || name.starts_with("."))) entry.disable_recursion_pending();
    if (name.ends_with(".md") && !examples_in(lines_of(test::bytes_of_file(entry->path()))).empty())
      found.push_back(fs::relative(entry->path(), root));
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Readme, WhatItShowsIsWhatTheCommandPrints) {
  const std::vector<std::string> files = files_with_examples();
  EXPECT_THAT(files, ::testing::IsSupersetOf({"README.md", "docs/tutorial.md", "docs/gemms.md"}));
  for (const std::string& file : files) {
    const Root root;
    for (const Example& example : examples_in(lines_of(test::bytes_of_file(std::string{PODSIM_SOURCE_DIR} + "/" + file)))) {
      const test::Outcome outcome = test::podsim(example.command.substr(std::string{"podsim "}.size()));
      EXPECT_EQ(outcome.status, exit_done) << file << ":" << example.line << ": " << example.command << "\n" << outcome.err;
      if (example.shown.empty()) continue;
      const std::size_t wrong = first_wrong(example.shown, trimmed(lines_of(outcome.out)));
      if (wrong < example.shown.size())
        ADD_FAILURE() << file << ":" << example.line << ": " << example.command << "\nshows\n  " << example.shown[wrong]
                      << "\nwhere or behind which there is something else in what is printed:\n"
                      << outcome.out;
    }
  }
}

// ---- The test itself --------------------------------------------------------------------------------------------------------------------

TEST(ReadmeExamples, AreTheBlocksThatShowOutput) {
  const auto examples = examples_in(lines_of("text\n\n    podsim a \\\n      --b  # why\n\n    one\n\n    two\n    podsim c\n\ntext\n\n    podsim no output\n"));
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[0].command, "podsim a    --b ");
  EXPECT_EQ(examples[0].line, 3);
  EXPECT_EQ(examples[0].shown, (Lines{"one", "", "two"}));
  EXPECT_EQ(examples[1].command, "podsim c ");
  EXPECT_TRUE(examples[1].shown.empty());
}

TEST(ReadmeExamples, AreHeldAgainstWhatIsPrintedLineByLine) {
  const Lines printed{"one", "two", "three", "four"};
  const auto right = [&](const Lines& shown) { return first_wrong(shown, printed) == shown.size(); };
  EXPECT_TRUE(right(printed));
  EXPECT_TRUE(right({"one", "...", "four"}));
  EXPECT_TRUE(right({"...", "three", "..."}));
  EXPECT_FALSE(right({"one", "two"})) << "the rest is not marked as left out";
  EXPECT_FALSE(right({"two", "..."}));
  EXPECT_FALSE(right({"one", "...", "two", "four"}));
  EXPECT_FALSE(right({"one", "...", "five"}));
  EXPECT_FALSE(right({"one", "two", "three", "four", "five"}));
  EXPECT_TRUE(agrees("three and ...", "three and four"));
  EXPECT_FALSE(agrees("three or ...", "three and four"));
}

}  // namespace
}  // namespace podsim
