#include "tools/report/lines.hpp"

#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

std::vector<std::uint32_t> allot_lines(std::span<const Interval> intervals) {
  using Line = std::uint32_t;
  using Until = std::pair<Picoseconds, Line>;
  std::priority_queue<Until, std::vector<Until>, std::greater<>> busy;
  std::priority_queue<Line, std::vector<Line>, std::greater<>> free;
  std::vector<Line> lines;
  lines.reserve(intervals.size());
  Line count = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const auto& [begin, end] = intervals[i];
    PODSIM_ASSERT(begin <= end);
    PODSIM_ASSERT(i == 0 || std::tuple(intervals[i - 1].begin, intervals[i - 1].end) <= std::tuple(begin, end));
    for (; !busy.empty() && busy.top().first <= begin; busy.pop()) free.push(busy.top().second);
    if (free.empty()) free.push(count++);
    lines.push_back(free.top());
    busy.emplace(end, free.top());
    free.pop();
  }
  return lines;
}

}  // namespace podsim
