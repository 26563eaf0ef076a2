#include "tools/report/late_ranks_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_late_rows = 10;

/// For whom it waits longest; empty: for nobody.
std::string most_for(const LateRank& rank, const LateRanks& late) {
  const auto most = std::ranges::max_element(rank.waited_for);
  if (most == rank.waited_for.end() || !(*most > Seconds{})) return "-";
  return fmt::format("{} ({})", late.ranks[static_cast<std::size_t>(most - rank.waited_for.begin())].device, to_text(*most));
}

}  // namespace

std::string late_ranks_table(const LateRanks& late) {
  const auto worst = std::ranges::max_element(late.ranks, {}, &LateRank::others_waited);
  if (worst == late.ranks.end() || !(worst->others_waited > Seconds{})) return "";
  std::string text = fmt::format("late ranks: {} is last {} times, and the others wait {} for it, the mean of each {}\n\n", worst->device, worst->times_last, to_text(worst->others_waited),
                                 to_text(worst->others_waited / static_cast<double>(late.ranks.size() - 1)));
  std::vector<std::vector<std::string>> rows{{"rank", "waits", "mostly for", "last", "others wait for it"}};
  std::vector<const LateRank*> ranks;
  for (const LateRank& rank : late.ranks) ranks.push_back(&rank);
  std::ranges::stable_sort(ranks, std::greater{}, [](const LateRank* rank) { return rank->others_waited; });
  for (std::size_t r = 0; r < std::min(most_late_rows, ranks.size()); ++r)
    rows.push_back({ranks[r]->device, to_text(ranks[r]->waited), most_for(*ranks[r], late), fmt::format("{} times", ranks[r]->times_last), to_text(ranks[r]->others_waited)});
  text += table(rows, 1);
  if (ranks.size() > most_late_rows) text += fmt::format("... {} more ranks; --format json has them\n", ranks.size() - most_late_rows);
  rows = {{"collective", "category", "count", "last most often", "the first waits at most", "all wait"}};
  for (std::size_t c = 0; c < late.collectives.size() && c < most_late_rows && late.collectives[c].waited > Seconds{}; ++c) {
    const LateCollective& one = late.collectives[c];
    rows.push_back({one.name, one.category, fmt::format("{}", one.count), fmt::format("{} ({} of {})", late.ranks[one.last].device, one.times_last, one.count), to_text(one.longest), to_text(one.waited)});
  }
  return text + "\n" + table(rows, 2);
}

Json late_ranks_json(const LateRanks& late) {
  Json ranks = Json::array(), collectives = Json::array();
  for (const LateRank& rank : late.ranks) {
    Json waits = Json::array();
    for (std::size_t r = 0; r < rank.waited_for.size(); ++r)
      if (rank.waited_for[r] > Seconds{}) waits.push_back(Json{{"device", late.ranks[r].device}, {"waited_s", rank.waited_for[r].count()}});
    ranks.push_back(Json{{"device", rank.device}, {"waited_s", rank.waited.count()}, {"times_last", rank.times_last}, {"others_waited_s", rank.others_waited.count()}, {"waits_for", std::move(waits)}});
  }
  for (const LateCollective& one : late.collectives) {
    Json lateness = Json::array();
    for (const Seconds by : one.lateness) lateness.push_back(by.count());
    collectives.push_back(Json{{"name", one.name}, {"category", one.category}, {"count", one.count}, {"last", late.ranks[one.last].device}, {"times_last", one.times_last},
                               {"longest_wait_s", one.longest.count()}, {"waited_s", one.waited.count()}, {"lateness_s", std::move(lateness)}});
  }
  return Json{{"ranks", std::move(ranks)}, {"collectives", std::move(collectives)}};
}

}  // namespace podsim
