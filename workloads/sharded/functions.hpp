// The functions of programs by name.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "workloads/sharded/program.hpp"

namespace podsim {

struct ProgramFunction {
  enum class Where { everywhere, whole_arrays, shard_map };  // where it may be called
  std::string_view name;
  ArrayOp op;
  std::string_view arguments;  // behind the array
  Where where = Where::everywhere;
  bool averages = false;  // divides by the number of elements or devices that `op` adds up
};

inline constexpr std::array<ProgramFunction, 18> program_functions{{
    {"relu", ArrayOp::relu, ""},
    {"gelu", ArrayOp::gelu, ""},
    {"sum", ArrayOp::sum, "dim"},
    {"mean", ArrayOp::sum, "dim", ProgramFunction::Where::shard_map, true},
    {"reshard", ArrayOp::reshard, "SPEC", ProgramFunction::Where::whole_arrays},
    {"process_allgather", ArrayOp::process_allgather, "", ProgramFunction::Where::whole_arrays},
    {"fft", ArrayOp::fft, "", ProgramFunction::Where::whole_arrays},
    {"ifft", ArrayOp::ifft, "", ProgramFunction::Where::whole_arrays},
    {"lu", ArrayOp::lu_lower, "", ProgramFunction::Where::whole_arrays},
    {"solve", ArrayOp::solve, "b", ProgramFunction::Where::whole_arrays},
    {"psum", ArrayOp::psum, "axes"},
    {"pmean", ArrayOp::psum, "axes", ProgramFunction::Where::shard_map, true},
    {"pmax", ArrayOp::pmax, "axes", ProgramFunction::Where::shard_map},
    {"all_gather", ArrayOp::all_gather, "dim, axes"},
    {"psum_scatter", ArrayOp::psum_scatter, "dim, axes"},
    {"ppermute", ArrayOp::ppermute, "axis, shift"},
    {"all_to_all", ArrayOp::all_to_all, "split, concat, axis"},
    {"axis_index", ArrayOp::axis_index, "axes", ProgramFunction::Where::shard_map},
}};

inline const ProgramFunction* function_named(std::string_view name) {
  const auto found = std::find_if(program_functions.begin(), program_functions.end(), [&](const ProgramFunction& f) { return f.name == name; });
  return found == program_functions.end() ? nullptr : &*found;
}

}  // namespace podsim
