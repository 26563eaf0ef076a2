#include "tools/console/named_files.hpp"

#include <optional>
#include <fmt/format.h>

#include "sim/base/file_names.hpp"
#include "sim/base/text.hpp"

namespace podsim {

std::vector<std::string> one_file(const std::string& value) { return {value}; }
std::vector<std::string> files_between_commas(const std::string& value) { return split(value); }

Status outputs_stand_alone(const std::vector<NamedFile>& files) {
  std::vector<std::optional<FileIdentity>> identities;
  for (const NamedFile& file : files) identities.push_back(identity_of(file.path));
  for (std::size_t output = 0; output < files.size(); ++output)
    for (std::size_t other = 0; other < files.size() && files[output].written; ++other) {
      const bool pair = other != output && (!files[other].written || other < output);  // of two outputs, the later one is to blame
      if (pair && identities[output] && identities[output] == identities[other])
        return Diagnostic{{files[output].option, 0, 0},
                          fmt::format("expected a file of its own, found {}, the file of {}", quoted(files[output].path), files[other].option)};
    }
  return success();
}

}  // namespace podsim
