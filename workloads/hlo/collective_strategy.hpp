// Which algorithm of the table is what a TPU's compiler says of a collective: colours, phases, rings.
#pragma once

#include <string>
#include <vector>

#include "algorithms/collectives/axis_cells.hpp"
#include "sim/schedule/schedule.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Of the collective, or of the fusion that it is in. nullptr: the module does not say it.
const HloStrategy* strategy_of(const HloInstruction& collective, const HloInstruction& runs_as);

/// "StrategyND: 2 colours, rings of 16, 16"; "3DAllGatherOnMajorDim"
std::string to_text(const HloStrategy& strategy);

/// The name of the algorithm along these axes (algorithms/collectives/collectives.hpp): "rotations" for several phases in several colours and for a gather of which only the number of dimensions is told, "hamiltonian-ring"
/// for one ring through several dimensions. Empty where that is for the machine to say: along one dimension (a ring or line either way), one colour in
/// several phases (dimension after dimension), and a ring through more devices than the algorithm takes.
/// An axis that is not folded has the dimensions that `cells` knows; where its devices follow each other as neighbours around one ring it is that ring.
///   cost    the axes' dimensions
///   example {"StrategyND", 2, {16, 16}} on x=16,y=16: "rotations"; {"UniDirection1DRingStrategy", 2, {8}} on 8 devices as 2x4: "hamiltonian-ring"
std::string algorithm_of(const HloStrategy& strategy, const Mesh& mesh, const std::vector<AxisView>& axes, const CellRule& cells = {});

}  // namespace podsim
