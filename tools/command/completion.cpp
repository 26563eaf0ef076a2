#include "tools/command/completion.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <array>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/base/text.hpp"
#include "tools/command/command.hpp"
#include "tools/command/described_command.hpp"
#include "tools/report/machine_report.hpp"
#include "topologies/machines.hpp"
#include "topologies/slice.hpp"
#include "validation/validate/datasets.hpp"
#include "workloads/training/step.hpp"

namespace podsim {

namespace {

using Names = std::vector<std::string>;

constexpr std::int64_t most_completed_chips = 16384;

/// The words of a line, without quotes and backslashes. The last one is being typed.
Names words_of(std::string_view line) {
  Names words{""};
  char quote = 0;
  bool begun = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.emplace_back();
      begun = false;
      continue;
    }
    begun = true;
    if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == '\\' && quote != '\'' && i + 1 < line.size())
      words.back() += line[++i];
    else
      words.back() += c;
  }
  return words;
}

bool takes_value(const OptionSpec& spec) { return spec.value.kind != OptionValue::Kind::flag; }

/// A command line that is being typed, taken apart.
class TypedLine {
 public:
  TypedLine(Names words, OptionGroup options, std::string positional) : options_{std::move(options)}, positional_{std::move(positional)} {
    typed_ = words.back();
    words.pop_back();
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
      const OptionSpec* const spec = words[i].starts_with("-") ? option_named(words[i].substr(0, equals)) : nullptr;
      if (spec == nullptr) {
        if (!positional_.empty() && !words[i].starts_with("-")) given_.emplace_back(positional_, words[i]);
        continue;
      }
      if (equals != std::string::npos)
        given_.emplace_back(spec->long_name(), words[i].substr(equals + 1));
      else if (takes_value(*spec) && i + 1 == words.size())
        of_ = spec;
      else
        given_.emplace_back(spec->long_name(), takes_value(*spec) ? words[++i] : "");
    }
    if (of_ != nullptr) return;
    if (const std::size_t equals = typed_.find('='); typed_.starts_with("--") && equals != std::string::npos) {
      of_ = option_named(typed_.substr(0, equals));
      lead_ = typed_.substr(0, equals + 1);
      typed_ = typed_.substr(equals + 1);
    } else if (!typed_.starts_with("-") && !positional_.empty()) {
      of_ = option_named("--" + positional_);
    }
  }

  /// The option whose value is being typed; nullptr: the name of an option is.
  [[nodiscard]] const OptionSpec* of() const { return of_; }
  /// What is typed of it, and of the word before that.
  [[nodiscard]] const std::string& typed() const { return typed_; }
  [[nodiscard]] const std::string& lead() const { return lead_; }
  [[nodiscard]] const OptionGroup& options() const { return options_; }
  [[nodiscard]] bool given(const std::string& name) const { return !texts(name).empty(); }
  [[nodiscard]] Names texts(const std::string& name) const {
    Names texts;
    for (const auto& [option, text] : given_)
      if (option == name) texts.push_back(text);
    return texts;
  }

 private:
  [[nodiscard]] const OptionSpec* option_named(const std::string& word) const {
    const auto found = std::find_if(options_.begin(), options_.end(), [&](const OptionSpec& spec) {
      return word == "--" + spec.long_name() || (spec.name != spec.long_name() && word == std::string{'-', spec.name.back()});
    });
    return found == options_.end() ? nullptr : &*found;
  }

  OptionGroup options_;
  std::string positional_, typed_, lead_;
  std::vector<std::pair<std::string, std::string>> given_;
  const OptionSpec* of_ = nullptr;
};

template <class Entries>
Names names_of(const Entries& entries) {
  Names names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

/// The machine of the line; only shipped ones are read.
std::string machine_of(const TypedLine& line) {
  std::string name = "ideal";
  for (const char* option : {"base", "machine"})
    if (line.given(option)) name = line.texts(option).back();
  const Names shipped = shipped_machines();
  return std::find(shipped.begin(), shipped.end(), name) != shipped.end() ? name : "ideal";
}

Names datasets(const TypedLine&) { return shipped_datasets(); }
Names algorithms_of_line(const TypedLine& line) {
  Names names;
  if (!line.given("collective")) names = names_of(gemm_algorithms());
  if (line.given("gemm") || line.given("workload") || line.given("hlo")) return names;
  const Names of_collectives = names_of(collective_algorithms());
  names.insert(names.end(), of_collectives.begin(), of_collectives.end());
  names.emplace_back("auto");
  return names;
}

/// The slices that the machine of the line is offered in: of each power of two of chips the usual one, and once something is typed all.
Names slices(const TypedLine& line) {
  const auto machine = find_machine(machine_of(line));
  if (!machine) return {};
  const bool any = machine->slices.any_shape;  // then those of two dimensions
  Names names;
  for (std::int64_t chips = 1; chips <= most_completed_chips; chips *= 2)
    for (const Slice& slice : offered_slices(*machine, chips)) {
      if (any && slice.extents.size() != (chips <= 2 ? 1U : 2U)) continue;
      names.push_back(to_text(slice));
      if (any || line.typed().empty()) break;
    }
  return names;
}

/// The axes that --mesh has, or without it those that --slice gives.
Names axes(const TypedLine& line) {
  Names names;
  for (const std::string& mesh : line.texts("mesh"))
    for (const std::string& axis : split(mesh)) {
      std::string name = axis.substr(0, axis.find('='));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
  if (!names.empty() || !line.given("slice")) return names;
  const std::string slice = line.texts("slice").back();
  names = {"row", "col", "depth", "axis3"};
  names.resize(std::min<std::size_t>(names.size(), 1 + static_cast<std::size_t>(std::count(slice.begin(), slice.end(), 'x'))));
  return names;
}

Names new_axes(const TypedLine& line) {
  Names names;
  if (line.given("training") || line.given("maxtext"))
    for (const std::string_view axis : training_axes) names.push_back(std::string{axis} + "=");
  else
    for (const char* axis : {"row=", "col=", "depth="}) names.emplace_back(axis);
  return names;
}

Names paths(const TypedLine& line) {
  const auto machine = find_machine(machine_of(line));
  if (!machine) return {};
  const bool indexed = line.typed().find('[') != std::string::npos;
  Names names;
  for (const SourcedValue& value : sourced_values(*machine)) {
    std::string path = value.path;
    if (const std::size_t open = path.find('['), close = path.find(']'); !indexed && close != std::string::npos) path.erase(open, close + 1 - open);
    if (std::find(names.begin(), names.end(), path) == names.end()) names.push_back(std::move(path));
  }
  return names;
}

Names paths_to_set(const TypedLine& line) {
  Names names = paths(line);
  for (std::string& name : names) name += '=';
  return names;
}

/// What depends on the rest of the line.
struct NamedValues {
  std::string_view option, placeholder;  // where the option's value is described by this
  Names (*names)(const TypedLine&);
};
constexpr std::array<NamedValues, 12> named_values{{{"slice", "A", slices},
                                                    {"mesh", "=", new_axes},
                                                    {"axis", "NAME", axes},
                                                    {"algorithm", "NAME", algorithms_of_line},
                                                    {"algorithms", "NAME", algorithms_of_line},
                                                    {"collectives", "NAME", algorithms_of_line},
                                                    {"dataset", "FOLDER", datasets},
                                                    {"set", "PATH", paths_to_set},
                                                    {"vary", "PATH", paths_to_set},
                                                    {"crossover", "PATH", paths_to_set},
                                                    {"prior", "PATH", paths},
                                                    {"hold", "PATH", paths}}};

constexpr std::string_view more_in_list = "[,...]";  // in the description of a value

/// The words of "auto|all|none|x,y" that stand for themselves: auto, all, none.
Names words_in(std::string value) {
  if (const std::size_t more = value.find(more_in_list); more != std::string::npos) value.erase(more, more_in_list.size());
  Names names;
  for (std::string& part : split(value, '|'))
    if (part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos && !part.empty() && part != value) names.push_back(std::move(part));
  return names;
}

Names values_of(const OptionSpec& spec, const TypedLine& line) {
  if (!spec.value.choices.empty()) return spec.value.choices;
  Names names = words_in(spec.value.name);
  if (spec.value.names != nullptr && !(spec.long_name() == "training" && line.given("maxtext")))  // then KEY=VALUE
    for (const std::string& name : spec.value.names())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name.substr(0, name.find(':') == std::string::npos ? std::string::npos : name.find(':') + 1));
  for (const NamedValues& values : named_values)
    if (values.option == spec.long_name() && spec.value.name.find(values.placeholder) != std::string::npos) {
      const Names more = values.names(line);
      names.insert(names.end(), more.begin(), more.end());
    }
  return names;
}

/// Values that are lists go on behind a comma.
bool is_list(const OptionSpec& spec) {
  return spec.value.name.find(more_in_list) != std::string::npos || spec.value.form == Form::mesh || spec.value.files == files_between_commas;
}

Completions value_completions(const TypedLine& line) {
  const OptionSpec& spec = *line.of();
  Completions found;
  const std::size_t comma = is_list(spec) ? line.typed().rfind(',') : std::string::npos;
  const std::size_t begin = comma == std::string::npos ? 0 : comma + 1;
  const std::string lead = line.lead() + line.typed().substr(0, begin), typed = line.typed().substr(begin);
  const Names before = split(line.typed().substr(0, begin));
  for (const std::string& name : values_of(spec, line)) {
    const auto is_given = [&](const std::string& text) { return text.substr(0, text.find('=')) == name.substr(0, name.find('=')); };
    if (!name.starts_with(typed) || std::any_of(before.begin(), before.end(), is_given)) continue;
    found.words.push_back({lead + name, ""});
    found.open = found.open || name.ends_with('=') || name.ends_with(':');
  }
  if (spec.value.files != nullptr) found.files_behind = lead;
  return found;
}

Completions option_completions(const TypedLine& line) {
  Completions found;
  for (const OptionSpec& spec : line.options()) {
    const std::string name = "--" + spec.long_name();
    if (!name.starts_with(line.typed()) || (spec.value.kind != OptionValue::Kind::many && line.given(spec.long_name()))) continue;
    found.words.push_back({name, spec.help});
  }
  return found;
}

Completions verb_completions(std::span<const Verb> among, const std::string& typed, bool of_program) {
  Completions found;
  const auto add = [&](std::string_view word, std::string_view what) {
    if (word.starts_with(typed)) found.words.push_back({std::string{word}, std::string{what}});
  };
  for (const Verb& verb : among) add(verb.name, verb.summary);
  if (!of_program) return found;
  add("help", "what the verbs are, or what one takes");
  add("version", "the version");
  if (typed.starts_with("-")) add("--help", "what the verbs are"), add("--version", "the version");
  return found;
}

}  // namespace

Completions completions(std::string_view line) {
  Names words = words_of(line);
  if (words.size() < 2) return {};
  words.erase(words.begin());  // the program
  if (words.size() > 1 && words.front() == "help") words.erase(words.begin());
  if (words.size() == 1) return verb_completions(verbs(), words.back(), true);
  if (words.size() == 2 && words.front() == "show") return verb_completions(show_targets(), words.back(), false);
  // Words are looked at before the one that is typed: that one may be half of a name.
  const auto described = described_command({words.begin(), words.end() - 1});
  if (!described) return {};
  words.erase(words.begin(), words.begin() + (words.front() == "show" ? 2 : 1));
  const TypedLine typed{std::move(words), described->options, described->positional};
  return typed.of() != nullptr ? value_completions(typed) : option_completions(typed);
}

/// A line per word, behind a tab what it is. Lines that begin with a colon are for the shell: `:open`, `:files BEGINNING`.
int complete_verb(const std::vector<std::string>& arguments, Console& console) {
  const Completions found = completions(arguments.empty() ? "" : arguments.front());
  if (found.files_behind) fmt::print(console.out, ":files\t{}\n", *found.files_behind);
  if (found.open) fmt::print(console.out, ":open\n");
  for (const Completion& completion : found.words) fmt::print(console.out, "{}{}{}\n", completion.word, completion.what.empty() ? "" : "\t", completion.what);
  return exit_done;
}

}  // namespace podsim
