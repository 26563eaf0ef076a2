#include "validation/validate/described_rows.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validation/validate/run_rows.hpp"
#include "validation/validate/training_rows.hpp"

namespace podsim {

namespace {

/// Times of rows on machines: a fit and those of its halves ask for many of them again.
class KnownTimes {
 public:
  std::optional<Seconds> find(const Observation& row, const Machine& machine) {
    const std::lock_guard lock{mutex_};
    for (const auto& [of, time] : times_[place(row)])
      if (of == machine) return time;
    return std::nullopt;
  }
  void add(const Observation& row, const Machine& machine, Seconds time) {
    const std::lock_guard lock{mutex_};
    times_[place(row)].emplace_back(machine, time);
  }

 private:
  static std::pair<std::string, int> place(const Observation& row) { return {row.where.file, row.where.line}; }
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::vector<std::pair<Machine, Seconds>>> times_;
};

}  // namespace

DescribedTime described_time(const Study& study, const System& base) {
  return [&study, base, known = std::make_shared<KnownTimes>()](const Observation& row, const Machine& machine, Cancellation stop) -> Expected<Seconds> {
    if (const auto time = known->find(row, machine)) return *time;
    System system = base;  // only its machine is looked at
    system.machine = machine;
    auto time = is_run(row) ? predict_run(row, study, machine, stop) : predict_step(row, study, system, stop);
    if (time) known->add(row, machine, *time);
    return time;
  };
}

}  // namespace podsim
