#include "workloads/scenario/fields.hpp"

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

std::span<const FieldKind> scenario_fields() {
  using enum FieldKind::Part;
  using enum FieldKind::Form;
  static constexpr std::array<FieldKind, 88> fields{{
      {"machine", system, text},
      {"set", system, texts},
      {"precision", system, text},
      {"slice", system, text},
      {"strict_slice", system, flag},
      {"wrap", system, text, "auto"},
      {"topology", system, text},
      {"pods", system, integer, "1"},
      {"devices", system, text},
      {"mesh", system, text},
      {"mesh_order", system, text, "row-major"},
      {"allow_split_axes", system, flag},
      {"contiguous_submeshes", system, flag},
      {"fail", system, texts},
      {"degrade", system, texts},
      {"straggler", system, texts},
      {"seed", system, integer, "0"},
      {"gemm", problem, text},
      {"collective", problem, text},
      {"schedule", problem, text},
      {"msccl", problem, text},
      {"chakra", problem, text},
      {"chakra_groups", problem, text},
      {"chakra_cost", problem, text, "recorded"},
      {"hlo", problem, text},
      {"equals", problem, texts},
      {"hlo_cost", problem, text, "model"},
      {"clock", problem, text},
      {"hlo_schedule", problem, text, "overlap"},
      {"rewrite", problem, text},
      {"trip_count", problem, texts},
      {"branch", problem, texts},
      {"custom_call", problem, texts},
      {"ragged", problem, texts},
      {"workload", problem, text},
      {"plan", problem, text},
      {"program", problem, text},
      {"shape", problem, texts},
      {"shard", problem, texts},
      {"out", problem, texts},
      {"choose", problem, text, "bytes"},
      {"chain", problem, flag},
      {"minimise", problem, text, "bytes"},
      {"replicate", problem, texts},
      {"look_ahead", problem, integer, "0"},
      {"order", problem, text, "natural"},
      {"overlap", problem, integer, "1"},
      {"training", problem, texts},
      {"maxtext", problem, text},
      {"batch_per_device", problem, text},
      {"microbatches", problem, integer, "1"},
      {"pipeline", problem, text},
      {"virtual_stages", problem, integer, "1"},
      {"fuse_steady_state", problem, flag},
      {"remat", problem, text, "none"},
      {"scan", problem, text, "off"},
      {"optimizer", problem, text, "adamw"},
      {"steps", problem, integer, "1"},
      {"only", problem, text},
      {"batch", problem, integer},
      {"seq", problem, integer},
      {"heads", problem, integer},
      {"kv_heads", problem, integer},
      {"head_dim", problem, integer},
      {"ff", problem, integer},
      {"layers", problem, integer},
      {"axis", problem, text},
      {"bytes", problem, text},
      {"dtype", problem, text},
      {"root", problem, integer},
      {"chunks", problem, integer},
      {"shift", problem, integer},
      {"pairs", problem, text},
      {"pass", problem, text, "forward"},
      {"pad", problem, flag},
      {"algorithm", problem, text},
      {"dataflow", problem, text},
      {"slice_count", problem, text},
      {"block", problem, integer, "8"},
      {"prefetch", problem, integer, "1"},
      {"slice_copies", problem, text},
      {"wang_operand", problem, text},
      {"collectives", problem, text},
      {"given", problem, text},
      {"engine", run, text, "des"},
      {"fold", run, text, "auto"},
      {"calls", run, text, "auto"},
      {"force", run, flag},
  }};
  return fields;
}

const FieldKind* scenario_field(std::string_view name) {
  const auto fields = scenario_fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const FieldKind& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

void Fields::set(std::string_view name, std::string text, SourceLocation where) {
  erase(name);
  add(name, std::move(text), std::move(where));
}

void Fields::add(std::string_view name, std::string text, SourceLocation where) {
  PODSIM_ASSERT(scenario_field(name) != nullptr);
  given_[std::string{name}].push_back({std::move(text), std::move(where)});
}

void Fields::add_value(std::string_view name, const std::string& text, const SourceLocation& where) {
  const FieldKind* field = scenario_field(name);
  PODSIM_ASSERT(field != nullptr);
  if (field->form != FieldKind::Form::texts) {
    if (!text.empty()) add(name, text, where);
    return;
  }
  for (const std::string& piece : split(text, ';'))
    if (const std::string value{trimmed(piece)}; !value.empty()) add(name, value, where);
}

void Fields::erase(std::string_view name) {
  if (const auto found = given_.find(name); found != given_.end()) given_.erase(found);
}

bool Fields::has(std::string_view name) const { return given_.contains(name); }

std::string Fields::text(std::string_view name) const {
  const FieldKind* field = scenario_field(name);
  PODSIM_ASSERT(field != nullptr);
  const auto found = given_.find(name);
  return found == given_.end() ? std::string{field->otherwise} : found->second.back().text;
}

std::vector<const FieldKind*> Fields::given() const {
  std::vector<const FieldKind*> fields;
  for (const FieldKind& field : scenario_fields())
    if (has(field.name)) fields.push_back(&field);
  return fields;
}

std::vector<FieldText> Fields::texts(std::string_view name) const {
  PODSIM_ASSERT(scenario_field(name) != nullptr);
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<FieldText>{} : found->second;
}

SourceLocation Fields::where(std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? of_field(std::string{name}) : found->second.back().where;
}

Expected<std::int64_t> Fields::integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  return parse_integer(text(name), low, high, where(name));
}

void Fields::complete(const Fields& rest) {
  // The values set on a machine belong to it: they come before those that are set here, or count for nothing on another machine.
  if (!has("machine") || text("machine") == rest.text("machine")) {
    std::vector<FieldText> sets = rest.texts("set");
    for (FieldText& own : texts("set")) sets.push_back(std::move(own));
    if (!sets.empty()) given_["set"] = std::move(sets);
  }
  for (const auto& [name, texts] : rest.given_)
    if (name != "set") given_.try_emplace(name, texts);
}

Diagnostic Fields::of_named_file(std::string_view name, Diagnostic error) const {
  const SourceLocation place = where(name);
  if (error.where.line > 0 || place.line == 0) return error;
  if (!error.where.file.empty()) error.message = error.where.file + ": " + error.message;
  error.where = place;
  return error;
}

Diagnostic Fields::placed(Diagnostic diagnostic) const {
  if (diagnostic.where.is_field)
    if (const auto found = given_.find(diagnostic.where.file); found != given_.end()) diagnostic.where = found->second.back().where;
  return diagnostic;
}

}  // namespace podsim
