// `podsim sweep --merge`.
#pragma once

#include "tools/command/options.hpp"
#include "tools/console/console.hpp"

namespace podsim {

/// Merges the stores of --merge into --store, and says on standard error what is still missing. Returns whether nothing is. Errors: a part that is given
/// twice; those of merge_stores().
Expected<bool> merge_parts(const Options& options, Console& console);

}  // namespace podsim
