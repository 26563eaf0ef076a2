// A diagnosis as a table and as JSON.
#pragma once

#include <string>

#include "validation/diagnose/diagnose.hpp"

namespace podsim {

/// The best `most` of the hypotheses and the healthy system.
std::string diagnosis_table(const Diagnosis& diagnosis, std::size_t most);
std::string diagnosis_json(const Diagnosis& diagnosis);

}  // namespace podsim
