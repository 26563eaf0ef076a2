#include "validation/validate/datasets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/base/blame.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/config/machine_config.hpp"
#include "sim/machine/machine_fields.hpp"
#include "topologies/machines.hpp"
#include "validation/validate/embedded_datasets.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/training/model.hpp"

namespace podsim {

namespace {

constexpr std::string_view observations_file = "observations.csv", study_file = "validation.textproto", base_file = "base.textproto";

struct DatasetFile {
  std::string path;  // for messages
  std::string text;
};

bool is_folder(const std::string& name) {
  if (name.find('/') != std::string::npos) return true;
  const std::vector<std::string> names = shipped_datasets();
  std::error_code none;
  return std::find(names.begin(), names.end(), name) == names.end() && std::filesystem::is_directory(name, none);
}

/// Errors: no such dataset, or it lacks the file.
Expected<DatasetFile> file_of(const std::string& name, std::string_view file) {
  if (is_folder(name)) {
    const std::string path = (std::filesystem::path{name} / file).string();
    auto text = read_file(path, list_limit);
    if (!text) return text.error();
    return DatasetFile{path, *std::move(text)};
  }
  const std::string key = name + "/" + std::string{file.substr(0, file.find('.'))};
  for (const EmbeddedFile& entry : embedded_datasets())
    if (entry.name == key) return DatasetFile{fmt::format("validation/datasets/{}/{}", name, file), std::string{entry.text}};
  const std::vector<std::string> names = shipped_datasets();
  if (std::find(names.begin(), names.end(), name) != names.end()) return Diagnostic{{}, fmt::format("dataset {} has no {}", name, file)};
  return Diagnostic{{}, fmt::format("there is no dataset {}{}; there are {}", quoted(name), did_you_mean(name, names), fmt::join(names, ", "))};
}

Expected<Machine> base_machine(const Study& study, const std::string& dataset) {
  if (study.machine != base_file) {
    auto machine = find_machine(study.machine);
    if (!machine) return blamed_on(study.machine_where, machine.error());
    return machine;
  }
  const auto file = file_of(dataset, base_file);
  if (!file) return blamed_on(study.machine_where, file.error());
  return read_machine(file->text, file->path);
}

Expected<Machine> machine_of(const Study& study, const std::string& dataset) {
  auto machine = base_machine(study, dataset);
  if (!machine) return machine;
  for (const StudyValue& set : study.values)
    if (auto ok = set_machine_value(*machine, set.path, set.value, set.source, set.where); !ok) return ok.error();
  return machine;
}

/// Models of a study's runs whose files lie beside it.
Status read_models(Study& study, const std::string& dataset) {
  KnownObjects known;
  for (const StudyRun& run : study.runs) {
    if (!run.fields.has("training")) continue;
    const std::string name = run.fields.text("training");
    if (!name.ends_with(".textproto") || known.models.contains(name)) continue;
    const auto file = file_of(dataset, name);
    if (!file) return file.error().where.file.empty() ? blamed_on(run.fields.where("training"), file.error()) : file.error();
    auto model = read_training_model(file->text, file->path);
    if (!model) return model.error();
    known.models.emplace(name, *std::move(model));
  }
  const auto shared = std::make_shared<const KnownObjects>(std::move(known));
  for (StudyRun& run : study.runs) run.fields.known = shared;
  return success();
}

}  // namespace

std::vector<std::string> shipped_datasets() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_datasets()) {
    const std::string_view folder = file.name.substr(0, file.name.find('/'));
    if (names.empty() || names.back() != folder) names.emplace_back(folder);
  }
  return names;
}

std::vector<std::string> files_of_dataset(const std::string& name_or_folder) {
  std::vector<std::string> paths;
  if (!is_folder(name_or_folder)) return paths;
  for (const std::string_view file : {observations_file, study_file, base_file})
    paths.push_back((std::filesystem::path{name_or_folder} / file).string());
  return paths;
}

Expected<std::vector<Observation>> find_observations(const std::string& name_or_folder) {
  const auto file = file_of(name_or_folder, observations_file);
  if (!file) return file.error();
  return read_observations(file->text, file->path);
}

Expected<Dataset> find_dataset(const std::string& name_or_folder) {
  auto observations = find_observations(name_or_folder);
  if (!observations) return observations.error();
  const auto file = file_of(name_or_folder, study_file);
  if (!file) return file.error();
  auto study = read_study(file->text, file->path);
  if (!study) return study.error();
  if (const Status read = read_models(*study, name_or_folder); !read) return read.error();
  auto machine = machine_of(*study, name_or_folder);
  if (!machine) return machine.error();
  const std::filesystem::path path{name_or_folder};
  const std::string name = is_folder(name_or_folder) ? (path.has_filename() ? path : path.parent_path()).filename().string() : name_or_folder;
  return Dataset{name, *std::move(observations), *std::move(study), *std::move(machine)};
}

}  // namespace podsim
