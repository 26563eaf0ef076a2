// For which devices a module was compiled: the JSON that may stand beside it, NAME.json beside NAME.hlo or NAME.hlo.gz. The module itself tells how
// many there are, not where they are.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// `{"machine": "tpu_v5e", "slice": "4x4", "slices": 1, "axes": {"x": 4, "y": 4}, "coords": [[0, 0, 0], ..], "cores": [0, ..], "slice_index": [0,
/// ..], "devices": [0, ..]}`; other keys are not read. In front of the slice may stand a name and a colon, as topology_name of JAX has it: "v5e:4x4".
struct CompiledFor {
  struct Device {  // as JAX tells it: d.coords, d.core_on_chip, d.slice_index
    std::array<int, 3> coords{};
    int core = 0, slice = 0;
  };
  std::string file;
  std::string machine{}, slice{};                   // empty: not told
  int slices = 1;                                   // as slice_index counts them, from its least one on; else as `slices` says
  std::vector<std::pair<std::string, int>> axes{};  // of the mesh
  std::vector<Device> devices{};                    // in the order of the mesh, that is of partitions; none: not told
  std::map<std::string, SourceLocation, std::less<>> places{};  // of the keys that the file has
  /// Of a key; the file's beginning if it does not have it.
  [[nodiscard]] SourceLocation where(std::string_view key) const;
};

/// nullopt: there is none beside the module, or it tells nothing of these. Errors: it cannot be read, is no JSON, or has something else in these
/// keys; a device twice; no slices, or other than slice_index has.
Expected<std::optional<CompiledFor>> read_compiled_for(const std::string& module_path);

}  // namespace podsim
