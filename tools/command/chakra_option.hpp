// --chakra-out of `podsim run`: the run as Chakra execution traces.
#pragma once

#include <optional>

#include "tools/command/options.hpp"
#include "workloads/chakra/write_chakra.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

OptionGroup chakra_options();

struct ChakraRequest {
  std::string prefix;
  ChakraCollectives collectives = ChakraCollectives::whole;
};
/// nullopt: none are asked for. Errors: --chakra-collectives without --chakra-out; files that cannot be written.
Expected<std::optional<ChakraRequest>> chakra_request(const Options& options);

/// Writes PREFIX.<rank>.et for every device, and PREFIX.groups.json if collectives run in parts of the mesh. The run had RunOptions::fold off and
/// write_out_calls. Errors: those of ChakraWriter; a file cannot be written: it is as it was, those before it are complete.
Status write_chakra(const ChakraRequest& request, const Run& run);

}  // namespace podsim
