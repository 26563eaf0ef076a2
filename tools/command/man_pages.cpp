// The manual: a page per command, from the texts and options that --help shows.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <cctype>
#include <sstream>

#include "sim/base/output_file.hpp"
#include "sim/base/text.hpp"
#include "tools/command/command.hpp"
#include "tools/command/described_command.hpp"

namespace podsim {

namespace {

/// A text that groff prints as it is: for it, `-` is a hyphen and a line that begins with `.` or `'` is a request.
std::string literal(std::string_view text) {
  std::string escaped;
  for (const char c : text) switch (c) {
      case '\\': escaped += "\\e"; break;
      case '-': escaped += "\\-"; break;
      case '\'': escaped += "\\(aq"; break;
      case '`': escaped += "\\(ga"; break;
      case '^': escaped += "\\(ha"; break;
      case '~': escaped += "\\(ti"; break;
      case '.': escaped += escaped.empty() || escaped.back() == '\n' ? "\\&." : "."; break;
      default: escaped += c;
    }
  return escaped;
}

/// The argument of a request.
std::string heading(std::string_view text) {
  std::string upper;
  for (const char c : text) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return ".SH \"" + literal(upper) + "\"\n";
}

std::string name_of_page(const std::vector<std::string>& words) {
  std::string name = "podsim";
  for (const std::string& word : words) name += "-" + word;
  return name;
}

std::string page_top(const std::string& name, std::string_view summary) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".\\\" Written by podsim man\\-pages.\n.TH {} 1 \"\" \"podsim {}\" \"User Commands\"\n.nh\n.ad l\n{}{} \\- {}\n", literal(upper), PODSIM_VERSION, heading("name"),
                     literal(name), literal(summary));
}

std::string as_they_are(const std::vector<std::string>& lines, std::size_t indent) {
  std::string page = ".nf\n";
  for (const std::string& line : lines) page += literal(line.substr(std::min(line.size(), indent))) + "\n";
  return page + ".fi\n";
}

std::string flowing(const std::vector<std::string>& lines) {
  std::string page;
  for (const std::string& line : lines) page += literal(line) + "\n";
  return page;
}

/// A text of --help. Of its blocks between blank lines, one is the synopsis and one the exit status, by their first words; one whose first line ends with
/// a colon, above indented lines, is a section; other indented lines are kept as they are; what is left is paragraphs.
std::string sections(const std::string& help) {
  constexpr std::string_view usage = "usage: ", status = "exit status: ";
  std::string synopsis, description, further;
  std::vector<std::string> block;
  const auto finish = [&] {
    if (block.empty()) return;
    std::string& first = block.front();
    if (first.starts_with(usage)) {
      synopsis = heading("synopsis") + as_they_are(block, usage.size());
    } else if (first.starts_with(status)) {
      first.erase(0, status.size());
      further += heading("exit status") + flowing(block);
    } else if (first.ends_with(':') && block.size() > 1 && block[1].starts_with(' ')) {
      further += heading(first.substr(0, first.size() - 1)) + as_they_are({block.begin() + 1, block.end()}, 2);
    } else {
      description += (description.empty() ? "" : ".PP\n") + (first.starts_with(' ') ? as_they_are(block, 2) : flowing(block));
    }
    block.clear();
  };
  std::istringstream lines{help};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty())
      finish();
    else
      block.push_back(line);
  }
  finish();
  return synopsis + heading("description") + description + further;
}

std::string options_text(const OptionGroup& options) {
  std::string page = heading("options");
  for (const OptionSpec& spec : options) {
    const std::string name = spec.long_name();
    page += ".TP\n";
    if (name != spec.name) page += fmt::format("\\fB{}\\fR, ", literal(std::string{'-', spec.name.back()}));
    page += fmt::format("\\fB{}\\fR", literal("--" + name));
    if (spec.value.kind != OptionValue::Kind::flag) page += fmt::format(" \\fI{}\\fR", literal(spec.value.name));
    if (spec.value.otherwise) page += literal(" (=" + *spec.value.otherwise + ")");
    page += "\n" + literal(spec.help) + "\n";
  }
  return page;
}

std::string references(const std::vector<CommandName>& names, const std::string& but) {
  std::string page = heading("see also"), list;
  const auto add = [&](const std::string& name) {
    if (name != but) list += fmt::format("{}.BR {} (1)", list.empty() ? "" : " ,\n", literal(name));
  };
  add("podsim");
  for (const CommandName& name : names) add(name_of_page(name.words));
  return page + list + "\n";
}

struct ManPage {
  std::string name, text;
};

std::vector<ManPage> man_pages() {
  const std::vector<CommandName> names = command_names();
  std::ostringstream help, none;
  Console console{help, none};
  run_command({"help"}, console);
  const std::string environment = heading("environment") + ".TP\n\\fBNO_COLOR\\fR\nif set and not empty, nothing is coloured\n.TP\n\\fBTERM\\fR\n" + literal("`dumb`: no colours and no progress\n");
  std::vector<ManPage> pages{{"podsim", page_top("podsim", "simulator of meshes of TPUs and GPUs") + sections(help.str()) + environment + references(names, "podsim")}};
  for (const CommandName& command : names) {
    const auto described = described_command(command.words);
    if (!described) continue;
    const std::string name = name_of_page(command.words);
    pages.push_back({name, page_top(name, command.summary) + sections(described->usage) + options_text(described->options) + references(names, name)});
  }
  return pages;
}

}  // namespace

/// `podsim man-pages FOLDER`: writes FOLDER/podsim.1, podsim-run.1, ...; the build installs them.
int man_pages_verb(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.size() != 1) return report({{}, "expected one folder: podsim man-pages FOLDER"}, console);
  for (const ManPage& page : man_pages())
    if (auto ok = write_file(arguments.front() + "/" + page.name + ".1", page.text); !ok) return report(ok.error(), console);
  return exit_done;
}

}  // namespace podsim
