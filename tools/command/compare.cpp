#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/units.hpp"
#include "tools/command/command.hpp"
#include "tools/command/crossover.hpp"
#include "tools/command/fairness.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/print.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/variants.hpp"
#include "tools/command/workload.hpp"

namespace podsim {

namespace {

constexpr std::string_view usage =
    R"(usage: podsim compare --machine M[,...] --slice AxB[,...] [--mesh row=R,col=C]... (--gemm m=M,n=N,k=K | --workload NAME) [OPTION...]

Simulates every combination of machine, slice, mesh, algorithm, dataflow and slice count, ranks them, and says for each pod which wins, by
what margin, and why. What does not apply is listed with the reason. Of a --workload, a whole block per algorithm, its dataflows and slice counts
the fastest unless they are given; forward and backward apart.

examples:
  podsim compare --machine tpu_v4 --slice 4x4x8 --topology torus,twisted,crossbar --equal ports --mesh row=16,col=8 \
                 --gemm m=131072,n=16384,k=16384 --slice-count 8
  podsim compare --machine tpu_v4 --slice 32x8,4x8x8 --mesh row=32,col=8 --gemm m=524288,n=49152,k=12288 \
                 --algorithms collective,meshslice --slice-count 1,2,4,8,16,24,48
  podsim compare --machine tpu_v4 --slice 16x16 --gemm m=524288,n=49152,k=12288 --algorithms all --dataflow os,ls,rs --slice-count 1,4,16
  podsim compare --machine tpu_v4 --slice 16x16 --gemm m=524288,n=49152,k=12288 --algorithms meshslice,wang --slice-count 1,2,4,8,16 \
                 --crossover link.bandwidth=10GB/s..400GB/s
  podsim compare --machine tpu_v4 --slice 32x8,16x16 --workload gpt3-block --algorithms collective,meshslice,wang,cannon,summa
  podsim compare --machine tpu_v4 --slice 32x8 --workload gpt3-block --only gemm --dataflow os,ls --algorithms meshslice \
                 --slice-count in_proj=8,out_proj=8,ff1=4,ff2=4
  podsim compare --machine ideal --slice 64 --mesh all --gemm m=65536,n=8192,k=8192 --slice-count 4 --dataflow os,ls,rs --format csv
)";

std::string name_of(const Row& row) {
  return fmt::format("{}{}{}", row.algorithm, row.dataflow.empty() ? "" : " " + row.dataflow,
                     row.slice_count ? fmt::format(" S={}", *row.slice_count) : "");
}
std::string time(double seconds) { return to_text(Seconds{seconds}); }

/// What makes `slower` slower than `faster`, in the terms of the three parts of the time.
std::string why(const Row& faster, const Row& slower) {
  const Result& f = faster.result;
  const Result& s = slower.result;
  std::vector<std::string> more, less;
  const auto weigh = [&](double difference, const std::string& what) {
    if (std::abs(difference) < 1e-2 * (s.makespan_s - f.makespan_s)) return;
    (difference > 0 ? more : less).push_back(fmt::format("{} {} {}", time(std::abs(difference)), difference > 0 ? "more" : "less", what));
  };
  weigh(s.exposed_communication_s - f.exposed_communication_s, "exposed communication");
  weigh(s.compute_s - f.compute_s, "core time");
  weigh(s.waiting_s - f.waiting_s, "waiting");
  if (more.empty()) return "the same time";
  return fmt::format("{}{}{}", fmt::join(more, " and "), less.empty() ? "" : ", ", fmt::join(less, " and "));
}

/// The verdict on one pod's rows, best first.
std::string verdict(const std::vector<const Row*>& rows) {
  const Row& best = *rows.front();
  const auto margin = [&](const Row& row) { return fmt::format("+{:.1f} %", 100 * (row.result.makespan_s / best.result.makespan_s - 1)); };
  std::string text =
      fmt::format("{} {}{} {}{}: {} wins with {}", best.result.machine, best.result.slice, best.topology.empty() ? "" : " " + best.topology,
                  mesh_text(best.result), best.result.hypothetical ? " (hypothetical)" : "", name_of(best), time(best.result.makespan_s));
  const auto other = std::find_if(rows.begin(), rows.end(), [&](const Row* row) { return row->algorithm != best.algorithm; });
  if (other != rows.end())
    text += fmt::format("; {} takes {} ({}): {}", name_of(**other), time((*other)->result.makespan_s), margin(**other), why(best, **other));
  text += ".";
  if (!best.slice_count) return text;
  // The neighbours of the best slice count show what sets it.
  const Row *below = nullptr, *above = nullptr;
  for (const Row* row : rows) {
    if (row->algorithm != best.algorithm || row->dataflow != best.dataflow || !row->slice_count) continue;
    if (*row->slice_count < *best.slice_count && (!below || *row->slice_count > *below->slice_count)) below = row;
    if (*row->slice_count > *best.slice_count && (!above || *row->slice_count < *above->slice_count)) above = row;
  }
  for (const Row* neighbour : {below, above})
    if (neighbour) text += fmt::format(" S={} is {}: {}.", *neighbour->slice_count, margin(*neighbour), why(best, *neighbour));
  if (!below || !above) text += fmt::format(" S={} is at the {} of the range asked for.", *best.slice_count, below ? "upper end" : "lower end");
  return text;
}

}  // namespace

int compare_verb(const std::vector<std::string>& arguments, Console& console) {
  po::options_description described;
  described.add(pod_options(true)).add(what_if_options(true)).add(problem_options(true)).add(workload_options());
  described.add_options()("equal", po::value<std::string>()->value_name("bisection|ports|injection"),
                          "scales the links of every topology but the first, so that these are\nthe same: bisection bandwidth, the bandwidth of all "
                          "ports, or that\nout of a chip");
  described.add_options()("crossover", po::value<std::vector<std::string>>()->value_name("PATH=lo..hi")->composing(),
                          "who wins where as a machine value goes from lo to hi, each\nalgorithm at its best slice count; repeatable");
  described.add(engine_options()).add(output_options());
  const Parsed parsed = parse(arguments, described, usage, console);
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;

  const auto format = format_of(options);
  if (!format) return report(format.error(), console);
  const auto manner = manner_of(options, console);
  if (!manner) return report(manner.error(), console);
  const auto requests = pod_requests(options);
  if (!requests) return report(requests.error(), console);

  const bool of_workload = options.has("workload");
  if (of_workload && options.has("gemm")) return report({{}, "expected --gemm or --workload, found both"}, console);
  if (of_workload && options.has("crossover")) return report({option("crossover"), "belongs to --gemm"}, console);
  if (!of_workload)
    if (auto ok = no_workload_options(options); !ok) return report(ok.error(), console);
  // Everything that was asked for is read before anything is simulated, so that a typing error does not cost minutes.
  std::vector<Pod> pods;
  std::vector<std::vector<Variant>> variants;
  std::size_t total = 0;
  std::vector<Skipped> no_pods;  // of a machine and a slice that do not go together
  for (const PodRequest& request : *requests) {
    auto pod = make_pod(request);
    if (!pod) {
      if (requests->size() == 1) return report(pod.error(), console);
      no_pods.push_back(
          {fmt::format("{} {}{}", request.machine, request.slice, request.what_if.topology.empty() ? "" : " " + request.what_if.topology),
           to_text(pod.error())});
      continue;
    }
    if (of_workload) {
      if (const auto workload = workload_asked_for(options, pod->mesh.devices()); !workload) return report(workload.error(), console);
      total += split(options.text("algorithms")).size();
      variants.emplace_back();
    } else {
      auto of_pod = variants_of(options, *pod);
      if (!of_pod) return report(of_pod.error(), console);
      total += of_pod->size();
      variants.push_back(std::move(*of_pod));
    }
    pods.push_back(std::move(*pod));
  }

  Comparisons comparisons;
  comparisons.skipped = std::move(no_pods);
  if (options.has("topology") || options.has("equal")) {
    auto costs = make_equal(pods, options.has("equal") ? options.text("equal") : "");
    if (!costs) return report(costs.error(), console);
    comparisons.topologies = *std::move(costs);
  }
  std::vector<std::size_t> pod_of_row;
  {
    Progress progress{console, options.flag("quiet"), total};
    const auto step = [&](const std::string& what) { progress.step(what); };
    for (std::size_t p = 0; p < pods.size(); ++p) {
      auto rows = of_workload ? simulate_workload(pods[p], options, *manner, comparisons.skipped, step)
                              : Expected<std::vector<Row>>{simulate_all(pods[p], variants[p], *manner, comparisons.skipped, step)};
      if (!rows) return report(rows.error(), console);
      for (Row& row : *rows) {
        comparisons.rows.push_back(std::move(row));
        pod_of_row.push_back(p);
      }
    }
  }
  const bool interrupted = console.interrupted != nullptr && *console.interrupted;
  if (interrupted) fmt::print(console.err, "podsim: interrupted: {} of {} variants simulated\n", comparisons.rows.size(), total);
  if (comparisons.rows.empty()) {
    if (interrupted) return exit_interrupted;
    for (const Skipped& skipped : comparisons.skipped) report({{}, skipped.what + ": " + skipped.reason}, console);
    return exit_bad_input;
  }

  std::vector<std::size_t> order(comparisons.rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return comparisons.rows[a].result.makespan_s < comparisons.rows[b].result.makespan_s; });
  std::vector<Row> ranked;
  std::map<std::size_t, std::vector<std::size_t>> of_pod;
  for (const std::size_t i : order) {
    of_pod[pod_of_row[i]].push_back(ranked.size());
    ranked.push_back(std::move(comparisons.rows[i]));
  }
  comparisons.rows = std::move(ranked);
  for (const auto& [pod, indices] : of_pod) {
    std::vector<const Row*> rows;
    for (const std::size_t i : indices) rows.push_back(&comparisons.rows[i]);
    comparisons.verdicts.push_back(verdict(rows));
  }

  for (const std::string& request : options.texts("crossover")) {
    const auto range = parse_crossover(request);
    if (!range) return report(range.error(), console);
    Progress progress{console, options.flag("quiet"), 0};
    for (std::size_t p = 0; p < pods.size() && !interrupted; ++p) {
      auto found = find_crossovers(pods[p], variants[p], *manner, *range, [&](const std::string& what) { progress.step(what); });
      if (!found) return report(found.error(), console);
      comparisons.crossovers.push_back(std::move(*found));
    }
  }

  const std::string text = *format == Format::json  ? comparison_json(comparisons)
                           : *format == Format::csv ? result_csv(comparisons.rows)
                                                    : comparison_table(comparisons);
  if (auto ok = write_output(options, text, console); !ok) return report(ok.error(), console);
  return interrupted ? exit_interrupted : exit_done;
}

}  // namespace podsim
