// A machine: device, interconnect and software costs, every value with its source. Plain values; files are read by sim/config.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"
#include "sim/machine/hardware_ranges.hpp"
#include "sim/machine/matmul_efficiency.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace podsim {

/// The operations that software charges for. Collective kinds are in the order of CollectiveKind; a Shift or Send written by an algorithm is a
/// permute.
enum class CostKind { matmul, local, all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, permute };
inline constexpr int cost_kind_count = 9;
std::string_view name_of(CostKind kind);
CostKind cost_kind_of(CollectiveKind kind);

template <class T, int n>
using PerKind = std::array<T, static_cast<std::size_t>(n)>;

/// The rates of products: by dtype of the operands, and TF32, which tensor cores of GPUs make of float32.
inline constexpr int peak_count = product_dtype_count + 1, tf32_peak = product_dtype_count;

/// Rates and memory are per device.
struct Chip {
  int devices = 1;                                              // that share the chip's links: 2 on tpu_v3 and tpu7x
  LinkParameters inner;                                         // one direction of the link between two devices of a chip
  PerKind<FlopsPerSecond, peak_count> peak{};                   // peak_of() says what a zero stands for
  int float32_passes = 1;                                       // how precise a float32 product is: 1, 3 or 6, the passes in bf16 on a TPU
  FlopsPerSecond vector_peak = unlimited<FlopsPerSecond>;       // for Locals
  int matmul_tile_m = 1, matmul_tile_n = 1, matmul_tile_k = 1;  // extents are padded up to multiples
  int layout_sublanes = 1, layout_lanes = 1;                    // layout tile of memory: a copied row of r elements costs whole lanes
  double matmul_efficiency = 1;                                 // fraction of peak, for padded extents; with a table or surface its largest value
  MatmulTable matmul_table{};                                   // efficiency by extents (unpadded)
  MatmulSurface matmul_surface{};                               // or a share of the roofline by extents; never both
  double attention_efficiency = 1;                              // of what matmul_efficiency gives: what kernels of attention reach
  int matmul_units = 1;                                         // that the blocks of a product are dealt out to in waves: the SMs of a GPU
  Bytes hbm;                                                    // the largest Bytes: unlimited
  BytesPerSecond hbm_bandwidth = unlimited<BytesPerSecond>;
  double overlap_hbm = 1;                                          // 1: arithmetic hides HBM traffic completely, 0: they add up
  bool memory_shared = true;                                       // whether products, Locals and transfers share the memory's bandwidth
  double transfer_memory_passes = 1;                               // how often the bytes of a transfer pass the memory at each end: quarters
  BytesPerSecond reduce_bandwidth = unlimited<BytesPerSecond>;     // for `combine: add` at a receiver, off the core
  BytesPerSecond injection_bandwidth = unlimited<BytesPerSecond>;  // device to router
  BytesPerSecond ejection_bandwidth = unlimited<BytesPerSecond>;   // router to device
  BytesPerSecond stack_bandwidth = unlimited<BytesPerSecond>;      // of what LocalKind::stack writes
  BytesPerSecond own_block_bandwidth = unlimited<BytesPerSecond>;  // of the copy of a device's own block in an out-of-place collective
  Seconds pivot_latency;                                           // of one column of an LU factorisation, which waits for the column before it
  Seconds cycle;        // of the core's units, which a compiler's estimated cycles count; 0: not known
  BytesPerSecond vmem_load_bandwidth = unlimited<BytesPerSecond>;   // from a TPU's VMEM into its vector registers
  BytesPerSecond vmem_store_bandwidth = unlimited<BytesPerSecond>;  // and back
  Seconds memory_wait;  // of a kernel that a TPU's compiler made and that has an array in memory: before the first of it is there
  friend bool operator==(const Chip&, const Chip&) = default;
};

struct EfficiencyPoint {
  Bytes input;  // the collective's input bytes per device
  double efficiency = 1;
  friend bool operator==(const EfficiencyPoint&, const EfficiencyPoint&) = default;
};

struct Software {
  Seconds per_message;                                                  // every transfer
  PerKind<Seconds, cost_kind_count> launch{};                           // once per operation that an algorithm wrote
  Seconds in_switch_launch;                                             // added for a Collective that a switch adds up or copies
  PerKind<double, cost_kind_count> core_share{};                        // fraction of a dma operation's uncontended duration that occupies the core
  PerKind<std::vector<EfficiencyPoint>, cost_kind_count> efficiency{};  // of links, per collective kind; increasing bytes; empty: 1
  friend bool operator==(const Software&, const Software&) = default;
};

inline constexpr int max_dimensions = 4;

/// The network between slices: a transfer goes through its host to the host of the other slice.
struct DataCentre {
  BytesPerSecond nic_bandwidth = unlimited<BytesPerSecond>;   // of one host, one direction
  BytesPerSecond host_bandwidth = unlimited<BytesPerSecond>;  // chip to host, one direction
  Seconds latency;                                            // one way between hosts of two slices
  Seconds sync;                                               // added per doubling of the number of slices
  friend bool operator==(const DataCentre&, const DataCentre&) = default;
};

/// How the devices of a slice are connected.
///   grid   a link per dimension between neighbours: a mesh or torus
///   rail   a slice NxG is N nodes of G GPUs. link[y]: a GPU's link to the switch of its node. link[x]: its network interface, to the
///          switch of its rail, which joins the GPUs of one number in all nodes.
enum class Interconnect { grid, rail };
inline constexpr int interconnect_count = 2;
std::string_view name_of(Interconnect interconnect);

/// What decides the way round a ring of a grid where both are equally long.
///   sign       that of a shift; of other messages their ends
///   endpoints  the ends of every message: nodes look at a packet's addresses alone, as in IP networks
enum class Routes { sign, endpoints };
inline constexpr int routes_count = 2;
std::string_view name_of(Routes routes);

/// The slices that the vendor offers, and their names.
struct SliceRules {
  bool any_shape = false;              // a fictional machine: no shape is hypothetical, extents above 2 wrap
  int cube = 0;                        // full tori: every extent a multiple of `cube`, all dimensions wrap
  std::vector<int> largest;            // extents of the largest slice; its length is the number of dimensions
  std::vector<std::vector<int>> open;  // smaller slices, as open meshes
  std::vector<int> host = {};          // extents of the chips that one host drives; empty: not stated
  int cores_per_chip = 1;              // the unit of the number in a name: 2 if v4-16 has 8 chips
  std::string name_prefix = {};        // "v5p" of v5p-512; empty: slices have no names
  friend bool operator==(const SliceRules&, const SliceRules&) = default;
};

/// The evidence for a machine's values.
///   spec          specified and published values
///   fitted        calibrated to the observations of `dataset`; `error` is the median relative error on them
///   measured      every value was measured separately
///   hypothetical  a machine that does not exist
enum class TrustLevel { spec, fitted, measured, hypothetical };
inline constexpr int trust_level_count = 4;
std::string_view name_of(TrustLevel level);

/// Smallest and largest size.
struct SizeRange {
  std::int64_t least = 0, most = 0;
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

/// An operation in the observations that a machine was fitted to: number of devices, dimensions, sizes.
struct Coverage {
  CostKind operation = CostKind::matmul;  // local: a copy in memory
  int devices = 1;                        // of a collective's group
  std::string along{};                    // the dimensions along which they differ, "x,y"; "core": the devices of a chip; "slice": several slices
  SizeRange bytes{};                      // input per device; for a copy the bytes copied
  SizeRange m{}, n{}, k{};                // for a product
  friend bool operator==(const Coverage&, const Coverage&) = default;
};

struct Trust {
  TrustLevel level = TrustLevel::spec;
  std::string dataset{};
  std::optional<double> error{};   // median, relative
  std::vector<Coverage> covers{};  // of a fitted machine; empty: its file does not say
  friend bool operator==(const Trust&, const Trust&) = default;
};

struct Machine {
  std::string name, description;
  Chip chip;
  std::array<LinkParameters, max_dimensions> link{};  // x, y, z, w
  Software software;
  DataCentre dcn;
  Interconnect interconnect = Interconnect::grid;
  Routes routes = Routes::sign;
  SliceRules slices;
  bool slice_copies = true;  // whether MeshSlice must copy its slices on this machine
  Trust trust{};
  std::map<std::string, std::string> sources;  // of each value, by its path: "link[x].bandwidth"
  DoubtfulValues doubtful{};
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// `points` with distinct extents; without points `matmul_efficiency` applies to all extents. Replaces a surface.
void set_matmul_points(Chip& chip, std::vector<MatmulPoint> points);
/// Replaces points. The surface is made by matmul_surface_of().
void set_matmul_surface(Chip& chip, MatmulSurface surface);

/// The fraction of the peak that a product of these extents reaches; with a surface of its roofline.
double matmul_efficiency_of(const Chip& chip, std::int64_t m, std::int64_t n, std::int64_t k);

/// What the arithmetic of a product takes: c = padded flops / (peak * efficiency(m, n, k)). With a surface max(c * waves, h) / efficiency instead
/// (matmul_efficiency.hpp), c at the peak: never less than h = memory_time().
Seconds arithmetic_time(const Machine& machine, const Matmul& matmul, DType operands);
/// The same of opaque work, the vector unit beside it; h = bytes / bandwidth. A batch of products has the efficiency of one with all their rows; each is padded by itself.
/// Matrix flops without extents: flops / (peak * chip.matmul_efficiency).
Seconds arithmetic_time(const Machine& machine, const OpaqueCost& cost, double bytes);
/// h, of a result in product_result(operands): left + right + out (+ out if accumulate) over the bandwidth of the memory.
Seconds memory_time(const Machine& machine, const Matmul& matmul, DType operands);

/// The rate of products of these operands. What a chip has no units for takes bf16's. float32 by its passes (0: chip.float32_passes), as
/// jax.lax.Precision: without an f32 peak that many passes in bf16; otherwise 6 of them stand for the f32 peak, fewer for TF32, where the chip has it.
FlopsPerSecond peak_of(const Machine& machine, DType operands, int float32_passes = 0);

/// Piecewise linear in log(bytes), constant beyond the ends; 1 without points.
double efficiency_at(const std::vector<EfficiencyPoint>& points, Bytes input);

/// The time of a product or Local that has the memory to itself, and how it uses the memory: after `launch`, `bytes` flow for the time that lies
/// between, at an even rate; `rest`, which draws no memory, follows.
struct WorkTime {
  Seconds total, launch, rest;
  double bytes = 0;
};

/// launch + max(c, h) + (1 - overlap_hbm) min(c, h), where rest is the last part; c = arithmetic_time(), h = memory_time().
WorkTime matmul_work(const Machine& machine, const Matmul& matmul, DType operands);
/// The same in the dtypes of the product's matrices, where those in buffers that are `on_chip` do not count in h.
WorkTime matmul_work(const Machine& machine, const Program& program, const Matmul& matmul);

/// The same with c = max(vector flops / vector_peak, matrix flops / (peak * matmul_efficiency)), of attention times attention_efficiency, of opaque work
/// arithmetic_time(); of stack at least bytes written / stack_bandwidth, of getrf-panel and solve at least pivots * pivot_latency. The bytes of a region count ceil(r/lanes)*lanes/r
/// times, r = elements contiguous in its buffer's last dimension. alias, join and add-in-switch: zero. opaque: what it states (OpaqueCost). launch: software.launch[kind of its
/// Collective], in_switch_launch if a switch works on it, and, out of place, the own block over own_block_bandwidth. Lowered tasks do not pay
/// launch[local].
WorkTime local_work(const Machine& machine, const Program& program, const Task& task);

inline Seconds matmul_time(const Machine& machine, const Matmul& matmul, DType operands) { return matmul_work(machine, matmul, operands).total; }
inline Seconds local_time(const Machine& machine, const Program& program, const Task& task) { return local_work(machine, program, task).total; }

/// Whether switches of the machine add up and copy.
bool has_adding_switches(const Machine& machine);

/// Shares of a memory's bandwidth are counted in whole numbers: a product takes memory_unit() of them, a transfer passes * memory_unit().
int memory_unit(const Chip& chip);

}  // namespace podsim
