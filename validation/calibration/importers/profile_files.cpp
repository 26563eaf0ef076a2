#include "validation/calibration/importers/profile_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "validation/calibration/importers/nsys.hpp"
#include "validation/calibration/importers/trace_json.hpp"
#include "validation/calibration/importers/xplane.hpp"

namespace podsim {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view profile_end = ".xplane.pb", own_run = "podsim";

/// host-2 before host-10.
bool by_name(const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; }

/// Folders, or files, directly in a folder, sorted. Errors: it cannot be read.
Expected<std::vector<std::string>> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown) == folders) names.push_back(entry->path().string());
  }
  if (error) return Diagnostic{{folder}, "cannot read the folder: " + error.message(), Cause::environment};
  std::ranges::sort(names, by_name);
  return names;
}

std::string_view without_gz(std::string_view name) { return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name; }

/// The files of a run's folder that are of one form; empty: it has none.
std::vector<std::string> files_of_run(const std::vector<std::string>& names, std::string_view form) {
  std::vector<std::string> files;
  if (form.empty() || form == "xplane") std::ranges::copy_if(names, std::back_inserter(files), [](const std::string& name) { return name.ends_with(profile_end); });
  if (!files.empty() || form == "xplane") return files;
  for (const std::string& name : names) {
    if (!without_gz(name).ends_with(".trace.json")) continue;
    if (files.empty() || without_gz(files.back()) != without_gz(name)) files.push_back(name);  // not both packed and unpacked
  }
  return files;
}

std::string last_part(const std::string& path) { return fs::path{path}.filename().string(); }

Expected<ProfileFiles> find_in_folder(const std::string& path, std::string_view form) {
  ProfileFiles found{path, {}, {}};
  const auto take = [&](const std::string& folder) -> Expected<bool> {
    const auto names = names_in(folder, false);
    if (!names) return names.error();
    found.files = files_of_run(*names, form);
    if (!found.files.empty()) found.form = found.files.front().ends_with(profile_end) ? "xplane" : "trace-json";
    return !found.files.empty();
  };
  auto here = take(path);
  if (!here) return here.error();
  if (*here) return found;
  std::error_code unknown;
  const std::string below = (fs::path{path} / "plugins" / "profile").string();
  const auto folders = names_in(fs::is_directory(below, unknown) ? below : path, true);
  if (!folders) return folders.error();
  std::vector<std::string> runs;
  for (const std::string& folder : *folders) {
    const auto any = take(folder);
    if (!any) return any.error();
    if (*any) runs.push_back(folder);
  }
  if (runs.empty())
    return Diagnostic{{path}, fmt::format("expected a folder with plugins/profile/RUN/*{}, found none in it", form == "trace-json" ? ".trace.json.gz" : profile_end)};
  std::ranges::stable_partition(runs, [](const std::string& run) { return last_part(run) == own_run; });
  if (auto last = take(runs.back()); !last) return last.error();
  if (runs.size() > 1)
    found.notes.push_back(fmt::format("{} is the last of {} runs in {}; the folder of another run chooses that", last_part(runs.back()), runs.size(), path));
  return found;
}

/// Lines of one file among those of all.
class SharedSink final : public ProfileSink {
 public:
  SharedSink(ProfileSink& sink, ProfileLine first) : sink_{sink}, first_{first}, next_{first} {}
  [[nodiscard]] bool takes(std::string_view line) const override { return sink_.takes(line); }
  void add(ProfileLine line, const ProfileEvent& event) override { sink_.add(number(line), event); }
  ProfileLine number(ProfileLine line) {
    next_ = std::max(next_, first_ + line + 1);
    return first_ + line;
  }
  [[nodiscard]] ProfileLine next() const { return next_; }

 private:
  ProfileSink& sink_;
  ProfileLine first_, next_;
};

/// Devices of several files, each with a name of its own.
class JoinedProfile {
 public:
  void add(ReadProfile profile, SharedSink& lines, const std::string& file) {
    const bool again = std::ranges::any_of(profile.devices, [this](const ReadProfile::Device& device) { return names_.contains(device.name); });
    const int first = again ? next_ : 0;
    if (again)
      joined_.notes.push_back(fmt::format("the devices of {} are numbered from {} on, as files before it have the same numbers", last_part(file), first));
    for (ReadProfile::Device& device : profile.devices) {
      for (auto& [name, line] : device.lines) line = lines.number(line);
      const auto tpu = tpu_named(device.name), number = tpu ? tpu : gpu_named(device.name);
      if (number) next_ = std::max(next_, first + *number + 1);
      if (again && number) device.name = fmt::format("/device:{}:{}", tpu ? "TPU" : "GPU", first + *number);
      names_.insert(device.name);
      joined_.devices.push_back(std::move(device));
    }
    for (const std::string& machine : profile.machines) add_machine(joined_, machine);
    if (!joined_.steps) joined_.steps = std::move(profile.steps);
    joined_.has_operators |= profile.has_operators;
    for (std::string& note : profile.notes)
      if (std::ranges::find(joined_.notes, note) == joined_.notes.end()) joined_.notes.push_back(std::move(note));
  }
  ReadProfile take() { return std::move(joined_); }

 private:
  ReadProfile joined_;
  std::set<std::string> names_;
  int next_ = 0;
};

}  // namespace

std::optional<std::string_view> profile_form(std::string_view file) {
  file = without_gz(file);
  for (const auto& [end, form] : {std::pair{".pb", "xplane"}, {".json", "trace-json"}, {".csv", "hlo-stats"}, {".sqlite", "nsys"}})
    if (file.ends_with(end)) return form;
  return std::nullopt;
}

Expected<ProfileFiles> find_profile(const std::string& path, std::string_view form) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return ProfileFiles{path, std::string{form.empty() ? profile_form(path).value_or("") : form}, {path}};
  if (!form.empty() && form != "xplane" && form != "trace-json")
    return Diagnostic{{path}, "expected a file: folders have profiles as xplane or trace-json, not as " + quoted(form)};
  return find_in_folder(path, form);
}

std::vector<std::string> files_of_profile(const std::string& path) {
  const auto found = find_profile(path);
  return found ? found->files : std::vector<std::string>{};
}

Expected<ReadProfile> read_profile(std::string_view form, std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink) {
  if (form == "xplane") return read_xplane(std::move(bytes), file, sink);
  if (form == "trace-json") return read_trace_json(std::move(bytes), file, sink);
  return Diagnostic{{}, quoted(form) + " is no form of profiles; there are xplane, trace-json, hlo-stats, nsys"};
}

namespace {

Expected<ReadProfile> read_file_of_profile(const std::string& form, const std::string& file, ProfileSink& sink) {
  if (form == "nsys") return read_nsys(file, sink);  // SQLite opens it itself
  auto source = source_of_file(file);
  if (!source) return source.error();
  return read_profile(form, *std::move(source), file, sink);
}

}  // namespace

Expected<ReadProfile> read_profile(const ProfileFiles& files, ProfileSink& sink) {
  JoinedProfile joined;
  ProfileLine next = 0;
  for (const std::string& file : files.files) {
    SharedSink lines{sink, next};
    auto profile = read_file_of_profile(files.form, file, lines);
    if (!profile) return profile.error();
    joined.add(*std::move(profile), lines, file);
    next = lines.next();
  }
  ReadProfile whole = joined.take();
  whole.notes.insert(whole.notes.begin(), files.notes.begin(), files.notes.end());
  return whole;
}

}  // namespace podsim
