// A program that calls a command in its own process, as the Python module does: it gives objects where a shell gives files, and takes values where a
// terminal takes texts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace podsim {

struct Machine;
struct Schedule;
struct KnownObjects;  // workloads/scenario/known_objects.hpp
struct DescribedCommand;  // tools/command/options.hpp
struct SimulatedParts;  // workloads/tuning/part_costs.hpp
struct RunAnswer;     // tools/command/answers.hpp
struct TuningAnswer;
struct ComparisonReport;  // tools/report/comparison_report.hpp

struct Caller {
  std::shared_ptr<const KnownObjects> known{};               // that the words of the command may name
  std::function<void(const std::string& what)> progress{};   // a line a few times a second from the first second on, by any thread
  DescribedCommand* described = nullptr;                     // gets what the command takes, which is not carried out then
  std::size_t share = 0, shares = 1;                         // of `tune`: the systems that this process searches (TuningRequest)
  std::shared_ptr<const SimulatedParts> elsewhere{};         // what others have simulated for it
  // What the command came to; texts for which there is a value are not printed.
  std::vector<Diagnostic> errors{};  // as libraries name fields, between backticks
  std::shared_ptr<RunAnswer> run{};
  std::shared_ptr<TuningAnswer> tuning{};
  std::shared_ptr<ComparisonReport> comparison{};
  std::shared_ptr<Schedule> schedule{};  // of `show schedule`
  std::shared_ptr<Machine> machine{};    // of `calibrate`
  std::string table{};                   // of a verb that was asked for JSON and has no value: what it prints for people
};

}  // namespace podsim
