#include "validation/importers/meshslice_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/units.hpp"
#include "validation/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

constexpr std::array<std::pair<std::string_view, ObservedOp>, 5> operations = {
    {{"allgather", all_gather}, {"reducescatter", reduce_scatter}, {"allreduce", all_reduce}, {"alltoall", all_to_all}, {"sendrecv", permute}}};

struct Header {
  ObservedOp op = all_gather;
  std::string axis;
  int dim = 0, devices = 0;
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

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

Expected<std::optional<Header>> read_header(const TextLine& line, const std::string& file, const ImportOptions& options) {
  std::string_view rest = trimmed(line.text);
  const auto name = cut(rest, ":");
  rest = trimmed(rest);
  if (!name || !rest.starts_with("dim=")) return std::optional<Header>{};
  const std::size_t underscore = name->rfind('_');
  const std::string word = lower_case(name->substr(0, underscore));
  const auto found = std::ranges::find(operations, word, [](const auto& operation) { return operation.first; });
  if (found == operations.end())
    return Diagnostic{place_of(file, line, *name), quoted(*name) + " is no header: expected Allgather_<axis>, ReduceScatter_<axis>, ..."};
  Header header;
  header.op = found->second;
  if (underscore != std::string_view::npos) header.axis = std::string{name->substr(underscore + 1)};
  const std::string_view number = rest.substr(4);
  const auto dim = parse_integer(number, 0, 63, place_of(file, line, number));
  if (!dim) return dim.error();
  header.dim = static_cast<int>(*dim);
  const auto axis = options.axes.find(header.axis);
  header.devices = axis != options.axes.end() ? axis->second : options.devices;
  if (header.devices < 1 || header.devices > most_observed_devices)
    return Diagnostic{place_of(file, line, *name),
                      "the log does not tell how many devices the axis " + quoted(header.axis) + " has, and no option does"};
  return std::optional{header};
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

}  // namespace

Expected<Imported> import_meshslice_log(std::string_view text, const std::string& file, const ImportOptions& options) {
  Imported imported;
  std::optional<Header> header;
  std::size_t other = 0;
  for (const TextLine& line : lines_of(text)) {
    std::string_view rest = trimmed(line.text);
    if (rest.empty()) continue;
    if (!rest.starts_with("Size:")) {
      auto found = read_header(line, file, options);
      if (!found) return found.error();
      if (*found)
        header = **found;
      else
        ++other;
      continue;
    }
    rest.remove_prefix(5);
    const auto size = cut(rest, ",");
    rest = trimmed(rest);
    if (!size || !rest.starts_with("Time:"))
      return Diagnostic{{file, line.number, 1}, "expected Size: <size>, Time: <time>, got " + quoted(line.text)};
    if (!header) return Diagnostic{{file, line.number, 1}, "this size stands under no header (Allgather_y: dim=0)"};
    const std::string_view time = trimmed(rest.substr(5));
    const auto bytes = read_size(trimmed(*size), place_of(file, line, trimmed(*size)));
    if (!bytes) return bytes.error();
    const auto seconds = read_time(time, place_of(file, line, time));
    if (!seconds) return seconds.error();
    Observation row;
    row.op = header->op;
    row.devices = header->devices;
    row.bytes = header->op == reduce_scatter ? static_cast<std::int64_t>(header->devices) * *bytes : *bytes;
    if (row.bytes > most_observed_bytes) return Diagnostic{{file, line.number, 1}, "the input of this reduce-scatter is more than 4 TiB"};
    row.time = *seconds;
    row.axis = header->axis;
    row.array_dim = header->dim;
    row.where = {file, line.number, 1};
    imported.observations.push_back(std::move(row));
  }
  if (imported.observations.empty()) return Diagnostic{{file, 1, 1}, "there is no line Size: <size>, Time: <time>"};
  if (other > 0) imported.notes.push_back(counted(other, "line") + " skipped that are neither headers nor times");
  imported.notes.emplace_back("times are of the host, so with what dispatch costs");
  imported.notes.emplace_back("sizes are shards: of a reduce-scatter of the output, multiplied here by the devices of its axis");
  return imported;
}

}  // namespace podsim
