// How far the costs of a module are known, and what its compiler estimates otherwise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/report/json.hpp"
#include "workloads/hlo/hlo_summary.hpp"

namespace podsim {

/// `known, estimated, lower_bound, unknown: {instructions, bytes, time_s}, lower_bound_names, unknown_names: {name: executions}, in_doubt: {instructions, time_s, compiler_s, longer_s}, compared, not_compared: {instructions, time_s}`
Json coverage_json(const HloCoverage& coverage);
/// `[ {instruction, time_s, compiler_s, count} ]`
Json other_estimates_json(const std::vector<std::pair<std::string, HloOtherEstimate>>& others);

/// "known: 400 instructions, 1.2 GB, 3.1 ms; estimated: ..; in doubt: 84 us, 7.5 us by the compiler's own cycles; without an estimate of the compiler: 12
/// instructions, 30 us (8 % of the core's time)"; kinds without an instruction are left out, and the last where the compiler estimated nothing.
std::string coverage_text(const HloCoverage& coverage);
/// "89 % of the core's time estimated", where so much of it rests on HloEvidence::estimated; empty: less than a tenth.
std::string estimated_text(const HloCoverage& coverage);
/// "84 % of the core's time in doubt", where the compiler estimated far otherwise of so much, of each instruction by the longer of the two estimates; empty: of less than a tenth.
std::string doubt_text(const HloCoverage& coverage);
/// The first few, and how many more there are: "fusion.3: 1.2 ms, the compiler 7 ms".
std::string other_estimates_text(const std::vector<std::pair<std::string, HloOtherEstimate>>& others);

}  // namespace podsim
