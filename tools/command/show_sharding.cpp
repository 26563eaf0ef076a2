#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/units.hpp"
#include "tools/command/options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/report/sharding_picture.hpp"
#include "tools/report/sharding_report.hpp"
#include "tools/report/text_width.hpp"
#include "topologies/slice.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {
namespace {

constexpr int most_shown_devices = 1 << 16;
constexpr std::size_t most_rank = 16, columns_without_terminal = 80, longest_platform = 64;
constexpr std::int64_t largest_extent = std::int64_t{1} << 62, largest_device = INT32_MAX;

const OptionGroup sharding_options{
    {"array", written_as(Form::extents, word("AxB[xC]")), "the extents of the array"},
    {"mesh", written_as(Form::mesh, word("x=4,y=2")), "logical axes, row-major over the devices; with --hlo it may be left out"},
    {"spec", written_as(Form::sharding, word("x,y")), "per dimension the axes that divide it: an axis, - for none, or several as in (x+y), first most significant"},
    {"hlo", word("SHARDING"), "in place of --spec: as HLO writes it, {devices=[4,2]<=[8]}"},
    {"devices", word("0,2,4,6"), "the numbers of the mesh's devices; left out: 0 and up"},
    {"machine", field_option("machine").value, "whose slice the devices are of; left out: ideal"},
    {"slice", field_option("slice").value, "the devices are those of a slice: its chips, row-major"},
    {"platform", word("NAME", "CPU"), "how devices are called"},
    {"at", word("-,-,0"), "of an array of rank 3 or more: one or two dimensions that are shown, and the index where each other one is cut"},
    {"pad", flag(), "round extents up to what the axes divide, and say how much is wasted"},
    {"colour",
     {OptionValue::Kind::one, "auto|always|never", "auto", nullptr, false, {"auto", "always", "never"}},
     "auto: on a terminal, unless NO_COLOR is set"},
};

OptionGroup described_options() {
  OptionGroup described = joined({sharding_options, output_options(table_json)});
  for (OptionSpec& spec : described)
    if (spec.long_name() == "output") spec.help += "; FILE.svg and FILE.png are pictures";
  return described;
}

/// Of the first character of an option's text.
SourceLocation text_of(const std::string& name) { return {option(name).file, 1, 1}; }

Expected<Extents> read_array(const Options& options) {
  if (!options.has("array")) return Diagnostic{{}, "an array is needed: --array 16x16"};
  Extents extents;
  const std::vector<std::string> pieces = split(options.text("array"), 'x');
  if (pieces.size() > most_rank) return Diagnostic{option("array"), fmt::format("expected at most {} dimensions, got {}", most_rank, pieces.size())};
  for (const std::string& piece : pieces) {
    const auto extent = parse_integer(piece, 1, largest_extent, option("array"));
    if (!extent) return extent.error();
    extents.push_back(*extent);
  }
  return extents;
}

/// The number of each device of a mesh of `count`.
Expected<std::vector<std::int64_t>> read_devices(const Options& options, std::int64_t count) {
  std::int64_t in_slice = largest_device + 1;
  if (options.has("slice")) {
    const auto machine = load_machine(options.has("machine") ? options.text("machine") : "ideal");
    if (!machine) return machine.error();
    const auto slice = parse_slice(options.text("slice"), *machine, option("slice"));
    if (!slice) return slice.error();
    in_slice = chips_of(*slice) * machine->chip.devices;
    if (!options.has("devices") && in_slice != count)
      return Diagnostic{option("slice"),
                        fmt::format("expected the {} devices of the mesh, got {}; --devices says which of them the mesh is on", count, in_slice)};
  } else if (options.has("machine")) {
    return Diagnostic{option("machine"), "a machine says nothing of a sharding without --slice"};
  }
  std::vector<std::int64_t> numbers;
  if (!options.has("devices")) {
    numbers.resize(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  const auto listed = parse_devices(options.text("devices"), in_slice, option("devices"));
  if (!listed) return listed.error();
  numbers.assign(listed->begin(), listed->end());
  if (static_cast<std::int64_t>(numbers.size()) != count)
    return Diagnostic{option("devices"), fmt::format("expected the {} devices of the mesh, got {}", count, numbers.size())};
  return numbers;
}

Expected<std::vector<std::optional<std::int64_t>>> read_cut(const Options& options, const Extents& extents) {
  std::vector<std::optional<std::int64_t>> at(extents.size());
  if (!options.has("at")) {
    if (extents.size() > 2)
      return Diagnostic{{}, fmt::format("an array of rank {} is drawn by two of its dimensions: --at says which, as --at -,-,0", extents.size())};
    return at;
  }
  const std::vector<std::string> pieces = split(options.text("at"));
  if (pieces.size() != extents.size())
    return Diagnostic{option("at"), fmt::format("expected an entry for each of the {} dimensions, got {}", extents.size(), pieces.size())};
  std::size_t shown = 0;
  for (std::size_t d = 0; d < pieces.size(); ++d) {
    if (trimmed(pieces[d]) == "-") {
      ++shown;
      continue;
    }
    const auto index = parse_integer(pieces[d], 0, extents[d] - 1, option("at"));
    if (!index) return index.error();
    at[d] = *index;
  }
  if (shown < 1 || shown > 2) return Diagnostic{option("at"), fmt::format("expected one or two dimensions that are shown, as -,-,0; got {}", shown)};
  return at;
}

/// A mesh whose axes are the dimensions of the tiles, and on it the sharding that has them. Its devices are those of the tiles.
Status lay_on_tiles(ShardingQuestion& question, std::vector<std::int64_t>& positions) {
  const HloSharding& hlo = question.hlo;
  question.named = false;
  if (hlo.kind == HloSharding::Kind::maximal) return positions = {hlo.device}, success();
  if (hlo.kind != HloSharding::Kind::tiled)
    return Diagnostic{option("hlo"), "how many devices are there? --mesh is needed with " + to_text(hlo).substr(0, 100)};
  const std::size_t rank = hlo.tiles.size() - hlo.last_kinds.size();
  if (rank != question.extents.size())
    return Diagnostic{option("hlo"), fmt::format("expected tiles of {} dimensions, as the array has, got {}", question.extents.size(), rank)};
  std::vector<MeshAxis> axes;
  for (std::size_t d = 0; d < hlo.tiles.size(); ++d) {
    axes.push_back({std::to_string(d), static_cast<int>(hlo.tiles[d])});
    if (d < rank) question.array.sharding.dims.push_back({static_cast<int>(d)});
  }
  auto mesh = Mesh::make(std::move(axes));
  if (!mesh) return Diagnostic{option("hlo"), mesh.error().message};
  question.array.mesh = *std::move(mesh);
  if (question.array.mesh.devices() <= most_shown_devices) positions = tile_devices(hlo);
  return success();
}

/// The mesh and the sharding. `positions` are those of its devices among the numbered ones, where they are not 0 and up.
Status read_sharding(const Options& options, ShardingQuestion& question, std::vector<std::int64_t>& positions) {
  if (options.has("spec") == options.has("hlo")) return Diagnostic{{}, "expected one of --spec and --hlo"};
  ShownArray& array = question.array;
  if (options.has("hlo")) {
    const auto hlo = parse_hlo_sharding(options.text("hlo"), text_of("hlo"));
    if (!hlo) return hlo.error();
    question.hlo = *hlo;
    if (!options.has("mesh")) return lay_on_tiles(question, positions);
  }
  if (!options.has("mesh")) return Diagnostic{{}, "a mesh is needed: --mesh x=4,y=2"};
  auto mesh = parse_axes(options.text("mesh"), option("mesh"));
  if (!mesh) return mesh.error();
  array.mesh = *std::move(mesh);
  const std::size_t rank = question.extents.size();
  const auto sharding = options.has("hlo") ? from_hlo(question.hlo, array.mesh, rank, option("hlo"))
                                           : parse_sharding(options.text("spec"), array.mesh, rank, text_of("spec"));
  if (!sharding) return sharding.error();
  array.sharding = *sharding;
  if (options.has("spec")) question.hlo = to_hlo(array.sharding, array.mesh, rank);
  return success();
}

Expected<ShardingQuestion> read_question(const Options& options) {
  ShardingQuestion question;
  ShownArray& array = question.array;
  auto extents = read_array(options);
  if (!extents) return extents.error();
  question.extents = array.extents = *std::move(extents);
  std::vector<std::int64_t> positions;
  if (auto ok = read_sharding(options, question, positions); !ok) return ok.error();
  if (array.mesh.devices() > most_shown_devices)
    return Diagnostic{option(question.named ? "mesh" : "hlo"),
                      fmt::format("expected at most {} devices, got {}", most_shown_devices, array.mesh.devices())};
  if (options.flag("pad")) array.extents = padded_extents(array.extents, array.sharding, array.mesh);

  array.platform = options.text("platform");
  const bool printable = on_one_line(array.platform, longest_platform) == array.platform && array.platform.find(' ') == std::string::npos;
  if (width_of(array.platform) == 0 || !printable)
    return Diagnostic{option("platform"),
                      fmt::format("expected a name of 1 to {} printable characters, got {}", longest_platform, quoted(array.platform))};
  for (char& c : array.platform)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');

  // Tiles of HLO may lie on other devices than the first ones.
  const bool elsewhere = !positions.empty() && *std::max_element(positions.begin(), positions.end()) >= array.mesh.devices();
  if (elsewhere && (options.has("devices") || options.has("slice")))
    return Diagnostic{option("hlo"), fmt::format("expected the devices 0 to {}, which --devices and --slice number", array.mesh.devices() - 1)};
  const auto numbers = read_devices(options, array.mesh.devices());
  if (!numbers) return numbers.error();
  array.numbers = elsewhere ? positions : *numbers;
  if (!elsewhere)
    for (std::size_t i = 0; i < positions.size(); ++i) array.numbers[i] = (*numbers)[static_cast<std::size_t>(positions[i])];
  auto at = read_cut(options, array.extents);
  if (!at) return at.error();
  array.at = *std::move(at);
  return question;
}

std::string drawing_text(const Options& options, const ShardingQuestion& question, const BlockGrid& grid, const Console& console) {
  const bool to_file = options.has("output");
  const std::string& colour = options.text("colour");
  const bool coloured = colour == "always" || (colour == "auto" && console.colours && !to_file);
  const std::size_t columns = console.columns > 0 && !to_file ? console.columns : columns_without_terminal;
  const TextDrawing drawing = draw_sharding(grid, question.array.platform, coloured, columns);
  std::string text = drawing.text + '\n';
  if (drawing.width > columns) text += fmt::format("clipped to {} of {} columns; --format json has every block\n", columns, drawing.width);
  if (question.array.extents != question.extents) {
    const PaddedElements padding = padding_of(question);
    text += fmt::format("padded from {} to {}: {} of its elements, {}, are padding\n", fmt::join(question.extents, "x"),
                        fmt::join(question.array.extents, "x"), padding.elements, percent(padding.share));
  }
  return text;
}

Expected<int> print_sharding(const Options& options, Console& console) {
  const auto question = read_question(options);
  if (!question) return question.error();
  const auto grid = block_grid(question->array, {});
  if (!grid) return Diagnostic{grid.error().where, grid.error().message + "; --pad rounds it up"};
  const std::string file = options.has("output") ? options.text("output") : "";
  const bool svg = file.ends_with(".svg"), png = file.ends_with(".png");
  if ((svg || png) && format_of(options) == Format::json) return Diagnostic{option("output"), "expected a picture or --format json, got both"};
  const std::string& platform = question->array.platform;
  if (png) {
    const auto picture = sharding_png(*grid, platform, sharding_title(*question));
    if (!picture) return picture.error();
    return print_output(options, *picture, console);
  }
  if (svg) return print_output(options, sharding_svg(*grid, platform, sharding_title(*question)), console);
  if (format_of(options) == Format::json) return print_output(options, sharding_json(*question, *grid), console);
  return print_output(options, drawing_text(options, *question, *grid, console), console);
}

}  // namespace

int show_sharding(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, described_options(), "show_sharding", console, &print_sharding);
}

}  // namespace podsim
