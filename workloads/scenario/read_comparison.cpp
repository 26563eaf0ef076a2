#include "workloads/scenario/read_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "topologies/machines.hpp"
#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/scenario/asked_topologies.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// The algorithms asked for; `all` stands for these.
std::vector<FieldText> algorithms(const Fields& fields, const std::vector<std::string>& all, const std::vector<std::string>& otherwise) {
  std::vector<FieldText> names = listed(fields, "algorithm", otherwise);
  if (names.size() != 1 || names.front().text != "all") return names;
  const SourceLocation where = names.front().where;
  names.clear();
  for (const std::string& name : all) names.push_back({name, where});
  return names;
}

std::vector<FieldText> gemm_names(const Fields& fields, bool on_rows_and_columns) {
  std::vector<std::string> all;
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    if (!on_rows_and_columns || entry.mesh == MeshUse::row_col) all.emplace_back(entry.name);
  return algorithms(fields, all, {"collective", "meshslice"});
}

/// Every name, and what auto chooses beyond them. Errors: an unknown one.
Expected<std::vector<FieldText>> collective_names(const Fields& fields) {
  std::vector<std::string> all;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) all.emplace_back(entry.name);
  all.emplace_back("auto");
  std::vector<FieldText> names = algorithms(fields, all, all);
  for (const FieldText& name : names)
    if (const auto known = parse_policy(name.text, name.where); !known) return known.error();
  return names;
}

Expected<std::vector<std::int64_t>> slice_counts(const Fields& fields) {
  std::vector<std::int64_t> counts;
  for (const FieldText& value : listed(fields, "slice_count")) {
    const auto count = parse_integer(value.text, 1, 1 << 20, value.where);
    if (!count) return count.error();
    counts.push_back(*count);
  }
  return counts;
}

/// Those given, or some where none are; 0 for an algorithm without.
std::vector<std::int64_t> tried_slice_counts(const std::vector<std::int64_t>& given, bool counted) {
  if (!counted) return {0};
  return given.empty() ? std::vector<std::int64_t>{2, 4, 8, 16} : given;
}

}  // namespace

Expected<std::vector<Variant>> gemm_variants(const Fields& fields, const System& system) {
  auto base = read_gemm(fields, system.machine, DType::bf16);
  if (!base) return base.error();
  if (!base->given) base->given.emplace();
  const auto counts = slice_counts(fields);
  if (!counts) return counts.error();
  std::vector<Variant> variants;
  for (const FieldText& dataflow_name : listed(fields, "dataflow", {"os"})) {
    const auto dataflow = parse_dataflow(dataflow_name.text, dataflow_name.where);
    if (!dataflow) return dataflow.error();
    for (const FieldText& name : gemm_names(fields, false)) {
      const auto entry = gemm_algorithm(name.text);
      if (!entry) return Diagnostic{name.where, entry.error().message};
      const bool counted = (*entry)->needs_slice_count;
      for (const std::int64_t S : tried_slice_counts(*counts, counted)) {
        GemmSpec spec = *base;
        spec.problem.dataflow = *dataflow;
        spec.algorithm = *entry;
        spec.options.slice_count = S;
        variants.push_back({fmt::format("{} {}{}", name.text, dataflow_name.text, counted ? fmt::format(" S={}", S) : ""), std::move(spec)});
      }
    }
  }
  return variants;
}

namespace {

/// What is wrong with them whatever the system. What does not suit a system is left out there.
Status check_collectives(const Fields& fields) {
  if (!fields.has("bytes")) return Diagnostic{{}, "`bytes` is missing: the input of the collective on each device"};
  if (auto names = collective_names(fields); !names) return names.error();
  for (const FieldText& kind : listed(fields, "collective"))
    if (auto known = parse_collective_kind(kind.text, kind.where); !known) return known.error();
  if (auto sizes = input_sizes(fields); !sizes) return sizes.error();
  return success();
}

/// The algorithms of MSCCL asked for.
struct MscclFile {
  FieldText path;
  std::optional<CollectiveKind> kind;
  Bytes least, most;  // that its runtime takes it for, of the larger of a device's input and output
  bool compared = false;
};
Expected<std::vector<MscclFile>> msccl_files(const Fields& fields) {
  std::vector<MscclFile> files;
  for (FieldText& path : listed(fields, "msccl")) {
    const auto algorithm = load_msccl(path.text);
    if (!algorithm) return fields.of_named_file("msccl", algorithm.error());
    files.push_back({std::move(path), msccl_collective_named(algorithm->collective), algorithm->least.value_or(Bytes{}), algorithm->most.value_or(Bytes{std::numeric_limits<std::int64_t>::max()})});
  }
  return files;
}

/// Each of the files that compute this, or it is skipped.
void add_msccl_variants(const Fields& fields, const System& system, const std::string& system_name, std::vector<MscclFile>& files, CollectiveKind kind, std::size_t group, std::vector<Variant>& variants, std::vector<Skipped>& skipped) {
  for (MscclFile& file : files) {
    if (file.kind != kind) continue;
    file.compared = true;
    const std::string what = fmt::format("{} of {}", file.path.text, fields.text("bytes"));
    auto spec = read_msccl_problem(fields, file.path.text, system, DType::bf16);
    if (!spec) {
      skipped.push_back({system_name + ", " + what, spec.error()});
      continue;
    }
    const Bytes input = *spec->input, larger = kind == CollectiveKind::all_gather ? system.mesh.devices() * input : input;
    if (larger < file.least || larger > file.most)
      skipped.push_back({system_name + ", " + what, {{}, fmt::format("its minBytes and maxBytes are {} and {}, the data of a GPU {}: its runtime does not take it", to_exact_text(file.least), to_exact_text(file.most), to_exact_text(larger))}});
    else
      variants.push_back({what, *std::move(spec), group});
  }
}

/// Whether the axes, or without names all of them, hold every device.
bool is_of_all_devices(const std::string& names, const System& system) {
  const auto axes = axes_of(names.empty() ? std::vector<std::string>{} : split(names), system.mesh);
  if (!axes) return false;
  return std::accumulate(axes->begin(), axes->end(), 1, [](int product, const AxisView& axis) { return product * axis.size; }) == system.mesh.devices();
}

void skip_others(const std::vector<MscclFile>& files, const std::string& system_name, std::vector<Skipped>& skipped) {
  for (const MscclFile& file : files)
    if (!file.compared)
      skipped.push_back({system_name + ", " + file.path.text, {{}, file.kind ? fmt::format("it computes the {} of all devices, which `collective` and `axis` do not ask for", name_of(*file.kind))
                                                                             : "it does not say what it computes, so that there is nothing to compare it with"}});
}

}  // namespace

/// A group for each number of bytes and kind of collective.
Expected<std::vector<Variant>> msccl_variants(const Fields& fields, const System& system, const std::string& system_name, std::vector<Skipped>& skipped) {
  if (!fields.has("bytes")) return Diagnostic{{}, "`bytes` is missing: the input of the algorithms on each device"};
  auto files = msccl_files(fields);
  if (!files) return files.error();
  const auto sizes = input_sizes(fields);
  if (!sizes) return sizes.error();
  std::vector<Variant> variants;
  std::size_t group = 0;
  for (const FieldText& bytes : *sizes) {
    Fields asked = fields;
    asked.set("bytes", bytes.text, bytes.where);
    std::set<CollectiveKind> done;
    for (const MscclFile& file : *files)
      if (file.kind && done.insert(*file.kind).second) add_msccl_variants(asked, system, system_name, *files, *file.kind, group++, variants, skipped);
  }
  skip_others(*files, system_name, skipped);
  return variants;
}

/// `skipped`: what does not suit the system, by its name.
Expected<std::vector<Variant>> collective_variants(const Fields& fields, const System& system, const std::string& system_name,
                                                   std::vector<Skipped>& skipped) {
  if (auto ok = check_collectives(fields); !ok) return ok.error();
  const std::vector<FieldText> given = listed(fields, "algorithm", {"all"});
  const bool all = given.size() == 1 && given.front().text == "all";
  std::vector<FieldText> axes = fields.texts("axis");
  if (axes.empty()) axes.emplace_back();
  const auto names = collective_names(fields);
  const auto sizes = input_sizes(fields);
  auto files = msccl_files(fields);
  if (!files) return files.error();
  std::vector<Variant> variants;
  std::size_t group = 0;
  for (const FieldText& kind : listed(fields, "collective"))
    for (const FieldText& axis : axes)
      for (const FieldText& bytes : *sizes) {
        for (const FieldText& name : *names) {
          Fields asked = fields;
          asked.set("collective", kind.text, kind.where);
          asked.set("bytes", bytes.text, bytes.where);
          asked.set("algorithm", name.text, name.where);
          if (!axis.text.empty()) asked.set("axis", axis.text, axis.where);
          std::string what = fmt::format("{}{} of {} by {}", kind.text, axis.text.empty() ? "" : " along " + axis.text, bytes.text, name.text);
          auto spec = read_collective(asked, system, DType::bf16);
          if (spec)
            variants.push_back({.name = std::move(what), .problem = *std::move(spec), .group = group, .unless_named = all && name.text == "auto", .unless_long = all});
          else
            skipped.push_back({system_name + ", " + what, spec.error()});
        }
        if (!files->empty() && is_of_all_devices(axis.text, system)) {
          Fields asked = fields;
          asked.set("bytes", bytes.text, bytes.where);
          add_msccl_variants(asked, system, system_name, *files, *parse_collective_kind(kind.text, kind.where), group, variants, skipped);
        }
        ++group;
      }
  skip_others(*files, system_name, skipped);
  return variants;
}

Expected<std::vector<Variant>> workload_variants(const Fields& fields, const System& system) {
  const auto workload = read_workload(fields, system.mesh.devices());
  if (!workload) return workload.error();
  auto choices = read_plan_choices(fields, system.machine, *workload);
  if (!choices) return choices.error();
  std::vector<Variant> variants;
  for (const FieldText& name : gemm_names(fields, true)) {
    const auto entry = gemm_algorithm(name.text);
    if (!entry) return Diagnostic{name.where, entry.error().message};
    choices->algorithms = {name.text};
    variants.push_back({fmt::format("{} {}", workload->name, name.text), WorkloadSpec{*workload, *choices}, 0, false, true});
  }
  return variants;
}

namespace {

/// A program that is one product of matrices, all divided by rows and columns of the mesh, as the GEMM that it is: A @ B, A @ W.T, X.T @ B are the
/// dataflows OS, LS, RS.
std::optional<GemmProblem> gemm_of(const ShardedProgram& program) {
  if (program.mesh.axes().size() != 2 || program.outputs.size() != 1) return std::nullopt;
  const Sharding blocks{{{0}, {1}}, {}};
  const auto operation = [&](int i) -> const Operation& { return program.operations[static_cast<std::size_t>(i)]; };
  const Operation& product = operation(program.outputs[0]);
  const auto out = program.out.find(program.outputs[0]);
  if (product.op != ArrayOp::product || product.extents.size() != 2 || out == program.out.end() || out->second != blocks) return std::nullopt;
  std::array<bool, 2> transposed{};
  for (std::size_t side = 0; side < 2; ++side) {
    const Operation* matrix = &operation(product.operands[side]);
    transposed[side] = matrix->op == ArrayOp::transpose;
    if (transposed[side]) matrix = &operation(matrix->operands[0]);
    if (matrix->op != ArrayOp::input || *matrix->sharding != blocks) return std::nullopt;
  }
  if (transposed[0] && transposed[1]) return std::nullopt;
  return GemmProblem{product.extents[0], product.extents[1], operation(product.operands[0]).extents[1], program.dtype,
                     transposed[1] ? Dataflow::ls : transposed[0] ? Dataflow::rs : Dataflow::os};
}

/// The program with its transforms and linear systems by each algorithm.
Expected<std::vector<Variant>> kernel_variants(const Fields& fields, const ProgramSpec& spec) {
  if (fields.has("choose")) return Diagnostic{fields.where("choose"), "expected `algorithms` to compare transforms and linear systems by, found `choose`"};
  if (fields.has("slice_count")) return Diagnostic{fields.where("slice_count"), "belongs to products"};
  auto ways = compared_kernels(listed(fields, "algorithm"), spec.program);
  if (!ways) return ways.error();
  std::vector<Variant> variants;
  for (ComparedKernels& way : *ways) {
    ProgramSpec by = spec;
    by.program.kernels = way.kernels;
    variants.push_back({std::move(way.name), std::move(by), 0, false, false, true});
  }
  return variants;
}

}  // namespace

/// The program by each way to choose; if it is a GEMM, its algorithms beside it.
Expected<std::vector<Variant>> program_variants(const Fields& fields, const System& system) {
  Fields one = fields;
  one.erase("choose");
  auto spec = read_sharded(one, system, DType::bf16, false);
  if (!spec) return spec.error();
  std::vector<Variant> variants;
  if (has_kernels(spec->program)) return kernel_variants(fields, *spec);
  if (spec->chain) {
    variants.push_back({"chain", *std::move(spec)});
    return variants;
  }
  for (const FieldText& name : listed(fields, "choose", {"default", "bytes", "time"})) {
    const auto choose = parse_choose(name.text, name.where);
    if (!choose) return choose.error();
    ProgramSpec by = *spec;
    by.choose = *choose;
    variants.push_back({"program by " + name.text, std::move(by)});
  }
  const auto problem = gemm_of(spec->program);
  const auto counts = slice_counts(fields);
  if (!counts) return counts.error();
  if (!problem) {
    for (const char* name : {"algorithm", "slice_count"})
      if (fields.has(name)) return Diagnostic{fields.where(name), "belongs to a program that is one product with all matrices divided by rows and columns, its result too (`out`)"};
    return variants;
  }
  const auto options = read_part_options(fields, system.machine);
  if (!options) return options.error();
  for (const FieldText& name : gemm_names(fields, true)) {
    const auto entry = gemm_algorithm(name.text);
    if (!entry) return Diagnostic{name.where, entry.error().message};
    for (const std::int64_t S : tried_slice_counts(*counts, (*entry)->needs_slice_count)) {
      GemmSpec gemm{*entry, *problem, Pass::forward, gemm_options(*options, S)};
      gemm.collectives = spec->collectives;
      variants.push_back({fmt::format("{}{}", name.text, S > 0 ? fmt::format(" S={}", S) : ""), std::move(gemm)});
    }
  }
  return variants;
}

/// A training step by every pipeline, recomputation and number of microbatches.
Expected<std::vector<Variant>> training_variants(const Fields& fields, const System& system) {
  std::vector<FieldText> remats;
  for (const FieldText& given : fields.texts("remat"))
    for (const std::string& text : split(given.text, ';')) remats.push_back({std::string{trimmed(text)}, given.where});
  if (remats.empty()) remats.emplace_back();
  std::vector<Variant> variants;
  for (const FieldText& pipeline : listed(fields, "pipeline", {""}))
    for (const FieldText& microbatches : listed(fields, "microbatches", {""}))
      for (const FieldText& remat : remats) {
        Fields one = fields;
        std::string name = "training";
        for (const auto& [field, value] : {std::pair{"pipeline", &pipeline}, {"microbatches", &microbatches}, {"remat", &remat}})
          if (!value->text.empty()) one.set(field, value->text, value->where), name += fmt::format(", {} {}", field, value->text);
        auto spec = read_training(one, system, DType::bf16);
        if (!spec) return spec.error();
        variants.push_back({std::move(name), *std::move(spec)});
      }
  return variants;
}

namespace {

/// Names that several of the machines asked for have, as a machine and what was fitted from it.
std::set<std::string> names_of_several(const std::vector<AskedTopology>& topologies) {
  std::map<std::string, std::set<std::string>> asked;  // by the machine's name
  for (const AskedTopology& topology : topologies) {
    const Fields& fields = topology.meshes.front();
    if (const auto machine = machine_named(fields, fields.text("machine"))) asked[machine->name].insert(fields.text("machine"));
  }
  std::set<std::string> several;
  for (const auto& [name, files] : asked)
    if (files.size() > 1) several.insert(name);
  return several;
}

Status each_once(const std::vector<FieldText>& values) {
  std::set<std::string> seen;
  for (const FieldText& value : values) {
    if (value.text.empty()) return Diagnostic{value.where, "expected values between commas, found an empty one"};
    if (!seen.insert(value.text).second) return Diagnostic{value.where, quoted(value.text) + " is given twice"};
  }
  return success();
}

/// What is wrong with lists whatever the system: typing errors, which would otherwise be left out of the comparison with a reason.
Status check_lists(const Fields& fields) {
  for (const char* name : {"machine", "slice", "topology", "mesh_order", "collective", "msccl", "bytes", "algorithm", "dataflow", "slice_count"})
    if (auto ok = each_once(listed(fields, name)); !ok) return ok;
  for (const char* name : {"mesh", "axis"})
    if (auto ok = each_once(fields.texts(name)); !ok) return ok;
  for (const FieldText& name : listed(fields, "algorithm"))
    if (name.text == "all" && listed(fields, "algorithm").size() > 1) return Diagnostic{name.where, "expected names or all, found both"};
  std::vector<Machine> machines;
  for (const FieldText& name : listed(fields, "machine")) {
    auto machine = machine_named(fields, name.text);
    if (!machine) return machine.error();
    machines.push_back(*std::move(machine));
  }
  for (const FieldText& topology : listed(fields, "topology"))
    if (const auto known = parse_topology(topology.text, topology.where); !known) return known.error();
  for (const FieldText& slice : listed(fields, "slice")) {
    const auto takes = [&](const Machine& machine) { return parse_slice(slice.text, machine, slice.where).has_value(); };
    if (std::none_of(machines.begin(), machines.end(), takes)) return parse_slice(slice.text, machines.front(), slice.where).error();
  }
  for (const FieldText& mesh : fields.texts("mesh"))
    if (mesh.text != "all")
      if (const auto sizes = parse_mesh(mesh.text, mesh.where); !sizes) return sizes.error();
  return success();
}

/// What does not suit the meshes of a topology.
struct SkippedOnMeshes {
  std::vector<Skipped> whole;  // meshes
  std::vector<std::pair<std::string, std::vector<Skipped>>> variants;  // by the system's name
  std::set<std::string> applied;  // the names of those that suit a mesh

  std::vector<Skipped>& of_mesh(const std::string& name) { return variants.emplace_back(name, std::vector<Skipped>{}).second; }
  /// Of searched meshes what suits none of them, once.
  void add_to(std::vector<Skipped>& skipped, bool is_mesh_searched) {
    if (!is_mesh_searched || variants.empty()) std::ranges::move(whole, std::back_inserter(skipped));
    for (auto& [name, entries] : variants) {
      if (is_mesh_searched) std::erase_if(entries, [&](const Skipped& entry) { return !applied.insert(entry.what.substr(std::min(entry.what.size(), name.size() + 2))).second; });
      std::ranges::move(entries, std::back_inserter(skipped));
    }
  }
};

}  // namespace

std::size_t ComparisonSetup::variants() const {
  return std::accumulate(systems.begin(), systems.end(), std::size_t{0}, [](std::size_t sum, const ComparedSystem& on) { return sum + on.variants.size(); });
}

Expected<ComparisonSetup> read_comparison(const Fields& fields, const std::vector<std::vector<Override>>& variations) {
  if (!fields.has("machine")) return read_machine(fields).error();
  if (auto ok = check_lists(fields); !ok) return ok.error();
  auto asked = topologies_asked_for(fields);
  if (!asked) return asked.error();
  Fields alone = fields;
  if (fields.has("collective")) alone.erase("msccl");  // beside its algorithms
  const auto kind = problem_kind(alone, true);
  if (!kind) return kind.error();
  for (const FieldText& fail : fields.texts("fail"))
    if (fail.text == "any") return Diagnostic{fail.where, "any belongs to run; compare takes cables, as 0.0-0.1"};
  search_meshes(*asked, fields, **kind);
  const std::set<std::string> shared_names = names_of_several(*asked);
  const bool is_one = asked->size() == 1 && asked->front().meshes.size() == 1;
  ComparisonSetup setup;
  for (const AskedTopology& topology : *asked)
    for (const std::vector<Override>& varied : variations) {
      const std::size_t number = setup.topologies++;
      SkippedOnMeshes skipped;
      for (const Fields& each : topology.meshes) {
        Fields changed = each;
        for (const auto& [path, value] : varied) changed.add("set", path + "=" + value, of_field("set"));
        const std::string order = listed(fields, "mesh_order").size() > 1 ? " " + changed.text("mesh_order") : "";
        auto system = read_system(changed);
        if (!system && is_one) return system.error();
        if (!system) {
          const std::string built = changed.text("topology");
          skipped.whole.push_back({fmt::format("{} {}{}{}", changed.text("machine"), changed.text("slice"), built.empty() ? "" : " " + built, order), system.error()});
          continue;
        }
        if (shared_names.contains(system->machine.name)) system->machine.name += " (" + changed.text("machine") + ")";
        const std::string name = to_text(*system) + order + (varied.empty() ? "" : " " + to_text(varied));
        auto variants = (*kind)->variants(changed, *system, name, skipped.of_mesh(name));
        if (!variants) return variants.error();
        for (const Variant& variant : *variants) skipped.applied.insert(variant.name);
        setup.systems.push_back({*std::move(system), name, varied, *std::move(variants), number, topology.is_mesh_searched});
      }
      skipped.add_to(setup.skipped, topology.is_mesh_searched);
    }
  return setup;
}

}  // namespace podsim
