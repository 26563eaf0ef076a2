// How the command line wants things simulated.
#pragma once

#include <functional>
#include <string>

#include "sim/engine/engine.hpp"
#include "tools/command/options.hpp"

namespace podsim {

/// How to simulate, and whatever comes before a simulation.
struct Manner {
  const EngineEntry* engine = nullptr;  // whose result is told; choices are made by des
  bool fold = true;       // where the engine can
  bool force = false;     // run however long it takes
  double unasked = 50e6;  // task instances that are simulated without `force`: some ten seconds and a gigabyte
  int threads = 0;        // runs at a time, where there are several; 0: all cores
  RunControl control;
  std::function<void(const std::string& what)> doing{};  // told what is done next, where it may take long; from any thread

  [[nodiscard]] bool stopped() const { return control.stop.requested(); }
  void tell(const std::string& what) const {
    if (doing) doing(what);
  }
};

/// --engine --fold --force --threads
po::options_description engine_options();
po::options_description threads_option();

/// Of verbs that simulate only to choose what is left open, which is des's work: no engine is named.
Manner manner_of(const Console& console, int threads = 0);
/// With the console's interrupt as `stop`. Errors: no such engine, values out of range.
Expected<Manner> manner_of(const Options& options, const Console& console);

}  // namespace podsim
