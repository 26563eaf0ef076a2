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

}  // namespace

Expected<Workload> read_workload(const Fields& fields, int devices) {
  auto block = find_transformer_block(fields.text("workload"));
  if (!block)
    return block.error().where.file.empty() ? blamed_on(fields.where("workload"), block.error()) : fields.of_named_file("workload", block.error());
  const auto set = [&](const char* name, std::int64_t& field) -> Status {
    if (!fields.has(name)) return success();
    const auto value = fields.integer(name, 1, largest);
    if (!value) return value.error();
    field = *value;
    return success();
  };
  const std::int64_t width = block->heads * block->head_dim;
  const bool own_width = block->hidden != width, grouped = block->kv_heads != block->heads;
  for (const auto& [name, field] : {std::pair{"batch", &block->batch},
                                    {"seq", &block->sequence},
                                    {"heads", &block->heads},
                                    {"head_dim", &block->head_dim},
                                    {"layers", &block->layers}})
    if (auto ok = set(name, *field); !ok) return ok.error();
  if (!grouped) block->kv_heads = block->heads;
  if (auto ok = set("kv_heads", block->kv_heads); !ok) return ok.error();
  if (block->heads % block->kv_heads != 0)
    return Diagnostic{fields.where("kv_heads"), fmt::format("must divide the {} heads, found {}", block->heads, block->kv_heads)};
  if (!own_width) block->hidden = block->heads * block->head_dim;
  if (block->heads * block->head_dim != width && !fields.has("ff")) {
    if (block->ff * block->heads * block->head_dim % width != 0)
      return Diagnostic{{},
                        fmt::format("`ff` is missing: {} of {} features is no whole number of {}", block->ff, width, block->heads * block->head_dim)};
    block->ff = block->ff * block->heads * block->head_dim / width;
  }
  if (auto ok = set("ff", block->ff); !ok) return ok.error();
  Only only = Only::everything;
  if (fields.has("only")) {
    const auto named = only_named(fields.text("only"));
    if (!named) return Diagnostic{fields.where("only"), "expected gemm or other, found " + quoted(fields.text("only"))};
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
