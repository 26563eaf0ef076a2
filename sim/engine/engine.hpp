// The interface of engines.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/engine/machine.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/mesh/placement.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Runs lowered schedules. Stateless: run() may be repeated, the same schedule gives the same outcome.
template <class Outcome>
class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Errors: a schedule that does not unroll or cannot progress (names the tasks that wait for each other), chips that are not connected.
  [[nodiscard]] virtual Expected<Outcome> run(const Schedule& lowered) const = 0;
};

using TimingEngine = Engine<Timeline>;  // when: analytic, simgrid

/// The machine, topology and placement must outlive the engine.
struct EngineEntry {
  std::string_view name, summary;
  std::unique_ptr<TimingEngine> (*make)(const Machine&, const Topology&, const Placement&);
};

/// The table is built in sim/engines and passed as an argument: no static self-registration, static libraries drop it.
using EngineTable = std::span<const EngineEntry>;

}  // namespace podsim
