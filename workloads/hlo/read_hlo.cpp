#include "workloads/hlo/read_hlo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sim/config/byte_source.hpp"
#include "workloads/hlo/call_shapes.hpp"
#include "workloads/hlo/called_from.hpp"
#include "workloads/hlo/communication.hpp"
#include "workloads/hlo/declared_shapes.hpp"
#include "workloads/hlo/hlo_header.hpp"
#include "workloads/hlo/hlo_proto_text.hpp"
#include "workloads/hlo/hlo_statement.hpp"
#include "workloads/hlo/instruction_shapes.hpp"
#include "workloads/hlo/joined_transfers.hpp"
#include "workloads/hlo/link_hlo.hpp"
#include "workloads/hlo/source_lines.hpp"

namespace podsim {

namespace {

constexpr int deepest_inline = 16;

class HloModuleReader {
 public:
  HloModuleReader(std::string_view text, const std::string& file, const ReadHloOptions& options)
      : cursor_{text, 0, {file, 1, 1}},
        statements_{cursor_, [this](HloCursor&, std::string_view caller, HloRole role) { return read_inline(caller, role); }},
        warnings_{module_, cursor_},
        tolerant_{options.tolerant} {
    module_.file = file;
  }

  Expected<HloModule> read() {
    if (const auto ok = read_text(); !ok) return ok.error();
    if (const auto ok = link_hlo(module_, links_, entries_, cursor_, warnings_, tolerant_); !ok) return ok.error();
    if (!tolerant_)
      for (const auto check : {check_call_shapes, check_called_computations, check_entry_layout, check_aliases, check_communication, check_memory_spaces})
        if (const auto ok = check(module_); !ok) return ok.error();
    if (module_.warnings.empty()) {
      join_async_collectives(module_);
      join_sends(module_);
    }
    return std::move(module_);
  }

 private:
  using Names = std::unordered_map<std::string_view, int>;

  Status read_text() {
    cursor_.skip_blanks();
    if (cursor_.take("HloModule")) {
      if (const auto ok = read_hlo_header(cursor_, module_); !ok) return ok;
    } else if (tolerant_) {
      warnings_.add("no header HloModule", cursor_.at());
    } else {
      return cursor_.expected("\"HloModule\" and the name of a module");
    }
    while (true) {
      cursor_.skip_blanks();
      if (cursor_.ended()) return success();
      if (source_lines_.take_table(cursor_)) continue;
      if (tolerant_ && !at_computation()) {
        warnings_.add("lines outside of computations", cursor_.at());
        skip_line();
        continue;
      }
      if (const auto ok = read_top_level(); !ok) return ok;
    }
  }

  bool is_last_line(std::size_t at) const {
    const std::size_t end = cursor_.text().find('\n', at);
    return end == std::string_view::npos || cursor_.text().find_first_not_of(" \t\r\n", end) == std::string_view::npos;
  }

  void skip_line() { cursor_.move_to(std::min(cursor_.text().find('\n', cursor_.at()), cursor_.text().size())); }

  /// Whether a computation begins here, not an instruction of one whose beginning is cut off. Does not move.
  bool at_computation() {
    const std::size_t begin = cursor_.at();
    bool found = cursor_.take("ENTRY");
    if (!found) {
      cursor_.take('%');
      const bool named = !cursor_.take_name().empty();
      cursor_.skip_spaces();
      found = named && (cursor_.peek() == '(' || cursor_.peek() == '{');
    }
    cursor_.move_to(begin);
    return found;
  }

  Status read_top_level() {
    const std::size_t begin = cursor_.at();
    std::string_view name;
    bool is_entry = cursor_.take("ENTRY");
    if (is_entry && cursor_.peek() != ' ' && cursor_.peek() != '{' && cursor_.peek() != '%') {
      cursor_.move_to(begin);
      is_entry = false;  // a name that begins so
    }
    cursor_.skip_blanks();
    cursor_.take('%');
    name = cursor_.take_name();
    if (name.empty() && !is_entry) return cursor_.expected("a computation: [ENTRY] NAME (PARAMETERS) -> SHAPE {");
    const auto number = read_computation(std::string{name.empty() ? "entry" : name}, begin);
    if (!number) return number.error();
    links_.define(module_.computations[static_cast<std::size_t>(*number)].name, *number);
    if (is_entry) entries_.push_back({*number, begin});
    // }, execution_thread="sparsecore"
    cursor_.skip_spaces();
    while (cursor_.take(',')) {
      cursor_.skip_blanks();
      const std::string_view attribute = cursor_.take_name();
      if (attribute.empty() || !cursor_.take('=')) return cursor_.expected("an attribute of the computation");
      const std::size_t value = cursor_.at();
      if (const auto quoted = cursor_.take_quoted(); quoted && attribute == "execution_thread")
        module_.computations[static_cast<std::size_t>(*number)].execution_thread = unescaped(*quoted);
      else
        cursor_.skip_to(",\n");
      if (cursor_.at() == value) return cursor_.expected("the value of an attribute");
      cursor_.skip_spaces();
    }
    return success();
  }

  Expected<int> read_inline(std::string_view caller, HloRole role) {
    if (++depth_ > deepest_inline) return cursor_.expected("at most 16 computations written in each other");
    const std::string_view suffix = role == HloRole::condition ? "condition"
                                    : role == HloRole::body    ? "body"
                                    : role == HloRole::branch  ? "branch"
                                                               : "computation";
    auto number = read_computation(fmt::format("{}.{}", caller, suffix), cursor_.at());
    --depth_;
    return number;
  }

  /// From the list of parameters, or "{" where there is none, to "}". The number of the computation.
  Expected<int> read_computation(std::string name, std::size_t begin) {
    cursor_.skip_blanks();
    std::optional<HloSignature> signature;
    if (cursor_.peek() == '(') {
      auto found = read_signature(cursor_);
      if (!found) return found.error();
      signature = *std::move(found);
    }
    if (!cursor_.take('{')) return cursor_.expected("\"{\" and instructions");
    HloComputation computation;
    computation.name = std::move(name);
    const SourceLocation place = cursor_.where(begin);
    computation.line = place.line;
    computation.column = place.column;
    std::vector<HloLinks::Call> calls;
    if (const auto ok = read_instructions(computation, calls, begin); !ok) return ok.error();
    if (signature && !tolerant_)
      if (const auto ok = check_signature(*signature, computation, cursor_); !ok) return ok.error();
    const int number = static_cast<int>(module_.computations.size());
    module_.computations.push_back(std::move(computation));
    links_.call(number, calls);
    return number;
  }

  Status read_instructions(HloComputation& computation, std::vector<HloLinks::Call>& calls, std::size_t begin) {
    Names names;
    int root = HloInstruction::missing;
    while (true) {
      cursor_.skip_blanks();
      if (cursor_.take('}')) break;
      if (cursor_.ended()) {
        if (!tolerant_) return cursor_.expected("an instruction, or \"}\" behind the last one");
        warnings_.add("computations that are cut off", begin);
        break;
      }
      HloStatement statement;
      const std::size_t line = cursor_.at();
      if (const auto ok = statements_.read(statement); !ok) {
        // Only the last line of a cut file may be no instruction.
        if (!tolerant_ || depth_ > 0 || !is_last_line(line)) return ok;
        warnings_.add("instructions that are cut off", line);
        cursor_.move_to(cursor_.text().size());
        continue;
      }
      const int number = static_cast<int>(computation.instructions.size());
      if (const auto ok = add(computation, names, statement, calls); !ok) return ok;
      if (!statement.is_root) continue;
      if (root != HloInstruction::missing) {
        if (!tolerant_) return Diagnostic{cursor_.where(statement.at), "expected one ROOT in a computation, got a second one"};
        warnings_.add("computations with several ROOT", statement.at);
      }
      root = number;
    }
    if (computation.instructions.empty()) {
      if (!tolerant_)
        return Diagnostic{cursor_.where(begin), fmt::format("expected instructions in computation {}, got none", quoted(computation.name))};
      warnings_.add("computations without instructions", begin);
    } else if (root == HloInstruction::missing) {
      root = static_cast<int>(computation.instructions.size()) - 1;
    }
    computation.root = root;
    return number_parameters(computation, begin);
  }

  /// Its operands are looked up: they stand before it.
  Status add(HloComputation& computation, Names& names, HloStatement& statement, std::vector<HloLinks::Call>& calls) {
    const int number = static_cast<int>(computation.instructions.size());
    HloInstruction& instruction = computation.instructions.emplace_back();
    instruction.name = std::string{statement.name};
    instruction.shape = std::move(statement.shape);
    instruction.opcode = statement.operation.opcode;
    instruction.phase = statement.operation.phase;
    instruction.number = statement.number;
    instruction.op_name = std::move(statement.op_name);
    instruction.source = statement.source_file.empty() ? source_lines_.of_frame(statement.stack_frame) : fmt::format("{}:{}", statement.source_file, statement.source_line);
    const SourceLocation place = cursor_.where(statement.at);
    instruction.line = place.line;
    instruction.column = place.column;
    instruction.operands.reserve(statement.operands.size());
    for (const HloReference& operand : statement.operands) {
      const auto found = names.find(operand.name);
      if (found != names.end() && !operand.name.empty()) {
        instruction.operands.push_back(found->second);
        const HloShape& defined = *computation.instructions[static_cast<std::size_t>(found->second)].shape;
        if (operand.shape && !same_dims(**operand.shape, defined)) {
          if (!tolerant_)
            return Diagnostic{cursor_.where(operand.at), fmt::format("expected {} of shape {}, got {}", operand.name,
                                                                     cut_text(defined), cut_text(**operand.shape))};
          warnings_.add("operands of another shape than their definition", operand.at);
        }
        continue;
      }
      if (!tolerant_) return cursor_.expected_at(operand.at, "the name of an instruction before this one");
      warnings_.add("operands of unknown name", operand.at);
      instruction.operands.push_back(HloInstruction::missing);
    }
    for (const HloReference& predecessor : statement.control_predecessors) {
      const auto found = names.find(predecessor.name);
      if (found != names.end()) {
        statement.attributes.control_predecessors.push_back(found->second);
        statement.has_attributes = true;
      } else if (!tolerant_) {
        return cursor_.expected_at(predecessor.at, "the name of an instruction before this one");
      } else {
        warnings_.add("control-predecessors of unknown name", predecessor.at);
      }
    }
    for (const HloCallReference& call : statement.calls) {
      instruction.calls.push_back({call.role, call.computation});
      if (call.computation < 0) calls.push_back({number, static_cast<int>(instruction.calls.size()) - 1, call.name, call.at});
    }
    if (instruction.opcode == HloOpcode::unknown) {
      statement.attributes.unknown_opcode = std::string{statement.word};
      statement.has_attributes = true;
      warnings_.add(fmt::format("instructions of unknown opcode {}", quoted(statement.word)), statement.at);
    }
    if (statement.bad_backend_config) warnings_.add("backend_config that is no JSON", statement.at);
    if (statement.has_attributes) instruction.attributes = std::move(statement.attributes);
    if (const auto ok = check(computation, instruction, statement); !ok) return ok;
    if (names.emplace(statement.name, number).second) return success();
    if (!tolerant_) return cursor_.expected_at(statement.at, fmt::format("a name that is not yet taken in computation {}", quoted(computation.name)));
    warnings_.add("names that are defined twice", statement.at);
    return success();
  }

  /// What everything that follows relies on: shapes follow from those of operands, elements of tuples are there, and a reference has operands to refer to.
  Status check(const HloComputation& computation, const HloInstruction& instruction, const HloStatement& statement) {
    std::vector<const HloShape*> operands;
    for (const int operand : instruction.operands)
      operands.push_back(operand == HloInstruction::missing ? nullptr : &*computation.instructions[static_cast<std::size_t>(operand)].shape);
    const auto problem = shape_problem(instruction, operands);
    if (!problem) return success();
    if (!tolerant_) return Diagnostic{cursor_.where(statement.at), *problem};
    warnings_.add("instructions that do not fit their operands", statement.at);
    return success();
  }

  Status number_parameters(HloComputation& computation, std::size_t begin) {
    std::vector<std::pair<std::int64_t, int>> numbered;
    for (std::size_t i = 0; i < computation.instructions.size(); ++i)
      if (computation.instructions[i].opcode == HloOpcode::parameter) numbered.emplace_back(computation.instructions[i].number, static_cast<int>(i));
    std::sort(numbered.begin(), numbered.end());
    for (const auto& [number, instruction] : numbered) {
      if (number == static_cast<std::int64_t>(computation.parameters.size())) {
        computation.parameters.push_back(instruction);
        continue;
      }
      if (!tolerant_)
        return Diagnostic{cursor_.where(begin), fmt::format("expected the parameters 0 to {} of computation {}, each once, got {}",
                                                            numbered.size() - 1, quoted(computation.name), number)};
      warnings_.add("computations that lack parameters", begin);
      // Those between are missing; a number far beyond them is no parameter that a caller could bind.
      if (number < static_cast<std::int64_t>(computation.parameters.size()) ||
          number > static_cast<std::int64_t>(computation.instructions.size()) + 1024)
        continue;
      computation.parameters.resize(static_cast<std::size_t>(number), HloInstruction::missing);
      computation.parameters.push_back(instruction);
    }
    return success();
  }

  HloCursor cursor_;
  HloModule module_;
  HloStatementReader statements_;
  HloWarnings warnings_;
  HloLinks links_;
  std::vector<HloLinks::Entry> entries_;
  HloSourceLines source_lines_;
  bool tolerant_;
  int depth_ = 0;
};

}  // namespace

Expected<HloModule> parse_hlo(std::string_view text, const std::string& file, const ReadHloOptions& options) {
  if (text.size() > static_cast<std::size_t>(most_hlo_bytes.count()))
    return Diagnostic{{file, 0, 0}, fmt::format("expected at most {} bytes of HLO, got {}", most_hlo_bytes.count(), text.size())};
  return HloModuleReader{text, file, options}.read();
}

namespace {

/// The module in binary form. Its instructions have no lines: their names tell the place.
Expected<HloModule> read_hlo_proto(std::string_view bytes, const std::string& file, const ReadHloOptions& options) {
  const auto written = text_of_hlo_proto(bytes, file, static_cast<std::size_t>(most_hlo_bytes.count()));
  if (!written) return written.error();
  const auto placed = [&](SourceLocation where) {
    const auto line = static_cast<std::size_t>(where.line);
    const bool known = line > 0 && line <= written->lines.size() && !written->lines[line - 1].empty();
    return known ? SourceLocation{file + ": " + written->lines[line - 1]} : SourceLocation{file, 1, 1};
  };
  auto module = parse_hlo(written->text, file, options);
  if (!module) return Diagnostic{placed(module.error().where), module.error().message, module.error().cause};
  module->has_lines = false;
  for (HloWarning& warning : module->warnings) warning.first = placed(warning.first);
  for (HloComputation& computation : module->computations) {
    computation.line = computation.column = 0;
    for (HloInstruction& instruction : computation.instructions) instruction.line = instruction.column = 0;
  }
  return module;
}

}  // namespace

Expected<HloModule> read_hlo(std::string_view bytes, const std::string& file, const ReadHloOptions& options) {
  return is_hlo_proto(bytes) ? read_hlo_proto(bytes, file, options) : parse_hlo(bytes, file, options);
}

Expected<HloModule> read_hlo_file(const std::string& path, const ReadHloOptions& options) {
  const bool standard_input = path == "-";
  const std::string file = standard_input ? "standard input" : path;
  const auto source = source_of_file(standard_input ? "/dev/stdin" : path);
  if (!source) return source.error();
  const auto bytes = read_all(**source, static_cast<std::size_t>(most_hlo_bytes.count()), file);
  if (!bytes) return bytes.error();
  return read_hlo(*bytes, file, options);
}

Expected<HloLine> parse_hlo_line(std::string_view text, const SourceLocation& where) {
  HloCursor cursor{text, 0, where};
  HloStatementReader reader{cursor};
  HloStatement statement;
  cursor.skip_spaces();
  if (const auto ok = reader.read_cut(statement); !ok) return ok.error();
  HloLine line;
  line.is_root = statement.is_root;
  line.instruction.name = std::string{statement.name};
  line.instruction.shape = std::move(statement.shape);
  line.instruction.opcode = statement.operation.opcode;
  line.instruction.phase = statement.operation.phase;
  line.instruction.number = statement.number;
  line.instruction.op_name = std::move(statement.op_name);
  line.instruction.line = where.line;
  line.instruction.column = where.column;
  if (line.instruction.opcode == HloOpcode::unknown) statement.attributes.unknown_opcode = std::string{statement.word};
  line.instruction.attributes = std::move(statement.attributes);
  for (const HloReference& operand : statement.operands) {
    line.operand_names.emplace_back(operand.name);
    line.operand_shapes.push_back(operand.shape ? std::optional{**operand.shape} : std::nullopt);
  }
  for (const HloCallReference& call : statement.calls) line.called.emplace_back(call.role, std::string{call.name});
  return line;
}

}  // namespace podsim
