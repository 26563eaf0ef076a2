// ragged-dot: a product whose left operand has groups of rows, each with a matrix of its own.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/products.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;

}  // namespace

/// [rows, inner] . [groups, inner, columns] with sizes [groups]: the rows of group g, which follow those of group g - 1, times matrix g. Rows behind
/// the last group are zero. Other forms (ragged contracting or batch dimensions, several free ones) are not interpreted.
Expected<HloArrays> ragged_dot_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(3); !ok) return ok.error();
  const HloArray &a = operation.operand(0), &b = operation.operand(1), &sizes = operation.operand(2);
  const HloAttributes& attributes = operation.attributes();
  const Dims ragged = listed_dimensions(attributes, "lhs_ragged_dims"), group = listed_dimensions(attributes, "rhs_group_dims");
  const bool is_plain = a.dims.size() == 2 && b.dims.size() == 3 && sizes.dims.size() == 1 && ragged.size() == 1 && group.size() == 1 &&
                        attributes.lhs_batch.empty() && attributes.lhs_contracting.size() == 1 && attributes.rhs_contracting.size() == 1 &&
                        ragged[0] != attributes.lhs_contracting[0] && group[0] != attributes.rhs_contracting[0];
  if (!is_plain)
    return operation.error("a ragged-dot of other than [rows, inner] and [groups, inner, columns], ragged in its rows, is not interpreted");
  const Dims order_a{ragged[0], attributes.lhs_contracting[0]};
  const Dims order_b{group[0], attributes.rhs_contracting[0], 3 - group[0] - attributes.rhs_contracting[0]};
  if (!is_permutation_of(order_a, 2) || !is_permutation_of(order_b, 3))
    return operation.error("expected ragged, group and contracting dimensions of its operands");
  const HloType type = operation.shape().type;
  if (!has_products(a.type, b.type, type) || !is_integer(sizes.type))
    return operation.error(fmt::format("a ragged-dot of {} and {} to {} is not interpreted", name_of(a.type), name_of(b.type), name_of(type)));
  const ProductFactors left{transposed(a, order_a), type}, right{transposed(b, order_b), type};
  const std::int64_t rows = left.array().dims[0], inner = left.array().dims[1], groups = right.array().dims[0], columns = right.array().dims[2];
  if (right.array().dims[1] != inner || sizes.dims[0] != groups)
    return operation.error(
        fmt::format("expected groups and a contracting dimension that agree in {}, {} and {}", short_text(a), short_text(b), short_text(sizes)));
  if (operation.shape().dims != Dims{rows, columns}) return operation.error("expected the rows of the left and the columns of the right operand");
  if (const auto ok = operation.spend(static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns)); !ok) return ok.error();
  ProductSum sum{operation, type, to_size(rows * columns)};
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t size = std::clamp<std::int64_t>(sizes.integers[to_size(g)], 0, rows - first);
    if (size > 0)
      sum.add({&left, to_size(first * inner), to_size(inner)}, {&right, to_size(g * inner * columns), to_size(columns)}, to_size(first * columns),
              to_size(columns), {size, columns, inner});
    first += size;
  }
  return HloArrays{sum.result({rows, columns})};
}

}  // namespace podsim
