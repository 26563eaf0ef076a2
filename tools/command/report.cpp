#include <fmt/format.h>

#include <filesystem>

#include "sim/base/input_file.hpp"
#include "tools/command/command.hpp"
#include "tools/command/options.hpp"
#include "tools/console/progress.hpp"
#include "tools/page/page.hpp"

namespace podsim {

namespace {

OptionGroup report_options() {
  return {{"record", input_files("RECORD"), "a record, or the JSON of run, compare, tune, validate or sweep; --record may be left out; repeatable"},
          {"output,o", output_file("FILE.html"), "the page"},
          {"help,h", flag(), "this page"}};
}

Expected<int> write_page(const Options& options, Console& console) {
  const std::vector<std::string> files = options.texts("record");
  if (files.empty()) return Diagnostic{{}, "expected a record, as --record FILE of run, compare, tune, validate and sweep writes it, found none"};
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
