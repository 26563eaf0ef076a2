// Files that a command line names. No command line can have an output that is one of its inputs, or another output.
#pragma once

#include <string>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// The files that the value of an option may name; what is not there is none.
using FilesOf = std::vector<std::string> (*)(const std::string& value);
std::vector<std::string> one_file(const std::string& value);
std::vector<std::string> files_between_commas(const std::string& value);

/// One file of a command line.
struct NamedFile {
  std::string option, path;  // "--output"
  bool written = false;
};

/// Errors: a file that is written is another one of them, whatever their names: links, `.` and `..`, several names of one file. Devices and pipes may be
/// given twice.
Status outputs_stand_alone(const std::vector<NamedFile>& files);

}  // namespace podsim
