#include "tools/mpirun/verdict.hpp"

#include <fmt/format.h>

#include <cstring>

#include "sim/base/invariant.hpp"
#include "sim/engine/mpi/measure.hpp"
#include "sim/engine/numeric/claims.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim {

namespace {

/// What the ranks hold, as the numeric engine returns it: scratch buffers empty.
Tensors tensors_of(const Schedule& lowered, const std::string& bytes) {
  Tensors tensors;
  std::size_t at = 0;
  for (int d = 0; d < lowered.mesh.devices(); ++d) {
    auto& values = tensors.values.emplace_back();
    const std::optional<std::size_t> program = program_of(lowered, DeviceId{d});
    if (!program) continue;
    for (const Buffer& buffer : lowered.programs[*program].buffers) {
      auto& held = values.emplace_back();
      if (buffer.role == Role::scratch) continue;
      held.resize(static_cast<std::size_t>(words_in(buffer)));
      std::memcpy(held.data(), bytes.data() + at, held.size() * sizeof(float));
      at += held.size() * sizeof(float);
    }
  }
  PODSIM_ASSERT(at == bytes.size());
  return tensors;
}

std::string first_difference(const Schedule& lowered, const Tensors& found, const Tensors& expected) {
  for (std::size_t d = 0; d < found.values.size(); ++d)
    for (std::size_t b = 0; b < found.values[d].size(); ++b)
      for (std::size_t e = 0; e < found.values[d][b].size(); ++e) {
        const float is = found.values[d][b][e], should = expected.values[d][b][e];
        if (std::memcmp(&is, &should, sizeof(float)) == 0) continue;
        const Buffer& buffer = lowered.programs[*program_of(lowered, DeviceId{d})].buffers[b];
        return fmt::format("element {} of buffer {} on device {} is {}; the numeric engine has {}", e / static_cast<std::size_t>(words_of(buffer.dtype)),
                           quoted(buffer.name), d, number_in(is, buffer.dtype), number_in(should, buffer.dtype));
      }
  return {};
}

/// Empty if what the ranks hold has the bits of the numeric engine.
Expected<std::string> difference(const Schedule& lowered, const Tensors& found, const NumericOptions& options) {
  const Expected<Tensors> expected = make_numeric_engine(options)->run(lowered);
  if (!expected) return expected.error();
  return first_difference(lowered, found, *expected);
}

/// Of what the ranks hold after uniform data and after integers.
Expected<Verdict> judge_at_root(const Schedule& lowered, const std::string& uniform, const std::string& integers, NumericOptions options) {
  options.filling = Filling::uniform;
  const Expected<std::string> rounded = difference(lowered, tensors_of(lowered, uniform), options);
  if (!rounded) return rounded.error();
  options.filling = Filling::integers;
  const Tensors found = tensors_of(lowered, integers);
  const Expected<std::string> exact = difference(lowered, found, options);
  if (!exact) return exact.error();

  Verdict verdict;
  verdict.problem = rounded->empty() ? *exact : *rounded;
  verdict.same_as_numeric = verdict.problem.empty();
  verdict.has_reference = claims_something(lowered);
  if (!verdict.has_reference) return verdict;
  const Expected<Reference> reference = Reference::make(lowered, options);
  if (!reference) return reference.error();
  verdict.as_reference = reference->compare(found).agrees;
  if (!verdict.as_reference && verdict.problem.empty()) verdict.problem = "the result is not what the schedule says it computes";
  return verdict;
}

/// The inputs and outputs of this rank.
std::string held_by(const RankRunner& runner) {
  std::string mine;
  for (std::size_t b = 0; b < runner.buffers().size(); ++b) {
    if (runner.buffers()[b].role == Role::scratch) continue;
    const std::span<const float> values = runner.values(BufferId{b});
    mine.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  return mine;
}

}  // namespace

Expected<Verdict> judge(const Schedule& lowered, RankRunner& runner, const Team& team, std::uint64_t seed, Bytes limit) {
  const std::string uniform = team.at_root(held_by(runner));
  runner.fill(seed, Filling::integers);
  runner.run();
  if (const Status worked = worked_on_its_data(runner, team); !worked) return worked.error();
  const std::string integers = team.at_root(held_by(runner));
  NumericOptions options;
  options.seed = seed;
  options.threads = 1;  // the other ranks wait on the other cores
  options.max_bytes = limit;
  Expected<Verdict> verdict = Verdict{};
  if (team.is_root()) verdict = judge_at_root(lowered, uniform, integers, options);
  if (const Status judged = team.agree(verdict ? success() : Status{verdict.error()}); !judged) return judged.error();
  std::string flags{static_cast<char>(verdict->same_as_numeric), static_cast<char>(verdict->has_reference), static_cast<char>(verdict->as_reference)};
  flags = team.from_root(flags);
  Verdict result;
  result.same_as_numeric = flags[0] != 0, result.has_reference = flags[1] != 0, result.as_reference = flags[2] != 0;
  result.problem = team.from_root(verdict->problem);
  return result;
}

}  // namespace podsim
