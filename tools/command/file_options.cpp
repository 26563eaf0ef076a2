#include "tools/command/file_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/file_names.hpp"
#include "tools/command/options.hpp"

namespace podsim {

namespace {

/// What such an option has beside its value.
class FileUse {
 public:
  FileUse(bool writes, FilesOf files) : writes_{writes}, files_{files} {}
  virtual ~FileUse() = default;
  /// Appends what a value names.
  void name_files(const std::string& option, const std::string& value, std::vector<NamedFile>& named) const {
    for (std::string& path : files_(value)) named.push_back({"--" + option, std::move(path), writes_});
  }

 private:
  bool writes_;
  FilesOf files_;
};

template <class T>
class FileValue final : public po::typed_value<T>, public FileUse {
 public:
  FileValue(bool writes, FilesOf files) : po::typed_value<T>{nullptr}, FileUse{writes, files} {}
};

template <class T>
po::typed_value<T>* file_value(const std::string& value_name, bool writes, FilesOf files) {
  return (new FileValue<T>{writes, files})->value_name(value_name);  // Boost owns it, as it does what po::value() makes
}

const FileUse* use_of(const po::option_description& option) { return dynamic_cast<const FileUse*>(option.semantic().get()); }

}  // namespace

std::vector<std::string> one_file(const std::string& value) { return {value}; }
std::vector<std::string> files_between_commas(const std::string& value) { return split(value); }

po::typed_value<std::string>* input_file(const std::string& value_name, FilesOf files) { return file_value<std::string>(value_name, false, files); }
po::typed_value<std::vector<std::string>>* input_files(const std::string& value_name, FilesOf files) {
  return file_value<std::vector<std::string>>(value_name, false, files)->composing();
}
po::typed_value<std::string>* output_file(const std::string& value_name, FilesOf files) { return file_value<std::string>(value_name, true, files); }

std::vector<NamedFile> files_of(const po::variables_map& values, const po::options_description& described) {
  std::vector<NamedFile> named;
  for (const auto& option : described.options()) {
    const FileUse* use = use_of(*option);
    const std::string& name = option->long_name();
    if (use == nullptr || values.count(name) == 0) continue;
    const boost::any& value = values[name].value();
    if (const auto* one = boost::any_cast<std::string>(&value)) use->name_files(name, *one, named);
    if (const auto* many = boost::any_cast<std::vector<std::string>>(&value))
      for (const std::string& text : *many) use->name_files(name, text, named);
  }
  return named;
}

std::vector<NamedFile> files_of(const std::string& option, const std::string& value, const po::options_description& described) {
  std::vector<NamedFile> named;
  const po::option_description* found = described.find_nothrow(option, false);
  if (const FileUse* use = found != nullptr ? use_of(*found) : nullptr) use->name_files(option, value, named);
  return named;
}

Done outputs_stand_alone(const std::vector<NamedFile>& files) {
  std::vector<std::optional<FileIdentity>> identities;
  for (const NamedFile& file : files) identities.push_back(identity_of(file.path));
  for (std::size_t output = 0; output < files.size(); ++output)
    for (std::size_t other = 0; other < files.size() && files[output].written; ++other) {
      const bool pair = other != output && (!files[other].written || other < output);  // of two outputs, the later one is to blame
      if (pair && identities[output] && identities[output] == identities[other])
        return Diagnostic{{files[output].option, 0, 0},
                          fmt::format("expected a file of its own, found {}, the file of {}", quoted(files[output].path), files[other].option)};
    }
  return done();
}

}  // namespace podsim
