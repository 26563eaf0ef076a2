// Where the chunks of an MSCCL algorithm are: its buffers in a program.
#pragma once

#include "sim/schedule/program_builder.hpp"
#include "workloads/msccl/msccl_algorithm.hpp"

namespace podsim {

/// The numbers of chunks of a GPU's buffers that a collective needs, and which podsim buffers they are in.
///
///   in place   all-reduce, all-to-all, broadcast, reduce: input and output are the chunks of `output`, into which the input is placed first
///              all-gather: the input is block number (own device) of `output`
///              reduce-scatter: the output is block number (own device) of `work`, into which the input is placed first, and which is placed in
///              the output last
class MscclBuffers {
 public:
  /// Errors: numbers of chunks that do not suit the collective (null: any will do), or differ between GPUs; `input` that is not as many chunks of
  /// whole elements.
  static Expected<MscclBuffers> make(const MscclAlgorithm& algorithm, const Mesh& mesh, std::optional<CollectiveKind> kind, Bytes input, DType dtype);

  /// Adds them. `slots`: chunks beside them, for what arrives and is not stored.
  void add_to(ProgramBuilder& builder, std::int64_t slots);

  /// The whole buffers.
  [[nodiscard]] Region input() const { return chunks(input_, 0, input_chunks_); }
  [[nodiscard]] Region output() const { return chunks(output_, 0, output_chunks_); }
  /// Chunks of a step of GPU `gpu`.
  [[nodiscard]] Region at(const MscclPlace& place, std::int64_t count, int gpu) const;
  [[nodiscard]] Region slot(std::int64_t first, std::int64_t count) const { return chunks(slots_, first, count); }
  /// What every device copies before its first step: nothing, or the input to where it is worked on.
  [[nodiscard]] std::optional<std::pair<Region, Region>> placed_first() const;
  /// What GPU `gpu` copies after its last step.
  [[nodiscard]] std::optional<std::pair<Region, Region>> placed_last(int gpu) const;
  /// Whether the algorithm's own step copies the input to the output, which the launch pays for.
  [[nodiscard]] bool is_own_copy(const MscclStep& step) const {
    return !in_place_ && step.kind == MscclKind::copy && step.source.buffer == MscclBuffer::input && step.target.buffer == MscclBuffer::output;
  }

 private:
  [[nodiscard]] Region chunks(BufferId buffer, std::int64_t first, std::int64_t count) const;
  [[nodiscard]] Buffer buffer(const Mesh& mesh, std::string name, Role role, std::int64_t chunks) const;

  const Mesh* mesh_ = nullptr;
  std::optional<CollectiveKind> kind_;
  DType dtype_ = DType::bf16;
  bool in_place_ = false;
  std::int64_t input_chunks_ = 0, output_chunks_ = 0, scratch_chunks_ = 0, elements_ = 0;  // elements of a chunk
  BufferId input_, output_, work_, scratch_, slots_;
};

}  // namespace podsim
