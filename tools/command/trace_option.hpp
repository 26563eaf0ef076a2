// What the command line says of traces.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/simulate.hpp"
#include "tools/report/sink.hpp"

namespace podsim {

/// --trace --trace-devices
OptionGroup trace_options();

/// A trace that is asked for; its file is open.
struct TraceRequest {
  std::vector<DeviceId> devices;  // increasing
  std::unique_ptr<Sink> sink;
  std::string note;  // for standard error, empty: nothing to say
};

/// Of a system of that many devices. Without --trace-devices: every device, or the first 16 of more, with a note that says so. nullopt: no trace is
/// asked for. Errors: a name that ends in neither .json nor .json.gz, devices that are none, --trace-devices without --trace, a file that cannot be
/// written.
Expected<std::optional<TraceRequest>> trace_request(const Options& options, int devices);

/// Writes and closes the file. Errors: it cannot be written.
Status write_trace(const TraceRequest& request, const Run& run);

/// Devices of a mesh of `count`, as `0,3,8-11` or `all`: increasing, each once. Errors: anything else, a device that the mesh does not have.
Expected<std::vector<DeviceId>> devices_named(const std::string& text, int count, const SourceLocation& where);

/// "0,3,8-11"
std::string to_text(const std::vector<DeviceId>& increasing);

}  // namespace podsim
