// A sharding as JSON.
#pragma once

#include <string>

#include "sim/mesh/hlo_sharding.hpp"
#include "tools/report/sharding_drawing.hpp"

namespace podsim {

/// What `podsim show sharding` was asked for.
struct ShardingQuestion {
  Extents extents;    // before padding; those of `array` are padded
  ShownArray array;   // without a mesh of its own if the sharding is given as HLO without one: its mesh then is that of the tiles
  bool named = true;  // the mesh has the user's axes, so that there is a PartitionSpec
  HloSharding hlo;
};

/// Elements that padding adds, and their share of the padded array.
struct PaddedElements {
  double elements = 0, share = 0;
};
PaddedElements padding_of(const ShardingQuestion& question);

/// "16x16, P('x', None) on x=4,y=2"
std::string sharding_title(const ShardingQuestion& question);
/// `array, mesh, spec, partition_spec, hlo, platform, padded, shards: [ {devices, rows: [a,b), columns: [a,b)} ]`; of arrays of rank 3 and more
/// shards have `ranges` too, of every dimension. With one shown dimension its ranges are the columns and the rows are [0,1).
std::string sharding_json(const ShardingQuestion& question, const BlockGrid& grid);

}  // namespace podsim
