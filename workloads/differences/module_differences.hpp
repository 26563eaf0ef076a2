// Where a compiled module differs from podsim's schedule of the same product, and what each difference costs: by simulating the module without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/differences/module_product.hpp"
#include "workloads/scenario/compare.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

/// How the gain of a difference is simulated: the module's own schedule, with
///   not-overlapped  a collective with no work of the core between its start and its end, while podsim's schedule overlaps: it runs beside the core's
///   work, and
///                   only the step, or the trip of its loop, waits for it
///   superfluous     a transfer or work whose result nothing uses, or that the product does not need: it is left out. A transfer of an array that
///   podsim moves
///                   with fewer bytes: it has as many fewer
///   copy, layout    work that only moves data, or changes its layout: it is left out
///   order           the core's work in the order of a list schedule, in each trip of a loop: what is ready comes first, so that less waits
///   missing         reduce-scatters where the module has all-reduces of which only the own block is used
/// Gains do not add up: one step may wait for several things at once.
enum class DifferenceKind : std::uint8_t { not_overlapped, superfluous, copy, layout, order, missing };
std::string_view name_of(DifferenceKind kind);  // "not-overlapped"

struct ModuleDifference {
  DifferenceKind kind{};
  std::string instruction;
  Picoseconds time;  // of the instruction, all of its executions that are meant
  Picoseconds gain;  // what the step takes less without it
  std::string sentence;
  friend bool operator==(const ModuleDifference&, const ModuleDifference&) = default;
};

/// One algorithm's schedule of the product beside the module.
struct ComparedSchedule {
  std::string name;                             // "tp-ag-overlapped os"
  Row row;                                      // of podsim's schedule
  std::vector<ModuleDifference> differences{};  // the largest gain first
  std::size_t left_out = 0;                     // with gains below least_gain
  std::optional<Picoseconds> without{};         // the module without all of them, but for order and missing
  std::string sentence;                         // that sums up
};

/// A gain below this share of the module's time is no difference.
inline constexpr double least_gain = 1e-3;

struct ModuleComparison {
  std::string module;
  Result result;  // of the module
  HloTrust trust{};  // in its time
  ModuleProduct product;
  bool product_given = false;
  std::vector<std::string> notes{};  // the module's, and what does not fit a given product
  std::vector<ComparedSchedule> schedules{};
  std::vector<Skipped> skipped{};  // algorithms that do not suit the mesh or the product
};

/// A module on a system, with the variants of its product (GemmSpecs on the same system). Errors: those of flat_module(); cancelled work.
Expected<ModuleComparison> compare_module(const FlatModule& flat, const HloSpec& spec, ModuleProduct product, const std::vector<Variant>& variants,
                                          const RunOptions& options);

/// The same of fields: `hlo`, `algorithm` (one or several), perhaps `gemm`, `dataflow` and `slice_count`, and those of the system. Errors: no
/// algorithm; those of product_of_module() without `gemm`; fields of other problems.
Expected<ModuleComparison> compare_module(const Fields& fields, const RunOptions& options);

}  // namespace podsim
