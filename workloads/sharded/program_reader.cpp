// Reads program texts: a recursive descent over the grammar
//
//   program    = statement { (";" | newline) statement }
//   statement  = NAME "=" sum | NAME "," NAME "," NAME "=" "lu" "(" sum ")"
//   sum        = term { ("+" | "-") term }
//   term       = factor { ("@" | "*" | "/") factor }
//   factor     = "-" factor | primary { ".T" }
//   primary    = NUMBER | NAME | FUNCTION "(" sum { "," argument } ")" | "(" sum ")"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "workloads/sharded/program.hpp"
#include "workloads/sharded/typing.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_operations = 10'000, most_axes = 4, most_rank = 6, most_text = std::size_t{1} << 20;
constexpr int most_nesting = 200;
constexpr std::int64_t most_extent = std::int64_t{1} << 40;

struct Function {
  std::string_view name;
  ArrayOp op;
  std::string_view arguments;  // behind the array
};
constexpr std::array<Function, 14> functions{{
    {"relu", ArrayOp::relu, ""},
    {"gelu", ArrayOp::gelu, ""},
    {"sum", ArrayOp::sum, "dim"},
    {"reshard", ArrayOp::reshard, "SPEC"},
    {"process_allgather", ArrayOp::process_allgather, ""},
    {"fft", ArrayOp::fft, ""},
    {"ifft", ArrayOp::ifft, ""},
    {"lu", ArrayOp::lu_lower, ""},
    {"solve", ArrayOp::solve, "b"},
    {"psum", ArrayOp::psum, "axes"},
    {"all_gather", ArrayOp::all_gather, "dim, axes"},
    {"psum_scatter", ArrayOp::psum_scatter, "dim, axes"},
    {"ppermute", ArrayOp::ppermute, "axis, shift"},
    {"all_to_all", ArrayOp::all_to_all, "split, concat, axis"},
}};
const Function* function_named(std::string_view name) {
  const auto found = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool goes_on_name(char c) { return begins_name(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// The place of a character of a text that begins at `where`. A text on the command line begins at line 1.
SourceLocation place_in(const ProgramText::Entry& entry, std::size_t offset) {
  SourceLocation place = entry.where;
  if (place.line == 0) place.line = 1;
  if (place.column == 0) place.column = 1;
  for (std::size_t i = 0; i < std::min(offset, entry.text.size()); ++i) {
    if (entry.text[i] == '\n') ++place.line, place.column = 1;
    else ++place.column;
  }
  return place;
}

/// An array that the program may read: its shape and sharding.
struct Input {
  Extents extents;
  DType dtype;
  SourceLocation where;
  std::string shard;  // empty: replicated
  SourceLocation shard_where;
};
using Inputs = std::map<std::string, Input>;

/// "A=rest": the name, and the offset of the rest.
Expected<std::pair<std::string, std::size_t>> split_name(const ProgramText::Entry& entry, std::string_view form) {
  const std::size_t equals = entry.text.find('=');
  const std::string name{trimmed(std::string_view{entry.text}.substr(0, equals))};
  const bool named = !name.empty() && begins_name(name[0]) && std::all_of(name.begin(), name.end(), goes_on_name);
  if (equals == std::string::npos || !named) return Diagnostic{entry.where, fmt::format("expected {}, found {}", form, quoted(entry.text))};
  return std::pair{name, equals + 1};
}

/// EXTENTS or EXTENTS,DTYPE
Expected<Input> parse_shape(std::string_view text, DType dtype, const ProgramText::Entry& entry, std::size_t offset) {
  if (const std::size_t comma = text.find(','); comma != std::string_view::npos) {
    const std::string_view name = trimmed(text.substr(comma + 1));
    const auto own = dtype_named(name);
    // Products are computed, and timed, in one dtype.
    if (!own || (is_real(*own) && is_real(dtype) && *own != dtype))
      return Diagnostic{place_in(entry, offset + comma + 1), fmt::format("expected {}, the dtype of the program, c64 or s32, found {}", name_of(dtype), quoted(name))};
    dtype = *own;
    text = text.substr(0, comma);
  }
  Extents extents;
  std::size_t at = 0;
  for (const std::string& piece : split(text, 'x')) {
    const auto extent = parse_integer(trimmed(piece), 1, most_extent, place_in(entry, offset + at));
    if (!extent) return in_context("expected extents as in 48x24", extent.error());
    extents.push_back(*extent);
    at += piece.size() + 1;
  }
  if (extents.size() > most_rank) return Diagnostic{place_in(entry, offset), fmt::format("expected at most {} dimensions, found {}", most_rank, extents.size())};
  return Input{std::move(extents), dtype, entry.where, "", {}};
}

/// A number or an array.
struct Value {
  std::optional<int> array;
  double number = 0;
};

class Reader {
 public:
  Reader(const ProgramText& text, const Mesh& mesh, const Inputs& inputs, bool divide) : text_{text}, inputs_{inputs}, typing_{mesh, divide} {
    typing_.program.mesh = mesh;
    typing_.program.dtype = text.dtype;
    typing_.program.kernels = text.kernels;
    for (const ProgramText::Entry& entry : text.statements) {
      begins_.push_back(source_.size());
      source_ += entry.text + '\n';
    }
    if (!source_.empty()) source_.pop_back();
  }

  Expected<ShardedProgram> read() {
    while (skip_to_statement()) {
      if (Status read = statement(); !read) return read.error();
    }
    if (typing_.program.statements.empty()) return error(at_, "expected NAME = EXPRESSION, found nothing");
    for (const auto& [name, input] : inputs_)
      if (!arrays_.contains(name)) return Diagnostic{input.where, fmt::format("the program does not read {}{}", quoted(name), did_you_mean(name, names()))};
    if (Status outs = read_outs(); !outs) return outs.error();
    return typing_.program;
  }

  [[nodiscard]] const Typing& typing() const { return typing_; }

 private:
  ShardedProgram& program() { return typing_.program; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] SourceLocation place(std::size_t offset) const {
    if (begins_.empty()) return {};
    const std::size_t entry = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), offset) - begins_.begin()) - 1;
    return place_in(text_.statements[entry], offset - begins_[entry]);
  }
  [[nodiscard]] Diagnostic error(std::size_t offset, std::string message) const { return {place(offset), std::move(message)}; }
  /// What stands at a place, for messages.
  [[nodiscard]] std::string found(std::size_t offset) const {
    if (offset >= source().size()) return "the end";
    if (source()[offset] == '\n') return "the end of the line";
    std::size_t end = offset + 1;
    if (goes_on_name(source()[offset]))
      while (end < source().size() && goes_on_name(source()[end])) ++end;
    return quoted(source().substr(offset, end - offset));
  }

  void skip_blanks() {
    while (at_ < source().size() && (is_blank(source()[at_]) || (source()[at_] == '\n' && open_ > 0))) ++at_;
  }
  [[nodiscard]] bool next_is(char c) {
    skip_blanks();
    return at_ < source().size() && source()[at_] == c;
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  Status expect(char c, std::string_view what) {
    if (take(c)) return success();
    return error(at_, fmt::format("expected {}, found {}", what, found(at_)));
  }
  std::string name() {
    skip_blanks();
    const std::size_t begin = at_;
    if (begin < source().size() && begins_name(source()[begin]))
      while (at_ < source().size() && goes_on_name(source()[at_])) ++at_;
    return source().substr(begin, at_ - begin);
  }

  /// Skips separators and comments. False: the end.
  bool skip_to_statement() {
    while (at_ < source().size()) {
      const char c = source()[at_];
      if (c == '#') at_ = std::min(source().find('\n', at_), source().size());
      else if (is_blank(c) || c == '\n' || c == ';') ++at_;
      else return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, array] : arrays_) all.push_back(name);
    return all;
  }

  Status statement() {
    const std::size_t begin = at_;
    std::string target = name();
    if (target.empty()) return error(begin, "expected NAME = EXPRESSION, found " + found(begin));
    if (next_is(',')) return factors(std::move(target), begin);
    if (function_named(target)) return error(begin, quoted(target) + " is a function: expected the name of an array");
    if (Status equals = expect('=', "= behind the name " + quoted(target)); !equals) return equals;
    const bool iterated = text_.iterate && inputs_.contains(target);
    const std::string assigned = target;
    if (iterated) target += ".next";
    if (inputs_.contains(target)) return error(begin, quoted(target) + " is an input, which is not written to");
    if (arrays_.contains(target)) return error(begin, quoted(target) + " is assigned a second time");
    typing_.begin_statement(target);
    skip_blanks();
    const std::size_t expression = at_;
    const auto value = sum();
    if (!value) return value.error();
    if (!value->array) return error(expression, "expected an array, found a number");
    skip_blanks();
    const char end = at_ < source().size() ? source()[at_] : ';';
    if (end != ';' && end != '\n' && end != '#') return error(at_, "expected an operator or the end of the statement, found " + found(at_));
    const auto result = typing_.finish_statement(*value->array, std::string{trimmed(std::string_view{source()}.substr(begin, at_ - begin))}, place(expression));
    if (!result) return result.error();
    arrays_.emplace(target, *result);
    if (!iterated) return success();
    const auto read = arrays_.find(assigned);
    if (read == arrays_.end()) return error(begin, fmt::format("expected {} to be read where it is assigned, as in X = A @ X", quoted(assigned)));
    if (program().operations[static_cast<std::size_t>(read->second)].extents != program().operations[static_cast<std::size_t>(*result)].extents)
      return error(begin, fmt::format("expected a result of the shape of {}, whose place it takes", quoted(assigned)));
    program().iterated = read->second;
    return success();
  }

  /// P, L, U = lu(A)
  Status factors(std::string first, std::size_t begin) {
    std::array<std::string, 3> targets{std::move(first)};
    for (std::size_t i = 1; i < 3; ++i) {
      if (Status comma = expect(',', "three names, as in P, L, U = lu(A)"); !comma) return comma;
      skip_blanks();
      targets[i] = name();
      if (targets[i].empty()) return error(at_, "expected three names, as in P, L, U = lu(A), found " + found(at_));
    }
    for (const std::string& target : targets) {
      if (function_named(target)) return error(begin, quoted(target) + " is a function: expected the name of an array");
      if (inputs_.contains(target)) return error(begin, quoted(target) + " is an input, which is not written to");
      if (arrays_.contains(target) || std::count(targets.begin(), targets.end(), target) > 1) return error(begin, quoted(target) + " is assigned a second time");
    }
    if (Status equals = expect('=', "= behind three names"); !equals) return equals;
    skip_blanks();
    const std::size_t expression = at_;
    if (name() != "lu" || !take('(')) return error(expression, "expected lu(A), which gives three arrays, found " + found(expression));
    typing_.begin_statement(targets[0]);
    ++open_;
    const auto matrix = sum();
    if (!matrix) return matrix.error();
    if (!matrix->array) return error(expression, "expected an array as the argument of lu, found a number");
    if (Status closed = expect(')', ") behind lu(A)"); !closed) return closed;
    --open_;
    skip_blanks();
    const char end = at_ < source().size() ? source()[at_] : ';';
    if (end != ';' && end != '\n' && end != '#') return error(at_, "expected the end of the statement, found " + found(at_));
    const auto made = typing_.finish_factors(*matrix->array, targets, std::string{trimmed(std::string_view{source()}.substr(begin, at_ - begin))}, place(expression));
    if (!made) return made.error();
    for (std::size_t i = 0; i < 3; ++i) arrays_.emplace(targets[i], (*made)[i]);
    return success();
  }

  Expected<Value> sum() {
    auto left = term();
    while (left && (next_is('+') || next_is('-'))) {
      const std::size_t at = at_;
      const bool minus = source()[at_++] == '-';
      const auto right = term();
      if (!right) return right;
      left = combine(minus ? ArrayOp::subtract : ArrayOp::add, *left, *right, at);
    }
    return left;
  }

  Expected<Value> term() {
    auto left = factor();
    while (left && (next_is('@') || next_is('*') || next_is('/'))) {
      const std::size_t at = at_;
      const char c = source()[at_++];
      const auto right = factor();
      if (!right) return right;
      left = combine(c == '@' ? ArrayOp::product : c == '*' ? ArrayOp::multiply : ArrayOp::divide, *left, *right, at);
    }
    return left;
  }

  Expected<Value> factor() {
    skip_blanks();
    const std::size_t at = at_;
    if (++depth_ > most_nesting) return error(at, fmt::format("expected at most {} nested expressions", most_nesting));
    auto value = take('-') ? negated(at) : primary();
    --depth_;
    while (value && value->array && next_is('.')) {
      const std::size_t dot = at_++;
      if (name() != "T") return error(dot, "expected .T, found " + found(dot + 1));
      value = add(Operation{.op = ArrayOp::transpose, .operands = {*value->array}}, dot);
    }
    return value;
  }
  Expected<Value> negated(std::size_t at) {
    const auto value = factor();
    if (!value || !value->array) return value ? Value{{}, -value->number} : value;
    return add(Operation{.op = ArrayOp::scale, .operands = {*value->array}, .number = -1}, at);
  }

  Expected<Value> primary() {
    skip_blanks();
    const std::size_t begin = at_;
    if (begin < source().size() && (is_digit(source()[begin]) || source()[begin] == '.')) return number();
    if (take('(')) {
      ++open_;
      auto value = sum();
      if (!value) return value;
      if (Status closed = expect(')', "an operator or )"); !closed) return closed.error();
      --open_;
      return value;
    }
    const std::string word = name();
    if (word.empty()) return error(begin, "expected an array, a number, a function or (, found " + found(begin));
    if (const Function* function = function_named(word); function && next_is('(')) return call(*function, begin);
    if (next_is('(')) {
      std::vector<std::string> all;
      for (const Function& function : functions) all.emplace_back(function.name);
      return error(begin, "there is no function " + quoted(word) + did_you_mean(word, all));
    }
    if (const auto known = arrays_.find(word); known != arrays_.end()) return Value{known->second};
    return input(word, begin);
  }

  Expected<Value> number() {
    double value = 0;
    const char* const begin = source().data() + at_;
    const auto [end, status] = std::from_chars(begin, source().data() + source().size(), value);
    if (status != std::errc{} || !std::isfinite(value)) return error(at_, "expected a number, found " + found(at_));
    at_ += static_cast<std::size_t>(end - begin);
    return Value{{}, value};
  }

  Expected<Value> input(const std::string& word, std::size_t begin) {
    const auto given = inputs_.find(word);
    if (given == inputs_.end()) {
      std::vector<std::string> all = names();
      for (const auto& [name, shape] : inputs_) all.push_back(name);
      return error(begin, fmt::format("{} has no value here and no shape ({}=ROWSxCOLUMNS){}", quoted(word), word, did_you_mean(word, all)));
    }
    Operation operation{.op = ArrayOp::input, .name = word, .extents = given->second.extents, .dtype = given->second.dtype};
    const auto sharding = parse_sharding(given->second.shard, program().mesh, operation.extents.size(), given->second.shard_where);
    if (!sharding) return sharding.error();
    operation.sharding = *sharding;
    operation.where = given->second.shard.empty() ? given->second.where : given->second.shard_where;
    const auto added = typing_.add(std::move(operation));
    if (!added) return added.error();
    arrays_.emplace(word, *added);
    return Value{*added};
  }

  Expected<Value> add(Operation operation, std::size_t offset) {
    operation.where = place(offset);
    if (program().operations.size() >= most_operations) return error(offset, fmt::format("expected at most {} operations", most_operations));
    const auto added = typing_.add(std::move(operation));
    if (!added) return added.error();
    return Value{*added};
  }

  /// An operator on two arrays, an array and a number, or two numbers.
  Expected<Value> combine(ArrayOp op, const Value& left, const Value& right, std::size_t at) {
    if (left.array && right.array) return add(Operation{.op = op, .operands = {*left.array, *right.array}}, at);
    if (op == ArrayOp::product) return error(at, "expected arrays on both sides of @, found a number");
    const double number = left.array ? right.number : left.number;
    const int array = left.array ? *left.array : right.array.value_or(0);
    const auto with_number = [&](ArrayOp one, double value) -> Expected<Value> {
      if (!std::isfinite(value)) return error(at, "expected a finite number, found a division by zero or an overflow");
      return add(Operation{.op = one, .operands = {array}, .number = value}, at);
    };
    if (!left.array && !right.array) {
      const double a = left.number, b = right.number;
      const double value = op == ArrayOp::add ? a + b : op == ArrayOp::subtract ? a - b : op == ArrayOp::multiply ? a * b : a / b;
      if (!std::isfinite(value)) return error(at, "expected a finite number, found a division by zero or an overflow");
      return Value{{}, value};
    }
    switch (op) {
      case ArrayOp::add: return with_number(ArrayOp::add_number, number);
      case ArrayOp::multiply: return with_number(ArrayOp::scale, number);
      case ArrayOp::divide: return left.array ? with_number(ArrayOp::scale, 1 / number) : with_number(ArrayOp::reciprocal, number);
      default: break;
    }
    if (left.array) return with_number(ArrayOp::add_number, -number);
    const auto negative = add(Operation{.op = ArrayOp::scale, .operands = {array}, .number = -1}, at);
    if (!negative) return negative;
    return add(Operation{.op = ArrayOp::add_number, .operands = {*negative->array}, .number = number}, at);
  }

  // ---- Functions ----

  Expected<Value> call(const Function& function, std::size_t begin) {
    if (function.name == "lu") return error(begin, "lu gives three arrays: expected P, L, U = lu(A)");
    take('(');
    ++open_;
    if (++depth_ > most_nesting) return error(begin, fmt::format("expected at most {} nested expressions", most_nesting));
    const auto value = sum();
    if (!value) return value;
    if (!value->array) return error(begin, fmt::format("expected an array as the first argument of {}, found a number", function.name));
    Operation operation{.op = function.op, .operands = {*value->array}};
    if (Status read = arguments(function, operation); !read) return read.error();
    if (Status closed = expect(')', fmt::format(") behind {}({})", function.name, function.arguments.empty() ? "A" : "A, " + std::string{function.arguments})); !closed)
      return closed.error();
    --open_;
    --depth_;
    return add(std::move(operation), begin);
  }

  Status comma(const Function& function) { return expect(',', fmt::format(", in {}(A, {})", function.name, function.arguments)); }

  Status arguments(const Function& function, Operation& operation) {
    if (function.arguments.empty()) return success();
    if (Status separated = comma(function); !separated) return separated;
    switch (function.op) {
      case ArrayOp::solve: {
        skip_blanks();
        const std::size_t begin = at_;
        const auto b = sum();
        if (!b) return b.error();
        if (!b->array) return error(begin, "expected an array of right-hand sides, found a number");
        operation.operands.push_back(*b->array);
        return success();
      }
      case ArrayOp::sum: return dimension(operation, operation.dim);
      case ArrayOp::reshard: return spec(operation);
      case ArrayOp::psum: return axes(operation, most_axes);
      case ArrayOp::all_gather:
      case ArrayOp::psum_scatter:
        if (Status read = dimension(operation, operation.dim); !read) return read;
        if (Status separated = comma(function); !separated) return separated;
        return axes(operation, most_axes);
      case ArrayOp::ppermute: {
        if (Status read = axes(operation, 1); !read) return read;
        if (Status separated = comma(function); !separated) return separated;
        const auto shift = integer(std::int64_t{1} << 30);
        if (shift) operation.shift = *shift;
        return shift ? success() : Status{shift.error()};
      }
      default:
        if (Status read = dimension(operation, operation.split_dim); !read) return read;
        if (Status separated = comma(function); !separated) return separated;
        if (Status read = dimension(operation, operation.dim); !read) return read;
        if (Status separated = comma(function); !separated) return separated;
        return axes(operation, 1);
    }
  }

  Expected<std::int64_t> integer(std::int64_t most) {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ < source().size() && source()[at_] == '-') ++at_;
    while (at_ < source().size() && goes_on_name(source()[at_])) ++at_;
    if (at_ == begin) return error(begin, "expected a whole number, found " + found(begin));
    return parse_integer(std::string_view{source()}.substr(begin, at_ - begin), -most, most, place(begin));
  }

  /// A dimension of the operand; -1 is the last one.
  Status dimension(const Operation& operation, int& dim) {
    skip_blanks();
    const std::size_t begin = at_;
    const auto rank = static_cast<std::int64_t>(program().operations[static_cast<std::size_t>(operation.operands[0])].extents.size());
    const auto read = integer(most_extent);
    if (!read) return read.error();
    if (*read < -rank || *read >= rank) return error(begin, fmt::format("expected a dimension of an array of rank {}, found {}", rank, *read));
    dim = static_cast<int>(*read < 0 ? *read + rank : *read);
    return success();
  }

  /// x, x+y, (x+y) or (x, y)
  Status axes(Operation& operation, std::size_t most) {
    const bool grouped = take('(');
    do {
      skip_blanks();
      const std::size_t begin = at_;
      const std::string word = name();
      if (word.empty()) return error(begin, "expected a mesh axis, found " + found(begin));
      const auto axis = program().mesh.axis(word);
      if (!axis) return error(begin, axis.error().message);
      if (std::find(operation.axes.begin(), operation.axes.end(), axis->axis) != operation.axes.end()) return error(begin, "mesh axis " + quoted(word) + " is named twice");
      operation.axes.push_back(axis->axis);
      if (operation.axes.size() > most) return error(begin, "expected one mesh axis, found a second one, " + quoted(word));
    } while (take('+') || (grouped && take(',')));
    return grouped ? expect(')', "+ or ) behind a mesh axis") : success();
  }

  Status spec(Operation& operation) {
    skip_blanks();
    const std::size_t begin = at_;
    int depth = 0;
    while (at_ < source().size() && (depth > 0 || source()[at_] != ')') && source()[at_] != ';' && source()[at_] != '\n') {
      depth += source()[at_] == '(' ? 1 : source()[at_] == ')' ? -1 : 0;
      ++at_;
    }
    const Operation& operand = program().operations[static_cast<std::size_t>(operation.operands[0])];
    const auto sharding = parse_sharding(trimmed(std::string_view{source()}.substr(begin, at_ - begin)), program().mesh, operand.extents.size(), place(begin));
    if (!sharding) return sharding.error();
    operation.sharding = *sharding;
    return success();
  }

  // ---- Outputs ----

  Status read_outs() {
    std::set<int> read;
    for (const Operation& operation : program().operations) read.insert(operation.operands.begin(), operation.operands.end());
    std::set<int> outputs;
    for (const int result : program().results)
      if (!read.contains(result)) outputs.insert(result);
    // Judged by what they satisfy, which needs all of them.
    for (std::size_t i = 0; i < program().operations.size(); ++i)
      if (const ArrayOp op = program().operations[i].op; op == ArrayOp::solve || op == ArrayOp::lu_pivots || op == ArrayOp::lu_lower || op == ArrayOp::lu_upper)
        outputs.insert(static_cast<int>(i));
    for (const ProgramText::Entry& entry : text_.outs) {
      const auto named = split_name(entry, "NAME=SPEC, as in C=x,y");
      if (!named) return named.error();
      const auto found = arrays_.find(named->first);
      if (inputs_.contains(named->first)) return Diagnostic{entry.where, fmt::format("expected the name of a result, found the input {}", quoted(named->first))};
      if (found == arrays_.end())
        return Diagnostic{entry.where, fmt::format("expected the name of a result, found {}{}", quoted(named->first), did_you_mean(named->first, names()))};
      const Operation& operation = program().operations[static_cast<std::size_t>(found->second)];
      const auto sharding = parse_sharding(std::string_view{entry.text}.substr(named->second), program().mesh, operation.extents.size(), place_in(entry, named->second), true);
      if (!sharding) return sharding.error();
      if (!program().out.emplace(found->second, *sharding).second) return Diagnostic{entry.where, quoted(named->first) + " is given twice"};
      if (Status fits = typing_.set_out(found->second, *sharding, place_in(entry, named->second)); !fits) return fits;
      outputs.insert(found->second);
    }
    program().outputs.assign(outputs.begin(), outputs.end());
    return success();
  }

  const ProgramText& text_;
  const Inputs& inputs_;
  std::string source_;               // all statements
  std::vector<std::size_t> begins_;  // of each text in it
  Typing typing_;
  std::map<std::string, int> arrays_;
  std::size_t at_ = 0;
  int depth_ = 0, open_ = 0;  // nested expressions; open parentheses, inside which a statement may go on in the next line
};

Expected<Inputs> read_inputs(const ProgramText& text) {
  Inputs inputs;
  for (const ProgramText::Entry& entry : text.shapes) {
    const auto named = split_name(entry, "NAME=EXTENTS, as in A=48x24");
    if (!named) return named.error();
    if (function_named(named->first)) return Diagnostic{entry.where, quoted(named->first) + " is a function: expected the name of an array"};
    auto input = parse_shape(std::string_view{entry.text}.substr(named->second), text.dtype, entry, named->second);
    if (!input) return input.error();
    if (!inputs.emplace(named->first, *std::move(input)).second) return Diagnostic{entry.where, "the shape of " + quoted(named->first) + " is given twice"};
  }
  for (const ProgramText::Entry& entry : text.shards) {
    const auto named = split_name(entry, "NAME=SPEC, as in A=x,-");
    if (!named) return named.error();
    std::vector<std::string> all;
    for (const auto& [name, input] : inputs) all.push_back(name);
    const auto found = inputs.find(named->first);
    if (found == inputs.end()) return Diagnostic{entry.where, fmt::format("expected the name of an input, found {}{}", quoted(named->first), did_you_mean(named->first, all))};
    if (found->second.shard_where.column != 0) return Diagnostic{entry.where, "the sharding of " + quoted(named->first) + " is given twice"};
    found->second.shard = entry.text.substr(named->second);
    found->second.shard_where = place_in(entry, named->second);
    if (trimmed(found->second.shard).empty()) return Diagnostic{found->second.shard_where, "expected a sharding, as in x,-, found nothing"};
  }
  return inputs;
}

}  // namespace

Expected<ShardedProgram> read_program(const ProgramText& text, const Mesh& mesh) {
  std::size_t size = 0;
  for (const ProgramText::Entry& entry : text.statements) size += entry.text.size();
  const SourceLocation where = text.statements.empty() ? SourceLocation{} : text.statements.front().where;
  if (size > most_text) return Diagnostic{where, fmt::format("expected a program of at most {} bytes", most_text)};
  if (mesh.axes().size() > most_axes) return Diagnostic{where, fmt::format("expected a mesh of at most {} axes, found {}", most_axes, to_text(mesh))};
  auto inputs = read_inputs(text);
  if (!inputs) return inputs.error();
  if (!text.pad) return Reader{text, mesh, *inputs, true}.read();
  std::map<std::string, Extents> extents;
  for (const auto& [name, input] : *inputs) extents[name] = input.extents;
  return read_padded(std::move(extents), [&](const std::map<std::string, Extents>& larger, bool divide) {
    for (const auto& [name, padded] : larger) inputs->at(name).extents = padded;
    Reader reader{text, mesh, *inputs, divide};
    auto program = reader.read();
    return Reading{std::move(program), reader.typing().indivisible, reader.typing().groups()};
  });
}

}  // namespace podsim
