#include "workloads/sharded/typing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "workloads/sharded/kernels.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 50;

std::string shape_text(const Extents& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "a scalar" : text;
}

/// The sharding without axes of size 1.
Sharding without_trivial(const Sharding& sharding, const Mesh& mesh) {
  const auto trivial = [&](int axis) { return mesh.axes()[static_cast<std::size_t>(axis)].size == 1; };
  Sharding kept = sharding;
  for (std::vector<int>& axes : kept.dims) std::erase_if(axes, trivial);
  std::erase_if(kept.unreduced, trivial);
  return kept.canonical();
}

Sharding ranked(Sharding sharding, std::size_t rank) {
  sharding.dims.resize(rank);
  return sharding;
}

std::set<int> used_axes(const Sharding& sharding) {
  std::set<int> used;
  for (const std::vector<int>& axes : sharding.dims) used.insert(axes.begin(), axes.end());
  return used;
}

bool meet(const std::set<int>& a, const std::vector<int>& b) {
  return std::any_of(b.begin(), b.end(), [&](int axis) { return a.contains(axis); });
}

std::vector<int> joined(const std::vector<int>& a, const std::vector<int>& b) {
  std::set<int> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  return {all.begin(), all.end()};
}

}  // namespace

std::optional<Sharding> direct_product(const Sharding& left, const Sharding& right, std::size_t rank) {
  const std::size_t batch = rank - 2;
  Sharding result;
  std::set<int> used;
  for (std::size_t d = 0; d < rank; ++d) {
    if (d < batch && left.axes_of(d) != right.axes_of(d)) return std::nullopt;
    result.dims.push_back(d + 1 < rank ? left.axes_of(d) : right.axes_of(d));
    for (const int axis : result.dims.back())
      if (!used.insert(axis).second) return std::nullopt;
  }
  if (left.axes_of(rank - 1) != right.axes_of(rank - 2)) return std::nullopt;
  if (meet(used_axes(right), left.unreduced) || meet(used_axes(left), right.unreduced)) return std::nullopt;
  if (meet({left.unreduced.begin(), left.unreduced.end()}, right.unreduced)) return std::nullopt;
  result.unreduced = joined(joined(left.unreduced, right.unreduced), left.axes_of(rank - 1));
  return result.canonical();
}

std::optional<Sharding> direct_elementwise(ArrayOp op, const Extents& result_extents, const ElementwiseOperand& a, const ElementwiseOperand& b) {
  const std::size_t rank = result_extents.size();
  Sharding result;
  std::set<int> used;
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<int> axes;
    for (const ElementwiseOperand* operand : {&a, &b}) {
      const std::size_t missing = rank - operand->extents.size();
      if (d < missing) continue;
      const std::vector<int>& own = operand->sharding.axes_of(d - missing);
      if (!axes.empty() && !own.empty() && own != axes) return std::nullopt;
      if (axes.empty()) axes = own;
    }
    for (const int axis : axes)
      if (!used.insert(axis).second) return std::nullopt;
    result.dims.push_back(std::move(axes));
  }
  const std::vector<int>&pa = a.sharding.unreduced, &pb = b.sharding.unreduced;
  result.unreduced = joined(pa, pb);
  if (meet(used, result.unreduced)) return std::nullopt;
  const bool sums = op == ArrayOp::add || op == ArrayOp::subtract;
  if (sums && result.unreduced != pa && result.unreduced != pb) return std::nullopt;
  if (!sums && !pb.empty() && (!pa.empty() || op == ArrayOp::divide)) return std::nullopt;
  return result.canonical();
}

std::string Typing::called(int operation) const {
  const Operation& made = at(operation);
  return made.name.empty() ? "the array" : made.name;
}

void Typing::begin_statement(std::string target) {
  target_ = std::move(target);
}

Expected<int> Typing::add(Operation operation) {
  const int self = static_cast<int>(program.operations.size());
  if (operation.op != ArrayOp::input) {
    operation.statement = static_cast<int>(program.statements.size());
    operation.name = fmt::format("{}.{}", target_, self);
  }
  if (operation.sharding) operation.sharding = without_trivial(*operation.sharding, mesh_);
  // Axes of size 1 change nothing, but for the name of what does nothing.
  std::erase_if(operation.axes, [&](int axis) { return mesh_.axes()[static_cast<std::size_t>(axis)].size == 1; });
  const bool solver = operation.op == ArrayOp::solve || operation.op == ArrayOp::lu_pivots || operation.op == ArrayOp::lu_lower || operation.op == ArrayOp::lu_upper;
  for (const int operand : operation.operands)
    if (const auto wrong = undivided_.find(operand); wrong != undivided_.end() && !solver) {
      indivisible = wrong->second.grown;
      return wrong->second.problem;
    }
  if (Status values = type_values(operation); !values) return values.error();
  find_varying(operation);
  if (Status typed = type(operation); !typed) return typed.error();
  if (Status fits = rank_fits(operation); !fits) return fits.error();
  std::int64_t elements = 1;
  for (const std::int64_t extent : operation.extents) {
    if (elements > most_elements / extent)
      return Diagnostic{operation.where, fmt::format("expected an array of at most 2^50 elements, found {}", shape_text(operation.extents))};
    elements *= extent;
  }
  origins_.push_back(origins_of(operation));
  program.operations.push_back(std::move(operation));
  if (const Operation& added = program.operations.back(); added.sharding)
    if (Status fits = divides(self, added.extents, *added.sharding, added.name, added.where); !fits) {
      if (added.op != ArrayOp::input) return fits.error();
      undivided_.emplace(self, Undivided{fits.error(), std::exchange(indivisible, std::nullopt)});
    }
  return self;
}

Expected<int> Typing::finish_statement(int operation, std::string text, const SourceLocation& where) {
  // The name of another array: a copy, so that every name has an operation of its own.
  const bool named = at(operation).op == ArrayOp::input || at(operation).op == ArrayOp::to_blocks || std::find(program.results.begin(), program.results.end(), operation) != program.results.end();
  if (named) {
    const auto copy = add(Operation{.op = ArrayOp::scale, .operands = {operation}, .number = 1, .where = where});
    if (!copy) return copy;
    operation = *copy;
  }
  program.operations[static_cast<std::size_t>(operation)].name = target_;
  program.statements.push_back(std::move(text));
  program.results.push_back(operation);
  return operation;
}

Expected<std::array<int, 3>> Typing::finish_factors(int matrix, const std::array<std::string, 3>& names, std::string text, const SourceLocation& where) {
  std::array<int, 3> factors{};
  for (std::size_t i = 0; i < 3; ++i) {
    constexpr std::array parts{ArrayOp::lu_pivots, ArrayOp::lu_lower, ArrayOp::lu_upper};
    const auto part = add(Operation{.op = parts[i], .operands = {matrix}, .where = where});
    if (!part) return part.error();
    factors[i] = *part;
    program.operations[static_cast<std::size_t>(*part)].name = names[i];
    program.results.push_back(*part);
  }
  program.statements.push_back(std::move(text));
  return factors;
}

Status Typing::set_out(int operation, const Sharding& sharding, const SourceLocation& where) {
  const Sharding kept = without_trivial(sharding, mesh_);
  if (at(operation).dtype == DType::s32 && !kept.unreduced.empty())
    return Diagnostic{where, fmt::format("expected a sharding without partial sums: {} holds whole numbers, which are not added up", called(operation))};
  program.out[operation] = kept;
  return divides(operation, at(operation).extents, kept, called(operation), where);
}

Status Typing::divides(int operation, const Extents& extents, const Sharding& sharding, std::string_view array, const SourceLocation& where) {
  if (!divide_) return success();
  const auto shard = shard_extents(extents, sharding, mesh_, array, where);
  if (shard) return success();
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t multiple = devices_along(mesh_, sharding.axes_of(d));
    if (extents[d] % multiple == 0) continue;
    const auto& origin = origins_[static_cast<std::size_t>(operation)][d];
    if (!origin) break;
    // The result's extent is a fixed multiple, or part, of the input's.
    const std::int64_t own = at(origin->first).extents[static_cast<std::size_t>(origin->second)], common = std::gcd(own, extents[d]);
    const std::int64_t numerator = extents[d] / common, denominator = own / common;
    const std::int64_t step = std::lcm(denominator, multiple * denominator / std::gcd(multiple * denominator, numerator));
    indivisible = Indivisible{{at(origin->first).name, origin->second}, own, (own / step + 1) * step};
    break;
  }
  return shard.error();
}

std::vector<std::vector<NamedDim>> Typing::groups() const {
  std::map<InputDim, std::vector<NamedDim>> by_root;
  for (std::size_t i = 0; i < program.operations.size(); ++i)
    if (const Operation& input = program.operations[i]; input.op == ArrayOp::input)
      for (int d = 0; d < static_cast<int>(input.extents.size()); ++d) by_root[root({static_cast<int>(i), d})].emplace_back(input.name, d);
  std::vector<std::vector<NamedDim>> groups;
  for (auto& [first, group] : by_root) groups.push_back(std::move(group));
  return groups;
}

// ---- Rules ----

Status Typing::type(Operation& operation) {
  const auto unchanged = [&]() -> Status {
    operation.extents = at(operation.operands[0]).extents;
    return success();
  };
  switch (operation.op) {
    case ArrayOp::input: return success();
    case ArrayOp::product: return type_product(operation);
    case ArrayOp::add:
    case ArrayOp::subtract:
    case ArrayOp::multiply:
    case ArrayOp::divide: return type_elementwise(operation);
    case ArrayOp::transpose: return type_transpose(operation);
    case ArrayOp::reshard: return unchanged();
    case ArrayOp::process_allgather: operation.sharding = Sharding{}; return unchanged();
    case ArrayOp::scale:
    case ArrayOp::add_number: operation.sharding = at(operation.operands[0]).sharding; return unchanged();
    case ArrayOp::reciprocal:
    case ArrayOp::relu:
    case ArrayOp::gelu:
      if (const auto& own = at(operation.operands[0]).sharding; own && own->unreduced.empty()) operation.sharding = own;
      return unchanged();
    case ArrayOp::sum: {
      const Operation& operand = at(operation.operands[0]);
      operation.extents = operand.extents;
      operation.extents.erase(operation.extents.begin() + operation.dim);
      if (!operand.sharding) return success();
      Sharding sharding = ranked(*operand.sharding, operand.extents.size());
      sharding.unreduced = joined(sharding.unreduced, sharding.dims[static_cast<std::size_t>(operation.dim)]);
      sharding.dims.erase(sharding.dims.begin() + operation.dim);
      operation.sharding = sharding.canonical();
      return success();
    }
    case ArrayOp::fft:
    case ArrayOp::ifft: return type_fft(operation);
    case ArrayOp::lu_pivots:
    case ArrayOp::lu_lower:
    case ArrayOp::lu_upper:
    case ArrayOp::solve: return type_system(operation);
    case ArrayOp::to_blocks: return type_to_blocks(operation);
    case ArrayOp::from_blocks: return type_from_blocks(operation);
    case ArrayOp::axis_index: return success();  // a scalar
    case ArrayOp::expand_dims:
      operation.extents = at(operation.operands[0]).extents;
      operation.extents.insert(operation.extents.begin() + operation.dim, 1);
      return success();
    case ArrayOp::squeeze:
      operation.extents = at(operation.operands[0]).extents;
      operation.extents.erase(operation.extents.begin() + operation.dim);
      return success();
    default: return operation.varying ? type_blocks(operation) : type_local(operation);
  }
}

/// The dtype of the result. Complex numbers are added, scaled and moved; whole numbers are moved.
Status Typing::type_values(Operation& operation) {
  if (operation.op == ArrayOp::axis_index) operation.dtype = program.dtype;
  if (operation.operands.empty()) return success();
  const DType first = at(operation.operands[0]).dtype;
  operation.dtype = operation.op == ArrayOp::fft || operation.op == ArrayOp::ifft ? DType::c64 : operation.op == ArrayOp::lu_pivots ? DType::s32 : first;
  for (const int operand : operation.operands)
    if (const DType own = at(operand).dtype; own != first)
      return Diagnostic{operation.where, fmt::format("expected operands of one dtype, found {} and {}", name_of(first), name_of(own))};
  const auto expect = [&](std::initializer_list<DType> dtypes) -> Status {
    if (std::find(dtypes.begin(), dtypes.end(), first) != dtypes.end()) return success();
    std::string names;
    for (const DType dtype : dtypes) names += (names.empty() ? "" : " or ") + std::string{name_of(dtype)};
    return Diagnostic{operation.where, fmt::format("{} takes {}; {} is {}", name_of(operation.op), names, called(operation.operands[0]), name_of(first))};
  };
  switch (operation.op) {
    case ArrayOp::fft:
    case ArrayOp::ifft: return expect({DType::f32, DType::c64});
    case ArrayOp::lu_pivots:
    case ArrayOp::lu_lower:
    case ArrayOp::lu_upper:
    case ArrayOp::solve: return expect({DType::f32});
    case ArrayOp::product:
    case ArrayOp::multiply:
    case ArrayOp::divide:
    case ArrayOp::pmax:
    case ArrayOp::add_number:
    case ArrayOp::reciprocal:
    case ArrayOp::relu:
    case ArrayOp::gelu: return expect({DType::f32, DType::bf16});
    case ArrayOp::scale:
      if (operation.number == 1) return success();  // another name of the array
      [[fallthrough]];
    case ArrayOp::add:
    case ArrayOp::subtract:
    case ArrayOp::sum: return expect({DType::f32, DType::bf16, DType::c64});
    default: return success();
  }
}

Status Typing::type_fft(Operation& operation) {
  const Operation& operand = at(operation.operands[0]);
  const std::size_t rank = operand.extents.size();
  if (rank < 1 || rank > 3)
    return Diagnostic{operation.where, fmt::format("expected an array of rank 1 to 3 in {}, found {}", name_of(operation.op), shape_text(operand.extents))};
  operation.extents = operand.extents;
  if (program.kernels.order == FftOrder::transposed && program.kernels.fft != FftMethod::naive) {
    if (rank == 1)
      return Diagnostic{operation.where, "the transposed order of a transform of one dimension depends on the mesh: expected the natural order"};
    operation.stored_transposed = true;
    const auto by = operation.op == ArrayOp::ifft ? operation.extents.end() - 1 : operation.extents.begin() + 1;
    std::rotate(operation.extents.begin(), by, operation.extents.end());
  }
  if (!divide_ || !operand.sharding) return success();
  const std::optional<Extents> multiples = multiples_of_fft(program, operation, *operand.sharding);
  if (!multiples) return success();
  const auto& origins = origins_[static_cast<std::size_t>(operation.operands[0])];
  for (std::size_t d = 0; d < rank && !indivisible; ++d) {
    const std::int64_t multiple = (*multiples)[d];
    if (operand.extents[d] % multiple == 0 || !origins[d]) continue;
    const std::int64_t own = at(origins[d]->first).extents[static_cast<std::size_t>(origins[d]->second)];
    if (own == operand.extents[d]) indivisible = Indivisible{{at(origins[d]->first).name, origins[d]->second}, own, (own / multiple + 1) * multiple};
  }
  const auto way = kernel_way(program, operation, {*operand.sharding});
  return way ? success() : Status{way.error()};
}

Status Typing::type_system(Operation& operation) {
  const Extents& a = at(operation.operands[0]).extents;
  const bool many = operation.op == ArrayOp::solve;
  if (a.size() < 2 || a.back() != a[a.size() - 2] || (!many && a.size() > 2))
    return Diagnostic{operation.where, fmt::format("expected a square matrix in {}, found {}", name_of(operation.op), shape_text(a))};
  operation.extents = operation.op == ArrayOp::lu_pivots ? Extents{a[0]} : a;
  if (!many) return success();
  const Extents& b = at(operation.operands[1]).extents;
  const Extents one{a.begin(), a.end() - 1};
  if (b != one && (b.size() != a.size() || !std::equal(one.begin(), one.end(), b.begin())))
    return Diagnostic{operation.where, fmt::format("expected right-hand sides of {}, or several side by side, found {}", shape_text(one), shape_text(b))};
  operation.extents = b;
  for (std::size_t d = 0; d + 1 < a.size(); ++d) same_dimension(operation.operands[0], d, operation.operands[1], d);
  return success();
}

Status Typing::type_product(Operation& operation) {
  const Operation &left = at(operation.operands[0]), &right = at(operation.operands[1]);
  const std::size_t rank = left.extents.size();
  const auto misfit = [&](std::string_view what) -> Status {
    return Diagnostic{operation.where, fmt::format("expected {}, found {} @ {}", what, shape_text(left.extents), shape_text(right.extents))};
  };
  if (rank < 2 || right.extents.size() != rank) return misfit("operands of @ of rank 2, or of equal rank with equal leading dimensions");
  if (!std::equal(left.extents.begin(), left.extents.end() - 2, right.extents.begin())) return misfit("equal leading (batch) dimensions");
  if (left.extents[rank - 1] != right.extents[rank - 2]) return misfit("as many columns on the left of @ as rows on its right");
  operation.extents = left.extents;
  operation.extents[rank - 1] = right.extents[rank - 1];
  same_dimension(operation.operands[0], rank - 1, operation.operands[1], rank - 2);
  for (std::size_t d = 0; d + 2 < rank; ++d) same_dimension(operation.operands[0], d, operation.operands[1], d);
  if (left.sharding && right.sharding) operation.sharding = direct_product(*left.sharding, *right.sharding, rank);
  return success();
}

Status Typing::type_elementwise(Operation& operation) {
  const Operation &left = at(operation.operands[0]), &right = at(operation.operands[1]);
  const std::size_t rank = std::max(left.extents.size(), right.extents.size());
  operation.extents.assign(rank, 1);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t no_left = rank - left.extents.size(), no_right = rank - right.extents.size();
    const std::int64_t a = d < no_left ? 1 : left.extents[d - no_left], b = d < no_right ? 1 : right.extents[d - no_right];
    if (a != b && a != 1 && b != 1)
      return Diagnostic{operation.where, fmt::format("expected shapes that are equal, or 1 where they differ, found {} {} {}", shape_text(left.extents),
                                                     name_of(operation.op), shape_text(right.extents))};
    operation.extents[d] = std::max(a, b);
    if (a == b && d >= no_left && d >= no_right) same_dimension(operation.operands[0], d - no_left, operation.operands[1], d - no_right);
  }
  if (left.sharding && right.sharding)
    operation.sharding = direct_elementwise(operation.op, operation.extents, {left.extents, *left.sharding}, {right.extents, *right.sharding});
  return success();
}

Status Typing::type_transpose(Operation& operation) {
  const Operation& operand = at(operation.operands[0]);
  if (operand.extents.size() > 2)
    return Diagnostic{operation.where, fmt::format("expected an array of rank 2 or less before .T, found {}", shape_text(operand.extents))};
  operation.extents.assign(operand.extents.rbegin(), operand.extents.rend());
  if (!operand.sharding) return success();
  Sharding sharding = ranked(*operand.sharding, operand.extents.size());
  std::reverse(sharding.dims.begin(), sharding.dims.end());
  operation.sharding = sharding.canonical();
  return success();
}

// ---- Which dimensions grow together ----

std::vector<std::optional<Typing::InputDim>> Typing::origins_of(const Operation& operation) const {
  std::vector<std::optional<InputDim>> origins(operation.extents.size());
  if (operation.op == ArrayOp::input) {
    for (std::size_t d = 0; d < origins.size(); ++d) origins[d] = InputDim{static_cast<int>(program.operations.size()), static_cast<int>(d)};
    return origins;
  }
  if (operation.varying || operation.op == ArrayOp::from_blocks) return origins;  // shard_map pads nothing
  const auto of = [&](std::size_t operand) -> const std::vector<std::optional<InputDim>>& { return origins_[static_cast<std::size_t>(operation.operands[operand])]; };
  if (operation.op == ArrayOp::product) {
    origins = of(0);
    origins.back() = of(1).back();
    return origins;
  }
  if (operation.op == ArrayOp::lu_pivots) {
    origins[0] = of(0)[0];
    return origins;
  }
  if (operation.op == ArrayOp::solve) return of(1);
  if (operation.operands.size() == 2) {
    for (std::size_t side = 0; side < 2; ++side) {
      const Extents& extents = at(operation.operands[side]).extents;
      const std::size_t missing = origins.size() - extents.size();
      for (std::size_t d = missing; d < origins.size(); ++d)
        if (extents[d - missing] == operation.extents[d] && !origins[d]) origins[d] = of(side)[d - missing];
    }
    return origins;
  }
  origins = of(0);
  if (operation.stored_transposed)
    std::rotate(origins.begin(), operation.op == ArrayOp::ifft ? origins.end() - 1 : origins.begin() + 1, origins.end());
  if (operation.op == ArrayOp::sum) origins.erase(origins.begin() + operation.dim);
  if (operation.op == ArrayOp::transpose) std::reverse(origins.begin(), origins.end());
  return origins;
}

void Typing::same_dimension(int a, std::size_t dim_a, int b, std::size_t dim_b) {
  const auto &first = origins_[static_cast<std::size_t>(a)][dim_a], &second = origins_[static_cast<std::size_t>(b)][dim_b];
  if (first && second && root(*first) != root(*second)) parents_[root(*second)] = root(*first);
}

Typing::InputDim Typing::root(InputDim dim) const {
  for (auto parent = parents_.find(dim); parent != parents_.end(); parent = parents_.find(dim)) dim = parent->second;
  return dim;
}

// ---- Padding ----

namespace {

/// Whether the added elements of each dimension are 0, of every operation. Errors: they count in a sum, or divide.
Status zeros_stay_zero(const ShardedProgram& program) {
  std::vector<std::vector<bool>> zero;  // per operation and dimension; true where nothing is added, too
  const auto added = [&](int operation, std::size_t dim) {
    return program.operations[static_cast<std::size_t>(operation)].extents[dim] != program.unpadded[static_cast<std::size_t>(operation)][dim];
  };
  const auto wrong = [&](const Operation& operation, std::size_t dim, std::string_view what) -> Status {
    return Diagnostic{operation.where, fmt::format("--pad adds elements to dimension {} of {}, which {}: expected extents that divide", dim,
                                                   program.operations[static_cast<std::size_t>(operation.operands[0])].name, what)};
  };
  for (const Operation& operation : program.operations) {
    std::vector<bool> own(operation.extents.size(), true);
    const auto operand = [&](std::size_t i) -> const std::vector<bool>& { return zero[static_cast<std::size_t>(operation.operands[i])]; };
    switch (operation.op) {
      case ArrayOp::input: break;
      case ArrayOp::add_number:
      case ArrayOp::reciprocal:
        for (std::size_t d = 0; d < own.size(); ++d) own[d] = !added(operation.operands[0], d);
        break;
      case ArrayOp::product: {
        const std::size_t last = own.size() - 1;
        if (!operand(0)[last] && !operand(1)[last - 1]) return wrong(operation, last, "are not 0 and count in the product");
        for (std::size_t d = 0; d < own.size(); ++d) own[d] = d == last ? bool{operand(1)[d]} : bool{operand(0)[d]};
        break;
      }
      case ArrayOp::divide: {
        const std::size_t missing = own.size() - operand(1).size();
        for (std::size_t d = 0; d < operand(1).size(); ++d)
          if (added(operation.operands[1], d)) return wrong(operation, d + missing, "divides");
        [[fallthrough]];
      }
      case ArrayOp::add:
      case ArrayOp::subtract:
      case ArrayOp::multiply: {
        const bool both = operation.op == ArrayOp::add || operation.op == ArrayOp::subtract;
        for (std::size_t d = 0; d < own.size(); ++d) {
          const auto side = [&](std::size_t i) {
            const std::size_t missing = own.size() - operand(i).size();
            const auto& extents = program.operations[static_cast<std::size_t>(operation.operands[i])].extents;
            // What is stretched over the added elements is not 0 there.
            return d >= missing && operand(i)[d - missing] && extents[d - missing] == operation.extents[d];
          };
          const bool stays = both ? side(0) && side(1) : side(0) || side(1);
          own[d] = stays || operation.extents[d] == program.unpadded[zero.size()][d];
        }
        break;
      }
      case ArrayOp::lu_pivots:
      case ArrayOp::lu_lower:
      case ArrayOp::lu_upper:
      case ArrayOp::solve:
        if (added(operation.operands[0], 0)) return wrong(operation, 0, "would be singular");
        own = operand(operation.operands.size() - 1);
        own.resize(operation.extents.size());
        break;
      case ArrayOp::sum:
        if (!operand(0)[static_cast<std::size_t>(operation.dim)]) return wrong(operation, static_cast<std::size_t>(operation.dim), "are not 0 and count in the sum");
        own = operand(0);
        own.erase(own.begin() + operation.dim);
        break;
      case ArrayOp::transpose: own.assign(operand(0).rbegin(), operand(0).rend()); break;
      default: own = operand(0);
    }
    zero.push_back(std::move(own));
  }
  return success();
}

/// The transform of a padded array has no padding, nor has what is computed from it.
std::vector<Extents> extents_without_padding(const ShardedProgram& plain, const ShardedProgram& padded) {
  std::vector<Extents> extents;
  for (std::size_t i = 0; i < plain.operations.size(); ++i) {
    const Operation& operation = padded.operations[i];
    const bool transformed = operation.op == ArrayOp::fft || operation.op == ArrayOp::ifft;
    const bool follows = std::any_of(operation.operands.begin(), operation.operands.end(), [&](int o) {
      const auto operand = static_cast<std::size_t>(o);
      return extents[operand] == padded.operations[operand].extents && extents[operand] != plain.operations[operand].extents;
    });
    extents.push_back(transformed || follows ? operation.extents : plain.operations[i].extents);
  }
  return extents;
}

}  // namespace

Expected<ShardedProgram> read_padded(std::map<std::string, Extents> inputs, const std::function<Reading(const std::map<std::string, Extents>&, bool divide)>& read) {
  const Reading plain = read(inputs, false);
  if (!plain.program) return plain.program;
  bool grown = false;
  constexpr int most_rounds = 1000;
  for (int round = 0; round < most_rounds; ++round) {
    Reading reading = read(inputs, true);
    if (reading.program) {
      if (!grown) return std::move(reading.program);
      reading.program->unpadded = extents_without_padding(*plain.program, *reading.program);
      if (Status zeros = zeros_stay_zero(*reading.program); !zeros) return zeros.error();
      return std::move(reading.program);
    }
    if (!reading.indivisible) return std::move(reading.program);
    const Indivisible& wrong = *reading.indivisible;
    for (const std::vector<NamedDim>& group : plain.groups)
      if (std::find(group.begin(), group.end(), wrong.input) != group.end())
        for (const auto& [name, dim] : group) {
          std::int64_t& extent = inputs.at(name)[static_cast<std::size_t>(dim)];
          extent = std::max<std::int64_t>(extent * wrong.grown / wrong.extent, 1);
        }
    grown = true;
  }
  return Diagnostic{plain.program->operations.front().where, "expected extents that can be padded so that all shardings divide, found none"};
}

}  // namespace podsim
