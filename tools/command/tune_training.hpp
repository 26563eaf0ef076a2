// `podsim tune --training` and `--maxtext`.
#pragma once

#include "tools/command/options.hpp"

namespace podsim {

/// Options of the verb that belong to training steps.
OptionGroup tuned_training_options();
bool tunes_training(const Options& options);
/// Errors: an option of the other kind of search is given.
Status options_suit_search(const Options& options);

Expected<int> tune_training_and_print(const Options& options, Console& console);

}  // namespace podsim
