// The kinds of problem: what the command calls them, the field that says each, and what makes a problem, or the variants of a comparison, of their fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/system.hpp"
#include "workloads/scenario/compare.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/problem.hpp"

namespace podsim {

struct ProblemKind {
  std::string_view name;     // "module": as in `podsim run module step.hlo`
  std::string_view field;    // "hlo": that holds what it is about
  std::string_view also;     // another name, "train"
  std::string_view summary;  // a phrase
  Expected<ProblemSpec> (*read)(const Fields& fields, const System& system, DType default_dtype);
  /// What a comparison ranks on one system, which it calls `system_name`; what does not apply goes to `skipped`. nullptr: it is not compared so.
  Expected<std::vector<Variant>> (*variants)(const Fields& fields, const System& system, const std::string& system_name, std::vector<Skipped>& skipped) = nullptr;
};

/// All of them, in the order of the help.
std::span<const ProblemKind> problem_kinds();
/// By any of its names or its field, however spelled; nullptr: there is none.
const ProblemKind* problem_kind_named(std::string_view name);

/// The kind that the fields say; `compared`: of those that are compared. Errors: none or several are given; fields that belong to another kind.
Expected<const ProblemKind*> problem_kind(const Fields& fields, bool compared = false);

/// The problem on a system. Errors: those of problem_kind(); missing fields; values that do not suit the system.
Expected<ProblemSpec> read_problem(const Fields& fields, const System& system, DType default_dtype);

// What the table has, beside what read_scenario.hpp reads: read_problem.cpp and read_comparison.cpp.
Expected<ProblemSpec> read_whole_gemm(const Fields& fields, const System& system, DType default_dtype);
Expected<ProblemSpec> read_open_workload(const Fields& fields, const System& system);
Expected<ProblemSpec> read_planned(const Fields& fields);
Expected<ProblemSpec> read_saved_schedule(const Fields& fields, const System& system);
Expected<ProblemSpec> read_traces(const Fields& fields, const System& system);
Expected<std::vector<Variant>> gemm_variants(const Fields& fields, const System& system);
Expected<std::vector<Variant>> collective_variants(const Fields& fields, const System& system, const std::string& system_name, std::vector<Skipped>& skipped);
Expected<std::vector<Variant>> msccl_variants(const Fields& fields, const System& system, const std::string& system_name, std::vector<Skipped>& skipped);
Expected<std::vector<Variant>> program_variants(const Fields& fields, const System& system);
Expected<std::vector<Variant>> training_variants(const Fields& fields, const System& system);
Expected<std::vector<Variant>> workload_variants(const Fields& fields, const System& system);

}  // namespace podsim
