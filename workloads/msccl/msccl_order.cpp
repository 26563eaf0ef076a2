#include <fmt/format.h>

#include <map>
#include <queue>
#include <tuple>

#include "workloads/msccl/msccl_algorithm.hpp"

namespace podsim {

namespace {

/// From one GPU to another over one channel.
using Connection = std::tuple<int, int, int>;

struct Ends {
  int from_block = -1, to_block = -1;
  std::vector<MscclStepId> sent, received;
};

class Orderer {
 public:
  explicit Orderer(const MscclAlgorithm& algorithm) : algorithm_{algorithm} {
    int steps = 0;
    for (const MscclGpu& gpu : algorithm_.gpus) {
      first_.emplace_back();
      for (const MscclBlock& block : gpu.blocks) first_.back().push_back(steps), steps += static_cast<int>(block.steps.size());
    }
    ids_.reserve(static_cast<std::size_t>(steps));
  }

  Expected<MscclOrder> order() {
    if (auto ok = number(); !ok) return ok.error();
    if (auto ok = match(); !ok) return ok.error();
    return sort();
  }

 private:
  [[nodiscard]] std::size_t number_of(const MscclStepId& id) const {
    return static_cast<std::size_t>(first_[static_cast<std::size_t>(id.gpu)][static_cast<std::size_t>(id.block)] + id.step);
  }
  [[nodiscard]] SourceLocation at(const MscclStepId& id) const { return location_of(algorithm_, step_of(algorithm_, id).where); }
  void wait(const MscclStepId& step, const MscclStepId& before) {
    followers_[number_of(before)].push_back(number_of(step)), ++waits_[number_of(step)];
  }

  /// The steps, and what they wait for on their own GPU.
  Status number() {
    for (std::size_t g = 0; g < algorithm_.gpus.size(); ++g)
      for (std::size_t b = 0; b < algorithm_.gpus[g].blocks.size(); ++b)
        for (std::size_t s = 0; s < algorithm_.gpus[g].blocks[b].steps.size(); ++s)
          ids_.push_back({static_cast<int>(g), static_cast<int>(b), static_cast<int>(s)});
    followers_.resize(ids_.size());
    waits_.resize(ids_.size());
    for (const MscclStepId& id : ids_) {
      if (id.step > 0) wait(id, {id.gpu, id.block, id.step - 1});
      const MscclStep& step = step_of(algorithm_, id);
      if (step.after_block < 0) continue;
      const auto& blocks = algorithm_.gpus[static_cast<std::size_t>(id.gpu)].blocks;
      if (step.after_block >= static_cast<int>(blocks.size()))
        return Diagnostic{
            at(id), fmt::format("expected a thread block of GPU {}, which has {}, as depid, found {}", id.gpu, blocks.size(), step.after_block)};
      const auto& others = blocks[static_cast<std::size_t>(step.after_block)].steps;
      if (step.after_step >= static_cast<int>(others.size()))
        return Diagnostic{at(id), fmt::format("expected a step of thread block {}, which has {}, as deps, found {}", step.after_block, others.size(),
                                              step.after_step)};
      if (!others[static_cast<std::size_t>(step.after_step)].has_dependents)
        return Diagnostic{at(id),
                          fmt::format("expected hasdep=\"1\" of step {} of thread block {}, which this one waits for, found 0: nobody would tell it",
                                      step.after_step, step.after_block)};
      wait(id, {id.gpu, step.after_block, step.after_step});
    }
    return success();
  }

  /// The thread block at one end of a connection.
  Status claim(int& end, int block, const Connection& connection, const MscclBlock& claimed) {
    if (end >= 0)
      return Diagnostic{
          location_of(algorithm_, claimed.where),
          fmt::format("expected one thread block at each end of a connection, found two, {} and {}, from GPU {} to GPU {} over channel {}", end,
                      block, std::get<0>(connection), std::get<1>(connection), std::get<2>(connection))};
    end = block;
    return success();
  }

  Status match() {
    for (std::size_t g = 0; g < algorithm_.gpus.size(); ++g)
      for (std::size_t b = 0; b < algorithm_.gpus[g].blocks.size(); ++b) {
        const MscclBlock& block = algorithm_.gpus[g].blocks[b];
        const int gpu = static_cast<int>(g), number = static_cast<int>(b);
        Ends* to = nullptr;
        Ends* from = nullptr;
        if (block.send >= 0) {
          const Connection connection{gpu, block.send, block.channel};
          to = &ends_[connection];
          if (auto ok = claim(to->from_block, number, connection, block); !ok) return ok;
        }
        if (block.receive >= 0) {
          const Connection connection{block.receive, gpu, block.channel};
          from = &ends_[connection];
          if (auto ok = claim(from->to_block, number, connection, block); !ok) return ok;
        }
        for (std::size_t s = 0; s < block.steps.size(); ++s) {
          const MscclKindTraits& traits = traits_of(block.steps[s].kind);
          const MscclStepId id{gpu, number, static_cast<int>(s)};
          if (traits.receives) from->received.push_back(id);
          if (traits.sends) to->sent.push_back(id);
        }
      }
    for (const auto& [connection, ends] : ends_)
      if (auto ok = match(connection, ends); !ok) return ok;
    return success();
  }

  Status match(const Connection& connection, const Ends& ends) {
    const auto [from, to, channel] = connection;
    const std::size_t both = std::min(ends.sent.size(), ends.received.size());
    for (std::size_t k = 0; k < both; ++k) {
      const std::int64_t sent = step_of(algorithm_, ends.sent[k]).count, received = step_of(algorithm_, ends.received[k]).count;
      if (sent != received)
        return Diagnostic{at(ends.received[k]), fmt::format("expected cnt={}, as message {} from GPU {} over channel {} has {} chunks, found {}",
                                                            sent, k, from, channel, sent, received)};
      order_.transfers.push_back({ends.sent[k], ends.received[k]});
      wait(ends.received[k], ends.sent[k]);
    }
    if (ends.sent.size() > both)
      return Diagnostic{at(ends.sent[both]),
                        fmt::format("expected GPU {} to receive what this step sends it over channel {}, found {} such steps there for {} messages",
                                    to, channel, both, ends.sent.size())};
    if (ends.received.size() > both)
      return Diagnostic{at(ends.received[both]),
                        fmt::format("expected GPU {} to send what this step receives over channel {}, found {} messages for {} such steps", from,
                                    channel, both, ends.received.size())};
    return success();
  }

  Expected<MscclOrder> sort() {
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    std::vector<int> left = waits_;
    for (std::size_t n = 0; n < ids_.size(); ++n)
      if (left[n] == 0) ready.push(n);
    order_.steps.reserve(ids_.size());
    while (!ready.empty()) {
      const std::size_t n = ready.top();
      ready.pop();
      order_.steps.push_back(ids_[n]);
      for (const std::size_t follower : followers_[n])
        if (--left[follower] == 0) ready.push(follower);
    }
    if (order_.steps.size() == ids_.size()) return std::move(order_);
    return waiting_in_a_circle(left);
  }

  /// Every step that is left waits for another one that is left: going back along these ends in a circle.
  [[nodiscard]] Diagnostic waiting_in_a_circle(const std::vector<int>& left) const {
    std::vector<std::size_t> before(ids_.size(), ids_.size());
    for (std::size_t n = 0; n < ids_.size(); ++n)
      if (left[n] > 0)
        for (const std::size_t follower : followers_[n]) before[follower] = n;
    std::size_t n = 0;
    while (left[n] == 0) ++n;
    for (std::size_t steps = 0; steps < ids_.size(); ++steps) n = before[n];  // now inside the circle
    const std::size_t start = n;
    std::string circle;
    int shown = 0;
    do {
      const MscclStepId& id = ids_[n];
      if (shown < 6) circle += fmt::format("{}{} {} {}", shown == 0 ? "" : ", which waits for ", id.gpu, id.block, id.step);
      ++shown;
      n = before[n];
    } while (n != start);
    return {at(ids_[start]), fmt::format("expected steps that can all run, found {} that wait for each other (GPU, thread block, step): {}{}", shown,
                                         circle, shown > 6 ? ", .." : "")};
  }

  const MscclAlgorithm& algorithm_;
  std::vector<std::vector<int>> first_;  // number of a thread block's first step, by GPU
  std::vector<MscclStepId> ids_;         // by number
  std::vector<std::vector<std::size_t>> followers_;
  std::vector<int> waits_;
  std::map<Connection, Ends> ends_;
  MscclOrder order_;
};

}  // namespace

Expected<MscclOrder> order_of(const MscclAlgorithm& algorithm) { return Orderer{algorithm}.order(); }

}  // namespace podsim
