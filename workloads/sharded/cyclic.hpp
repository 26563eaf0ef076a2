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

/// An array in two forms: dealt out in blocks, and in contiguous blocks.
struct CyclicArray {
  const Mesh& mesh;
  const Extents& extents;
  const CyclicBlocks& blocks;
  const Sharding& cyclic;      // of the block-cyclic form
  const Sharding& contiguous;  // of the other one: along a block-cyclic dimension the same axes (S devices, of whose blocks there is a multiple of S^2), or none
  DType dtype = DType::f32;
};

/// The sharding in contiguous blocks that a block-cyclic form is converted to or from: where an all-to-all would not be even, a dimension is whole.
Sharding contiguous_beside(const Mesh& mesh, const Extents& extents, const CyclicBlocks& blocks, const Sharding& cyclic);

/// A step of such a conversion, for people. Bytes are per device.
struct CyclicStep {
  enum class Kind { exchange, gather, slice } kind = Kind::exchange;
  int dim = 0;  // of the array
  std::vector<int> axes{};
  Bytes input{}, received{};
};
std::vector<CyclicStep> steps_of(const CyclicArray& array, bool to_cyclic);

/// Appends what makes blocks contiguous, or deals them out, dimension by dimension: an all-to-all; an all-gather, if the dimension is whole then; a slice, if it was
/// whole, which moves nothing. The regions are whole blocks.
Tasks write_contiguous(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& cyclic, const Region& contiguous, const Tasks& after);
Tasks write_cyclic(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& contiguous, const Region& cyclic, const Tasks& after);

}  // namespace podsim
