// Rates against filling up in long doubles, while flows come and go.
#include "sim/engine/link_sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using Route = std::vector<PathLink>;

/// Links of these bandwidths and paths over them.
Model net(const std::vector<double>& bandwidths, const std::vector<Route>& routes) {
  Model model;
  for (std::size_t l = 0; l < bandwidths.size(); ++l) model.links.push_back({BytesPerSecond{bandwidths[l]}, LinkId{static_cast<int>(l)}, 1});
  for (const Route& route : routes) {
    Path path;
    path.first = static_cast<std::uint32_t>(model.path_links.size());
    model.path_links.edit().insert(model.path_links.end(), route.begin(), route.end());
    path.last = static_cast<std::uint32_t>(model.path_links.size());
    model.paths.push_back(path);
  }
  return model;
}

/// The max-min fair rates of flows, one per path named: again and again, the link whose equal share is least sets the rate of its flows.
std::vector<long double> reference(const Model& model, const std::vector<std::uint32_t>& flows) {
  std::vector<long double> left, rates(flows.size(), -1);
  for (const ModelLink& link : model.links) left.push_back(link.bandwidth.count());
  const auto weight_on = [&](std::uint32_t flow, std::size_t link) -> long double {
    for (const PathLink& on : model.links_of(model.paths[flows[flow]]))
      if (on.link == link) return on.weight;
    return 0;
  };
  for (std::size_t without = flows.size(); without > 0;) {
    long double least = std::numeric_limits<long double>::infinity();
    std::size_t narrowest = 0;
    for (std::size_t l = 0; l < left.size(); ++l) {
      long double weight = 0;
      for (std::uint32_t f = 0; f < flows.size(); ++f) weight += rates[f] < 0 ? weight_on(f, l) : 0;
      if (weight > 0 && left[l] / weight < least) least = left[l] / weight, narrowest = l;
    }
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= 0 || weight_on(f, narrowest) == 0) continue;
      rates[f] = least;
      --without;
      for (const PathLink& on : model.links_of(model.paths[flows[f]])) left[on.link] -= least * on.weight;
    }
  }
  return rates;
}

std::vector<Route> random_routes(Rng& rng, std::size_t links, int largest_weight) {
  std::vector<Route> routes;
  for (int count = rng.between(2, 12); count > 0; --count) {
    Route route;
    for (int hops = rng.between(1, 5); hops > 0; --hops) {
      const auto link = static_cast<std::uint32_t>(rng.below(links));
      if (std::none_of(route.begin(), route.end(), [&](const PathLink& on) { return on.link == link; }))
        route.push_back({link, static_cast<std::uint32_t>(rng.between(1, largest_weight))});
    }
    if (route.front().link == links - 1 && route.size() == 1) route.push_back({0, 1});  // the last link may have no limit
    routes.push_back(route);
  }
  return routes;
}

Model random_net(Rng& rng) {
  std::vector<double> bandwidths;
  const int kind = rng.between(0, 2);  // all the same; a few kinds, so that shares tie; any
  for (int count = rng.between(2, 10); count > 0; --count)
    bandwidths.push_back(kind == 0 ? 45e9 : kind == 1 ? rng.between(1, 3) * 10e9 : 1e8 + rng.uniform() * 1e10);
  if (rng.below(4) == 0) bandwidths.back() = std::numeric_limits<double>::infinity();
  return net(bandwidths, random_routes(rng, bandwidths.size(), rng.below(2) == 0 ? 1 : 3));
}

/// A row of many links and flows over stretches of it: a change spreads far.
Model long_row(Rng& rng) {
  std::vector<double> bandwidths;
  const int links = rng.between(20, 60), kind = rng.between(0, 1);
  for (int l = 0; l < links; ++l) bandwidths.push_back(kind == 0 ? 1e9 * rng.between(4, 6) : 1e9 + 1e8 * rng.uniform() * l);
  std::vector<Route> routes;
  for (int count = 60; count > 0; --count) {
    Route route;
    const int first = rng.between(0, links - 1), last = std::min(links - 1, first + rng.between(0, 3));
    for (int l = first; l <= last; ++l) route.push_back({static_cast<std::uint32_t>(l), 1});
    routes.push_back(route);
  }
  return net(bandwidths, routes);
}

/// What is in flight, by the number that a test gives it.
struct Flight {
  std::uint32_t id = 0, path = 0;
};
using Flights = std::map<std::uint32_t, Flight>;

void expect_max_min(const Model& model, const LinkSharing& sharing, const Flights& flights) {
  std::vector<std::uint32_t> paths;
  for (const auto& [user, flight] : flights) paths.push_back(flight.path);
  const std::vector<long double> expected = reference(model, paths);
  std::vector<double> used(model.links.size()), fastest(model.links.size());
  std::size_t i = 0;
  for (const auto& [user, flight] : flights) {
    const double rate = sharing.rate(flight.id);
    ASSERT_NEAR(rate, static_cast<double>(expected[i]), 1e-12 * static_cast<double>(expected[i])) << "flow " << user;
    ++i;
    for (const PathLink& on : model.links_of(model.paths[flight.path])) {
      used[on.link] += rate * on.weight;
      fastest[on.link] = std::max(fastest[on.link], rate);
    }
  }
  for (std::size_t l = 0; l < used.size(); ++l) ASSERT_LE(used[l], model.links[l].bandwidth.count() * (1 + 1e-12)) << "link " << l;
  for (const auto& [user, flight] : flights) {
    bool held_back = false;
    for (const PathLink& on : model.links_of(model.paths[flight.path]))
      held_back |= used[on.link] >= model.links[on.link].bandwidth.count() * (1 - 1e-12) && sharing.rate(flight.id) >= fastest[on.link] * (1 - 1e-12);
    ASSERT_TRUE(held_back) << "flow " << user << " could be faster";
  }
}

/// Rates depend on which flows there are, not on how it came to that, but for the quanta that are left over where a link is divided.
void expect_rates_without_history(const Model& model, const LinkSharing& sharing, const Flights& flights) {
  LinkSharing fresh{model};
  std::map<std::uint32_t, std::uint32_t> ids;
  for (const auto& [user, flight] : flights) ids[user] = fresh.start(flight.path, 1e9, {user, 0}, 0);
  fresh.settle(0, [](std::uint32_t, std::int64_t) {});
  for (const auto& [user, flight] : flights)
    ASSERT_NEAR(sharing.rate(flight.id), fresh.rate(ids[user]), 1e-15 * fresh.rate(ids[user])) << "flow " << user;
}

void come_and_go(std::uint64_t first, std::uint64_t last, Model (*make)(Rng&), int steps) {
  for (std::uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed};
    const Model model = make(rng);
    const auto stays = static_cast<std::uint64_t>(rng.between(2, 10));
    LinkSharing sharing{model};
    Flights flights;
    std::uint32_t next = 0;
    for (std::int64_t now = 0; now < steps; ++now) {
      for (auto flight = flights.begin(); flight != flights.end();) {
        if (rng.below(stays) > 0) {
          ++flight;
          continue;
        }
        EXPECT_EQ(sharing.finish(flight->second.id).task, flight->first);
        flight = flights.erase(flight);
      }
      for (int count = rng.between(0, 4); count > 0; --count, ++next) {
        const auto path = static_cast<std::uint32_t>(rng.below(model.paths.size()));
        flights[next] = {sharing.start(path, 1e9, {next, 0}, now), path};
      }
      sharing.settle(now, [](std::uint32_t, std::int64_t) {});
      ASSERT_NO_FATAL_FAILURE(expect_max_min(model, sharing, flights)) << "at " << now;
      ASSERT_NO_FATAL_FAILURE(expect_rates_without_history(model, sharing, flights)) << "at " << now;
    }
  }
}

TEST(LinkSharing, IsMaxMinFairWhileFlowsComeAndGo) { come_and_go(0, 400, random_net, 25); }
TEST(LinkSharing, IsMaxMinFairWhereChangesSpreadFar) { come_and_go(0, 40, long_row, 50); }

TEST(LinkSharing, LinksWithoutALimitHoldNobodyBack) {
  // Twelve flows of their own 1 GB/s each meet on a link without a limit.
  const double unlimited_link = std::numeric_limits<double>::infinity();
  std::vector<double> bandwidths(12, 1e9);
  bandwidths.push_back(unlimited_link);
  std::vector<Route> routes;
  for (std::uint32_t f = 0; f < 12; ++f) routes.push_back({{f, 1}, {12, 1}});
  routes.push_back({{12, 3}});
  const Model model = net(bandwidths, routes);
  LinkSharing sharing{model};
  for (std::uint32_t f = 0; f < 12; ++f) sharing.start(f, 1e9, {f, 0}, 0);
  sharing.settle(0, [](std::uint32_t, std::int64_t) {});
  for (std::uint32_t f = 0; f < 12; ++f) EXPECT_NEAR(sharing.rate(f), 1e9, 1e-3);
  EXPECT_FALSE(sharing.limited(12)) << "needs no flow";
}

TEST(LinkSharing, DoesNotDependOnTheOrderOfStarts) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, 1};
    const Model model = random_net(rng);
    // The same starts and ends at each time, in two orders; numbers of flows then differ, users do not.
    LinkSharing one{model}, other{model};
    std::map<std::uint32_t, std::uint32_t> in_one, in_other;  // flow of a user
    std::map<std::uint32_t, std::int64_t> ends_one, ends_other;
    std::uint32_t next = 0;
    for (std::int64_t now = 0; now < 2000; now += 100) {
      std::vector<std::uint32_t> leaving;
      for (const auto& [user, flow] : in_one)
        if (rng.below(4) == 0) leaving.push_back(user);
      for (const std::uint32_t user : leaving) one.finish(in_one[user]), in_one.erase(user);
      std::reverse(leaving.begin(), leaving.end());
      for (const std::uint32_t user : leaving) other.finish(in_other[user]), in_other.erase(user);
      std::vector<std::pair<std::uint32_t, std::uint32_t>> starting;  // user, path
      for (int count = rng.between(0, 6); count > 0; --count)
        starting.emplace_back(next++, static_cast<std::uint32_t>(rng.below(model.paths.size())));
      for (const auto& [user, path] : starting) in_one[user] = one.start(path, 1e9 + user, {user, 0}, now);
      for (std::size_t i = starting.size(); i > 1; --i) std::swap(starting[i - 1], starting[rng.below(i)]);
      for (const auto& [user, path] : starting) in_other[user] = other.start(path, 1e9 + user, {user, 0}, now);
      one.settle(now, [&](std::uint32_t flow, std::int64_t end) { ends_one[flow] = end; });
      other.settle(now, [&](std::uint32_t flow, std::int64_t end) { ends_other[flow] = end; });
      for (const auto& [user, flow] : in_one) {
        ASSERT_EQ(one.rate(flow), other.rate(in_other[user])) << "flow " << user << " at " << now;
        ASSERT_EQ(ends_one[flow], ends_other[in_other[user]]) << "flow " << user << " at " << now;
      }
    }
  }
}

TEST(LinkSharing, UncontendedFlowsNeverMeetTheSolver) {
  const Model model = net({10, 20, 5}, {{{0, 1}, {1, 1}}, {{2, 1}}, {{1, 4}}});
  LinkSharing sharing{model};
  const LinkRates rates{model};
  EXPECT_DOUBLE_EQ(rates.bytes_per_second(rates.path_rate[0]), 10);
  EXPECT_DOUBLE_EQ(rates.bytes_per_second(rates.path_rate[2]), 5) << "a flow of weight 4 is four of the class on each link";
  std::int64_t end = 0;
  const auto announce = [&](std::uint32_t, std::int64_t at) { end = at; };
  const std::uint32_t first = sharing.start(0, 30, {1, 2}, 0), second = sharing.start(1, 5, {}, 0);
  sharing.settle(0, announce);
  EXPECT_DOUBLE_EQ(sharing.rate(first), 10);
  EXPECT_DOUBLE_EQ(sharing.rate(second), 5);
  EXPECT_EQ(end, 1'000'000'000'000);
  EXPECT_TRUE(sharing.ends(second, end));
  EXPECT_FALSE(sharing.ends(second, end - 1));
  EXPECT_EQ(sharing.finish(first).node, 2U);
  sharing.start(2, 1, {}, 7);
  sharing.settle(7, announce);
  EXPECT_EQ(sharing.solved(), 0);
}

TEST(LinkSharing, AFlowThatGetsAnotherRateKeepsWhatItHasMoved) {
  // 10 B/s shared from 1 s to 3 s: 10 + 10 bytes of 40 are moved by then, the rest takes 2 s.
  const Model model = net({10}, {{{0, 1}}});
  LinkSharing sharing{model};
  std::map<std::uint32_t, std::int64_t> ends;
  const auto announce = [&](std::uint32_t flow, std::int64_t end) { ends[flow] = end; };
  constexpr std::int64_t second = 1'000'000'000'000;
  const std::uint32_t flow = sharing.start(0, 40, {}, 0);
  sharing.settle(0, announce);
  EXPECT_EQ(ends[flow], 4 * second);
  const std::uint32_t guest = sharing.start(0, 10, {}, second);
  sharing.settle(second, announce);
  EXPECT_EQ(ends[flow], 7 * second);
  EXPECT_EQ(ends[guest], 3 * second);
  EXPECT_FALSE(sharing.ends(flow, 4 * second)) << "put off";
  sharing.finish(guest);
  sharing.settle(3 * second, announce);
  EXPECT_EQ(ends[flow], 5 * second);
}

TEST(LinkSharing, SolvesOnlyWhatAChangeCanReach) {
  // Two pairs on links of their own; then a third flow on the first link.
  const Model model = net({10, 10}, {{{0, 1}}, {{1, 1}}});
  LinkSharing sharing{model};
  const auto ignore = [](std::uint32_t, std::int64_t) {};
  for (const std::uint32_t path : {0U, 0U, 1U, 1U}) sharing.start(path, 1e9, {}, 0);
  sharing.settle(0, ignore);
  EXPECT_EQ(sharing.solved(), 4);
  sharing.start(0, 1e9, {}, 1);
  sharing.settle(1, ignore);
  EXPECT_EQ(sharing.solved(), 4 + 3);
}

TEST(LinkSharing, ManyFlowsOnALinkAreLookedAtOncePerSolutionNotOncePerFlow) {
  // Two links in a row that all flows share, and one more flow that keeps its rate beside them.
  const Model model = net({10, 100}, {{{0, 1}, {1, 1}}, {{1, 1}}});
  LinkSharing sharing{model};
  const auto ignore = [](std::uint32_t, std::int64_t) {};
  constexpr std::uint32_t flows = 1000;
  sharing.start(1, 1e9, {}, 0);
  sharing.settle(0, ignore);
  for (std::int64_t now = 1; now <= 3; ++now) {
    const std::int64_t before = sharing.looked_at();
    for (std::uint32_t f = 0; f < flows; ++f) sharing.start(0, 1e9, {f, 0}, now);
    sharing.settle(now, ignore);
    EXPECT_NEAR(sharing.rate(1), 10.0 / static_cast<double>(now * flows), 1e-12);
    EXPECT_LE(sharing.looked_at() - before, 10 * now * flows) << "at " << now;
  }
}

}  // namespace
}  // namespace podsim
