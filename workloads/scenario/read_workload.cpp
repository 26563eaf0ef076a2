#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 30;

Status set_extent(const Fields& fields, const char* name, std::int64_t& extent) {
  if (!fields.has(name)) return success();
  const auto value = fields.integer(name, 1, largest);
  if (!value) return value.error();
  extent = *value;
  return success();
}

}  // namespace

Status set_extents(const Fields& fields, const ModelExtents& model) {
  const std::int64_t features = model.heads * model.head_dim;
  const bool own_width = model.width != features, grouped = model.kv_heads != model.heads;
  for (const auto& [name, extent] : {std::pair{"seq", &model.sequence}, {"heads", &model.heads}, {"head_dim", &model.head_dim}, {"layers", &model.layers}})
    if (auto ok = set_extent(fields, name, *extent); !ok) return ok.error();
  if (!grouped) model.kv_heads = model.heads;
  if (auto ok = set_extent(fields, "kv_heads", model.kv_heads); !ok) return ok.error();
  if (model.heads != 0 && model.heads % model.kv_heads != 0)
    return Diagnostic{fields.where("kv_heads"), fmt::format("must divide the {} heads, found {}", model.heads, model.kv_heads)};
  const std::int64_t changed = model.heads * model.head_dim;
  if (changed > largest) return Diagnostic{fields.where("heads"), fmt::format("expected at most {} features in all heads, found {}", largest, changed)};
  if (!own_width) model.width = changed;
  if (changed != features && !fields.has("ff")) {
    if (model.ff * changed % features != 0) return Diagnostic{{}, fmt::format("`ff` is missing: {} of {} features is no whole number of {}", model.ff, features, changed)};
    model.ff = model.ff * changed / features;
  }
  return set_extent(fields, "ff", model.ff);
}

Expected<Workload> read_workload(const Fields& fields, int devices) {
  auto block = find_transformer_block(fields.text("workload"));
  if (!block)
    return block.error().where.file.empty() ? blamed_on(fields.where("workload"), block.error()) : fields.of_named_file("workload", block.error());
  if (auto ok = set_extent(fields, "batch", block->batch); !ok) return ok.error();
  if (auto ok = set_extents(fields, {block->sequence, block->heads, block->kv_heads, block->head_dim, block->hidden, block->ff, block->layers}); !ok) return ok.error();
  Only only = Only::everything;
  if (fields.has("only")) {
    const auto named = only_named(fields.text("only"));
    if (!named) return wrong_word("only", fields.text("only"), fields.where("only"));
    only = *named;
  }
  return workload_of(*block, devices, only);
}

namespace {

/// "8", or "in_proj=8,ff1=4".
Expected<std::map<std::string, std::int64_t>> parse_slice_counts(const std::string& text, const Workload& workload, const SourceLocation& where) {
  std::map<std::string, std::int64_t> counts;
  std::vector<std::string> names;
  for (const Stage& stage : workload.stages)
    if (stage.kind == Stage::Kind::product) names.push_back(stage.name);
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    const std::string name = equals == std::string::npos ? "" : piece.substr(0, equals);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      return Diagnostic{where, "the workload has no product " + quoted(name) + did_you_mean(name, names) +
                                                   fmt::format("; it has {}", fmt::join(names, ", "))};
    const auto count = parse_integer(equals == std::string::npos ? piece : piece.substr(equals + 1), 1, 1 << 20, where);
    if (!count) return count.error();
    if (!counts.emplace(name, *count).second)
      return Diagnostic{where, name.empty() ? "expected one number, or STAGE=NUMBER for each stage" : name + " is given twice"};
  }
  return counts;
}

}  // namespace

Expected<PlanChoices> read_plan_choices(const Fields& fields, const Machine& machine, const Workload& workload) {
  PlanChoices choices;
  if (fields.has("dataflow"))
    for (const std::string& name : split(fields.text("dataflow"))) {
      const auto dataflow = parse_dataflow(name, fields.where("dataflow"));
      if (!dataflow) return dataflow.error();
      choices.dataflows.push_back(*dataflow);
    }
  if (fields.has("slice_count")) {
    auto counts = parse_slice_counts(fields.text("slice_count"), workload, fields.where("slice_count"));
    if (!counts) return counts.error();
    choices.slice_counts = *std::move(counts);
  }
  if (fields.has("pass")) {
    const auto pass = read_pass(fields);
    if (!pass) return pass.error();
    choices.pass = *pass;
  }
  const auto part_options = read_part_options(fields, machine);
  if (!part_options) return part_options.error();
  choices.options = *part_options;
  return choices;
}

}  // namespace podsim
