#include "tools/command/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/base/units.hpp"
#include "tools/command/collective.hpp"
#include "tools/command/failures.hpp"

namespace podsim {

Variant gemm_variant(const GemmRequest& request, std::string name) {
  const auto problem = [request](Pod& pod, const Manner& manner) -> Expected<Problem> {
    auto used = pod_for(*request.algorithm, pod);
    if (!used) return used.error();
    pod = *std::move(used);
    return make_problem(pod, request, manner);
  };
  return {std::move(name), problem, request.collectives};
}

Expected<std::vector<Variant>> gemm_variants(const Options& options, const Pod& pod) {
  auto base = gemm_request(options, pod, DType::bf16);
  if (!base) return base.error();
  base->given.emplace();
  if (options.has("given")) base->given = split(options.text("given"));
  for (const std::string& tensor : *base->given)
    if (tensor != "X" && tensor != "W" && tensor != "dY") return Diagnostic{option("given"), "expected X, W or dY, found " + quoted(tensor)};
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
        GemmRequest request = *base;
        request.problem.dataflow = *dataflow;
        request.algorithm = *entry;
        request.options.slice_count = S;
        variants.push_back(gemm_variant(request, fmt::format("{} {}{}", name, dataflow_name, counted ? fmt::format(" S={}", S) : "")));
      }
    }
  }
  return variants;
}

namespace {

/// --algorithms of collectives; left out or `all`: every name, and what auto chooses beyond them.
Expected<std::vector<std::string>> collective_names(const Options& options) {
  std::vector<std::string> names = options.given("algorithms") ? split(options.text("algorithms")) : std::vector<std::string>{"all"};
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) names.emplace_back(entry.name);
    names.emplace_back("auto");
    return names;
  }
  for (const std::string& name : names)
    if (const auto known = always(name); !known && name != "auto") return Diagnostic{option("algorithms"), known.error().message};
  return names;
}

}  // namespace

Expected<std::vector<Variant>> collective_variants(const Options& options) {
  if (!options.has("bytes")) return Diagnostic{{}, "--bytes is missing: the input of the collective on each device"};
  const auto names = collective_names(options);
  if (!names) return names.error();
  const bool all = !options.given("algorithms") || options.text("algorithms") == "all";
  const std::vector<std::string> axes = options.has("axis") ? options.texts("axis") : std::vector<std::string>{""};
  std::vector<Variant> variants;
  std::size_t group = 0;
  for (const std::string& kind : split(options.text("collective"))) {
    if (auto known = collective_kind_asked(kind); !known) return known.error();
    for (const std::string& axis : axes)
      for (const std::string& bytes : split(options.text("bytes"))) {
        if (auto size = collective_bytes_asked(bytes); !size) return size.error();
        for (const std::string& name : *names) {
          Options asked = options.with("collective", kind).with("bytes", bytes).with("algorithm", name);
          if (!axis.empty()) asked = asked.with("axis", axis);
          variants.push_back({fmt::format("{}{} of {} by {}", kind, axis.empty() ? "" : " along " + axis, bytes, name),
                              [asked](Pod& pod, const Manner& manner) { return collective_problem(asked, pod, DType::bf16, manner); }, name, group, all && name == "auto"});
        }
        ++group;
      }
  }
  return variants;
}

namespace {

/// A variant as it is to be simulated.
struct Planned {
  const Variant* variant = nullptr;
  Pod pod;  // as the algorithm uses it
  Expected<Problem> problem;
  std::size_t same_as = 0;  // an earlier one, or itself
  Expected<Row> row;
};

/// Whether an earlier variant of the same collective names what `auto` chose.
bool named_before(const std::vector<Planned>& planned, const Problem& chosen) {
  return std::any_of(planned.begin(), planned.end(), [&](const Planned& other) {
    return other.problem && "auto: " + other.problem->algorithm == chosen.algorithm && other.problem->schedule == chosen.schedule;
  });
}

std::vector<Planned> plan_all(const Pod& pod, const std::string& place, const std::vector<Variant>& variants, const Manner& manner) {
  std::vector<Planned> planned;
  for (const Variant& variant : variants) {
    if (manner.stopped()) break;
    manner.tell(place + " " + variant.name);
    Planned plan{&variant, pod, cancelled_work(), planned.size(), cancelled_work()};
    plan.problem = variant.problem(plan.pod, manner);
    if (plan.problem) {
      if (variant.unless_named && named_before(planned, *plan.problem)) continue;
      const auto same = std::find_if(planned.begin(), planned.end(), [&](const Planned& other) {
        return other.problem && other.variant->lowering == variant.lowering && other.problem->schedule == plan.problem->schedule;
      });
      if (same != planned.end()) plan.same_as = same->same_as;
    }
    planned.push_back(std::move(plan));
  }
  return planned;
}

}  // namespace

Expected<std::vector<Row>> simulate_all(const Pod& pod, const std::string& place, const std::vector<Variant>& variants, const Manner& manner,
                                        std::vector<Skipped>& skipped) {
  std::vector<Planned> planned = plan_all(pod, place, variants, manner);
  std::vector<std::size_t> to_run;
  for (std::size_t p = 0; p < planned.size(); ++p)
    if (planned[p].problem && planned[p].same_as == p) to_run.push_back(p);

  Manner each = manner;
  each.threads = 1;
  // SimGrid's child must not be forked from among threads.
  ThreadPool pool{manner.engine->folds ? manner.threads : 1};
  pool.for_each(to_run.size(), [&](std::size_t i, std::size_t) {
    Planned& plan = planned[to_run[i]];
    if (manner.stopped()) return;
    manner.tell(fmt::format("{} of {}: {} {}", i + 1, to_run.size(), place, plan.variant->name));
    auto run = plan.pod.what_if.fail.empty() ? simulate(plan.pod, *plan.problem, each) : simulate_best(plan.pod, plan.variant->problem, each);
    if (!run)
      plan.row = run.error();
    else if (!run->timeline.interrupted)
      plan.row = std::move(run->row);
  });

  std::vector<Row> rows;
  for (const Planned& plan : planned) {
    const auto& row = planned[plan.same_as].row;
    if (!plan.problem || !row) {
      if (auto ok = skip(place + ", " + plan.variant->name, !plan.problem ? plan.problem.error() : row.error(), skipped); !ok) return ok.error();
      continue;
    }
    rows.push_back(*row);
    rows.back().algorithm = plan.problem->algorithm;
    rows.back().dataflow = plan.problem->dataflow;
    rows.back().slice_count = plan.problem->slice_count;
    rows.back().replicated = plan.problem->replicated;
    rows.back().group = plan.variant->group;
  }
  return rows;
}

}  // namespace podsim
