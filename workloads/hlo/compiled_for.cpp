#include "workloads/hlo/compiled_for.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <tuple>

#include "sim/config/files.hpp"
#include "workloads/hlo/hlo_cursor.hpp"

namespace podsim {

namespace {

using Element = simdjson::dom::element;

constexpr int most_coordinate = 1 << 20, most_devices = 1 << 24;

/// NAME.json of NAME.hlo, NAME.hlo.gz, NAME.hlo.pb and such; empty: the module is no file with a name.
std::string path_beside(std::string path) {
  if (path == "-") return {};
  for (const std::string_view ending : {".gz", ".pb", ".txt", ".hlo"})
    if (path.size() > ending.size() && path.ends_with(ending)) path.erase(path.size() - ending.size());
  return path + ".json";
}

class CompiledForText {
 public:
  CompiledForText(const std::string& file, const std::string& text) : text_{text} { compiled_.file = file; }

  Expected<std::optional<CompiledFor>> read() {
    find_keys();
    simdjson::dom::parser parser;
    Element root;
    if (const auto why = parser.parse(text_).get(root); why != simdjson::SUCCESS)
      return expected(fmt::format("JSON ({})", simdjson::error_message(why)), {});
    if (!root.is_object()) return std::optional<CompiledFor>{};
    const bool told = text_in(root, "machine", compiled_.machine) && text_in(root, "slice", compiled_.slice) && axes(root) && devices(root);
    if (!told) return *error_;
    if (const std::size_t colon = compiled_.slice.find(':'); colon != std::string::npos) compiled_.slice.erase(0, colon + 1);
    if (compiled_.machine.empty() && compiled_.slice.empty() && compiled_.axes.empty() && compiled_.devices.empty())
      return std::optional<CompiledFor>{};
    return std::optional{std::move(compiled_)};
  }

 private:
  /// simdjson's documents do not know their places: keys are looked for.
  void find_keys() {
    for (const std::string_view key : {"machine", "slice", "slices", "axes", "coords", "cores", "slice_index", "devices"})
      if (const std::size_t at = text_.find(fmt::format("\"{}\"", key)); at != std::string::npos) compiled_.places.emplace(key, HloCursor{text_, 0, {compiled_.file, 1, 1}}.where(at));
  }
  Diagnostic expected(std::string_view what, std::string_view key) const { return {compiled_.where(key), fmt::format("expected {}", what)}; }
  bool fail(std::string_view what, std::string_view key) {
    if (!error_) error_ = expected(what, key);
    return false;
  }

  bool text_in(const Element& root, std::string_view key, std::string& text) {
    Element found;
    if (root[key].get(found) != simdjson::SUCCESS || found.is_null()) return true;
    std::string_view value;
    if (found.get(value) != simdjson::SUCCESS) return fail(fmt::format("a text in {}", quoted(key)), key);
    text = value;
    return true;
  }

  bool integer(const Element& from, int most, int& value, std::string_view where) {
    std::int64_t number = 0;
    if (from.get(number) != simdjson::SUCCESS || number < 0 || number > most)
      return fail(fmt::format("a whole number from 0 to {} in {}", most, quoted(where)), where);
    value = static_cast<int>(number);
    return true;
  }

  bool axes(const Element& root) {
    Element found;
    if (root["axes"].get(found) != simdjson::SUCCESS || found.is_null()) return true;
    simdjson::dom::object object;
    if (found.get(object) != simdjson::SUCCESS) return fail("an object of sizes in \"axes\"", "axes");
    for (const auto& [name, size] : object) {
      int value = 0;
      if (!integer(size, most_devices, value, "axes")) return false;
      if (value < 1) return fail("sizes from 1 on in \"axes\"", "axes");
      if (std::ranges::find(compiled_.axes, name, &std::pair<std::string, int>::first) != compiled_.axes.end()) return fail(fmt::format("the axis {} once in \"axes\"", quoted(name)), "axes");
      compiled_.axes.emplace_back(std::string{name}, value);
    }
    return true;
  }

  /// The list of a key; none if it is left out.
  bool list(const Element& root, std::string_view key, std::vector<Element>& elements) {
    Element found;
    if (root[key].get(found) != simdjson::SUCCESS || found.is_null()) return true;
    simdjson::dom::array array;
    if (found.get(array) != simdjson::SUCCESS) return fail(fmt::format("a list in {}", quoted(key)), key);
    for (const Element element : array) elements.push_back(element);
    return true;
  }

  /// What JAX's d.id says of each device.
  bool ids(const Element& root, std::size_t devices) {
    std::vector<Element> elements;
    if (!list(root, "devices", elements)) return false;
    std::set<int> seen;
    for (const Element element : elements) {
      int id = 0;
      if (!integer(element, std::numeric_limits<int>::max(), id, "devices")) return false;
      if (!seen.insert(id).second) return fail(fmt::format("every device once in \"devices\", found {} again", id), "devices");
    }
    return elements.empty() || devices == 0 || elements.size() == devices ||
           fail(fmt::format("as many \"devices\" as \"coords\", {}, found {}", devices, elements.size()), "devices");
  }

  bool devices(const Element& root) {
    std::vector<Element> coords, cores, slices;
    if (!list(root, "coords", coords) || !list(root, "cores", cores) || !list(root, "slice_index", slices) || !ids(root, coords.size())) return false;
    for (const auto& [key, beside] : {std::pair{"cores", &cores}, {"slice_index", &slices}})
      if (!coords.empty() && !beside->empty() && beside->size() != coords.size())
        return fail(fmt::format("as many {} as \"coords\", {}, found {}", quoted(key), coords.size(), beside->size()), key);
    std::set<int> numbers;  // of slices: they need not be dense
    std::set<std::tuple<std::array<int, 3>, int, int>> places;
    for (std::size_t i = 0; i < coords.size(); ++i) {
      CompiledFor::Device& device = compiled_.devices.emplace_back();
      simdjson::dom::array triple;
      if (coords[i].get(triple) != simdjson::SUCCESS || triple.size() > device.coords.size() || triple.size() == 0)
        return fail("one to three coordinates of each device in \"coords\"", "coords");
      std::size_t d = 0;
      for (const Element coordinate : triple)
        if (!integer(coordinate, most_coordinate, device.coords[d++], "coords")) return false;
      if (!cores.empty() && !integer(cores[i], most_coordinate, device.core, "cores")) return false;
      if (!slices.empty() && !integer(slices[i], most_devices, device.slice, "slice_index")) return false;
      if (!places.emplace(device.coords, device.core, device.slice).second)
        return fail(fmt::format("every device once in \"coords\", found ({}) again", fmt::join(device.coords, ", ")), "coords");
      numbers.insert(device.slice);
    }
    for (CompiledFor::Device& device : compiled_.devices) device.slice = static_cast<int>(std::distance(numbers.begin(), numbers.find(device.slice)));
    compiled_.slices = std::max<int>(1, static_cast<int>(numbers.size()));
    return counts_slices(root, !coords.empty() && !slices.empty());
  }

  bool counts_slices(const Element& root, bool listed) {
    Element found;
    if (root["slices"].get(found) != simdjson::SUCCESS || found.is_null()) return true;
    int slices = 0;
    if (!integer(found, most_devices, slices, "slices")) return false;
    if (slices < 1) return fail("a number from 1 on in \"slices\", found 0", "slices");
    if (listed && slices != compiled_.slices) return fail(fmt::format("the {} slices of \"slice_index\" in \"slices\", found {}", compiled_.slices, slices), "slices");
    if (!listed) compiled_.slices = slices;
    return true;
  }

  const std::string& text_;
  CompiledFor compiled_;
  std::optional<Diagnostic> error_;
};

}  // namespace

SourceLocation CompiledFor::where(std::string_view key) const {
  const auto found = places.find(key);
  return found == places.end() ? SourceLocation{file, 1, 1} : found->second;
}

Expected<std::optional<CompiledFor>> read_compiled_for(const std::string& module_path) {
  const std::string path = path_beside(module_path);
  std::error_code unreadable;
  if (path.empty() || !std::filesystem::is_regular_file(path, unreadable)) return std::optional<CompiledFor>{};
  const auto text = read_file(path, list_limit);
  if (!text) return text.error();
  return CompiledForText{path, *text}.read();
}

}  // namespace podsim
