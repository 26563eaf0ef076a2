// Files that are read whole, on disk or compiled into the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace podsim {

/// A file of the repository compiled into the program. Both views live as long as the program.
struct EmbeddedFile {
  std::string_view name;  // without folder and extension: "tpu_v4"
  std::string_view text;
};

/// The whole of a file; nothing if it cannot be read (a folder cannot).
std::optional<std::string> contents_of(const std::string& path);

}  // namespace podsim
