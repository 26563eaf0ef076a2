#include "sim/engine/max_plus/lane_memory.hpp"

namespace podsim::max_plus {

namespace {

constexpr double not_there = 4 * exact_below;

}  // namespace

LaneMemory::LaneMemory(std::span<const Model* const> models, std::span<const LinkRates> rates) : rates_{rates} {
  uses_.reserve(models.size());
  for (std::size_t k = 0; k < models.size(); ++k) {
    const MemoryUse& use = uses_.emplace_back(*models[k], rates[k]);
    if (!use.applies())
      left_out_ |= 1U << k;
    else if (use.may_slow())
      may_slow_ |= 1U << k;
  }
  const Model& model = *models.front();
  if (model.memory_paths.empty()) return;
  first_ = static_cast<std::uint32_t>(model.first_memory);
  slowed_until_.resize(model.links.size() - first_);
  if (may_slow_ == 0) return;
  works_.resize(model.nodes() * lane_count);
  begin_.assign(model.nodes(), all_lanes(not_there));
  latest_.resize(model.nodes());
}

void LaneMemory::begin_row() {
  for (const std::uint32_t node : nodes_) {
    begin_[node] = all_lanes(not_there);
    latest_[node] = {};
    for (std::size_t k = 0; k < lane_count; ++k) works_[node * lane_count + k].alone = 0;
  }
  nodes_.clear();
  first_begin_ = all_lanes(not_there);
  last_end_ = {};
}

void LaneMemory::add(std::uint32_t node, std::size_t lane, const MemoryUse::Work& work) {
  Longest& longest = longest_[lane];
  const std::int64_t most = uses_[lane].most_beside(work);
  if (longest.bytes != work.bytes || longest.alone != work.alone || longest.most_beside != most)
    longest = {work.bytes, work.alone, most, uses_[lane].latest_end(work) - work.begin};
  if (longest.duration == work.alone) return;
  const std::int64_t latest = later(Picoseconds{work.begin}, Picoseconds{longest.duration}).count();
  if (nodes_.empty() || nodes_.back() != node) nodes_.push_back(node);
  works_[node * lane_count + lane] = work;
  const auto begin = static_cast<double>(work.begin), end = static_cast<double>(latest);
  begin_[node].set(lane, begin);
  latest_[node].set(lane, end);
  first_begin_.set(lane, std::min(first_begin_[lane], begin));
  last_end_.set(lane, std::max(last_end_[lane], end));
}

void LaneMemory::add_beside(std::uint32_t node, std::uint32_t path, std::uint32_t weight, Lanes begin, Lanes end) {
  for (std::size_t k = 0; k < uses_.size(); ++k)
    if (begin[k] < latest_[node][k] && begin_[node][k] < end[k])
      beside_[k].push_back({begin.whole(k), end.whole(k), rates_[k].path_rate[path] * weight});
}

std::int64_t LaneMemory::end(std::uint32_t node, std::size_t lane) {
  const MemoryUse::Work& work = works_[node * lane_count + lane];
  if (work.alone == 0) return 0;
  const std::int64_t end = uses_[lane].end(work, beside_[lane]);
  uses_[lane].tell(work, end);
  beside_[lane].clear();
  const std::uint32_t memory = rates_[lane].links_of(work.path).front().link - first_;
  slowed_until_[memory].set(lane, static_cast<double>(end));
  last_slowed_until_.set(lane, std::max(last_slowed_until_[lane], static_cast<double>(end)));
  return end;
}

void LaneMemory::cross_early(std::uint32_t link, const Lanes& begin, const Lanes& end, std::uint32_t& met) {
  const Lanes& until = slowed_until_[link - first_];
  if (!any_less(begin, until)) return;
  for (std::size_t k = 0; k < uses_.size(); ++k)
    if ((met >> k & 1U) == 0 && begin[k] < until[k] && !uses_[k].cross(link, begin.whole(k), end.whole(k))) met |= 1U << k;
}

}  // namespace podsim::max_plus
