// Datasets: measurements, and the study that uses them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine.hpp"
#include "validation/validate/study.hpp"

namespace podsim {

struct Dataset {
  std::string name;
  std::vector<Observation> observations;
  Study study;
  Machine machine;  // the study's
};

/// The names of the shipped datasets, sorted.
std::vector<std::string> shipped_datasets();

/// A shipped dataset by its name, or a dataset in a folder (a name with a '/', or any folder that is not a shipped name): observations.csv and
/// validation.textproto. Errors: an unknown name (the message names similar ones), unreadable files, errors in the files.
Expected<Dataset> find_dataset(const std::string& name_or_folder);
/// The files of a dataset in a folder; empty for a shipped one.
std::vector<std::string> files_of_dataset(const std::string& name_or_folder);
/// Only its observations.
Expected<std::vector<Observation>> find_observations(const std::string& name_or_folder);

}  // namespace podsim
