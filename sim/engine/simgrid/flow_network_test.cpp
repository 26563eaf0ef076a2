// The network against SimGrid used plainly: one communication per flow, created when the flow starts, on a platform of public zones, and with
// weights made equal the other way, by equal latencies.
#include "sim/engine/simgrid/flow_network.hpp"

#include <gtest/gtest.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/engine/simgrid/child.hpp"
#include "sim/engine/simgrid/test_graph.hpp"

namespace podsim::simgrid_engine {
namespace {

struct Flow {
  double start = 0;
  std::uint32_t route = 0;
  std::uint64_t bytes = 0;
};

struct Traffic {
  CostedGraph platform;  // links and routes
  std::vector<Flow> flows;
};

/// Many flows on few routes, overlapping in time, so that communications are run again, beside others and after idling.
Traffic random_traffic(std::uint64_t seed) {
  Rng rng{seed};
  TestGraph graph{1};
  std::vector<LinkId> links;
  for (int i = 0; i < 10; ++i) links.push_back(graph.link(static_cast<double>(rng.between(1, 5)) * 10 * GB));
  for (int r = 0; r < 12; ++r) {
    std::vector<LinkId> route;
    for (std::size_t at = rng.below(4); at < links.size(); at += 1 + rng.below(5)) route.push_back(links[at]);
    graph.route(route);
  }
  Traffic traffic{graph.build(), {}};
  for (int i = 0; i < 150; ++i)
    traffic.flows.push_back(
        {rng.uniform() * 300 * us, static_cast<std::uint32_t>(rng.below(12)), static_cast<std::uint64_t>(rng.between(1, 1'000'000))});
  return traffic;
}

/// The ends of the flows, run in a child.
template <class Work>
std::vector<double> ends(const Traffic& traffic, const Work& work) {
  std::vector<double> result(traffic.flows.size(), -1);
  const auto bytes = run_in_child([&](Output& output) {
    work(traffic, result);
    output.write(result.data(), result.size() * sizeof(double));
  });
  EXPECT_TRUE(bytes) << to_text(bytes.error());
  if (bytes && bytes->size() == result.size() * sizeof(double)) std::memcpy(result.data(), bytes->data(), bytes->size());
  return result;
}

void with_the_network(const Traffic& traffic, std::vector<double>& result) {
  class Starts final : public Driver {
   public:
    Starts(const Traffic& t, FlowNetwork& n, std::vector<double>& r) : traffic_{t}, network_{n}, result_{r}, waiting_(t.flows.size(), true) {}
    [[nodiscard]] double next_date() const override {
      double next = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < waiting_.size(); ++i)
        if (waiting_[i]) next = std::min(next, traffic_.flows[i].start);
      return next;
    }
    void advance(double now, std::span<const std::uint32_t> ended) override {
      for (const std::uint32_t flow : ended) result_[flow] = now;
      for (std::uint32_t i = 0; i < waiting_.size(); ++i) {
        const Flow& flow = traffic_.flows[i];
        if (!waiting_[i] || flow.start > now) continue;
        waiting_[i] = false;
        network_.start(flow.route, static_cast<double>(flow.bytes), i, unbounded);
      }
    }

   private:
    const Traffic& traffic_;
    FlowNetwork& network_;
    std::vector<double>& result_;
    std::vector<bool> waiting_;
  };
  const Expected<MakeNetwork*> make_network = load_simgrid();
  if (!make_network) throw std::runtime_error{make_network.error().message};  // in the child: its error
  const std::unique_ptr<FlowNetwork> network{(*make_network)(traffic.platform)};
  Starts starts{traffic, *network, result};
  network->run(starts);
}

void with_plain_communications(const Traffic& traffic, std::vector<double>& result) {
  namespace s4u = simgrid::s4u;
  std::vector<std::string> arguments{"plain",
                                     "--log=root.threshold:critical",
                                     "--cfg=network/model:CM02",
                                     "--cfg=network/crosstraffic:0",
                                     "--cfg=network/TCP-gamma:1e30",  // no window, which would limit a flow with latency
                                     "--cfg=surf/precision:1e-15"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(arguments.size());
  s4u::Engine engine{&argc, argv.data()};
  auto* zone = s4u::create_full_zone("plain");
  // All routes have the same latency, hence all flows the same weight: that of a link which nobody shares.
  constexpr double latency = 1;
  auto* weight = zone->create_link("weight", 1e30)->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->set_latency(latency)->seal();
  std::vector<s4u::Link*> links;
  for (std::size_t i = 0; i < traffic.platform.links.size(); ++i)
    links.push_back(zone->create_link("link" + std::to_string(i), traffic.platform.links[i].count())->set_latency(0)->seal());
  std::vector<std::pair<s4u::Host*, s4u::Host*>> hosts;
  for (std::size_t r = 0; r < traffic.platform.routes.size(); ++r) {
    hosts.emplace_back(zone->create_host("from" + std::to_string(r), 1)->seal(), zone->create_host("to" + std::to_string(r), 1)->seal());
    std::vector<s4u::LinkInRoute> route{s4u::LinkInRoute{weight}};
    for (const LinkId link : traffic.platform.routes[r]) route.emplace_back(links[link.index()]);
    zone->add_route(hosts[r].first->get_netpoint(), hosts[r].second->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
  std::vector<s4u::CommPtr> communications(traffic.flows.size());
  for (std::size_t i = 0; i < traffic.flows.size(); ++i)
    simgrid::kernel::timer::Timer::set(traffic.flows[i].start, [&, i] {
      const Flow& flow = traffic.flows[i];
      communications[i] = s4u::Comm::sendto_async(hosts[flow.route].first, hosts[flow.route].second, flow.bytes);
    });
  engine.run();
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = communications[i]->get_finish_time() - latency;
}

TEST(FlowNetwork, EndsEveryFlowWhenAPlainCommunicationEnds) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Traffic traffic = random_traffic(seed);
    const std::vector<double> ours = ends(traffic, with_the_network), plain = ends(traffic, with_plain_communications);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_GT(plain[i], 0);
      EXPECT_NEAR(ours[i], plain[i], 1e-14) << "flow " << i;
    }
  }
}

}  // namespace
}  // namespace podsim::simgrid_engine
