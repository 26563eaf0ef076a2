// All operations of a profile with their times per device: the operations of a step. Uses the readers of the observation importers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "validation/calibration/importers/profile_files.hpp"

namespace podsim {

/// One operation; an asynchronous one combines its start and its done. Times are of the whole profile.
struct ProfiledOperation {
  std::string name;        // "fusion.7", "all-gather.3"
  std::string category;    // step_category.hpp
  double occurrences = 0;  // per device, a mean if they differ
  Seconds self;            // per device, the mean: excluding the operations nested in it
  Seconds beside;          // of an asynchronous one: from its start to its done, excluding these two, which is an upper bound; in a simulation's profile what that states
  Flops flops;             // of one occurrence on all cores of a device; 0: not stated
  Bytes bytes;             // of a collective: input of one occurrence per device; 0: not stated
  int group = 0;           // devices that take part in it; 0: not stated
  std::string provenance{};  // where in the program it comes from, tf_op: "jit(step)/ff1/gather W:"; of PyTorch the operator, "aten::mm"; empty: not stated
  bool of_kernels = false;   // on a GPU: the category is a guess from names of kernels
  bool is_kernel = false;    // and it ran in a command buffer: the profile tells the kernel, whose name this is, but not its HLO operation
};

struct ProfiledOperations {
  std::vector<ProfiledOperation> operations;  // in the order of the profile
  Seconds time;                               // from the first operation or step to the last on one device, the mean; forms without it: the sum
  int steps = 1;                              // within `time`
  std::vector<std::string> notes;             // how the steps were counted, and what was left out
  std::vector<std::string> warnings{};        // what is told of the profile and does not look right
  std::vector<std::string> machines{};        // what it was measured on, where it says so: "NVIDIA H200"
  bool has_operators = false;                 // PyTorch's, in place of HLO operations
};

/// A step of a profile on one device, in time.
struct ProfiledDeviceStep {
  struct Event {
    std::int64_t begin_ps = 0, end_ps = 0;  // from the beginning of the step
    std::int64_t self_ps = 0;               // as the device reports it, without the events nested in it
    std::uint32_t name = 0;                 // position in ProfiledStep::names
    std::uint32_t operation = 0;            // in `step`
    std::uint32_t occurrence = 0;           // of the operation, from 0: a start, its updates and its done have the same
  };
  std::string device;         // "/device:TPU:3"
  bool busiest = false;       // the one that a simulation's figures are of
  ProfiledOperations step;    // of this step only
  std::vector<Event> events;  // by begin, those that contain others first. Their own times sum to those of the operations
};

struct ProfiledStep {
  int number = 1, steps = 1;  // counted from 1 in the order of time
  std::vector<std::string> names;
  std::vector<ProfiledDeviceStep> devices;  // in the order of the profile
  std::vector<std::string> notes;
};

/// Which step, of which devices.
struct StepChoice {
  std::optional<int> number{};                              // from 1; nullopt: the median by time
  std::function<bool(std::string_view device)> takes{};  // empty: all devices
};

struct ProfileOptions {
  int steps = 0;    // 0: from the profile
  int devices = 0;  // hlo-stats: devices that its sums cover; 0: derived from the steps, such that the most frequent count of occurrences becomes 1
  int cores = 1;    // per device: FLOPs in profiles are of one core
  int layers = 1;   // blocks per step: if steps are counted by occurrences, most operations occur once per block
};

/// Collects operations with their self times. On TPUs, events of a line nest; an event's self time is its duration minus that of the events directly inside
/// it. On GPUs they are the kernels of all streams, each with the time that own_times() gives it; kernels of one HLO operation are added up.
class OperationTimes final : public ProfileSink {
 public:
  [[nodiscard]] bool takes(std::string_view line) const override {
    return line == operations_line || line == steps_line || line == modules_line || is_stream(line);
  }
  void add(ProfileLine line, const ProfileEvent& event) override;

  /// Means over the devices; of a simulation's profile that names the busiest its times. The number of steps is that of the options, else the number of events on the line `Steps`, else of the module with the
  /// most time, else what the profile says elsewhere, else on GPUs steps_by_divisor(), else steps_by_occurrences(); a note says which, and a warning if the options say otherwise than the profile. Errors: no operation on any device; more steps than any operation occurs.
  ///   cost    O(n log n) for n events
  Expected<ProfiledOperations> finish(const ReadProfile& profile, const std::string& file, const ProfileOptions& options);

  /// One step of the profile: an event of the line `Steps` of each device, else a run of the module with the most time, else on GPUs from one run of the kernel that begins steps to the next,
  /// else the whole profile, which a note says. The median is told on the device that the profile names as the busiest, else on the first; of an even number it is the shorter one.
  /// Errors: no operation on any device, or on any that is taken; no such step.
  ///   cost    O(n log n) for n events, and O(operations) per device
  Expected<ProfiledStep> step(const ReadProfile& profile, const std::string& file, const ProfileOptions& options, const StepChoice& choice);

 private:
  struct Event {
    std::int64_t begin_ps, duration_ps, span_ps;
    std::uint32_t op;
    std::int64_t overlapped_ps = -1;  // -1: the profile does not say
  };
  struct Op {
    std::string name, text, category, provenance;
    Flops flops;
    std::string kernel{};       // of a GPU
    std::uint32_t whole = 0;    // the first kernel of the same operation, which has the sums of all; itself if there is no other
    bool has_operation = false; // the name is that of an operation, not of the kernel
    bool is_kernel = false;     // as ProfiledOperation::is_kernel
    Bytes bytes{};
    int group = 0;
  };
  struct Sums;
  [[nodiscard]] const std::vector<Event>* events_on(const ReadProfile::Device& device, std::string_view line) const;
  [[nodiscard]] std::vector<std::uint32_t> starts_on(const std::vector<Event>& events) const;
  [[nodiscard]] std::vector<Event> steps_on(const ReadProfile::Device& device, const ProfileOptions& options) const;
  [[nodiscard]] static std::vector<double> sort_and_take_self(std::vector<Event>& events);
  void add_device(std::vector<Event>& events, const std::vector<Event>* steps, Sums& sums) const;
  void add_kernel(ProfileLine line, const ProfileEvent& event);
  [[nodiscard]] std::vector<Event> kernels_on(const ReadProfile::Device& device) const;
  [[nodiscard]] std::string category_of_kernel(std::uint32_t op) const;
  [[nodiscard]] std::vector<double> times_of_kernels(const std::vector<Event>& kernels) const;
  void add_kernels(std::vector<Event>& kernels, Sums& sums) const;
  [[nodiscard]] std::vector<Event> steps_of_kernels(const ReadProfile::Device& device, const ProfileOptions& options) const;
  void describe_kernels(const Sums& sums, std::uint32_t op, ProfiledOperation& operation) const;
  void note_kernels(const Sums& sums, ProfiledOperations& found) const;
  std::vector<std::uint32_t> add_operations(const Sums& sums, const ProfileOptions& options, ProfiledOperations& found) const;
  [[nodiscard]] ProfiledDeviceStep step_of(const ReadProfile::Device& device, std::vector<Event> events, const Event* window,
                                           const ProfileOptions& options) const;
  void note_bare_fusions(const Sums& sums, ProfiledOperations& found) const;
  [[nodiscard]] CountedSteps steps_in(const ReadProfile& profile, const ProfileOptions& options, const ProfiledOperations& found) const;
  Status count_steps(const ReadProfile& profile, const std::string& file, const ProfileOptions& options, ProfiledOperations& found) const;

  std::vector<Op> ops_;  // in the order of the profile
  std::unordered_map<std::string, std::uint32_t> by_text_;
  std::unordered_map<ProfileLine, std::vector<Event>> lines_;
};

/// The formats that contain all operations: xplane, trace-json, hlo-stats. Errors: another format, those of the reader and of OperationTimes.
Expected<ProfiledOperations> profile_operations(const ProfileFiles& files, const ProfileOptions& options = {});
Expected<ProfiledOperations> profile_operations_in(std::string_view format, std::string_view bytes, const std::string& file,
                                                   const ProfileOptions& options = {});

/// One step of a profile with a timeline, xplane or trace-json. Errors: a format without one, another format, those of the reader and of OperationTimes.
Expected<ProfiledStep> profile_step(const ProfileFiles& files, const ProfileOptions& options = {}, const StepChoice& choice = {});
Expected<ProfiledStep> profile_step_in(std::string_view format, std::string_view bytes, const std::string& file, const ProfileOptions& options = {},
                                       const StepChoice& choice = {});

/// The properties of an operation from its HLO, `hlo_category` and FLOPs (of one core), without times. `text`: all text about it, searched for names.
ProfiledOperation described_operation(HloOp op, std::string_view text, std::string_view hlo_category, Flops flops, int cores);

/// The most frequent number of occurrences (ties: the lower), or a `layers`-th of it if that is a whole number.
CountedSteps steps_by_occurrences(const std::vector<ProfiledOperation>& operations, int layers);

/// The largest number that divides the occurrences of nine tenths of the operations: what is outside of loops runs once in each step. Where that is 1 and nothing occurs once, steps_by_occurrences().
CountedSteps steps_by_divisor(const std::vector<ProfiledOperation>& operations, int layers);

}  // namespace podsim
