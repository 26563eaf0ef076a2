// The published tuner of MeshSlice as formulas: it chooses the R x C mesh and the slice count S per layer. It is the baseline that podsim's plans
// must beat; validation/meshslice_tuner compares it to the published reference implementation. It uses no schedule and no engine.
//
// Mesh R x C: dimension 0 is the axis of size R, which splits the rows of a matrix, dimension 1 the axis of size C. P(d) = size of dimension d.
// Elements have two bytes. Extents are divided as integers and remainders are dropped, as in the source.
//
//   GEMM(m, n, k)   first moves                       then moves                        matmul of one slice
//   os              X [m,k], AG along dimension 1     W [k,n], AG along dimension 0     m/R x n/C x k/S
//   ls              W [n,k], AG along dimension 0     Y [m,n], RS along dimension 1     m/R x n/S x k/C
//   rs              X [k,m], AG along dimension 1     Y [m,n], RS along dimension 0     m/S x n/C x k/R
//
//   layer [B,I] -> [B,O]   forward       data gradient   weight gradient
//   os                     os(B, O, I)   ls(B, I, O)     rs(I, O, B)
//   ls                     ls(B, O, I)   os(B, I, O)     rs(O, I, B)
//   rs                     rs(B, O, I)   ls(I, B, O)     os(I, O, B)
//
// The time of a ring, (P-1)(block / bandwidth + hop) with both directions in one bandwidth, is the published model, unchanged; podsim's own closed
// forms are in algorithms/collectives/closed_form.hpp.
//
// Source: github hwnam831/meshslice (MeshSlice, ISCA 2025), Autotuner.py and CostModel.py, branches main and simulation. Its traffic of an rs
// layer divides by a pair of bandwidths and raises an error; here all terms of rs follow from the tables above, like those of os and ls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/gemm/gemm.hpp"
#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The parameters of a ring of one mesh dimension for one kind of collective.
struct ReferenceRing {
  BytesPerSecond bandwidth;  // per device, both directions together
  Seconds hop;               // per step
};

struct ReferenceCollective {
  std::array<ReferenceRing, 2> ring;  // of dimension 0 and 1
  Seconds base;                       // once per collective
};

/// The time of a GEMM of S slices; a and b are its two collectives per slice, t its matmul per slice.
///   slower_collective   prologue + max(a, b, t) (S-1) + t; prologue max(a, b) for os, a + b for ls and rs
///   mean_collective     c + max(c, t) (S-1) + t, c = (a + b) / 2
enum class ReferenceGemmRule { slower_collective, mean_collective };

/// The table of candidate slice counts; the two branches of the source differ.
enum class ReferenceSliceCounts { main, simulation };

struct ReferenceParameters {
  std::string name;
  ReferenceCollective all_gather, reduce_scatter;
  FlopsPerSecond flops;  // of a device's matmuls
  ReferenceGemmRule rule = ReferenceGemmRule::slower_collective;
  ReferenceSliceCounts slice_counts = ReferenceSliceCounts::main;
};

/// The published sets: "tpu_measured", fitted on a 4x4 slice of TPU v4, and "simulation_fit", fitted to the authors' simulator.
std::vector<std::string> reference_parameter_sets();

/// A published set. Errors: an unknown name (the message names similar ones).
Expected<ReferenceParameters> reference_parameters(std::string_view name);

/// The set that a machine implies; it is named after the machine. Rule and candidates are those of tpu_measured.
///   bandwidth   grid: 2 * link bandwidth (both directions of a ring), of x for dimension 0 and y for dimension 1; rail: once, because a device has
///               one port per dimension. Times the collective's efficiency for large inputs
///   hop         latency of that link (rail: twice, to the switch and back) + software.per_message
///   base        software.launch of the collective
///   flops       bf16 peak * matmul_efficiency
/// The model ignores sharing: devices that share a chip's links each get the full bandwidth, and a folded mesh axis gets the link of one dimension.
ReferenceParameters from_machine(const Machine& machine);

/// base + (P-1) (block / bandwidth + hop): an all-gather of P blocks of this size, or a reduce-scatter into them, along dimension 0 or 1.
Seconds reference_time(const ReferenceCollective& collective, int dimension, int devices, Bytes block);

struct ReferenceShape {
  int rows = 0, cols = 0;  // R, C
  friend bool operator==(const ReferenceShape&, const ReferenceShape&) = default;
};

/// Candidate shapes: R = 4, 8, 16, ... for which R divides the chips and C = chips / R >= 4; R increasing. Empty if there are none.
std::vector<ReferenceShape> reference_shapes(int chips);

/// A product [B, I] x [I, O] and its two gradients.
struct ReferenceLayer {
  std::string name;
  std::int64_t B = 0, I = 0, O = 0;  // B: tokens of all sequences of the batch
  friend bool operator==(const ReferenceLayer&, const ReferenceLayer&) = default;
};

/// The products with weights in a transformer block of width H = heads * head_dim: "qkv" H -> 3H, "projection" H -> H, "feed-forward 1" H -> 4H,
/// "feed-forward 2" 4H -> H.
std::vector<ReferenceLayer> block_layers(std::int64_t heads, std::int64_t head_dim, std::int64_t tokens);

/// O > I and B >= I: os; else I >= O and B >= O: ls; else rs. The largest of the three matrices is stationary.
Dataflow reference_dataflow(const ReferenceLayer& layer);

// The functions below take layers with extents of 1 to 2^30.

/// Candidate slice counts, increasing, from n = D / lcm(R, C) / 8, which counts the blocks of 8 along D, the extent that is cut into slices
/// (os: I, ls: O, rs: B). The first of these that divides n decides, in this order:
///
///   main                                                   simulation
///   48   3 4 6 8 12 16 24   12   3 4 12    4   4            96   3 4 6 8 12 16 24 32
///   40   4 5 8 10 20        10   5 10      5   5           160   4 5 8 10 16 20 32
///   24   3 4 6 8 12 24       8   4 8       none  n itself   32   4 8 16 32
///   20   4 5 10 20           6   3 6                        48   3 4 6 8 12 16 24
///   16   4 8 16                                             80   4 5 8 10 16 20 40
///                                                          then those of main from 40 on
///
/// The candidates are not all divisors of n: n = 12 lacks 6, and 1 and 2 are candidates only for n = 1 or 2. The published figures, of GPT-3, contain
/// the rows 96, 48, 24, 12, 6 and none. n = 0: no candidates (in the source, 0 is divisible by 48).
std::vector<int> reference_slice_counts(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape);

/// The time that the links work: over the three GEMMs of the layer, the sum of the larger bytes (P-1) / bandwidth / (RC) of the two collectives.
Seconds reference_traffic(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape);

/// Over the three GEMMs, the sum of S * the larger of (P-1) hop + base.
Seconds reference_latency(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count);

/// The time of the first and last transfers, which nothing hides: over the three GEMMs the sum of 1/S of the traffic, with both collectives added for
/// ls and rs.
Seconds reference_pipeline(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count);

/// Forward and backward time of the layer by the GEMM rule.
Seconds reference_emulated(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count);

struct ReferenceTimes {
  int slice_count = 0;
  Seconds latency, pipeline, emulated;
};

struct ReferenceLayerPlan {
  ReferenceLayer layer;
  Dataflow dataflow = Dataflow::os;
  Seconds traffic;
  std::vector<ReferenceTimes> candidates;  // in increasing S, never empty
  std::size_t chosen = 0;                  // least latency + 2 pipeline
  [[nodiscard]] const ReferenceTimes& choice() const { return candidates[chosen]; }
  [[nodiscard]] Seconds best_emulated() const;  // the least over all candidates
};

struct ReferenceShapePlan {
  ReferenceShape shape;
  std::vector<ReferenceLayerPlan> layers;       // as given
  [[nodiscard]] Seconds cost() const;           // sum of traffic + latency at the chosen S: what shapes are compared by
  [[nodiscard]] Seconds emulated() const;       // of the plan: all layers at the chosen S
  [[nodiscard]] Seconds best_emulated() const;  // all layers at the S that is best by the same model
};

struct ReferenceTuning {
  std::vector<ReferenceShapePlan> shapes;  // all candidates, R increasing, never empty
  std::size_t best = 0;                    // least cost
  [[nodiscard]] const ReferenceShapePlan& choice() const { return shapes[best]; }
};

/// Evaluates all candidate shapes and chooses one. Ties go to the first, so to the smaller S and the smaller R; the published figures contain no tie.
/// A shape on which some layer has no slice counts is left out. Errors: no layers, an extent outside 1 to 2^30, no shape for this number of chips or
/// these layers.
Expected<ReferenceTuning> tune_by_reference(const std::vector<ReferenceLayer>& layers, int chips, const ReferenceParameters& parameters);

}  // namespace podsim
