// All operations of a profile with the time that each takes on each device: what a step is made of. The readers are those of observations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

/// One operation; an asynchronous one is its start and its done together. Times are of the whole profile.
struct ProfiledOperation {
  std::string name;        // "fusion.7", "all-gather.3"
  std::string category;    // step_category.hpp
  double occurrences = 0;  // on one device, a mean where they differ
  Seconds self;            // of one device, the mean: without the operations that it contains
  Seconds beside;          // of an asynchronous one: from its start to its done, without the time of these two
  Flops flops;             // of one occurrence on all cores of a device; 0: not told
  Bytes bytes;             // of a collective: what one occurrence takes on each device; 0: not told
  int group = 0;           // devices that take part in it; 0: not told
};

struct ProfiledOperations {
  std::vector<ProfiledOperation> operations;  // in the order in which they came
  Seconds time;                               // from the first operation to the last on one device, the mean; forms without it: the sum
  int steps = 1;                              // in that time
  std::vector<std::string> notes;             // how the steps were counted, what was left out
};

struct ProfileOptions {
  int steps = 0;    // 0: as the profile tells
  int devices = 0;  // hlo-stats: that its sums are over; 0: with the steps, whatever makes the most frequent count of occurrences 1
  int cores = 1;    // of a device: FLOPs in profiles are of one
  int layers = 1;   // blocks in a step: where steps are counted by occurrences, most operations have one per block
};

/// Collects operations with their self time: events of a line nest, and an event's time is its duration without that of the events directly in it.
class OperationTimes final : public ProfileSink {
 public:
  [[nodiscard]] bool takes(std::string_view line) const override { return line == operations_line || line == steps_line || line == modules_line; }
  void add(ProfileLine line, const ProfileEvent& event) override;

  /// Means over the devices. Steps: those of the options, else as many as there are events on the line `Steps`, else of the module that takes most
  /// time, else steps_by_occurrences(); a note says which. Errors: no operation on any device; numbers of steps that cannot be.
  ///   cost    O(n log n) for n events
  Expected<ProfiledOperations> finish(const ReadProfile& profile, const std::string& file, const ProfileOptions& options);

 private:
  struct Event {
    std::int64_t begin_ps, duration_ps, span_ps;
    std::uint32_t op;
  };
  struct Op {
    std::string name, text, category;
    Flops flops;
  };
  struct Sums;
  void add_device(std::vector<Event>& events, Sums& sums) const;
  void note_bare_fusions(const Sums& sums, ProfiledOperations& found) const;
  void count_steps(const ReadProfile& profile, const ProfileOptions& options, ProfiledOperations& found) const;

  std::vector<Op> ops_;  // in the order in which they came
  std::unordered_map<std::string, std::uint32_t> by_text_;
  std::unordered_map<ProfileLine, std::vector<Event>> lines_;
};

/// The form of a profile by the end of its file's name; nullopt: none of these.
std::optional<std::string_view> profile_form(std::string_view file);

/// The forms that have all operations: xplane, trace-json, hlo-stats. Errors: another form, those of the reader and of OperationTimes.
Expected<ProfiledOperations> profile_operations(std::string_view format, const std::string& path, const ProfileOptions& options = {});
Expected<ProfiledOperations> profile_operations_in(std::string_view format, std::string_view bytes, const std::string& file,
                                                   const ProfileOptions& options = {});

/// What an operation itself tells of it, as `hlo_category` and its FLOPs (of one core) do; no times. `text`: all that is known of it, for names in
/// it.
ProfiledOperation described_operation(HloOp op, std::string_view text, std::string_view hlo_category, Flops flops, int cores);

/// Steps by how often operations occur: the number of occurrences that most of them have (ties: the lower one), or a `layers`-th of it where that is
/// a whole number. `why` is it as a sentence that goes on behind "3 steps".
struct CountedSteps {
  int steps = 1;
  std::string why;
};
CountedSteps steps_by_occurrences(const std::vector<ProfiledOperation>& operations, int layers);

}  // namespace podsim
