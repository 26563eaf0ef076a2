#include <fmt/format.h>

#include <array>
#include <numeric>

#include "algorithms/gemm/gemm.hpp"

namespace podsim {

namespace {

constexpr std::array<std::string_view, 3> dataflow_names{"os", "ls", "rs"};

std::int64_t round_up(std::int64_t extent, std::int64_t multiple) { return (extent + multiple - 1) / multiple * multiple; }

}  // namespace

std::string_view name_of(Dataflow dataflow) { return dataflow_names[static_cast<std::size_t>(dataflow)]; }

std::optional<Dataflow> dataflow_named(std::string_view name) {
  for (std::size_t i = 0; i < dataflow_names.size(); ++i)
    if (dataflow_names[i] == name) return static_cast<Dataflow>(i);
  return std::nullopt;
}

std::span<const GemmAlgorithmEntry> gemm_algorithms() {
  static constexpr std::array<GemmAlgorithmEntry, 2> table{{
      {"collective", "gather, one matmul, reduce-scatter; nothing overlaps", false,
       [](const Mesh& mesh, const GemmProblem& problem, const GemmOptions&) { return collective_gemm(mesh, problem); }},
      {"meshslice", "S slices of interleaved blocks; collectives of the next slices overlap the matmul of this one", true, &meshslice_gemm},
  }};
  return table;
}

Expected<const GemmAlgorithmEntry*> gemm_algorithm(std::string_view name) {
  std::vector<std::string> names;
  for (const GemmAlgorithmEntry& entry : gemm_algorithms()) {
    if (entry.name == name) return &entry;
    names.emplace_back(entry.name);
  }
  return Diagnostic{{}, "there is no GEMM algorithm " + quoted(name) + did_you_mean(name, names) + fmt::format("; there are {}", fmt::join(names, ", "))};
}

Expected<Multiples> required_multiples(const Mesh& mesh, Dataflow dataflow, std::int64_t slice_count, std::int64_t block) {
  const auto row = mesh.axis("row"), col = mesh.axis("col");
  if (!row || !col || mesh.axes().size() != 2 || row->axis != 0)
    return Diagnostic{{}, fmt::format("a 2-D GEMM needs a mesh of two axes, row and col; found {}", to_text(mesh))};
  if (slice_count < 1 || slice_count > (1 << 20)) return Diagnostic{{}, fmt::format("the slice count must be 1 to 1048576, found {}", slice_count)};
  if (block < 1 || block > (1 << 20)) return Diagnostic{{}, fmt::format("the block must be 1 to 1048576, found {}", block)};
  const std::int64_t R = row->size, C = col->size;
  const std::int64_t moving = std::lcm(R, C) * (slice_count == 1 ? 1 : slice_count * block);
  switch (dataflow) {
    case Dataflow::os: return Multiples{R, C, moving};
    case Dataflow::ls: return Multiples{R, moving, C};
    case Dataflow::rs: return Multiples{moving, C, R};
  }
  return Multiples{};
}

GemmProblem padded(const GemmProblem& problem, const Multiples& multiples) {
  GemmProblem result = problem;
  result.m = round_up(problem.m, multiples.m);
  result.n = round_up(problem.n, multiples.n);
  result.k = round_up(problem.k, multiples.k);
  return result;
}

}  // namespace podsim
