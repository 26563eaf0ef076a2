// Reads program texts: a recursive descent over the grammar
//
//   program    = item { (";" | newline) item }
//   item       = statement | "shard_map" "{" { block-statement (";" | newline) } "}"
//   statement  = NAME "=" sum | NAME "," NAME "," NAME "=" "lu" "(" sum ")"
//   block-statement = NAME "=" sum [ "as" SPEC ]
//   sum        = term { ("+" | "-") term }
//   term       = factor { ("@" | "*" | "/") factor }
//   factor     = "-" factor | primary { ".T" }
//   primary    = NUMBER | NAME | FUNCTION "(" sum { "," argument } ")" | "(" sum ")"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "workloads/sharded/argument_reader.hpp"
#include "workloads/sharded/program.hpp"
#include "workloads/sharded/program_inputs.hpp"
#include "workloads/sharded/typing.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_operations = 10'000, most_axes = 4, most_text = std::size_t{1} << 20;
constexpr int most_nesting = 200;

/// A number or an array.
struct Value {
  std::optional<int> array;
  double number = 0;
};

class Reader : ArgumentReader {
 public:
  Reader(const ProgramText& text, const Mesh& mesh, const ProgramInputs& inputs, bool divide)
      : ArgumentReader{text.statements, mesh}, text_{text}, inputs_{inputs}, typing_{mesh, divide} {
    typing_.program.mesh = mesh;
    typing_.program.dtype = text.dtype;
    typing_.program.kernels = text.kernels;
  }

  Expected<ShardedProgram> read() {
    while (skip_to_statement()) {
      const std::size_t begin = at_;
      if (Status read = take_word("shard_map") ? shard_map(begin) : statement(); !read) return read.error();
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
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, array] : arrays_) all.push_back(name);
    return all;
  }
  [[nodiscard]] const Operation& operation(int i) const { return typing_.program.operations[static_cast<std::size_t>(i)]; }

  /// A name that a statement may assign to.
  Status assignable(const std::string& target, std::size_t begin) const {
    if (function_named(target)) return error(begin, quoted(target) + " is a function: expected the name of an array");
    if (inputs_.contains(target)) return error(begin, quoted(target) + " is an input, which is not written to");
    if (arrays_.contains(target) || blocks_.contains(target)) return error(begin, quoted(target) + " is assigned a second time");
    return success();
  }
  [[nodiscard]] bool at_end_of_statement() {
    skip_blanks();
    const char end = at_ < source().size() ? source()[at_] : ';';
    return end == ';' || end == '\n' || end == '#' || (in_shard_map_ && end == '}');
  }
  [[nodiscard]] std::string text_since(std::size_t begin) const { return std::string{trimmed(std::string_view{source()}.substr(begin, at_ - begin))}; }

  Status statement() {
    const std::size_t begin = at_;
    std::string target = name();
    if (target.empty()) return error(begin, "expected NAME = EXPRESSION, found " + found(begin));
    if (next_is(',')) return factors(std::move(target), begin);
    const bool iterated = text_.iterate && !in_shard_map_ && inputs_.contains(target);
    const std::string assigned = target;
    if (iterated) target += ".next";
    if (function_named(target)) return error(begin, quoted(target) + " is a function: expected the name of an array");
    if (Status equals = expect('=', "= behind the name " + quoted(assigned)); !equals) return equals;
    if (Status may = assignable(target, begin); !may) return may;
    typing_.begin_statement(target);
    skip_blanks();
    const std::size_t expression = at_;
    const auto value = sum();
    if (!value) return value.error();
    if (!value->array) return error(expression, "expected an array, found a number");
    if (in_shard_map_) return finish_block(target, *value->array, begin, expression);
    if (!at_end_of_statement()) return error(at_, "expected an operator or the end of the statement, found " + found(at_));
    const auto result = typing_.finish_statement(*value->array, text_since(begin), place(expression));
    if (!result) return result.error();
    arrays_.emplace(target, *result);
    if (!iterated) return success();
    const auto read = arrays_.find(assigned);
    if (read == arrays_.end()) return error(begin, fmt::format("expected {} to be read where it is assigned, as in X = A @ X", quoted(assigned)));
    if (operation(read->second).extents != operation(*result).extents)
      return error(begin, fmt::format("expected a result of the shape of {}, whose place it takes", quoted(assigned)));
    program().iterated = read->second;
    return success();
  }

  // ---- shard_map ----

  /// The statements between { and }, behind the word.
  Status shard_map(std::size_t begin) {
    if (text_.pad) return error(begin, "the arrays of shard_map are not padded: expected extents that divide, and no --pad");
    if (Status opened = expect('{', "{ behind shard_map"); !opened) return opened;
    in_shard_map_ = true;
    entered_.clear();
    bool leaves = false;
    while (skip_to_statement() && source()[at_] != '}') {
      const std::size_t results = arrays_.size(), nested = at_;
      if (take_word("shard_map")) return error(nested, "shard_map stands inside of shard_map already");
      if (Status read = statement(); !read) return read;
      leaves |= arrays_.size() > results;
    }
    if (!leaves) return error(at_, "expected a result of shard_map with its out spec, as in C = psum(A, x) as x,-, found " + found(at_));
    in_shard_map_ = false;
    return expect('}', "} behind the statements of shard_map");
  }

  /// Behind the expression of a statement inside shard_map.
  Status finish_block(const std::string& target, int block, std::size_t begin, std::size_t expression) {
    std::optional<int> whole;
    if (take_word("as")) {
      skip_blanks();
      const std::size_t spec_begin = at_;
      const auto sharding = parse_sharding(trimmed(text_until(";#}")), program().mesh, operation(block).extents.size(), place(spec_begin));
      if (!sharding) return sharding.error();
      const auto left = add(Operation{.op = ArrayOp::from_blocks, .operands = {block}, .sharding = *sharding}, spec_begin);
      if (!left) return left.error();
      whole = left->array;
    }
    if (!at_end_of_statement()) return error(at_, "expected an operator, `as` and an out spec, or the end of the statement, found " + found(at_));
    const auto result = typing_.finish_statement(whole.value_or(block), text_since(begin), place(expression));
    if (!result) return result.error();
    if (whole) arrays_.emplace(target, *result);
    const int own = whole ? block : *result;
    blocks_.emplace(target, own);
    entered_[own] = entered_[*result] = own;
    return success();
  }

  /// The block of an array that is read inside shard_map: itself, if it was made there.
  Expected<Value> block_of(int array, std::size_t begin) {
    if (const auto known = entered_.find(array); known != entered_.end()) return Value{known->second};
    const auto block = add(Operation{.op = ArrayOp::to_blocks, .operands = {array}}, begin);
    if (block) entered_[array] = *block->array;
    return block;
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
      if (Status may = assignable(target, begin); !may) return may;
      if (std::count(targets.begin(), targets.end(), target) > 1) return error(begin, quoted(target) + " is assigned a second time");
    }
    if (Status equals = expect('=', "= behind three names"); !equals) return equals;
    skip_blanks();
    const std::size_t expression = at_;
    if (in_shard_map_) return error(begin, "lu works on whole arrays: expected it outside of shard_map");
    if (name() != "lu" || !take('(')) return error(expression, "expected lu(A), which gives three arrays, found " + found(expression));
    typing_.begin_statement(targets[0]);
    ++open_;
    const auto matrix = sum();
    if (!matrix) return matrix.error();
    if (!matrix->array) return error(expression, "expected an array as the argument of lu, found a number");
    if (Status closed = expect(')', ") behind lu(A)"); !closed) return closed;
    --open_;
    if (!at_end_of_statement()) return error(at_, "expected the end of the statement, found " + found(at_));
    const auto made = typing_.finish_factors(*matrix->array, targets, text_since(begin), place(expression));
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
    if (begin < source().size() && ((source()[begin] >= '0' && source()[begin] <= '9') || source()[begin] == '.')) {
      const auto value = number();
      return value ? Expected<Value>{Value{{}, *value}} : value.error();
    }
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
    if (const ProgramFunction* function = function_named(word); function && next_is('(')) return call(*function, begin);
    if (next_is('(')) {
      std::vector<std::string> all;
      for (const ProgramFunction& function : program_functions) all.emplace_back(function.name);
      return error(begin, "there is no function " + quoted(word) + did_you_mean(word, all));
    }
    if (in_shard_map_)
      if (const auto known = blocks_.find(word); known != blocks_.end() && entered_.contains(known->second)) return Value{known->second};
    const auto known = arrays_.find(word);
    const auto array = known != arrays_.end() ? Expected<Value>{Value{known->second}} : input(word, begin);
    return array && in_shard_map_ ? block_of(*array->array, begin) : array;
  }

  Expected<Value> input(const std::string& word, std::size_t begin) {
    const auto given = inputs_.find(word);
    if (given == inputs_.end()) {
      std::vector<std::string> all = names();
      for (const auto& [name, shape] : inputs_) all.push_back(name);
      if (blocks_.contains(word)) return error(begin, fmt::format("{} is a block of its shard_map: expected an out spec there, as in {} = ... as x,-", quoted(word), word));
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

  Expected<Value> call(const ProgramFunction& function, std::size_t begin) {
    if (function.where == ProgramFunction::Where::whole_arrays && in_shard_map_)
      return error(begin, fmt::format("{} works on whole arrays: expected it outside of shard_map", function.name));
    if (function.where == ProgramFunction::Where::shard_map && !in_shard_map_)
      return error(begin, fmt::format("{} works on the blocks of devices: expected it inside of shard_map {{ }}", function.name));
    if (function.name == "lu") return error(begin, "lu gives three arrays: expected P, L, U = lu(A)");
    take('(');
    ++open_;
    if (++depth_ > most_nesting) return error(begin, fmt::format("expected at most {} nested expressions", most_nesting));
    Operation operation{.op = function.op};
    if (function.op != ArrayOp::axis_index) {
      const auto value = sum();
      if (!value) return value;
      if (!value->array) return error(begin, fmt::format("expected an array as the first argument of {}, found a number", function.name));
      operation.operands = {*value->array};
      if (!function.arguments.empty())
        if (Status separated = comma(function); !separated) return separated.error();
    }
    bool tiled = true;
    if (Status read = arguments(function, operation, tiled); !read) return read.error();
    if (Status closed = expect(')', ") behind " + form_of(function)); !closed) return closed.error();
    --open_;
    --depth_;
    if (!tiled) return untiled(std::move(operation), begin);
    const std::int64_t terms = function.averages ? terms_of(operation) : 1;
    auto result = add(std::move(operation), begin);
    if (!result || !function.averages) return result;
    return add(Operation{.op = ArrayOp::scale, .operands = {*result->array}, .number = 1 / static_cast<double>(terms)}, begin);
  }

  /// How many elements or devices an operation adds up.
  [[nodiscard]] std::int64_t terms_of(const Operation& adds) const {
    return adds.op == ArrayOp::sum ? operation(adds.operands[0]).extents[static_cast<std::size_t>(adds.dim)] : devices_along(typing_.program.mesh, adds.axes);
  }

  Status arguments(const ProgramFunction& function, Operation& operation, bool& tiled) {
    const std::size_t rank = operation.operands.empty() ? 0 : typing_.program.operations[static_cast<std::size_t>(operation.operands[0])].extents.size();
    const bool moves_blocks = function.op == ArrayOp::ppermute || function.op == ArrayOp::all_to_all;
    const std::size_t most = moves_blocks && !in_shard_map_ ? 1 : most_axes;
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
      case ArrayOp::sum: return dimension(rank, operation.dim);
      case ArrayOp::reshard: return spec(operation, rank);
      case ArrayOp::psum:
      case ArrayOp::pmax:
      case ArrayOp::axis_index: return axes(operation, most);
      case ArrayOp::all_gather:
      case ArrayOp::psum_scatter:
      case ArrayOp::all_to_all: return tiles(function, operation, {rank, most, in_shard_map_}, tiled);
      case ArrayOp::ppermute: {
        if (Status read = axes(operation, most); !read) return read;
        std::sort(operation.axes.begin(), operation.axes.end());  // JAX numbers the devices of a ppermute in the mesh's order, however the axes are named
        if (Status separated = comma(function); !separated) return separated;
        if (next_is('[') && !in_shard_map_) return error(at_, "pairs of devices belong to ppermute inside of shard_map: expected a shift");
        if (next_is('[')) return pairs(operation);
        const auto shift = integer(std::int64_t{1} << 30);
        if (shift) operation.shift = *shift;
        return shift ? success() : Status{shift.error()};
      }
      default: return success();
    }
  }

  /// As in JAX without `tiled`: all_gather puts the blocks side by side in a new dimension; psum_scatter and all_to_all take a dimension of as many elements
  /// as there are devices, which is gone in the result.
  Expected<Value> untiled(Operation collective, std::size_t begin) {
    const auto resized = [&](const Expected<Value>& of, ArrayOp op, int dim) -> Expected<Value> {
      return of ? add(Operation{.op = op, .operands = {*of->array}, .dim = dim}, begin) : of;
    };
    const Value operand{collective.operands[0]};
    const int split = collective.op == ArrayOp::all_to_all ? collective.split_dim : collective.dim;
    const std::int64_t devices = devices_along(program().mesh, collective.axes);
    if (collective.op != ArrayOp::all_gather)
      if (const std::int64_t extent = operation(*operand.array).extents[static_cast<std::size_t>(split)]; extent != devices)
        return error(begin, fmt::format("dimension {} of the block has extent {}: expected {}, the number of devices along the axes; with `tiled` a multiple of it", split, extent, devices));
    if (collective.op == ArrayOp::psum_scatter) return resized(add(std::move(collective), begin), ArrayOp::squeeze, split);
    if (collective.op == ArrayOp::all_to_all && collective.dim == split) return add(std::move(collective), begin);
    // The dimension to gather in counts without the one that is split.
    const bool behind = collective.op == ArrayOp::all_to_all && split < collective.dim;
    const int gathered = collective.dim + (behind ? 1 : 0), removed = split + (behind ? 0 : 1);
    const auto room = resized(operand, ArrayOp::expand_dims, gathered);
    if (!room) return room;
    collective.operands = {*room->array};
    collective.dim = gathered;
    collective.split_dim = removed;
    const bool gathers = collective.op == ArrayOp::all_gather;
    const auto moved = add(std::move(collective), begin);
    return gathers ? moved : resized(moved, ArrayOp::squeeze, removed);
  }

  // ---- Outputs ----

  Status read_outs() {
    std::set<int> read;
    for (const Operation& operation : program().operations) read.insert(operation.operands.begin(), operation.operands.end());
    std::set<int> outputs;
    for (const int result : program().results) {
      if (read.contains(result)) continue;
      if (const Operation& unread = operation(result); unread.varying)
        return Diagnostic{unread.where, fmt::format("nothing reads {}, and it has no out spec: expected {} = ... as SPEC", quoted(unread.name), unread.name)};
      outputs.insert(result);
    }
    // Judged by what they satisfy, which needs all of them.
    for (std::size_t i = 0; i < program().operations.size(); ++i)
      if (const ArrayOp op = program().operations[i].op; op == ArrayOp::solve || op == ArrayOp::lu_pivots || op == ArrayOp::lu_lower || op == ArrayOp::lu_upper)
        outputs.insert(static_cast<int>(i));
    for (const ProgramText::Entry& entry : text_.outs) {
      const auto named = split_name(entry, "NAME=SPEC, as in C=x,y");
      if (!named) return named.error();
      const auto found = arrays_.find(named->first);
      if (inputs_.contains(named->first)) return Diagnostic{entry.where, fmt::format("expected the name of a result, found the input {}", quoted(named->first))};
      if (found == arrays_.end() && blocks_.contains(named->first))
        return Diagnostic{entry.where, fmt::format("{} is a block of its shard_map: expected an array, which `as SPEC` there makes of it", quoted(named->first))};
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
  const ProgramInputs& inputs_;
  Typing typing_;
  std::map<std::string, int> arrays_;
  std::map<std::string, int> blocks_;  // by the names that statements inside of shard_map give them
  std::map<int, int> entered_;         // of the present shard_map: the block of each array, and of each block itself
  bool in_shard_map_ = false;
  int depth_ = 0;  // nested expressions
};

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
