#include "tools/command/variants.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

Expected<std::vector<Variant>> variants_of(const Options& options, const Pod& pod) {
  if (!options.has("gemm")) return Diagnostic{{}, "--gemm is missing: m=M,n=N,k=K"};
  const auto base = gemm_request(options, pod, DType::bf16);
  if (!base) return base.error();
  std::vector<std::int64_t> slice_counts;
  if (options.has("slice-count")) {
    const auto counts = options.integers("slice-count", 1, 1 << 20);
    if (!counts) return counts.error();
    slice_counts = *counts;
  }
  std::vector<std::string> names = split(options.text("algorithms"));
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const GemmAlgorithmEntry& entry : gemm_algorithms()) names.emplace_back(entry.name);
  }
  std::vector<Variant> variants;
  for (const std::string& dataflow_name : split(options.text("dataflow"))) {
    const auto dataflow = dataflow_named(dataflow_name);
    if (!dataflow) return Diagnostic{option("dataflow"), "expected os, ls or rs, found " + quoted(dataflow_name)};
    for (const std::string& name : names) {
      const auto entry = gemm_algorithm(name);
      if (!entry) return Diagnostic{option("algorithms"), entry.error().message};
      const bool counted = (*entry)->needs_slice_count;
      if (counted && slice_counts.empty()) return Diagnostic{{}, fmt::format("algorithm {} needs --slice-count", name)};
      for (const std::int64_t S : counted ? slice_counts : std::vector<std::int64_t>{0}) {
        Variant variant{*base, fmt::format("{} {}{}", name, dataflow_name, counted ? fmt::format(" S={}", S) : "")};
        variant.request.problem.dataflow = *dataflow;
        variant.request.algorithm = *entry;
        variant.request.options.slice_count = S;
        variants.push_back(std::move(variant));
      }
    }
  }
  return variants;
}

std::vector<Row> simulate_all(const Pod& pod, const std::vector<Variant>& variants, const EngineEntry& engine, std::vector<Skipped>& skipped,
                              const std::function<void(const std::string&)>& step) {
  const std::string place = fmt::format("{} {} {}", pod.machine.name, to_text(pod.slice), to_text(pod.mesh));
  std::vector<Row> rows;
  std::vector<std::pair<Schedule, std::size_t>> simulated;
  for (const Variant& variant : variants) {
    step(place + " " + variant.name);
    const auto skip = [&](const Diagnostic& why) { skipped.push_back({place + ", " + variant.name, why.message}); };
    const auto used = pod_for(*variant.request.algorithm, pod);
    if (!used) {
      skip(used.error());
      continue;
    }
    auto problem = make_problem(*used, variant.request);
    if (!problem) {
      skip(problem.error());
      continue;
    }
    const auto same = std::find_if(simulated.begin(), simulated.end(), [&](const auto& entry) { return entry.first == problem->schedule; });
    auto row = same != simulated.end() ? Expected<Row>{rows[same->second]} : simulate(*used, *problem, engine);
    if (!row) {
      skip(row.error());
      continue;
    }
    row->algorithm = problem->algorithm;
    row->dataflow = problem->dataflow;
    row->slice_count = problem->slice_count;
    if (same == simulated.end()) simulated.emplace_back(std::move(problem->schedule), rows.size());
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace podsim
