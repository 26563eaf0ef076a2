#include "workloads/hlo/hlo_statement.hpp"

#include <algorithm>

namespace podsim {

namespace {

/// The text of a shape at a cursor that could be one, up to its end; empty if its brackets do not close. Does not move.
std::string_view shape_text(HloCursor& cursor) {
  const std::size_t begin = cursor.at();
  bool closed = false;
  if (cursor.peek() == '(') {
    closed = cursor.take_balanced();
  } else {
    cursor.take_name();
    closed = cursor.peek() == '[' && cursor.take_balanced() && (cursor.peek() != '{' || cursor.take_balanced());
  }
  const std::string_view text = closed ? cursor.since(begin) : std::string_view{};
  cursor.move_to(begin);
  return text;
}

}  // namespace

Expected<SharedValue<HloShape>> HloStatementReader::read_shape() {
  const std::string_view text = shape_text(cursor_);
  if (const auto known = shapes_.find(text); known != shapes_.end()) {
    cursor_.move_to(cursor_.at() + text.size());
    return known->second;
  }
  std::size_t at = cursor_.at();
  auto shape = parse_hlo_shape(cursor_.text(), at, cursor_.origin());
  if (!shape) return shape.error();
  cursor_.move_to(at);
  SharedValue<HloShape> shared{*std::move(shape)};
  if (!text.empty()) shapes_.emplace(text, shared);
  return shared;
}

Status HloStatementReader::read_front(HloStatement& statement) {
  statement.at = cursor_.at();
  if (cursor_.take("ROOT ")) {
    statement.is_root = true;
    cursor_.skip_spaces();
  }
  cursor_.take('%');
  statement.name = cursor_.take_name();
  if (statement.name.empty()) return cursor_.expected("the name of an instruction");
  cursor_.skip_spaces();
  if (!cursor_.take('=')) return cursor_.expected("\"=\" behind the name of an instruction");
  cursor_.skip_blanks();
  auto shape = read_shape();
  if (!shape) return shape.error();
  statement.shape = *std::move(shape);
  cursor_.skip_blanks();
  statement.word = cursor_.take_name();
  if (statement.word.empty()) return cursor_.expected("an opcode behind the shape");
  statement.operation = operation_named(statement.word);
  // call-start is the async-start of the computation that it applies.
  if (statement.operation.opcode == HloOpcode::call && statement.operation.phase != HloPhase::whole) statement.operation.opcode = HloOpcode::async;
  if (!cursor_.take('(')) return cursor_.expected("\"(\" behind the opcode");
  statement.operands_at = cursor_.at() - 1;
  if (statement.operation == HloOperation{HloOpcode::parameter, HloPhase::whole}) {
    cursor_.skip_blanks();
    const std::size_t at = cursor_.at();
    const auto number = cursor_.take_integer();
    if (!number || *number < 0) return cursor_.expected_at(at, "the number of a parameter");
    statement.number = *number;
  } else if (statement.operation == HloOperation{HloOpcode::constant, HloPhase::whole}) {
    statement.has_attributes = true;
    if (const auto ok = read_literal(cursor_, *statement.shape, statement.attributes.literal); !ok) return ok.error();
  } else {
    return read_operands(statement);
  }
  cursor_.skip_blanks();
  if (!cursor_.take(')')) return cursor_.expected("\")\"");
  return success();
}

Status HloStatementReader::read_operands(HloStatement& statement) {
  cursor_.skip_blanks();
  if (cursor_.take(')')) return success();
  do {
    cursor_.skip_blanks();
    HloReference& operand = statement.operands.emplace_back();
    operand.at = cursor_.at();
    if (cursor_.peek() != '%') {
      // Without % a word may be a name, or the element type of a shape.
      const bool shape_first = cursor_.peek() == '(' || (!cursor_.take_name().empty() && cursor_.peek() == '[');
      cursor_.move_to(operand.at);
      if (shape_first) {
        auto shape = read_shape();
        if (!shape) return shape.error();
        operand.shape = *std::move(shape);
        cursor_.skip_blanks();
      }
    }
    operand.at = cursor_.at();
    const bool named = cursor_.take('%');
    operand.name = cursor_.take_name();
    if (operand.name.empty() && (named || !operand.shape)) return cursor_.expected("an operand");
    cursor_.skip_blanks();
  } while (cursor_.take(','));
  if (!cursor_.take(')')) return cursor_.expected("\",\" and the next operand, or \")\"");
  return success();
}

Status HloStatementReader::read_call(HloStatement& statement, HloRole role) {
  cursor_.skip_blanks();
  HloCallReference call{role, {}, cursor_.at(), -1};
  if (cursor_.peek() == '{' || cursor_.peek() == '(') {
    if (!read_inline_) return cursor_.expected("the name of a computation");
    const auto number = read_inline_(cursor_, statement.name, role);
    if (!number) return number.error();
    call.computation = *number;
  } else {
    cursor_.take('%');
    call.name = cursor_.take_name();
    if (call.name.empty()) return cursor_.expected("the name of a computation");
  }
  statement.calls.push_back(call);
  return success();
}

Status HloStatementReader::read_calls(HloStatement& statement, HloRole role) {
  if (cursor_.peek() != '{') return read_call(statement, role);
  cursor_.take('{');
  cursor_.skip_blanks();
  if (cursor_.take('}')) return success();
  do {
    if (const auto ok = read_call(statement, role); !ok) return ok;
    cursor_.skip_blanks();
  } while (cursor_.take(','));
  if (!cursor_.take('}')) return cursor_.expected("\",\" and the next computation, or \"}\"");
  return success();
}

Status HloStatementReader::read_attribute(HloStatement& statement) {
  cursor_.skip_blanks();
  const std::string_view name = cursor_.take_name();
  if (name.empty()) return cursor_.expected("an attribute");
  cursor_.skip_blanks();
  if (!cursor_.take('=')) return cursor_.expected("\"=\" behind the name of an attribute");
  cursor_.skip_blanks();
  const auto call = call_attribute_named(name);
  if (!call) return read_attribute_value(cursor_, name, statement);
  const HloRole role = statement.operation.opcode == HloOpcode::async && call->role == HloRole::to_apply ? HloRole::calls : call->role;
  if (const auto ok = call->several ? read_calls(statement, role) : read_call(statement, role); !ok) return ok;
  if (name == "true_computation") std::rotate(statement.calls.begin(), statement.calls.end() - 1, statement.calls.end());  // branch 0
  return success();
}

Status HloStatementReader::read(HloStatement& statement) {
  if (const auto ok = read_front(statement); !ok) return ok;
  while (true) {
    const std::size_t end = cursor_.at();
    cursor_.skip_blanks();
    if (!cursor_.take(',')) {
      cursor_.move_to(end);
      return success();
    }
    if (const auto ok = read_attribute(statement); !ok) return ok;
  }
}

Status HloStatementReader::read_cut(HloStatement& statement) {
  if (const auto ok = read_front(statement); !ok) {
    // Behind the opcode everything may be missing. What was read of the operands stays.
    if (statement.word.empty() || statement.operands_at == 0) return ok;
    if (!statement.operands.empty()) statement.operands.pop_back();
    cursor_.move_to(statement.operands_at);
    if (!cursor_.take_balanced()) return success();
  }
  while (true) {
    cursor_.skip_blanks();
    if (!cursor_.take(',')) return success();
    const std::size_t begin = cursor_.at();
    if (read_attribute(statement)) continue;
    cursor_.move_to(begin);
    cursor_.skip_to(",");
  }
}

}  // namespace podsim
