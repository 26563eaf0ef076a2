// The enumerators of schedules in saved files. Internal to sim/config. Kinds and dtypes are matched by name, so that their order in C++ may change
// while the numbers in saved files stay.
#pragma once

#include "sim/config/message_file.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

inline constexpr FileFormat schedule_format{"a schedule", 'S', schedule_format_version};

/// The number of a value in schedule.proto. Every value has one (an assert; a test checks all).
int saved_number(DType dtype);
int saved_number(LocalKind kind);
int saved_number(CollectiveKind kind);
int saved_number(ReferenceKind kind);

/// The value with this number, which must be one of schedule.proto (Protobuf admits no other).
DType dtype_numbered(int number);
LocalKind local_kind_numbered(int number);
CollectiveKind collective_kind_numbered(int number);
ReferenceKind reference_kind_numbered(int number);

}  // namespace podsim
