// Scenarios as messages: what the files of scenarios, plans, studies and sweeps share. Only readers and writers include this.
#pragma once

#include <string>
#include <vector>

#include "sim/config/message_file.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/scenario.pb.h"

namespace podsim {

/// The values of a field other than `case` and `set`, as texts: empty where a flag is false.
std::vector<std::string> values_of(const proto::Scenario& message, const FieldKind& field);

/// One scenario. Notes in `file` what is wrong: several values of a field, and cases, which belong to sweeps.
Fields read_fields(const proto::Scenario& message, MessageFile& file, const Place& root);

void write_fields(const Fields& fields, proto::Scenario& message);

}  // namespace podsim
