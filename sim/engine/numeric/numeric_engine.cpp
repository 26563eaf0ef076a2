#include "sim/engine/numeric/numeric_engine.hpp"

#include "sim/engine/numeric/executor.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

class NumericEngineOnThreads final : public NumericEngine {
 public:
  explicit NumericEngineOnThreads(const NumericOptions& options) : options_{options} {}

  [[nodiscard]] Expected<Tensors> run(const Schedule& lowered) const override {
    if (std::vector<Diagnostic> problems = check_shapes(lowered); !problems.empty()) return problems.front();
    const Budget budget{bytes_of_results(lowered), options_.max_bytes};
    const Expected<std::unique_ptr<Executor>> executor = Executor::make(lowered, options_.threads, budget, {options_.stop, {}});
    if (!executor) return executor.error();
    if (const Status ran = (*executor)->run(options_.seed, options_.filling, options_.order); !ran) return ran.error();
    return copy_of_results(lowered, **executor);
  }

 private:
  static Tensors copy_of_results(const Schedule& lowered, const Executor& executor) {
    Tensors tensors;
    tensors.values.resize(static_cast<std::size_t>(lowered.mesh.devices()));
    for (std::size_t d = 0; d < tensors.values.size(); ++d) {
      const std::optional<std::size_t> program = executor.storage().program(DeviceId{d});
      if (!program) continue;
      const std::vector<Buffer>& buffers = lowered.programs[*program].buffers;
      tensors.values[d].resize(buffers.size());
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        if (buffers[b].role == Role::scratch) continue;
        const std::span<const float> values = executor.values(DeviceId{d}, BufferId{b});
        tensors.values[d][b].assign(values.begin(), values.end());
      }
    }
    return tensors;
  }

  NumericOptions options_;
};

}  // namespace

std::unique_ptr<NumericEngine> make_numeric_engine(const NumericOptions& options) { return std::make_unique<NumericEngineOnThreads>(options); }

}  // namespace podsim
