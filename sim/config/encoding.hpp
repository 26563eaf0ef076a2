// The two saved forms of schedules and results.
#pragma once

namespace podsim {

/// text: textproto, for people and diffs. binary: the same messages in Protobuf's wire format behind a header, small and fast.
/// Readers distinguish them by the first byte.
enum class Encoding { text, binary };

}  // namespace podsim
