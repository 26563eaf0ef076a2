#include "sim/engine/engine.hpp"

#include "sim/base/thread_pool.hpp"

namespace podsim {

std::vector<Expected<Timeline>> run_variants(const EngineEntry& entry, std::span<const Model* const> models, const RunControl& control, int threads) {
  std::vector<std::optional<Timeline>> found(models.size());
  if (entry.run_together != nullptr) found = entry.run_together(models, control, {}, threads);
  std::vector<Expected<Timeline>> results(models.size(), Expected<Timeline>{Timeline{}});
  ThreadPool pool{entry.folds ? threads : 1};  // simgrid has processes of its own
  pool.for_each(models.size(), [&](std::size_t m, std::size_t) { results[m] = found[m] ? Expected<Timeline>{*std::move(found[m])} : entry.run(*models[m], control); });
  return results;
}

}  // namespace podsim
