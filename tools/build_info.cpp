#include "tools/build_info.hpp"

#include <fmt/format.h>

namespace podsim {

std::string version_and_build() { return fmt::format("{} (commit {}, {})", PODSIM_VERSION, built_commit, PODSIM_BUILD); }

}  // namespace podsim
