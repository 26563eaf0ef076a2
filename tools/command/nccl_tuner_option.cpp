#include "tools/command/nccl_tuner_option.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "topologies/slice.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// The larger of a rank's input and output, which NCCL tunes by.
Bytes tuned_bytes(CollectiveKind kind, Bytes input, std::int64_t devices) { return kind == CollectiveKind::all_gather ? devices * input : input; }

int nodes_of(const Slice& slice) { return slice.extents.size() > 1 ? slice.extents.front() : 1; }

/// "hierarchical-in-switch" of "auto: hierarchical-in-switch in 124 chunks".
std::string algorithm_in(std::string_view name) {
  if (name.starts_with("auto: ")) name.remove_prefix(6);
  return std::string{name.substr(0, name.find(' '))};
}

}  // namespace

OptionGroup nccl_tuner_input() {
  return {{"nccl-tuner", no_field(input_file("FILE")), "a collective by the algorithm that the table of NCCL's example tuner plugin (NCCL_TUNER_CONFIG_FILE) has for its size, nodes and ranks", true}};
}

OptionGroup nccl_tuner_output() {
  return {{"write-nccl-tuner", no_field(output_file("FILE")), "with --collective: also the fastest of NCCL's algorithms by size, as the table of its example tuner plugin (NCCL_TUNER_CONFIG_FILE)", true}};
}

Expected<Fields> with_nccl_tuner(Fields fields, const Options& options, const System& system, std::vector<std::string>& notes) {
  if (!options.has("nccl-tuner")) return fields;
  const SourceLocation where = option("nccl-tuner");
  if (!fields.has("collective")) return Diagnostic{where, "belongs to --collective"};
  if (fields.has("algorithm")) return Diagnostic{where, "says the algorithm; expected no --algorithm beside it"};
  if (system.machine.interconnect != Interconnect::rail) return Diagnostic{where, fmt::format("is of NCCL, which runs on GPUs; found {}", system.machine.name)};
  const std::string file = options.text("nccl-tuner");
  const auto text = read_file(file, list_limit);
  if (!text) return text.error();
  const auto rows = read_nccl_tuner(*text, file);
  if (!rows) return rows.error();
  const auto problem = read_problem(fields, system, DType::bf16);
  if (!problem) return problem.error();
  const auto& spec = std::get<CollectiveSpec>(*problem);
  const int nodes = nodes_of(system.slice), ranks = system.mesh.devices();
  const std::string collective = nccl_collective_of(name_of(spec.kind));
  const Bytes bytes = tuned_bytes(spec.kind, spec.input, ranks);
  const NcclTunerRow* const row = collective.empty() ? nullptr : tuned_by(*rows, collective, bytes, nodes, ranks);
  if (row == nullptr) return Diagnostic{where, fmt::format("no line of {} fits {} of {} on {} nodes with {} ranks: NCCL decides, as --algorithm auto", file, name_of(spec.kind), to_text(bytes), nodes, ranks)};
  const std::string algorithm = algorithm_of_nccl(row->algorithm, nodes);
  if (algorithm.empty()) return Diagnostic{row->where, fmt::format("expected an algorithm that podsim has on {} nodes (ring, tree, nvls within a node, nvls_tree), found {}", nodes, quoted(row->algorithm))};
  fields.set("algorithm", algorithm, where);
  notes.push_back(fmt::format("{}:{} has {} with {}: {} here; protocol and channels are not simulated", file, row->where.line, row->algorithm, row->protocol, algorithm));
  return fields;
}

Expected<std::string> nccl_tuner_table(const std::vector<Row>& rows) {
  const SourceLocation where = option("write-nccl-tuner");
  struct Best {
    std::string algorithm, any;
    double time_s = 0, any_s = 0;
  };
  std::map<std::pair<std::string, std::int64_t>, Best> best;  // by collective and bytes
  std::optional<std::pair<std::string, std::string>> on;
  int nodes = 1, ranks = 1;
  for (const Row& row : rows) {
    if (!row.problem.collective || nccl_collective_of(name_of(row.problem.collective->kind)).empty()) return Diagnostic{where, "belongs to --collective broadcast, reduce, all-gather, reduce-scatter or all-reduce"};
    const std::pair here{row.result.machine, row.result.slice};
    if (on && *on != here) return Diagnostic{where, fmt::format("is of one machine and slice, found {} {} and {} {}", on->first, on->second, here.first, here.second)};
    on = here;
    ranks = row.result.devices;
    const auto x = row.result.slice.find('x');
    if (const auto count = x == std::string::npos ? Expected<std::int64_t>{std::int64_t{1}} : parse_integer(row.result.slice.substr(0, x), 1, 1 << 24, where); count) nodes = static_cast<int>(*count);
    const CollectiveSummary& collective = *row.problem.collective;
    Best& one = best[{nccl_collective_of(name_of(collective.kind)), tuned_bytes(collective.kind, collective.input, collective.devices).count()}];
    const std::string algorithm = nccl_algorithm_of(algorithm_in(row.problem.algorithm));
    if (one.any.empty() || row.result.makespan_s < one.any_s) one.any = row.problem.algorithm, one.any_s = row.result.makespan_s;
    if (!algorithm.empty() && (one.algorithm.empty() || row.result.makespan_s < one.time_s)) one.algorithm = algorithm, one.time_s = row.result.makespan_s;
  }
  std::string comments = fmt::format("# Of NCCL's algorithms those that podsim predicts to be the fastest on {} {}, from each size up to the next.\n# The protocol is `simple` everywhere, as podsim does not tell protocols apart: for small sizes NCCL's own choice of it may be the better one.\n",
                                     on->first, on->second);
  std::vector<NcclTunerRow> table;
  for (const auto& [key, one] : best) {
    if (one.algorithm.empty()) return Diagnostic{where, fmt::format("no algorithm of NCCL among those that were compared for {} of {}: expected channels, ring, tree, in-switch or hierarchical-in-switch", key.first, to_text(Bytes{key.second}))};
    comments += fmt::format("# {} of {}: {} {}{}\n", key.first, to_text(Bytes{key.second}), one.algorithm, to_text(Seconds{one.time_s}), one.any_s < one.time_s * 0.999 ? fmt::format("; {}, which NCCL does not have, {}", one.any, to_text(Seconds{one.any_s})) : "");
    const bool is_first = table.empty() || table.back().collective != key.first;
    if (!is_first && table.back().algorithm == one.algorithm) continue;
    if (!is_first) table.back().max_bytes = key.second - 1;
    table.push_back({key.first, is_first ? 0 : key.second, std::numeric_limits<std::int64_t>::max(), one.algorithm, "simple", -1, nodes, ranks, -1, -1});
  }
  return comments + write_nccl_tuner(table);
}

}  // namespace podsim
