// Names for what a result depends on: equal content, equal name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "tools/sweep/points.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// Of any bytes: a version 5 UUID (SHA-1), "2f1a...". Two parts are told apart wherever one ends and the other begins.
std::string content_key(const std::vector<std::string_view>& parts);

/// All of a system but its mesh and placement that may show in a result: the machine's values (not their sources), the slice, every link, what is asked
/// to be otherwise.
///   cost   O(links)
std::string key_of_hardware(const System& system);

/// Which chip each device is on, and how fast it is.
std::string key_of_placement(const Placement& placement);

/// A schedule as it is executed, its collectives lowered. Names of tasks and buffers count too: they show in a result's explanation.
///   cost   O(tasks)
std::string key_of_schedule(const Schedule& lowered);

/// Names the inputs of points as far as their texts go, the contents of the files that they name, and the version of the program: the same inputs
/// have the same result, so a point need not be built to know that it has been run.
class InputKeys {
 public:
  explicit InputKeys(std::string version) : version_{std::move(version)} {}
  std::string operator()(const PointInputs& inputs);
  /// The key of what each file that was named so far contains, and of each shipped machine: "machine=tpu_v4"; empty where there is no such file.
  [[nodiscard]] const std::map<std::string, std::string>& contents() const { return contents_; }

 private:
  const std::string& contents(const std::string& field, const std::string& text);
  std::string version_;
  std::map<std::string, std::string> contents_;  // of what has been looked at
};

}  // namespace podsim
