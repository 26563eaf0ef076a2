// The passes of a distributed FFT over one device's block, in order; each becomes a task per chunk.
#pragma once

#include <string>
#include <vector>

#include "algorithms/fft/fft.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {

struct FftPass {
  enum class Kind { view, transform, twiddle, pack, exchange, unpack };
  Kind kind = Kind::view;
  std::vector<AxisView> axes{};  // exchange; twiddle: those that divide dimension `to`
  int from = 0, to = 0;          // transform, twiddle, pack, unpack: Local::dims; exchange: the dimension that is split, the one that is put together
  Extents result{};              // this device's block afterwards
  int cut = -1, cut_after = -1;  // the dimension that chunks divide, of what is read and of what is written; -1: the pass is one task
  std::string label{};
};

/// The passes of a method other than naive, from the block of x to that of y.
struct FftPasses {
  std::vector<FftPass> passes{};
  Extents multiples{};  // what the array's extents must be multiples of
  FftResult result{};
};

/// The problem has passed all checks of fft_result() but that of the multiples. With extents that are no multiples, only `multiples` have a meaning.
FftPasses fft_passes(FftMethod method, const FftProblem& problem, const Mesh& mesh);

/// The axes with more than one device that divide a dimension.
std::vector<AxisView> dividing_axes(const FftProblem& problem, std::size_t dimension);
/// "x+y"
std::string names_of(const std::vector<AxisView>& axes, const Mesh& mesh);

/// naive: gathers x, transforms all of it into y.
Tasks add_naive_fft(ProgramBuilder& builder, const FftProblem& problem, const Region& x, const Region& y, const Tasks& after);

}  // namespace podsim
