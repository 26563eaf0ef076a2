// Correct schedules to mutate: every GEMM algorithm and every collective, with small blocks on many kinds of meshes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"

namespace podsim::mutation {

struct Base {
  std::string name;
  Schedule schedule;  // lowered
};

/// A GEMM of one algorithm on a random mesh of 2 to 16 devices, with random options; sometimes with its backward pass.
Expected<Base> small_gemm(const GemmAlgorithmEntry& algorithm, DType dtype, std::uint64_t seed);
/// A forward GEMM on rows x columns (an algorithm along one axis: rows * columns devices); its extents are the smallest that divide.
Expected<Base> gemm_on(const GemmAlgorithmEntry& algorithm, Dataflow dataflow, DType dtype, int rows, int columns, const GemmOptions& options);

/// Each algorithm with each kind that it supports.
const std::vector<std::pair<std::string_view, CollectiveKind>>& algorithms_and_kinds();
/// A collective on a random mesh of 2 to 16 devices.
Expected<Base> small_collective(std::string_view algorithm, CollectiveKind kind, DType dtype, std::uint64_t seed);
/// A collective along all axes of a torus, with one or two elements per device.
Expected<Base> collective_on(std::string_view algorithm, CollectiveKind kind, DType dtype, const std::vector<int>& extents);

}  // namespace podsim::mutation
