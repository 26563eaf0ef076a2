// Batches and their results as bytes (batch.proto).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/sweep/point_runner.hpp"

namespace podsim {

struct BatchPoint {
  std::size_t position = 0;
  std::string input_key;  // InputKeys, where the batch was made
  PointInputs inputs;
};

struct BatchResults {
  std::vector<FinishedWork> work;
  PointFailures failures;
  double seconds = 0;
};

/// `version`: of the program. Reading: errors: no such message; one of another version or build.
std::string write_batch(const std::vector<BatchPoint>& points, const std::string& version);
Expected<std::vector<BatchPoint>> read_batch(std::string_view message, const std::string& version);
std::string write_results(const BatchResults& results, const std::string& version);
Expected<BatchResults> read_results(std::string_view message, const std::string& version);

}  // namespace podsim
