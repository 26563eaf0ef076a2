#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "workloads/differences/module_differences.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_comparison.hpp"

namespace podsim {

namespace {

/// Fields of podsim's schedule of the product, and of the module; all others are of both.
constexpr std::array<std::string_view, 10> of_product{"gemm",         "pad",   "algorithm", "dataflow",     "slice_count",
                                                      "wang_operand", "block", "prefetch",  "slice_copies", "given"};
constexpr std::array<std::string_view, 8> of_module{"hlo", "hlo_cost", "clock", "hlo_schedule", "rewrite", "trip_count", "branch", "custom_call"};

template <std::size_t n>
Fields without(Fields fields, const std::array<std::string_view, n>& names) {
  for (const std::string_view name : names) fields.erase(name);
  return fields;
}

std::string to_text(const GemmProblem& problem) {
  return fmt::format("m={},n={},k={},dtype={}", problem.m, problem.n, problem.k, name_of(problem.dtype));
}

double flops_of(const GemmProblem& problem) {
  return 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
}

/// The given product with the module's names, where its arrays are those of the product; else a note.
Expected<ModuleProduct> given_product(const Fields& fields, const Expected<ModuleProduct>& found, const FlatModule& flat,
                                      std::vector<std::string>& notes) {
  const auto given = parse_gemm(fields.text("gemm"), DType::bf16, fields.where("gemm"));
  if (!given) return given.error();
  ModuleProduct product{*given};
  product.flops = flat.result.flops;
  const auto same = [&](const GemmProblem& other) { return other.m == given->m && other.n == given->n && other.k == given->k; };
  if (found && same(found->problem)) {
    product.left = found->left, product.right = found->right, product.out = found->out;
  } else if (flops_of(*given) != product.flops) {
    notes.push_back(fmt::format("the module's products have {} on all devices, the given one {}", to_text(Flops{product.flops}),
                                to_text(Flops{flops_of(*given)})));
  }
  return product;
}

/// The schedules of the product by the algorithms asked for, each in the dataflow that its name implies, where none is given. Of `all` those that
/// lack a field, as a slice count, are skipped.
Expected<std::vector<Variant>> variants_of(const Fields& fields, const ModuleProduct& product, std::vector<Skipped>& skipped) {
  const SourceLocation where = fields.where("algorithm");
  std::vector<std::string> names;
  for (const FieldText& given : fields.texts("algorithm"))
    for (std::string& name : split(given.text)) {
      if (std::find(names.begin(), names.end(), name) != names.end()) return Diagnostic{where, quoted(name) + " is given twice"};
      names.push_back(std::move(name));
    }
  const bool all = names == std::vector<std::string>{"all"};
  if (all) {
    names.clear();
    for (const GemmAlgorithmEntry& entry : gemm_algorithms()) names.emplace_back(entry.name);
  }
  Fields ours = without(fields, of_module);
  ours.set("gemm", to_text(product.problem), fields.where(fields.has("gemm") ? "gemm" : "hlo"));
  std::vector<Variant> variants;
  for (const std::string& name : names) {
    const auto entry = gemm_algorithm(name);
    if (!entry) return Diagnostic{where, entry.error().message};
    ours.set("algorithm", name, where);
    if (!fields.has("dataflow")) ours.set("dataflow", std::string{name_of((*entry)->only.value_or(Dataflow::os))}, where);
    auto setup = read_comparison(ours, {{}});
    if (!setup && all) {
      skipped.push_back({name, setup.error()});
      continue;
    }
    if (!setup) return setup.error();
    if (setup->systems.size() != 1)
      return Diagnostic{{}, fmt::format("expected one machine, slice and mesh to compare a module on, found {}", setup->systems.size())};
    for (Variant& variant : setup->systems.front().variants) variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace

Expected<ModuleComparison> compare_module(const Fields& given, const RunOptions& options) {
  const auto whole = with_module(given);
  if (!whole) return whole.error();
  const Fields& fields = *whole;
  for (const char* name : {"fail", "degrade", "straggler"})
    if (fields.has(name)) return Diagnostic{fields.where(name), "belongs to comparisons without `hlo`"};
  if (!fields.has("algorithm")) {
    std::vector<std::string_view> names;
    for (const GemmAlgorithmEntry& entry : gemm_algorithms()) names.push_back(entry.name);
    return Diagnostic{{}, fmt::format("which schedule is the module compared with? `algorithms` names them: {}", fmt::join(names, ", "))};
  }
  const Fields asked = without(fields, of_product);
  if (const auto kind = problem_kind(asked); !kind) return kind.error();
  const auto system = read_system(asked);
  if (!system) return system.error();
  const auto spec = read_hlo_problem(asked);
  if (!spec) return spec.error();
  const auto flat = flat_module(*system, *spec, options);
  if (!flat) return flat.error();
  auto product = product_of_module(*spec->module, *flat, data_flow(flat->program()), spec->options.counts);
  std::vector<std::string> notes;
  if (fields.has("gemm")) product = given_product(fields, product, *flat, notes);
  if (!product) return product.error();
  std::vector<Skipped> skipped;
  const auto variants = variants_of(fields, *product, skipped);
  if (!variants) return variants.error();
  auto comparison = compare_module(*flat, *spec, *std::move(product), *variants, options);
  if (!comparison) return comparison.error();
  comparison->product_given = fields.has("gemm");
  comparison->skipped.insert(comparison->skipped.begin(), skipped.begin(), skipped.end());
  comparison->notes.insert(comparison->notes.end(), notes.begin(), notes.end());
  return comparison;
}

}  // namespace podsim
