// Profiles as users name them: a file, or a folder that TensorBoard and XProf show, with a file of each host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

struct ProfileFiles {
  std::string name;               // as it was named
  std::string form;               // xplane, trace-json, hlo-stats, nsys; empty: the name does not tell
  std::vector<std::string> files;  // in the order of their names, numbers in them by value
  std::vector<std::string> notes{};
};

/// The form of a profile by the end of its file name; nullopt: none of these.
std::optional<std::string_view> profile_form(std::string_view file);

/// What to read for `path`. A file is itself. A folder is a run, DIR/plugins/profile/RUN, or has runs in DIR/plugins/profile or in itself; of several it is the last by
/// name, and podsim's own only if there is no other, which a note says. Of a run's files those of one form are taken: xplane, else trace-json. `form`: the only one that will
/// do; empty: any. Errors: a folder without a profile; one that cannot be read.
Expected<ProfileFiles> find_profile(const std::string& path, std::string_view form = {});

/// The files that find_profile() finds; none if it finds no profile.
std::vector<std::string> files_of_profile(const std::string& path);

/// Reads one file. Errors: a form other than xplane and trace-json; those of their readers.
Expected<ReadProfile> read_profile(std::string_view form, std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink);

/// Reads all files as one profile. Hosts that number their devices alike have them numbered on from those of the files before, which a note says. Errors: those of one file.
Expected<ReadProfile> read_profile(const ProfileFiles& files, ProfileSink& sink);

}  // namespace podsim
