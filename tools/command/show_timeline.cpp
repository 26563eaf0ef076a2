#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "sim/base/input_file.hpp"
#include "sim/base/units.hpp"
#include "sim/config/message_file.hpp"
#include "tools/command/options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/page/record.hpp"
#include "tools/page/timeline_chart.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {
namespace {

constexpr std::size_t columns_of_files = 100;  // and of pipes

OptionGroup timeline_options() {
  return joined({{{"record", no_field(input_file("RECORD")), "a record of a run, as podsim run --record writes it; --record may be left out"},
                  {"device", no_field(word("D")),
                   "the number of a device, or its place, row=0,col=3; of devices that do the same the record has one, which is shown. Left out: "
                   "the first of the record, of the largest class"},
                  {"width", no_field(word("N")),
                   fmt::format("columns, {} to {}; left out: those of the terminal, {} where there is none", narrowest_timeline, widest_timeline,
                               columns_of_files)}},
                 output_options(table_only)});
}

Expected<Record> read_timelines(const std::string& file) {
  const auto bytes = read_file(file, record_limit);
  if (!bytes) return bytes.error();
  if (!bytes->starts_with(binary_magic)) return Diagnostic{{file, 0, 0}, "expected a record, as podsim run --record writes it, found another file"};
  auto record = read_record(*bytes, file);
  if (record && record->timelines.empty())
    return Diagnostic{{file, 0, 0}, fmt::format("expected a record with a timeline, as podsim run --record writes it, found one without{}",
                                                record->missing.empty() ? "" : fmt::format(". Missing: {}", fmt::join(record->missing, "; ")))};
  return record;
}

struct ShownTimeline {
  const RecordedTimeline* timeline;
  std::string note{};  // where it is that of another device that does the same
};

Expected<ShownTimeline> timeline_named(const Record& record, const std::string& device) {
  std::vector<std::string> there;
  for (const RecordedTimeline& timeline : record.timelines) {
    if (device == std::to_string(timeline.device) || device == timeline.name) return ShownTimeline{&timeline};
    there.push_back(fmt::format("{} ({})", timeline.device, timeline.name));
  }
  const auto number = parse_integer(device, 0, std::numeric_limits<int>::max(), {});
  const std::optional<int> other = number ? std::optional{static_cast<int>(*number)} : device_at(record.result, device);
  for (const RecordedTimeline& timeline : record.timelines)
    if (other && std::binary_search(timeline.others.begin(), timeline.others.end(), *other))
      return ShownTimeline{&timeline, fmt::format("device {} does the same as device {}, which is shown:\n\n", on_one_line(device, columns_of_files),
                                                  timeline.device)};
  return Diagnostic{option("device"),
                    fmt::format("expected one that the record has, or one that does the same: {}; found {}", fmt::join(there, ", "), quoted(device))};
}

Expected<int> print_timeline(const Options& options, Console& console) {
  if (!options.has("record")) return Diagnostic{{}, "which record? podsim show timeline RECORD"};
  const bool to_console = !options.has("output");
  std::size_t columns = to_console && console.columns > 0 ? std::clamp(console.columns, narrowest_timeline, widest_timeline) : columns_of_files;
  if (options.has("width")) {
    const auto width = options.integer("width", narrowest_timeline, widest_timeline);
    if (!width) return width.error();
    columns = static_cast<std::size_t>(*width);
  }
  const std::string& file = options.text("record");
  const auto record = read_timelines(file);
  if (!record) return record.error();
  Expected<ShownTimeline> shown = ShownTimeline{&record->timelines.front()};
  if (options.has("device")) shown = timeline_named(*record, options.text("device"));
  if (!shown) return shown.error();
  const auto text = timeline_chart(*record, *shown->timeline, file, columns, to_console && console.colours);
  if (!text) return text.error();
  return print_output(options, shown->note + *text, console);
}

}  // namespace

int show_timeline(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, timeline_options(), "show_timeline", console, &print_timeline, "record");
}

}  // namespace podsim
