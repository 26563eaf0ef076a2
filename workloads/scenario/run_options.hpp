// How something is simulated.
#pragma once

#include <functional>
#include <string>

#include "sim/engine/engine.hpp"
#include "sim/engine/table/engines.hpp"

namespace podsim {

/// How to simulate, and whatever is simulated before to choose what is left open. Reaches every loop of this library.
struct RunOptions {
  const EngineEntry* engine = &des_engine();  // whose result is told; choices are made by des
  bool fold = true;                           // where the engine can
  bool force = false;                         // run however many task instances there are
  double most_instances = 50e6;               // without `force`: some ten seconds and a gigabyte
  int threads = 0;                            // runs at a time, where there are several; 0: all cores
  RunControl control{};
  std::function<void(const std::string& what)> doing{};  // told what is done next, where it may take long; from any thread

  [[nodiscard]] bool stopped() const { return control.stop.requested(); }
  [[nodiscard]] bool folds() const { return fold && engine->folds; }
  void tell(const std::string& what) const {
    if (doing) doing(what);
  }
};

}  // namespace podsim
