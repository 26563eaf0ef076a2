#include "tools/command/comparison_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "topologies/machines.hpp"
#include "tools/command/scenario_options.hpp"

namespace podsim {

namespace {

/// The names of --algorithms; `all` stands for these.
std::vector<std::string> algorithm_names(const Options& options, std::vector<std::string> all) {
  std::vector<std::string> names = split(options.text("algorithms"));
  return names == std::vector<std::string>{"all"} ? all : names;
}

std::vector<std::string> gemm_names(bool on_rows_and_columns) {
  std::vector<std::string> names;
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    if (!on_rows_and_columns || entry.mesh == MeshUse::row_col) names.emplace_back(entry.name);
  return names;
}

Expected<std::vector<std::int64_t>> slice_counts(const Options& options) {
  std::vector<std::int64_t> counts;
  if (!options.has("slice-count")) return counts;
  for (const FieldText& piece : fields_of(options).texts("slice_count"))
    for (const std::string& text : split(piece.text)) {
      Fields one;
      one.set("slice_count", text, piece.where);
      const auto count = one.integer("slice_count", 1, 1 << 20);
      if (!count) return count.error();
      counts.push_back(*count);
    }
  return counts;
}

Expected<std::vector<Variant>> gemm_variants(const Options& options, const Fields& fields, const System& system) {
  auto base = read_gemm(fields, system.machine, DType::bf16);
  if (!base) return base.error();
  if (!base->given) base->given.emplace();
  const auto counts = slice_counts(options);
  if (!counts) return counts.error();
  std::vector<Variant> variants;
  for (const std::string& dataflow_name : split(options.text("dataflow"))) {
    const auto dataflow = parse_dataflow(dataflow_name, option("dataflow"));
    if (!dataflow) return dataflow.error();
    for (const std::string& name : algorithm_names(options, gemm_names(false))) {
      const auto entry = gemm_algorithm(name);
      if (!entry) return Diagnostic{option("algorithms"), entry.error().message};
      const bool counted = (*entry)->needs_slice_count;
      if (counted && counts->empty()) return Diagnostic{{}, fmt::format("algorithm {} needs --slice-count", name)};
      for (const std::int64_t S : counted ? *counts : std::vector<std::int64_t>{0}) {
        GemmSpec spec = *base;
        spec.problem.dataflow = *dataflow;
        spec.algorithm = *entry;
        spec.options.slice_count = S;
        variants.push_back({fmt::format("{} {}{}", name, dataflow_name, counted ? fmt::format(" S={}", S) : ""), std::move(spec)});
      }
    }
  }
  return variants;
}

/// --algorithms of collectives; left out or `all`: every name, and what auto chooses beyond them.
Expected<std::vector<std::string>> collective_names(const Options& options) {
  std::vector<std::string> all;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) all.emplace_back(entry.name);
  all.emplace_back("auto");
  if (!options.given("algorithms")) return all;
  std::vector<std::string> names = algorithm_names(options, all);
  for (const std::string& name : names)
    if (const auto known = parse_policy(name, option("algorithms")); !known) return known.error();
  return names;
}

/// What is wrong with them whatever the system. What does not suit a system is left out there.
Status check_collectives(const Options& options) {
  if (!options.has("bytes")) return Diagnostic{{}, "--bytes is missing: the input of the collective on each device"};
  if (auto names = collective_names(options); !names) return names.error();
  for (const std::string& kind : split(options.text("collective"))) {
    if (auto known = parse_collective_kind(kind, option("collective")); !known) return known.error();
    for (const std::string& bytes : split(options.text("bytes")))
      if (auto size = parse_input_bytes(bytes, option("bytes")); !size) return size.error();
  }
  return success();
}

/// `skipped`: what does not suit the system, by its name.
Expected<std::vector<Variant>> collective_variants(const Options& options, const Fields& fields, const System& system, const std::string& place,
                                                   std::vector<Skipped>& skipped) {
  if (auto ok = check_collectives(options); !ok) return ok.error();
  const bool all = !options.given("algorithms") || options.text("algorithms") == "all";
  const std::vector<std::string> axes = options.has("axis") ? options.texts("axis") : std::vector<std::string>{""};
  const auto names = collective_names(options);
  std::vector<Variant> variants;
  std::size_t group = 0;
  for (const std::string& kind : split(options.text("collective")))
    for (const std::string& axis : axes)
      for (const std::string& bytes : split(options.text("bytes"))) {
        for (const std::string& name : *names) {
          Fields asked = fields;
          asked.set("collective", kind, option("collective"));
          asked.set("bytes", bytes, option("bytes"));
          asked.set("algorithm", name, option("algorithm"));
          if (!axis.empty()) asked.set("axis", axis, option("axis"));
          std::string what = fmt::format("{}{} of {} by {}", kind, axis.empty() ? "" : " along " + axis, bytes, name);
          auto spec = read_collective(asked, system, DType::bf16);
          if (spec)
            variants.push_back({std::move(what), *std::move(spec), group, all && name == "auto"});
          else
            skipped.push_back({place + ", " + what, spec.error()});
        }
        ++group;
      }
  return variants;
}

Expected<std::vector<Variant>> workload_variants(const Options& options, const Fields& fields, const System& system) {
  const auto workload = read_workload(fields, system.mesh.devices());
  if (!workload) return workload.error();
  auto choices = read_plan_choices(fields, system.machine, *workload);
  if (!choices) return choices.error();
  std::vector<Variant> variants;
  for (const std::string& name : algorithm_names(options, gemm_names(true))) {
    const auto entry = gemm_algorithm(name);
    if (!entry) return Diagnostic{option("algorithms"), entry.error().message};
    choices->algorithms = {name};
    variants.push_back({fmt::format("{} {}", workload->name, name), WorkloadSpec{*workload, *choices}, 0, false, true});
  }
  return variants;
}

/// Every system as fields: machines x slices x topologies x meshes.
Expected<std::vector<Fields>> systems_asked_for(const Options& options) {
  const Fields base = fields_of(options);
  if (auto machine = read_machine(base); !base.has("machine")) return machine.error();
  const auto listed = [&](const char* name) { return options.has(name) ? split(options.text(name)) : std::vector<std::string>{""}; };
  std::vector<std::string> meshes = options.texts("mesh");
  if (meshes.empty()) meshes.emplace_back();
  std::vector<Fields> systems;
  for (const std::string& machine : listed("machine"))
    for (const std::string& slice : listed("slice"))
      for (const std::string& topology : listed("topology"))
        for (const std::string& mesh : meshes) {
          Fields fields = base;
          fields.set("machine", machine, option("machine"));
          if (options.has("slice")) fields.set("slice", slice, option("slice"));
          if (options.has("topology")) fields.set("topology", topology, option("topology"));
          fields.erase("mesh");
          if (mesh != "all") {
            if (!mesh.empty()) fields.set("mesh", mesh, option("mesh"));
            systems.push_back(std::move(fields));
            continue;
          }
          const auto system = read_system(fields);
          if (!system) return system.error();
          const int devices = system->mesh.devices();
          for (int rows = devices; rows >= 1; --rows)
            if (devices % rows == 0) {
              fields.set("mesh", fmt::format("row={},col={}", rows, devices / rows), option("mesh"));
              systems.push_back(fields);
            }
        }
  return systems;
}

/// Names that several of the machines asked for have, as a machine and what was fitted from it.
std::set<std::string> names_of_several(const std::vector<Fields>& systems) {
  std::map<std::string, std::set<std::string>> asked;  // by the machine's name
  for (const Fields& fields : systems)
    if (const auto machine = find_machine(fields.text("machine"))) asked[machine->name].insert(fields.text("machine"));
  std::set<std::string> several;
  for (const auto& [name, files] : asked)
    if (files.size() > 1) several.insert(name);
  return several;
}

/// What options of a comparison rule out between them.
Status check_comparison(const Options& options, const std::vector<Override>& varied) {
  for (const auto& [path, value] : varied)
    if (options.has("equal") && path.starts_with("link") && path.ends_with("bandwidth"))
      return Diagnostic{option("equal"), "sets the bandwidth of links, which --vary " + path + " varies"};
  const std::vector<std::string> fail = options.texts("fail");
  if (std::find(fail.begin(), fail.end(), "any") != fail.end())
    return Diagnostic{option("fail"), "any belongs to run; compare takes cables, as 0.0-0.1"};
  return success();
}

}  // namespace

OptionGroup comparison_options() {
  return {{"vary", words("PATH=VALUE,..."),
           "each of these values of the machine, as --set takes them, in a\ncolumn of its own; repeatable: every combination"},
          {"equal", word("bisection|ports|injection"),
           "scales the links of every topology but the first, so that these are\nthe same: bisection bandwidth, the bandwidth of all "
           "ports, or that\nout of a chip"},
          {"crossover", words("PATH=lo..hi"),
           "who wins where as a machine value goes from lo to hi, each\nalgorithm at its best slice count; repeatable"}};
}

std::size_t ComparisonSetup::variants() const {
  return std::accumulate(systems.begin(), systems.end(), std::size_t{0}, [](std::size_t sum, const ComparedSystem& on) { return sum + on.variants.size(); });
}

Expected<ComparisonSetup> read_comparison(const Options& options) {
  const auto asked = systems_asked_for(options);
  if (!asked) return asked.error();
  const auto kind = problem_kind(fields_of(options), compared_kinds);
  if (!kind) return kind.error();
  if (options.given("crossover") && *kind != "gemm") return Diagnostic{option("crossover"), fmt::format("belongs to --gemm, not to --{}", *kind)};
  const auto variations = parse_variations(options.texts("vary"), option("vary"));
  if (!variations) return variations.error();
  if (auto ok = check_comparison(options, variations->front()); !ok) return ok.error();
  const std::vector<std::string> meshes = options.texts("mesh");
  const bool every_mesh = std::find(meshes.begin(), meshes.end(), "all") != meshes.end();
  const std::set<std::string> shared_names = names_of_several(*asked);
  std::set<std::string> noted;  // the same system with another machine value
  ComparisonSetup setup;
  for (const Fields& fields : *asked)
    for (const std::vector<Override>& varied : *variations) {
      Fields changed = fields;
      for (const auto& [path, value] : varied) changed.add("set", path + "=" + value, option("set"));
      auto system = read_system(changed);
      if (!system && asked->size() == 1) return system.error();
      if (!system) {
        const std::string topology = changed.text("topology");
        setup.skipped.push_back({fmt::format("{} {}{}", changed.text("machine"), changed.text("slice"), topology.empty() ? "" : " " + topology), system.error()});
        continue;
      }
      if (shared_names.contains(system->machine.name)) system->machine.name += " (" + changed.text("machine") + ")";
      const std::string name = to_text(*system) + (varied.empty() ? "" : " " + to_text(varied));
      auto variants = *kind == "gemm"         ? gemm_variants(options, changed, *system)
                      : *kind == "collective" ? collective_variants(options, changed, *system, name, setup.skipped)
                                              : workload_variants(options, changed, *system);
      if (!variants) return variants.error();
      for (const std::string& note : every_mesh ? std::vector<std::string>{} : alignment_notes(*system)) {
        const std::string& topology = system->joined_by.name;
        std::string placed = fmt::format("{} {}{}: {}", system->machine.name, to_text(system->slice), topology.empty() ? "" : " " + topology, note);
        if (noted.insert(placed).second) setup.notes.push_back(std::move(placed));
      }
      setup.systems.push_back({*std::move(system), name, varied, *std::move(variants)});
    }
  return setup;
}

}  // namespace podsim
