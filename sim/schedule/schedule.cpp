#include "sim/schedule/schedule.hpp"

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr std::array<std::string_view, dtype_count> dtype_names{"f32", "bf16", "f8e4m3fn", "f8e5m2", "s8", "c64", "s32"};
constexpr std::array<std::string_view, collective_kind_count> collective_names{"all-gather", "reduce-scatter", "all-reduce", "all-to-all",
                                                                               "broadcast",  "reduce",         "permute"};

template <class Enum, std::size_t n>
std::optional<Enum> named(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

/// A constant needs no coordinates.
std::int64_t distance_of(const Mesh& mesh, const Shift& shift, DeviceId at) {
  return shift.by.terms.empty() && shift.by.modulus == 0 ? shift.by.constant : evaluate(shift.by, mesh.coordinates(at));
}

}  // namespace

std::string_view name_of(DType dtype) { return dtype_names[static_cast<std::size_t>(dtype)]; }
std::optional<DType> dtype_named(std::string_view name) { return named<DType>(dtype_names, name); }
Bytes size_of(DType dtype) {
  constexpr std::array<int, dtype_count> sizes{4, 2, 1, 1, 1, 8, 4};
  return Bytes{sizes[static_cast<std::size_t>(dtype)]};
}

std::string_view product_dtype_names() { return "f32, bf16, f8e4m3fn, f8e5m2 or s8"; }

std::string_view name_of(InSwitch role) {
  constexpr std::array<std::string_view, 4> names{"none", "carrier", "copy", "addend"};
  return names.at(static_cast<std::size_t>(role));
}

std::string_view name_of(CollectiveKind kind) { return collective_names[static_cast<std::size_t>(kind)]; }
std::optional<CollectiveKind> collective_kind_named(std::string_view name) { return named<CollectiveKind>(collective_names, name); }

Affine own(const AxisView& axis, std::int64_t add, bool wrap) { return wrap ? Affine{{AxisTerm{axis, 1, add}}} : Affine{{AxisTerm{axis, 1}}, add}; }

std::int64_t evaluate(const Affine& affine, const Coordinates& at) {
  std::int64_t value = affine.constant;
  for (const AxisTerm& term : affine.terms) {
    std::int64_t coordinate = coordinate_on(at, term.axis);
    if (term.add != 0) {
      coordinate = (coordinate + term.add) % term.axis.size;
      if (coordinate < 0) coordinate += term.axis.size;
    }
    value += term.coefficient * coordinate;
  }
  if (affine.modulus == 0) return value;
  value %= affine.modulus;
  return value < 0 ? value + affine.modulus : value;
}

DeviceId receiver_of(const Mesh& mesh, const Shift& shift, DeviceId sender) {
  if (shift.by_dimension) return mesh.shifted_by_dimension(sender, shift.axis.axis, shift.by.constant);
  return mesh.shifted(sender, shift.axis, distance_of(mesh, shift, sender));
}

// `by` depends on the other axes only, so it is the same at the receiver.
DeviceId sender_of(const Mesh& mesh, const Shift& shift, DeviceId receiver) {
  if (shift.by_dimension) return mesh.shifted_by_dimension(receiver, shift.axis.axis, -shift.by.constant);
  return mesh.shifted(receiver, shift.axis, -distance_of(mesh, shift, receiver));
}

bool leaves_axis(const Mesh& mesh, const Shift& shift, const Coordinates& sender) {
  if (shift.by_dimension || mesh.wraps(shift.axis)) return false;
  const std::int64_t by = evaluate(shift.by, sender), end = coordinate_on(sender, shift.axis) + by;
  return by % shift.axis.size != 0 && (end < 0 || end >= shift.axis.size);
}

std::int64_t number_of(const Numbering& numbering, std::int64_t row, const Coordinates& at) {
  const std::int64_t first = evaluate(numbering.first, at);
  if (numbering.block == 0) return first + row;
  return first + row / numbering.block * numbering.block * numbering.apart + row % numbering.block;
}

int split_of(const Local& local, std::size_t region) { return region < local.splits.size() ? local.splits[region] : 1; }

MatrixExtents matrix_extents(const Local& local, std::size_t region) {
  const Region& of = region < local.reads.size() ? local.reads[region] : local.writes[region - local.reads.size()];
  MatrixExtents extents{1, 1};
  for (std::size_t i = 0; i < of.dims.size(); ++i)
    (static_cast<int>(i) < split_of(local, region) ? extents.rows : extents.columns) *= of.dims[i].length;
  return extents;
}

std::int64_t elements_of(const Region& region) {
  std::int64_t count = 1;
  for (const Range& range : region.dims) count *= range.length;
  return count;
}

Box evaluate(const Region& region, const Coordinates& at) {
  Box box{region.buffer, {}, {}};
  box.begin.reserve(region.dims.size());
  box.length.reserve(region.dims.size());
  for (const Range& range : region.dims) {
    box.begin.push_back(range.offset + evaluate(range.index, at) * range.stride);
    box.length.push_back(range.length);
  }
  return box;
}

bool overlap(const Box& a, const Box& b) {
  if (a.buffer != b.buffer) return false;
  PODSIM_ASSERT(a.begin.size() == b.begin.size());
  for (std::size_t i = 0; i < a.begin.size(); ++i)
    if (a.begin[i] + a.length[i] <= b.begin[i] || b.begin[i] + b.length[i] <= a.begin[i]) return false;
  return true;
}

bool contains(const Box& outer, const Box& inner) {
  if (outer.buffer != inner.buffer) return false;
  for (std::size_t i = 0; i < outer.begin.size(); ++i)
    if (inner.begin[i] < outer.begin[i] || inner.begin[i] + inner.length[i] > outer.begin[i] + outer.length[i]) return false;
  return true;
}

bool holds(const Guard& guard, const Coordinates& at) {
  return std::all_of(guard.begin(), guard.end(), [&](const Condition& condition) {
    const std::int64_t value = evaluate(condition.value, at);
    return condition.low <= value && value < condition.high;
  });
}

MatmulExtents extents_of(const Matmul& matmul) {
  const auto product = [](const Region& region, int first, int last) {
    std::int64_t count = 1;
    for (int i = first; i < last; ++i) count *= region.dims[static_cast<std::size_t>(i)].length;
    return count;
  };
  const int out_rank = static_cast<int>(matmul.out.dims.size());
  const int left_rank = static_cast<int>(matmul.left.dims.size());
  return {product(matmul.out, 0, matmul.out_split), product(matmul.out, matmul.out_split, out_rank),
          matmul.transpose_left ? product(matmul.left, 0, matmul.left_split) : product(matmul.left, matmul.left_split, left_rank)};
}

SourceLocation location_of(const WrittenAt& place) {
  if (place.file == nullptr) return {};
  return {*place.file, place.line, place.column};
}

Bytes size_of(const Buffer& buffer) {
  std::int64_t count = 1;
  for (const std::int64_t extent : buffer.extents) count *= extent;
  return count * size_of(buffer.dtype);
}

Bytes size_on_device(const Buffer& buffer) { return buffer.on_host || buffer.on_chip ? Bytes{} : size_of(buffer); }

DeviceSet every_device(const Mesh& mesh) { return {{{0, mesh.devices()}}}; }

bool contains(const DeviceSet& set, DeviceId device) {
  return std::any_of(set.intervals.begin(), set.intervals.end(),
                     [&](const DeviceSet::Interval& interval) { return interval.first <= device.value && device.value < interval.last; });
}

int size_of(const DeviceSet& set) {
  int count = 0;
  for (const DeviceSet::Interval& interval : set.intervals) count += interval.last - interval.first;
  return count;
}

Bytes bytes_of(const Program& program, const Region& region) { return elements_of(region) * size_of(program.buffers[region.buffer.index()].dtype); }

std::optional<std::size_t> program_of(const Schedule& schedule, DeviceId device) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p)
    if (contains(schedule.programs[p].devices, device)) return p;
  return std::nullopt;
}

}  // namespace podsim
