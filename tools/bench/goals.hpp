// Figures of a benchmark that have a number to reach.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

namespace podsim::bench {

/// The figure `name` of this benchmark, and that it should be at least, or at most, `target`. The program prints all of them as one table in the end.
void at_least(benchmark::State& state, const std::string& name, double reached, double target);
void at_most(benchmark::State& state, const std::string& name, double reached, double target);

/// The largest memory that the process held since the last call of forget_peak(), bytes (Linux).
double peak_bytes();
void forget_peak();

}  // namespace podsim::bench
