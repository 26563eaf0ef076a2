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

/// Calls beside which only the memory or the cores of their devices are shared are written out where that is at most so many tasks: within 2 s of a core and 0.6 GB. Measured
/// on steps of Nemotron 340B, with the runs that find which calls are to be written out:
///   tasks      15 thousand   0.36 million   1.4 million
///   core       0.4 s         2.7 s          12 s
///   memory     80 MB         0.73 GB        2.8 GB
/// The calls of a larger model are played, and the run says that what is beside them is not counted.
inline constexpr double most_written_out_for_sharing = 5e4;

/// Options of a run and of the simulations that choose what is left open before it. Every loop of this library observes them.
struct RunOptions {
  const EngineEntry* engine = &des_engine();  // of the final run; choices are always simulated by des
  bool fold = true;                           // if the engine can fold
  bool inline_calls = false;                  // des too plays the tasks of functions, not each call as one task
  bool write_out_calls = false;               // before collectives are lowered, so that each of them is one of its program
  bool force = false;                         // no limit of task instances
  double most_instances = 100e6;              // without `force`: about twenty seconds and two gigabytes, by events
  double most_written_out = most_written_out_for_sharing;  // tasks; a search takes fewer
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
