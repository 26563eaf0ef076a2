// Observations that a command line names: files of our own or of others.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "validation/calibration/importers/import.hpp"

namespace podsim {

/// --from --op --devices --cores --axis-sizes, and the files.
OptionGroup import_options();

/// The observations of all files (--observations, or words after the verb), in order, with what the importers note. Errors: no file; those of the
/// importers.
Expected<Imported> imported_observations(const Options& options);

}  // namespace podsim
