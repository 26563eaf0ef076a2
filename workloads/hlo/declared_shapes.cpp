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

Expected<HloEntryLayout> read_entry_layout(HloCursor& cursor) {
  HloEntryLayout layout;
  const auto read = [&](HloShape& shape) -> Status {
    cursor.skip_blanks();
    std::size_t at = cursor.at();
    auto found = parse_hlo_shape(cursor.text(), at, cursor.origin());
    if (!found) return found.error();
    shape = *std::move(found);
    cursor.move_to(at);
    cursor.skip_blanks();
    return success();
  };
  if (!cursor.take("{(")) return cursor.expected("\"{(\" and the shapes of the entry's parameters");
  cursor.skip_blanks();
  if (!cursor.take(')')) {
    do {
      if (auto ok = read(layout.parameters.emplace_back()); !ok) return ok.error();
    } while (cursor.take(','));
    if (!cursor.take(')')) return cursor.expected("\",\" and the shape of the next parameter, or \")\"");
  }
  if (!cursor.take("->")) return cursor.expected("\"->\" and the shape of the entry's result");
  if (auto ok = read(layout.result); !ok) return ok.error();
  if (!cursor.take('}')) return cursor.expected("\"}\" behind the shape of the entry's result");
  return layout;
}

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
  HloCursor cursor{told->text, 0, {module.file, 1, 1}};
  const auto layout = read_entry_layout(cursor);
  if (!layout) return layout.error();
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
  /// nullptr: there is none.
  const auto element_of = [&](int number, const std::vector<std::int64_t>& index) -> const HloShape* {
    const HloShape* shape = &*entry.instructions[static_cast<std::size_t>(number)].shape;
    for (const std::int64_t at : index) {
      if (static_cast<std::size_t>(at) >= shape->elements.size()) return nullptr;
      shape = &shape->elements[static_cast<std::size_t>(at)];
    }
    return shape;
  };
  const auto parameter_at = [&](int parameter, const std::vector<std::int64_t>& index) -> const HloShape* {
    return static_cast<std::size_t>(parameter) < entry.parameters.size() ? element_of(entry.parameters[static_cast<std::size_t>(parameter)], index) : nullptr;
  };
  const auto problem = [&](const std::string& what) { return Diagnostic{{module.file, entry.line, entry.column}, what}; };
  const auto text = [](const std::vector<std::int64_t>& index) { return fmt::format("{{{}}}", fmt::join(index, ", ")); };
  std::set<std::pair<int, std::vector<std::int64_t>>> taken;
  for (const HloAlias& alias : module.aliases) {
    const HloShape* const output = element_of(entry.root, alias.output);
    const HloShape* const input = parameter_at(alias.parameter, alias.parameter_index);
    if (output == nullptr) return problem(fmt::format("input_output_alias: expected outputs of the entry, got {}", text(alias.output)));
    if (input == nullptr) return problem(fmt::format("input_output_alias: expected parameters of the entry, got ({}, {})", alias.parameter, text(alias.parameter_index)));
    if (!taken.emplace(alias.parameter, alias.parameter_index).second)
      return problem(fmt::format("input_output_alias: expected one output in each parameter, got two in ({}, {})", alias.parameter, text(alias.parameter_index)));
    // Layouts may be missing, and so may what tiles add: one of both has to agree.
    if (logical_bytes(*input) != logical_bytes(*output) && device_bytes(*input) != device_bytes(*output))
      return problem(fmt::format("input_output_alias: expected a parameter of the size of output {}, {}, got ({}, {}), {}", text(alias.output), cut_text(*output), alias.parameter, text(alias.parameter_index), cut_text(*input)));
  }
  for (const HloDonor& donor : module.donors)
    if (parameter_at(donor.parameter, donor.parameter_index) == nullptr)
      return problem(fmt::format("buffer_donor: expected parameters of the entry, got ({}, {})", donor.parameter, text(donor.parameter_index)));
  return success();
}

}  // namespace podsim
