// The schedule: what every device does, as data. Algorithms write it, engines read it, neither knows the other.
//
// A Program is SPMD: one task list for a set of devices, with relative peers, and with regions and guards that are affine in the device's
// own coordinates (the meaning of shard_map). MPMD is several programs on disjoint device sets. Sizes follow from regions and are never
// stored, so engines cannot disagree on what moved. Everything here is a plain value: copied, compared, printed, diffed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantity.hpp"
#include "sim/mesh/mesh.hpp"
#include "sim/schedule/collective_kind.hpp"
#include "sim/schedule/local_kind.hpp"
#include "sim/schedule/reference_program.hpp"
#include "sim/schedule/source_module.hpp"

namespace podsim {

/// Visitor for std::visit from lambdas; breaks the build when a variant gains a member.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

/// Element types, those that a Matmul takes first. f8e4m3fn: 4 bits of exponent, 3 of mantissa, no infinity, up to 448. f8e5m2: up to 57344, with
/// infinities. s8: whole numbers from -128 to 127. c64: two float32, the real part first. s32: whole numbers, such as indices of rows.
enum class DType { f32, bf16, f8e4m3fn, f8e5m2, s8, c64, s32 };
inline constexpr int dtype_count = 7;
inline constexpr int product_dtype_count = 5;
constexpr bool is_product_dtype(DType dtype) { return static_cast<int>(dtype) < product_dtype_count; }
constexpr bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }  // that arithmetic other than products takes
std::string_view name_of(DType dtype);  // "f8e4m3fn"
std::string_view product_dtype_names();  // "f32, bf16, f8e4m3fn, f8e5m2 or s8"
std::optional<DType> dtype_named(std::string_view name);
Bytes size_of(DType dtype);
/// What products of matrices of this type are made in: bf16 of 8-bit floats, s32 of s8, otherwise the same.
constexpr DType product_result(DType operands) {
  if (operands == DType::s8) return DType::s32;
  return operands == DType::f8e4m3fn || operands == DType::f8e5m2 ? DType::bf16 : operands;
}
/// Whether a Matmul of these operands may have that result: floats one of at least their width, s8 s32.
constexpr bool is_product_of(DType operands, DType result) {
  if (operands == DType::s8) return result == DType::s32;
  return is_product_dtype(operands) && (result == operands || result == product_result(operands) || result == DType::f32);
}
/// Of a float32 product: as many as JAX's HIGHEST takes on a TPU.
inline constexpr int most_float32_passes = 6;

// ---- Where: affine indices, regions, guards -------------------------------------------------------------------------------------------

/// coefficient * coordinate; with `add`, coefficient * ((coordinate + add) mod the view's size), the position of a neighbour on a ring.
struct AxisTerm {
  AxisView axis;
  std::int64_t coefficient = 1;
  std::int64_t add = 0;
  friend bool operator==(const AxisTerm&, const AxisTerm&) = default;
};

/// (sum of terms + constant) mod modulus, in [0, modulus); modulus 0 = none.
struct Affine {
  std::vector<AxisTerm> terms;
  std::int64_t constant = 0;
  std::int64_t modulus = 0;
  Affine() = default;
  Affine(std::int64_t c) : constant{c} {}  // NOLINT(google-explicit-constructor): a constant is an affine function
  Affine(std::vector<AxisTerm> t, std::int64_t c = 0, std::int64_t n = 0) : terms{std::move(t)}, constant{c}, modulus{n} {}
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// The device's own coordinate on `axis`, plus `add`. `wrap`: modulo the size of the axis.
Affine own(const AxisView& axis, std::int64_t add = 0, bool wrap = true);
std::int64_t evaluate(const Affine& affine, const Coordinates& at);

/// `length` elements of one dimension of a buffer, from offset + index*stride on.
struct Range {
  Affine index;
  std::int64_t stride = 1;
  std::int64_t offset = 0;
  std::int64_t length = 1;
  friend bool operator==(const Range&, const Range&) = default;
};

/// All of [0, length); block number `index` of blocks of `length` elements; [begin, begin + length).
inline Range all(std::int64_t length) { return {{}, 1, 0, length}; }
inline Range block(Affine index, std::int64_t length) { return {std::move(index), length, 0, length}; }
inline Range span(std::int64_t begin, std::int64_t length) { return {{}, 1, begin, length}; }

/// A box of a buffer, one range per dimension. A region never wraps around: use two regions instead.
struct Region {
  BufferId buffer;
  std::vector<Range> dims;
  friend bool operator==(const Region&, const Region&) = default;
};

std::int64_t elements_of(const Region& region);

/// A region on one device: [begin, begin + length) per dimension.
struct Box {
  BufferId buffer;
  std::vector<std::int64_t> begin, length;
  friend bool operator==(const Box&, const Box&) = default;
};
Box evaluate(const Region& region, const Coordinates& at);
bool overlap(const Box& a, const Box& b);
bool contains(const Box& outer, const Box& inner);

/// low <= value < high
struct Condition {
  Affine value;
  std::int64_t low = 0, high = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};
/// A conjunction; empty = always.
using Guard = std::vector<Condition>;
bool holds(const Guard& guard, const Coordinates& at);

// ---- What: operations -----------------------------------------------------------------------------------------------------------------

/// out (+)= left * right, 2mnk flops. `split` groups the dimensions of an operand: the first `split` dimensions form one group, the rest the other,
/// each flattened row-major. left is rows|contraction, right is contraction|columns, out is rows|columns; a transposed operand has its two groups
/// swapped. left and right have one dtype, which decides the rate; out is as is_product_of() says.
struct Matmul {
  Region left, right, out;
  int left_split = 1, right_split = 1, out_split = 1;
  bool transpose_left = false, transpose_right = false;
  bool accumulate = false;
  int float32_passes = 0;  // of f32: how precise, as Chip::float32_passes; 0: as the machine does
  friend bool operator==(const Matmul&, const Matmul&) = default;
};

struct MatmulExtents {
  std::int64_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatmulExtents&, const MatmulExtents&) = default;
};
/// From the regions of out and left; validate() checks that right agrees.
MatmulExtents extents_of(const Matmul& matmul);

enum class Unit { core, dma };

/// The numbers of a region's rows in the whole array: row i is number first + (i / block) * block * apart + i mod block. Rows of a block-cyclic
/// array are in blocks that are `apart` blocks apart; without a block all are adjacent.
struct Numbering {
  Affine first;
  std::int64_t block = 0, apart = 1;
  friend bool operator==(const Numbering&, const Numbering&) = default;
};
std::int64_t number_of(const Numbering& numbering, std::int64_t row, const Coordinates& at);

/// The numbers of an optimiser's step. `step` counts from 1.
struct Optimiser {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  std::int64_t step = 1;
  friend bool operator==(const Optimiser&, const Optimiser&) = default;
};

/// The cost of an operation whose arithmetic is not known (LocalKind::opaque), as a trace or a compiler states it.
struct OpaqueCost {
  Flops matrix{}, vector{};       // by unit, of one device
  DType dtype = DType::bf16;      // of the operands of the matrix flops
  std::optional<Bytes> bytes{};   // that cross memory; none: every region once
  std::optional<Seconds> time{};  // what it takes, alone on the memory, in place of flops, bytes and software.launch. It draws no more than memory gives in it
  Seconds launch{}, rest{};       // of `time`: its first and last part, in which it draws none of `bytes`; without `time` the launch comes before all else
  int float32_passes = 0;         // of the matrix flops, as Matmul::float32_passes
  std::optional<MatmulExtents> product{};  // of each product, where the matrix flops are products of the same extents; none: they run at the best efficiency, unpadded
  bool attention = false;         // the matrix flops are those of a kernel of attention, of which chip.attention_efficiency tells how fast it is
  int operation = -1;             // its number in Schedule::source, which knows what it computes; -1: nothing does. Not saved
  friend bool operator==(const OpaqueCost&, const OpaqueCost&) = default;
};

/// local_kind.hpp defines each kind: its operands, its result and its cost.
struct Local {
  LocalKind kind = LocalKind::copy;
  std::vector<Region> reads, writes;
  double factor = 1;  // scale; N of a norm, of a loss
  Unit unit = Unit::core;
  bool features_first = false;  // of what is read: norms, attention, transpose, logits
  bool causal = false;          // attention
  std::array<int, 2> dims{};    // of FFTs, twiddle factors and blocks
  std::vector<int> splits{};    // of matrices: how many of a region's first dimensions form the rows; by region, reads first. None: 1 for each
  std::vector<Numbering> numbering{};  // of rows and columns; none: they count from 0
  std::int64_t classes = 0;            // cross-entropy: how many there are, on all devices
  Optimiser optimiser{};               // sgd, adamw
  OpaqueCost opaque{};                 // opaque
  friend bool operator==(const Local&, const Local&) = default;
};

/// The rows and columns of a Local's region as a matrix; `region` counts reads first.
struct MatrixExtents {
  std::int64_t rows = 0, columns = 0;
  friend bool operator==(const MatrixExtents&, const MatrixExtents&) = default;
};
int split_of(const Local& local, std::size_t region);
MatrixExtents matrix_extents(const Local& local, std::size_t region);

/// The arithmetic of a well-shaped Local (check_shapes() finds no problem).
inline LocalFlops flops_of(const Local& local) { return traits_of(local.kind).flops(local); }

/// What a receiver does with what arrives: target = it, target + it, or the larger one, element by element.
enum class Combine { replace, add, maximum };

/// What the switch between sender and receiver does with a Shift. It adds up what reaches one device from all others, or copies what one device sends
/// to all others, so that the device's own link carries it once. Each such group is P - 1 Shifts of equal size by different distances; one of them is
/// the carrier. `link[..].in_switch_efficiency` says which switches can.
///   none     only passes it on
///   carrier  uses both links
///   copy     not the sender's link: the switch copies what the carrier with the same source brings
///   addend   not the receiver's link: the switch adds it to what it sends there. Its value still lands in a region of its own, which add-in-switch sums
enum class InSwitch { none, carrier, copy, addend };
std::string_view name_of(InSwitch role);  // "carrier"

/// Every device of the program sends `source` to coordinate + by on `axis` and receives into `target` from coordinate - by. `by` may be affine in the
/// OTHER axes; on a device where by = 0 (modulo the size) nothing happens. The source is evaluated at the sender, the target at the receiver. The
/// task's guard decides who sends; exactly the destinations of those senders have a receive half.
///
/// `by_dimension`: `axis` is the whole of a folded axis, `by` a constant nearer to 0 than the axis's size, and each dimension goes round by its own digit of it
/// (Mesh::shifted_by_dimension()), be its ends neighbours or not. On a torus all devices then send the same ways, which a shift that carries from one dimension
/// into the next one does not.
struct Shift {
  AxisView axis;
  Affine by;
  Region source, target;
  Combine combine = Combine::replace;
  std::vector<int> route_order;  // physical dimensions in order of travel; empty: 0 first
  InSwitch in_switch = InSwitch::none;
  bool by_dimension = false;
  friend bool operator==(const Shift&, const Shift&) = default;
};

/// Where a device sends, and who sends to a device; the device itself where nothing moves. Around the axis, be it open or not.
DeviceId receiver_of(const Mesh& mesh, const Shift& shift, DeviceId sender);
DeviceId sender_of(const Mesh& mesh, const Shift& shift, DeviceId receiver);
/// Whether a shift goes off the end of an open axis: the guard of a correct task keeps it from such devices.
bool leaves_axis(const Mesh& mesh, const Shift& shift, const Coordinates& sender);

/// The mesh coordinates of the other device, one Affine per mesh axis in the own coordinates.
using Peer = std::vector<Affine>;

/// The two halves of a transfer as separate tasks, also across programs. Send and Recv match by (channel, sender, receiver, k-th use).
struct Send {
  int channel = 0;
  Peer to;
  Region source;
  std::vector<int> route_order;
  friend bool operator==(const Send&, const Send&) = default;
};
struct Recv {
  int channel = 0;
  Peer from;
  Region target;
  Combine combine = Combine::replace;
  friend bool operator==(const Recv&, const Recv&) = default;
};

/// An operation of all devices along `axes` (first most significant, P devices per group); lowering replaces it. A guard that does not mention these
/// mesh axes says which groups there are. Elements of the two regions correspond in row-major order. Blocks are P equal pieces of a dimension, in mesh order.
///   all-gather      block b of the output's `dim` = input of device b                    count(output) = P * count(input)
///   reduce-scatter  output = sum over devices of their inputs' block number (own position) of `dim`    count(input) = P * count(output)
///   all-reduce      output = sum over devices of their inputs; algorithms cut it along `dim`
///   all-to-all      block a of the output's `dim` = block number (own position) of device a's `split_dim`
///   broadcast       output = input of device `root`
///   reduce          output of device `root` = sum over devices of their inputs; no output on the others
///                   With Reduction::maximum these three take the largest element in place of the sum.
///   permute         output of `to` = input of `from`, for each of `pairs`; outputs of other devices are not written
struct Collective {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::vector<AxisView> axes;
  Region input, output;
  int dim = 0;
  int split_dim = 0;      // all-to-all: the dimension of the input that is split
  std::int64_t root = 0;  // broadcast, reduce: position along the axes
  struct Pair {
    std::int64_t from = 0, to = 0;  // positions along the axes
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  std::vector<Pair> pairs{};  // permute: every position sends at most once and receives at most once
  std::string algorithm{};    // by name, as a compiler chose it; empty, or for policies other than by_dimension(): as the policy says
  Reduction reduction = Reduction::sum;  // all-reduce, reduce-scatter, reduce
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Runs function number `function` of the schedule once, with these buffers of the program in place of its parameters. A Call is a task of the core: it
/// takes its turn in program order, and from its start until all of the function's tasks have ended nothing else runs on the core. So the tasks of
/// the function wait for the core task before the Call, and core tasks behind the Call wait for them. A Call has no guard.
struct Call {
  int function = 0;
  std::vector<BufferId> arguments{};
  friend bool operator==(const Call&, const Call&) = default;
};

using Op = std::variant<Matmul, Local, Shift, Send, Recv, Collective, Call>;

/// Whether the operation is the software launch of a Collective, which counts as communication.
inline bool is_launch(const Op& op) {
  const auto* local = std::get_if<Local>(&op);
  return local != nullptr && traits_of(local->kind).role == LocalRole::communication;
}

// ---- When: tasks, edges ---------------------------------------------------------------------------------------------------------------

/// The halves of a transfer: a Shift has both, a Send the first, a Recv the second. All other tasks have no halves and use `both`.
enum class Half { both, send, receive };  // in Edge::done: both, sent, received; in Edge::gates: both, send, receive

/// The half `gates` of this task waits for the half `done` of an earlier task of the same program on the same device. If the earlier task or its half
/// is absent on a device, the edge is satisfied there; the absent task's own edges are not inherited.
struct Edge {
  TaskId task;
  Half done = Half::both;
  Half gates = Half::both;
  friend bool operator==(const Edge&, const Edge&) = default;
};

/// The Collective that a lowered task belongs to.
struct Origin {
  int collective = 0;  // counts the Collectives of the program in order
  CollectiveKind kind = CollectiveKind::all_gather;
  AxisView axis;
  Bytes input_bytes;  // per device
  Bytes own_block{};  // out of place: the part of the result that each device has already, and copies
  bool in_switch = false;  // a switch adds up or copies some of its transfers
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// The position of a task or buffer in its file, for messages. All positions compare equal, because they are not part of a schedule's meaning.
struct WrittenAt {
  std::shared_ptr<const std::string> file;  // null: not read from a file
  int line = 0, column = 0;                 // from 1; 0: a binary file
  friend bool operator==(const WrittenAt&, const WrittenAt&) { return true; }
};
SourceLocation location_of(const WrittenAt& place);

struct Task {
  std::string label;  // for people: "gather X s3"
  Op op;
  std::vector<Edge> after;
  Guard where;
  std::optional<Origin> origin;  // set by lower()
  WrittenAt written_at{};        // a lowered task has that of its Collective
  bool recompute = false;        // of a training step: repeats work whose result was not kept. It changes no time, only how a step's time is split
  friend bool operator==(const Task&, const Task&) = default;
};

// ---- On what: buffers, programs, the whole --------------------------------------------------------------------------------------------

enum class Role { input, output, scratch };

/// Storage on one device. An input or output is a shard of the global tensor `tensor`, row-major: dimension i of the tensor has extents[i] times the
/// sizes of the mesh axes sharding[i] (first most significant); mesh axes that are not named replicate it. If several buffer dimensions stand for one
/// tensor dimension (views of slices, block-cyclic arrays), they flatten row-major. With `unpadded` only elements below those extents of the tensor
/// are data; the others are padding, 0 in inputs. `unpadded` has an extent for each dimension of the tensor: `grouped` says how many buffer dimensions
/// stand for each (none: one). Such a group is one dimension, or [blocks, 1 sharded, block...], where whole blocks are data. A claim is about the
/// tensor with its padding or without it, whichever has its number of elements.
struct Buffer {
  std::string name;
  std::vector<std::int64_t> extents;
  DType dtype = DType::f32;
  Role role = Role::scratch;
  std::string tensor;                           // input, output
  std::vector<std::vector<AxisView>> sharding;  // input, output: one list per dimension
  std::vector<std::int64_t> unpadded{};         // input, output: the tensor's extents without padding; empty: there is none
  std::vector<int> grouped{};                   // with unpadded: buffer dimensions per dimension of the tensor
  std::vector<AxisView> unreduced{};            // output: the tensor is the sum of what the devices along these axes hold
  bool on_host = false;                         // in the memory of the chip's host: written by to-host and read by from-host, and by nothing else
  bool on_chip = false;                         // in memory beside HBM (VMEM, or pinned memory of the host): takes none of the device's memory; products read and write it without HBM
  WrittenAt written_at{};
  friend bool operator==(const Buffer&, const Buffer&) = default;
};
Bytes size_of(const Buffer& buffer);
/// Of the device's memory that it takes: none if it is on the host or on the chip.
Bytes size_on_device(const Buffer& buffer);

/// Devices as half-open ranges of indices, increasing and disjoint.
struct DeviceSet {
  struct Interval {
    int first = 0, last = 0;
    friend bool operator==(const Interval&, const Interval&) = default;
  };
  std::vector<Interval> intervals;
  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;
};
DeviceSet every_device(const Mesh& mesh);
bool contains(const DeviceSet& set, DeviceId device);
int size_of(const DeviceSet& set);

struct Program {
  DeviceSet devices;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  friend bool operator==(const Program&, const Program&) = default;
};

/// What programs call: a layer's forward pass, written once however often it runs. The first `parameters` buffers of the body stand for buffers of the
/// caller with equal extents and dtype; the others are scratch of each call. All are scratch here, and the body has no devices: those of its caller.
/// Its transfers are Shifts and Collectives, among the devices of the caller; a body has no Send, Recv or Call.
struct Function {
  std::string name;
  int parameters = 0;
  Program body;
  friend bool operator==(const Function&, const Function&) = default;
};

/// Y[m,n] = left * right over k, by tensor name; a transposed operand is stored [k,m] or [n,k].
struct Product {
  std::string out = "Y", left = "X", right = "W";
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_left = false, transpose_right = false;
  friend bool operator==(const Product&, const Product&) = default;
};

/// The claim of a schedule, which check() verifies: nothing; products (a GEMM; a layer's forward and backward); one collective on regions of
/// program 0; a graph of operations on whole arrays; or what Schedule::source computes.
using Products = std::vector<Product>;
struct SourceResults {
  friend bool operator==(const SourceResults&, const SourceResults&) = default;
};
using Computes = std::variant<std::monostate, Products, Collective, ReferenceProgram, SourceResults>;

struct Schedule {
  std::string name;
  Mesh mesh;
  std::vector<Program> programs;
  Computes computes;
  std::vector<Function> functions{};  // that programs call
  std::shared_ptr<const SourceModule> source{};  // what opaque operations compute, where that is known. Not saved
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The bytes of a region of this program.
Bytes bytes_of(const Program& program, const Region& region);

/// The program that a device runs; nullopt: the device idles.
std::optional<std::size_t> program_of(const Schedule& schedule, DeviceId device);

}  // namespace podsim
