// What is text: UTF-8, as all of podsim's own formats and outputs are.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace podsim {

/// Position of the first byte that is no text: not UTF-8, or NUL.
std::optional<std::size_t> first_non_text(std::string_view text);

}  // namespace podsim
