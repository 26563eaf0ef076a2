// How to simulate: engine, folding, threads, cancellation, progress.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/engine/engine.hpp"
#include "sim/engine/table/engines.hpp"

namespace podsim {

class ChosenLowerings;
std::shared_ptr<ChosenLowerings> no_lowerings_yet();

/// Calls beside which only the memory of their devices is shared are written out where that is at most so many tasks: a fifth of a second and 80 MB, as
/// 4 us and 1.6 kB for each, of a step of Nemotron 340B with 0.6 million (2.4 s of a core, 0.99 GB) to 4.9 million (21 s, 7.7 GB) `--calls inline`. A fit or a search has hundreds
/// of such steps: five times as many tasks made one six times as long. The calls of a larger model are played where all that they could wait for the memory is less than a thousandth of the time (or where they are too many for the computer's memory), and the run says how much.
inline constexpr double most_written_out_for_sharing = 5e4;

/// Options of a run and of the simulations that choose what is left open before it. Every loop of this library observes them.
struct RunOptions {
  const EngineEntry* engine = &des_engine();  // of the final run; choices are always simulated by des
  bool fold = true;                           // if the engine can fold
  bool inline_calls = false;                  // des too plays the tasks of functions, not each call as one task
  bool write_out_calls = false;               // before collectives are lowered, so that each of them is one of its program
  bool force = false;                         // no limit of task instances
  double most_instances = 100e6;              // without `force`: about twenty seconds and two gigabytes, by events
  std::int64_t most_work_beside_auto = 10'000'000;  // without `force`, of a comparison: RunControl::most_work of what is slower than `auto`, on all meshes of a topology; half as much on one. Some seconds
  double most_written_out = most_written_out_for_sharing;  // tasks
  double most_left_out = 1e-3;                // of the time: what calls in more tasks may wait for memory and be played all the same
  int threads = 0;                            // simultaneous runs, where there are several; 0: all cores
  RunControl control{};                       // without `record`, Run::timeline may have but what the busiest device does
  std::function<void(const std::string& what)> doing{};  // called before each step that may take long, from any thread

  std::function<void(std::size_t done, std::size_t all)> counting{};  // where such steps are many of a kind, how many of them are done; 0 of 0: they all are

  std::shared_ptr<ChosenLowerings> chosen = no_lowerings_yet();  // what `auto` has chosen (chosen_lowerings.hpp); copies of these options share it

  [[nodiscard]] bool stopped() const { return control.stop.requested(); }
  /// Whether calls may be played as one task each.
  [[nodiscard]] bool plays_calls() const { return !inline_calls && engine == &des_engine(); }
  [[nodiscard]] bool folds() const { return fold && engine->folds; }
  void tell(const std::string& what) const {
    if (doing) doing(what);
  }
  void count(std::size_t done, std::size_t all) const {
    if (counting) counting(done, all);
  }
};

}  // namespace podsim
