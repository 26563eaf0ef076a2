#include <fmt/format.h>

#include <filesystem>

#include "sim/base/input_file.hpp"
#include "tools/command/command.hpp"
#include "tools/command/options.hpp"
#include "tools/console/progress.hpp"
#include "tools/page/page.hpp"
#include "tools/page/sweep_points.hpp"

namespace podsim {

namespace {

OptionGroup report_options() {
  return {{"record", input_files("RECORD"), "a record, or the JSON of run, compare, tune, validate, sweep, diff, calibrate or check; --record may be left out; repeatable"},
          {"output,o", output_file("FILE.html"), "the page; FILE.csv: the points of a sweep; FILE.vl.json: a chart of them for Vega-Lite, its data within"},
          {"help,h", flag(), "this page"}};
}

Expected<int> write_page(const Options& options, Console& console) {
  const std::vector<std::string> files = options.texts("record");
  if (files.empty()) return Diagnostic{{}, "expected a record, as --record FILE of run, compare, tune, validate, sweep, diff, calibrate and check writes it, found none"};
  if (!options.has("output")) return Diagnostic{{}, "expected -o FILE.html, found none"};
  std::vector<Record> records;
  std::vector<std::string> names;
  ProgressLine line{console, false};
  line.count_seconds();
  for (const std::string& file : files) {
    line.counting(records.size(), files.size());
    line.doing("reading " + file);
    const auto bytes = read_file(file, record_limit);
    if (!bytes) return bytes.error();
    auto record = read_record_or_json(*bytes, file);
    if (!record) return record.error();
    records.push_back(*std::move(record));
    names.push_back(std::filesystem::path{file}.filename().string());
  }
  line.counting(0, 0);
  const std::string& output = options.text("output");
  if (const bool csv = output.ends_with(".csv"); csv || output.ends_with(".vl.json")) {
    if (records.size() != 1 || records.front().kind != ResultKind::sweep) return Diagnostic{option("output"), "expected FILE.html, or the record of one sweep, whose points are written as CSV or for Vega-Lite; found " + quoted(output)};
    line.end();
    return print_output(options, csv ? points_csv(records.front()) : points_vega_lite(records.front()), console);
  }
  line.doing("writing the page");
  const std::string page = page_of(records, names);
  line.end();
  return print_output(options, page, console);
}

}  // namespace

int report_verb(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, report_options(), "report", console, &write_page, "record");
}

}  // namespace podsim
