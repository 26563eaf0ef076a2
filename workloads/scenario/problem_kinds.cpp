#include "workloads/scenario/problem_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/text.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// What a reader of one kind gives, as a problem of any.
template <class Spec>
Expected<ProblemSpec> any_problem(Expected<Spec> spec) {
  if (!spec) return spec.error();
  return ProblemSpec{*std::move(spec)};
}

/// Any other problem than those that a field belongs to would ignore it without a word.
Status fields_belong(const Fields& fields, std::string_view problem) {
  for (const FieldKind* field : fields.given()) {
    const auto end = std::find(field->problems.begin(), field->problems.end(), ""), found = std::find(field->problems.begin(), end, problem);
    if (found != end || end == field->problems.begin()) continue;
    std::string text = "belongs to ";
    for (auto owner = field->problems.begin(); owner != end; ++owner) text += fmt::format("{}`{}`", owner == field->problems.begin() ? "" : owner + 1 == end ? " and " : ", ", *owner);
    return Diagnostic{fields.where(field->name), fmt::format("{}, not to `{}`", text, problem)};
  }
  return success();
}

Expected<ProblemSpec> read_program_problem(const Fields& fields, const System& system, DType default_dtype) {
  for (const char* name : {"slice_count", "prefetch"})
    if (fields.has(name)) return Diagnostic{fields.where(name), "of `program` belongs to comparisons with GEMM algorithms; `collectives` names how collectives are lowered"};
  return any_problem(read_sharded(fields, system, default_dtype));
}

using Skips = std::vector<Skipped>;

}  // namespace

std::span<const ProblemKind> problem_kinds() {
  static constexpr std::array kinds{
      ProblemKind{"gemm", "gemm", "matmul", "one matrix product by a distributed algorithm", &read_whole_gemm,
                  [](const Fields& fields, const System& system, const std::string&, Skips&) { return gemm_variants(fields, system); }},
      ProblemKind{"collective", "collective", "", "an all-reduce, all-gather, ...; its own name will do",
                  [](const Fields& fields, const System& system, DType dtype) { return any_problem(read_collective(fields, system, dtype)); }, &collective_variants},
      ProblemKind{"block", "workload", "layer", "a transformer block, each of its products by an algorithm",
                  [](const Fields& fields, const System& system, DType) { return read_open_workload(fields, system); },
                  [](const Fields& fields, const System& system, const std::string&, Skips&) { return workload_variants(fields, system); }},
      ProblemKind{"training", "training", "train", "a training step: data, tensor, pipeline parallel",
                  [](const Fields& fields, const System& system, DType dtype) { return any_problem(read_training(fields, system, dtype)); },
                  [](const Fields& fields, const System& system, const std::string&, Skips&) { return training_variants(fields, system); }},
      ProblemKind{"module", "hlo", "xla", "a module that XLA compiled", [](const Fields& fields, const System&, DType) { return any_problem(read_hlo_problem(fields)); }},
      ProblemKind{"program", "program", "", "statements on sharded arrays, as 'C = A @ B'", &read_program_problem,
                  [](const Fields& fields, const System& system, const std::string&, Skips&) { return program_variants(fields, system); }},
      ProblemKind{"plan", "plan", "", "what podsim tune wrote", [](const Fields& fields, const System&, DType) { return read_planned(fields); }},
      ProblemKind{"schedule", "schedule", "", "a saved schedule", [](const Fields& fields, const System& system, DType) { return read_saved_schedule(fields, system); }},
      ProblemKind{"msccl", "msccl", "", "a collective as an algorithm of MSCCL",
                  [](const Fields& fields, const System& system, DType dtype) { return any_problem(read_msccl_problem(fields, fields.text("msccl"), system, dtype)); }, &msccl_variants},
      ProblemKind{"chakra", "chakra", "", "Chakra execution traces", [](const Fields& fields, const System& system, DType) { return read_traces(fields, system); }},
  };
  return kinds;
}

const ProblemKind* problem_kind_named(std::string_view name) {
  const std::string asked = plain_spelling(name);
  const auto kinds = problem_kinds();
  const auto found = std::ranges::find_if(kinds, [&](const ProblemKind& kind) { return !asked.empty() && (kind.name == asked || kind.field == asked || kind.also == asked); });
  return found == kinds.end() ? nullptr : &*found;
}

Expected<const ProblemKind*> problem_kind(const Fields& fields, bool compared) {
  const ProblemKind* problem = nullptr;
  int given = 0;
  std::vector<std::string_view> names;
  for (const ProblemKind& kind : problem_kinds()) {
    if (compared && kind.variants == nullptr) continue;
    names.push_back(kind.field);
    if (fields.has(kind.field) || (kind.field == "training" && fields.has("maxtext"))) problem = &kind, ++given;
  }
  if (given != 1) {
    std::string all;
    for (std::size_t k = 0; k < names.size(); ++k) all += fmt::format("{}`{}`", k == 0 ? "" : k + 1 == names.size() ? " and " : ", ", names[k]);
    return Diagnostic{{}, fmt::format("expected one of {}, found {}", all, given == 0 ? "none" : "several")};
  }
  if (auto ok = fields_belong(fields, problem->field); !ok) return ok.error();
  return problem;
}

Expected<ProblemSpec> read_problem(const Fields& fields, const System& system, DType default_dtype) {
  const auto kind = problem_kind(fields);
  if (!kind) return kind.error();
  return (*kind)->read(fields, system, default_dtype);
}

}  // namespace podsim
