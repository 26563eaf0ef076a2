#include "tools/command/comparison_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/command/scenario_options.hpp"

namespace podsim {

OptionGroup comparison_options() {
  return {{"algorithms", written_as(Form::named_texts, word("NAME[,...]|all", "collective,meshslice")),
           "which algorithms to compare; left out, of --collective: all. --program: fft=pencil,fft=slab,lu=naive (every combination; functions that are not named: as in run), naive (all "
           "functions that have it), or all; left out: all of a single function, of several what run does and naive", true},
          {"vary", written_as(Form::pairs, words("PATH=VALUE,...")),
           "each of these values of the machine, as --set takes them, in a column of its own; repeatable: every combination", true},
          {"equal", word("bisection|ports|injection"),
           "several topologies: scales the links of every topology but the first, so that these are the same: bisection bandwidth, the bandwidth of all "
           "ports, or that out of a chip"},
          {"with", no_field(input_file("MODULE")), "with --hlo: that module after a change. Step time, memory and collectives of both, those first whose exposed time changed most; also written `podsim compare OLD.hlo NEW.hlo`"},
          {"crossover", written_as(Form::pairs, words("PATH=lo..hi")),
           "who wins where as a machine value goes from lo to hi, each algorithm at its best slice count; repeatable"},
          {"top", word("N"), "only the N best rows of each size, and the best of each topology; what cannot be among them is not simulated to its end", true}};
}

Fields compared_fields(const Options& options) {
  Fields fields = fields_of(options);
  if (options.given("algorithms")) fields.set("algorithm", options.text("algorithms"), option("algorithms"));
  return fields;
}

Expected<ComparisonSetup> comparison_of(const Options& options) {
  const Fields fields = compared_fields(options);
  if (options.given("crossover") && !fields.has("gemm")) return Diagnostic{option("crossover"), "belongs to --gemm"};
  const auto variations = parse_variations(options.texts("vary"), option("vary"));
  if (!variations) return variations.error();
  for (const auto& [path, value] : variations->front())
    if (options.has("equal") && path.starts_with("link") && path.ends_with("bandwidth"))
      return Diagnostic{option("equal"), "sets the bandwidth of links, which --vary " + path + " varies"};
  return read_comparison(fields, *variations);
}

std::vector<Diagnostic> doubts_about(const ComparisonSetup& setup) {
  std::vector<Diagnostic> doubts;
  for (const ComparedSystem& on : setup.systems)
    for (const Diagnostic& doubt : doubts_about(on.system))
      if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) doubts.push_back(doubt);
  return doubts;
}

std::vector<std::string> notes_of(const ComparisonSetup& setup, const Options& options) {
  std::vector<std::string> notes;
  const std::vector<std::string> meshes = options.texts("mesh");
  if (std::find(meshes.begin(), meshes.end(), "all") != meshes.end()) return notes;
  std::set<std::string> noted;  // the same system with another machine value
  for (const ComparedSystem& on : setup.systems) {
    if (on.is_mesh_searched) continue;  // every mesh is tried
    for (const std::string& note : alignment_notes(on.system)) {
      const std::string& topology = on.system.joined_by.name;
      std::string placed =
          fmt::format("{} {}{}: {}", on.system.machine.name, to_text(on.system.slice), topology.empty() ? "" : " " + topology, note);
      if (noted.insert(placed).second) notes.push_back(std::move(placed));
    }
  }
  return notes;
}

}  // namespace podsim
