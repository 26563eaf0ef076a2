#include "workloads/advice/remedies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "algorithms/gemm/gemm.hpp"
#include "sim/topology/grid.hpp"
#include "workloads/advice/xla_flags.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/training_problem.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {

namespace {

using Sizes = std::vector<std::pair<std::string, int>>;
using Remedies = std::vector<Remedy>;

std::string mesh_text(const Sizes& sizes) {
  std::vector<std::string> axes;
  for (const auto& [name, size] : sizes) axes.push_back(fmt::format("{}={}", name, size));
  return fmt::format("{}", fmt::join(axes, ","));
}

const Sizes& sizes_of(const Run& run) { return run.row.result.mesh; }

/// The values of a field other than the run's own, each a remedy by itself.
Remedies each(const Fields& fields, std::string_view field, const std::vector<std::string>& values, std::string_view what) {
  Remedies remedies;
  for (const std::string& value : values)
    if (value != fields.text(field)) remedies.push_back({fmt::format(fmt::runtime(what), value), {{std::string{field}, value}}});
  return remedies;
}

std::int64_t number(const Fields& fields, std::string_view field) {
  const auto count = fields.count(field);
  return count ? *count : 1;
}

// ---- Of modules ---------------------------------------------------------------------------------------------------------------------------

bool has_rewrite(const Fields& fields, std::string_view word) {
  return std::ranges::any_of(fields.texts("rewrite"), [&](const FieldText& given) { return given.text == word; });
}

Remedies scatters(const Fields& fields, const Run&) {
  if (has_rewrite(fields, "reduce-scatter")) return {};
  return {{"reduce-scatters for all-reduces of which a device uses its own block alone", {{"rewrite", "reduce-scatter"}}}};
}

Remedies bf16_reductions(const Fields& fields, const Run&) {
  if (has_rewrite(fields, "bf16-reductions")) return {};
  return {{"sums of float32 sent as bf16, which rounds them", {{"rewrite", "bf16-reductions"}}}};
}

Remedies combined(const Fields& fields, const Run&) {
  if (has_rewrite(fields, "combine")) return {};
  return {{"collectives of one kind as one, up to 30 MiB", {{"rewrite", "combine"}}}, {"collectives of one kind as one, up to 256 MiB", {{"rewrite", "combine"}, {"combine_threshold", "256MiB"}}}};
}

Remedies prefetched(const Fields& fields, const Run&) {
  if (has_rewrite(fields, "prefetch")) return {};
  return {{"gathers of loops begin in the trip before", {{"rewrite", "prefetch"}}}};
}

Remedies earlier_starts(const Fields& fields, const Run& run) {
  const auto& module = run.row.problem.hlo;
  if (module == nullptr || fields.text("hlo_schedule") == "overlap" || (!module->is_scheduled && !fields.has("hlo_schedule"))) return {};
  return {{"collectives begin when their operands are there", {{"hlo_schedule", "overlap"}}}};
}

/// Some modules have been combined further than is good: regrouped, or apart, which takes more messages and so helps where each can begin by itself.
Remedies split(const Fields& fields, const Run& run) {
  if (has_rewrite(fields, "split") || has_rewrite(fields, "combine")) return {};
  Remedy apart{"collectives of several arrays as one for each, which begins when its operand is there", {{"rewrite", "split"}}};
  for (const Remedy& earlier : earlier_starts(fields, run)) apart.changes.insert(apart.changes.end(), earlier.changes.begin(), earlier.changes.end());
  return {std::move(apart), {"collectives of several arrays regrouped, up to 16 MiB", {{"rewrite", "split"}, {"rewrite", "combine"}, {"combine_threshold", "16MiB"}}}};
}

// ---- Of products --------------------------------------------------------------------------------------------------------------------------

constexpr std::array slice_counts{2, 4, 8, 16};

Remedies sliced(const Fields& fields, const std::vector<std::string>& algorithms) {
  Remedies remedies;
  const std::string own = fields.text("algorithm");
  for (const std::string& algorithm : algorithms) {
    if (algorithm != "meshslice") {
      if (algorithm != own) remedies.push_back({"products by " + algorithm, {{"algorithm", algorithm}}});
      continue;
    }
    for (const int slices : slice_counts) {
      if (algorithm == own && std::to_string(slices) == fields.text("slice_count")) continue;
      remedies.push_back({fmt::format("products by meshslice in {} slices", slices), {{"algorithm", algorithm}, {"slice_count", std::to_string(slices)}}});
    }
  }
  return remedies;
}

Remedies gemm_by_another(const Fields& fields, const Run&) {
  std::vector<std::string> names;
  for (const GemmAlgorithmEntry& entry : gemm_algorithms()) names.emplace_back(entry.name);
  return sliced(fields, names);
}

Remedies layers_by_another(const Fields& fields, const Run&) { return sliced(fields, {"collective", "meshslice", "wang"}); }

Remedies dataflows(const Fields& fields, const Run&) { return each(fields, "dataflow", {"os", "ls", "rs"}, "dataflow {}"); }

// ---- Of training steps ----------------------------------------------------------------------------------------------------------------------

int size_of(const Run& run, std::string_view axis) {
  for (const auto& [name, size] : sizes_of(run))
    if (name == axis) return size;
  return 1;
}

Remedies microbatches(const Fields& fields, const Run& run) {
  if (run.row.training == nullptr) return {};
  Remedies remedies;
  const std::int64_t own = number(fields, "microbatches");
  for (const auto& [multiple, part] : {std::pair{2, 1}, std::pair{4, 1}, std::pair{1, 2}})
    if (own * multiple % part == 0 && own * multiple / part >= 1) remedies.push_back({fmt::format("{} microbatches", own * multiple / part), {{"microbatches", std::to_string(own * multiple / part)}}});
  return remedies;
}

Remedies pipelines(const Fields& fields, const Run& run) {
  if (size_of(run, "stage") < 2) return {};
  Remedies remedies;
  for (const std::string& name : scenario_field("pipeline")->names()) {
    if (name == fields.text("pipeline")) continue;
    Remedy remedy{"pipeline schedule " + name, {{"pipeline", name}}};
    const bool has_chunks = name == "interleaved-1f1b" || name == "kimi-k2";
    if (has_chunks && number(fields, "virtual_stages") == 1) remedy.what += " with 2 virtual stages", remedy.changes.push_back({"virtual_stages", "2"});
    remedies.push_back(std::move(remedy));
  }
  return remedies;
}

Remedies recomputation(const Fields& fields, const Run&) { return each(fields, "remat", {"none", "full", "layer"}, "recomputation: {}"); }

Remedies sharded_optimizer(const Fields& fields, const Run& run) {
  if (size_of(run, "data") < 2) return {};
  return each(fields, "shard_optimizer_over_data", {"on"}, "the optimizer's state divided over data");
}

// ---- Of MaxText's configurations, in their own keys -------------------------------------------------------------------------------------------

Remedy with_keys(std::string what, const std::vector<std::string>& keys) {
  Remedy remedy{std::move(what), {}};
  for (const std::string& key : keys) remedy.changes.push_back({"training", key});
  return remedy;
}

Remedies maxtext_recomputation(const Fields&, const Run& run) {
  Remedies remedies;
  if (run.row.problem.training == nullptr) return remedies;
  const auto own = to_maxtext(run.row.problem.training->given);
  for (const char* const policy : {"none", "minimal", "save_qkv_proj", "full"})
    if (!own || own->find(fmt::format("remat_policy={} ", policy)) == std::string::npos) remedies.push_back(with_keys(fmt::format("recomputation: {}", policy), {fmt::format("remat_policy={}", policy)}));
  return remedies;
}

/// As many sequences a step, in other parts.
Remedies maxtext_microbatches(const Fields&, const Run& run) {
  Remedies remedies;
  if (run.row.problem.training == nullptr) return remedies;
  const TrainingStep& step = run.row.problem.training->given;
  const double sequences = static_cast<double>(step.batch) / static_cast<double>(step.mesh.devices());
  for (const std::int64_t count : {step.microbatches * 2, step.microbatches * 4, step.microbatches / 2}) {
    if (count < 1 || count == step.microbatches) continue;
    std::string what = fmt::format("{} microbatches", count);
    remedies.push_back(step.mesh.stage > 1 ? with_keys(std::move(what), {fmt::format("num_pipeline_microbatches={}", count)})
                                           : with_keys(std::move(what), {fmt::format("gradient_accumulation_steps={}", count), fmt::format("per_device_batch_size={}", sequences / static_cast<double>(count))}));
  }
  return remedies;
}

Remedies maxtext_optimizer(const Fields&, const Run& run) {
  if (run.row.problem.training == nullptr || run.row.problem.training->given.mesh.data < 2 || run.row.problem.training->given.shard_optimizer_over_data) return {};
  return {with_keys("the optimizer's state divided over data", {"shard_optimizer_over_data=true"})};
}

Remedies maxtext_meshes(const Fields& fields, const Run& run) {
  if (run.row.problem.training == nullptr || fields.has("mesh")) return {};
  const TrainingMesh& mesh = run.row.problem.training->given.mesh;
  const std::array<std::pair<std::string_view, std::int64_t>, 3> axes{{{"data", mesh.data}, {"fsdp", mesh.fsdp}, {"tensor", mesh.col}}};
  Remedies remedies;
  for (std::size_t from = 0; from < axes.size(); ++from)
    for (std::size_t to = 0; to < axes.size(); ++to) {
      if (from == to || axes[from].second % 2 != 0) continue;
      auto moved = axes;
      moved[from].second /= 2, moved[to].second *= 2;
      std::vector<std::string> keys;
      for (const auto& [name, size] : moved) keys.push_back(fmt::format("ici_{}_parallelism={}", name, size));
      remedies.push_back(with_keys(fmt::format("{} devices along {}, {} along {}", moved[from].second, moved[from].first, moved[to].second, moved[to].first), keys));
    }
  return remedies;
}

// ---- Of collectives -------------------------------------------------------------------------------------------------------------------------

Remedies collectives(const Fields& fields, const Run&) { return each(fields, "collectives", {"auto"}, "each collective by the algorithm that is fastest for it alone"); }

Remedies collective_algorithm(const Fields& fields, const Run&) { return each(fields, "algorithm", {"auto"}, "the fastest algorithm, in any order of axes"); }

// ---- Of programs ----------------------------------------------------------------------------------------------------------------------------

Remedies choices(const Fields& fields, const Run&) { return each(fields, "choose", {"time"}, "the fastest collectives, operation by operation"); }

// ---- Of placement ---------------------------------------------------------------------------------------------------------------------------

/// A mesh on the same slice, also where the slice followed from the mesh.
Remedy on_mesh(const Fields& fields, const Run& run, const Sizes& sizes) {
  Remedy remedy{"mesh " + mesh_text(sizes), {{"mesh", mesh_text(sizes)}}};
  if (!fields.has("slice")) remedy.changes.push_back({"slice", run.row.result.slice});
  return remedy;
}

Remedies other_orders(const Fields& fields, const Run&) {
  return fields.has("devices") ? Remedies{} : each(fields, "mesh_order", {"jax", "snake", "row-major"}, "devices in the order {}");
}

/// Neighbouring axes change places, and so the dimensions of the slice under them.
Remedies swapped_axes(const Fields& fields, const Run& run) {
  Remedies remedies;
  const Sizes sizes = sizes_of(run);
  const std::size_t first = run.system->slices > 1 ? 1 : 0;  // slices stay in front
  for (std::size_t a = first; a + 1 < sizes.size(); ++a) {
    if (sizes[a].second == 1 || sizes[a + 1].second == 1) continue;
    Sizes swapped = sizes;
    std::swap(swapped[a], swapped[a + 1]);
    remedies.push_back(on_mesh(fields, run, swapped));
  }
  return remedies;
}

/// A factor of 2 moves from one axis to another; `more`: axes that the mesh may get.
Remedies moved_factors(const Fields& fields, const Run& run, std::initializer_list<std::string_view> more) {
  Sizes sizes = sizes_of(run);
  const std::size_t first = run.system->slices > 1 ? 1 : 0;
  for (const std::string_view name : more)
    if (std::ranges::find(sizes, name, &Sizes::value_type::first) == sizes.end()) sizes.emplace_back(name, 1);
  Remedies remedies;
  for (std::size_t from = first; from < sizes.size(); ++from)
    for (std::size_t to = first; to < sizes.size(); ++to) {
      if (from == to || sizes[from].second % 2 != 0) continue;
      Sizes moved = sizes;
      moved[from].second /= 2, moved[to].second *= 2;
      std::erase_if(moved, [&](const auto& axis) { return axis.second == 1 && std::ranges::find(more, axis.first) != more.end(); });
      remedies.push_back(on_mesh(fields, run, moved));
    }
  return remedies;
}

Remedies product_meshes(const Fields& fields, const Run& run) { return moved_factors(fields, run, {}); }

Remedies training_meshes(const Fields& fields, const Run& run) { return moved_factors(fields, run, {"fsdp", "col"}); }

// ---- The table ------------------------------------------------------------------------------------------------------------------------------

/// A family of remedies, and the kinds of problem (problem_kinds()) that it is for; none: any.
struct Family {
  std::vector<std::string_view> kinds;
  Remedies (*of)(const Fields& fields, const Run& run);
};

const std::vector<Family>& families() {
  static const std::vector<Family> table{
      {{"module"}, scatters},
      {{"module"}, earlier_starts},
      {{"module"}, bf16_reductions},
      {{"module"}, split},
      {{"module"}, combined},
      {{"module"}, prefetched},
      {{"module", "gemm", "block", "program", "training", "maxtext"}, collectives},
      {{"collective"}, collective_algorithm},
      {{"program"}, choices},
      {{"gemm"}, gemm_by_another},
      {{"gemm"}, dataflows},
      {{"training"}, sharded_optimizer},
      {{"maxtext"}, maxtext_optimizer},
      {{"maxtext"}, maxtext_recomputation},
      {{"maxtext"}, maxtext_microbatches},
      {{"training"}, recomputation},
      {{"training"}, microbatches},
      {{"training"}, pipelines},
      {{"gemm"}, product_meshes},
      {{"training"}, training_meshes},
      {{"maxtext"}, maxtext_meshes},
      {{"gemm", "block", "training", "collective", "program"}, swapped_axes},
      {{}, other_orders},
      {{"training"}, layers_by_another},
  };
  return table;
}

/// "remat_policy" of "remat_policy=full": the key of a configuration of MaxText; empty: it is none.
std::string_view key_of(const FieldChange& change) {
  const std::size_t equals = change.field == "training" ? change.text.find('=') : std::string::npos;
  return equals == std::string::npos ? std::string_view{} : std::string_view{change.text}.substr(0, equals);
}

}  // namespace

std::string words_of(const Remedy& remedy) {
  std::vector<std::string> words;
  for (const FieldChange& change : remedy.changes) {
    std::string name = change.field;
    std::ranges::replace(name, '_', '-');
    words.push_back(key_of(change).empty() ? fmt::format("--{} {}", name, change.text) : change.text);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string subject_of(const FieldChange& change) {
  if (const auto key = key_of(change); !key.empty()) return fmt::format("{} {}", change.field, key);
  return scenario_field(change.field)->repeated ? fmt::format("{} {}", change.field, change.text) : change.field;
}

std::vector<Remedy> remedies_of(const Fields& fields, const Run& run) {
  const auto kind = problem_kind(fields);
  Remedies remedies;
  if (!kind) return remedies;
  // Of a step that a configuration of MaxText says the remedies are in its keys.
  const std::string_view name = fields.has("maxtext") ? "maxtext" : (*kind)->name;
  for (const Family& family : families())
    if (family.kinds.empty() || std::ranges::find(family.kinds, name) != family.kinds.end()) std::ranges::move(family.of(fields, run), std::back_inserter(remedies));
  if (name == "module")
    for (Remedy& remedy : remedies) remedy.flags = xla_flags(remedy, run.system->machine.interconnect == Interconnect::rail);
  return remedies;
}

std::vector<RefusedRemedy> needless_remedies(const Fields& fields, const Run&) {
  if (!fields.has("training") && !fields.has("maxtext")) return {};
  return {{{"overlap with the next layer", {}}, "the step does that already: each weight is gathered one ahead of its use, that of the next layer too"}};
}

Remedy faster_links(const Run& run, double factor) {
  const Machine& machine = run.system->machine;
  Remedy remedy{fmt::format("links {} times as fast", factor), {}};
  const auto add = [&](const std::string& path, BytesPerSecond rate) {
    if (!is_unlimited(rate)) remedy.changes.push_back({"set", fmt::format("{}={}GB/s", path, rate.count() * factor / 1e9)});
  };
  std::vector<std::size_t> used;
  for (std::size_t d = 0; d < run.system->slice.extents.size(); ++d)
    if (run.system->slice.extents[d] > 1) used.push_back(d);
  const bool are_alike = std::ranges::all_of(used, [&](std::size_t d) { return machine.link[d].bandwidth == machine.link[used.front()].bandwidth; });
  if (are_alike && !used.empty()) add("link.bandwidth", machine.link[used.front()].bandwidth);
  if (!are_alike)
    for (const std::size_t d : used) add(fmt::format("link[{}].bandwidth", dimension_name(static_cast<int>(d))), machine.link[d].bandwidth);
  if (machine.chip.devices > 1) add("chip.inner_bandwidth", machine.chip.inner.bandwidth);
  if (run.system->slices > 1) add("dcn.nic_bandwidth", machine.dcn.nic_bandwidth), add("dcn.host_bandwidth", machine.dcn.host_bandwidth);
  return remedy;
}

Fields with(Fields fields, const Remedy& remedy) {
  for (const FieldChange& change : remedy.changes) {
    const auto& [field, text] = change;
    if (!key_of(change).empty()) {  // in place of the run's own
      const std::vector<FieldText> own = fields.texts(field);
      fields.erase(field);
      for (const FieldText& given : own)
        if (key_of({field, given.text}) != key_of(change)) fields.add(field, given.text, given.where);
    }
    const bool is_added = scenario_field(field)->repeated;
    is_added ? fields.add(field, text, of_field(field)) : fields.set(field, text, of_field(field));
  }
  return fields;
}

}  // namespace podsim
