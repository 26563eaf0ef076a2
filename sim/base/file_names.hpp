// What the names of files lead to.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "sim/base/expected.hpp"

namespace podsim {

/// The name at the end of all links that `path` leads through. Nothing needs to be there. Links of /proc are not followed: they lead to open files, not
/// to names. Errors: links that cannot be read, or more than 40.
Expected<std::string> end_of_links(const std::string& path);

/// The descriptor of this process that a name of /proc stands for: 1 for /dev/stdout, which leads there. `path` is the end of its links.
std::optional<int> own_descriptor(const std::string& path);

/// A file whatever its name: its place on the disk; of a file that is not there yet, that of its folder with its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  std::string name;  // empty: the file is there
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// nullopt: no regular file (a folder, a device, a pipe), or it cannot be looked at.
std::optional<FileIdentity> identity_of(const std::string& path);

}  // namespace podsim
