// Block-cyclic arrays: blocks are dealt out to the devices along an axis in turn, so that all have work while a factorisation goes from the first block
// to the last.
#pragma once

#include <vector>

#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// The blocks of a block-cyclic array by dimension (algorithms/lu/lu.hpp); 0: contiguous. Empty: all are.
using CyclicBlocks = Extents;

/// The extents of one device's block of an array, with three dimensions [blocks, 1, block] for each block-cyclic one, and the mesh axes of each.
struct StoredBlock {
  Extents extents;
  std::vector<std::vector<int>> axes;
  bool padded = false;         // some devices have a block less: `unpadded` and `grouped` of the buffer say so
  std::vector<int> grouped{};  // how many of these dimensions each dimension of the array has
};
StoredBlock stored_block(const Extents& array, const Sharding& sharding, const CyclicBlocks& cyclic, const Mesh& mesh);

/// An array in a sharding, in blocks.
struct CyclicArray {
  const Mesh& mesh;
  const Extents& extents;
  const Sharding& sharding;
  const CyclicBlocks& blocks;  // of S devices along a dimension, S^2 blocks divide it
  DType dtype = DType::f32;
};
/// Appends what makes its blocks contiguous, or deals them out: an all-to-all for each block-cyclic dimension that several devices divide. One of the regions
/// is contiguous, the other block-cyclic.
Tasks write_contiguous(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& cyclic, const Region& contiguous, const Tasks& after);
Tasks write_cyclic(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& contiguous, const Region& cyclic, const Tasks& after);

}  // namespace podsim
