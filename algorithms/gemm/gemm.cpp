#include "algorithms/gemm/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "algorithms/gemm/writer.hpp"

namespace podsim {

namespace {

constexpr std::array<std::string_view, 3> pass_names{"forward", "backward", "both"};

std::int64_t round_up(std::int64_t extent, std::int64_t multiple) { return (extent + multiple - 1) / multiple * multiple; }

/// Two extents are split over the devices; the moving one is cut into pieces on both axes.
Multiples moving_multiple(int R, int C, Dataflow dataflow, std::int64_t moving) {
  const DataflowTraits& flow = traits_of(dataflow);
  GemmProblem multiple;
  multiple.*flow.by_rows = R;
  multiple.*flow.by_columns = C;
  multiple.*flow.moving = moving;
  return {multiple.m, multiple.n, multiple.k};
}

Expected<Multiples> of_collective(int R, int C, Dataflow dataflow, const GemmOptions&) { return moving_multiple(R, C, dataflow, std::lcm(R, C)); }

Expected<Multiples> of_meshslice(int R, int C, Dataflow dataflow, const GemmOptions& options) {
  const std::int64_t slices = options.slice_count;  // checked to be positive
  return moving_multiple(R, C, dataflow, std::lcm<std::int64_t>(R, C) * (slices == 1 ? 1 : slices * options.block));
}

Expected<Multiples> of_summa(int R, int C, Dataflow dataflow, const GemmOptions& options) {
  const std::int64_t least = std::lcm(R, C), panels = options.slice_count == 0 ? least : options.slice_count;
  if (panels % least != 0) return Diagnostic{{}, fmt::format("summa takes a multiple of lcm(R, C) = {} panels, found {}", least, panels)};
  return moving_multiple(R, C, dataflow, panels);
}

Expected<Multiples> of_cannon(int R, int C, Dataflow, const GemmOptions&) {
  if (R != C) return Diagnostic{{}, fmt::format("cannon needs a square mesh, found {}x{}", R, C)};
  return Multiples{R, R, R};
}

Expected<Multiples> of_megatron(int, int C, Dataflow dataflow, const GemmOptions&) {
  return traits_of(dataflow).by_columns == &GemmProblem::k ? Multiples{C, 1, C} : Multiples{1, C, 1};
}

Expected<Multiples> of_row_gather(int R, int, Dataflow dataflow, const GemmOptions&) {
  if (traits_of(dataflow).reduces) return Diagnostic{{}, "tp-ag-* is a forward product only"};
  return Multiples{R, R, 1};
}

template <WangStyle style>
void wang(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) {
  write_wang(writer, problem, options, style);
}

void row_gather_plain(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) {
  write_row_gather(writer, problem, options, std::nullopt);
}
template <WangStyle style>
void row_gather(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) {
  write_row_gather(writer, problem, options, style);
}

using enum MeshUse;
constexpr std::optional<Dataflow> any = std::nullopt;

constexpr std::array<GemmAlgorithmEntry, 18> algorithms{{
    {"collective", "gather, one matmul, reduce-scatter; nothing overlaps", row_col, false, false, any, &of_collective, &write_collective},
    {"meshslice", "S slices of interleaved blocks; collectives of the next slices overlap the matmul of this one", row_col, true, true, any,
     &of_meshslice, &write_meshslice},
    {"summa", "S panels, broadcast one after the other", row_col, false, true, any, &of_summa, &write_summa},
    {"cannon", "skew, then neighbour shifts of both operands; square meshes", row_col, false, false, any, &of_cannon, &write_cannon},
    {"wang", "one operand gathered, the other passes round its ring in two halves, overlapped", row_col, false, false, any, &of_collective,
     &wang<WangStyle::both_ways>},
    {"1d-os", "all devices on one ring: activations pass round it (wang OS on 1 x P)", one_axis_as_col, false, false, Dataflow::os, &of_collective,
     &wang<WangStyle::both_ways>},
    {"1d-ls", "all devices on one ring: partial sums pass round it (wang LS on 1 x P)", one_axis_as_col, false, false, Dataflow::ls, &of_collective,
     &wang<WangStyle::both_ways>},
    {"1d-fsdp", "all devices split the rows; weights are gathered (collective on P x 1)", one_axis_as_row, false, false, any, &of_collective,
     &write_collective},
    {"1d-megatron", "column-parallel (os, rs: nothing moves) and row-parallel (ls: all-reduce) halves of a pair", one_axis_as_col, false, false, any,
     &of_megatron, &write_megatron},
    {"jax-ag-plain", "shard_map: all-gather, then one dot", one_axis_as_row, false, false, Dataflow::os, &of_collective, &write_collective},
    {"jax-ag-overlapped", "shard_map: blocks of W pass one way, a dot per block", one_axis_as_row, false, false, Dataflow::os, &of_collective,
     &wang<WangStyle::one_way>},
    {"jax-ag-bidirectional", "shard_map: half blocks of W pass both ways, a dot per hop", one_axis_as_row, false, false, Dataflow::os, &of_collective,
     &wang<WangStyle::both_ways>},
    {"jax-rs-plain", "shard_map: one dot, then reduce-scatter", one_axis_as_row, false, false, Dataflow::rs, &of_collective, &write_collective},
    {"jax-rs-overlapped", "shard_map: accumulators pass one way, a dot per step", one_axis_as_row, false, false, Dataflow::rs, &of_collective,
     &wang<WangStyle::one_way>},
    {"jax-rs-bidirectional", "shard_map: half accumulators pass both ways, two half dots per step", one_axis_as_row, false, false, Dataflow::rs,
     &of_collective, &wang<WangStyle::two_half_dots>},
    {"tp-ag-plain", "tensor parallel: rows of X gathered, then one dot", one_axis_as_row, false, false, Dataflow::os, &of_row_gather,
     &row_gather_plain},
    {"tp-ag-overlapped", "tensor parallel: rows of X pass one way, a dot per block", one_axis_as_row, false, false, Dataflow::os, &of_row_gather,
     &row_gather<WangStyle::one_way>},
    {"tp-ag-bidirectional", "tensor parallel: rows of X pass both ways in halves, a dot per half", one_axis_as_row, false, false, Dataflow::os,
     &of_row_gather, &row_gather<WangStyle::both_ways>},
}};

/// The submesh as the algorithm uses it: one that works along a ring has it as its rows or as its columns.
Expected<Submesh> oriented(const GemmAlgorithmEntry& algorithm, Submesh submesh) {
  if (algorithm.mesh == MeshUse::row_col) return submesh;
  if (submesh.rows.size > 1 && submesh.columns.size > 1)
    return Diagnostic{{}, fmt::format("{} needs a mesh of one axis, found {}", algorithm.name, to_text(submesh))};
  const bool along_columns = submesh.rows.size == 1 && submesh.columns != one_device;
  const AxisView ring = along_columns ? submesh.columns : submesh.rows;
  submesh.rows = algorithm.mesh == MeshUse::one_axis_as_row ? ring : one_device;
  submesh.columns = algorithm.mesh == MeshUse::one_axis_as_col ? ring : one_device;
  return submesh;
}

/// Everything that can be wrong with a problem but its extents.
Status check_options(const GemmAlgorithmEntry& algorithm, const GemmOptions& options) {
  constexpr std::int64_t largest = 1 << 20;
  if (options.slice_count < (algorithm.needs_slice_count ? 1 : 0) || options.slice_count > largest)
    return Diagnostic{{}, fmt::format("the slice count must be 1 to {}, found {}", largest, options.slice_count)};
  if (options.block < 1 || options.block > largest) return Diagnostic{{}, fmt::format("the block must be 1 to {}, found {}", largest, options.block)};
  if (options.prefetch < 0 || options.prefetch > 1024)
    return Diagnostic{{}, fmt::format("the prefetch depth must be 0 to 1024, found {}", options.prefetch)};
  return success();
}

Expected<Submesh> prepare(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmOptions& options) {
  auto used = oriented(algorithm, submesh);
  if (!used) return used;
  if (auto ok = check_options(algorithm, options); !ok) return ok.error();
  return used;
}

/// Names the extent that does not divide.
Status divides(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& problem, const Multiples& multiples,
               const GemmOptions& options) {
  struct Check {
    std::string_view name;
    std::int64_t extent, multiple;
  };
  for (const Check& check : {Check{"m", problem.m, multiples.m}, {"n", problem.n, multiples.n}, {"k", problem.k, multiples.k}}) {
    if (check.extent >= 1 && check.extent % check.multiple == 0) continue;
    std::string sliced;
    if (algorithm.takes_slice_count && options.slice_count > 0) sliced = fmt::format(", S={}", options.slice_count);
    if (algorithm.needs_slice_count) sliced += fmt::format(", B={}", options.block);
    return Diagnostic{{},
                      fmt::format("{} must be a positive multiple of {} ({} {} on {}{}), found {}; `pad` rounds it up", check.name, check.multiple,
                                  algorithm.name, name_of(problem.dataflow), to_text(submesh), sliced, check.extent)};
  }
  return success();
}

std::string schedule_name(const GemmAlgorithmEntry& algorithm, const GemmProblem& problem, const GemmOptions& options) {
  std::string name = fmt::format("{} {}", algorithm.name, name_of(problem.dataflow));
  return algorithm.takes_slice_count && options.slice_count > 0 ? fmt::format("{} S={}", name, options.slice_count) : name;
}

/// Meshslice with one slice is collective: one meaning, one schedule.
const GemmAlgorithmEntry& as_written(const GemmAlgorithmEntry& algorithm, const GemmOptions& options) {
  return algorithm.write == &write_meshslice && options.slice_count == 1 ? algorithms.front() : algorithm;
}

/// What the operands of the three GEMMs of layer_problems() are called: the forward product, the gradient of its left operand, that of its right one.
std::vector<GemmWriter::Names> layer_names(Dataflow forward, const LayerOperands& operands) {
  const auto& [left, right, out] = operands;
  std::vector<GemmWriter::Names> names{{out, left, right, ""}};
  const auto of = [&operands](Operand operand) {  // clang 14 captures no structured binding
    return operand == Operand::out ? "d" + operands.out : operand == Operand::left ? operands.left : operands.right;
  };
  const auto& gradients = traits_of(forward).gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string gradient = "d" + (i == 0 ? left : right);
    names.push_back({gradient, of(gradients[i].left), of(gradients[i].right), gradient + ": "});
  }
  return names;
}

}  // namespace

std::string_view name_of(Pass pass) { return pass_names[static_cast<std::size_t>(pass)]; }

std::optional<Pass> pass_named(std::string_view name) {
  for (std::size_t i = 0; i < pass_names.size(); ++i)
    if (pass_names[i] == name) return static_cast<Pass>(i);
  return std::nullopt;
}

std::span<const GemmAlgorithmEntry> gemm_algorithms() { return algorithms; }

Expected<const GemmAlgorithmEntry*> gemm_algorithm(std::string_view name) {
  std::vector<std::string> names;
  for (const GemmAlgorithmEntry& entry : algorithms) {
    if (entry.name == name) return &entry;
    names.emplace_back(entry.name);
  }
  return Diagnostic{{},
                    "there is no GEMM algorithm " + quoted(name) + did_you_mean(name, names) + fmt::format("; there are {}", fmt::join(names, ", "))};
}

Expected<Submesh> submesh_for(const GemmAlgorithmEntry& algorithm, const Mesh& mesh) {
  if (algorithm.mesh != MeshUse::row_col) {
    std::vector<AxisView> axes;
    for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a)
      if (mesh.axes().size() == 1 || mesh.whole(a).size > 1) axes.push_back(mesh.whole(a));
    if (axes.size() > 1) return Diagnostic{{}, fmt::format("{} needs a mesh of one axis, found {}", algorithm.name, to_text(mesh))};
    return submesh_of(mesh, axes.empty() ? one_device : axes.front(), one_device);
  }
  if (mesh.axes().size() != 2) return Diagnostic{{}, fmt::format("a 2-D GEMM needs a mesh of two axes, row and col; found {}", to_text(mesh))};
  // Axes of other names are rows and columns in this order.
  const auto row = mesh.axis("row"), col = mesh.axis("col");
  if (row.has_value() != col.has_value())
    return Diagnostic{{}, fmt::format("a 2-D GEMM needs a mesh of two axes, row and col or both named otherwise; found {}", to_text(mesh))};
  return row ? submesh_of(mesh, *row, *col) : submesh_of(mesh, mesh.whole(0), mesh.whole(1));
}

Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, Dataflow dataflow, const GemmOptions& options) {
  const auto used = prepare(algorithm, submesh, options);
  if (!used) return used.error();
  return algorithm.multiples(used->rows.size, used->columns.size, dataflow, options);
}

Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow dataflow, const GemmOptions& options) {
  const auto submesh = submesh_for(algorithm, mesh);
  if (!submesh) return submesh.error();
  return required_multiples(algorithm, *submesh, dataflow, options);
}

GemmProblem padded(const GemmProblem& problem, const Multiples& multiples) {
  GemmProblem result = problem;
  result.m = round_up(problem.m, multiples.m);
  result.n = round_up(problem.n, multiples.n);
  result.k = round_up(problem.k, multiples.k);
  return result;
}

Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& problem, const GemmOptions& options) {
  return make_layer(algorithm, submesh, problem, Pass::forward, options);
}

Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options) {
  return make_layer(algorithm, mesh, problem, Pass::forward, options);
}

std::vector<GemmProblem> layer_problems(const GemmProblem& forward) {
  std::vector<GemmProblem> problems{forward};
  const auto& gradients = traits_of(forward.dataflow).gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const OperandShape shape = shape_of(forward.dataflow, i == 0 ? Operand::left : Operand::right);
    problems.push_back({forward.*shape.rows, forward.*shape.columns, forward.*shape.absent, forward.dtype, gradients[i].dataflow});
  }
  return problems;
}

Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options) {
  // Of each GEMM, whose m, n, k are the forward ones in another order: marked by distinct extents.
  const std::vector<GemmProblem> problems = layer_problems({1, 2, 3, DType::bf16, forward});
  Multiples all;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (i == 0 ? pass == Pass::backward : pass == Pass::forward) continue;
    const auto multiples = required_multiples(algorithm, submesh, problems[i].dataflow, options);
    if (!multiples) return multiples.error();
    for (const auto& [extent, multiple] : {std::pair{problems[i].m, multiples->m}, {problems[i].n, multiples->n}, {problems[i].k, multiples->k}}) {
      std::int64_t& entry = extent == 1 ? all.m : extent == 2 ? all.n : all.k;
      entry = std::lcm(entry, multiple);
    }
  }
  return all;
}

Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options) {
  const auto submesh = submesh_for(algorithm, mesh);
  if (!submesh) return submesh.error();
  return required_multiples(algorithm, *submesh, forward, pass, options);
}

Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands) {
  const auto used = prepare(algorithm, submesh, options);
  if (!used) return used.error();
  if (algorithm.only && *algorithm.only != forward.dataflow)
    return Diagnostic{{}, fmt::format("{} is {}, found {}", algorithm.name, name_of(*algorithm.only), name_of(forward.dataflow))};
  const std::vector<GemmProblem> problems = layer_problems(forward);
  const std::vector<GemmWriter::Names> names = layer_names(forward.dataflow, operands);
  const GemmAlgorithmEntry& entry = as_written(algorithm, options);

  GemmWriter writer{*used, forward.dtype};
  Tasks start;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (i == 0 ? pass == Pass::backward : pass == Pass::forward) continue;
    const auto multiples = algorithm.multiples(used->rows.size, used->columns.size, problems[i].dataflow, options);
    if (!multiples) return multiples.error();
    if (auto ok = divides(algorithm, *used, problems[i], *multiples, options); !ok) return Diagnostic{{}, names[i].prefix + ok.error().message};
    writer.begin(problems[i], names[i], start);
    entry.write(writer, problems[i], options);
    if (i == 0) start = writer.last_tasks();
  }
  constexpr std::array<std::string_view, 3> suffix{"", ", backward", ", forward and backward"};
  return std::move(writer).finish(schedule_name(entry, forward, options) + std::string{suffix[static_cast<std::size_t>(pass)]});
}

Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands) {
  const auto submesh = submesh_for(algorithm, mesh);
  if (!submesh) return submesh.error();
  return make_layer(algorithm, *submesh, forward, pass, options, operands);
}

}  // namespace podsim
