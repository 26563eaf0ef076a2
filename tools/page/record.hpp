// The record of what a command came to: everything that a page about it needs, without the models that made it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/input_file.hpp"
#include "tools/page/recorded_result.hpp"
#include "tools/report/machine_report.hpp"
#include "tools/report/pipeline_chart.hpp"

namespace podsim {

/// A task on a line of a device, or an uninterrupted part of what it does in a call.
struct RecordedBar {
  Picoseconds begin, end;
  std::uint32_t task = 0;  // in Record::tasks
  std::uint32_t call = 0;  // of a call or within one, Record::calls[call - 1]; 0: of none
};
struct RecordedLine {
  std::string name;  // "compute", "row + send": tools/report/device_events.hpp; "calls"; "row in calls": what is in flight in them
  std::vector<RecordedBar> bars;  // in order of time, without overlap
};
/// A function of which each call was simulated as one task.
struct RecordedCall {
  struct Part {
    std::string name;  // "compute", "exposed communication, row", "waiting"
    Picoseconds time;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::string name;
  std::vector<Part> parts;  // of the time of a device in a call; they sum to all of it
  friend bool operator==(const RecordedCall&, const RecordedCall&) = default;
};
/// Live memory of a kind, larger from a time on.
struct RecordedChange {
  Picoseconds at;
  std::uint32_t kind = 0;  // in Record::memory_kinds
  Bytes by;
};
struct RecordedTimeline {
  int device = 0;
  std::string name;  // "row=0,col=3"
  int alike = 1;     // devices that do the same at the same time, this one counted
  std::vector<RecordedLine> lines;
  std::vector<RecordedChange> memory{};  // in order of time
  std::vector<int> others{};             // the other devices alike, in order
};

/// One direction of a cable.
struct RecordedLink {
  int from = 0, to = 0;  // in RecordedNetwork::nodes
  int dimension = -1;    // the machine's, or of several slices that of `extents`, along which it goes; -1: none
  double bytes = 0, utilisation = 0;
};
struct RecordedNetwork {
  int chips = 0;               // the first of the nodes; the others are switches
  std::vector<int> extents;    // chips are a grid of these, numbered row-major, of several slices the first; empty: no grid
  std::vector<std::string> nodes;
  std::vector<RecordedLink> links;
};

struct Record {
  std::string podsim_version, command;
  std::string result;  // recorded_result()
  std::vector<SourcedValue> machine;
  std::vector<std::string> tasks;
  std::vector<RecordedTimeline> timelines;  // of one device of each class, the largest classes first
  std::vector<std::string> missing;         // what is not there, and why
  std::optional<RecordedNetwork> network{};
  std::vector<std::string> memory_kinds{};
  std::vector<RecordedCall> calls{};
  std::optional<DrawnPipeline> pipeline{};  // of a training step with several stages; its `end` is that of the last task
  std::vector<std::string> task_roles{};    // role_of() each of `tasks`; empty: those that podsim wrote before it had roles
  ResultKind kind = ResultKind::run;  // of the result, as kind_of_result() tells
};

inline constexpr SizeLimit record_limit{Bytes{200'000'000}};
/// Bytes that read_record() reads back as an equal record.
std::string write_record(const Record& record);

/// Errors, all at once: bytes that are no record, a truncated or a damaged one, a newer version or the first, which had no checksum; a result that is none, bars that go back in time or name no
/// task or call, tasks without a role, links without ends.
Expected<Record> read_record(std::string_view bytes, const std::string& file);

}  // namespace podsim
