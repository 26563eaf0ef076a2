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
  std::string flags{};                // of a module: how XLA is asked for it (xla_flags.hpp)
};

/// "--rewrite reduce-scatter --collectives auto", as a shell takes it; of a configuration of MaxText its own keys, "remat_policy=full".
std::string words_of(const Remedy& remedy);

/// What a change sets: another one of the same subject is in its place, not beside it. The field; of MaxText's keys the key, of other fields that may have several texts the text.
std::string subject_of(const FieldChange& change);

/// Those that the run's kind of problem has, the promising ones first. Whether one is possible shows when it is tried.
std::vector<Remedy> remedies_of(const Fields& fields, const Run& run);

/// A remedy that people look for, and that is not to be tried here.
struct RefusedRemedy {
  Remedy remedy;
  std::string why;
};
std::vector<RefusedRemedy> needless_remedies(const Fields& fields, const Run& run);

/// All links of the run's slices, and between them, `factor` times as fast.
Remedy faster_links(const Run& run, double factor);

/// The fields with a remedy.
Fields with(Fields fields, const Remedy& remedy);

}  // namespace podsim
