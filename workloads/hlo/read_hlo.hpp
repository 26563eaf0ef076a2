// Reads optimised HLO: compiled.as_text(), *.after_optimizations.txt, and their binary forms.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Larger texts are refused as soon as their size is known: a module in memory takes about six times its text.
inline constexpr Bytes most_hlo_bytes{std::int64_t{256} << 20};

struct ReadHloOptions {
  /// Takes cut files: without ENTRY, with missing computations, operands of unknown name, an end in the middle. Each is a counted warning.
  bool tolerant = false;
};

/// The module in a text. Reads what XLA prints in any of its forms: operands with or without shapes, names with or without %, computations with or
/// without parameter list, written beside or inside the instruction that calls them, instructions over several lines, comments, elided literals,
/// tables of files and functions behind the header, replica groups in three spellings, asynchronous forms. O(text); nesting is bounded.
/// An unknown opcode is kept as such, with all its attributes, and warned of. Attributes of a name that XLA's parser has for no opcode, which the next XLA may
/// have, are kept verbatim and counted (HloSummary::unknown_attributes); values that it does not take are refused (attribute_values.hpp).
/// Errors, FILE:LINE:COLUMN: anything else; a name that is undefined or defined twice; a computation that calls itself; no ENTRY.
Expected<HloModule> parse_hlo(std::string_view text, const std::string& file, const ReadHloOptions& options = {});
/// The same of text, or of a module in binary form, HloProto or HloModuleProto, as the first bytes tell. Places in the latter are names of instructions.
Expected<HloModule> read_hlo(std::string_view bytes, const std::string& file, const ReadHloOptions& options = {});
/// The same of a file, which gzip may have compressed; "-" is the standard input. Errors: also those of reading it; more than most_hlo_bytes, unpacked.
Expected<HloModule> read_hlo_file(const std::string& path, const ReadHloOptions& options = {});

/// One instruction alone, as profiles have it: its operands are names that nothing defines.
struct HloLine {
  HloInstruction instruction;  // without operands, calls and control_predecessors
  bool is_root = false;
  std::vector<std::string> operand_names{};
  std::vector<std::optional<HloShape>> operand_shapes{};  // as written, if they are
  std::vector<std::pair<HloRole, std::string>> called{};
};
/// Errors: it is none. What follows the instruction on the same line belongs to its attributes. Attributes that are cut off are left out.
Expected<HloLine> parse_hlo_line(std::string_view text, const SourceLocation& where = {});

}  // namespace podsim
