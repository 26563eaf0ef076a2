// Operations of a profile, collected over its devices; shared by xplane and trace_json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "validation/calibration/importers/hlo_op.hpp"

namespace podsim {

/// One event of a line of operations.
struct ProfileEvent {
  std::string_view name, text;   // text: the HLO; may be empty
  std::string_view category;     // hlo_category; may be empty
  Flops flops;                   // of one occurrence on one core; 0: not stated
  std::int64_t begin_ps = 0;     // from any origin common to a device's lines
  std::int64_t duration_ps = 0;  // as the device reports it, else span_ps
  std::int64_t span_ps = 0;      // the extent of the event on its line
  std::optional<std::int64_t> overlapped_ps{};  // overlapped_stat; of whole operations and starts
  std::string_view provenance{};  // tf_op: where in the program it comes from, of PyTorch's kernels the operator; may be empty
  std::string_view kernel{};      // on GPUs: the kernel that ran, of which an operation may have several; `name` is the operation's, empty if it is not told
  std::string_view graph{};       // the command buffer (CUDA graph) that it ran in, of which only that is told; empty: none
  std::int64_t node = -1;         // in the graph
  Bytes bytes{};                  // of a collective's kernel: input of one occurrence per device; 0: not stated
  int group = 0;                  // devices that take part in it; 0: not stated
};

/// The lines of a device that are read.
inline constexpr std::string_view operations_line = "XLA Ops", steps_line = "Steps", modules_line = "XLA Modules";

/// A stream of a GPU, a line of kernels: "Stream #14(Memset,Compute)".
inline constexpr std::string_view streams_begin = "Stream #";
inline bool is_stream(std::string_view line) { return line.starts_with(streams_begin); }

/// Only in simulations' profiles: how long the core was busy while the operation was in flight.
inline constexpr std::string_view overlapped_stat = "overlapped_ps";

/// A line of events, numbered by the reader of the profile.
using ProfileLine = std::uint64_t;

/// Receives the events of a profile while it is read.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;
  /// Whether to read lines of this name.
  [[nodiscard]] virtual bool takes(std::string_view line) const = 0;
  /// An event of a line that takes() accepts; in formats that name lines later also of lines without a name yet. In any order.
  virtual void add(ProfileLine line, const ProfileEvent& event) = 0;
};

/// A number of steps; `why` explains it, as the rest of a sentence after "3 steps".
struct CountedSteps {
  int steps = 1;
  std::string why;
};

/// The devices and lines of a profile, known at the end of reading.
struct ReadProfile {
  struct Device {
    std::string name;                          // of its process or plane
    std::map<std::string, ProfileLine> lines;  // that the sink takes, by name
    bool busiest = false;                      // the one that a simulation's figures are of
  };
  std::vector<Device> devices;  // in the order of the file
  std::vector<std::string> notes;
  std::vector<std::string> machines{};  // what the devices are, as the profile says: "NVIDIA H200"; each once
  std::optional<CountedSteps> steps{};  // where no line tells them
  bool has_operators = false;           // PyTorch's, in place of HLO operations
};

/// The operation of an event that is a kernel, as `hlo_op` says it: of nested ones, "while.1::fusion.3", the last; of a command buffer only that it ran in it.
void tell_operation(ProfileEvent& event, std::string_view hlo_op);
/// `tf_op` of a kernel; empty for "XlaModule:", which all kernels in command buffers have.
std::string_view provenance_of_kernel(std::string_view tf_op);
/// The number of a node in its graph: another instance of a graph has other upper halves.
std::int64_t node_of_graph(double cuda_graph_node_id);

/// Adds a name that is not there yet.
void add_machine(ReadProfile& profile, const std::string& name);

/// The number in `/device:TPU:<n>`; nullopt for other planes.
std::optional<int> tpu_named(std::string_view plane);
/// The same for `/device:GPU:<n>`.
std::optional<int> gpu_named(std::string_view plane);

/// Stores the times of collectives and matmuls on each line; other operations are dropped.
class ProfileOps final : public ProfileSink {
 public:
  [[nodiscard]] bool takes(std::string_view line) const override { return line == operations_line; }
  void add(ProfileLine line, const ProfileEvent& event) override;

  /// One observation per operation: for each occurrence the minimum over the devices' lines of operations (occurrences match by order in time), then
  /// the median over occurrences. Events on other lines are ignored. Errors: no collective and no matmul on any of the lines.
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
  /// Per occurrence the minimum over devices.
  struct Fastest {
    std::vector<std::int64_t> durations_ps;
    bool uneven = false;  // occurs unequally often on the devices
  };
  static Fastest fastest_of(Lines& lines, const std::vector<ProfileLine>& devices);
  Fastest fastest_of_asynchronous(Op& op, const std::vector<ProfileLine>& devices);
  void add_end(ProfileLine line, const ProfileEvent& event);
  std::vector<Op> ops_;  // in the order of the profile
  std::unordered_map<std::string, std::size_t> by_text_;
  std::unordered_map<std::string, Lines> dones_;  // of asynchronous operations, by the name of their start
  std::size_t asynchronous_ = 0, textless_ = 0;
};

}  // namespace podsim
