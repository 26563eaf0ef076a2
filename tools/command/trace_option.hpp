// What the command line says of traces.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/simulate.hpp"
#include "tools/report/sink.hpp"
#include "tools/report/writing_progress.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// --trace --trace-devices --with --with-step
OptionGroup trace_options();

/// Folders for files that may not come to be: those that were not there are removed again, unless they are kept or hold something by then.
class NewFolders {
 public:
  /// The folder and those above it. Errors: why one cannot be made.
  static Expected<NewFolders> make(const std::string& path);
  NewFolders() = default;
  NewFolders(NewFolders&&) noexcept = default;
  NewFolders& operator=(NewFolders&&) noexcept = default;
  ~NewFolders();
  void keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;  // outermost first
};

/// A trace that is asked for; its file is open, of several the first.
struct TraceRequest {
  enum class Form { json, xplane, folder };
  Form form = Form::json;
  std::vector<DeviceId> devices;  // increasing
  bool representatives = false;   // instead: one of each class of a folded run, known when it was simulated
  int opened_host = 0;            // of a folder: whose file is open
  NewFolders folders{};           // destroyed last, when no part file is in them
  std::unique_ptr<Sink> sink;
  std::string path;               // of the file; of a folder that of the run in it: DIR/plugins/profile/podsim
  std::optional<ProfiledStep> measured{};  // beside the simulated lines of a json
  std::vector<std::string> notes{};        // for standard error
  std::vector<std::string> warnings{};     // likewise, and for the result: the measured step hardly matches
};

/// Of a system. Without --trace-devices: every device, or the first 16 of more, with a note that says so. nullopt: no trace is
/// asked for. The profile of --with is read, so that what is wrong with it is told before anything is simulated. A folder is one that is there, or a name that ends in a slash or has no dot in its last part. Errors: a file name that ends in neither
/// .json, .json.gz nor .xplane.pb, devices that are none, --trace-devices without --trace, a profile without a timeline or without such a step or device, --with beside another form than JSON, a file that cannot be written.
Expected<std::optional<TraceRequest>> trace_request(const Options& options, const System& system);

/// Writes the file, or into the folder DIR/plugins/profile/podsim a file of each host of the slice that drives one of the devices, host-<n>.xplane.pb. They
/// appear when all are complete, and profiles that a former run left there go. Errors: one cannot be written; none has appeared then.
/// `counting` is told how many of the devices' tasks are in it.
Status write_trace(TraceRequest& request, const Run& run, const WritingProgress::Counting& counting = {});

/// Devices of a mesh of `count`, as `0,3,8-11` or `all`: increasing, each once. Errors: anything else, a device that the mesh does not have.
Expected<std::vector<DeviceId>> devices_named(const std::string& text, int count, const SourceLocation& where);

/// "0,3,8-11"
std::string to_text(const std::vector<DeviceId>& increasing);

}  // namespace podsim
