// Distributed FFTs over all dimensions of an array (numpy.fft.fftn, or ifftn with `inverse`), as schedules. Pure functions of a mesh and a problem.
//
//   pencil     three or more dimensions, of which any but the last are divided. FFT along the last dimension, all-to-all along the axes of the one
//              before it, FFT along that, and so on: one all-to-all for each divided dimension
//   slab       the same with one divided dimension, of any number of dimensions
//   four-step  one dimension of n = n1 n2 points, divided over P devices: columns, twiddle factors, rows
//   naive      what a compiler does: gathers the array on every device, all of which transform all of it
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/mesh/sharding.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

enum class FftMethod { pencil, slab, four_step, naive };
inline constexpr std::array fft_methods{FftMethod::pencil, FftMethod::slab, FftMethod::four_step, FftMethod::naive};
std::string_view name_of(FftMethod method);  // "pencil", "slab", "four-step", "naive"
std::optional<FftMethod> fft_method_named(std::string_view name);

/// How the result is stored: as the last FFT leaves it, or with its dimensions where they were, for as many all-to-alls more (four-step: one more).
/// A transposed inverse takes the dimensions as a transposed transform leaves them and puts them back, so ifft(fft(X)) is stored as X.
enum class FftOrder { transposed, natural };
std::string_view name_of(FftOrder order);

struct FftProblem {
  Extents extents{};                            // of the whole array, first dimension first
  std::vector<std::vector<AxisView>> sharding{};  // per dimension, the first axis most significant; dimensions at the end may be left out
  DType input = DType::c64;                     // or f32, which the first FFT reads
  bool inverse = false;                         // scaled by 1/n in all: each FFT divides by its own length
  FftOrder order = FftOrder::transposed;
  int chunks = 1;             // an FFT and its all-to-all in so many parts: the all-to-all of a part overlaps the FFTs of the next ones
  bool slice_copies = false;  // blocks that an all-to-all sends or receives and that are not together in memory are packed and unpacked by copies
  friend bool operator==(const FftProblem&, const FftProblem&) = default;
};

/// Where the result is. Its elements in natural order, row-major, viewed in the extents `view`; dimension i of what is stored is dimension permutation[i] of
/// that view. `extents` and `sharding` are of what is stored. It is c64, on the axes that are not named replicated.
///   pencil, slab   transposed  view = the array's extents [n0,n1,..,nd], permutation 1,2,..,d,0, sharded as the array was: (x,y,-) stays (x,y,-)
///                  inverse     permutation d,0,1,..,d-1
///   four-step      transposed  view [n2,n1], permutation 1,0: stored is [n1,n2], whose element [k1,k2] is number k1 + n1 k2 of the transform; n1 is divided
///   any            natural     view = the array's extents, 0,1,2,..; sharded as the array was
///   naive          always      natural, replicated
struct FftResult {
  Extents extents{};
  std::vector<std::vector<AxisView>> sharding{};
  Extents view{};
  std::vector<int> permutation{};
  friend bool operator==(const FftResult&, const FftResult&) = default;
};

/// The result of a problem, or why the method cannot do it:
///   no dimension, an extent below 1, more entries of the sharding than dimensions, an axis that is named twice, chunks below 1, an input that is
///   neither f32 nor c64
///   the last dimension is divided (not naive; four-step needs it): the message has the spec to reshard to
///   pencil: fewer than three dimensions; slab: two divided dimensions; four-step: other than one dimension
///   an extent that the axes, or axes and chunks, do not divide: the message has the multiple
/// naive takes any sharding; order and chunks say nothing to it.
Expected<FftResult> fft_result(FftMethod method, const FftProblem& problem, const Mesh& mesh);

/// What the extents must be multiples of. Four-step: P^2 with P devices, P^2 chunks if it goes in chunks (natural: P^2 chunks^2). Errors: those of
/// fft_result() that are not about extents.
Expected<Extents> fft_multiples(FftMethod method, const FftProblem& problem, const Mesh& mesh);

/// The distributed method for such an array: pencil with two or more divided dimensions, slab with one or none, four-step for one dimension. nullopt:
/// none, because the last dimension of several is divided.
std::optional<FftMethod> default_fft_method(const FftProblem& problem);

/// Appends the transform of `x`, this device's block of the array, to `y`, its block of the result: regions of the local extents, anywhere in their
/// buffers, of c64 (x: the problem's input). Nothing starts before `after`. Returns the tasks after which y is complete. fft_result() must have
/// accepted the problem: an assert.
///
///   cost     per dimension one pass through memory for the FFT; per divided dimension an all-to-all of the block. P devices along a ring, block of V
///            bytes: about V P/8 / link for each. Packing: a pass for what is not together. naive: an all-gather of the array, and FFTs of all of it
///   example  (x,y,-) on 2x2, 8x8x8: device (0,0) has planes 0..3 and rows 0..3 of them. It transforms its 16 rows, gets columns 0..3 of rows 4..7 from (0,1)
///            and transforms 16 columns of 8; then it gets planes 4..7 of rows 0..3 from (1,0), and transforms across the planes
///   source   pencils and slabs: Pekurovsky: P3DFFT (2012). Four steps: Bailey: FFTs in external or hierarchical memory (1990)
Tasks add_fft(ProgramBuilder& builder, FftMethod method, const FftProblem& problem, const Region& x, const Region& y, const Tasks& after);

/// The whole schedule: input "X", output "Y", and the claim that Y is the transform of X. Errors: those of fft_result().
Expected<Schedule> make_fft(FftMethod method, const Mesh& mesh, const FftProblem& problem);

}  // namespace podsim
