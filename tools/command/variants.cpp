#include "tools/command/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "sim/base/thread_pool.hpp"
#include "tools/command/failures.hpp"

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

std::vector<Row> simulate_all(const Pod& pod, const std::vector<Variant>& variants, const Manner& manner, std::vector<Skipped>& skipped,
                              const std::function<void(const std::string&)>& step) {
  const std::string place = fmt::format("{} {} {}", pod.machine.name, to_text(pod.slice), to_text(pod.mesh));
  struct Plan {
    Expected<Problem> problem;
    std::optional<Pod> pod;   // as the algorithm uses it
    std::size_t same_as = 0;  // an earlier plan, or itself
    Expected<Row> row;
  };
  const Diagnostic not_run{{}, "interrupted"};
  std::vector<Plan> plans;
  std::vector<std::size_t> to_run;
  for (const Variant& variant : variants) {
    Plan plan{not_run, std::nullopt, plans.size(), not_run};
    if (auto used = pod_for(*variant.request.algorithm, pod)) {
      plan.problem = make_problem(*used, variant.request);
      plan.pod = *std::move(used);
    } else {
      plan.problem = used.error();
    }
    if (plan.problem) {
      const auto same =
          std::find_if(to_run.begin(), to_run.end(), [&](std::size_t i) { return plans[i].problem->schedule == plan.problem->schedule; });
      if (same != to_run.end())
        plan.same_as = *same;
      else
        to_run.push_back(plans.size());
    }
    plans.push_back(std::move(plan));
  }

  std::mutex stepping;
  // SimGrid's child must not be forked from among threads.
  ThreadPool pool{manner.engine->folds ? manner.threads : 1};
  pool.for_each(to_run.size(), [&](std::size_t i, std::size_t) {
    Plan& plan = plans[to_run[i]];
    {
      const std::scoped_lock lock{stepping};
      step(place + " " + variants[to_run[i]].name);
    }
    if (manner.control.stop != nullptr && *manner.control.stop) return;
    auto run = plan.pod->what_if.fail.empty() ? simulate(*plan.pod, *plan.problem, manner)
                                              : simulate_best(
                                                    *plan.pod, [&](Pod& on) { return make_problem(on, variants[to_run[i]].request); }, manner);
    if (!run)
      plan.row = run.error();
    else if (!run->timeline.interrupted)
      plan.row = std::move(run->row);
  });

  std::vector<Row> rows;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const Plan& plan = plans[v];
    const auto& row = plans[plan.same_as].row;
    if (!plan.problem || !row) {
      skipped.push_back({place + ", " + variants[v].name, !plan.problem ? plan.problem.error().message : row.error().message});
      continue;
    }
    rows.push_back(*row);
    rows.back().algorithm = plan.problem->algorithm;
    rows.back().dataflow = plan.problem->dataflow;
    rows.back().slice_count = plan.problem->slice_count;
  }
  return rows;
}

}  // namespace podsim
