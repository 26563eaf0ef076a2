// What to run as people write it: texts, by the names that scenario.proto gives them. A command line fills them from its options; scenario, plan and
// study files from a message; a sweep from one of its combinations. read_scenario.hpp makes values of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// How the text of a field, or of any other option of the command, is written.
enum class Form {
  flag,          // no text: it is given or not
  count,         // a whole number
  number,        // "0.5"
  amount,        // with a unit: "16MiB", "940MHz"
  word,          // one of those that the placeholder lists: "auto|off"
  name,          // one of FieldKind::names()
  text,
  named_texts,   // one text, or one for each of several: "8", "in_proj=8,ff1=4"
  pairs,         // "NAME=VALUE"
  extents,       // "4x8x8"
  mesh,          // "row=32,col=8"
  gemm,          // "m=512,n=1024,k=256"
  shapes,        // "A=48x24"
  sharding,      // "x,-"
  shardings,     // "A=x,-"
  file,
  name_or_file,  // a text or a file
  named_files,   // "FILE", "NAME=FILE"
};
std::string_view name_of(Form form);
constexpr bool names_files(Form form) { return form == Form::file || form == Form::name_or_file || form == Form::named_files; }

/// One field, and the option of the same name. Everything about it but what is done with its value: to add one, a row in field_table.cpp, a line in scenario.proto.
struct FieldKind {
  enum class Part { system, problem, run };
  enum class Group { system, devices, precision, what_if, problem, workload, model, training, hlo, check, engine };  // fields that a verb takes together
  using Problems = std::array<std::string_view, 7>;
  using Names = std::vector<std::string> (*)();
  using Check = Status (*)(const std::string& text, std::string_view problem);

  std::string_view name;  // "slice_count"
  Group group;
  Form form;
  std::string_view placeholder{};  // "AxB[xC]": what the help shows as its value
  std::string_view help{};         // a phrase; "{}" stands for names(), "{gemm}" and "{collective}" for the algorithms of GEMMs and collectives
  std::string_view otherwise{};    // the default
  std::int64_t low = 1, high = std::int64_t{1} << 40;  // of a count
  Problems problems{};             // fields of problem_kinds() that it belongs to; none: any
  bool repeated = false;           // may be given several times, in files separated by semicolons
  bool usual = false;              // among the first options that the help of a verb or a kind shows
  Names names = nullptr;           // what it may name
  Check check = nullptr;           // what check_field() asks beside form, low and high
  /// Comparisons take lists.
  struct Compared {
    std::string_view suffix{};     // "[,...]" behind the placeholder
    bool repeated = false;         // the option may be given several times
    std::string_view help{}, otherwise{};
  } compared{};

  [[nodiscard]] constexpr Part part() const { return group <= Group::what_if ? Part::system : group == Group::engine ? Part::run : Part::problem; }
};
/// All of them, in the order of scenario.proto, which a sweep varies them in.
std::span<const FieldKind> scenario_fields();
/// nullptr: there is no such field.
const FieldKind* scenario_field(std::string_view name);

/// Its help, with the names in it; `compared`: of an option that takes lists.
std::string help_of(const FieldKind& field, bool compared = false);

/// The words that a field of form `word` takes: those of its placeholder.
std::vector<std::string> words_of(const FieldKind& field);
/// "expected os, ls or rs, found "xs""
Diagnostic wrong_word(std::string_view name, const std::string& text, const SourceLocation& where);
/// "a", "a or b", "a, b or c"
std::string alternatives(const std::vector<std::string>& names);
/// What is wrong with a text of a field by itself, in a problem of this kind ("maxtext": a training step of MaxText's keys), as far as that can be told without the other fields. Errors
/// are those of what reads the field.
Status check_field(const FieldKind& field, const std::string& text, std::string_view problem);

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
  /// Appends a value from a file: an empty text adds nothing; a text of a field that is repeated may list several values, separated by semicolons.
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
  /// Of a field of form `count`, or of one number of `named_texts`. Errors: a number outside its range.
  [[nodiscard]] Expected<std::int64_t> count(std::string_view name) const;
  /// Of a field of form `word`. Errors: another word.
  [[nodiscard]] Expected<std::string> word(std::string_view name) const;
  /// A whole number whose range depends on others. Errors: a number outside of it.
  [[nodiscard]] Expected<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) const;

  /// The error of a file that a field names, moved to the place where the field is given unless it has a place in that file.
  [[nodiscard]] Diagnostic of_named_file(std::string_view name, Diagnostic error) const;
  /// A diagnostic about a field, moved to the place where this field is given.
  [[nodiscard]] Diagnostic placed(Diagnostic diagnostic) const;

 private:
  std::map<std::string, std::vector<FieldText>, std::less<>> given_;
};

}  // namespace podsim
