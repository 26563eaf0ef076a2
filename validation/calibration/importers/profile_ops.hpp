// Operations of a profile, collected over its devices: what xplane and trace_json have in common.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "validation/calibration/importers/hlo_op.hpp"

namespace podsim {

/// One event of a line of operations.
struct ProfileEvent {
  std::string_view name, text;   // text: the HLO; may be empty
  std::string_view category;     // hlo_category; may be empty
  Flops flops;                   // of one occurrence on one core; 0: not told
  std::int64_t begin_ps = 0;     // from any moment that a device's lines share
  std::int64_t duration_ps = 0;  // as the device tells it, else span_ps
  std::int64_t span_ps = 0;      // what the event covers of its line
};

/// The lines of a device that anything is read from.
inline constexpr std::string_view operations_line = "XLA Ops", steps_line = "Steps", modules_line = "XLA Modules";

/// A line of events, numbered by the reader of a profile.
using ProfileLine = std::uint64_t;

/// Who is told what a profile has, event by event, while it is read.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;
  /// Whether lines of this name are of interest.
  [[nodiscard]] virtual bool takes(std::string_view line) const = 0;
  /// An event on a line whose name it takes, or, in forms that name their lines later, is not known yet. In any order.
  virtual void add(ProfileLine line, const ProfileEvent& event) = 0;
};

/// What a reader knows at the end.
struct ReadProfile {
  struct Device {
    std::string name;                          // of its process or plane
    std::map<std::string, ProfileLine> lines;  // that the sink takes, by name
  };
  std::vector<Device> devices;  // TPUs, in the order of the file
  std::vector<std::string> notes;
};

/// The number of `/device:TPU:<n>`; nothing for other planes.
std::optional<int> tpu_named(std::string_view plane);

/// Keeps of collectives and matmuls their time on each line; of others nothing.
class ProfileOps final : public ProfileSink {
 public:
  [[nodiscard]] bool takes(std::string_view line) const override { return line == operations_line; }
  void add(ProfileLine line, const ProfileEvent& event) override;

  /// One observation per operation: of each of its occurrences the minimum over the lines of operations of the devices, which are in the order of
  /// time, and of those the median. Events on other lines are left out. Errors: no collective and no matmul on any of the lines.
  Expected<Imported> finish(const ReadProfile& profile, const std::string& file, const ImportOptions& options);

 private:
  struct Occurrence {
    std::int64_t begin_ps, duration_ps;
  };
  using Lines = std::unordered_map<ProfileLine, std::vector<Occurrence>>;
  struct Op {
    HloOp hlo;
    std::string category;
    Flops flops;
    Lines lines;
    bool asynchronous = false;  // the occurrences are those of its start
  };
  /// Of each occurrence the minimum over devices.
  struct Fastest {
    std::vector<std::int64_t> durations_ps;
    bool uneven = false;  // not as often on every device
  };
  static Fastest fastest_of(Lines& lines, const std::vector<ProfileLine>& devices);
  Fastest fastest_of_asynchronous(Op& op, const std::vector<ProfileLine>& devices);
  void add_end(ProfileLine line, const ProfileEvent& event);
  std::vector<Op> ops_;  // in the order in which they came
  std::unordered_map<std::string, std::size_t> by_text_;
  std::unordered_map<std::string, Lines> dones_;  // of asynchronous ones, by the name of their start
  std::size_t asynchronous_ = 0, textless_ = 0;
};

}  // namespace podsim
