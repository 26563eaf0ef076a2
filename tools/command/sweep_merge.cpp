#include "tools/command/sweep_merge.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "sim/base/file_names.hpp"
#include "tools/sweep/merge.hpp"

namespace podsim {

namespace {

void tell_merge(const MergeEnd& end, const std::string& store, Console& console) {
  if (end.remaining == 0) return;
  fmt::print(console.err, "podsim: {} of {} points remain in {}\n", end.remaining, end.points, store);
  for (const PartState& part : end.unfinished)
    fmt::print(console.err, "  {}: {}\n", part.file,
               part.points == 0 ? "nothing in it yet" : fmt::format("{} of its {} points remain", part.remaining, part.points));
  constexpr std::size_t most_told = 20;
  const std::vector<std::string>& missing = end.missing_shards;
  if (!missing.empty())
    fmt::print(console.err, "  in no part: shard {}{}\n", fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(std::min(missing.size(), most_told)), ", "),
               missing.size() > most_told ? fmt::format(" and {} more", missing.size() - most_told) : "");
}

Status each_once(const std::vector<std::string>& parts) {
  std::vector<std::optional<FileIdentity>> identities;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    identities.push_back(identity_of(parts[i]));
    for (std::size_t j = 0; j < i; ++j)
      if (identities[i] && identities[i] == identities[j])
        return Diagnostic{option("merge"), quoted(parts[i]) + " is given twice" + (parts[i] == parts[j] ? "" : ", also as " + quoted(parts[j]))};
  }
  return success();
}

}  // namespace

Expected<bool> merge_parts(const Options& options, Console& console) {
  const std::vector<std::string> parts = options.texts("merge");
  if (auto ok = each_once(parts); !ok) return ok.error();
  const std::string& store = options.text("store");
  const auto end = merge_stores(parts, store, console.interrupted);
  if (!end) return end.error();
  tell_merge(*end, store, console);
  return end->remaining == 0;
}

}  // namespace podsim
