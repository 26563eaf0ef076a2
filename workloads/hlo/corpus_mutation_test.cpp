// Mutants of modules that compilers made (validation/aot): reading, counting, memory and schedules give a value or an error, never a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/base/test_asked.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/config/byte_source.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo/test_hlo_mutants.hpp"

namespace podsim {
namespace {

struct Stored {
  std::string name, text;
  Mesh mesh;
};

/// The short ones, in the order of their names; of the folder PODSIM_HLO_MODULES all, for a campaign by hand.
std::vector<Stored> short_modules() {
  std::vector<std::filesystem::path> paths;
  const char* const asked = std::getenv("PODSIM_HLO_MODULES");
  for (const auto& entry : std::filesystem::directory_iterator{asked != nullptr ? asked : PODSIM_SOURCE_DIR "/validation/aot/modules"})
    if (entry.path().string().ends_with(".hlo.gz") && (asked != nullptr || std::filesystem::file_size(entry.path()) < 6000)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Stored> modules;
  for (const std::filesystem::path& path : paths) {
    const auto source = source_of_file(path.string());
    EXPECT_TRUE(source) << path;
    const auto text = read_all(**source, std::size_t{1} << 24, path.string());
    EXPECT_TRUE(text) << path;
    const auto module = parse_hlo(*text, path.filename().string());
    EXPECT_TRUE(module) << to_text(module.error());
    modules.push_back({path.filename().string(), *text, *Mesh::make({{"x", static_cast<int>(devices_of(*module)), true, {}}})});
  }
  return modules;
}

/// PODSIM_HLO_MUTANTS of them in all.
TEST(StoredModules, MutantsGiveAValueOrAnError) {
  const std::vector<Stored> modules = short_modules();
  ASSERT_GT(modules.size(), 20u);
  test::Mutants mutants{2028};
  const int mutated = test::asked("PODSIM_HLO_MUTANTS", test::cases(20000, 1000));
  int read = 0, written = 0;
  for (int i = 0; i < mutated; ++i) {
    const Stored& stored = modules[static_cast<std::size_t>(i) % modules.size()];
    SCOPED_TRACE(stored.name + " mutant " + std::to_string(i));
    const bool tolerant = i % 5 == 0;
    const auto module = parse_hlo(mutants.next(stored.text), "m", {.tolerant = tolerant});
    if (!module) {
      ASSERT_FALSE(to_text(module.error()).empty());
      continue;
    }
    ++read;
    peak_memory_of(*module);
    HloCountOptions counts;
    counts.tolerant = tolerant;
    const auto summary = summary_of(*module, Machine{}, counts);
    ASSERT_TRUE(summary || !to_text(summary.error()).empty());
    if (tolerant || test::trips_of(*module) > 100) continue;
    for (const bool values : {false, true}) {
      HloScheduleOptions how;
      how.values = values;
      const auto schedule = hlo_schedule(*module, stored.mesh, how);
      ASSERT_TRUE(schedule || !to_text(schedule.error()).empty());
      written += schedule ? 1 : 0;
    }
  }
  EXPECT_GT(read, mutated / 5);
  EXPECT_GT(written, mutated / 10);
}

/// Doubles a dimension of what an instruction gives; false: it gives no array with dimensions, or may give what it likes: constants that the text leaves out,
/// indices, one number everywhere (a scatter takes windows of any length), random numbers, what a kernel gives.
bool double_a_dimension(std::string& line, Rng& random) {
  const std::size_t equals = line.find(" = "), open = line.find('[', equals), shut = line.find(']', equals), call = line.find('(', shut);
  if (equals == std::string::npos || open == std::string::npos || shut == std::string::npos || call == std::string::npos || shut == open + 1 || line[equals + 3] == '(') return false;
  for (const char* const free : {" constant(", " custom-call(", " iota(", ", dimensions={}", " rng-bit-generator("})
    if (line.find(free) != std::string::npos) return false;
  std::vector<std::size_t> ends;  // of each dimension
  for (std::size_t at = open + 1; at <= shut; ++at)
    if (line[at] == ',' || line[at] == ']') ends.push_back(at);
  const std::size_t which = random.below(ends.size()), begin = which == 0 ? open + 1 : ends[which - 1] + 1;
  line.replace(begin, ends[which] - begin, std::to_string(2 * std::stoll(line.substr(begin, ends[which] - begin))));
  return true;
}

TEST(StoredModules, AChangedDimensionIsRefusedWithItsPlace) {
  const std::vector<Stored> modules = short_modules();
  Rng random{7, 36};
  const int wanted = test::asked("PODSIM_HLO_DIMENSIONS", test::cases(3000, 300));
  int changed = 0;
  for (int i = 0; changed < wanted; ++i) {
    const Stored& stored = modules[static_cast<std::size_t>(i) % modules.size()];
    const std::size_t at = random.below(stored.text.size()), begin = stored.text.rfind('\n', at) + 1, end = std::min(stored.text.find('\n', at), stored.text.size());
    std::string line = stored.text.substr(begin, end - begin);
    if (begin == 0 || !double_a_dimension(line, random)) continue;
    ++changed;
    const auto module = parse_hlo(stored.text.substr(0, begin) + line + stored.text.substr(end), "m");
    EXPECT_TRUE(!module && module.error().where.line > 1) << stored.name << ": " << line << "\n" << (module ? "is taken" : to_text(module.error()));
  }
}

}  // namespace
}  // namespace podsim
