// The trace of a run as a profile of XProf's: *.xplane.pb, for TensorBoard, XProf, and podsim's own `diff` and `calibrate`.
//
//   /host:CPU               empty; readers want it
//   /device:TPU:<n>         a device, or /device:GPU:<n> on machines whose devices are GPUs. Its statistics are what the machine's file says it can do
//     Steps                 one event, as long as the run
//     XLA Modules           one event: the schedule, until the device's last event
//     XLA Ops               what the core is busy with or waits for (operation_lines.hpp), by the names of hlo_names.hpp. Never overlapping; instants are
//                           starts and dones that take no time. Of what is in flight the statistic overlapped_ps says how long the core was busy meanwhile
//     Async XLA Ops         asynchronous operations from start to done, and the work of the dma unit
//     Stream #<n>(Compute)  only of GPUs: kernels; the first is the core's, the others have collectives
//   /device:CUSTOM:ici:<n>  the transfers of a device: a line per direction and half, as in Chrome traces (device_events.hpp)
//
// All lines begin at 0; all times are exact. Nothing depends on how the run was simulated: folded and unfolded runs give equal bytes.
#pragma once

#include <span>
#include <string>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"
#include "tools/report/sink.hpp"
#include "tools/report/writing_progress.hpp"

namespace podsim {

/// A host and those of its devices that are in the trace, increasing.
struct ProfiledHost {
  std::string name;
  std::vector<DeviceId> devices;
  DeviceId busiest{};  // the device that the run's figures are of: its plane says so, and `diff` compares it
  WritingProgress* progress = nullptr;
  bool tell_alike = false;  // a statistic of each plane, devices_alike, says how many devices the model simulates as this one
};

/// Writes the file of one host, all but putting it in its place (Sink::close()). The timeline must be recorded and complete. Errors: those of the sink; a device with more than 2 GiB of events.
///   cost    O(n log n) per device for the n tasks of its program; memory for the events of one device at a time
Status write_xplane(const Model& model, const Timeline& timeline, const ProfiledHost& host, Sink& sink);

}  // namespace podsim
