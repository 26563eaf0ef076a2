// What was built: for `podsim --version`, and for whoever reports a number.
#pragma once

#include <string>

namespace podsim {

/// "1d8b7d6c0f", with "-dirty" where files had been changed; "unknown" without a repository.
extern const char* const built_commit;

/// "0.1.0 (commit 1d8b7d6c0f, Release, GNU 12.2.0)"
std::string version_and_build();

}  // namespace podsim
