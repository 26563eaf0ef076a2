#include "algorithms/gemm/dataflow.hpp"

namespace podsim {

std::string_view name_of(Dataflow dataflow) { return traits_of(dataflow).name; }

std::optional<Dataflow> dataflow_named(std::string_view name) {
  for (const Dataflow dataflow : all_dataflows)
    if (name_of(dataflow) == name) return dataflow;
  return std::nullopt;
}

}  // namespace podsim
