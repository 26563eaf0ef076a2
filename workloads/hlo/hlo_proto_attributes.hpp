// Attributes of the instructions of modules in binary form.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

namespace xla {
class FrontendAttributes;
class HloInstruction;
class OpSharding;
}  // namespace xla

/// What XLA writes behind the operands up to the computations that are called, in its order as far as that can be seen in what is read: ", name=value"
/// each. Errors: numbers of dimensions, devices, groups and axes that are none or are not there.
Expected<std::string> attributes_of_proto(const xla::HloInstruction& instruction);

/// {k=v,...} in the order of the keys. XLA writes a value in braces as it is, others in quotation marks.
std::string frontend_text(const xla::FrontendAttributes& attributes);

std::string sharding_text(const xla::OpSharding& sharding);

/// In quotation marks, those in it escaped.
std::string in_quotes(std::string_view text);

}  // namespace podsim
