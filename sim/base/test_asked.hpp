// A number of cases that whoever runs a test asks for by the environment.
#pragma once

#include <cstdlib>

namespace podsim::test {

/// The value of an environment variable; left out, what the suite tries. For a campaign by hand: PODSIM_HLO_MUTANTS=300000 build/bin/hlo_test.
template <class T>
T asked(const char* variable, T otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<T>(std::strtoull(text, nullptr, 10));
}

}  // namespace podsim::test
