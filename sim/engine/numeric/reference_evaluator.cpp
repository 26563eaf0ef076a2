#include "sim/engine/numeric/reference_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/collective_reference.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/reference_linear_algebra.hpp"
#include "sim/engine/numeric/reference_training.hpp"
#include "sim/engine/numeric/reference_transformer.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {
namespace {

using Array = std::vector<double>;

/// Whether results are new numbers, not operands moved.
bool rounds(const ReferenceProgram& program, const ReferenceNode& node, const Mesh& mesh) {
  switch (node.kind) {
    case ReferenceKind::input:
    case ReferenceKind::transpose:
    case ReferenceKind::reshape:
    case ReferenceKind::slice:
    case ReferenceKind::concatenate:
    case ReferenceKind::one_hot:
    case ReferenceKind::take_rows:
    case ReferenceKind::iota:
    case ReferenceKind::relu: return false;
    case ReferenceKind::block_collective: return terms_of(program, node, mesh) > 1;
    default: return true;
  }
}

double gelu_of(double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }

double gelu_slope_of(double x) {
  const double a = std::sqrt(2 / std::acos(-1.0)), s = 1 / (1 + std::exp(-2 * a * (x + 0.044715 * x * x * x)));
  return s + x * s * (1 - s) * 2 * a * (1 + 3 * 0.044715 * x * x);
}
double silu_slope_of(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}

class Evaluator {
 public:
  Evaluator(const ReferenceProgram& program, const Mesh& mesh, const ReferenceInputs& inputs, ThreadPool& pool, Cancellation stop, Noise noise,
            const GivenArrays& given)
      : program_{program}, mesh_{mesh}, inputs_{inputs}, pool_{pool}, stop_{stop}, noise_{noise}, given_{given} {}

  Expected<std::vector<Array>> run() {
    uses_.assign(program_.nodes.size(), 0);
    for (const ReferenceNode& node : program_.nodes)
      for (const int operand : node.operands) ++uses_[static_cast<std::size_t>(operand)];
    for (const auto& [tensor, node] : program_.outputs) ++uses_[static_cast<std::size_t>(node)];
    values_.resize(program_.nodes.size());
    for (node_ = 0; node_ < program_.nodes.size(); ++node_) {
      if (uses_[node_] == 0 || stop_.requested()) continue;
      const ReferenceNode& node = program_.nodes[node_];
      const auto given = given_.find(static_cast<int>(node_));
      Expected<Array> value = given != given_.end() ? Expected<Array>{given->second} : value_of(node);
      if (!value) return value.error();
      if (given == given_.end() && noise_.unit > 0 && rounds(program_, node, mesh_)) disturb(*value, noise_.unit, 0);
      values_[node_] = *std::move(value);
      for (const int operand : node.operands)
        if (--uses_[static_cast<std::size_t>(operand)] == 0) values_[static_cast<std::size_t>(operand)] = {};
    }
    std::vector<Array> outputs;
    for (const auto& [tensor, node] : program_.outputs) {
      Array& value = values_[static_cast<std::size_t>(node)];
      outputs.push_back(--uses_[static_cast<std::size_t>(node)] == 0 ? std::move(value) : value);
    }
    return outputs;
  }

 private:
  /// The extents of an array of numbers: a complex one has a last dimension of real and imaginary parts, which nothing else touches.
  static Extents extents_of(const ReferenceNode& node) {
    Extents extents = node.extents;
    if (node.complex) extents.push_back(2);
    return extents;
  }
  [[nodiscard]] Extents extents_of(const ReferenceNode& node, std::size_t i) const {
    return extents_of(program_.nodes[static_cast<std::size_t>(node.operands[i])]);
  }
  /// An operand to be changed: itself, if nothing else needs it.
  Array taken(const ReferenceNode& node, std::size_t i) {
    const auto of = static_cast<std::size_t>(node.operands[i]);
    return uses_[of] == 1 ? std::move(values_[of]) : values_[of];
  }
  [[nodiscard]] const Array& operand(const ReferenceNode& node, std::size_t i) const { return values_[static_cast<std::size_t>(node.operands[i])]; }

  void disturb(Array& values, double unit, std::uint64_t stream) const {
    constexpr std::size_t bits = 64;  // of a hash, one for each value
    const std::uint64_t key = counter_hash(noise_.seed, node_, stream);
    for (std::size_t first = 0; first < values.size(); first += bits) {
      const std::uint64_t signs = counter_hash(key, 0, first / bits);
      for (std::size_t i = first; i < std::min(first + bits, values.size()); ++i) values[i] *= 1 + ((signs >> (i - first) & 1) != 0 ? unit : -unit);
    }
  }
  /// The first operand of a sum of K terms.
  const Array& terms(const ReferenceNode& node, Array& room) const {
    const std::int64_t K = terms_of(program_, node, mesh_);
    if (noise_.unit == 0 || K == 1) return operand(node, 0);
    room = operand(node, 0);
    disturb(room, noise_.unit * std::sqrt(static_cast<double>(K)), 1);
    return room;
  }

  template <class Function>
  Array each(const ReferenceNode& node, Function f) {
    Array values = taken(node, 0);
    for (double& value : values) value = f(value);
    return values;
  }

  Expected<Array> value_of(const ReferenceNode& node) {
    switch (node.kind) {
      case ReferenceKind::input: return inputs_(node);
      case ReferenceKind::product: return product(node);
      case ReferenceKind::add: return elementwise(node, [](double a, double b) { return a + b; });
      case ReferenceKind::subtract: return elementwise(node, [](double a, double b) { return a - b; });
      case ReferenceKind::multiply: return elementwise(node, [](double a, double b) { return a * b; });
      case ReferenceKind::divide: return elementwise(node, [](double a, double b) { return a / b; });
      case ReferenceKind::scale: return each(node, [&](double a) { return node.number * a; });
      case ReferenceKind::add_number: return each(node, [&](double a) { return a + node.number; });
      case ReferenceKind::reciprocal: return each(node, [&](double a) { return node.number / a; });
      case ReferenceKind::relu: return each(node, [](double a) { return a < 0 ? 0 : a; });
      case ReferenceKind::gelu: return each(node, gelu_of);
      case ReferenceKind::sum: return sum(node);
      case ReferenceKind::transpose: return transposed(node);
      case ReferenceKind::block_collective: return collective(node);
      case ReferenceKind::reshape: return taken(node, 0);
      case ReferenceKind::slice: return part(node);
      case ReferenceKind::concatenate: return joined(node);
      case ReferenceKind::gelu_slope: return each(node, gelu_slope_of);
      case ReferenceKind::silu: return each(node, [](double a) { return a / (1 + std::exp(-a)); });
      case ReferenceKind::silu_slope: return each(node, silu_slope_of);
      case ReferenceKind::norm_sums: {
        Array room;
        return reference_norm_sums(terms(node, room), extents_of(node, 0), node.extents[1]);
      }
      case ReferenceKind::norm: return reference_norm(operand(node, 0), operand(node, 1), node.extents, extents_of(node, 1)[1]);
      case ReferenceKind::norm_grad:
        return reference_norm_grad(operand(node, 0), operand(node, 1), operand(node, 2), node.extents, extents_of(node, 2)[1]);
      case ReferenceKind::attention: return reference_attention(operand(node, 0), extents_of(node, 0), node.causal, pool_);
      case ReferenceKind::attention_grad: return reference_attention_grad(operand(node, 0), operand(node, 1), node.extents, node.causal, pool_);
      case ReferenceKind::fft: return transform(node);
      case ReferenceKind::lu_pivots: {
        const std::vector<std::int64_t>& rows = factors(node).rows;
        return Array(rows.begin(), rows.end());
      }
      case ReferenceKind::lu_lower: return lower_of(factors(node));
      case ReferenceKind::lu_upper: return upper_of(factors(node));
      case ReferenceKind::solve: {
        const Extents& a = program_.nodes[static_cast<std::size_t>(node.operands[0])].extents;
        return reference_solve(operand(node, 0), operand(node, 1), a.back(), node.extents.size() < a.size() ? 1 : node.extents.back(), pool_);
      }
      case ReferenceKind::square_root: return each(node, [](double a) { return std::sqrt(a); });
      case ReferenceKind::softmax: return reference_softmax(taken(node, 0), node.extents.back());
      case ReferenceKind::log_sum_exp: return reference_log_sum_exp(operand(node, 0), extents_of(node, 0).back());
      case ReferenceKind::one_hot: return of_this(reference_one_hot(operand(node, 0), node.extents.back()));
      case ReferenceKind::take_rows: return of_this(reference_take_rows(operand(node, 0), operand(node, 1), extents_of(node, 0).front()));
      case ReferenceKind::add_rows: {
        Array room;
        return of_this(reference_add_rows(terms(node, room), operand(node, 1), node.extents.front()));
      }
      case ReferenceKind::iota: return numbered(node);
    }
    return Array{};
  }

  /// With the name of the node in its error.
  [[nodiscard]] Expected<Array> of_this(Expected<Array> result) const {
    if (result) return result;
    return Diagnostic{result.error().where, node_name(program_, node_) + ": " + result.error().message, result.error().cause};
  }

  Array product(const ReferenceNode& node) const {
    Array room;
    const Array &a = terms(node, room), &b = operand(node, 1);
    const std::size_t rank = node.extents.size();
    Product of;
    of.m = node.extents[rank - 2], of.n = node.extents[rank - 1], of.k = terms_of(program_, node, mesh_);
    of.transpose_left = node.transpose_left, of.transpose_right = node.transpose_right;
    Array y(static_cast<std::size_t>(element_count(node.extents)));
    const std::int64_t batch = element_count(node.extents) / (of.m * of.n);
    const std::int64_t calls = (of.m - 1) / rows_per_call(of.n, of.k) + 1;
    const std::int64_t bands = std::max(calls, std::min(static_cast<std::int64_t>(pool_.threads()), of.m));
    pool_.for_each(static_cast<std::size_t>(batch * bands), [&](std::size_t i, std::size_t) {
      if (stop_.requested()) return;
      const auto one = static_cast<std::int64_t>(i) / bands, band = static_cast<std::int64_t>(i) % bands;
      multiply_rows(of, a.data() + one * of.m * of.k, b.data() + one * of.k * of.n, y.data() + one * of.m * of.n, of.m * band / bands,
                    of.m * (band + 1) / bands);
    });
    return y;
  }

  /// An operand of these extents, seen in the shape of the result: what is repeated has stride 0.
  static Layout repeated(const Extents& extents, const Extents& result) {
    Layout layout;
    layout.rank = static_cast<int>(result.size());
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::size_t d = result.size() - 1 - i;
      const std::int64_t extent = i < extents.size() ? extents[extents.size() - 1 - i] : 1;
      layout.length[d] = result[d];
      layout.stride[d] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
    return layout;
  }

  template <class Function>
  Array elementwise(const ReferenceNode& node, Function f) const {
    const Extents extents = extents_of(node);
    const Layout a = repeated(extents_of(node, 0), extents), b = repeated(extents_of(node, 1), extents);
    Array y;
    y.reserve(static_cast<std::size_t>(element_count(extents)));
    const double *left = operand(node, 0).data(), *right = operand(node, 1).data();
    for_each_run<2>({&a, &b}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t i = 0; i < count; ++i) y.push_back(f(left[at[0].offset() + i * at[0].stride()], right[at[1].offset() + i * at[1].stride()]));
    });
    return y;
  }

  Array sum(const ReferenceNode& node) const {
    Array room;
    const Array& a = terms(node, room);
    const Extents from = extents_of(node, 0);
    const auto d = static_cast<std::size_t>(node.dim);
    std::size_t inner = 1;
    for (std::size_t i = d + 1; i < from.size(); ++i) inner *= static_cast<std::size_t>(from[i]);
    const auto terms_each = static_cast<std::size_t>(from[d]);
    Array y(a.size() / terms_each, 0.0);
    for (std::size_t i = 0; i < a.size(); ++i) y[i / (inner * terms_each) * inner + i % inner] += a[i];
    return y;
  }

  Array transposed(const ReferenceNode& node) const {
    const Extents from = extents_of(node, 0);
    const Layout whole = repeated(from, from);
    Layout turned = whole;
    for (std::size_t i = 0; i < node.extents.size(); ++i) {
      const std::size_t of = node.permutation.empty() ? node.extents.size() - 1 - i : static_cast<std::size_t>(node.permutation[i]);
      turned.length[i] = from[of];
      turned.stride[i] = whole.stride[of];
    }
    return gathered(operand(node, 0), turned);
  }

  Array part(const ReferenceNode& node) const {
    const Extents from = extents_of(node, 0);
    Extents begin(from.size(), 0);
    begin[static_cast<std::size_t>(node.dim)] = node.offset;
    return gathered(operand(node, 0), box_of(from, begin, extents_of(node)));
  }

  Array joined(const ReferenceNode& node) const {
    const auto dim = static_cast<std::size_t>(node.dim);
    const Extents extents = extents_of(node);
    Array y(static_cast<std::size_t>(element_count(extents)));
    Extents begin(extents.size(), 0);
    for (std::size_t i = 0; i < 2; ++i) {
      const Layout box = box_of(extents, begin, extents_of(node, i));
      auto next = operand(node, i).begin();
      for_each_run<1>({&box}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
        for (std::int64_t j = 0; j < count; ++j) y[static_cast<std::size_t>(at[0].offset() + j * at[0].stride())] = *next++;
      });
      begin[dim] += extents_of(node, i)[dim];
    }
    return y;
  }

  static Array numbered(const ReferenceNode& node) {
    const auto d = static_cast<std::size_t>(node.dim);
    const std::int64_t inner = element_count({node.extents.begin() + node.dim + 1, node.extents.end()});
    Array y(static_cast<std::size_t>(element_count(node.extents)));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<double>(static_cast<std::int64_t>(i) / inner % node.extents[d]);
    return y;
  }

  static Array gathered(const Array& values, const Layout& box) {
    Array y;
    y.reserve(static_cast<std::size_t>(elements_of(box)));
    for_each_run<1>({&box}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
      for (std::int64_t i = 0; i < count; ++i) y.push_back(values[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())]);
    });
    return y;
  }

  // ---- Transforms and factorisations ----

  Array transform(const ReferenceNode& node) {
    const ReferenceNode& of = program_.nodes[static_cast<std::size_t>(node.operands[0])];
    if (of.complex) return reference_fft(taken(node, 0), node.extents, node.dims, node.inverse);
    Array values;
    values.reserve(2 * operand(node, 0).size());
    for (const double real : operand(node, 0)) values.push_back(real), values.push_back(0);
    return reference_fft(std::move(values), node.extents, node.dims, node.inverse);
  }

  /// P, L and U of one array are of one factorisation.
  const ReferenceFactors& factors(const ReferenceNode& node) const {
    const int of = node.operands[0];
    const auto found = factors_.find(of);
    return found != factors_.end() ? found->second : factors_.emplace(of, reference_lu(operand(node, 0), node.extents[0])).first->second;
  }

  // ---- Collectives on blocks ----

  [[nodiscard]] std::vector<AxisView> views_of(const std::vector<int>& axes) const {
    std::vector<AxisView> views;
    for (const int axis : axes) views.push_back(mesh_.whole(axis));
    return views;
  }
  /// The block of a device in the whole array.
  [[nodiscard]] Layout block(const Extents& extents, const Sharding& sharding, DeviceId device) const {
    const Extents length = block_extents(extents, sharding, mesh_);
    Extents begin(extents.size(), 0);
    for (std::size_t d = 0; d < sharding.dims.size(); ++d) begin[d] = length[d] * position_along(mesh_, views_of(sharding.dims[d]), device);
    return box_of(extents, begin, length);
  }
  static Region region_of(const Extents& extents) {
    Region region;
    for (const std::int64_t extent : extents) region.dims.push_back(all(extent));
    return region;
  }

  Expected<Array> collective(const ReferenceNode& node) const {
    const BlockCollective& of = node.collective;
    Array room;
    const Array& a = terms(node, room);
    const Extents from = extents_of(node, 0), to = extents_of(node);
    const std::vector<AxisView> axes = views_of(of.axes);
    Collective definition{of.kind, axes,        region_of(block_extents(from, of.from, mesh_)), region_of(block_extents(to, of.to, mesh_)),
                          of.dim,  of.split_dim};
    definition.reduction = of.reduction;
    for (const auto& [sender, receiver] : of.pairs) definition.pairs.push_back({sender, receiver});
    const std::int64_t P = group_size(node, mesh_);
    if (of.kind == CollectiveKind::permute && of.pairs.empty())
      for (std::int64_t p = 0; p < P; ++p) definition.pairs.push_back({p, ((p + of.shift % P) % P + P) % P});

    Array y(static_cast<std::size_t>(element_count(to)));
    const Array zeros(of.pairs.empty() ? 0 : static_cast<std::size_t>(element_count(block_extents(to, of.to, mesh_))), 0.0);
    std::unordered_map<std::int64_t, DeviceId> written;  // by the offset of a block
    for (int d = 0; d < mesh_.devices() && !stop_.requested(); ++d) {
      if (position_along(mesh_, axes, DeviceId{d}) != 0) continue;
      std::vector<DeviceId> members{DeviceId{d}};
      for (const AxisView& axis : axes) {
        std::vector<DeviceId> more;
        for (const DeviceId member : members)
          for (int i = 0; i < axis.size; ++i) more.push_back(mesh_.shifted(member, axis, i));
        members = std::move(more);
      }
      std::vector<Array> blocks;
      for (const DeviceId member : members) blocks.push_back(gathered(a, block(from, of.from, member)));
      const Expected<CollectiveOutputs> outputs = outputs_of(definition, blocks);
      if (!outputs) return outputs.error();
      for (std::size_t p = 0; p < members.size(); ++p)
        if (const Status put = write(node, members[p], outputs->array_of[p] ? outputs->arrays[*outputs->array_of[p]] : zeros, y, written); !put) return put.error();
    }
    return y;
  }

  Status write(const ReferenceNode& node, DeviceId device, const Array& values, Array& y, std::unordered_map<std::int64_t, DeviceId>& written) const {
    const Layout to = block(extents_of(node), node.collective.to, device);
    const auto [first, fresh] = written.try_emplace(to.offset, device);
    bool same = true;
    std::size_t next = 0;
    for_each_run<1>({&to}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
      for (std::int64_t i = 0; i < count; ++i, ++next) {
        double& target = y[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())];
        if (fresh) target = values[next];
        same &= target == values[next] || (std::isnan(target) && std::isnan(values[next]));
      }
    });
    if (same) return success();
    return Diagnostic{{},
                      fmt::format("{}: its sharding gives {} and {} the same block, but their results differ", node_name(program_, node_),
                                  mesh_.name(first->second), mesh_.name(device))};
  }

  const ReferenceProgram& program_;
  const Mesh& mesh_;
  const ReferenceInputs& inputs_;
  ThreadPool& pool_;
  Cancellation stop_;
  Noise noise_;
  const GivenArrays& given_;
  std::size_t node_ = 0;
  std::vector<Array> values_;
  std::vector<int> uses_;  // still to come, of each
  mutable std::map<int, ReferenceFactors> factors_;  // by the node that was factored
};

}  // namespace

Expected<std::vector<std::vector<double>>> evaluate(const ReferenceProgram& program, const Mesh& mesh, const ReferenceInputs& inputs,
                                                    ThreadPool& pool, Cancellation stop, Noise noise, const GivenArrays& given) {
  if (const Status ready = use_one_blas_thread(); !ready) return ready.error();
  return Evaluator{program, mesh, inputs, pool, stop, noise, given}.run();
}

std::int64_t group_size(const ReferenceNode& node, const Mesh& mesh) {
  std::int64_t devices = 1;
  for (const int axis : node.collective.axes) devices *= mesh.axes()[static_cast<std::size_t>(axis)].size;
  return devices;
}

std::int64_t terms_of(const ReferenceProgram& program, const ReferenceNode& node, const Mesh& mesh) {
  const auto operand = [&]() -> const Extents& { return program.nodes[static_cast<std::size_t>(node.operands[0])].extents; };
  if (node.kind == ReferenceKind::product) return operand()[operand().size() - (node.transpose_left ? 2 : 1)];
  if (node.kind == ReferenceKind::norm_sums) return operand()[1];
  if (node.kind == ReferenceKind::add_rows) return element_count(program.nodes[static_cast<std::size_t>(node.operands[1])].extents);
  if (node.kind == ReferenceKind::sum) return operand()[static_cast<std::size_t>(node.dim)];
  const bool adds = node.collective.kind == CollectiveKind::all_reduce || node.collective.kind == CollectiveKind::reduce_scatter;
  return node.kind == ReferenceKind::block_collective && adds && node.collective.reduction == Reduction::sum ? group_size(node, mesh) : 1;
}

Bytes bytes_to_evaluate(const ReferenceProgram& program, const Mesh& mesh) {
  std::int64_t count = 0, most_in_blocks = 0;
  for (const ReferenceNode& node : program.nodes) {
    count = saturating_add(count, saturating_multiply(element_count(node.extents), node.complex ? 2 : 1));
    if (node.kind == ReferenceKind::lu_upper) count = saturating_add(count, 2 * element_count(node.extents));  // the factors, and A
    if (node.kind != ReferenceKind::block_collective) continue;
    const Extents& from = program.nodes[static_cast<std::size_t>(node.operands[0])].extents;
    const std::int64_t block = (node.complex ? 2 : 1) * saturating_add(element_count(block_extents(from, node.collective.from, mesh)),
                                              element_count(block_extents(node.extents, node.collective.to, mesh)));
    most_in_blocks = std::max(most_in_blocks, saturating_multiply(block, group_size(node, mesh)));
  }
  return Bytes{saturating_multiply(saturating_add(count, most_in_blocks), sizeof(double))};
}

ReferenceProgram program_of(const Products& products) {
  ReferenceProgram program;
  const auto add = [&](ReferenceNode node) {
    program.nodes.push_back(std::move(node));
    return static_cast<int>(program.nodes.size()) - 1;
  };
  for (const Product& product : products) {
    ReferenceNode left, right, result;
    left.tensor = product.left, right.tensor = product.right;
    left.name = "left operand", right.name = "right operand";
    left.extents = product.transpose_left ? Extents{product.k, product.m} : Extents{product.m, product.k};
    right.extents = product.transpose_right ? Extents{product.n, product.k} : Extents{product.k, product.n};
    result.kind = ReferenceKind::product;
    result.operands = {add(std::move(left)), add(std::move(right))};
    result.extents = {product.m, product.n};
    result.transpose_left = product.transpose_left, result.transpose_right = product.transpose_right;
    program.outputs.emplace_back(product.out, add(std::move(result)));
  }
  return program;
}

}  // namespace podsim
