// What may make a run faster, as fields in place of its own: one table.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// A text of a field in place of the run's own; of the values that `set` gives a machine, one more.
struct FieldChange {
  std::string field, text;
  friend bool operator==(const FieldChange&, const FieldChange&) = default;
};

/// A change that somebody who wrote the run could make.
struct Remedy {
  std::string what;                   // "collectives begin when their operands are there"
  std::vector<FieldChange> changes;   // the first says what is tried; others belong to it
};

/// "--rewrite reduce-scatter --collectives auto", as a shell takes it.
std::string words_of(const Remedy& remedy);

/// Those that the run's kind of problem has, the promising ones first. Whether one is possible shows when it is tried.
std::vector<Remedy> remedies_of(const Fields& fields, const Run& run);

/// All links of the run's slices, and between them, `factor` times as fast.
Remedy faster_links(const Run& run, double factor);

/// The fields with a remedy.
Fields with(Fields fields, const Remedy& remedy);

}  // namespace podsim
