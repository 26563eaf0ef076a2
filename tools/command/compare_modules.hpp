// `podsim compare OLD.hlo NEW.hlo`: a compiled module before and after a change.
#pragma once

#include "tools/command/options.hpp"

namespace podsim {

/// Of --hlo and --with, both simulated on the same system. Status 1 if the new one does not keep --expect.
Expected<int> compare_modules_and_print(const Options& options, Console& console);

}  // namespace podsim
