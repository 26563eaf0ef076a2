// What people ask to compare: fields with several values each, as systems with variants.
#pragma once

#include <vector>

#include "workloads/scenario/compare.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/vary.hpp"

namespace podsim {

/// All that is to be simulated, in order.
struct ComparisonSetup {
  std::vector<ComparedSystem> systems;
  std::vector<Skipped> skipped;  // machines and slices that do not go together
  std::size_t topologies = 0;    // machines x slices x topologies x mesh orders x varied values
  [[nodiscard]] std::size_t variants() const;
};

/// Systems are machines x slices x topologies x mesh orders x meshes x varied values; a mesh `all` is every row x col. Where no mesh is said and several machines, slices, topologies or mesh orders are, each is taken at the mesh on which a product, a
/// block or a collective over all devices is the fastest (ComparedSystem::is_mesh_searched). Each with
///   gemm        dataflows (os) x algorithms (collective, meshslice) x slice counts
///   collective  kinds x axes x bytes, a group each, x algorithms (all)
///   msccl       bytes, a group each, x files; beside a collective those that compute it on all devices
///   program     ways to choose (default, bytes, time); if it is a GEMM on rows and columns, its algorithms x slice counts (2, 4, 8, 16) beside them
///   workload    algorithms (collective, meshslice); its dataflows and slice counts are the fastest unless they are given
/// Values stand between commas; those of `mesh` and `axis`, which have commas of their own, in several texts of the field. The algorithm `all` is every
/// name. Everything is read before anything is simulated, so that a typing error does not cost minutes. Errors: what is missing or unknown; of a single
/// system why there is none.
Expected<ComparisonSetup> read_comparison(const Fields& fields, const std::vector<std::vector<Override>>& variations);

}  // namespace podsim
