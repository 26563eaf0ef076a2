// Writes a run as Chakra execution traces, one per device.
#pragma once

#include <optional>
#include <string>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"
#include "workloads/chakra/trace.hpp"

namespace podsim {

enum class ChakraCollectives {
  whole,    // a comm_coll node each; permutes as sends and receives
  lowered,  // the sends and receives that they were lowered to
};

/// What a run had and did. All of it must outlive the writer.
struct ChakraRun {
  const Schedule& original;  // before its collectives were lowered; without calls
  const Model& model;        // of the lowered schedule, not folded
  const Timeline& timeline;
  std::string collective_algorithm{};  // the policy that lowered the collectives
  std::optional<int> collective_chunks{};
};

/// Traces of a run, with podsim's own attributes (ChakraExtension), so that they run again to the same picosecond:
///   * Node ids grow along the program: 2t for task t of the lowered program, 2t + 1 for its receive half. Dependencies are data_deps; the turn of a
///     task on the core is a ctrl_dep.
///   * comp: num_ops, tensor_size (bytes that cross memory), its time in the run as duration_ps and, rounded up to at least 1, duration_micros;
///     its time alone on the memory as work_s.
///   * comm_tag is the number of the sending task, so each message has its own (source, destination, tag).
///   * Locals off the core that take no time are left out; what waits for them waits for their dependencies.
class ChakraWriter {
 public:
  /// Errors: collectives in a switch, `lowered`: they are no sends.
  static Expected<ChakraWriter> make(const ChakraRun& run, ChakraCollectives collectives);

  [[nodiscard]] int ranks() const { return run_.original.mesh.devices(); }
  [[nodiscard]] ChakraTrace trace(int rank) const;
  /// Of the collectives' groups that are not all ranks, numbered from "1" by program, axes and lowest rank.
  [[nodiscard]] const ChakraGroups& groups() const { return groups_; }

 private:
  ChakraWriter(const ChakraRun& run, ChakraCollectives collectives);
  class RankTrace;

  struct OfProgram {
    std::vector<const Collective*> whole;  // by Origin::collective; null: written as it was lowered
    std::vector<std::size_t> launch;       // of each: the task
    std::vector<std::string> labels;       // of each
    std::int32_t first_tag = 0;
  };
  ChakraRun run_;
  std::vector<OfProgram> programs_;
  ChakraGroups groups_;
  std::map<std::vector<int>, std::string> group_names_;
};

/// The file of a trace: records of a length and a message.
std::string chakra_bytes(const ChakraTrace& trace);

}  // namespace podsim
