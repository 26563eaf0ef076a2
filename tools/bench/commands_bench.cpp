// Whole commands that must answer in seconds, as a user waits for them: systems of thousands of chips, searches, what cannot be folded.
#include <algorithm>
#include <iterator>
#include <sstream>
#include <vector>

#include "tools/bench/goals.hpp"
#include "tools/bench/workloads.hpp"
#include "tools/command/command.hpp"

namespace podsim::bench {
namespace {

struct TimedCommand {
  const char* name;
  double most_seconds;  // of CPU
  const char* line;
};

// The bounds of the first four are what these commands took before (1.35, 5.28, 3.4 and 3.4 s) by the factor that was to be gained: 2, 20, 30 and 30. Nobody
// should wait longer than ten seconds for any of the others, on two cores: those that use all of them have twice the CPU seconds. `ring` and `line` are what
// was the default then; `auto` tries more.
constexpr TimedCommand commands[] = {
    {"halving_doubling_128x128", 1.35 / 2, "run --machine tpu_v4 --slice 128x128 --collective all-reduce --axis row,col --bytes 64MiB --algorithm halving-doubling"},
    {"open_all_reduce_64x64", 5.28 / 20, "run --machine tpu_v4 --slice 64x64 --wrap none --collective all-reduce --axis row,col --bytes 64MiB --algorithm line"},
    {"network_of_4096_gpus", 3.4 / 30, "run --machine dgx_h100 --slice 512x8 --collective all-reduce --axis row,col --bytes 64MiB --algorithm ring"},
    {"topology_of_4096_gpus", 3.4 / 30, "show topology --machine dgx_h100 --slice 512x8"},
    {"network_of_65536_gpus", 10, "run --machine dgx_h100 --slice 8192x8 --collective all-reduce --axis row,col --bytes 64MiB"},
    {"topology_twisted_16x32x32", 10, "show topology --machine tpu_v4 --slice 16x32x32 --topology twisted"},
    {"topology_crossbar_4096", 10, "show topology --machine tpu_v4 --slice 64x64 --topology crossbar"},
    {"tune_llama3_405b_16x32x32", 20, "tune --machine tpu_v4 --slice 16x32x32 --workload llama3-405b-block"},
    {"auto_all_reduce_16x32x32", 10, "run --machine tpu_v4 --slice 16x32x32 --collective all-reduce --axis row,col,depth --bytes 64MiB --algorithm auto"},
    {"compare_32x32", 10, "compare --machine tpu_v4 --slice 32x32 --gemm m=524288,n=49152,k=12288 --algorithms all --slice-count 1,4,16"},
    {"validate", 20, "validate"},
};

// How much longer a run takes where devices share the bandwidth of their memory: where it always fits, and where matmuls, cuts and gathers want more.
struct ComparedCommand {
  const char* name;
  double most;  // times as long as the same with chip.memory_sharing=separate
  const char* line;
};
constexpr ComparedCommand shared_memory[] = {
    {"memory_fits_64x64", 1.05, "run --machine tpu_v4 --fold off --slice 64x64 --gemm m=524288,n=49152,k=12288 --algorithm collective"},
    {"memory_short_64x64", 2, "run --machine tpu_v4 --fold off --slice 64x64 --gemm m=524288,n=49152,k=12288 --algorithm meshslice --slice-count 8"},
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream words{line};
  return {std::istream_iterator<std::string>{words}, {}};
}

double seconds_of(benchmark::State& state, const std::string& line) {
  std::ostringstream out, err;
  Console console{out, err};
  Stopwatch watch;
  const int status = run_command(words_of(line), console);
  if (status == exit_bad_input) state.SkipWithError(err.str().c_str());
  return watch.lap();
}

void compare_memory(benchmark::State& state, const ComparedCommand& command) {
  constexpr int turns = 3;
  for (auto _ : state) {
    double shared = 1e9, separate = 1e9;  // the least of some turns, one after the other
    for (int i = 0; i < turns; ++i) {
      separate = std::min(separate, seconds_of(state, std::string{command.line} + " --set chip.memory_sharing=separate"));
      shared = std::min(shared, seconds_of(state, command.line));
    }
    state.SetIterationTime(shared);
    at_most(state, "times_as_long_as_separate", shared / separate, command.most);
  }
}

void run_line(benchmark::State& state, const TimedCommand& command) {
  for (auto _ : state) {
    const double seconds = seconds_of(state, command.line);
    state.SetIterationTime(seconds);
    at_most(state, "seconds", seconds, command.most_seconds);
  }
}

[[maybe_unused]] const bool registered = [] {
  for (const TimedCommand& command : commands)
    benchmark::RegisterBenchmark((std::string{"command_"} + command.name).c_str(), [&command](benchmark::State& state) { run_line(state, command); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  for (const ComparedCommand& command : shared_memory)
    benchmark::RegisterBenchmark((std::string{"command_"} + command.name).c_str(), [&command](benchmark::State& state) { compare_memory(state, command); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace podsim::bench
