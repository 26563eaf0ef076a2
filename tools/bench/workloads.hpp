// What is timed: systems and lowered schedules.
#pragma once

#include <cstdlib>
#include <iostream>

#include "sim/base/expected.hpp"
#include "sim/model/fold.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/engine/table/engines.hpp"

namespace podsim::bench {

/// The value, or the end of the program: nothing here is anybody's input.
template <class T>
T value_of(Expected<T> expected) {
  if (expected) return *std::move(expected);
  std::cerr << to_text(expected.error()) << '\n';
  std::exit(1);
}

/// CPU seconds of the process, of all its threads and of the children it has waited for.
double cpu_seconds();

/// CPU seconds since the last call, or since it was made. Wall time would depend on what else the computer does.
class Stopwatch {
 public:
  double lap() {
    const double now = cpu_seconds(), seconds = now - last_;
    last_ = now;
    return seconds;
  }

 private:
  double last_ = cpu_seconds();
};

/// A torus with its default mesh: the tpu_v4 machine's values in two dimensions, or links without any cost but bandwidth.
struct Torus {
  Machine machine;
  Grid grid;
  Mesh mesh;
  Placement placement;
};
Torus torus_of(Machine machine, int rows, int columns);
Torus ideal_torus(int rows, int columns);
Torus tpu_v4_torus(int rows, int columns);

/// Row and column ring all-gathers and a matmul, in S slices that overlap.
Schedule sliced_gemm(const Mesh& mesh, std::int64_t slice_count, std::string_view collective = "ring");

/// The products of a GPT-3 block, as many sequences as devices, forward, then backward: MeshSlice OS with S slices of interleaved blocks of `block`.
Schedule gpt3_block(const Mesh& mesh, std::int64_t slice_count, std::int64_t block);

/// Every device sends to one other one and receives from one, a random permutation; of as many bytes each, or of random sizes up to that.
Schedule random_permutation(const Mesh& mesh, std::uint64_t seed, Bytes bytes, bool random_sizes);

/// An all-to-all over all devices as one axis, laid row by row over the torus: every device sends to every other one, a distance at a time.
Schedule pairwise_all_to_all(Torus& torus, Bytes bytes);

Model model_of(const Torus& torus, const Schedule& lowered);
Model folded_model_of(const Torus& torus, const Schedule& lowered);
Timeline run(std::string_view engine, const Model& model, bool record);

}  // namespace podsim::bench
