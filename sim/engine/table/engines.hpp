// The one table of timing engines.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

EngineTable all_timing_engines();
Expected<const EngineEntry*> timing_engine(std::string_view name);

}  // namespace podsim
