// What XLA's parser takes as the values of attributes. Internal to the reader (read_hlo.hpp).
//
// Source: xla/hlo/parser/hlo_parser.cc, as its parser in jaxlib 0.10.2 answers for every opcode (`unexpected attribute "foo". Allowed attributes: ..`), read
// 2026-11-29. It reads all modules of compilers that are stored here, but for attributes that other versions put on other opcodes; so a name is taken on any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "workloads/hlo/hlo_opcode.hpp"

namespace podsim {

struct HloAttributeValues {
  enum class Kind : std::uint8_t { any, truth, number, numbers, word } kind = Kind::any;
  std::int64_t least = 0;                      // of a number; `numbers` are lists of them
  std::span<const std::string_view> words{};  // the words that there are
};

/// Of an attribute of an instruction; nullopt: XLA's parser knows no attribute of that name, and did not in other versions that wrote modules seen here.
std::optional<HloAttributeValues> attribute_values(std::string_view name, HloOpcode opcode);

}  // namespace podsim
