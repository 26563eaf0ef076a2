// Modules in binary form, HloProto and HloModuleProto, written as the text that XLA prints of them, which read_hlo.hpp reads: both forms mean the
// same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// Whether bytes are a message, not a text: among the first there are control characters.
bool is_hlo_proto(std::string_view bytes);

struct HloProtoText {
  std::string text;
  std::vector<std::string> lines{};  // of each line of the text, the instruction or computation that it is of; empty: of none
};

/// The text of a module, at most `most` bytes of it. Instructions stand in the order of the schedule, asynchronous operations of one instruction as
/// all-gather-start, constants with all their values, those of types below 16 bits that are no whole numbers as {...}. The message does not hold the
/// number of partitions, unless devices were assigned. Errors: no module; names and numbers of instructions, computations, types and dimensions that
/// are none or are not there, each once; more than `most` bytes. What else is wrong, the text's reader finds.
Expected<HloProtoText> text_of_hlo_proto(std::string_view bytes, const std::string& file, std::size_t most);

}  // namespace podsim
