#include "tools/report/advice_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/base/units.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

using Rows = std::vector<std::vector<std::string>>;

double change_of(const TriedRemedy& tried, const Advice& advice) { return advice.before.makespan_s > 0 ? tried.makespan_s / advice.before.makespan_s - 1 : 0; }

std::vector<std::string> row_of(const std::string& what, const TriedRemedy& tried, const Advice& advice) {
  return {what,
          words_of(tried.remedy),
          to_text(Seconds{tried.makespan_s}),
          fmt::format("{:+.1f} %", 100 * change_of(tried, advice)),
          to_text(Seconds{tried.exposed_communication_s}),
          to_text(tried.peak_memory) + (tried.over_hbm ? ": too much" : "")};
}

/// Of each field the best text that helps.
std::vector<const TriedRemedy*> helpful(const Advice& advice) {
  std::vector<const TriedRemedy*> found;
  std::set<std::string> subjects;
  for (const TriedRemedy& tried : advice.tried) {
    if (helps(tried, advice) && subjects.insert(subject_of(tried.remedy.changes.front())).second) found.push_back(&tried);
  }
  return found;
}

Json tried_json(const TriedRemedy& tried, const Advice& advice) {
  Json json{{"what", tried.remedy.what}};
  if (!tried.remedy.changes.empty()) json.set("options", words_of(tried.remedy));
  if (!tried.remedy.flags.empty()) json.set("flags", tried.remedy.flags);
  json.set("makespan_s", tried.makespan_s);
  json.set("change", change_of(tried, advice));
  json.set("exposed_communication_s", tried.exposed_communication_s);
  json.set("peak_memory_bytes", tried.peak_memory.count());
  json.set("over_hbm", tried.over_hbm);
  json.set("helps", helps(tried, advice));
  return json;
}

}  // namespace

std::string advice_table(const Advice& advice) {
  constexpr std::size_t most_rows = 8;
  const std::vector<const TriedRemedy*> found = helpful(advice);
  Rows rows{{"what would help", "with", "time", "change", "exposed", "peak memory"}};
  for (std::size_t r = 0; r < std::min(most_rows, found.size()); ++r) rows.push_back(row_of(found[r]->remedy.what, *found[r], advice));
  if (advice.together) rows.push_back(row_of("these together", *advice.together, advice));
  const bool links_help = advice.faster_links && advice.faster_links->makespan_s < advice.before.makespan_s * (1 - least_advised_gain);
  if (links_help)
    rows.push_back(row_of(advice.links_factor ? fmt::format("links {} times as fast: half is exposed", *advice.links_factor) : fmt::format("links {} times as fast: more than half is still exposed", most_links_factor),
                          *advice.faster_links, advice));
  std::string text = rows.size() > 1 ? table(rows, 2) : "";
  for (std::size_t r = 0; r < std::min(most_rows, found.size()); ++r)
    if (!found[r]->remedy.flags.empty()) text += fmt::format("{}: XLA is asked for it by {}\n", words_of(found[r]->remedy), found[r]->remedy.flags);
  if (found.empty()) text += advice.before.over_hbm ? "nothing that was tried makes it fit or faster\n" : "nothing that was tried makes it faster\n";
  if (advice.faster_links && !links_help) text += fmt::format("links {} times as fast do not make it faster\n", advice.links_factor.value_or(most_links_factor));
  if (!advice.why_not_together.empty()) text += fmt::format("the best together are not possible: {}\n", advice.why_not_together);
  const auto without = std::ranges::count_if(advice.tried, [&](const TriedRemedy& tried) { return !helps(tried, advice); });
  std::vector<std::string> others;
  if (without > 0) others.push_back(fmt::format("{} without gain", without));
  if (!advice.refused.empty()) others.push_back(fmt::format("{} not possible here", advice.refused.size()));
  if (!advice.not_tried.empty()) others.push_back(fmt::format("{} not tried, as they take long (--force tries them)", advice.not_tried.size()));
  if (!others.empty()) text += fmt::format("others: {}; --format json names them\n", fmt::join(others, ", "));
  return text;
}

Json advice_json(const Advice& advice) {
  Json tried = Json::array(), refused = Json::array(), not_tried = Json::array();
  for (const TriedRemedy& one : advice.tried) tried.push_back(tried_json(one, advice));
  for (const RefusedRemedy& one : advice.refused) refused.push_back(Json{{"what", one.remedy.what}, {"options", words_of(one.remedy)}, {"why", one.why}});
  for (const Remedy& one : advice.not_tried) not_tried.push_back(Json{{"what", one.what}, {"options", words_of(one)}});
  Json json{{"tried", std::move(tried)}, {"refused", std::move(refused)}, {"not_tried", std::move(not_tried)}};
  json.set("together", advice.together ? tried_json(*advice.together, advice) : Json());
  json.set("links_factor", advice.links_factor ? Json(*advice.links_factor) : Json());
  json.set("faster_links", advice.faster_links ? tried_json(*advice.faster_links, advice) : Json());
  return json;
}

}  // namespace podsim
