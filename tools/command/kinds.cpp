#include "tools/command/kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "sim/base/file_names.hpp"
#include "sim/base/text.hpp"
#include "tools/command/known_files.hpp"
#include "tools/sweep/points.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// nullptr: the option is no field of a scenario.
const FieldKind* field_of(const OptionSpec& spec) {
  if (!spec.value.is_field) return nullptr;
  for (const FieldKind& field : scenario_fields())
    if (option_of(field.name) == spec.long_name()) return &field;
  return nullptr;
}

const OptionSpec* option_in(const OptionGroup& described, std::string_view field) {
  const auto found = std::ranges::find_if(described, [name = option_of(field)](const OptionSpec& spec) { return spec.long_name() == name; });
  return found == described.end() ? nullptr : &*found;
}

bool belongs_to(const FieldKind& field, std::string_view kind) { return std::ranges::find(field.problems, kind) != field.problems.end(); }

/// The kind whose field has this among its names: "all-reduce", "llama3-70b".
const ProblemKind* kind_that_names(const std::string& word, const OptionGroup& described) {
  const std::string first = split(word).front();  // comparisons take lists
  for (const ProblemKind* kind : kinds_among(described)) {
    const auto names = scenario_field(kind->field)->names;
    if (names == nullptr) continue;
    if (std::ranges::any_of(names(), [&](const std::string& name) { return plain_spelling(name) == plain_spelling(first); })) return kind;
    if (kind->field == "collective" && parse_collective_kind(first, {})) return kind;  // as JAX calls it
  }
  return nullptr;
}

/// The words behind a kind and what it is that say by themselves what they are, as options: the other extents of a product, a machine, an amount of data.
/// They end with the first that is something else.
std::vector<std::string> with_words_named(const ProblemKind& kind, std::string value, const std::vector<std::string>& words, const OptionGroup& described) {
  const auto is_number = [](const std::string& word) { return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos; };
  const auto is_machine = [](const std::string& word) { return !file_exists(word) && (machine_and_slice(word).has_value() || find_machine(word)); };
  const auto is_amount = [](const std::string& word) { return parse_input_bytes(word.substr(0, word.find_first_of(",.")), {}).has_value(); };
  const auto is_unit = [&](std::size_t at) { return at < words.size() && !words[at].empty() && std::isalpha(static_cast<unsigned char>(words[at].front())) != 0 && is_number(words[at - 1]) && is_amount(words[at - 1] + words[at]); };
  std::vector<std::string> options;
  std::size_t next = 0;
  if (kind.field == "gemm")
    for (; next < words.size() && is_number(words[next]) && !value.empty(); ++next) value += "," + words[next];
  if (!value.empty()) options.push_back(fmt::format("--{}={}", option_of(kind.field), value));
  std::set<std::string_view> named;
  for (; next < words.size() && !words[next].starts_with('-'); ++next) {
    const std::string_view field = is_machine(words[next]) ? "machine" : belongs_to(*scenario_field("bytes"), kind.field) && is_amount(words[next]) ? "bytes" : "";
    if (field.empty() || option_in(described, field) == nullptr || !named.insert(field).second) break;
    const bool two_words = field == "bytes" && is_unit(next + 1);  // 64 MiB
    options.push_back(fmt::format("--{}={}{}", option_of(field), words[next], two_words ? words[next + 1] : ""));
    next += two_words ? 1 : 0;
  }
  options.insert(options.end(), words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return options;
}

/// The examples among the lines of a usage text that are of a kind, by its option or its words.
std::string examples_of(const ProblemKind& kind, std::string_view verb, std::string_view usage, const OptionGroup& described) {
  constexpr std::string_view heading = "\nexamples:\n";
  const std::size_t begin = usage.find(heading);
  if (begin == std::string_view::npos) return "";
  std::vector<std::string> lines;  // continued ones as one
  for (const std::string& line : split(usage.substr(begin + heading.size()), '\n')) {
    if (line.empty()) break;
    if (!lines.empty() && lines.back().ends_with('\\'))
      lines.back() += "\n" + line;
    else
      lines.push_back(line);
  }
  std::string examples;
  for (const std::string& line : lines) {
    std::vector<std::string> words = split(trimmed(line), ' ');
    bool is_of_kind = line.find(" --" + option_of(kind.field) + " ") != std::string::npos || (kind.field == "training" && line.find(" --maxtext ") != std::string::npos);
    if (words.size() > 2 && words[1] == verb) is_of_kind |= kind_words({words.begin() + 2, words.end()}, described).kind == &kind;
    if (is_of_kind) examples += line + "\n";
  }
  return examples;
}

std::string page_of_kind(std::string_view verb, const std::string& usage, const OptionGroup& described, const ProblemKind& kind) {
  OptionGroup own, usual, others;
  const OptionSpec& what = *option_in(described, kind.field);
  for (const OptionSpec& spec : described) {
    const FieldKind* field = field_of(spec);
    if (&spec == &what) continue;
    if (field != nullptr && belongs_to(*field, kind.field))
      own.push_back(spec);
    else if (field == nullptr || (field->problems.front().empty() && problem_kind_named(field->name) == nullptr))
      (spec.usual ? usual : others).push_back(spec);
  }
  std::ranges::stable_partition(own, &OptionSpec::usual);
  std::string page = fmt::format("usage: podsim {} {} {} --machine NAME[:SLICE] [OPTION...]\n\n", verb, kind.name, what.value.name);
  page += paragraph(fmt::format("{}. Also written --{} {}.", what.help, what.long_name(), what.value.name));
  if (const std::string examples = examples_of(kind, verb, usage, described); !examples.empty()) page += "\nexamples:\n" + examples;
  if (!own.empty()) page += fmt::format("\noptions of this kind:\n{}", help_text(own));
  page += fmt::format("\noptions that all kinds share:\n{}", help_text(usual));
  std::vector<std::string> names;
  for (const OptionSpec& spec : others) names.push_back("--" + spec.long_name());
  return page + "\n" + paragraph(fmt::format("and {}: `podsim help {} all` tells what they do", fmt::join(names, ", "), verb));
}

}  // namespace

std::vector<const ProblemKind*> kinds_among(const OptionGroup& described) {
  std::vector<const ProblemKind*> kinds;
  for (const ProblemKind& kind : problem_kinds())
    if (const OptionSpec* option = option_in(described, kind.field); option != nullptr && option->value.is_field) kinds.push_back(&kind);
  return kinds;
}

KindWords kind_words(const std::vector<std::string>& arguments, const OptionGroup& described) {
  KindWords words{.arguments = arguments};
  if (arguments.empty() || arguments.front().starts_with('-')) return words;
  const std::string& first = arguments.front();
  if (first == "all") {
    words.all = true;
    words.arguments.erase(words.arguments.begin());
    return words;
  }
  const auto taken = [&](const ProblemKind& kind, const std::string& value, std::size_t used) {
    words.kind = &kind;
    words.arguments = with_words_named(kind, value, {arguments.begin() + static_cast<std::ptrdiff_t>(used), arguments.end()}, described);
    return words;
  };
  if (const ProblemKind* kind = problem_kind_named(first); kind != nullptr && option_in(described, kind->field) != nullptr) {
    const bool has_value = arguments.size() > 1 && (!arguments[1].starts_with('-') || arguments[1] == "-");
    return taken(*kind, has_value ? arguments[1] : "", has_value ? 2 : 1);
  }
  if (const ProblemKind* kind = kind_that_names(first, described); kind != nullptr) return taken(*kind, first, 1);
  if (file_exists(first))
    if (const auto head = head_of(first))
      if (const KnownFile* file = known_file(*head); file != nullptr && option_in(described, file->field) != nullptr) return taken(*problem_kind_named(file->field), first, 1);
  return words;
}

Diagnostic unknown_kind(const std::string& word, std::string_view verb, const OptionGroup& described) {
  std::vector<std::string> names, near;
  for (const ProblemKind* kind : kinds_among(described)) {
    names.emplace_back(kind->name);
    near.emplace_back(kind->name);
    if (const auto of_field = scenario_field(kind->field)->names)
      for (std::string& name : of_field()) near.push_back(std::move(name));
  }
  return {{}, fmt::format("expected a kind of problem ({}), an option or a file, found {}{}; `podsim help {}` lists the kinds", fmt::join(names, ", "), quoted(word), did_you_mean(word, near), verb)};
}

std::string with_kinds(std::string_view verb, std::string_view usage, const OptionGroup& described) {
  std::string kinds = "\nkinds:\n";
  for (const ProblemKind* kind : kinds_among(described)) {
    const std::string what = fmt::format("{} {}", kind->name, option_in(described, kind->field)->value.name);
    kinds += fmt::format("  {:<40} {}\n", what, kind->summary);
  }
  kinds += fmt::format("\n`podsim help {} KIND` shows the options of one kind, `podsim help {} all` every option.\n", verb, verb);
  std::string text{usage};
  const std::size_t examples = text.find("\nexamples:\n");
  return text.insert(examples == std::string::npos ? text.size() : examples, kinds);
}

std::string help_of_kinds(std::string_view verb, const std::string& usage, const OptionGroup& described, const KindWords& words) {
  if (words.kind != nullptr) return page_of_kind(verb, usage, described, *words.kind);
  OptionGroup shown;
  for (const OptionSpec& spec : described) {
    const FieldKind* field = field_of(spec);
    const bool is_shared = field == nullptr || field->problems.front().empty();
    if (words.all || (spec.usual && is_shared)) shown.push_back(spec);
  }
  return fmt::format("{}\noptions:\n{}", usage, help_text(shown));
}

}  // namespace podsim
