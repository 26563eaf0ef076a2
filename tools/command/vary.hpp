// compare --vary: machine values that are varied beside everything else.
#pragma once

#include <vector>

#include "tools/command/options.hpp"
#include "tools/command/simulate.hpp"

namespace podsim {

/// --vary PATH=v1,v2,...: every combination, the last path varying fastest; one empty combination where nothing is varied. Errors: another form, a
/// path that is varied twice, a value that the path does not take.
Expected<std::vector<std::vector<Varied>>> variations_of(const Options& options);

/// "link.bandwidth=45GB/s link.latency=1us"; empty where nothing is varied.
std::string to_text(const std::vector<Varied>& varied);

}  // namespace podsim
