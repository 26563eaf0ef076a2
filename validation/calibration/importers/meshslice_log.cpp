#include "validation/calibration/importers/meshslice_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

constexpr std::array<std::pair<std::string_view, ObservedOp>, 3> operations = {
    {{"allgather", all_gather}, {"reducescatter", reduce_scatter}, {"sendrecv", permute}}};
constexpr std::string_view known_forms = "expected Allgather_x: dim=0 or the like, of Allgather, ReduceScatter and SendRecv";

struct Header {
  ObservedOp op = all_gather;
  std::string axis;
  std::optional<int> dim;
};

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// Cuts what stands before `separator` off `text`; nothing if there is none.
std::optional<std::string_view> cut(std::string_view& text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(at + separator.size());
  return front;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// The letters that a text begins with.
std::string_view leading_word(std::string_view text) {
  return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_letter) - text.begin()));
}

std::optional<ObservedOp> operation_named(std::string_view word) {
  const auto found = std::ranges::find(operations, lower_case(word), [](const auto& operation) { return operation.first; });
  if (found == operations.end()) return std::nullopt;
  return found->second;
}

/// A line that begins with an operation, or one word with a colon and no more than a dimension beside it: the sizes below it belong to something.
bool looks_like_header(std::string_view text) {
  if (operation_named(leading_word(text))) return true;
  auto front = cut(text, ":");
  if (!front || leading_word(*front).empty()) return false;
  const std::string_view behind = trimmed(text);
  const std::string_view beside = trimmed(front->substr(std::min(front->find(' '), front->size())));
  const auto is_dimension = [](std::string_view part) { return part.empty() || part.starts_with("dim="); };
  return is_dimension(behind) && is_dimension(beside);
}

/// Where a header tells no dimension: what the benchmark does there.
std::optional<int> untold_dimension(const Header& header) {
  if (header.op == reduce_scatter || header.axis.empty()) return 0;
  if (header.axis == "x") return 1;
  return std::nullopt;
}

/// `<operation>[_<axis>][ dim=<n>]:[ dim=<n>]`
Expected<Header> read_header(const TextLine& line, const std::string& file) {
  std::string_view rest = trimmed(line.text);
  const std::string_view whole = rest;
  const auto front = cut(rest, ":");
  if (!front) return Diagnostic{place_of(file, line, whole), quoted(whole) + " is no header: it has no colon; " + std::string{known_forms}};
  const std::string_view name = front->substr(0, front->find(' ')), word = leading_word(name), axis = name.substr(word.size());
  const auto op = operation_named(word);
  const bool is_axis = axis.size() > 1 && axis[0] == '_' && std::ranges::all_of(axis.substr(1), is_letter_or_digit);
  if (!op || !(axis.empty() || is_axis))
    return Diagnostic{place_of(file, line, name), quoted(name) + " is no header: " + std::string{known_forms}};
  Header header{*op, std::string{axis.substr(axis.empty() ? 0 : 1)}, std::nullopt};
  const std::string_view beside = trimmed(front->substr(name.size())), behind = trimmed(rest);
  const std::string_view told = beside.empty() ? behind : beside;
  if (!beside.empty() && !behind.empty())
    return Diagnostic{place_of(file, line, behind), "expected nothing behind this header, found " + quoted(behind)};
  if (header.op == permute) {
    if (told.empty()) return header;
    return Diagnostic{place_of(file, line, told), "expected nothing beside " + quoted(name) + ", which has no dimension, found " + quoted(told)};
  }
  header.dim = told == "dim=0" ? std::optional{0} : told == "dim=1" ? std::optional{1} : told.empty() ? untold_dimension(header) : std::nullopt;
  if (header.dim) return header;
  return Diagnostic{place_of(file, line, told.empty() ? name : told),
                    "expected dim=0 or dim=1 in the header " + quoted(name) + ", found " + (told.empty() ? "neither" : quoted(told))};
}

/// Devices along each axis, as the benchmark begins: `Running benchmark on (8, 4) devices.`, rows along x and columns along y, or on one axis without
/// a name `Running benchmark on 8 devices.`.
using PrintedAxes = std::map<std::string, int>;
constexpr std::string_view running = "Running benchmark on ";

Expected<PrintedAxes> read_axes(const TextLine& line, const std::string& file) {
  std::string_view text = trimmed(line.text).substr(running.size());
  text = trimmed(text.substr(0, text.find(" devices")));
  const auto size = [&](std::string_view number) { return parse_integer(number, 1, most_observed_devices, place_of(file, line, number)); };
  if (!text.starts_with('(') || !text.ends_with(')')) {
    const auto devices = size(text);
    if (!devices) return devices.error();
    return PrintedAxes{{"", static_cast<int>(*devices)}};
  }
  text = text.substr(1, text.size() - 2);
  const auto rows = cut(text, ",");
  if (!rows) return Diagnostic{place_of(file, line, text), "expected rows and columns, found " + quoted(text)};
  const auto along_x = size(trimmed(*rows)), along_y = size(trimmed(text));
  if (!along_x) return along_x.error();
  if (!along_y) return along_y.error();
  return PrintedAxes{{"x", static_cast<int>(*along_x)}, {"y", static_cast<int>(*along_y)}};
}

/// Along the axis of a header: as the log says, else the options.
Expected<int> devices_along(const std::string& axis, const PrintedAxes& printed, const ImportOptions& options, const SourceLocation& where) {
  const auto in_log = printed.find(axis);
  const auto told = options.axes.find(axis);
  if (in_log != printed.end() && told != options.axes.end() && in_log->second != told->second)
    return Diagnostic{where, "the log has " + std::to_string(in_log->second) + " devices along the axis " + quoted(axis) + ", `axis_sizes` " +
                                 std::to_string(told->second)};
  const int devices = in_log != printed.end() ? in_log->second : told != options.axes.end() ? told->second : options.devices;
  if (devices >= 1 && devices <= most_observed_devices) return devices;
  return Diagnostic{where, "the log does not tell how many devices the axis " + quoted(axis) + " has, and no option does (" +
                               (axis.empty() ? "`devices`" : "`axis_sizes` " + axis + "=N") + ")"};
}

Expected<Bytes> read_size(std::string_view text, const SourceLocation& where) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> units = {
      {{"KB", std::int64_t{1} << 10}, {"MB", std::int64_t{1} << 20}, {"GB", std::int64_t{1} << 30}, {"B", 1}}};
  for (const auto& [unit, factor] : units)
    if (text.ends_with(unit)) {
      const auto number = positive_number(trimmed(text.substr(0, text.size() - unit.size())), "a size", where);
      if (!number) return number.error();
      const double bytes = *number * static_cast<double>(factor);
      if (bytes < 1 || bytes > static_cast<double>(most_observed_bytes.count())) break;
      return Bytes{static_cast<std::int64_t>(bytes + 0.5)};
    }
  return Diagnostic{where, "a size must be a number of B, KB, MB or GB up to 4 TiB, got " + quoted(text)};
}

Expected<Seconds> read_time(std::string_view text, const SourceLocation& where) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units = {{{"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}, {"s", 1}}};
  for (const auto& [unit, per_second] : units)
    if (text.ends_with(unit)) {
      std::string_view number = text.substr(0, text.size() - unit.size());
      const auto value = positive_number(trimmed(number.substr(0, number.find("+-"))), "a time", where);
      if (!value) return value.error();
      return Seconds{*value / per_second};
    }
  return Diagnostic{where, "a time must end in ns, us, ms or s, got " + quoted(text)};
}

/// `Size: 8KB,\t Time: 0.0123+-0.0004ms`, of a collective of so many devices.
Expected<Observation> read_row(const TextLine& line, const Header& header, int devices, const std::string& file) {
  std::string_view rest = trimmed(line.text).substr(5);
  const auto size = cut(rest, ",");
  rest = trimmed(rest);
  if (!size || !rest.starts_with("Time:"))
    return Diagnostic{{file, line.number, 1}, "expected Size: <size>, Time: <time>, got " + quoted(line.text)};
  const std::string_view time = trimmed(rest.substr(5));
  const auto bytes = read_size(trimmed(*size), place_of(file, line, trimmed(*size)));
  if (!bytes) return bytes.error();
  const auto seconds = read_time(time, place_of(file, line, time));
  if (!seconds) return seconds.error();
  Observation row;
  row.op = header.op;
  row.devices = devices;
  row.bytes = header.op == reduce_scatter ? static_cast<std::int64_t>(devices) * *bytes : *bytes;
  if (row.bytes > most_observed_bytes) return Diagnostic{{file, line.number, 1}, "the input of this reduce-scatter is more than 4 TiB"};
  row.time = *seconds;
  row.axis = header.axis;
  row.array_dim = header.dim;
  row.where = {file, line.number, 1};
  return row;
}

}  // namespace

Expected<Imported> import_meshslice_log(std::string_view text, const std::string& file, const ImportOptions& options) {
  Imported imported;
  PrintedAxes printed;
  std::optional<Header> header;
  int devices = 0;  // along the header's axis
  std::size_t other = 0, meshes = 0;
  for (const TextLine& line : lines_of(text)) {
    const std::string_view content = trimmed(line.text);
    if (content.empty()) continue;
    if (content.starts_with("Size:")) {
      if (!header) return Diagnostic{{file, line.number, 1}, "this size stands under no header (Allgather_y: dim=0)"};
      auto row = read_row(line, *header, devices, file);
      if (!row) return row.error();
      imported.observations.push_back(*std::move(row));
    } else if (content.starts_with(running)) {
      const auto axes = read_axes(line, file);
      if (!axes) return axes.error();
      printed = *axes;
      const decltype(imported.mesh) mesh{printed.begin(), printed.end()};
      if (mesh.size() < 2) continue;  // the axis has no name
      if (meshes++ == 0)
        imported.mesh = mesh, imported.mesh_at = {file, line.number, 1};
      else if (imported.mesh != mesh)
        imported.mesh.clear();  // runs on several: the options say on which one all are predicted
    } else if (looks_like_header(content)) {
      auto found = read_header(line, file);
      if (!found) return found.error();
      const auto along = devices_along(found->axis, printed, options, place_of(file, line, content));
      if (!along) return along.error();
      header = *std::move(found);
      devices = *along;
    } else {
      ++other;
    }
  }
  if (imported.observations.empty()) return Diagnostic{{file, 1, 1}, "there is no line Size: <size>, Time: <time>"};
  if (other > 0) imported.notes.push_back(counted(other, "line") + " skipped that are neither headers nor times");
  imported.notes.emplace_back("times are of the host, so with what dispatch costs");
  imported.notes.emplace_back("sizes are shards: of a reduce-scatter of the output, multiplied here by the devices of its axis");
  return imported;
}

}  // namespace podsim
