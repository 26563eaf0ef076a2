// Command lines in tests: what they return, print and write.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/command/command.hpp"

namespace podsim::test {

struct Outcome {
  int status = 0;
  std::string out, err;
  [[nodiscard]] nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(out); }
};

inline Outcome run_words(const std::vector<std::string>& words, bool terminal = false) {
  std::ostringstream out, err;
  Console console{out, err, terminal};
  const int status = run_command(words, console);
  return {status, out.str(), err.str()};
}

/// A command line without its `podsim`, split at spaces; no quotes.
inline Outcome podsim(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in{line};
  for (std::string word; in >> word;) words.push_back(word);
  return run_words(words);
}

/// The JSON of a line that must succeed and say nothing on standard error.
inline nlohmann::ordered_json json_of(const std::string& line) {
  const Outcome outcome = podsim(line + " --format json");
  EXPECT_EQ(outcome.status, exit_done) << line << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "") << line;
  return outcome.status == exit_done ? outcome.json() : nlohmann::ordered_json::object();
}

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder of its own for the files of one test; removed with everything in it.
class Folder {
 public:
  Folder() : path_{std::filesystem::temp_directory_path() / ("podsim_" + std::to_string(getpid()))} { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// The path of a file in it, which holds `bytes` if they are given.
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace podsim::test
