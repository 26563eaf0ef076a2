// Flows on links at max-min fair rates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/model.hpp"

namespace podsim::des {

/// The flows in flight and their rates. Rates are whole multiples of a quantum, 2^-61 of the fastest link or less: sums of them are exact in any
/// order, so rates do not depend on the order in which flows come and go at one time. (What came before can decide who gets the quanta that are left
/// over where a link is divided.)
///
/// Between two calls of settle() flows may come and go; settle() then solves again what that changes. Rates are max-min fair where every flow has a
/// bottleneck: a link that is full and on which nobody is faster. So it takes the flows that came, and those that lost their bottleneck, gives them
/// rates beside all others, and takes in whoever loses its bottleneck by that, or keeps one of them from having one, until all have one. Where this
/// spreads for long, it takes at once all flows that can be concerned: filling up from the slowest, the rates below that of a flow that left, and
/// below the least equal share on the links of one that came, stay as they are. An uncontended flow never meets the solver.
///   cost    O(links of the path) for an uncontended flow; else O(rounds * memberships * log(links)) of the flows that are taken
class LinkSharing {
 public:
  explicit LinkSharing(const Model& model);

  /// Bytes per second of an uncontended flow on the path. Infinite: no flow is needed.
  [[nodiscard]] double uncontended(std::uint32_t path) const { return uncontended_[path]; }

  /// A flow of bytes > 0 on a path whose rate is finite; its number. `user` comes back at its end.
  struct User {
    std::uint32_t task = 0, node = 0;
  };
  std::uint32_t start(std::uint32_t path, double bytes, User user, std::int64_t now);

  /// Whether this flow ends now: an end announced earlier may have been put off or brought forward.
  [[nodiscard]] bool ends(std::uint32_t flow, std::int64_t now) const { return flows_[flow].end == now; }
  User finish(std::uint32_t flow);

  /// Gives every flow its rate. Calls announce(flow, end in picoseconds) for each whose end is new.
  template <class Announce>
  void settle(std::int64_t now, Announce announce) {
    if (!touched_.empty() || !arrived_.empty()) solve(now);
    for (const std::uint32_t flow : changed_) announce(flow, flows_[flow].end);
    changed_.clear();
  }

  /// For tests: bytes per second.
  [[nodiscard]] double rate(std::uint32_t flow) const { return to_bytes_per_second(flows_[flow].rate); }
  [[nodiscard]] std::int64_t solved() const { return solved_; }        // flows given a rate by the solver
  [[nodiscard]] std::int64_t looked_at() const { return looked_at_; }  // members of links, to find who is concerned

 private:
  static constexpr std::int64_t never = -1;
  struct Flow {
    double bytes = 0;  // left at `since`
    std::int64_t rate = 0, next_rate = 0;
    std::int64_t since = 0, end = never;  // picoseconds; never: it has no rate yet
    std::uint32_t path = 0, first_member = 0;
    User user;
    std::uint32_t bottleneck = 0;  // a link that was one when the rate was given: where to look first
    std::uint64_t taken = 0;       // in which solution
    std::uint64_t filled = 0;      // in which filling it got its next rate
  };
  /// A flow on a link: a node of the link's list.
  struct Member {
    std::uint32_t flow = 0, next = no_device, previous = no_device;
  };
  struct Link {
    std::int64_t capacity = 0;
    std::int64_t load = 0;         // of all rates
    std::uint32_t first = no_device;  // member
    std::uint32_t weight = 0;      // of all flows on it
  };
  /// A link's part in the filling at hand.
  struct Share {
    std::int64_t left = 0;       // capacity without the flows that have their rate
    std::uint32_t weight = 0;    // of the flows that have none yet
    bool touched = false;        // flows came or went
    std::uint64_t filling = 0;   // in which it takes part
    std::uint64_t seeded = 0;    // the solution for which the flows beside arriving ones were last looked at
    std::uint64_t measured = 0;  // the filling after which `fastest` was last looked for
    std::int64_t fastest = 0;    // rate of a flow on it
  };

  [[nodiscard]] double to_bytes_per_second(std::int64_t rate) const { return static_cast<double>(rate) * quantum_; }
  [[nodiscard]] std::span<const PathLink> links_of(std::uint32_t path) const {
    return {path_links_.data() + path_rows_[path], path_rows_[path + 1] - path_rows_[path]};
  }
  [[nodiscard]] bool taken(const Flow& flow) const { return flow.taken == solution_; }
  /// As it would be with the rates of the last filling.
  [[nodiscard]] std::int64_t next_rate(const Flow& flow) const { return taken(flow) ? flow.next_rate : flow.rate; }
  [[nodiscard]] bool full(std::uint32_t link) const;
  [[nodiscard]] bool is_bottleneck(std::uint32_t link, std::int64_t rate);
  [[nodiscard]] bool has_bottleneck(Flow& flow);

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

  double quantum_ = 1;  // bytes per second
  // Per path its links that have a limit. The others hold nobody back, and the rates on them have no sum that would fit.
  std::vector<PathLink> path_links_;
  std::vector<std::uint32_t> path_rows_;
  std::vector<double> uncontended_;  // per path, bytes per second
  std::vector<std::int64_t> uncontended_rate_;  // the same in quanta
  std::vector<Link> links_;
  std::vector<Share> shares_;
  std::vector<Flow> flows_;
  std::vector<Member> members_;
  std::vector<std::vector<std::uint32_t>> free_;  // flows by number of links: their members stay with them

  std::vector<std::uint32_t> arrived_;  // flows without a rate
  std::vector<std::uint32_t> touched_;  // links
  std::int64_t threshold_ = 0;          // rates below it stay
  std::vector<std::uint32_t> changed_;  // flows with a new end
  std::uint64_t solution_ = 0, filling_ = 0;
  std::int64_t solved_ = 0, looked_at_ = 0;
  std::vector<std::uint32_t> open_flows_, open_links_;  // of the solution and the filling at hand
  struct Level {
    std::int64_t share;
    std::uint32_t link;
    friend bool operator>(const Level& a, const Level& b) { return a.share != b.share ? a.share > b.share : a.link > b.link; }
  };
  std::vector<Level> levels_;  // a heap, least share first
  std::vector<std::uint32_t> tied_;
};

}  // namespace podsim::des
