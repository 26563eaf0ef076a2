#include "tools/bench/goals.hpp"

#include <malloc.h>

#include <cstdio>
#include <fstream>

#include <fmt/format.h>

#include "tools/bench/processor.hpp"

namespace podsim::bench {

namespace {

constexpr const char* least = " >= target";
constexpr const char* most = " <= target";

struct Line {
  std::string benchmark, name;
  double reached = 0, target = 0;
  bool more_is_better = true;
};

/// What a console shows of every run, and in the end the figures that have a target.
class GoalReporter : public benchmark::ConsoleReporter {
 public:
  GoalReporter() : ConsoleReporter{OO_None} {}

  bool ReportContext(const Context& context) override {
    const InstructionCounter instructions;
    fmt::print("{}\nTimes and rates are by CPU seconds of the process, of all its threads together.\n", processor());
    if (!instructions.why_not().empty()) fmt::print("Instructions are not counted: {}.\n", instructions.why_not());
    return ConsoleReporter::ReportContext(context);
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown = runs;
    for (Run& run : shown) {
      for (const char* suffix : {least, most})
        for (auto counter = run.counters.begin(); counter != run.counters.end();) {
          const std::size_t at = counter->first.rfind(suffix);
          if (at == std::string::npos) {
            ++counter;
            continue;
          }
          const std::string name = counter->first.substr(0, at);
          lines_.push_back({run.benchmark_name(), name, run.counters[name].value, counter->second.value, suffix == least});
          counter = run.counters.erase(counter);
        }
    }
    ConsoleReporter::ReportRuns(shown);
  }

  void Finalize() override {
    if (lines_.empty()) return;
    fmt::print("\n{:<66} {:>12} {:>14}\n", "figure", "reached", "target");
    for (const Line& line : lines_) {
      const bool met = line.more_is_better ? line.reached >= line.target : line.reached <= line.target;
      const double factor = line.more_is_better ? line.target / line.reached : line.reached / line.target;
      fmt::print("{:<66} {:>12.4g} {:>3} {:>10.4g}  {}\n", line.benchmark + ": " + line.name, line.reached,
                 line.more_is_better ? ">=" : "<=", line.target, met ? "met" : fmt::format("missed by a factor of {:.2f}", factor));
    }
  }

 private:
  std::vector<Line> lines_;
};

}  // namespace

void at_least(benchmark::State& state, const std::string& name, double reached, double target) {
  state.counters[name] = reached;
  state.counters[name + least] = target;
}

void at_most(benchmark::State& state, const std::string& name, double reached, double target) {
  state.counters[name] = reached;
  state.counters[name + most] = target;
}

double peak_bytes() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return 1024 * std::stod(line.substr(6));
  return 0;
}

void forget_peak() {
  malloc_trim(0);
  std::ofstream{"/proc/self/clear_refs"} << 5;
}

}  // namespace podsim::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  podsim::bench::GoalReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
