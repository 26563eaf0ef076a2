// Flows on links at max-min fair rates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/model.hpp"

namespace podsim::des {

/// The flows in flight and their rates. Rates are whole multiples of a quantum, 2^-61 of the fastest link or less: sums of them are exact in any
/// order, so rates depend on which flows there are and not on the order in which they came.
///
/// Between two calls of settle() flows may come and go; settle() then solves again what that can have changed and nothing else. A flow that is alone
/// on all of its links never meets the solver. Filling up from the slowest, the rates below the rate of a flow that left, and below the least equal
/// share on the links of one that came, stay as they are; so only flows at or above that threshold are looked at, and of these the ones that are
/// joined to a touched link through shared links.
///   cost    O(links of the path) for a flow that is alone; else O(memberships * log(links)) of the part that is solved
class LinkSharing {
 public:
  explicit LinkSharing(const Model& model);

  /// The rate on a path that nobody else uses. Infinite: no flow is needed.
  [[nodiscard]] double alone(std::uint32_t path) const { return alone_[path]; }

  /// A flow of bytes > 0 on a path whose rate is finite. `user` comes back at its end.
  struct User {
    std::uint32_t task = 0, node = 0;
  };
  void start(std::uint32_t path, double bytes, User user, std::int64_t now);

  /// Whether this flow ends now: an end announced earlier may have been put off or brought forward.
  [[nodiscard]] bool ends(std::uint32_t flow, std::int64_t now) const { return flows_[flow].end == now; }
  User finish(std::uint32_t flow);

  /// Gives every flow its rate. Calls announce(flow, end in picoseconds) for each whose end is new.
  template <class Announce>
  void settle(std::int64_t now, Announce announce) {
    if (!touched_.empty()) solve(now);
    for (const std::uint32_t flow : changed_) announce(flow, flows_[flow].end);
    changed_.clear();
  }

  /// For tests: bytes per second.
  [[nodiscard]] double rate(std::uint32_t flow) const { return to_bytes_per_second(flows_[flow].rate); }
  [[nodiscard]] std::int64_t solved() const { return solved_; }  // flows given a rate by the solver

 private:
  static constexpr std::int64_t never = -1;
  struct Flow {
    double bytes = 0;  // left at `since`
    std::int64_t rate = 0;
    std::int64_t since = 0, end = never;  // picoseconds
    std::uint32_t path = 0, first_member = 0;
    User user;
    std::uint64_t visited = 0;  // of which solution
  };
  /// A flow on a link: a node of the link's list.
  struct Member {
    std::uint32_t flow = 0, next = nobody, previous = nobody;
  };
  struct Link {
    std::int64_t capacity = 0;
    std::uint32_t first = nobody;  // member
    std::uint32_t weight = 0;      // of all flows on it
  };
  /// A link's part in the solution at hand.
  struct Share {
    std::int64_t left = 0;       // capacity without the flows that have their rate
    std::uint32_t weight = 0;    // of the flows that have none yet
    std::uint64_t visited = 0;   // of which solution
    bool touched = false;
  };

  [[nodiscard]] double to_bytes_per_second(std::int64_t rate) const { return static_cast<double>(rate) * quantum_; }
  [[nodiscard]] std::span<const PathLink> links_of(std::uint32_t path) const { return model_.links_of(model_.paths[path]); }
  void touch(std::uint32_t link, std::int64_t threshold);
  void set_rate(std::uint32_t flow, std::int64_t rate, std::int64_t now);
  void solve(std::int64_t now);
  void collect();
  void visit(std::uint32_t link);
  void fill(std::int64_t now);

  const Model& model_;
  double quantum_ = 1;              // bytes per second
  std::vector<double> alone_;       // per path, bytes per second
  std::vector<std::int64_t> rate_alone_;
  std::vector<Link> links_;
  std::vector<Share> shares_;
  std::vector<Flow> flows_;
  std::vector<Member> members_;
  std::vector<std::vector<std::uint32_t>> free_;  // flows by number of links: their members stay with them

  std::vector<std::uint32_t> touched_;  // links
  std::int64_t threshold_ = 0;          // of the rates that may change
  std::vector<std::uint32_t> changed_;  // flows
  std::uint64_t solution_ = 0;
  std::int64_t solved_ = 0;
  std::vector<std::uint32_t> open_links_, open_flows_;  // of the solution at hand
  struct Level {
    std::int64_t share;
    std::uint32_t link;
    friend bool operator>(const Level& a, const Level& b) { return a.share != b.share ? a.share > b.share : a.link > b.link; }
  };
  std::vector<Level> levels_;  // a heap, least share first
  std::vector<std::uint32_t> tied_;
};

}  // namespace podsim::des
