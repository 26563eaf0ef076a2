// Machine values that are varied beside everything else.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Of PATH=v1,v2,... each: every combination, the last path varying fastest; one empty combination where nothing is varied. Errors: another form, a
/// path that is varied twice, a value that the path does not take.
Expected<std::vector<std::vector<Override>>> parse_variations(const std::vector<std::string>& texts, const SourceLocation& where);

/// Whether two machines have the same values, whatever they are called.
bool same_values(const Machine& a, const Machine& b);

/// The machine with these values in place of its own: hypothetical, where they differ. Errors: a path or value that it does not take.
Expected<Machine> with_values(Machine machine, const std::vector<Override>& values, const std::string& source, const SourceLocation& where);

/// "link.bandwidth=45GB/s link.latency=1us"; empty where nothing is varied.
std::string to_text(const std::vector<Override>& varied);

}  // namespace podsim
