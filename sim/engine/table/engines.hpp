// The one table of timing engines.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

EngineTable all_timing_engines();
/// Errors: there is no such engine (names the near ones).
Expected<const EngineEntry*> timing_engine(std::string_view name);
/// The native one, which makes all choices.
const EngineEntry& des_engine();

}  // namespace podsim
