#include "validation/calibration/importers/nccl_json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "sim/base/csv.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/collective_row.hpp"
#include "validation/calibration/importers/json_elements.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using simdjson::dom::element;
using simdjson::dom::object;

/// A number, or a text that is one: rccl-tests quote some.
std::optional<double> number_of(const simdjson::simdjson_result<element>& value) {
  double number = 0;
  if (value.get_double().get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
  text = trimmed(text);
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc{} && rest == text.data() + text.size() ? std::optional{number} : std::nullopt;
}

std::string_view text_of(const simdjson::simdjson_result<element>& value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view{};
}

/// Whether a count of wrong elements says that there are some; "N/A" and null say nothing.
bool is_wrong(const std::optional<double>& count) { return count && *count != 0; }

std::int64_t whole(double number) { return number >= 0 && number < 9e15 ? static_cast<std::int64_t>(number) : -1; }

/// A row of either program. Errors: fields that are missing.
Status take(const object& fields, const SourceLocation& where, std::optional<ObservedOp> op, int devices, CollectiveRows& rows) {
  CollectiveRow row;
  row.where = where;
  const auto size = number_of(fields["size"]);
  if (!size) return Diagnostic{where, "expected a row with the number size, found none"};
  row.size = whole(*size);
  row.type = text_of(fields["type"]);
  row.op = op;
  row.devices = devices;
  if (const auto name = !text_of(fields["name"]).empty() ? text_of(fields["name"]) : text_of(fields["experiment_name"]); !row.op && !name.empty()) {
    row.op = collective_of_benchmark(name);
    if (!row.op) return Diagnostic{where, fmt::format("expected a collective, as AllReduce, found {}", quoted(name))};
  }
  if (const auto ranks = number_of(fields["ranks"])) row.devices = static_cast<int>(std::clamp(*ranks, 0.0, 2.0 * most_observed_devices));
  std::optional<double> micros = number_of(fields["time"]);
  const auto in_place = number_of(fields["inPlace"]);
  row.in_place = in_place && *in_place != 0;
  row.wrong = is_wrong(number_of(fields["wrong"])) || is_wrong(number_of(fields["#wrong"]));
  if (object measured; fields["out_of_place"].get_object().get(measured) == simdjson::SUCCESS) {
    micros = number_of(measured["time"]);
    row.wrong = is_wrong(number_of(measured["nwrong"]));
    row.bandwidth = number_of(measured["alg_bw"]).value_or(0);
  } else if (!micros && fields["in_place"].get_object().get(measured) == simdjson::SUCCESS) {
    row.in_place = true;
    micros = number_of(measured["time"]);
  }
  if (const auto bandwidth = number_of(fields["algBw"]); bandwidth && !row.in_place) row.bandwidth = *bandwidth;
  if (!micros) return Diagnostic{where, "expected a row with the number time, found none (a time on the CPU alone does not count)"};
  row.micros = *micros;
  return rows.add(row);
}

/// What nccl-tests say beside their rows. `devices` lists the first rank of each process, or all ranks.
struct ReportHead {
  std::optional<ObservedOp> op{};
  int devices = 0;
};
ReportHead header_of(const std::string& rest) {
  ReportHead header;
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(rest).get(root) != simdjson::SUCCESS) return header;
  if (std::string_view program; root["args"].at(0).get_string().get(program) == simdjson::SUCCESS) header.op = collective_of_benchmark(program);
  const double threads = number_of(root["config"]["nthreads"]).value_or(1), gpus = number_of(root["config"]["ngpus"]).value_or(1);
  simdjson::dom::array devices;
  if (!(threads >= 1 && gpus >= 1 && threads * gpus <= most_observed_devices) || root["config"]["devices"].get_array().get(devices) != simdjson::SUCCESS) return header;
  const auto of_process = static_cast<std::int64_t>(threads * gpus);
  bool first_of_process = true;
  for (const element device : devices)
    if (const auto rank = number_of(device["rank"]); !rank || whole(*rank) % of_process != 0) first_of_process = false;
  const auto listed = static_cast<std::int64_t>(devices.size());
  header.devices = static_cast<int>(std::min<std::int64_t>(first_of_process ? listed * of_process : listed, 2 * most_observed_devices));
  return header;
}

Expected<object> object_in(simdjson::dom::parser& parser, const std::string& text, const SourceLocation& where) {
  object fields;
  if (const auto error = parser.parse(text).get_object().get(fields)) return Diagnostic{where, fmt::format("expected an object, found: {}", simdjson::error_message(error))};
  return fields;
}

}  // namespace

Expected<Imported> import_nccl_json(std::string_view text, const std::string& file, const ImportOptions& options) {
  CollectiveRows rows{options};
  simdjson::dom::parser parser;
  const bool is_report = trimmed(text).starts_with('{') && text.find("\"results\"") != std::string_view::npos;
  if (!is_report && trimmed(text).starts_with('{')) {  // an object a line
    for (const TextLine& line : lines_of(text)) {
      if (trimmed(line.text).empty()) continue;
      const SourceLocation where{file, line.number, line.column};
      const auto fields = object_in(parser, std::string{line.text}, where);
      if (!fields) return fields.error();
      if (auto ok = take(*fields, where, std::nullopt, 0, rows); !ok) return ok.error();
    }
    return rows.finish(file);
  }
  JsonElements elements{source_of(text, file), file, "results"};
  std::vector<std::pair<std::string, SourceLocation>> found;  // what stands behind them says of what they are
  for (std::string element;;) {
    const auto more = elements.next(element);
    if (!more) return more.error();
    if (!*more) break;
    found.emplace_back(std::move(element), elements.where());
  }
  if (!elements.found_array()) return Diagnostic{{file, 1, 1}, "expected an array \"results\" of nccl-tests, found none"};
  const ReportHead header = is_report ? header_of(elements.rest()) : ReportHead{};
  for (const auto& [element, where] : found) {
    const auto fields = object_in(parser, element, where);
    if (!fields) return fields.error();
    if (auto ok = take(*fields, where, header.op, header.devices, rows); !ok) return ok.error();
  }
  return rows.finish(file);
}

Expected<Imported> import_nccl_csv(std::string_view text, const std::string& file, const ImportOptions& options) {
  CsvReader reader{text, file};
  CollectiveRows rows{options};
  std::map<std::string, std::size_t, std::less<>> columns;
  while (true) {
    const auto row = reader.next();
    if (!row) return row.error();
    if (!*row) break;
    const std::vector<CsvField>& fields = (*row)->fields;
    if (columns.empty() || fields.front().text == "numCycle") {
      columns.clear();
      for (std::size_t i = 0; i < fields.size(); ++i) columns.emplace(fields[i].text, i);
      for (const std::string_view needed : {"name", "ranks", "size", "time"})
        if (!columns.contains(needed)) return Diagnostic{(*row)->where, fmt::format("expected the columns name, ranks, size and time, found none named {}", quoted(needed))};
      continue;
    }
    if (fields.size() < columns.size()) return Diagnostic{(*row)->where, fmt::format("expected {} fields, as the heading has, found {}", columns.size(), fields.size())};
    const auto field = [&](std::string_view name) -> const CsvField* {
      const auto found = columns.find(name);
      return found == columns.end() ? nullptr : &fields[found->second];
    };
    CollectiveRow one;
    one.where = (*row)->where;
    one.op = collective_of_benchmark(field("name")->text);
    if (!one.op) return Diagnostic{field("name")->where, fmt::format("expected a collective, as AllReduce, found {}", quoted(field("name")->text))};
    const auto size = parse_integer(field("size")->text, 0, most_observed_bytes.count(), field("size")->where);
    if (!size) return size.error();
    const auto ranks = parse_integer(field("ranks")->text, 1, most_observed_devices, field("ranks")->where);
    if (!ranks) return ranks.error();
    const auto micros = positive_number(field("time")->text, "the time", field("time")->where);
    if (!micros) return micros.error();
    one.size = *size, one.devices = static_cast<int>(*ranks), one.micros = *micros;
    if (const CsvField* type = field("type")) one.type = type->text;
    if (const CsvField* bandwidth = field("algBw")) std::from_chars(bandwidth->text.data(), bandwidth->text.data() + bandwidth->text.size(), one.bandwidth);
    if (const CsvField* in_place = field("inPlace")) one.in_place = in_place->text != "0";
    const CsvField* wrong = field("wrong") != nullptr ? field("wrong") : field("#wrong");
    one.wrong = wrong != nullptr && wrong->text.find_first_not_of("0.") != std::string::npos && wrong->text != "N/A";
    if (auto ok = rows.add(one); !ok) return ok.error();
  }
  return rows.finish(file);
}

}  // namespace podsim
