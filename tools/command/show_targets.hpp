// What `podsim show` prints, a function each.
#pragma once

#include <string>

#include "tools/command/scenario_options.hpp"

namespace podsim {

/// Errors: those of the machine; a file without --machine.
Expected<std::string> show_machine(const Options& options, Format format, const RunOptions& how);

/// Errors: those of the system; cancelled work.
Expected<std::string> show_topology(const Options& options, Format format, const RunOptions& how);

/// Errors: those of the system.
Expected<std::string> show_mesh(const Options& options, Format format, const RunOptions& how);

/// Errors: those of the system and the problem; with -o a schedule that no reader would take, for its size.
Expected<std::string> show_schedule(const Options& options, Format format, const RunOptions& how);

/// Errors: those of the system and the program; no program.
Expected<std::string> show_program(const Options& options, Format format, const RunOptions& how);

/// Errors: no plan; those of the system, the plan and its parts.
Expected<std::string> show_plan(const Options& options, Format format, const RunOptions& how);

/// `podsim show sharding`: needs no system, but to know what the console shows. Returns the exit status.
int show_sharding(const std::vector<std::string>& arguments, Console& console);

/// `podsim show training`: needs no system. Returns the exit status.
int show_training(const std::vector<std::string>& arguments, Console& console);

/// `podsim show pipeline`: as above.
int show_pipeline(const std::vector<std::string>& arguments, Console& console);

/// `podsim show hlo`: as above.
int show_hlo(const std::vector<std::string>& arguments, Console& console);

/// `podsim show timeline`: as above.
int show_timeline(const std::vector<std::string>& arguments, Console& console);

}  // namespace podsim
