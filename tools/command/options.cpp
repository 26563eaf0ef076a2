#include "tools/command/options.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <map>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "tools/command/file_options.hpp"

namespace podsim {

namespace {

std::vector<std::string> option_names(const po::options_description& described) {
  std::vector<std::string> names;
  for (const auto& entry : described.options()) names.push_back("--" + entry->long_name());
  return names;
}

/// "-o, --output FILE"
std::string name_of(const po::option_description& entry) {
  const std::string brief = entry.format_name(), parameter = entry.format_parameter();
  const std::string names = brief.starts_with("--") ? brief : brief.substr(0, 2) + ", --" + entry.long_name();
  return names + (parameter.empty() ? "" : " " + parameter);
}

/// Our own layout: Boost's wraps at odd places and shows "arg".
std::string to_text(const po::options_description& described) {
  std::string text;
  for (const auto& entry : described.options()) {
    const std::string& help = entry->description();
    text += fmt::format("  {:<32} ", name_of(*entry));
    for (const char c : help) text += c == '\n' ? "\n" + std::string(35, ' ') : std::string(1, c);
    text += '\n';
  }
  return text;
}

bool is_option(const std::string& word) { return word.size() >= 2 && word.front() == '-'; }

/// How many words an option is, with its value.
std::size_t words_of(const std::string& word, const po::options_description& described) {
  const bool is_long = word[1] == '-';
  if (is_long ? word.find('=') != std::string::npos : word.size() > 2) return 1;  // its value is in the same word
  const auto* option = described.find_nothrow(is_long ? word.substr(2) : word, false);
  return option != nullptr && option->semantic()->max_tokens() > 0 ? 2 : 1;
}

/// The first word that is neither an option nor its value.
std::string stray_word(const std::vector<std::string>& arguments, const po::options_description& described) {
  std::size_t i = 0;
  while (i < arguments.size() && is_option(arguments[i])) i += words_of(arguments[i], described);
  return i < arguments.size() ? arguments[i] : "";
}

/// As Boost parses them, a few words at a time: for each word that it takes, it moves all that are left.
po::parsed_options parsed(const std::vector<std::string>& arguments, const po::options_description& described,
                          const po::positional_options_description& words) {
  constexpr std::size_t few = 256;
  constexpr auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::parsed_options all{&described, po::command_line_style::allow_long};  // how errors name options
  for (std::size_t begin = 0, end = 0; begin < arguments.size(); begin = end) {
    while (end < arguments.size() && end - begin < few && arguments[end] != "--")
      end += is_option(arguments[end]) ? words_of(arguments[end], described) : 1;
    if (end >= arguments.size() || arguments[end] == "--") end = arguments.size();  // behind `--` everything is a word
    const std::vector<std::string> some(arguments.begin() + static_cast<std::ptrdiff_t>(begin), arguments.begin() + static_cast<std::ptrdiff_t>(end));
    auto options = po::command_line_parser(some).options(described).style(style).positional(words).run().options;
    all.options.insert(all.options.end(), std::make_move_iterator(options.begin()), std::make_move_iterator(options.end()));
  }
  return all;
}

constexpr std::array<std::string_view, 3> format_names{"table", "json", "csv"};  // as the enum has them

/// "a", "a or b", "a, b or c"
std::string alternatives(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

po::typed_value<std::string>* word(const char* name) { return po::value<std::string>()->value_name(name); }
po::typed_value<std::vector<std::string>>* words(const char* name) { return po::value<std::vector<std::string>>()->value_name(name)->composing(); }
po::typed_value<std::string>* word(const char* name, const char* otherwise) { return word(name)->default_value(otherwise); }

}  // namespace

int report(const Diagnostic& diagnostic, Console& console) {
  if (console.err_is_terminal) fmt::print(console.err, "\r\033[K");  // a line of progress
  if (diagnostic.cause == Cause::cancelled) {
    fmt::print(console.err, "podsim: interrupted\n");
    if (console.told_interrupted != nullptr) console.told_interrupted();
    return exit_interrupted;
  }
  if (diagnostic.where.line > 0)
    fmt::print(console.err, "{}\n", to_text(diagnostic));
  else
    fmt::print(console.err, "podsim: error: {}\n", to_text(diagnostic));
  return exit_bad_input;
}

Options Options::with(const std::string& name, std::string text) const {
  po::variables_map values = values_;
  static_cast<std::map<std::string, po::variable_value>&>(values)[name] = po::variable_value{std::move(text), false};
  return Options{std::move(values)};
}

std::vector<std::string> Options::texts(const std::string& name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

Expected<std::int64_t> Options::integer(const std::string& name, std::int64_t low, std::int64_t high) const {
  return parse_integer(text(name), low, high, option(name));
}

Expected<bool> Options::on_off(const std::string& name) const {
  if (text(name) == "on") return true;
  if (text(name) == "off") return false;
  return Diagnostic{option(name), "expected on or off, found " + quoted(text(name))};
}

Expected<std::vector<std::int64_t>> Options::integers(const std::string& name, std::int64_t low, std::int64_t high) const {
  std::vector<std::int64_t> numbers;
  for (const std::string& piece : split(text(name))) {
    const auto number = parse_integer(piece, low, high, option(name));
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  return numbers;
}

SourceLocation option(const std::string& name) { return {"--" + name, 0, 0}; }

namespace {

/// Whether an option may be repeated.
bool takes_many(const po::options_description& described, const char* name) {
  return dynamic_cast<const po::typed_value<std::vector<std::string>>*>(described.find(name, false).semantic().get()) != nullptr;
}

}  // namespace

Expected<Options> parse_options(const std::vector<std::string>& arguments, const po::options_description& described, const char* positional) {
  const auto wrong = [](const std::string& message) { return Diagnostic{{}, message}; };
  try {
    po::variables_map values;
    po::positional_options_description words;
    if (positional != nullptr) words.add(positional, takes_many(described, positional) ? -1 : 1);
    po::store(parsed(arguments, described, words), values);
    po::notify(values);
    return Options{std::move(values)};
  } catch (const po::unknown_option& error) {
    return wrong("unknown option " + quoted(error.get_option_name()) + did_you_mean(error.get_option_name(), option_names(described)) +
                 "; --help lists the options");
  } catch (const po::too_many_positional_options_error&) {
    if (positional != nullptr) return wrong(fmt::format("expected options and one {}, found more; --help lists the options", positional));
    return wrong("expected options only, found " + quoted(stray_word(arguments, described)) + "; --help lists the options");
  } catch (const po::error& error) {
    return wrong(error.what());
  }
}

Parsed parse(const std::vector<std::string>& arguments, const po::options_description& described, std::string_view usage, Console& console,
             const char* positional) {
  auto options = parse_options(arguments, described, positional);
  if (!options) return {report(options.error(), console), std::nullopt};
  if (!options->has("help")) {
    if (auto ok = outputs_stand_alone(files_of(options->values(), described)); !ok) return {report(ok.error(), console), std::nullopt};
    return {std::nullopt, *std::move(options)};
  }
  fmt::print(console.out, "{}\noptions:\n{}", usage, to_text(described));
  return {exit_done, std::nullopt};
}

po::options_description output_options(std::span<const Format> formats) {
  std::vector<std::string> names;
  for (const Format format : formats) names.emplace_back(format_names[static_cast<std::size_t>(format)]);
  const auto check = [names](const std::string& given) {
    if (std::find(names.begin(), names.end(), given) == names.end())
      throw po::error(fmt::format("--format: expected {}, found {}", alternatives(names), quoted(given)));
  };
  const std::string listed = fmt::format("{}", fmt::join(names, "|"));
  po::options_description group;
  group.add_options()                                                                                           //
      ("format", word(listed.c_str(), names.front().c_str())->notifier(check), "how results are printed")       //
      ("output,o", output_file("FILE"), "write to FILE instead of standard output")                                    //
      ("quiet", po::bool_switch(), "no progress on standard error")                                             //
      ("help,h", "this page");
  return group;
}

Format format_of(const Options& options) {
  const auto name = std::find(format_names.begin(), format_names.end(), options.text("format"));
  assert(name != format_names.end());  // or parsing had refused it
  return static_cast<Format>(name - format_names.begin());
}

po::options_description pod_options(bool several) {
  po::options_description group;
  group.add_options()  //
      ("machine", input_file(several ? "NAME|FILE[,...]" : "NAME|FILE", several ? files_between_commas : one_file),
       "a shipped machine (podsim show machine lists them) or a textproto file")  //
      ("slice", word(several ? "AxB[xC][,...]" : "AxB[xC]"),
       "chips per physical dimension, as 16x16 or 4x8x8, or the name of\na slice, as v5p-512; left out: the sizes of --mesh")  //
      ("strict-slice", po::bool_switch(), "refuse a slice that the vendor does not offer")                                     //
      ("wrap", word("auto|all|none|x,y", "auto"),
       "which dimensions wrap; auto: as the vendor builds the slice,\nhypothetical slices wrap every extent above 2")  //
      ("mesh", words("row=R,col=C"),
       several ? "logical axes, row-major over the slice; repeatable, or `all` for\nevery row x col"
               : "logical axes, row-major over the slice; left out: one axis\nper slice dimension, named row, col, depth, axis3")  //
      ("mesh-order", input_file("ORDER")->default_value("row-major"),
       "which chip each device of the mesh gets: row-major, jax (as\ncreate_device_mesh assigns), snake, or a file of chip numbers")  //
      ("allow-split-axes", po::bool_switch(), "jax: a logical axis may take part of a physical one")                                  //
      ("contiguous-submeshes", po::bool_switch(), "jax: hosts' devices stay together")                                                //
      ("set", words("PATH=VALUE"),
       "override a machine value: link.bandwidth=45GB/s,\nlink[x].latency=1us, chip.peak[bf16]=275TFLOP/s,\nsoftware.launch[all-gather]=5us; "
       "repeatable");
  return group;
}

po::options_description what_if_options(bool several) {
  po::options_description group{"what if"};
  group.add_options()  //
      ("topology", input_file(several ? "NAME[,...]" : "NAME", several ? files_between_commas : one_file),
       "of the machine's chips and links: torus, mesh, twisted, crossbar,\nfat-tree:LEAF[:OVERSUBSCRIPTION], rail, or a FILE.textproto of "
       "chips,\nswitches and cables; left out: what the machine "
       "builds")                                                                                                                              //
      ("pods", word("N", "1"), "slices, joined over their hosts and the data-centre network")                                                 //
      ("fail", words("CABLE"), "a broken cable between two chips, by coordinates: 0.0-0.1; repeatable;\nrun: `any` tries one of every sort")  //
      ("degrade", words("CABLE=PART"), "a slow cable: 0.0-0.1=0.5; repeatable")                                                               //
      ("straggler", words("CHIP=PART"), "a slow device: 3.2=0.8, or random:1%=0.8; repeatable")                                               //
      ("seed", word("N", "0"), "of what is random");
  return group;
}

namespace {

/// The problems of one run, and which algorithm does them.
void add_one_problem(po::options_description& group) {
  group.add_options()  //
      ("collective", word("KIND"),
       "one collective along --axis: all-gather, reduce-scatter, all-reduce,\nall-to-all, broadcast, reduce, permute")  //
      ("axis", word("NAME[,...]"),
       "the mesh axes of --collective, first most significant; may be left out where only one has more than one device")  //
      ("bytes", word("N"), "input bytes on each device of --collective, a bare number or as 16MiB")                       //
      ("plan", input_file("FILE"), "a plan of a workload, as podsim tune -o writes it")                                         //
      ("schedule", input_file("FILE"), "a saved schedule, textproto or binary (podsim show schedule -o FILE writes one)")       //
      ("algorithm", word("NAME"),
       "GEMM: collective, meshslice, summa, cannon, wang, 1d-os, 1d-ls,\n1d-fsdp, 1d-megatron, jax-ag-..., jax-rs-..., tp-ag-...\ncollective: "
       "ring, "
       "ring-one-way, ring-shortest, line,\nhalving-doubling, direct, pairwise, halves, pallas-ring,\npallas-bidirectional, pallas-alternating, or "
       "auto: the\ncheapest; left out: ring on axes that wrap, else line")                                                                   //
      ("dataflow", word("os|ls|rs"), "which operand stands still: output, left or right; left out: os,\nor what the algorithm's name says")  //
      ("slice-count", word("S"), "slices of meshslice; panels of summa (left out: lcm(R, C))");
}

/// The same as lists.
void add_compared_problems(po::options_description& group) {
  group.add_options()  //
      ("collective", word("KIND[,...]"),
       "collectives along --axis: all-gather, reduce-scatter, all-reduce,\nall-to-all, broadcast, reduce, permute")  //
      ("axis", words("NAME[,...]"),
       "the mesh axes of --collective, first most significant; repeatable:\nthe collective along other axes")                           //
      ("bytes", word("N[,...]"), "input bytes on each device of --collective: 64KiB,1MiB,16MiB")                                        //
      ("algorithms", word("NAME[,...]|all", "collective,meshslice"), "which algorithms to compare; left out, of --collective: all")     //
      ("dataflow", word("os|ls|rs[,...]", "os"), "which operand stands still: output, left or right")                                   //
      ("slice-count", word("S[,...]"), "slices of meshslice (summa takes lcm(R, C) panels)");
}

}  // namespace

po::options_description problem_options(bool several) {
  po::options_description group;
  group.add_options()  //
      ("gemm", word("m=M,n=N,k=K[,dtype=bf16]"), "Y[m,n] = X.W over k (k is the contraction), bf16 or f32");
  several ? add_compared_problems(group) : add_one_problem(group);
  group.add_options()                                                                                                               //
      ("root", word("N"), "broadcast, reduce: the root's position along the axes; left out: 0")                                     //
      ("chunks", word("N"), "broadcast, reduce: into how many chunks; left out: what takes least time\nalong a chain of neighbours")  //
      ("shift", word("N"), "permute: everybody to their position + N")                                                              //
      ("pairs", input_file("FILE"), "permute: lines `from to`, positions along the axes; # begins a comment")                             //
      ("dtype", word("bf16|f32"), "element type of --collective")                                                                   //
      ("pass", word("forward|backward|both", "forward"), "a layer's forward product, its two gradients, or all three")     //
      ("wang-operand", word("x|w"), "which operand of wang OS travels; left out: the one with more\nbytes times hops")     //
      ("block", word("B", "8"), "rows or columns of a slice's interleaved blocks")                                         //
      ("prefetch", word("P", "1"), "slices that run ahead of the matmul")                                                  //
      ("slice-copies", word("on|off"), "whether cutting slices costs copies on the core;\nleft out: as the machine says")  //
      ("collectives", word("NAME|auto"),
       "the algorithm of the GEMM's collectives; auto: each the fastest,\non a folded axis also several physical ones at once; left out: ring,\nor "
       "line on open axes")  //
      ("pad", po::bool_switch(), "round extents up to what divides, and say how much is wasted");
  return group;
}

Done write_output(const Options& options, const std::string& text, Console& console) {
  if (options.has("output")) return write_file(options.text("output"), text);
  console.out << text;
  return done();
}

}  // namespace podsim
