// The published tuner of MeshSlice, as formulas: which R x C mesh, and which slice count S per layer. The baseline that our own plans have to
// beat; held to the published reference implementation by validation/meshslice_tuner. It sees no schedule and no engine.
//
// Mesh R x C: dimension 0 is the axis of size R, along which rows of a matrix are cut, dimension 1 the axis of size C. P(d) = size of dimension d.
// Elements have two bytes; extents are divided as integers, whatever remains is dropped, as there.
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
// Its time of a ring, (P-1)(block / bandwidth + hop) with both directions in one bandwidth, is the published model and stays as it is published; our
// own closed forms are in algorithms/collectives/closed_form.hpp.
//
// Source: github hwnam831/meshslice (MeshSlice, ISCA 2025), Autotuner.py and CostModel.py, branches main and simulation. Its traffic of an rs
// layer divides by a pair of bandwidths and stops; here all terms of rs follow from the tables above, like those of os and ls.
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

/// What a ring of one mesh dimension does for one kind of collective.
struct ReferenceRing {
  BytesPerSecond bandwidth;  // of a device, both directions together
  Seconds hop;               // per step
};

struct ReferenceCollective {
  std::array<ReferenceRing, 2> ring;  // of dimension 0 and 1
  Seconds base;                       // once per collective
};

/// What a GEMM of S slices takes, a and b its two collectives of one slice, t its matmul of one slice.
///   slower_collective   prologue + max(a, b, t) (S-1) + t; prologue max(a, b) for os, a + b for ls and rs
///   mean_collective     c + max(c, t) (S-1) + t, c = (a + b) / 2
enum class ReferenceGemmRule { slower_collective, mean_collective };

/// Which slice counts are candidates: the branches of the source have different tables.
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

/// A published set. Errors: an unknown name (names the near ones).
Expected<ReferenceParameters> reference_parameters(std::string_view name);

/// The set that a machine file implies; its name is the machine's. Rule and candidates are those of tpu_measured.
///   bandwidth   grid: 2 * link bandwidth (both directions of a ring), of x for dimension 0 and y for dimension 1; rail: once, as a device has
///               one port per dimension. Times the collective's efficiency for large inputs.
///   hop         latency of that link (rail: twice, to the switch and back) + software.per_message
///   base        software.launch of the collective
///   flops       bf16 peak * matmul_efficiency
/// Devices that share a chip's links are each given all of it, and a mesh axis that folds several dimensions the link of one: the model knows no
/// better.
ReferenceParameters from_machine(const Machine& machine);

/// base + (P-1) (block / bandwidth + hop): an all-gather of P blocks of that size, or a reduce-scatter into them, along dimension 0 or 1.
Seconds reference_time(const ReferenceCollective& collective, int dimension, int devices, Bytes block);

struct ReferenceShape {
  int rows = 0, cols = 0;  // R, C
  friend bool operator==(const ReferenceShape&, const ReferenceShape&) = default;
};

/// Candidate shapes: R = 4, 8, 16, .. where R divides the chips and C = chips / R >= 4; R increasing. None: no such shape.
std::vector<ReferenceShape> reference_shapes(int chips);

/// A product [B, I] x [I, O] with its two gradients.
struct ReferenceLayer {
  std::string name;
  std::int64_t B = 0, I = 0, O = 0;  // B: tokens, all sequences of the batch
  friend bool operator==(const ReferenceLayer&, const ReferenceLayer&) = default;
};

/// The products with weights of a transformer block of width H = heads * head_dim: "qkv" H -> 3H, "projection" H -> H, "feed-forward 1" H -> 4H,
/// "feed-forward 2" 4H -> H.
std::vector<ReferenceLayer> block_layers(std::int64_t heads, std::int64_t head_dim, std::int64_t tokens);

/// O > I and B >= I: os; else I >= O and B >= O: ls; else rs. The largest of the three matrices stays.
Dataflow reference_dataflow(const ReferenceLayer& layer);

// What follows takes layers with extents of 1 to 2^30.

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
/// So not every divisor of n: n = 12 lacks 6, and 1 or 2 are candidates of n = 1 or 2 only. The published figures, of GPT-3, show the rows 96, 48,
/// 24, 12, 6 and none. n = 0: no candidates (there, 0 is divisible by 48).
std::vector<int> reference_slice_counts(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape);

/// Over the three GEMMs of the layer, the sum of the larger of bytes (P-1) / bandwidth / (RC) of the two collectives: how long the links work.
Seconds reference_traffic(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape);

/// Over the three GEMMs, the sum of S * the larger of (P-1) hop + base.
Seconds reference_latency(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count);

/// Over the three GEMMs, the sum of 1/S of the first and last transfers, which nothing hides: as traffic, but their sum for ls and rs.
Seconds reference_pipeline(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count);

/// Forward and backward of the layer, by the rule for GEMMs.
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
  [[nodiscard]] Seconds best_emulated() const;  // over the candidates, whichever was chosen
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

/// Every candidate shape, and the choice. Of equals the first is chosen, so the smaller S and the smaller R; the published figures hold no tie.
/// A shape that leaves a layer without slice counts is left out. Errors: no layers, an extent outside 1 to 2^30, no shape
/// for so many chips or such layers.
Expected<ReferenceTuning> tune_by_reference(const std::vector<ReferenceLayer>& layers, int chips, const ReferenceParameters& parameters);

}  // namespace podsim
