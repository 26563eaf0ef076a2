#include "workloads/scenario/fields.hpp"

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

const FieldKind* scenario_field(std::string_view name) {
  const auto fields = scenario_fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const FieldKind& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::string_view name_of(Form form) {
  static constexpr std::array<std::string_view, 18> names{"flag", "count", "number", "amount", "word", "name", "text", "named_texts", "pairs",
                                                          "extents", "mesh", "gemm", "shapes", "sharding", "shardings", "file", "name_or_file", "named_files"};
  return names[static_cast<std::size_t>(form)];
}

std::vector<std::string> words_of(const FieldKind& field) { return field.form == Form::word ? split(field.placeholder, '|') : std::vector<std::string>{}; }

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t n = 0; n < names.size(); ++n) text += (n == 0 ? "" : n + 1 == names.size() ? " or " : ", ") + names[n];
  return text;
}

Diagnostic wrong_word(std::string_view name, const std::string& text, const SourceLocation& where) {
  const FieldKind* field = scenario_field(name);
  PODSIM_ASSERT(field != nullptr && field->form == Form::word);
  return {where, "expected " + alternatives(words_of(*field)) + ", found " + quoted(text)};
}

Status check_field(const FieldKind& field, const std::string& text, std::string_view problem) {
  Fields fields;
  fields.set(field.name, text, of_field(std::string{field.name}));
  if (field.check != nullptr) return field.check(text, problem);
  if (field.form == Form::count)
    if (auto number = fields.count(field.name); !number) return number.error();
  if (field.form == Form::word)
    if (auto word = fields.word(field.name); !word) return word.error();
  return success();
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
  if (!field->repeated) {
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

Expected<std::int64_t> Fields::count(std::string_view name) const {
  const FieldKind* field = scenario_field(name);
  PODSIM_ASSERT(field != nullptr && (field->form == Form::count || field->form == Form::named_texts));
  return integer(name, field->low, field->high);
}

Expected<std::string> Fields::word(std::string_view name) const {
  std::string text = Fields::text(name);
  const std::vector<std::string> words = words_of(*scenario_field(name));
  if (std::find(words.begin(), words.end(), text) == words.end()) return wrong_word(name, text, where(name));
  return text;
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
