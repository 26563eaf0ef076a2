// Calls played as one task each: every function is simulated once per program that calls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

/// A transfer, or another program's Call, that uses a link of a program's calls. At the same time as such a call, it would be slowed down by it.
struct CallConflict {
  std::uint32_t caller = 0;   // the program whose calls
  std::uint32_t program = 0;  // of the transfer or Call
  std::size_t task = 0;
};

/// The functions of a lowered schedule on a system, ready to be played; or the reason why calls must be inlined.
struct PlayableCalls {
  std::shared_ptr<const PlayedCalls> calls;  // null: they cannot be played
  std::string why_not{};
  std::vector<CallConflict> conflicts{};
};

/// Playing a call as one task is exact where all devices of a program begin it at the same time and do the same in it, and nothing else uses its links
/// meanwhile. Before the run this asks that every function folds to one class of devices, and that cores are of equal speed.
///   cost    a run of des for each function and program that calls it, and a route per device and distinct transfer
/// Errors: those of the model and of the engine; cancelled work.
Expected<PlayableCalls> play_calls(const System& system, const Schedule& lowered, const RunOptions& options);

/// Why a run that played its calls is not exact: devices that began a call at different times, or a conflict at one time. Empty: it is exact, but for
/// the transfers of beside_calls().
std::string why_inexact(const Model& model, const Timeline& timeline, const std::vector<CallConflict>& conflicts);

/// What passes while calls are played and would share the memory or the core of its devices with them: the payload that devices send and receive then.
Bytes beside_calls(const Model& model, const Timeline& timeline);

}  // namespace podsim
