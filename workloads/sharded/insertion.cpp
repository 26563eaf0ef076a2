#include "workloads/sharded/insertion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/invariant.hpp"
#include "workloads/sharded/reshard.hpp"

namespace podsim {

namespace {

using Axes = std::vector<int>;

bool has(const Axes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

void add_new(std::vector<ShardingAlternative>& all, ShardingAlternative alternative) {
  if (std::find(all.begin(), all.end(), alternative) == all.end()) all.push_back(std::move(alternative));
}

// ---- Products ----

/// The part of a product that an axis divides.
struct Part {
  enum class Kind { none, batch, rows, contraction, columns, left_sums, right_sums } kind = Kind::none;
  std::size_t batch = 0;
  friend bool operator==(const Part&, const Part&) = default;
};
using Kind = Part::Kind;

class ProductRules {
 public:
  ProductRules(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands, const std::optional<Sharding>& asked)
      : mesh_{program.mesh}, left_array_{program.operations[static_cast<std::size_t>(operation.operands[0])]},
        right_array_{program.operations[static_cast<std::size_t>(operation.operands[1])]}, rank_{operation.extents.size()}, left_{operands[0]}, right_{operands[1]},
        asked_{asked} {
    const Axes &a = left_.axes_of(rank_ - 1), &b = right_.axes_of(rank_ - 2);
    while (common_ < std::min(a.size(), b.size()) && a[common_] == b[common_]) ++common_;
  }

  std::vector<ShardingAlternative> all() {
    enumerate(false);
    std::size_t axes = 0;
    for (const MeshAxis& axis : mesh_.axes()) axes += axis.size > 1 ? 1 : 0;
    constexpr std::size_t most_axes = 3;
    if (axes > most_axes) return std::move(all_);
    std::vector<Sharding> targets;
    for (const ShardingAlternative& way : all_) {
      Sharding whole = way.result;
      whole.unreduced.clear();
      if (std::find(targets.begin(), targets.end(), whole) == targets.end()) targets.push_back(std::move(whole));
    }
    if (asked_) targets = {*asked_};
    for (const Sharding& target : targets) {
      then_ = target;
      enumerate(true);
    }
    return std::move(all_);
  }

 private:
  /// Every choice of a part per axis, the default first; `any`: all parts there are, else those that the axis has or is asked for.
  void enumerate(bool any) {
    std::vector<std::vector<Part>> candidates;  // per axis
    std::vector<int> axes;
    for (int axis = 0; axis < static_cast<int>(mesh_.axes().size()); ++axis) {
      if (mesh_.axes()[static_cast<std::size_t>(axis)].size == 1) continue;
      std::vector<Part> own = parts_for(axis, any);
      if (own.size() == 1 && own[0].kind == Kind::none && in_left(axis).kind == Kind::none && in_right(axis).kind == Kind::none) continue;
      axes.push_back(axis);
      candidates.push_back(std::move(own));
    }
    std::vector<std::size_t> pick(axes.size(), 0);
    for (bool more = true; more;) {
      std::map<int, Part> parts;
      for (std::size_t i = 0; i < axes.size(); ++i) parts[axes[i]] = candidates[i][pick[i]];
      for (const bool asked_first : {false, true})
        for (const bool left_first : {true, false}) build(parts, left_first, asked_first);
      more = false;
      for (std::size_t i = 0; i < axes.size() && !more; ++i) {
        pick[i] = (pick[i] + 1) % candidates[i].size();
        more = pick[i] != 0;
      }
    }
  }

  [[nodiscard]] Part in_left(int axis) const {
    for (std::size_t d = 0; d < rank_; ++d)
      if (has(left_.axes_of(d), axis)) return d + 2 < rank_ ? Part{Kind::batch, d} : Part{d + 2 == rank_ ? Kind::rows : Kind::contraction};
    return {has(left_.unreduced, axis) ? Kind::left_sums : Kind::none};
  }
  [[nodiscard]] Part in_right(int axis) const {
    for (std::size_t d = 0; d < rank_; ++d)
      if (has(right_.axes_of(d), axis)) return d + 2 < rank_ ? Part{Kind::batch, d} : Part{d + 2 == rank_ ? Kind::contraction : Kind::columns};
    return {has(right_.unreduced, axis) ? Kind::right_sums : Kind::none};
  }
  [[nodiscard]] std::optional<Part> in_result(int axis) const {
    if (!asked_) return std::nullopt;
    for (std::size_t d = 0; d < rank_; ++d)
      if (has(asked_->axes_of(d), axis)) return d + 2 < rank_ ? Part{Kind::batch, d} : Part{d + 2 == rank_ ? Kind::rows : Kind::columns};
    return Part{};
  }

  [[nodiscard]] Part default_part(int axis) const {
    Part left = in_left(axis), right = in_right(axis);
    // Sums stay pending beside an operand that does not know the axis; otherwise they are added up first.
    if (left.kind == Kind::left_sums && (right.kind == Kind::none || right.kind == Kind::right_sums)) return left;
    if (right.kind == Kind::right_sums && left.kind == Kind::none) return right;
    if (left.kind == Kind::left_sums) left = {};
    if (right.kind == Kind::right_sums) right = {};
    if (left.kind == Kind::batch) return left;
    if (right.kind == Kind::batch) return right;
    if (left.kind == Kind::contraction && right.kind == Kind::contraction) {
      const Axes& own = left_.axes_of(rank_ - 1);
      const auto place = static_cast<std::size_t>(std::find(own.begin(), own.end(), axis) - own.begin());
      return place < common_ ? left : Part{};
    }
    if (left.kind == Kind::contraction) return right;
    if (right.kind == Kind::contraction) return left;
    if (left.kind == Kind::rows && right.kind == Kind::columns) return common_ > 0 ? left : right;
    return left.kind != Kind::none ? left : right;
  }

  [[nodiscard]] std::vector<Part> parts_for(int axis, bool any) const {
    std::vector<Part> parts{default_part(axis)};
    const auto offer = [&](const Part& part) {
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    };
    const Part left = in_left(axis), right = in_right(axis);
    const std::optional<Part> result = in_result(axis);
    if (left.kind != Kind::none) offer(left);
    if (right.kind != Kind::none) offer(right);
    if (result) offer(*result);
    const bool together = left == right || left.kind == Kind::none || right.kind == Kind::none;
    const bool contracted = left.kind == Kind::contraction || right.kind == Kind::contraction;
    if (!together || contracted || (result && parts.size() > 1)) offer({});
    if (!any) return parts;
    for (const Kind kind : {Kind::rows, Kind::contraction, Kind::columns, Kind::none}) offer({kind});
    for (std::size_t d = 0; d + 2 < rank_; ++d) offer({Kind::batch, d});
    return parts;
  }

  /// The axes of a part, in the order of these shardings' dimensions; axes that are in none of them, in the order of the mesh.
  static Axes ordered(const std::map<int, Part>& parts, const Part& part, std::initializer_list<const Axes*> orders) {
    Axes axes;
    const auto take = [&](int axis) {
      const auto found = parts.find(axis);
      if (found != parts.end() && found->second == part && !has(axes, axis)) axes.push_back(axis);
    };
    for (const Axes* order : orders)
      for (const int axis : *order) take(axis);
    for (const auto& [axis, own] : parts) take(axis);
    return axes;
  }

  void build(const std::map<int, Part>& parts, bool left_first, bool asked_first) {
    static const Axes none;
    const std::optional<Sharding>& wanted = then_ ? then_ : asked_;
    const auto asked = [&](std::size_t d) { return wanted ? &wanted->axes_of(d) : &none; };
    const auto first = [&](const Axes& own, std::size_t d) { return asked_first ? asked(d) : &own; };
    const auto second = [&](const Axes& own, std::size_t d) { return asked_first ? &own : asked(d); };
    ShardingAlternative alternative;
    Sharding left, right, result;
    for (std::size_t d = 0; d + 2 < rank_; ++d) {
      const Axes axes = ordered(parts, {Kind::batch, d}, {&left_.axes_of(d), &right_.axes_of(d), asked(d)});
      for (Sharding* sharding : {&left, &right, &result}) sharding->dims.push_back(axes);
    }
    const Axes rows = ordered(parts, {Kind::rows}, {first(left_.axes_of(rank_ - 2), rank_ - 2), second(left_.axes_of(rank_ - 2), rank_ - 2)});
    const Axes columns = ordered(parts, {Kind::columns}, {first(right_.axes_of(rank_ - 1), rank_ - 1), second(right_.axes_of(rank_ - 1), rank_ - 1)});
    const Axes &a = left_.axes_of(rank_ - 1), &b = right_.axes_of(rank_ - 2);
    const Axes contraction = ordered(parts, {Kind::contraction}, {left_first ? &a : &b, left_first ? &b : &a});
    left.dims.insert(left.dims.end(), {rows, contraction});
    right.dims.insert(right.dims.end(), {contraction, columns});
    result.dims.insert(result.dims.end(), {rows, columns});
    for (const auto& [axis, part] : parts) {
      if (part.kind == Kind::left_sums) left.unreduced.push_back(axis);
      if (part.kind == Kind::right_sums) right.unreduced.push_back(axis);
      if (part.kind == Kind::left_sums || part.kind == Kind::right_sums || part.kind == Kind::contraction) result.unreduced.push_back(axis);
      if (std::string reason = reason_of(axis, part); !reason.empty()) alternative.reasons[axis] = std::move(reason);
    }
    if (!divides(left_array_.extents, left, mesh_) || !divides(right_array_.extents, right, mesh_)) return;
    alternative.operands = {left.canonical(), right.canonical()};
    alternative.result = result.canonical();
    // A way without a conversion behind it says as much.
    if (then_ && alternative.result != *then_ && !asked_) alternative.then = then_;
    const auto same = [&](const ShardingAlternative& way) { return !way.then && way.operands == alternative.operands && way.result == alternative.result; };
    Sharding whole = alternative.result;
    whole.unreduced.clear();
    if (then_ && whole == *then_ && std::any_of(all_.begin(), all_.end(), same)) return;
    add_new(all_, std::move(alternative));
  }

  [[nodiscard]] std::string reason_of(int axis, const Part& part) const {
    const std::string& x = mesh_.axes()[static_cast<std::size_t>(axis)].name;
    const std::string &A = left_array_.name, &B = right_array_.name;
    const Part left = in_left(axis), right = in_right(axis);
    const auto what = [](const Part& p) {
      return p.kind == Kind::batch ? "a batch dimension" : p.kind == Kind::rows ? "the rows" : p.kind == Kind::columns ? "the columns" : "the contraction";
    };
    if (left.kind == Kind::left_sums && part.kind != Kind::left_sums)
      return fmt::format("partial sums of {} are pending along {}, and the product needs their sum", A, x);
    if (right.kind == Kind::right_sums && part.kind != Kind::right_sums)
      return fmt::format("partial sums of {} are pending along {}, and the product needs their sum", B, x);
    if (left.kind == Kind::contraction && right.kind == Kind::contraction)
      return part.kind == Kind::contraction             ? fmt::format("{} divides both contractions: every device has partial sums", x)
                                            : fmt::format("{} divides both contractions, in different places", x);
    if (left.kind == Kind::none && right.kind == Kind::none)
      return part.kind == Kind::contraction ? fmt::format("{} is free: both contractions are sliced by it, and every device has partial sums", x)
                                            : fmt::format("the result is to be divided by {}", x);
    if (left.kind == Kind::none || right.kind == Kind::none) {
      const bool in_a = left.kind != Kind::none;
      const Part own = in_a ? left : right;
      if (part == own && own.kind != Kind::contraction) return "";
      if (part.kind == Kind::contraction) return fmt::format("{} divides the contraction of {}: {} is sliced alike, and every device has partial sums", x, in_a ? A : B, in_a ? B : A);
      return fmt::format("{} divides {} of {} only", x, what(own), in_a ? A : B);
    }
    if (left == right) return "";
    if (left.kind == Kind::rows && right.kind == Kind::columns)
      return fmt::format("{} divides the rows of {} and the columns of {}, and the result cannot be divided by it twice", x, A, B);
    return fmt::format("{} divides {} of {} and {} of {}", x, what(left), A, what(right), B);
  }

  const Mesh& mesh_;
  const Operation &left_array_, &right_array_;
  std::size_t rank_;
  const Sharding &left_, &right_;
  const std::optional<Sharding>& asked_;
  std::optional<Sharding> then_{};  // what results are converted to
  std::size_t common_ = 0;  // axes that divide both contractions alike, from the first on
  std::vector<ShardingAlternative> all_;
};

// ---- Elementwise operations ----

class ElementwiseRules {
 public:
  ElementwiseRules(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands)
      : program_{program}, operation_{operation}, operands_{operands} {}

  void offer(const Sharding& dims, bool keep_sums) {
    ShardingAlternative alternative;
    std::set<int> used;
    for (const Axes& axes : dims.dims) used.insert(axes.begin(), axes.end());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operation& array = program_.operations[static_cast<std::size_t>(operation_.operands[i])];
      const std::size_t missing = operation_.extents.size() - array.extents.size();
      Sharding target;
      for (std::size_t d = missing; d < operation_.extents.size(); ++d)
        target.dims.push_back(array.extents[d - missing] == operation_.extents[d] ? dims.axes_of(d) : Axes{});
      for (const int axis : operands_[i].unreduced)
        if (keep_sums && !used.contains(axis)) target.unreduced.push_back(axis);
      alternative.operands.push_back(target.canonical());
      if (!divides(array.extents, target, program_.mesh)) return;
    }
    if (alternative.operands.size() == 2) meet_sums(alternative.operands[0], alternative.operands[1]);
    alternative.result = dims;
    alternative.result.unreduced = alternative.operands[0].unreduced;
    if (alternative.operands.size() == 2 && alternative.operands[1].unreduced.size() > alternative.result.unreduced.size())
      alternative.result.unreduced = alternative.operands[1].unreduced;
    alternative.result = alternative.result.canonical();
    explain(alternative);
    add_new(all, std::move(alternative));
  }

  /// The axes of an operand where the result has them, completed by those of the other one.
  [[nodiscard]] Sharding merged(std::size_t first) const {
    Sharding result;
    result.dims.resize(operation_.extents.size());
    std::set<int> used;
    for (std::size_t n = 0; n < operands_.size(); ++n) {
      const std::size_t i = (first + n) % operands_.size();
      const std::size_t missing = operation_.extents.size() - program_.operations[static_cast<std::size_t>(operation_.operands[i])].extents.size();
      for (std::size_t d = missing; d < operation_.extents.size(); ++d) {
        const Axes& own = operands_[i].axes_of(d - missing);
        if (own.empty() || !result.dims[d].empty() || std::any_of(own.begin(), own.end(), [&](int axis) { return used.contains(axis); })) continue;
        result.dims[d] = own;
        used.insert(own.begin(), own.end());
      }
    }
    return result;
  }

  std::vector<ShardingAlternative> all;

 private:
  /// Sums may stay pending where the operation is linear in them.
  void meet_sums(Sharding& a, Sharding& b) const {
    const bool sums = operation_.op == ArrayOp::add || operation_.op == ArrayOp::subtract;
    if (operation_.op == ArrayOp::divide) b.unreduced.clear();
    if (!sums && !a.unreduced.empty()) b.unreduced.clear();
    // Of a sum, one operand has all the pending axes.
    if (!sums || std::includes(b.unreduced.begin(), b.unreduced.end(), a.unreduced.begin(), a.unreduced.end())) return;
    std::erase_if(b.unreduced, [&](int axis) { return !has(a.unreduced, axis); });
  }

  void explain(ShardingAlternative& alternative) const {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const std::string& name = program_.operations[static_cast<std::size_t>(operation_.operands[i])].name;
      for (const int axis : operands_[i].unreduced)
        if (!has(alternative.operands[i].unreduced, axis))
          alternative.reasons[axis] = fmt::format("partial sums of {} are pending along {}, and {} needs their sum", name,
                                                  program_.mesh.axes()[static_cast<std::size_t>(axis)].name, name_of(operation_.op));
      for (const Axes& axes : operands_[i].dims)
        for (const int axis : axes)
          alternative.reasons.try_emplace(axis, fmt::format("the operands of {} are divided by {} in different places", name_of(operation_.op),
                                                            program_.mesh.axes()[static_cast<std::size_t>(axis)].name));
    }
  }

  const ShardedProgram& program_;
  const Operation& operation_;
  const std::vector<Sharding>& operands_;
};

std::vector<ShardingAlternative> elementwise(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands,
                                     const std::optional<Sharding>& asked) {
  ElementwiseRules rules{program, operation, operands};
  const bool linear = operation.op != ArrayOp::relu && operation.op != ArrayOp::gelu && operation.op != ArrayOp::reciprocal;
  for (std::size_t i = 0; i < operands.size(); ++i) rules.offer(rules.merged(i), linear);
  Sharding wanted = asked.value_or(Sharding{});
  wanted.unreduced.clear();
  wanted.dims.resize(operation.extents.size());
  if (asked && divides(operation.extents, wanted, program.mesh))
    for (const bool keep : {true, false}) rules.offer(wanted, linear && keep);
  if (linear)
    for (std::size_t i = 0; i < operands.size(); ++i) rules.offer(rules.merged(i), false);
  return std::move(rules.all);
}

Sharding summed(Sharding sharding, std::size_t rank, int dim) {
  sharding.dims.resize(rank);
  for (const int axis : sharding.dims[static_cast<std::size_t>(dim)]) sharding.unreduced.push_back(axis);
  std::sort(sharding.unreduced.begin(), sharding.unreduced.end());
  sharding.dims.erase(sharding.dims.begin() + dim);
  return sharding.canonical();
}

Sharding transposed(Sharding sharding, std::size_t rank) {
  sharding.dims.resize(rank);
  std::reverse(sharding.dims.begin(), sharding.dims.end());
  return sharding.canonical();
}

}  // namespace

std::vector<ShardingAlternative> alternatives_of(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands,
                                         const std::optional<Sharding>& asked) {
  const std::size_t rank = operation.operands.empty() ? 0 : program.operations[static_cast<std::size_t>(operation.operands[0])].extents.size();
  if (operation.op == ArrayOp::to_blocks) return {{{*program.operations[static_cast<std::size_t>(operation.operands[0])].sharding}, Sharding{}}};
  if (operation.op == ArrayOp::from_blocks) return {{operands, *operation.sharding}};
  if (operation.varying) return {{operands, Sharding{}}};  // every device works on its own block
  switch (operation.op) {
    case ArrayOp::input: PODSIM_ASSERT(false && "an input is not computed"); return {};
    case ArrayOp::fft:
    case ArrayOp::ifft:
    case ArrayOp::lu_pivots:
    case ArrayOp::lu_lower:
    case ArrayOp::lu_upper:
    case ArrayOp::solve: PODSIM_ASSERT(false && "kernel_way() says how"); return {};
    case ArrayOp::product: return ProductRules{program, operation, operands, asked}.all();
    case ArrayOp::transpose: return {{operands, transposed(operands[0], rank)}};
    case ArrayOp::sum: return {{operands, summed(operands[0], rank, operation.dim)}};
    case ArrayOp::scale:
    case ArrayOp::add_number: return {{operands, operands[0]}};
    case ArrayOp::reshard: return {{{*operation.sharding}, *operation.sharding}};
    case ArrayOp::process_allgather: return {{{Sharding{}}, Sharding{}}};
    case ArrayOp::psum:
    case ArrayOp::all_gather:
    case ArrayOp::psum_scatter:
    case ArrayOp::ppermute:
    case ArrayOp::all_to_all: {
      const auto& stated = program.operations[static_cast<std::size_t>(operation.operands[0])].sharding;
      PODSIM_ASSERT(stated && operation.sharding && "the reader has refused it");
      ShardingAlternative alternative{{*stated}, *operation.sharding};
      // Sums that have been added up meanwhile are not pending in the result either.
      std::erase_if(alternative.operands[0].unreduced, [&](int axis) { return !has(operands[0].unreduced, axis); });
      alternative.result.unreduced = alternative.operands[0].unreduced;
      return {alternative};
    }
    default: return elementwise(program, operation, operands, asked);
  }
}

}  // namespace podsim
