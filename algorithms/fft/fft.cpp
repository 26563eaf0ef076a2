#include "algorithms/fft/fft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "algorithms/fft/passes.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

using Spec = std::vector<std::vector<AxisView>>;

Diagnostic error(std::string text) { return {{}, std::move(text)}; }

std::size_t divided_dimensions(const FftProblem& problem) {
  std::size_t count = 0;
  for (std::size_t d = 0; d < problem.extents.size(); ++d) count += dividing_axes(problem, d).empty() ? 0 : 1;
  return count;
}

/// "(x+y),-"
std::string spec_text(const Spec& spec, const Mesh& mesh) {
  std::string text;
  for (const std::vector<AxisView>& axes : spec) {
    const std::string names = axes.empty() ? "-" : names_of(axes, mesh);
    text += (text.empty() ? "" : ",") + (axes.size() > 1 ? "(" + names + ")" : names);
  }
  return text;
}

Spec spec_of(const FftProblem& problem) {
  Spec spec;
  for (std::size_t d = 0; d < problem.extents.size(); ++d) spec.push_back(dividing_axes(problem, d));
  return spec;
}

/// The axes of the last dimension on the last other one without axes, else behind those of the one before.
Spec spec_without_last(const FftProblem& problem) {
  Spec spec = spec_of(problem);
  std::size_t to = spec.size() - 2;
  for (std::size_t d = 0; d + 1 < spec.size(); ++d)
    if (spec[d].empty()) to = d;
  spec[to].insert(spec[to].end(), spec.back().begin(), spec.back().end());
  spec.back().clear();
  return spec;
}

/// All dividing axes on the first dimension that has any.
Spec spec_on_one_dimension(const FftProblem& problem) {
  Spec spec = spec_of(problem);
  const auto first = std::find_if(spec.begin(), spec.end(), [](const auto& axes) { return !axes.empty(); });
  for (auto dimension = first; dimension != spec.end(); ++dimension)
    if (dimension != first) {
      first->insert(first->end(), dimension->begin(), dimension->end());
      dimension->clear();
    }
  return spec;
}

/// What is wrong with a problem whatever its extents and method.
Status check_problem(const FftProblem& problem, const Mesh& mesh) {
  if (problem.extents.empty()) return error("an FFT needs at least one dimension, found a scalar");
  if (problem.sharding.size() > problem.extents.size())
    return error(fmt::format("the sharding has {} dimensions, the array {}", problem.sharding.size(), problem.extents.size()));
  for (std::size_t d = 0; d < problem.extents.size(); ++d)
    if (problem.extents[d] < 1) return error(fmt::format("dimension {} has extent {}; an FFT needs at least 1", d, problem.extents[d]));
  std::set<int> seen;
  for (const std::vector<AxisView>& axes : problem.sharding)
    for (const AxisView& axis : axes) {
      PODSIM_ASSERT(static_cast<std::size_t>(axis.axis) < mesh.axes().size());
      if (!seen.insert(axis.axis).second) return error(fmt::format("mesh axis {} divides the array twice", mesh.name(axis)));
    }
  if (problem.input != DType::c64 && problem.input != DType::f32) return error(fmt::format("an FFT of {}; expected c64 or f32", name_of(problem.input)));
  if (problem.chunks < 1) return error(fmt::format("an FFT in {} chunks; expected at least 1", problem.chunks));
  return success();
}

Status check_method(FftMethod method, const FftProblem& problem, const Mesh& mesh) {
  const std::size_t rank = problem.extents.size(), divided = divided_dimensions(problem);
  if (method == FftMethod::naive) return success();
  if (method == FftMethod::four_step) {
    if (rank == 1) return success();
    return error(fmt::format("four-step is for arrays of one dimension, found {}; expected pencil, slab or naive", rank));
  }
  if (!dividing_axes(problem, rank - 1).empty()) {
    if (rank == 1)
      return error(fmt::format("{} leaves the last dimension whole, and {} divides the only one; expected four-step or naive", name_of(method),
                               spec_text(spec_of(problem), mesh)));
    return error(fmt::format("the last dimension of {} is divided, and {} transforms along it first; expected it whole: reshard to {}",
                             spec_text(spec_of(problem), mesh), name_of(method), spec_text(spec_without_last(problem), mesh)));
  }
  if (method == FftMethod::pencil && rank < 3)
    return error(fmt::format("pencil is for arrays of three or more dimensions, found {}; expected slab or naive", rank));
  if (method == FftMethod::slab && divided > 1)
    return error(fmt::format("slab divides one dimension, {} divides {}; expected pencil or naive, or reshard to {}", spec_text(spec_of(problem), mesh), divided,
                             spec_text(spec_on_one_dimension(problem), mesh)));
  return success();
}

FftPasses naive_passes(const FftProblem& problem) {
  FftPasses naive;
  FftResult& result = naive.result;
  result.extents = result.view = problem.extents;
  result.sharding.resize(problem.extents.size());
  result.permutation.resize(problem.extents.size());
  std::iota(result.permutation.begin(), result.permutation.end(), 0);
  for (std::size_t d = 0; d < problem.extents.size(); ++d) naive.multiples.push_back(devices_along(dividing_axes(problem, d)));
  return naive;
}

Expected<FftPasses> checked_passes(FftMethod method, const FftProblem& problem, const Mesh& mesh) {
  if (auto ok = check_problem(problem, mesh); !ok) return ok.error();
  if (auto ok = check_method(method, problem, mesh); !ok) return ok.error();
  return method == FftMethod::naive ? naive_passes(problem) : fft_passes(method, problem, mesh);
}

std::string in_chunks(FftMethod method, const FftProblem& problem) {
  return problem.chunks == 1 || method == FftMethod::naive ? "" : fmt::format(" in {} chunks", problem.chunks);
}

/// The claim: Y is the transform of X, stored as the result says.
ReferenceProgram reference_of(const FftProblem& problem, const FftResult& result) {
  ReferenceProgram reference;
  const auto add = [&](ReferenceNode node) {
    reference.nodes.push_back(std::move(node));
    return static_cast<int>(reference.nodes.size()) - 1;
  };
  std::vector<int> every(problem.extents.size());
  std::iota(every.begin(), every.end(), 0);
  int node = add({.kind = ReferenceKind::input, .extents = problem.extents, .tensor = "X", .complex = problem.input == DType::c64});
  node = add({.kind = ReferenceKind::fft, .operands = {node}, .extents = problem.extents, .dims = every, .inverse = problem.inverse, .complex = true});
  if (result.view != problem.extents) node = add({.kind = ReferenceKind::reshape, .operands = {node}, .extents = result.view, .complex = true});
  if (!std::is_sorted(result.permutation.begin(), result.permutation.end()))
    node = add({.kind = ReferenceKind::transpose, .operands = {node}, .extents = result.extents, .permutation = result.permutation, .complex = true});
  reference.outputs = {{"Y", node}};
  return reference;
}

Buffer block_of(std::string name, DType dtype, Role role, const Extents& extents, const Spec& sharding) {
  std::vector<ShardedDimension> dimensions;
  for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], d < sharding.size() ? sharding[d] : std::vector<AxisView>{}});
  return sharded_buffer(std::move(name), dtype, role, dimensions);
}

}  // namespace

std::string_view name_of(FftMethod method) {
  switch (method) {
    case FftMethod::pencil: return "pencil";
    case FftMethod::slab: return "slab";
    case FftMethod::four_step: return "four-step";
    case FftMethod::naive: return "naive";
  }
  PODSIM_ASSERT(false);
  return {};
}

std::optional<FftMethod> fft_method_named(std::string_view name) {
  const auto* found = std::find_if(fft_methods.begin(), fft_methods.end(), [&](FftMethod method) { return name_of(method) == name; });
  return found == fft_methods.end() ? std::nullopt : std::optional{*found};
}

std::string_view name_of(FftOrder order) { return order == FftOrder::natural ? "natural" : "transposed"; }

Expected<Extents> fft_multiples(FftMethod method, const FftProblem& problem, const Mesh& mesh) {
  const auto passes = checked_passes(method, problem, mesh);
  if (!passes) return passes.error();
  return passes->multiples;
}

Expected<FftResult> fft_result(FftMethod method, const FftProblem& problem, const Mesh& mesh) {
  const auto passes = checked_passes(method, problem, mesh);
  if (!passes) return passes.error();
  for (std::size_t d = 0; d < problem.extents.size(); ++d)
    if (problem.extents[d] % passes->multiples[d] != 0)
      return error(fmt::format("dimension {} has {} elements; {} of {}{} needs a multiple of {}", d, problem.extents[d], name_of(method),
                               spec_text(spec_of(problem), mesh), in_chunks(method, problem), passes->multiples[d]));
  return passes->result;
}

std::optional<FftMethod> default_fft_method(const FftProblem& problem) {
  const std::size_t rank = problem.extents.size();
  if (rank > 0 && !dividing_axes(problem, rank - 1).empty()) return rank == 1 ? std::optional{FftMethod::four_step} : std::nullopt;
  return divided_dimensions(problem) > 1 ? FftMethod::pencil : FftMethod::slab;
}

Expected<Schedule> make_fft(FftMethod method, const Mesh& mesh, const FftProblem& problem) {
  const auto result = fft_result(method, problem, mesh);
  if (!result) return result.error();
  Schedule schedule;
  schedule.mesh = mesh;
  schedule.name = fmt::format("{} {} of {} {}{}", method == FftMethod::naive ? "naive" : fmt::format("{} {}", name_of(method), name_of(problem.order)),
                              problem.inverse ? "ifft" : "fft", name_of(problem.input), fmt::join(problem.extents, "x"), in_chunks(method, problem));
  ProgramBuilder builder{schedule.mesh, every_device(mesh)};
  const Region x = builder.whole(builder.add_buffer(block_of("X", problem.input, Role::input, problem.extents, problem.sharding)));
  const Region y = builder.whole(builder.add_buffer(block_of("Y", DType::c64, Role::output, result->extents, result->sharding)));
  add_fft(builder, method, problem, x, y, {});
  schedule.programs.push_back(std::move(builder).finish());
  schedule.computes = reference_of(problem, *result);
  return schedule;
}

}  // namespace podsim
