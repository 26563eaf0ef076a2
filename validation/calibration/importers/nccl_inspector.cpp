#include "validation/calibration/importers/nccl_inspector.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/statistics.hpp"
#include "sim/base/text.hpp"
#include "validation/calibration/importers/collective_row.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using simdjson::dom::element;

/// A whole number of a field, named in the error by the last of its keys.
Expected<std::int64_t> number_in(const element& line, std::string_view object, std::string_view key, std::int64_t most, const SourceLocation& where) {
  std::int64_t number = 0;
  if (line[object][key].get_int64().get(number) != simdjson::SUCCESS || number < 1 || number > most) return Diagnostic{where, fmt::format("expected {} from 1 to {}, found none", key, most)};
  return number;
}

}  // namespace

bool is_nccl_inspector(std::string_view head) { return trimmed(head).starts_with('{') && head.find("\"inspector_output_format_version\"") != std::string_view::npos; }

Expected<Imported> import_nccl_inspector(std::string_view text, const std::string& file, const ImportOptions& options) {
  struct Measured {
    SourceLocation where{};
    std::vector<double> micros{};
  };
  std::map<std::tuple<ObservedOp, std::int64_t, std::int64_t>, Measured> rows;  // by collective, ranks, size
  simdjson::dom::parser parser;
  std::size_t others = 0;
  for (const TextLine& at : lines_of(text)) {
    if (trimmed(at.text).empty()) continue;
    const SourceLocation where{file, at.number, at.column};
    element line;
    if (const auto error = parser.parse(std::string{at.text}).get(line)) return Diagnostic{where, fmt::format("expected an object of NCCL's inspector, found: {}", simdjson::error_message(error))};
    std::string_view name;
    if (line["coll_perf"]["coll"].get_string().get(name) != simdjson::SUCCESS) {
      if (line["header"].error() != simdjson::SUCCESS) return Diagnostic{where, "expected an object of NCCL's inspector, with header and coll_perf, found another"};
      ++others;
      continue;
    }
    const auto op = collective_of_benchmark(name);
    if (!op) {
      ++others;
      continue;
    }
    const auto ranks = number_in(line, "header", "n_ranks", most_observed_devices, where), size = number_in(line, "coll_perf", "coll_msg_size_bytes", most_observed_bytes.count(), where),
               micros = number_in(line, "coll_perf", "coll_exec_time_us", std::int64_t{1} << 50, where);
    for (const auto* number : {&ranks, &size, &micros})
      if (!*number) return number->error();
    Measured& row = rows[{*op, *ranks, *size}];
    if (row.micros.empty()) row.where = where;
    row.micros.push_back(static_cast<double>(*micros));
  }
  CollectiveRows found{options};
  std::size_t times = 0;
  for (auto& [key, measured] : rows) {
    const auto& [op, ranks, size] = key;
    times += measured.micros.size();
    CollectiveRow row{op, static_cast<int>(ranks), size, median(measured.micros)};
    // The inspector counts what a rank sends of an all-gather and receives of a reduce-scatter.
    if (op == ObservedOp::all_gather || op == ObservedOp::reduce_scatter) row.size = size <= most_observed_bytes.count() / ranks ? size * ranks : -1;
    row.where = measured.where;
    if (auto ok = found.add(row); !ok) return ok.error();
  }
  auto imported = found.finish(file);
  if (!imported) return imported;
  imported->notes.push_back(fmt::format("medians of {} kernels of one rank, which hold its wait for the others", times));
  if (others > 0) imported->notes.push_back(fmt::format("{} of sends, receives or other operations skipped", counted(static_cast<std::int64_t>(others), "line")));
  return imported;
}

}  // namespace podsim
