// How transforms and linear systems of a program are computed, from fields.
#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

Expected<KernelChoice> read_kernels(const Fields& fields, const Machine& machine, bool algorithms) {
  KernelChoice kernels;
  if (fields.has("algorithm") && algorithms) {
    const SourceLocation where = fields.where("algorithm");
    std::vector<std::string> seen;
    for (const std::string& piece : split(fields.text("algorithm"), ',')) {
      const std::size_t equals = piece.find('=');
      const std::string function{trimmed(std::string_view{piece}.substr(0, equals))};
      if (equals == std::string::npos || methods_of(function).empty())
        return Diagnostic{where, fmt::format("expected fft=, lu= or solve= and an algorithm, as in fft=pencil,lu=block, found {}; `collectives` names how collectives are lowered", quoted(piece))};
      const std::string method{trimmed(std::string_view{piece}.substr(equals + 1))};
      if (!set_method(kernels, function, method))
        return Diagnostic{where, fmt::format("there is no algorithm {} of {}{}", quoted(method), function, did_you_mean(method, methods_of(function)))};
      if (std::find(seen.begin(), seen.end(), function) != seen.end()) return Diagnostic{where, fmt::format("{} is given twice", quoted(function))};
      seen.push_back(function);
    }
  }
  const std::string order = fields.text("order");
  if (order != name_of(FftOrder::transposed) && order != name_of(FftOrder::natural))
    return Diagnostic{fields.where("order"), "expected transposed or natural, found " + quoted(order)};
  kernels.order = order == name_of(FftOrder::transposed) ? FftOrder::transposed : FftOrder::natural;
  const auto chunks = fields.integer("overlap", 1, 1 << 16);
  if (!chunks) return chunks.error();
  kernels.chunks = static_cast<int>(*chunks);
  const auto look_ahead = fields.integer("look_ahead", 0, 1);
  if (!look_ahead) return look_ahead.error();
  kernels.look_ahead = static_cast<int>(*look_ahead);
  if (fields.has("block")) {
    const auto block = fields.integer("block", 1, 1 << 20);
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

std::vector<std::string> kernel_methods(const ShardedProgram& program) {
  std::vector<std::string> names;
  for (const char* function : {"fft", "lu", "solve"})
    if (has_function(program, function))
      for (std::string& name : methods_of(function))
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  return names;
}

void set_methods(ShardedProgram& program, std::string_view method) {
  for (const char* function : {"fft", "lu", "solve"}) {
    KernelChoice one = program.kernels;
    if (has_function(program, function) && set_method(one, function, method)) program.kernels = one;
  }
}

}  // namespace podsim
