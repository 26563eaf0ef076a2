// Datasets: what was measured, and what it is used to prove.
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

/// The names of the datasets that come with the program, sorted.
std::vector<std::string> shipped_datasets();

/// A shipped dataset by its name, or the one in a folder (what has a '/', or is no shipped name but a folder): observations.csv and
/// validation.textproto. Errors: an unknown name (names the near ones), files that cannot be read, what is wrong with them.
Expected<Dataset> find_dataset(const std::string& name_or_folder);
/// The files that are read of it, if it is a folder.
std::vector<std::string> files_of_dataset(const std::string& name_or_folder);
/// Its observations alone.
Expected<std::vector<Observation>> find_observations(const std::string& name_or_folder);

}  // namespace podsim
