#include "sim/engine/numeric/collective_reference.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/engine/numeric/layout.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim {
namespace {

using Array = std::vector<double>;

/// Block `b` of `blocks` along dimension `dim` of an array shaped like the region.
Layout block_of(const Region& region, int dim, std::int64_t b, std::int64_t blocks) {
  BoxExtents extents{}, begin{}, length{};
  const std::size_t rank = region.dims.size();
  for (std::size_t i = 0; i < rank; ++i) extents[i] = length[i] = region.dims[i].length;
  const auto d = static_cast<std::size_t>(dim);
  length[d] /= blocks;
  begin[d] = b * length[d];
  return box_of(std::span{extents}.first(rank), std::span{begin}.first(rank), std::span{length}.first(rank));
}

void copy(const Array& in, const Layout& from, Array& out, const Layout& to) {
  for_each_run<2>({&from, &to}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    const double* source = in.data() + at[0].offset();
    double* target = out.data() + at[1].offset();
    for (std::int64_t i = 0; i < count; ++i) target[i * at[1].stride()] = source[i * at[0].stride()];
  });
}

Array reduced(Reduction reduction, const std::vector<Array>& inputs) {
  Array total = inputs.front();
  for (std::size_t p = 1; p < inputs.size(); ++p)
    for (std::size_t i = 0; i < total.size(); ++i) {
      const double other = inputs[p][i];
      if (reduction == Reduction::sum) total[i] += other;
      else if (other > total[i] || std::isnan(other)) total[i] = other;
    }
  return total;
}

std::optional<Diagnostic> indivisible(const Collective& collective, const Region& region, int dim, std::int64_t blocks, std::string_view what) {
  const bool exists = dim >= 0 && dim < static_cast<int>(region.dims.size());
  if (exists && region.dims[static_cast<std::size_t>(dim)].length % blocks == 0) return std::nullopt;
  return Diagnostic{{}, fmt::format("{}: dimension {} of the {} does not divide into {} blocks", name_of(collective.kind), dim, what, blocks)};
}

CollectiveOutputs same_for_all(Array array, std::size_t positions) {
  CollectiveOutputs outputs;
  outputs.arrays.push_back(std::move(array));
  outputs.array_of.assign(positions, 0);
  return outputs;
}

CollectiveOutputs only_at(std::int64_t root, Array array, std::size_t positions) {
  CollectiveOutputs outputs;
  outputs.arrays.push_back(std::move(array));
  outputs.array_of.resize(positions);
  outputs.array_of[static_cast<std::size_t>(root)] = 0;
  return outputs;
}

/// Position p has make(p).
template <class Make>
CollectiveOutputs one_each(std::size_t positions, Make make) {
  CollectiveOutputs outputs;
  for (std::size_t p = 0; p < positions; ++p) {
    outputs.arrays.push_back(make(static_cast<std::int64_t>(p)));
    outputs.array_of.emplace_back(p);
  }
  return outputs;
}

}  // namespace

Expected<CollectiveOutputs> outputs_of(const Collective& collective, const std::vector<Array>& inputs) {
  const std::size_t positions = inputs.size();
  const auto P = static_cast<std::int64_t>(positions);
  const auto out_count = static_cast<std::size_t>(elements_of(collective.output));
  switch (collective.kind) {
    case CollectiveKind::all_gather: {
      if (auto problem = indivisible(collective, collective.output, collective.dim, P, "output")) return *problem;
      Array gathered(out_count);
      for (std::int64_t b = 0; b < P; ++b) {
        const Array& input = inputs[static_cast<std::size_t>(b)];
        copy(input, contiguous(static_cast<std::int64_t>(input.size())), gathered, block_of(collective.output, collective.dim, b, P));
      }
      return same_for_all(std::move(gathered), positions);
    }
    case CollectiveKind::reduce_scatter: {
      if (auto problem = indivisible(collective, collective.input, collective.dim, P, "input")) return *problem;
      const Array total = reduced(collective.reduction, inputs);
      return one_each(positions, [&](std::int64_t p) {
        Array own(out_count);
        copy(total, block_of(collective.input, collective.dim, p, P), own, contiguous(static_cast<std::int64_t>(out_count)));
        return own;
      });
    }
    case CollectiveKind::all_to_all: {
      if (auto problem = indivisible(collective, collective.input, collective.split_dim, P, "input")) return *problem;
      if (auto problem = indivisible(collective, collective.output, collective.dim, P, "output")) return *problem;
      return one_each(positions, [&](std::int64_t p) {
        Array own(out_count);
        for (std::int64_t b = 0; b < P; ++b)
          copy(inputs[static_cast<std::size_t>(b)], block_of(collective.input, collective.split_dim, p, P), own,
               block_of(collective.output, collective.dim, b, P));
        return own;
      });
    }
    case CollectiveKind::all_reduce: return same_for_all(reduced(collective.reduction, inputs), positions);
    case CollectiveKind::broadcast: return same_for_all(inputs[static_cast<std::size_t>(collective.root)], positions);
    case CollectiveKind::reduce: return only_at(collective.root, reduced(collective.reduction, inputs), positions);
    case CollectiveKind::permute: {
      CollectiveOutputs outputs;
      outputs.array_of.resize(positions);
      for (const Collective::Pair& pair : collective.pairs) {
        outputs.array_of[static_cast<std::size_t>(pair.to)] = outputs.arrays.size();
        outputs.arrays.push_back(inputs[static_cast<std::size_t>(pair.from)]);
      }
      return outputs;
    }
  }
  return Diagnostic{{}, "this kind of collective has no definition"};
}

std::int64_t output_elements(const Collective& collective, std::int64_t positions) {
  const std::int64_t each = elements_of(collective.output);
  const bool differ = collective.kind == CollectiveKind::reduce_scatter || collective.kind == CollectiveKind::all_to_all ||
                      collective.kind == CollectiveKind::permute;
  return differ ? saturating_multiply(each, positions) : each;
}

}  // namespace podsim
