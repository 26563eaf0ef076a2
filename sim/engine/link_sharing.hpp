// Flows that share links at max-min fair rates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/link_rates.hpp"

namespace podsim {

/// The flows in flight and their rates. Rates are integers in units of 2^-61 of the fastest link or smaller, so their sums are exact in any order,
/// and rates do not depend on the order in which flows start and end at one time. (Earlier events may decide which flow gets the remainder of a
/// division.)
///
/// Flows start and end between two calls of settle(); settle() then assigns max-min fair rates. Rates are max-min fair if every flow has a
/// bottleneck: a full link on which no other flow is faster. settle() solves again the new flows and the flows that lost their bottleneck. A flow
/// whose bottleneck this changes joins them, and so does a flow that denies one of them a bottleneck; the loop ends when every flow has one. If the
/// loop spreads for long, the solver takes all flows that the change can reach at once: rates below that of an ended flow, and below the equal share
/// of a new flow's links, cannot change. An uncontended flow gets its rate without the solver.
///   cost    O(links of the path) for an uncontended flow; otherwise O(rounds * memberships * log(links)) of the flows that are solved again
///   example two flows on a 10 GB/s link, one of them also on a 4 GB/s link: rates 6 and 4. When the slow one ends, the other gets 10
class LinkSharing {
 public:
  explicit LinkSharing(const Model& model);

  /// Whether what goes over the path needs a flow: a link of it is limited.
  [[nodiscard]] bool limited(std::uint32_t path) const { return rates_.path_rate[path] != LinkRates::unlimited_rate; }

  /// Starts a flow of bytes > 0 on a limited path; returns its number. finish() returns `user`.
  struct User {
    std::uint32_t task = 0, node = 0;
  };
  std::uint32_t start(std::uint32_t path, double bytes, User user, std::int64_t now);

  /// Starts the flow of a work: `bytes` on the path of a memory, at most at the even rate that moves them in `alone` picoseconds. At that rate it
  /// ends after `alone` to the picosecond.
  std::uint32_t start_work(std::uint32_t path, double bytes, std::int64_t alone, User user, std::int64_t now);

  /// Whether this flow ends now. An end announced earlier may have moved since.
  [[nodiscard]] bool ends(std::uint32_t flow, std::int64_t now) const { return flows_[flow].end == now; }
  User finish(std::uint32_t flow);

  /// Gives every flow its rate. Calls announce(flow, end in picoseconds) for each flow whose end has changed.
  template <class Announce>
  void settle(std::int64_t now, Announce announce) {
    if (!touched_.empty() || !arrived_.empty()) solve(now);
    for (const std::uint32_t flow : changed_) announce(flow, flows_[flow].end);
    changed_.clear();
  }

  /// In units of LinkRates::quantum.
  [[nodiscard]] std::int64_t quanta(std::uint32_t flow) const { return flows_[flow].rate; }
  /// For tests: bytes per second.
  [[nodiscard]] double rate(std::uint32_t flow) const { return rates_.bytes_per_second(flows_[flow].rate); }
  [[nodiscard]] std::int64_t solved() const { return solved_; }        // flows that the solver gave a rate
  [[nodiscard]] std::int64_t looked_at() const { return looked_at_; }  // flows examined on links to find those that a change concerns

 private:
  static constexpr std::int64_t never = -1;
  /// One line of the processor's cache: a solution looks at flows all over memory.
  struct alignas(64) Flow {
    double bytes = 0;  // left at time `since`
    std::int64_t rate = 0, next_rate = 0;
    std::int64_t since = 0, end = never;  // picoseconds; never: no rate yet
    std::uint64_t filled = 0;             // the filling that gave it next_rate; before that, the one in which a solution took it
    std::uint32_t path = 0, first_place = 0;
    std::uint32_t bottleneck = 0;  // the flow's bottleneck when it got its rate; checked first
  };
  /// A flow on a link: an entry of the link's flows, which lie beside each other, so that looking at all of them is one walk through memory.
  struct Member {
    std::uint32_t flow = 0, place = 0;  // in places_, where its entry is
  };
  struct Link {
    std::int64_t capacity = 0;
    std::int64_t load = 0;     // the sum of all rates
    std::uint32_t first = 0;   // its first member
    std::uint32_t flows = 0;   // its number of members
    std::uint32_t weight = 0;  // the sum of all flows' weights
    std::uint32_t held = 0;    // flows that name it as their bottleneck
    std::int64_t top = 0;      // no flow on it is faster
    bool is_memory = false;
    std::uint8_t room = 0;  // its block of members has 2^room / 2 places
  };
  /// The state of a link in the present filling.
  struct Share {
    std::int64_t left = 0;           // capacity minus the flows that have their rate
    std::int64_t filled = 0;         // the highest rate that the filling gave a flow on it
    std::uint32_t weight = 0;        // of the flows without a rate
    std::uint32_t taken_weight = 0;  // of the flows that the solution has taken
    std::int64_t untaken = 0;        // capacity minus the other flows
    std::uint64_t collected = 0;     // the last solution that took a flow on it
    bool touched = false;            // a flow started or ended on it
    std::uint64_t filling = 0;       // the filling that it is part of
    std::uint64_t seeded = 0;        // the last solution that looked at the flows beside new ones
    std::uint64_t measured = 0;      // the filling after which `fastest` was computed
    std::int64_t fastest = 0;        // the highest rate of a flow on it
    std::uint32_t held = 0;          // of Link::held those that the filling gave a rate
    std::uint64_t denying = 0;       // the filling that left a flow without a bottleneck though the link is full
    std::int64_t denied = 0;         // the lowest rate of such a flow
  };

  [[nodiscard]] std::span<const PathLink> links_of(std::uint32_t path) const { return rates_.links_of(path); }
  [[nodiscard]] std::span<const Member> flows_on(std::uint32_t link) const { return {members_.data() + links_[link].first, links_[link].flows}; }
  void join(Link& link, Member member);
  void leave(Link& link, std::uint32_t place);
  [[nodiscard]] bool taken(const Flow& flow) const { return flow.filled >= solution_; }
  /// The flow's rate after the last filling.
  [[nodiscard]] std::int64_t next_rate(const Flow& flow) const { return taken(flow) ? flow.next_rate : flow.rate; }
  /// A memory on which all flows together cannot ask for more than it has: no bottleneck.
  [[nodiscard]] bool fits(std::uint32_t link) const { return links_[link].is_memory && demand_[link] <= links_[link].capacity; }
  [[nodiscard]] bool full(std::uint32_t link) const;
  [[nodiscard]] bool is_bottleneck(std::uint32_t link, std::int64_t rate);
  [[nodiscard]] bool has_bottleneck(Flow& flow);

  /// Names the flow's bottleneck.
  void hold(Flow& flow, std::uint32_t link) {
    --links_[flow.bottleneck].held;
    flow.bottleneck = link;
    ++links_[link].held;
  }
  void touch(std::uint32_t link, std::int64_t threshold);
  void set_rate(std::uint32_t flow, std::int64_t rate, std::int64_t now);
  void solve(std::int64_t now);
  void take(std::uint32_t flow);
  void take_seeds();
  bool take_losers();
  void take_concerned();
  void fill();
  void collect_links();
  std::int64_t take_tied();

  LinkRates rates_;
  std::vector<Link> links_;
  std::vector<Share> shares_;
  __extension__ typedef __int128 Demand;
  std::vector<Demand> demand_;  // per memory: what its flows would take if nothing else held them back
  // A work has a path of its own: its memory, and a link as fast as it draws when alone. Such paths come behind the model's and are used again.
  struct WorkPath {
    std::uint32_t memory_path = 0;
    std::int64_t alone = 0;  // picoseconds, of the work that has the path now
  };
  std::vector<WorkPath> work_paths_;
  std::vector<std::vector<std::uint32_t>> free_work_paths_;  // per path of a memory, from the first such path on
  std::uint32_t first_work_path_ = 0, first_memory_path_ = 0;
  std::vector<Flow> flows_;
  std::vector<User> users_;                                // by flow
  std::vector<Member> members_;                            // blocks of them, a link's each
  std::vector<std::vector<std::uint32_t>> unused_blocks_;  // by room
  std::vector<std::uint32_t> places_;                      // by flow, of each link of its path: where in the link's block it is
  std::vector<std::vector<std::uint32_t>> free_;           // unused flows by number of links; their places are reused with them

  std::vector<std::uint32_t> arrived_;        // flows without a rate
  std::vector<std::uint32_t> touched_;        // links
  std::int64_t threshold_ = 0;                // lower rates are kept
  std::vector<std::uint32_t> changed_;        // flows with a new end
  std::uint64_t solution_ = 0, filling_ = 0;  // counted as one: a solution's number is that of its first filling, which is none
  std::int64_t solved_ = 0, looked_at_ = 0;
  std::vector<std::uint32_t> open_flows_, open_links_;  // that the present solution has taken
  std::size_t collected_ = 0;                           // of open_flows_, those whose links are in open_links_
  std::vector<std::uint32_t> denying_;                  // full links on which others are faster than a flow without a bottleneck
  struct Level {
    std::int64_t share;
    std::uint32_t link;
    friend bool operator>(const Level& a, const Level& b) { return a.share != b.share ? a.share > b.share : a.link > b.link; }
  };
  [[nodiscard]] const Level* least_level() const;
  std::vector<Level> levels_;  // of a filling's links, least share first; from next_level_ on they are to come
  std::size_t next_level_ = 0;
  std::vector<Level> risen_;  // a heap: levels that were found to be higher when their turn came
  std::vector<std::uint32_t> tied_;
};

}  // namespace podsim
