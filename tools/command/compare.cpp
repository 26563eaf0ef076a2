#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tools/command/alignment.hpp"
#include "tools/command/command.hpp"
#include "tools/command/crossover.hpp"
#include "tools/command/fairness.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/print.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/variants.hpp"
#include "tools/command/vary.hpp"
#include "tools/command/verdict.hpp"
#include "tools/command/workload.hpp"

namespace podsim {

namespace {

constexpr std::string_view compare_usage =
    R"(usage: podsim compare --machine M[,...] --slice AxB[,...] [--mesh row=R,col=C]... [--vary PATH=VALUE,...]...
                      (--gemm m=M,n=N,k=K | --collective KIND[,...] --bytes N[,...] | --workload NAME) [OPTION...]

Simulates every combination of machine, slice, mesh and varied machine value with
  --gemm         algorithm, dataflow and slice count; every operand begins split evenly over all devices (but for --given)
  --collective   kind, size, --axis (repeatable) and algorithm; algbw and busbw as nccl-tests defines them
  --workload     algorithm: a whole block, its dataflows and slice counts the fastest unless they are given; forward and backward apart
ranks what computes the same, and says for each pod which wins, by what margin, and why. What does not apply is listed with the reason.

examples:
  podsim compare --machine tpu_v4 --slice 4x4x8 --topology torus,twisted,crossbar --equal ports --mesh row=16,col=8 \
                 --gemm m=131072,n=16384,k=16384 --slice-count 8
  podsim compare --machine tpu_v4 --slice 32x8,4x8x8 --mesh row=32,col=8 --gemm m=524288,n=49152,k=12288 \
                 --algorithms collective,meshslice --slice-count 1,2,4,8,16,24,48
  podsim compare --machine tpu_v4 --slice 16x16 --gemm m=524288,n=49152,k=12288 --algorithms all --dataflow os,ls,rs --slice-count 1,4,16
  podsim compare --machine tpu_v4 --slice 16x16 --gemm m=524288,n=49152,k=12288 --algorithms meshslice,wang --slice-count 1,2,4,8,16 \
                 --crossover link.bandwidth=10GB/s..400GB/s
  podsim compare --machine tpu_v5p --slice 4x4x8 --collective all-reduce --axis row --axis row,col --bytes 64KiB,1MiB,64MiB
  podsim compare --machine dgx_h100 --slice 4x8 --collective all-gather --axis row,col --bytes 16MiB --algorithms ring,direct,halves \
                 --vary link[x].bandwidth=25GB/s,50GB/s,100GB/s
  podsim compare --machine tpu_v4 --slice 32x8,16x16 --workload gpt3-block --algorithms collective,meshslice,wang,cannon,summa
  podsim compare --machine tpu_v4 --slice 32x8 --workload gpt3-block --only gemm --dataflow os,ls --algorithms meshslice \
                 --slice-count in_proj=8,out_proj=8,ff1=4,ff2=4
  podsim compare --machine ideal --slice 64 --mesh all --gemm m=65536,n=8192,k=8192 --slice-count 4 --dataflow os,ls,rs --format csv
)";

po::options_description compare_options() {
  po::options_description described;
  described.add(pod_options(true)).add(what_if_options(true)).add(problem_options(true)).add(workload_options());
  described.add_options()("vary", po::value<std::vector<std::string>>()->value_name("PATH=VALUE,...")->composing(),
                          "each of these values of the machine, as --set takes them, in a\ncolumn of its own; repeatable: every combination");
  described.add_options()("given", po::value<std::string>()->value_name("X[,W,dY]"),
                          "operands of --gemm that are there as an algorithm needs them; any\nother one that it needs on several devices at once "
                          "begins split over\nall of them and is gathered first, in its time (1d-megatron: X)");
  described.add_options()("equal", po::value<std::string>()->value_name("bisection|ports|injection"),
                          "scales the links of every topology but the first, so that these are\nthe same: bisection bandwidth, the bandwidth of all "
                          "ports, or that\nout of a chip");
  described.add_options()("crossover", po::value<std::vector<std::string>>()->value_name("PATH=lo..hi")->composing(),
                          "who wins where as a machine value goes from lo to hi, each\nalgorithm at its best slice count; repeatable");
  described.add(engine_options()).add(output_options(table_json_csv));
  return described;
}

/// A pod, how it came about, and what is simulated on it; of a workload there are no variants.
struct Place {
  std::string name;  // "tpu_v4 4x4 row=4,col=4 link.latency=1us"
  std::vector<Varied> varied;
  std::vector<Variant> variants;
};

/// All that a command line asks for, in order. Pods stand apart, as --equal changes them together.
struct Comparing {
  std::string_view kind;
  std::vector<Pod> pods;
  std::vector<Place> places;     // of each pod
  std::vector<Skipped> skipped;  // machines and slices that do not go together
  std::vector<std::string> notes;
  std::size_t total = 0;         // variants
};

Expected<std::vector<Variant>> variants_of(const Options& options, std::string_view kind, const Pod& pod) {
  if (kind == "gemm") return gemm_variants(options, pod);
  if (kind == "collective") return collective_variants(options);
  if (const auto workload = workload_asked_for(options, pod.mesh.devices()); !workload) return workload.error();
  return std::vector<Variant>{};
}

/// Names that several of the machines asked for have, as a machine and what was fitted from it.
std::set<std::string> names_of_several(const std::vector<PodRequest>& requests) {
  std::map<std::string, std::set<std::string>> asked;  // by the machine's name
  for (const PodRequest& request : requests)
    if (const auto machine = machine_of(request.machine, {})) asked[machine->name].insert(request.machine);
  std::set<std::string> several;
  for (const auto& [name, files] : asked)
    if (files.size() > 1) several.insert(name);
  return several;
}

/// Everything is read before anything is simulated, so that a typing error does not cost minutes.
Expected<Comparing> what_to_compare(const Options& options) {
  const auto requests = pod_requests(options);
  if (!requests) return requests.error();
  const auto kind = problem_kind(options, compared_problems);
  if (!kind) return kind.error();
  const auto variations = variations_of(options);
  if (!variations) return variations.error();
  for (const auto& [path, value] : variations->front())
    if (options.has("equal") && path.starts_with("link") && path.ends_with("bandwidth"))
      return Diagnostic{option("equal"), "sets the bandwidth of links, which --vary " + path + " varies"};
  const std::vector<std::string> meshes = options.texts("mesh");
  const bool every_mesh = std::find(meshes.begin(), meshes.end(), "all") != meshes.end();
  const std::vector<std::string> fail = options.texts("fail");
  if (std::find(fail.begin(), fail.end(), "any") != fail.end())
    return Diagnostic{option("fail"), "any belongs to run; compare takes cables, as 0.0-0.1"};
  Comparing all;
  all.kind = *kind;
  const std::set<std::string> shared_names = names_of_several(*requests);
  for (PodRequest request : *requests)
    for (const std::vector<Varied>& varied : *variations) {
      PodRequest changed = request;
      for (const auto& [path, value] : varied) changed.sets.push_back(path + "=" + value);
      auto pod = make_pod(changed);
      if (!pod) {
        if (requests->size() == 1) return pod.error();
        all.skipped.push_back(
            {fmt::format("{} {}{}", request.machine, request.slice, request.what_if.topology.empty() ? "" : " " + request.what_if.topology),
             to_text(pod.error())});
        continue;
      }
      if (shared_names.contains(pod->machine.name)) pod->machine.name += " (" + request.machine + ")";
      auto variants = variants_of(options, *kind, *pod);
      if (!variants) return variants.error();
      for (const std::string& note : every_mesh ? std::vector<std::string>{} : alignment_notes(changed, *pod))
        all.notes.push_back(fmt::format("{} {}{}: {}", pod->machine.name, to_text(pod->slice),
                                        changed.what_if.topology.empty() ? "" : " " + changed.what_if.topology, note));
      all.total += *kind == "workload" ? workload_algorithms(options).size() : variants->size();
      all.places.push_back({pod_text(*pod) + (varied.empty() ? "" : " " + to_text(varied)), varied, std::move(*variants)});
      all.pods.push_back(std::move(*pod));
    }
  std::set<std::string> known;  // the same pod with another machine value
  std::erase_if(all.notes, [&](const std::string& note) { return !known.insert(note).second; });
  return all;
}

/// The rows of each pod.
Expected<std::vector<std::vector<Row>>> simulate_each(const Comparing& all, const Options& options, const Manner& manner,
                                                      std::vector<Skipped>& skipped) {
  std::vector<std::vector<Row>> rows;
  for (std::size_t p = 0; p < all.pods.size(); ++p) {
    const Place& place = all.places[p];
    auto found = all.kind == "workload" ? simulate_workload(all.pods[p], options, manner, skipped)
                                        : simulate_all(all.pods[p], place.name, place.variants, manner, skipped);
    if (!found) return found.error();
    for (Row& row : *found) row.varied = place.varied;
    rows.push_back(*std::move(found));
  }
  return rows;
}

/// All rows, group by group, each best first; and a verdict on each pod's rows of a group.
void rank(const std::vector<std::vector<Row>>& rows, Comparisons& comparisons) {
  const auto better = [](const Row* a, const Row* b) {
    return std::tie(a->group, a->result.makespan_s) < std::tie(b->group, b->result.makespan_s);
  };
  std::vector<const Row*> all;
  for (const std::vector<Row>& of_pod : rows) {
    std::vector<const Row*> ranked;
    for (const Row& row : of_pod) ranked.push_back(&row);
    all.insert(all.end(), ranked.begin(), ranked.end());
    std::stable_sort(ranked.begin(), ranked.end(), better);
    for (auto begin = ranked.begin(); begin != ranked.end();) {
      const auto end = std::find_if(begin, ranked.end(), [&](const Row* row) { return row->group != (*begin)->group; });
      comparisons.verdicts.push_back(verdict({begin, end}));
      begin = end;
    }
  }
  std::stable_sort(all.begin(), all.end(), better);
  for (const Row* row : all) comparisons.rows.push_back(*row);
}

/// --crossover, on every pod.
Done add_crossovers(const Comparing& all, const Options& options, const Manner& manner, Comparisons& comparisons) {
  for (const std::string& request : options.texts("crossover")) {
    const auto range = parse_crossover(request);
    if (!range) return range.error();
    for (std::size_t p = 0; p < all.pods.size(); ++p) {
      auto found = find_crossovers(all.pods[p], all.places[p].name, all.places[p].variants, manner, *range);
      if (!found) return found.error();
      comparisons.crossovers.push_back(std::move(*found));
    }
  }
  return done();
}

/// What rows of CSV have no place for.
void tell_beside_csv(const Comparisons& comparisons, Console& console) {
  for (const Skipped& entry : comparisons.skipped) fmt::print(console.err, "podsim: note: left out: {}: {}\n", entry.what, entry.reason);
  for (const TopologyCost& topology : comparisons.topologies)
    if (topology.scale != 1) fmt::print(console.err, "podsim: note: {}: links are scaled by {:.3g}\n", topology.name, topology.scale);
}

/// That nothing could be simulated, each reason once.
int report_nothing(const std::vector<Skipped>& skipped, Console& console) {
  std::set<std::string> reasons;
  for (const Skipped& entry : skipped)
    if (reasons.insert(entry.reason).second) report({{}, entry.what + ": " + entry.reason}, console);
  return exit_bad_input;
}

}  // namespace

int compare_verb(const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, compare_options(), compare_usage, console);
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;
  const Format format = format_of(options);
  auto manner = manner_of(options, console);
  if (!manner) return report(manner.error(), console);
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, *manner);
  manner->tell("laying out the pods");
  auto all = what_to_compare(options);
  if (!all) return report(all.error(), console);

  Comparisons comparisons;
  comparisons.skipped = std::move(all->skipped);
  comparisons.notes = std::move(all->notes);
  if (options.has("topology") || options.has("equal")) {
    auto costs = make_equal(all->pods, options.has("equal") ? options.text("equal") : "");
    if (!costs) return report(costs.error(), console);
    comparisons.topologies = *std::move(costs);
  }
  const auto rows = simulate_each(*all, options, *manner, comparisons.skipped);
  if (!rows) return report(rows.error(), console);
  rank(*rows, comparisons);
  if (!comparisons.rows.empty() && !manner->stopped())
    if (auto ok = add_crossovers(*all, options, *manner, comparisons); !ok) return report(ok.error(), console);
  line.end();
  const bool interrupted = console.interrupted.requested();
  if (interrupted) fmt::print(console.err, "podsim: interrupted: {} of {} variants simulated\n", comparisons.rows.size(), all->total);
  if (comparisons.rows.empty()) return interrupted ? exit_interrupted : report_nothing(comparisons.skipped, console);

  if (format == Format::csv && !options.flag("quiet")) tell_beside_csv(comparisons, console);
  const std::string text = format == Format::json  ? comparison_json(comparisons)
                           : format == Format::csv ? result_csv(comparisons.rows)
                                                   : comparison_table(comparisons);
  if (auto ok = write_output(options, text, console); !ok) return report(ok.error(), console);
  return interrupted ? exit_interrupted : exit_done;
}

}  // namespace podsim
