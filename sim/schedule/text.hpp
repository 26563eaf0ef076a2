// The schedule as text for people: stable, one line per task; used by `podsim show schedule`, goldens and diagnostics. (Saved files are textproto:
// sim/config.)
#pragma once

#include <string>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Works for any schedule whose buffers, axes and edges exist, well-shaped or not.
std::string to_text(const Schedule& schedule);
std::string to_text(const Mesh& mesh, const Affine& affine);
std::string to_text(const Mesh& mesh, const Program& program, const Region& region);
/// `3 "gather X s1"`: position and label, as diagnostics name a task.
std::string task_name(const Program& program, TaskId task);
/// The file that a schedule was read from, for messages about the whole schedule.
WrittenAt file_of(const Schedule& schedule);

}  // namespace podsim
