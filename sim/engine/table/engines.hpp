// The table of all timing engines.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

EngineTable all_timing_engines();
/// Errors: no such engine (the message names similar ones).
Expected<const EngineEntry*> timing_engine(std::string_view name);
/// The engine for all choices that podsim makes itself (tuner, `auto`).
const EngineEntry& des_engine();

}  // namespace podsim
