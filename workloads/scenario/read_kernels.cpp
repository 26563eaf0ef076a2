// How transforms and linear systems of a program are computed, from fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/text.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

template <class Method, std::size_t count>
std::optional<Method> method_named(std::string_view name, const std::array<Method, count>& methods) {
  for (const Method method : methods)
    if (name_of(method) == name) return method;
  return std::nullopt;
}
template <class Method, std::size_t count>
void add_names(std::vector<std::string>& names, const std::array<Method, count>& methods) {
  for (const Method method : methods)
    if (std::find(names.begin(), names.end(), name_of(method)) == names.end()) names.emplace_back(name_of(method));
}
constexpr std::array lu_methods{LuMethod::block, LuMethod::naive};
constexpr std::array solve_methods{SolveMethod::block, SolveMethod::naive, SolveMethod::batched};

/// Sets the method of one function. False: it has no such method, or there is no such function.
bool set_method(KernelChoice& kernels, std::string_view function, std::string_view method) {
  if (function == "fft") return (kernels.fft = method_named(method, fft_methods)).has_value();
  if (function == "lu") return (kernels.lu = method_named(method, lu_methods)).has_value();
  return function == "solve" && (kernels.solve = method_named(method, solve_methods)).has_value();
}

std::vector<std::string> methods_of(std::string_view function) {
  std::vector<std::string> names;
  if (function == "fft") add_names(names, fft_methods);
  if (function == "lu") add_names(names, lu_methods);
  if (function == "solve") add_names(names, solve_methods);
  return names;
}

bool has(const ShardedProgram& program, std::initializer_list<ArrayOp> ops) {
  return std::any_of(program.operations.begin(), program.operations.end(),
                     [&](const Operation& operation) { return std::find(ops.begin(), ops.end(), operation.op) != ops.end(); });
}
bool has_function(const ShardedProgram& program, std::string_view function) {
  if (function == "fft") return has(program, {ArrayOp::fft, ArrayOp::ifft});
  if (function == "lu") return has(program, {ArrayOp::lu_pivots});
  return has(program, {ArrayOp::solve});
}

constexpr std::array<std::string_view, 3> kernel_functions{"fft", "lu", "solve"};

std::vector<std::string> functions_of(const ShardedProgram& program) {
  std::vector<std::string> functions;
  for (const std::string_view function : kernel_functions)
    if (has_function(program, function)) functions.emplace_back(function);
  return functions;
}

Diagnostic no_such_method(const std::string& method, const std::vector<std::string>& functions, const SourceLocation& where) {
  std::vector<std::string> methods;
  for (const std::string& function : functions)
    for (std::string& name : methods_of(function))
      if (std::find(methods.begin(), methods.end(), name) == methods.end()) methods.push_back(std::move(name));
  return {where, fmt::format("there is no algorithm {} of {}{}; expected {}", quoted(method), alternatives(functions), did_you_mean(method, methods), alternatives(methods))};
}

/// "fft=pencil"
struct FunctionMethod {
  std::string function, method;
};

/// Errors: no such function, or it has no such algorithm.
Expected<FunctionMethod> parse_method(const std::string& text, const SourceLocation& where) {
  const std::size_t equals = text.find('=');
  const std::string function{trimmed(std::string_view{text}.substr(0, equals))};
  if (equals == std::string::npos || methods_of(function).empty())
    return Diagnostic{where, fmt::format("expected fft=, lu= or solve= and an algorithm, as in fft=pencil,lu=block, found {}{}; `collectives` names how collectives are lowered", quoted(text),
                                         equals == std::string::npos ? "" : did_you_mean(function, {kernel_functions.begin(), kernel_functions.end()}))};
  const std::string method{trimmed(std::string_view{text}.substr(equals + 1))};
  if (KernelChoice any; !set_method(any, function, method)) return no_such_method(method, {function}, where);
  return FunctionMethod{function, method};
}

/// The methods to combine, of each function that has any.
using MethodsByFunction = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Every combination.
std::vector<ComparedKernels> combinations(const MethodsByFunction& asked, const KernelChoice& rest) {
  std::vector<ComparedKernels> all{{"", rest}};
  for (const auto& [function, methods] : asked) {
    std::vector<ComparedKernels> longer;
    for (const ComparedKernels& one : all)
      for (const std::string& method : methods) {
        ComparedKernels& with = longer.emplace_back(one);
        // Of a single function the algorithm says it all.
        with.name += (with.name.empty() ? "" : ",") + (asked.size() == 1 ? method : function + "=" + method);
        set_method(with.kernels, function, method);
      }
    all = std::move(longer);
  }
  return all;
}

MethodsByFunction every_method(const std::vector<std::string>& functions) {
  MethodsByFunction all;
  for (const std::string& function : functions) all.emplace_back(function, methods_of(function));
  return all;
}

/// By the method of this name wherever there is one. None: no function has it.
std::optional<ComparedKernels> everywhere(const std::string& method, const std::vector<std::string>& functions, const KernelChoice& rest) {
  ComparedKernels by{method, rest};
  bool found = false;
  for (const std::string& function : functions)
    if (KernelChoice one = by.kernels; set_method(one, function, method)) by.kernels = one, found = true;
  return found ? std::optional{by} : std::nullopt;
}

}  // namespace

Expected<KernelChoice> read_kernels(const Fields& fields, const Machine& machine, bool algorithms) {
  KernelChoice kernels;
  if (fields.has("algorithm") && algorithms) {
    const SourceLocation where = fields.where("algorithm");
    std::vector<std::string> seen;
    for (const std::string& piece : split(fields.text("algorithm"), ',')) {
      const auto named = parse_method(piece, where);
      if (!named) return named.error();
      if (std::find(seen.begin(), seen.end(), named->function) != seen.end()) return Diagnostic{where, fmt::format("{} is given twice", quoted(named->function))};
      set_method(kernels, named->function, named->method);
      seen.push_back(named->function);
    }
  }
  const auto order = fields.word("order");
  if (!order) return order.error();
  kernels.order = *order == name_of(FftOrder::transposed) ? FftOrder::transposed : FftOrder::natural;
  const auto chunks = fields.count("overlap");
  if (!chunks) return chunks.error();
  kernels.chunks = static_cast<int>(*chunks);
  const auto look_ahead = fields.count("look_ahead");
  if (!look_ahead) return look_ahead.error();
  kernels.look_ahead = static_cast<int>(*look_ahead);
  if (fields.has("block")) {
    const auto block = fields.count("block");
    if (!block) return block.error();
    kernels.block = *block;
  }
  const auto copies = fields.has("slice_copies") ? on_off(fields, "slice_copies") : Expected<bool>{machine.slice_copies};
  if (!copies) return copies.error();
  kernels.slice_copies = *copies;
  return kernels;
}

Status kernels_belong(const Fields& fields, const ShardedProgram& program) {
  const auto refuse = [&](std::string_view field, std::string_view functions) -> Status {
    return Diagnostic{fields.where(field), fmt::format("belongs to {}, which the program does not have", functions)};
  };
  const bool fft = has_function(program, "fft"), systems = has_function(program, "lu") || has_function(program, "solve");
  for (const char* field : {"order", "overlap"})
    if (fields.has(field) && !fft) return refuse(field, "fft and ifft");
  for (const char* field : {"look_ahead", "block"})
    if (fields.has(field) && !systems) return refuse(field, "lu and solve");
  if (fields.has("slice_copies") && !fft) return refuse("slice_copies", "fft and ifft");
  if (!fields.has("algorithm")) return success();
  for (const std::string& piece : split(fields.text("algorithm"), ','))
    if (const std::string function{trimmed(std::string_view{piece}.substr(0, piece.find('=')))}; !has_function(program, function)) return refuse("algorithm", function);
  return success();
}

bool has_kernels(const ShardedProgram& program) { return !functions_of(program).empty(); }

Expected<std::vector<ComparedKernels>> compared_kernels(const std::vector<FieldText>& names, const ShardedProgram& program) {
  const std::vector<std::string> functions = functions_of(program);
  const KernelChoice& rest = program.kernels;
  if (names.size() == 1 && names.front().text == "all") return combinations(every_method(functions), rest);
  if (names.empty() && functions.size() == 1) return combinations(every_method(functions), rest);
  if (names.empty()) return std::vector<ComparedKernels>{{"default", rest}, *everywhere("naive", functions, rest)};
  std::vector<ComparedKernels> rows;
  MethodsByFunction asked;
  for (const FieldText& name : names) {
    const std::string text{trimmed(name.text)};
    if (text.find('=') == std::string::npos) {
      auto by = everywhere(text, functions, rest);
      if (!by) return no_such_method(text, functions, name.where);
      rows.push_back(*std::move(by));
      continue;
    }
    const auto named = parse_method(text, name.where);
    if (!named) return named.error();
    if (std::find(functions.begin(), functions.end(), named->function) == functions.end())
      return Diagnostic{name.where, fmt::format("{} belongs to {}, which the program does not have", quoted(text), named->function)};
    auto of = std::find_if(asked.begin(), asked.end(), [&](const auto& entry) { return entry.first == named->function; });
    if (of == asked.end()) of = asked.insert(of, {named->function, {}});
    of->second.push_back(named->method);
  }
  if (asked.empty()) return rows;
  for (ComparedKernels& combination : combinations(asked, rest)) rows.push_back(std::move(combination));
  return rows;
}

}  // namespace podsim
