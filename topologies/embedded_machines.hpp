#pragma once

#include <span>
#include <string_view>

namespace podsim {

/// A file of the repository compiled into the program. Both views live as long as the program.
struct EmbeddedFile {
  std::string_view name;  // without folder and extension: "tpu_v4"
  std::string_view text;
};

/// Every topologies/machines/*.textproto, sorted by name, so that the installed command needs no data folder.
std::span<const EmbeddedFile> embedded_machines();

}  // namespace podsim
