// Observations that a command line names: files of our own or of others.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "topologies/system.hpp"
#include "validation/calibration/importers/import.hpp"

namespace podsim {

/// --from --op --devices --cores --axis-sizes, and the files.
OptionGroup import_options();

/// The words in front that say by themselves what they are, as options: a file of measurements, and a machine with its slice, h100:8x8.
std::vector<std::string> with_named_words(std::vector<std::string> arguments);

/// The observations of all files (--observations, or words after the verb), in order, with what the importers note. Errors: no file; those of the
/// importers.
Expected<Imported> imported_observations(const Options& options);

/// Times and rates of observations beyond the range of hardware, and values of the machine.
std::vector<Diagnostic> doubts_about(const Imported& observations, const Machine& machine);

/// The system that observations are predicted on: that of the options. Without --mesh the mesh that their file tells, if it tells one, in the order of JAX
/// unless --mesh-order says otherwise; a note says so.
Expected<System> system_of(Imported& observations, const Options& options, const std::string& default_machine = "");

}  // namespace podsim
