// What a file is, by its content, and what podsim does with it: `podsim FILE`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// The beginning of a file, which gzip may have compressed.
struct FileHead {
  std::string path, text;  // the first bytes, unpacked
  bool whole = false;      // there are no more
};

struct KnownFile {
  std::string_view what;   // "a module that XLA compiled"
  std::string_view field;  // of a problem that such a file says: "hlo"; empty: it says none
  bool (*is)(const FileHead& head);
  /// Reads all of it and says what is in it, a phrase; nullptr: there is nothing to say beyond `what`. Errors: those of its reader.
  Expected<std::string> (*contents)(const std::string& path);
  /// Command lines and what they tell, with {} for the file's name.
  std::vector<std::pair<std::string_view, std::string_view>> commands;
  std::string_view (*machine)(const FileHead& head) = nullptr;  // for MACHINE in them; nullptr: they are as they stand
  std::string (*slice)(const FileHead& head) = nullptr;         // for SLICE in them, likewise
};
/// In the order in which they are tried.
const std::vector<KnownFile>& known_files();

/// Every command line that `podsim FILE` may print, those of messages of podsim too.
std::vector<std::string_view> suggested_commands();

/// Errors: it cannot be read.
Expected<FileHead> head_of(const std::string& path);
/// nullptr: nothing that is known.
const KnownFile* known_file(const FileHead& head);

/// What `podsim FILE` prints. Errors: the file cannot be read; it is none that podsim knows; those of its reader.
Expected<std::string> about_file(const std::string& path);

}  // namespace podsim
