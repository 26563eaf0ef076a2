// The table of NCCL's example tuner plugin: --nccl-tuner of a run is its choice, --write-nccl-tuner of a comparison what that would choose.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

OptionGroup nccl_tuner_input();
OptionGroup nccl_tuner_output();

/// With the algorithm that the table has for the collective; a note says which line. Unchanged without --nccl-tuner. Errors: those of read_nccl_tuner(); a problem that is no collective; an algorithm beside it; no line that
/// fits; an algorithm that podsim does not have.
Expected<Fields> with_nccl_tuner(Fields fields, const Options& options, const System& system, std::vector<std::string>& notes);

/// The table for the rows of a comparison of collectives: of each size the fastest of those algorithms that NCCL has, from that size up to the next. Errors: rows of no collective that the plugin tunes, of several slices or machines.
Expected<std::string> nccl_tuner_table(const std::vector<Row>& rows);

}  // namespace podsim
