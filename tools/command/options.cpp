#include "tools/command/options.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cctype>
#include <iterator>

#include "sim/base/invariant.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "tools/command/kinds.hpp"
#include "tools/command/usage_texts.hpp"
#include "tools/console/caller.hpp"
#include "tools/report/shell_word.hpp"
#include "tools/sweep/points.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

constexpr std::size_t widest_line = 100;

/// Words in lines; `indent` before each but the first, which begins at `column`.
std::string in_lines(const std::string& text, std::size_t column, std::size_t indent) {
  std::string lines;
  bool at_begin = true;
  for (const std::string& piece : split(text, ' ')) {
    if (!at_begin && column + 1 + piece.size() > widest_line) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!at_begin) {
      lines += ' ';
      ++column;
    }
    lines += piece;
    column += piece.size();
    at_begin = false;
  }
  return lines + "\n";
}

namespace po = boost::program_options;

std::string dashed(std::string_view field) { return "--" + option_of(field); }

/// "-o, --output FILE", "--threads N (=0)"
std::string shown_name(const OptionSpec& spec) {
  const std::string name = spec.long_name();
  std::string text = name == spec.name ? "--" + name : fmt::format("-{}, --{}", spec.name.back(), name);
  if (spec.value.kind != OptionValue::Kind::flag) text += " " + spec.value.name;
  return spec.value.otherwise ? fmt::format("{} (={})", text, *spec.value.otherwise) : text;
}

bool is_option(const std::string& word) { return word.size() >= 2 && word.front() == '-'; }

constexpr std::array<std::string_view, 4> format_names{"table", "json", "csv", "markdown"};  // as the enum has them

}  // namespace

/// One command line, by Boost.Program_options. Boost is left out where every word is `--name=value` or `--name` of a known option, as programs write
/// them (tools/python): to describe 80 options to it costs more than a small simulation.
class OptionParser {
 public:
  explicit OptionParser(const OptionGroup& group) : group_{group} {}

  Expected<Options> run(const std::vector<std::string>& arguments, const char* positional) {
    const auto wrong = [](const std::string& message) { return Diagnostic{{}, message}; };
    try {
      Options options;
      if (const auto plain = plain_words(arguments)) {
        for (const auto& [spec, value] : *plain)
          if (auto ok = take(*spec, value, options); !ok) return ok.error();
        fill_in(options);
        return options;
      }
      describe(positional);
      for (const po::option& option : parsed(arguments).options)
        if (auto ok = take(spec_of(option.string_key), option.value, options); !ok) return ok.error();
      fill_in(options);
      return options;
    } catch (const po::unknown_option& error) {
      std::vector<std::string> names;
      for (const OptionSpec& spec : group_) names.push_back("--" + spec.long_name());
      constexpr std::array<std::string_view, 3> of_nccl_tests{"-b", "-e", "-f"};
      if (std::ranges::find(of_nccl_tests, error.get_option_name()) != of_nccl_tests.end())
        return wrong(fmt::format("unknown option {}; sizes as nccl-tests has them, `-b 8 -e 128M -f 2`, are of `podsim compare`, which takes `--bytes 8..128M`, too", quoted(error.get_option_name())));
      const std::string meant = as_others_say(error.get_option_name());
      return wrong("unknown option " + quoted(error.get_option_name()) + (meant.empty() ? did_you_mean(error.get_option_name(), names) : meant) + "; --help lists the options");
    } catch (const po::too_many_positional_options_error&) {
      if (positional != nullptr) return wrong(fmt::format("expected options and one {}, found more; --help lists the options", positional));
      const std::string stray = stray_word(arguments);
      return wrong("expected options only, found " + quoted(stray) + meant_option(stray) + "; --help lists the options");
    } catch (const po::error& error) {
      return wrong(error.what());
    }
  }

 private:
  using PlainWords = std::vector<std::pair<const OptionSpec*, std::vector<std::string>>>;

  /// Tells Boost what there is.
  void describe(const char* positional) {
    for (const OptionSpec& spec : group_) {
      if (spec.value.kind == OptionValue::Kind::flag)
        described_.add_options()(spec.name.c_str(), spec.help.c_str());
      else
        described_.add_options()(spec.name.c_str(), po::value<std::vector<std::string>>()->composing(), spec.help.c_str());
      if (positional != nullptr && spec.long_name() == positional) words_.add(positional, spec.value.kind == OptionValue::Kind::many ? -1 : 1);
    }
  }

  /// nullptr: there is none.
  const OptionSpec* find_spec(std::string_view name) const {
    const auto found = std::find_if(group_.begin(), group_.end(), [&](const OptionSpec& spec) {
      const std::string_view full = spec.name;
      return full.substr(0, full.find(',')) == name;
    });
    return found == group_.end() ? nullptr : &*found;
  }

  const OptionSpec& spec_of(const std::string& name) const {
    const OptionSpec* const found = find_spec(name);
    PODSIM_ASSERT(found != nullptr);
    return *found;
  }

  /// The options with their values, if every word is one of a known name with its value behind `=`, or a flag. Nothing: Boost has to look, and tells
  /// errors.
  std::optional<PlainWords> plain_words(const std::vector<std::string>& arguments) const {
    PlainWords all;
    for (const std::string& word : arguments) {
      if (!word.starts_with("--")) return std::nullopt;
      const std::size_t equals = word.find('=');
      const OptionSpec* const spec = find_spec(std::string_view{word}.substr(2, equals == std::string::npos ? equals : equals - 2));
      if (spec == nullptr || (spec->value.kind == OptionValue::Kind::flag) != (equals == std::string::npos) || equals + 1 == word.size())
        return std::nullopt;
      all.emplace_back(spec, equals == std::string::npos ? std::vector<std::string>{} : std::vector{word.substr(equals + 1)});
    }
    return all;
  }

  /// How many words an option is, with its value.
  std::size_t words_of(const std::string& word) const {
    const bool is_long = word[1] == '-';
    if (is_long ? word.find('=') != std::string::npos : word.size() > 2) return 1;  // its value is in the same word
    const auto* option = described_.find_nothrow(is_long ? word.substr(2) : word, false);
    return option != nullptr && option->semantic()->max_tokens() > 0 ? 2 : 1;
  }

  /// The first word that is neither an option nor its value.
  std::string stray_word(const std::vector<std::string>& arguments) const {
    std::size_t i = 0;
    while (i < arguments.size() && is_option(arguments[i]) && arguments[i] != "--") i += words_of(arguments[i]);
    if (i < arguments.size() && arguments[i] == "--") ++i;
    return i < arguments.size() ? arguments[i] : "";
  }

  /// ", did you mean `--format json`?" for an option as other programs have it, where this command has what it means.
  std::string as_others_say(std::string_view name) const {
    struct Other {
      std::string_view name, option, meant;
    };
    constexpr std::array<Other, 17> others{{{"--json", "format", "--format json"}, {"--csv", "format", "--format csv"}, {"--gpus", "slice", "--slice 1x8"}, {"--ngpus", "slice", "--slice 1x8"}, {"--nodes", "slice", "--slice 4x8"},
                                            {"--chips", "slice", "--slice 4x4"}, {"--algo", "algorithm", "--algorithm"}, {"--size", "bytes", "--bytes 64M"}, {"--profile", "trace", "--trace"}, {"--dp", "mesh", "--mesh data=8"},
                                            {"--tp", "mesh", "--mesh col=8"}, {"--pp", "mesh", "--mesh stage=8"}, {"--ep", "mesh", "--mesh expert=8"}, {"--fsdp", "mesh", "--mesh fsdp=8"}, {"--batch-size", "batch", "--batch"},
                                            {"--slow-gpu", "straggler", "--straggler 0.3=0.5"}, {"--out", "output", "--output"}}};
    const auto* const other = std::ranges::find(others, name, &Other::name);
    return other == others.end() || find_spec(other->option) == nullptr ? "" : fmt::format(", did you mean `{}`?", other->meant);
  }

  /// ", did you mean `--machine tpu_v4`?", where a word is a value of a well-known option.
  std::string meant_option(const std::string& word) const {
    if (const std::size_t colon = word.rfind(':'); colon != std::string::npos && find_spec("machine") != nullptr && word.find_first_not_of("0123456789x", colon + 1) == std::string::npos)
      if (const auto machine = find_machine(word.substr(0, colon)); !machine) return fmt::format(": {}", machine.error().message);
    if (word.ends_with(".xml") && find_spec("topology") != nullptr) return fmt::format(", did you mean `--topology {}`?", word);
    if (const std::size_t digits = word.find_first_not_of("0123456789"); digits != std::string::npos && digits > 0 && word[digits] == 'x' && find_spec("slice") != nullptr)  // 8xH100
      if (find_machine(word.substr(digits + 1))) return fmt::format(", did you mean `{}:{}`?", word.substr(digits + 1), word.substr(0, digits));
    const std::vector<std::string> machines = shipped_machines();
    const bool extents = word.find('x') != std::string::npos && word.find_first_not_of("0123456789x") == std::string::npos;
    const char* const name = std::find(machines.begin(), machines.end(), word) != machines.end() ? "machine" : extents ? "slice" : nullptr;
    return name == nullptr || find_spec(name) == nullptr ? "" : fmt::format(", did you mean `--{} {}`?", name, word);
  }

  /// As Boost parses them, a few words at a time: for each word that it takes, it moves all that are left.
  po::parsed_options parsed(const std::vector<std::string>& arguments) const {
    constexpr std::size_t few = 256;
    constexpr auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::parsed_options all{&described_, po::command_line_style::allow_long};  // how errors name options
    for (std::size_t begin = 0, end = 0; begin < arguments.size(); begin = end) {
      while (end < arguments.size() && end - begin < few && arguments[end] != "--") end += is_option(arguments[end]) ? words_of(arguments[end]) : 1;
      if (end >= arguments.size() || arguments[end] == "--") end = arguments.size();  // behind `--` everything is a word
      const std::vector<std::string> some(arguments.begin() + static_cast<std::ptrdiff_t>(begin),
                                          arguments.begin() + static_cast<std::ptrdiff_t>(end));
      auto options = po::command_line_parser(some).options(described_).style(style).positional(words_).run().options;
      all.options.insert(all.options.end(), std::make_move_iterator(options.begin()), std::make_move_iterator(options.end()));
    }
    return all;
  }

  static Status take(const OptionSpec& spec, const std::vector<std::string>& value, Options& options) {
    const std::string name = spec.long_name();
    if (spec.value.kind != OptionValue::Kind::many && !options.given_.insert(name).second)
      return Diagnostic{{}, fmt::format("option '--{}' cannot be specified more than once", name)};
    options.given_.insert(name);
    std::vector<std::string>& texts = options.values_[name];
    for (const std::string& text : value) {
      if (const auto& choices = spec.value.choices; !choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
        return Diagnostic{option(name), fmt::format("expected {}, found {}", alternatives(choices), quoted(text))};
      texts.push_back(text);
    }
    constexpr std::array<std::string_view, 6> changes_no_figure{"output", "format", "quiet", "threads", "trace", "record"};
    if (std::find(changes_no_figure.begin(), changes_no_figure.end(), name) != changes_no_figure.end()) return success();
    options.command_line_ += (options.command_line_.empty() ? "--" : " --") + name;
    for (const std::string& text : value) options.command_line_ += " " + shell_word(text);
    return success();
  }

  /// `--machine tpu_v4:4x8x8` as --machine and --slice; `--machine v5p-512`, the name of a slice, as the machine that has it and the slice.
  void split_machine(Options& options) const {
    if (find_spec("slice") == nullptr || !options.given("machine") || options.given("slice")) return;
    const auto parts = machine_and_slice(options.values_["machine"].back());
    if (!parts) return;
    options.values_["machine"] = {parts->machine};
    options.values_["slice"] = {parts->slice};
    options.given_.insert("slice");
  }

  /// Defaults, and the files that values name.
  void fill_in(Options& options) const {
    split_machine(options);
    for (const OptionSpec& spec : group_) {
      const std::string name = spec.long_name();
      if (spec.value.otherwise && !options.has(name)) options.values_[name] = {*spec.value.otherwise};
      if (!spec.value.is_field) options.no_fields_.insert(name);
      if (spec.value.files == nullptr) continue;
      for (const std::string& text : options.texts(name))
        for (std::string& path : spec.value.files(text)) options.files_.push_back({"--" + name, std::move(path), spec.value.writes});
    }
  }

  const OptionGroup& group_;
  po::options_description described_;
  po::positional_options_description words_;
};

std::string help_text(const OptionGroup& described) {
  constexpr std::size_t widest_name = 32, indent = 2 + widest_name + 1;
  std::string text;
  for (const OptionSpec& spec : described) {
    const std::string name = shown_name(spec);
    text += fmt::format("  {:<{}}{}", name, widest_name, name.size() > widest_name ? "\n" + std::string(indent, ' ') : " ");
    text += in_lines(spec.help, indent, indent);
  }
  return text;
}

std::string paragraph(const std::string& text) { return in_lines(text, 0, 0); }

OptionGroup joined(std::vector<OptionGroup> groups) {
  OptionGroup all;
  for (OptionGroup& group : groups) all.insert(all.end(), std::make_move_iterator(group.begin()), std::make_move_iterator(group.end()));
  return all;
}

std::vector<std::string> Options::texts(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Expected<std::int64_t> Options::integer(const std::string& name, std::int64_t low, std::int64_t high) const {
  return parse_integer(text(name), low, high, option(name));
}

std::string_view usage_of(std::string_view name) {
  const auto texts = usage_texts();
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const EmbeddedFile& file) { return file.name == name; });
  PODSIM_ASSERT(found != texts.end());
  return found->text;
}

SourceLocation option(const std::string& name) { return {"--" + name, 0, 0}; }

Diagnostic in_options(Diagnostic diagnostic) {
  if (diagnostic.where.is_field) diagnostic.where = {dashed(diagnostic.where.file), 0, 0};
  diagnostic.message = in_options(std::move(diagnostic.message));
  return diagnostic;
}

std::string in_options(std::string message) {
  static constexpr std::array<std::string_view, 7> of_importers{"devices", "steps", "op", "axis_sizes", "trip_count", "branch", "custom_call"};
  for (std::size_t open = message.find('`'); open != std::string::npos; open = message.find('`', open)) {
    const std::size_t close = message.find('`', open + 1);
    if (close == std::string::npos) break;
    const std::string name = message.substr(open + 1, close - open - 1);
    if (scenario_field(name) == nullptr && std::find(of_importers.begin(), of_importers.end(), name) == of_importers.end()) {
      open = close + 1;
      continue;
    }
    message.replace(open, close + 1 - open, dashed(name));
  }
  return message;
}

int report(const Diagnostic& diagnostic, Console& console) {
  if (console.caller != nullptr) {
    console.caller->errors.push_back(diagnostic);
    return diagnostic.cause == Cause::cancelled ? exit_interrupted : diagnostic.cause == Cause::data ? exit_false : exit_bad_input;
  }
  if (console.err_is_terminal) fmt::print(console.err, "\r\033[K");  // a line of progress
  if (diagnostic.cause == Cause::cancelled) {
    fmt::print(console.err, "podsim: interrupted\n");
    if (console.told_interrupted != nullptr) console.told_interrupted();
    return exit_interrupted;
  }
  const Diagnostic told = in_options(diagnostic);
  fmt::print(console.err, "{}{}\n", told.where.line > 0 ? "" : "podsim: error: ", to_text(told));
  return diagnostic.cause == Cause::data ? exit_false : exit_bad_input;
}

std::vector<std::string> warn(const std::vector<Diagnostic>& warnings, Console& console) {
  constexpr std::size_t most = 5;
  std::vector<std::string> texts;
  if (!warnings.empty() && console.err_is_terminal) fmt::print(console.err, "\r\033[K");  // a line of progress
  for (const Diagnostic& warning : warnings) {
    if (texts.size() == most) {
      texts.push_back(fmt::format("and {} more", warnings.size() - most));
      fmt::print(console.err, "podsim: warning: {}\n", texts.back());
      break;
    }
    const Diagnostic told = in_options(warning);
    texts.push_back(to_text(told));
    if (told.where.line > 0)
      fmt::print(console.err, "{}\n", to_text(Diagnostic{told.where, "warning: " + told.message}));
    else
      fmt::print(console.err, "podsim: warning: {}\n", texts.back());
  }
  return texts;
}

Expected<Options> parse_options(const std::vector<std::string>& arguments, const OptionGroup& described, const char* positional) {
  return OptionParser{described}.run(arguments, positional);
}

Parsed parse(const std::vector<std::string>& arguments, const OptionGroup& described, std::string_view usage, Console& console,
             const char* positional) {
  if (console.caller != nullptr && console.caller->described != nullptr) {
    *console.caller->described = {std::string{usage}, described, positional != nullptr ? positional : ""};
    return {exit_done, std::nullopt};
  }
  auto options = parse_options(arguments, described, positional);
  if (!options) return {report(options.error(), console), std::nullopt};
  options->caller = console.caller;
  if (!options->given("help")) {
    if (auto ok = outputs_stand_alone(options->files()); !ok) return {report(ok.error(), console), std::nullopt};
    return {std::nullopt, *std::move(options)};
  }
  fmt::print(console.out, "{}\noptions:\n{}", usage, help_text(described));
  return {exit_done, std::nullopt};
}

int perform(const std::vector<std::string>& arguments, const OptionGroup& described, std::string_view verb, Console& console,
            Expected<int> (*work)(const Options&, Console&), const char* positional) {
  KindWords words{.arguments = arguments};
  std::string usage{usage_of(verb)};
  const bool asks_for_help = std::ranges::any_of(arguments, [](const std::string& word) { return word == "--help" || word == "-h"; });
  const bool describes = console.caller != nullptr && console.caller->described != nullptr;
  if (const bool has_words = !arguments.empty() && !arguments.front().starts_with('-'); (has_words || asks_for_help || describes) && kinds_among(described).size() > 1) {
    words = kind_words(arguments, described);
    usage = with_kinds(verb, usage, described);
    const bool is_unknown = has_words && words.kind == nullptr && !words.all && positional == nullptr;
    if (is_unknown && std::isalpha(static_cast<unsigned char>(arguments.front().front())) != 0 && !find_machine(arguments.front())) return report(unknown_kind(arguments.front(), verb, described), console);
    if (asks_for_help && !describes) return console.out << help_of_kinds(verb, usage, described, words), exit_done;
  }
  const Parsed parsed = parse(words.arguments, described, usage, console, positional);
  if (parsed.status) return *parsed.status;
  const auto status = work(*parsed.options, console);
  return status ? *status : report(status.error(), console);
}

OptionGroup output_options(std::span<const Format> formats) {
  std::vector<std::string> names;
  for (const Format format : formats) names.emplace_back(format_names[static_cast<std::size_t>(format)]);
  OptionValue format = word(fmt::format("{}", fmt::join(names, "|")), names.front());
  format.choices = names;
  return {{"format", format, "how results are printed", true},
          {"output,o", output_file("FILE"), "write to FILE instead of standard output", true},
          {"quiet", flag(), "no progress on standard error"},
          {"help,h", flag(), "this page", true}};
}

Format format_of(const Options& options) {
  const auto name = std::find(format_names.begin(), format_names.end(), options.text("format"));
  PODSIM_ASSERT(name != format_names.end());  // or parsing had refused it
  return static_cast<Format>(name - format_names.begin());
}

Status write_output(const Options& options, const std::string& text, Console& console) {
  if (!options.has("output") || options.caller != nullptr) console.out << text;  // a program gets what it also has written
  return options.has("output") ? write_file(options.text("output"), text) : success();
}

void tell_table(const std::function<std::string()>& table, Console& console) {
  if (console.caller != nullptr) console.caller->table = table();
}

int print_output(const Options& options, const std::string& text, Console& console) {
  const auto written = write_output(options, text, console);
  return written ? static_cast<int>(exit_done) : report(written.error(), console);
}

}  // namespace podsim
