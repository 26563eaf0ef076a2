// Options of the verbs, on Boost.Program_options: groups that verbs share, parsing with near-misses named, values with units.
#pragma once

#include <array>
#include <boost/program_options.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/text.hpp"
#include "tools/command/console.hpp"

namespace podsim {

namespace po = boost::program_options;

/// Prints an error as the contract has it (`FILE:LINE:COLUMN: message` or `podsim: error: message`) and returns its exit status.
/// Work that was cancelled is no error: it says so, with exit_interrupted.
int report(const Diagnostic& diagnostic, Console& console);

/// Parsed options of one verb. An option that was not given has its default, or no value.
class Options {
 public:
  explicit Options(po::variables_map values) : values_{std::move(values)} {}

  [[nodiscard]] const po::variables_map& values() const { return values_; }
  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) > 0; }
  /// Whether the command line names it: a default does not count, nor does an option that this verb does not have.
  [[nodiscard]] bool given(const std::string& name) const { return has(name) && !values_[name].defaulted(); }
  [[nodiscard]] bool flag(const std::string& name) const { return values_[name].as<bool>(); }
  /// The same options but for one, which has this text: as if the command line had said so.
  [[nodiscard]] Options with(const std::string& name, std::string text) const;
  /// The option's text; an assert if it has none.
  [[nodiscard]] const std::string& text(const std::string& name) const { return values_[name].as<std::string>(); }
  /// Of an option that may be repeated: every text, in order.
  [[nodiscard]] std::vector<std::string> texts(const std::string& name) const;
  [[nodiscard]] Expected<std::int64_t> integer(const std::string& name, std::int64_t low, std::int64_t high) const;
  /// "on" or "off".
  [[nodiscard]] Expected<bool> on_off(const std::string& name) const;
  /// A whole number, or a list of them, separated by commas.
  [[nodiscard]] Expected<std::vector<std::int64_t>> integers(const std::string& name, std::int64_t low, std::int64_t high) const;

 private:
  po::variables_map values_;
};

/// Where an option's value is to blame: "--slice".
SourceLocation option(const std::string& name);

/// The options among arguments; a word that is none is the value of the option `positional`, if that is named, once unless it is repeatable. Errors:
/// what is unknown, repeated or lacks its value.
Expected<Options> parse_options(const std::vector<std::string>& arguments, const po::options_description& described,
                                const char* positional = nullptr);

/// Parses one verb's arguments. Shows `usage` (with the options) and returns exit_done for --help; reports what is wrong. On success `status`
/// is empty. Outputs that are inputs are refused here, before anything is read (file_options.hpp).
struct Parsed {
  std::optional<int> status;
  std::optional<Options> options;
};
Parsed parse(const std::vector<std::string>& arguments, const po::options_description& described, std::string_view usage, Console& console,
             const char* positional = nullptr);

/// How results are printed.
enum class Format { table, json, csv };
inline constexpr std::array table_json_csv{Format::table, Format::json, Format::csv};
inline constexpr std::array table_json{Format::table, Format::json};
inline constexpr std::array table_only{Format::table};
/// --format -o --quiet. Of --format those that the verb prints, the first where nothing is said; any other is an error of parsing.
po::options_description output_options(std::span<const Format> formats);
Format format_of(const Options& options);

// Groups of options.
po::options_description pod_options(bool several);      // --machine --slice --wrap --mesh --set
po::options_description what_if_options(bool several);  // --topology --pods --fail --degrade --straggler --seed
po::options_description problem_options(bool several);  // --gemm --algorithm ... ; several: lists for compare


/// Writes a text to -o FILE, or to the console. Errors: the file cannot be written.
Done write_output(const Options& options, const std::string& text, Console& console);

}  // namespace podsim
