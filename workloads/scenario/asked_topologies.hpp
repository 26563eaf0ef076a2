// The machines, slices, topologies and meshes that a comparison asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/problem_kinds.hpp"

namespace podsim {

/// The values of a field that stand between commas; `otherwise` where it is not given.
std::vector<FieldText> listed(const Fields& fields, std::string_view name, const std::vector<std::string>& otherwise = {});

/// One machine, slice, topology and mesh order, on each of its meshes.
struct AskedTopology {
  std::vector<Fields> meshes;
  bool is_mesh_searched = false;
};

/// Of every machine, slice, topology and mesh order; a mesh `all` is every row x col. Errors: those of read_system() where it is.
Expected<std::vector<AskedTopology>> topologies_asked_for(const Fields& base);

/// Where several of them are compared and no mesh is said, each has the mesh on which it is the fastest: its own dimensions, and of a product every row x col, of a block or a collective over all devices those that
/// meshes_of() has. The axes of programs and training steps have names with a meaning, and an axis that is asked for says how many devices take part.
void search_meshes(std::vector<AskedTopology>& asked, const Fields& base, const ProblemKind& kind);

}  // namespace podsim
