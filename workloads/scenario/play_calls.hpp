// Calls played as one task each: every function is simulated once per program that calls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/schedule/calls.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

/// Playing a call as one task is exact where all devices of its program begin it at the same time and do the same in it, and nothing else uses its links
/// or the memory of its devices meanwhile. play_calls() asks beforehand that every function folds to one class of devices, and that cores are of equal
/// speed; inexact_calls() looks at the rest after the run.

/// The functions of a lowered schedule on a system, ready to be played; or the reason why calls must be inlined.
struct PlayableCalls {
  std::shared_ptr<const PlayedCalls> calls;  // null: they cannot be played
  std::string why_not{};
};
///   cost    a run of des for each function and program that calls it
/// Errors: those of the model and of the engine; cancelled work.
Expected<PlayableCalls> play_calls(const System& system, const Schedule& lowered, const RunOptions& options);

/// What may use links of calls: the transfers of programs, and other programs' Calls.
struct CallConflicts {
  struct Caller {
    std::uint32_t program = 0;
    int function = 0;
  };
  struct User {
    std::uint32_t program = 0;
    std::size_t task = 0;     // a transfer or Call
    std::size_t callers = 0;  // position in `callers`: calls of these use one of its links
  };
  std::vector<std::vector<Caller>> callers;
  std::vector<User> users;
};
/// Found from routes alone; the calls of a program are its own order's to keep apart. Cost a route per device and distinct transfer. Errors: those of routes.
Expected<CallConflicts> call_conflicts(const System& system, const Schedule& lowered);

/// Calls of a run that were played and would have taken another time task by task.
struct InexactCalls {
  ChosenCalls chosen;
  std::int64_t count = 0;
  std::string why;  // of the first one
};
/// By cause: other times of their devices or links in use, of which nothing is known but that the time is another one; and memory that a transfer or DMA draws
/// beside them, which slows what is limited by memory in a call.
struct InexactPlay {
  InexactCalls by_links, by_memory;
  struct Waiting {
    std::uint32_t program = 0;
    std::size_t task = 0;
    Seconds at_most{};  // longer; of no meaning where transfers wait
  };
  std::vector<Waiting> waiting{};  // those of by_memory that are not in by_links, the longest first
  bool transfers_wait = false;     // that is no bound: a transfer or DMA beside a call may itself wait for the memory
};
InexactPlay inexact_calls(const Model& model, const Timeline& timeline, const CallConflicts& conflicts);

}  // namespace podsim
