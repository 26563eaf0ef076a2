#include "workloads/hlo/declared_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace podsim {

namespace {

/// `{(f32[4]{0}, /*index=1*/(bf16[8]{0}))->f32[4]{0}}`: the shapes in the first brackets, and the one behind the arrow. nullopt: it is written otherwise.
struct EntryLayout {
  std::vector<HloShape> parameters;
  HloShape result;
};

std::optional<EntryLayout> layout_of(std::string_view text) {
  EntryLayout layout;
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == ',' || text.substr(at, 2) == "/*")) at = text[at] == '/' ? std::min(text.find("*/", at), text.size() - 2) + 2 : at + 1;
  };
  const auto read = [&](HloShape& shape) {
    skip();
    auto found = parse_hlo_shape(text, at, SourceLocation{});
    if (found) shape = *std::move(found);
    return static_cast<bool>(found);
  };
  if (!text.starts_with("{(")) return {};
  at = 2;
  for (skip(); at < text.size() && text[at] != ')'; skip())
    if (!read(layout.parameters.emplace_back())) return {};
  if (text.substr(std::min(at, text.size()), 3) != ")->") return {};
  at += 3;
  if (!read(layout.result)) return {};
  return layout;
}

}  // namespace

Expected<HloSignature> read_signature(HloCursor& cursor) {
  HloSignature signature;
  const auto read = [&](HloSignature::Declared& declared) -> Status {
    declared.at = cursor.at();
    std::size_t at = cursor.at();
    auto shape = parse_hlo_shape(cursor.text(), at, cursor.origin());
    if (!shape) return shape.error();
    declared.shape = *std::move(shape);
    cursor.move_to(at);
    cursor.skip_blanks();
    return success();
  };
  cursor.take('(');
  cursor.skip_blanks();
  if (!cursor.take(')')) {
    do {
      cursor.skip_blanks();
      cursor.take('%');
      if (cursor.take_name().empty()) return cursor.expected("a parameter, NAME: SHAPE");
      cursor.skip_blanks();
      if (!cursor.take(':')) return cursor.expected("\":\" and the shape of a parameter");
      cursor.skip_blanks();
      if (auto ok = read(signature.parameters.emplace_back()); !ok) return ok.error();
    } while (cursor.take(','));
    if (!cursor.take(')')) return cursor.expected("\",\" and the next parameter, or \")\"");
  }
  cursor.skip_blanks();
  if (!cursor.take("->")) return cursor.expected("\"->\" and the shape of the result");
  cursor.skip_blanks();
  if (auto ok = read(signature.result); !ok) return ok.error();
  return signature;
}

Status check_signature(const HloSignature& signature, const HloComputation& computation, const HloCursor& cursor) {
  const auto agrees = [&](const HloSignature::Declared& declared, int number, const std::string& what) -> Status {
    const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(number)];
    if (same_dims(declared.shape, *instruction.shape)) return success();
    return Diagnostic{cursor.where(declared.at), fmt::format("expected {}, the shape of {} {}, got {}", cut_text(*instruction.shape), what, instruction.name, cut_text(declared.shape))};
  };
  if (signature.parameters.size() != computation.parameters.size())
    return Diagnostic{cursor.where(signature.parameters.empty() ? signature.result.at : signature.parameters.front().at),
                      fmt::format("expected the {} parameters of computation {}, got {}", computation.parameters.size(), quoted(computation.name), signature.parameters.size())};
  for (std::size_t p = 0; p < signature.parameters.size(); ++p)
    if (auto ok = agrees(signature.parameters[p], computation.parameters[p], fmt::format("parameter {},", p)); !ok) return ok;
  return agrees(signature.result, computation.root, "the root,");
}

Status check_entry_layout(const HloModule& module) {
  const auto told = std::ranges::find(module.others, std::string_view{"entry_computation_layout"}, &HloAttribute::name);
  if (told == module.others.end() || module.entry == HloInstruction::missing) return success();
  const auto layout = layout_of(told->text);
  if (!layout) return success();
  const HloComputation& entry = module.entry_computation();
  if (layout->parameters.size() != entry.parameters.size())
    return Diagnostic{{module.file, entry.line, entry.column}, fmt::format("expected the {} parameters of entry_computation_layout, got {}", layout->parameters.size(), entry.parameters.size())};
  const auto agrees = [&](int number, const HloShape& wanted) -> Status {
    const HloInstruction& instruction = entry.instructions[static_cast<std::size_t>(number)];
    if (same_dims(wanted, *instruction.shape)) return success();
    return Diagnostic{module.where(instruction), fmt::format("{}: expected {}, which entry_computation_layout says, got {}", instruction.name, cut_text(wanted), cut_text(*instruction.shape))};
  };
  for (std::size_t p = 0; p < entry.parameters.size(); ++p)
    if (auto ok = agrees(entry.parameters[p], layout->parameters[p]); !ok) return ok;
  return agrees(entry.root, layout->result);
}

Status check_aliases(const HloModule& module) {
  if (module.entry == HloInstruction::missing) return success();
  const HloComputation& entry = module.entry_computation();
  const auto has = [&](int number, const std::vector<std::int64_t>& index) {
    const HloShape* shape = &*entry.instructions[static_cast<std::size_t>(number)].shape;
    for (const std::int64_t at : index) {
      if (static_cast<std::size_t>(at) >= shape->elements.size()) return false;
      shape = &shape->elements[static_cast<std::size_t>(at)];
    }
    return true;
  };
  const auto is_parameter = [&](int parameter, const std::vector<std::int64_t>& index) {
    return static_cast<std::size_t>(parameter) < entry.parameters.size() && has(entry.parameters[static_cast<std::size_t>(parameter)], index);
  };
  const auto problem = [&](const std::string& what) { return Diagnostic{{module.file, entry.line, entry.column}, what}; };
  const auto text = [](const std::vector<std::int64_t>& index) { return fmt::format("{{{}}}", fmt::join(index, ", ")); };
  std::set<std::pair<int, std::vector<std::int64_t>>> taken;
  for (const HloAlias& alias : module.aliases) {
    if (!has(entry.root, alias.output)) return problem(fmt::format("input_output_alias: expected outputs of the entry, got {}", text(alias.output)));
    if (!is_parameter(alias.parameter, alias.parameter_index))
      return problem(fmt::format("input_output_alias: expected parameters of the entry, got ({}, {})", alias.parameter, text(alias.parameter_index)));
    if (!taken.emplace(alias.parameter, alias.parameter_index).second)
      return problem(fmt::format("input_output_alias: expected one output in each parameter, got two in ({}, {})", alias.parameter, text(alias.parameter_index)));
  }
  for (const HloDonor& donor : module.donors)
    if (!is_parameter(donor.parameter, donor.parameter_index))
      return problem(fmt::format("buffer_donor: expected parameters of the entry, got ({}, {})", donor.parameter, text(donor.parameter_index)));
  return success();
}

}  // namespace podsim
