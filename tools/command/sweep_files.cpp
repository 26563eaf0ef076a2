#include "tools/command/sweep_files.hpp"

#include <fmt/format.h>

#include "tools/command/scenario_options.hpp"
#include "tools/sweep/points.hpp"

namespace podsim {

std::vector<std::string> files_of_store(const std::string& store) { return {store, store + "-wal", store + "-shm", store + "-journal"}; }

std::string store_beside(const std::string& file, const std::optional<SweepShard>& shard) {
  constexpr std::string_view ending = ".textproto";
  const std::string stem = file.ends_with(ending) ? file.substr(0, file.size() - ending.size()) : file;
  return stem + (shard ? fmt::format("-{}-of-{}", shard->index, shard->count) : "") + ".sqlite";
}

std::vector<NamedFile> files_of_sweep(const Options& options, const std::string& store, const std::vector<SweepBlock>& blocks) {
  std::vector<NamedFile> files;
  if (!options.has("store"))  // first, so that of two outputs this is not the one to blame
    for (std::string& path : files_of_store(store)) files.push_back({"--store", std::move(path), true});
  files.insert(files.end(), options.files().begin(), options.files().end());
  for (const SweepBlock& block : blocks)
    for (const SweepAxis& axis : block.axes) {
      const OptionSpec spec = field_option(scenario_fields()[axis.field].name);
      if (spec.value.files == nullptr) continue;
      for (const SweepValue& value : axis.values)
        for (std::string& path : spec.value.files(value.text)) files.push_back({"--" + spec.name, std::move(path), spec.value.writes});
    }
  return files;
}

}  // namespace podsim
