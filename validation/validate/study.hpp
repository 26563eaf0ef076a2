// Studies: what a dataset is used to prove (study.proto).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validation/calibration/fit/calibrate.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/trust.hpp"
#include "workloads/training/step.hpp"

namespace podsim {

/// The rows of a dataset that are all of this; what is empty lets everything pass.
struct RowFilter {
  std::string dataset;  // empty: the study's own
  std::vector<ObservedOp> ops;
  std::vector<int> devices;
  std::vector<ObservedSchedule> schedules;
  std::vector<int> groups;
  Bytes least{};                     // of tensor_bytes()
  std::optional<bool> with_product;  // collectives with a matmul, or all others
  std::vector<std::int64_t> points;  // of FFTs
  std::vector<std::string> meshes;
  std::vector<std::string> steps;    // of training steps
  std::vector<int> pods;
  std::vector<std::string> runs;     // how names of runs begin
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

/// Rows of several cases and datasets, and what their errors should be. A miss is shown, but is no failure.
struct Pool {
  std::string name;
  std::optional<ErrorBound> bar;
  std::optional<double> bar_large;  // of the median above 64 MiB
};

/// A value of the machine that is otherwise where this was measured.
struct StudyValue {
  std::string path, value, source;
  SourceLocation where;
};

struct StudyCase {
  std::string name;
  Tier tier = Tier::other_sizes;
  std::vector<RowFilter> fit, predict;
  std::optional<Fields> fit_system;
  int parts = 0;  // 0: no predicted row is fitted
  int turns = 0;  // parts that are fitted in turn
  std::vector<NamedPrior> priors;
  std::vector<std::string> hold, values;  // values: if any, the only ones that are fitted
  std::optional<ErrorBound> bound;
  std::string no_bound;  // why there is none
  std::vector<Pool> pools;
  std::vector<StudyValue> machine_values;  // beside those of the study
  SourceLocation where;
};

/// A training step that rows name. What MaxText's keys leave open follows from the slice of each row.
struct StudyStep {
  std::string name;
  std::vector<std::string> maxtext;  // KEY=VALUE
  TrainingStep step;                 // without keys
  std::string products;              // the algorithm of gemm_algorithms() by which layers are computed along row and col; empty: what `podsim run` chooses
  SourceLocation where;
};

/// A run that rows name: fields of a scenario without a machine.
struct StudyRun {
  std::string name;
  Fields fields;
  SourceLocation where;
};

/// What the host takes in every measured time.
struct HostTime {
  Seconds time;
  std::string source;
};

struct Study {
  std::string machine;
  SourceLocation machine_where;
  std::vector<StudyValue> values;
  std::optional<Fields> system;
  std::optional<HostTime> host;
  std::vector<StudyStep> steps;
  std::vector<StudyRun> runs;
  std::vector<Hypothesis> hypotheses;  // at least one: what `podsim run` does
  std::vector<StudyCase> cases;
  std::vector<std::string> same_machine;  // datasets of other sources
};

/// Errors, with line and column: what is no study; no case; a case with both a bound and a reason for none, or neither; unknown operations, schedules
/// and algorithms; meshes that are none; parts of less than 2 or more than 16; a case without a system to run on.
Expected<Study> read_study(std::string_view text, const std::string& file);
/// The same of a file that may have no case: its steps are looked at.
Expected<Study> read_steps(std::string_view text, const std::string& file);

}  // namespace podsim
