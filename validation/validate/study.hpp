// Studies: what a dataset is used to prove (study.proto).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validation/calibration/fit/calibrate.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/trust.hpp"

namespace podsim {

/// The rows of a dataset that are all of this; what is empty lets everything pass.
struct RowFilter {
  std::string dataset;  // empty: the study's own
  std::vector<ObservedOp> ops;
  std::vector<int> devices;
  std::vector<ObservedSchedule> schedules;
  std::optional<bool> with_product;  // collectives with a matmul, or all others
  std::optional<Fields> system;      // without a machine
  SourceLocation where;
};
bool passes(const RowFilter& filter, const Observation& observation);

struct Hypothesis {
  std::string name;
  PredictOptions predict;
};

/// Of |error|.
struct ErrorBound {
  double median = 0, p95 = 0;
};

struct StudyCase {
  std::string name;
  Tier tier = Tier::other_sizes;
  std::vector<RowFilter> fit, predict;
  std::optional<Fields> fit_system;
  int parts = 0;  // 0: no predicted row is fitted
  int turns = 0;  // parts that are fitted in turn
  std::vector<NamedPrior> priors;
  std::vector<std::string> hold;
  std::optional<ErrorBound> bound;
  std::string no_bound;  // why there is none
  SourceLocation where;
};

/// A value of the machine that is otherwise where this was measured.
struct StudyValue {
  std::string path, value, source;
  SourceLocation where;
};

struct Study {
  std::string machine;
  SourceLocation machine_where;
  std::vector<StudyValue> values;
  std::optional<Fields> system;
  std::vector<Hypothesis> hypotheses;  // at least one: what `podsim run` does
  std::vector<StudyCase> cases;
};

/// Errors, with line and column: what is no study; no case; a case with both a bound and a reason for none, or neither; unknown operations, schedules
/// and algorithms; meshes that are none; parts of less than 2 or more than 16; a case without a system to run on.
Expected<Study> read_study(std::string_view text, const std::string& file);

}  // namespace podsim
