// Resolves file names: symbolic links, descriptors behind /proc names, file identity.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "sim/base/expected.hpp"

namespace podsim {

/// Whether something has this name, a folder too.
bool file_exists(const std::string& path);

/// `path` with all symbolic links followed; the file need not exist. Links of /proc are not followed: they lead to open files, not to names.
/// Errors: links that cannot be read, or more than 40 of them.
Expected<std::string> end_of_links(const std::string& path);

/// The descriptor of this process behind a name of /proc (/dev/stdout leads to 1). `path` is the result of end_of_links().
std::optional<int> own_descriptor(const std::string& path);

/// Identifies a file by device and inode, whatever its name. A file that does not exist yet is identified by its directory and its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  std::string name;  // empty: the file exists
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// nullopt: not a regular file (a directory, a device, a pipe), or it cannot be examined.
std::optional<FileIdentity> identity_of(const std::string& path);

}  // namespace podsim
