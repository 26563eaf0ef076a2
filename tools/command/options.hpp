// Options of the verbs: what there are, as data; parsing with near-misses named. Boost.Program_options does the parsing and is seen nowhere else.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "tools/console/console.hpp"
#include "tools/console/named_files.hpp"
#include "tools/report/table.hpp"
#include "workloads/scenario/fields.hpp"

namespace podsim {

/// What an option takes.
struct OptionValue {
  enum class Kind { flag, one, many };  // nothing; one text; one each time that it is given
  Kind kind = Kind::flag;
  std::string name{};                      // "N", "NAME|FILE": as --help shows it
  std::optional<std::string> otherwise{};  // the text where none is given
  FilesOf files = nullptr;                 // the files that a text names
  bool writes = false;                     // those files are written
  std::vector<std::string> choices{};      // the only texts that it takes; none: any
  Form form = Form::text;                  // how a text is written
  FieldKind::Names names = nullptr;        // what it may name
  bool is_field = true;                    // if a scenario has a field of the option's name: whether the option is that field
};
inline OptionValue flag() { return {.form = Form::flag}; }
inline OptionValue word(std::string name) { return {.kind = OptionValue::Kind::one, .name = std::move(name)}; }
inline OptionValue word(std::string name, std::string otherwise) { return {.kind = OptionValue::Kind::one, .name = std::move(name), .otherwise = std::move(otherwise)}; }
inline OptionValue words(std::string name) { return {.kind = OptionValue::Kind::many, .name = std::move(name)}; }
inline OptionValue input_file(std::string name, FilesOf files = one_file) { return {.kind = OptionValue::Kind::one, .name = std::move(name), .files = files, .form = Form::file}; }
inline OptionValue input_files(std::string name, FilesOf files = one_file) { return {.kind = OptionValue::Kind::many, .name = std::move(name), .files = files, .form = Form::file}; }
inline OptionValue output_file(std::string name, FilesOf files = one_file) {
  return {.kind = OptionValue::Kind::one, .name = std::move(name), .files = files, .writes = true, .form = Form::file};
}

inline OptionValue written_as(Form form, OptionValue value) {
  value.form = form;
  return value;
}

/// Of an option that is not the field of a scenario of its name.
inline OptionValue no_field(OptionValue value) {
  value.is_field = false;
  return value;
}

struct OptionSpec {
  std::string name;  // "slice", or with a letter: "output,o"
  OptionValue value;
  std::string help;
  bool usual = false;  // shown by a verb's first page of help
  [[nodiscard]] std::string long_name() const { return name.substr(0, name.find(',')); }
};
using OptionGroup = std::vector<OptionSpec>;
OptionGroup joined(std::vector<OptionGroup> groups);

/// What a command takes, as --help shows it.
struct DescribedCommand {
  std::string usage;  // the text above the options
  OptionGroup options;
  std::string positional;  // the option that words without one belong to; empty: none
};

/// Parsed options of one verb. An option that was not given has its default, or no value.
class Options {
 public:
  /// The program that gave them (tools/console/caller.hpp); nullptr: a command line.
  Caller* caller = nullptr;

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  /// Whether the command line names it: a default does not count, nor does an option that this verb does not have.
  [[nodiscard]] bool given(const std::string& name) const { return given_.contains(name); }
  [[nodiscard]] bool flag(const std::string& name) const { return given(name); }
  /// Whether the command line gives a field of a scenario by it.
  [[nodiscard]] bool gives_field(const std::string& name) const { return given(name) && !no_fields_.contains(name); }
  /// The option's text; an assert if it has none.
  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name).back(); }
  /// Of an option that may be repeated: every text, in order.
  [[nodiscard]] std::vector<std::string> texts(const std::string& name) const;
  [[nodiscard]] Expected<std::int64_t> integer(const std::string& name, std::int64_t low, std::int64_t high) const;
  /// As they were given, for a shell, without those that change no figure: files and form of output, --quiet, --threads.
  [[nodiscard]] const std::string& command_line() const { return command_line_; }
  /// The files that its values name.
  [[nodiscard]] const std::vector<NamedFile>& files() const { return files_; }

 private:
  friend class OptionParser;
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> given_, no_fields_;
  std::string command_line_;
  std::vector<NamedFile> files_;
};

/// Where an option's value is to blame: "--slice".
SourceLocation option(const std::string& name);

/// The same in terms of the command line: libraries name fields, in messages between backticks, `slice_count`; they are options here, --slice-count.
Diagnostic in_options(Diagnostic diagnostic);
std::string in_options(std::string message);

/// Prints an error as the contract has it (`FILE:LINE:COLUMN: message` or `podsim: error: message`) and returns its exit status.
/// Work that was cancelled is no error: it says so, with exit_interrupted. A schedule that cannot work on its data (Cause::data) gives exit_false.
int report(const Diagnostic& diagnostic, Console& console);

/// Prints warnings, `FILE:LINE:COLUMN: warning: message` or `podsim: warning: --option: message`: the first few, and how many more there are. The same texts
/// without "warning", for the notes of a report.
std::vector<std::string> warn(const std::vector<Diagnostic>& warnings, Console& console);

/// The options among arguments; a word that is none is the value of the option `positional`, if that is named, once unless it is repeatable. Errors:
/// what is unknown, repeated or lacks its value.
Expected<Options> parse_options(const std::vector<std::string>& arguments, const OptionGroup& described, const char* positional = nullptr);

/// The options as --help shows them, in lines of at most 100 columns.
std::string help_text(const OptionGroup& described);
/// A text in such lines.
std::string paragraph(const std::string& text);

/// What --help of a verb says above its options: usage/NAME.txt.
std::string_view usage_of(std::string_view name);

/// Parses one verb's arguments. Shows `usage` (with the options) and returns exit_done for --help; reports what is wrong. On success `status`
/// is empty. Outputs that are inputs are refused here, before anything is read (named_files.hpp).
struct Parsed {
  std::optional<int> status;
  std::optional<Options> options;
};
Parsed parse(const std::vector<std::string>& arguments, const OptionGroup& described, std::string_view usage, Console& console,
             const char* positional = nullptr);

/// The same, and what the verb does with them; an error is reported. A verb that takes several kinds of problem also takes their words, and has a page of help for each (kinds.hpp). Returns
/// the exit status.
int perform(const std::vector<std::string>& arguments, const OptionGroup& described, std::string_view verb, Console& console,
            Expected<int> (*work)(const Options&, Console&), const char* positional = nullptr);

/// --format -o --quiet. Of --format those that the verb prints, the first where nothing is said; any other is an error of parsing.
OptionGroup output_options(std::span<const Format> formats);
Format format_of(const Options& options);

/// Writes a text to -o FILE, or to the console. Errors: the file cannot be written.
Status write_output(const Options& options, const std::string& text, Console& console);
/// The same, told: the exit status.
int print_output(const Options& options, const std::string& text, Console& console);
/// For a program that calls the command and gets JSON: what is printed for people.
void tell_table(const std::function<std::string()>& table, Console& console);

}  // namespace podsim
