// One instruction as the text has it: names are not looked up yet. Internal to the reader (read_hlo.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// A name and where it stands.
struct HloReference {
  std::string_view name;
  std::size_t at = 0;
  std::optional<SharedValue<HloShape>> shape{};  // of an operand, if written before it
};

struct HloCallReference {
  HloRole role = HloRole::calls;
  std::string_view name;  // empty: of a computation written inside the attribute
  std::size_t at = 0;
  int computation = -1;  // of one written inside
};

/// Views into the text that is read.
struct HloStatement {
  std::string_view name, word;  // word: the opcode as written
  std::size_t at = 0;           // of the instruction's first character
  std::size_t operands_at = 0;  // of the bracket behind the opcode
  bool is_root = false;
  SharedValue<HloShape> shape{};
  HloOperation operation{};
  std::vector<HloReference> operands{}, control_predecessors{};
  std::vector<HloCallReference> calls{};
  std::int64_t number = 0;
  std::string op_name{}, source_file{}, source_line{};
  std::int64_t stack_frame = 0;     // in the tables above the computations; 0: none
  HloAttributes attributes{};
  bool has_attributes = false;      // whether `attributes` differs from none
  bool bad_backend_config = false;  // it is no JSON, so that nothing was read from it
};

/// Reads the computation written inside an attribute, the cursor at its "{", and gives its number. Errors: as of any computation.
using ReadInlineComputation = std::function<Expected<int>(HloCursor& cursor, std::string_view caller, HloRole role)>;

class HloStatementReader {
 public:
  explicit HloStatementReader(HloCursor& cursor, ReadInlineComputation read_inline = {}) : cursor_{cursor}, read_inline_{std::move(read_inline)} {}

  /// The instruction here. Moves behind its last attribute.
  Status read(HloStatement& statement);
  /// The same up to the opcode's closing bracket, and behind it what can be read: a line of a profile may be cut off.
  Status read_cut(HloStatement& statement);

 private:
  Status read_front(HloStatement& statement);
  Status read_operands(HloStatement& statement);
  Expected<SharedValue<HloShape>> read_shape();
  Status read_attribute(HloStatement& statement);
  Status read_call(HloStatement& statement, HloRole role);
  Status read_calls(HloStatement& statement, HloRole role);

  HloCursor& cursor_;
  ReadInlineComputation read_inline_;
  std::unordered_map<std::string_view, SharedValue<HloShape>> shapes_;  // by text
};

/// Of hlo_attributes.cpp: the value of an attribute behind its "=", into `statement`. `role` is set and nothing read for one that names
/// computations; a list of them where `several`.
struct HloCallAttribute {
  HloRole role = HloRole::calls;
  bool several = false;
};
std::optional<HloCallAttribute> call_attribute_named(std::string_view name);
Status read_attribute_value(HloCursor& cursor, std::string_view name, HloStatement& statement);

/// Of hlo_literal.cpp: the text between the brackets of constant(...), up to the closing one.
Status read_literal(HloCursor& cursor, const HloShape& shape, HloLiteral& literal);

/// Of hlo_backend_config.cpp: what is read from a backend_config, and what is wrong with it. Some compilers write other things than JSON there, of which nothing is read;
/// a number that is read (a trip count, cycles) has to be one.
struct HloConfigProblem {
  bool is_json = true;
  std::string_view field{}, wanted{};  // the field that holds something else; empty: none
};
HloConfigProblem read_backend_config(const std::string& json, HloAttributes& attributes);

}  // namespace podsim
