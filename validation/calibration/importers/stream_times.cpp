#include "validation/calibration/importers/stream_times.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace podsim {

std::vector<std::int64_t> own_times(const std::vector<StreamSpan>& spans) {
  struct Edge {
    std::int64_t at_ps;
    std::size_t span;
    bool begins;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * spans.size());
  for (std::size_t s = 0; s < spans.size(); ++s) {
    if (spans[s].end_ps <= spans[s].begin_ps) continue;
    edges.push_back({spans[s].begin_ps, s, true});
    edges.push_back({spans[s].end_ps, s, false});
  }
  std::ranges::sort(edges, {}, [](const Edge& edge) { return std::tuple{edge.at_ps, edge.begins, edge.span}; });
  std::vector<std::int64_t> own(spans.size(), 0);
  const auto key = [&spans](std::size_t s) { return std::tuple{spans[s].rank, spans[s].begin_ps, s}; };
  std::set<std::tuple<KernelRank, std::int64_t, std::size_t>> running;
  std::int64_t before_ps = 0;
  for (const Edge& edge : edges) {
    if (!running.empty()) own[std::get<std::size_t>(*running.begin())] += edge.at_ps - before_ps;
    before_ps = edge.at_ps;
    if (edge.begins)
      running.insert(key(edge.span));
    else
      running.erase(key(edge.span));
  }
  return own;
}

}  // namespace podsim
