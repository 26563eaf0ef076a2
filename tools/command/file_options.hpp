// Options whose values name files. Declared as such, no command line can have an output that is one of its inputs, or another output.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

namespace po = boost::program_options;

/// The files that the value of an option may name; what is not there is none.
using FilesOf = std::vector<std::string> (*)(const std::string& value);
std::vector<std::string> one_file(const std::string& value);
std::vector<std::string> files_between_commas(const std::string& value);

// As po::value<std::string>(): of a file that is read, of files given by a repeatable option, and of one that is written.
po::typed_value<std::string>* input_file(const std::string& value_name, FilesOf files = one_file);
po::typed_value<std::vector<std::string>>* input_files(const std::string& value_name, FilesOf files = one_file);
po::typed_value<std::string>* output_file(const std::string& value_name, FilesOf files = one_file);

/// One file of a command line.
struct NamedFile {
  std::string option, path;  // "--output"
  bool written = false;
};

/// The files that the values of these options name.
std::vector<NamedFile> files_of(const po::variables_map& values, const po::options_description& described);
/// Those of one option with this value; none if it names no files.
std::vector<NamedFile> files_of(const std::string& option, const std::string& value, const po::options_description& described);

/// Errors: a file that is written is another one of them, whatever their names: links, `.` and `..`, several names of one file. Devices and pipes may be
/// given twice.
Done outputs_stand_alone(const std::vector<NamedFile>& files);

}  // namespace podsim
