// The record of a run: everything that a page about it needs, without the models that made it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/input_file.hpp"
#include "tools/report/machine_report.hpp"
#include "tools/report/run_report.hpp"

namespace podsim {

/// A task on a line of a device.
struct RecordedBar {
  Picoseconds begin, end;
  std::uint32_t task = 0;  // in Record::tasks
};
struct RecordedLine {
  std::string name;  // "compute", "row + send": tools/report/device_events.hpp
  std::vector<RecordedBar> bars;  // in order of time, without overlap
};
struct RecordedTimeline {
  int device = 0;
  std::string name;  // "row=0,col=3"
  int alike = 1;     // devices that do the same at the same time, this one counted
  std::vector<RecordedLine> lines;
};

struct Record {
  std::string podsim_version, command;
  std::string result;  // JSON of the run, result_json()
  std::vector<SourcedValue> machine;
  std::vector<std::string> tasks;
  std::vector<RecordedTimeline> timelines;  // of one device of each class, the largest classes first
  std::vector<std::string> missing;         // what is not there, and why
};

inline constexpr SizeLimit record_limit{Bytes{200'000'000}};
inline constexpr std::size_t most_timelines = 16;
inline constexpr std::size_t most_bars = 80'000;  // of all timelines but the first together: 2 MB of a page; classes beyond are left out, and `missing` says so

/// Of a run whose timeline is recorded; `details` have its devices, `command` is what a shell takes. Cost O(n log n) for the n tasks of each device
/// that it shows.
Record record_of(const Run& run, const Details& details, std::string command, std::string podsim_version);

/// Bytes that read_record() reads back as an equal record.
std::string write_record(const Record& record);

/// Errors, all at once: bytes that are no record or a truncated one, a newer version, bars that go back in time or name no task.
Expected<Record> read_record(std::string_view bytes, const std::string& file);

}  // namespace podsim
