// What to run as people write it: texts, by the names that scenario.proto gives them. A command line fills them from its options; scenario, plan and
// study files from a message; a sweep from one of its combinations. read_scenario.hpp makes values of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// One field: its name, part and form.
struct FieldKind {
  enum class Part { system, problem, run };
  enum class Form { text, texts, integer, flag };  // texts: may be given several times
  std::string_view name;                           // "slice_count"
  Part part = Part::system;
  Form form = Form::text;
  std::string_view otherwise{};  // the default
};
/// All of them, in the order of scenario.proto, which a sweep varies them in.
std::span<const FieldKind> scenario_fields();
/// nullptr: there is no such field.
const FieldKind* scenario_field(std::string_view name);

struct FieldText {
  std::string text;
  SourceLocation where;
};

struct KnownObjects;  // known_objects.hpp

/// The given fields with their texts. Names must be in scenario_fields(): asserted.
class Fields {
 public:
  /// Objects in memory that texts may name; nullptr: none.
  std::shared_ptr<const KnownObjects> known{};

  /// Replaces the texts of a field.
  void set(std::string_view name, std::string text, SourceLocation where);
  /// Appends a text to a field.
  void add(std::string_view name, std::string text, SourceLocation where);
  /// Appends a value from a file: an empty text adds nothing; a text of a field of form `texts` may list several values, separated by semicolons.
  void add_value(std::string_view name, const std::string& text, const SourceLocation& where);
  void erase(std::string_view name);
  /// Takes every field that is not given here from `rest`.
  void complete(const Fields& rest);

  [[nodiscard]] bool has(std::string_view name) const;
  /// The last given text, or the default.
  [[nodiscard]] std::string text(std::string_view name) const;
  /// The fields that are given, in the order of scenario_fields().
  [[nodiscard]] std::vector<const FieldKind*> given() const;
  [[nodiscard]] std::vector<FieldText> texts(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const { return has(name); }
  /// The place of the last given text; of_field() if there is none.
  [[nodiscard]] SourceLocation where(std::string_view name) const;
  [[nodiscard]] Expected<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) const;

  /// The error of a file that a field names, moved to the place where the field is given unless it has a place in that file.
  [[nodiscard]] Diagnostic of_named_file(std::string_view name, Diagnostic error) const;
  /// A diagnostic about a field, moved to the place where this field is given.
  [[nodiscard]] Diagnostic placed(Diagnostic diagnostic) const;

 private:
  std::map<std::string, std::vector<FieldText>, std::less<>> given_;
};

}  // namespace podsim
