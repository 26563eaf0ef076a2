#include "algorithms/mutation/bases.hpp"

#include <fmt/format.h>
#include <numeric>

#include "sim/base/rng.hpp"

namespace podsim::mutation {

namespace {

Mesh row_col(int rows, int columns, bool wraps) { return *Mesh::make({{"row", rows, wraps}, {"col", columns, wraps}}); }

Mesh grid(const std::vector<int>& extents, bool wraps) {
  std::vector<MeshAxis> axes;
  for (std::size_t a = 0; a < extents.size(); ++a) axes.push_back({fmt::format("x{}", a), extents[a], wraps});
  return *Mesh::make(std::move(axes));
}

Expected<Base> lowered(std::string_view name, const Expected<Schedule>& schedule, const CollectiveChooser& chooser) {
  if (!schedule) return schedule.error();
  auto result = lower(*schedule, chooser);
  if (!result) return result.error();
  return Base{fmt::format("{} {} on {}", schedule->name, name, to_text(schedule->mesh)), *std::move(result)};
}

GemmOptions random_options(const GemmAlgorithmEntry& algorithm, int rows, int columns, Rng& rng) {
  GemmOptions options;
  if (algorithm.needs_slice_count) options.slice_count = rng.between(1, 3);
  if (algorithm.name == "summa" && rng.below(2) == 0) options.slice_count = 2 * std::lcm(rows, columns);
  options.block = rng.between(1, 2);
  options.prefetch = rng.between(0, 2);
  options.slice_copies = rng.below(2) == 0;
  if (rng.below(3) == 0) options.wang_operand = rng.below(2) == 0 ? WangOperand::x : WangOperand::w;
  return options;
}

}  // namespace

Expected<Base> small_gemm(const GemmAlgorithmEntry& algorithm, DType dtype, std::uint64_t seed) {
  Rng rng{seed, stream_of(algorithm.name)};
  static const std::vector<std::pair<int, int>> shapes{{1, 2}, {2, 1}, {1, 4}, {4, 1}, {2, 2}, {2, 3},
                                                       {3, 2}, {2, 4}, {4, 2}, {3, 3}, {3, 5}, {4, 4}};
  auto [R, C] = shapes[rng.below(shapes.size())];
  if (algorithm.name == "cannon") R = C = rng.between(2, 4);
  const bool open = rng.below(3) == 0;
  const GemmOptions options = random_options(algorithm, R, C, rng);
  const Dataflow dataflow = algorithm.only ? *algorithm.only : static_cast<Dataflow>(rng.below(3));
  const bool one_axis = algorithm.mesh != MeshUse::row_col;
  Mesh mesh = one_axis ? *Mesh::make({{"ring", R * C, !open}}) : row_col(R, C, !open);
  if (!required_multiples(algorithm, mesh, dataflow, options)) mesh = one_axis ? *Mesh::make({{"ring", R * C, true}}) : row_col(R, C, true);
  const Pass pass = rng.below(5) == 0 && required_multiples(algorithm, mesh, dataflow, Pass::both, options) ? Pass::both : Pass::forward;
  const auto multiples = required_multiples(algorithm, mesh, dataflow, pass, options);
  if (!multiples) return multiples.error();
  const GemmProblem problem{multiples->m * rng.between(1, 2), multiples->n * rng.between(1, 2), multiples->k * rng.between(1, 2), dtype, dataflow};
  return lowered(fmt::format("{} base {}", name_of(dtype), seed), make_layer(algorithm, mesh, problem, pass, options),
                 ring_or_line(in_chunks(2)));
}

Expected<Base> gemm_on(const GemmAlgorithmEntry& algorithm, Dataflow dataflow, DType dtype, int rows, int columns, const GemmOptions& options) {
  const Mesh mesh = algorithm.mesh == MeshUse::row_col ? row_col(rows, columns, true) : *Mesh::make({{"ring", rows * columns, true}});
  const auto multiples = required_multiples(algorithm, mesh, dataflow, options);
  if (!multiples) return multiples.error();
  return lowered(name_of(dtype), make_gemm(algorithm, mesh, {multiples->m, multiples->n, multiples->k, dtype, dataflow}, options), ring_or_line());
}

const std::vector<std::pair<std::string_view, CollectiveKind>>& algorithms_and_kinds() {
  static const std::vector<std::pair<std::string_view, CollectiveKind>> all = [] {
    std::vector<std::pair<std::string_view, CollectiveKind>> pairs;
    for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
      for (int kind = 0; kind < collective_kind_count; ++kind)
        if (entry.kinds.has(static_cast<CollectiveKind>(kind))) pairs.emplace_back(entry.name, static_cast<CollectiveKind>(kind));
    return pairs;
  }();
  return all;
}

Expected<Base> small_collective(std::string_view algorithm, CollectiveKind kind, DType dtype, std::uint64_t seed) {
  Rng rng{seed, stream_of(algorithm) + static_cast<std::uint64_t>(kind)};
  static const std::vector<std::vector<int>> shapes{{2}, {3}, {4}, {5}, {8}, {2, 2}, {3, 2}, {2, 4}, {3, 5}, {4, 4}, {2, 3, 2}, {2, 2, 2}};
  for (int tries = 0; tries < 200; ++tries) {
    const Mesh mesh = grid(shapes[rng.below(shapes.size())], rng.below(2) == 0);
    std::vector<AxisView> axes;
    std::int64_t group = 1;
    for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a) {
      if (a > 0 && rng.below(3) == 0) continue;
      axes.insert(axes.begin() + rng.between(0, static_cast<int>(axes.size())), mesh.whole(a));
      group *= mesh.whole(a).size;
    }
    const bool blocks = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all;
    CollectiveDetails details{rng.between(0, static_cast<int>(group) - 1), {}};
    for (std::int64_t from = 0; from < group; ++from)
      if (rng.below(3) > 0) details.pairs.push_back({from, (from * (group % 2 == 0 ? group - 1 : 2) + 1) % group});
    if (rng.below(2) == 0) details.pairs = shift_pairs(group, rng.between(1, static_cast<int>(group)));
    const Bytes bytes = rng.between(1, 4) * (blocks ? group : 1) * size_of(dtype);
    const auto schedule = collective_schedule(mesh, kind, axes, bytes, dtype, details);
    if (!schedule) continue;
    const auto chooser = always(algorithm, in_chunks(2));
    if (!chooser || !lower(*schedule, *chooser)) continue;
    return lowered(fmt::format("{} {} base {}", algorithm, name_of(dtype), seed), schedule, *chooser);
  }
  return Diagnostic{{}, fmt::format("`{}` did not do {} on any of 200 meshes", algorithm, name_of(kind))};
}

Expected<Base> collective_on(std::string_view algorithm, CollectiveKind kind, DType dtype, const std::vector<int>& extents) {
  const Mesh mesh = grid(extents, true);
  std::vector<AxisView> axes;
  for (int a = 0; a < static_cast<int>(extents.size()); ++a) axes.push_back(mesh.whole(a));
  const bool blocks = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all;
  const Bytes bytes = 2 * (blocks ? mesh.devices() : 1) * size_of(dtype);
  return lowered(fmt::format("{} {}", algorithm, name_of(dtype)), collective_schedule(mesh, kind, axes, bytes, dtype), *always(algorithm));
}

}  // namespace podsim::mutation
