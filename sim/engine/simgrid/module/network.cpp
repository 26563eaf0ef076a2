// The module: SimGrid behind the interface of flow_network.hpp.
#include "sim/engine/simgrid/flow_network.hpp"

#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/invariant.hpp"

namespace podsim::simgrid_engine {

namespace {

using simgrid::kernel::resource::Action;
using simgrid::kernel::resource::Model;
using Links = std::vector<simgrid::kernel::resource::StandardLinkImpl*>;

/// Two hosts, and between them whatever route the flow that is being created is to take.
class RouteZone final : public simgrid::kernel::routing::NetZoneImpl {
 public:
  RouteZone() : NetZoneImpl{"podsim"} {}
  const Links* links = nullptr;

 private:
  void get_local_route(const simgrid::kernel::routing::NetPoint*, const simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::Route* into,
                       double*) override {
    // No latency: CM02 weights a flow by 1 / latency of its route, so that in SimGrid a flow over one hop gets twice the share of one over two;
    // flows without latency all have the weight 1. Latencies are the driver's: it starts a flow when they have passed.
    into->link_list_ = *links;
  }
};

/// SimGrid's tolerance for simultaneous ends. Its default, 1e-9 s, is as long as a hop, and errors of that size add up along a chain. But it has
/// to be a few roundings of the clock at the next date: an end that the clock has stepped over by more than that would never come.
class Precision {
 public:
  void cover(double date) {
    constexpr double roundings = 16 * std::numeric_limits<double>::epsilon();
    if (roundings * date <= precision_) return;
    precision_ = 2 * roundings * date;
    set();
  }
  void set() const { simgrid::s4u::Engine::set_config("surf/precision", precision_); }

 private:
  double precision_ = 1e-15;
};

/// Makes SimGrid's clock stop at the driver's dates. Comes after the network's model, which by then knows its own next end.
class DateModel final : public Model {
 public:
  DateModel() : Model{"podsim dates"} {}
  const Driver* driver = nullptr;
  Model* network = nullptr;
  Precision precision;

  double next_occurring_event(double now) override {
    const double date = driver->next_date();
    const auto& ends = network->get_action_heap();
    const double next = ends.empty() ? date : std::min(date, ends.top_date());
    if (!std::isinf(next)) precision.cover(next);
    return std::isinf(date) ? -1 : std::max(0.0, date - now);
  }
  void update_actions_state(double, double) override {}
};

void start_engine() {
  // clang-format off
  std::vector<std::string> arguments{"podsim",
                                     "--log=root.threshold:critical",
                                     "--cfg=network/model:CM02",      // max-min fair, without the corrections of the default that fit it to TCP
                                     "--cfg=network/crosstraffic:0",  // opposite directions do not disturb each other
                                     "--cfg=network/optim:Lazy",      // share anew only what a change reaches; a default, and what makes it fast
                                     "--cfg=debug/verbose-exit:no"};  // leave SIGINT alone
  // clang-format on
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  new simgrid::s4u::Engine{&argc, argv.data()};  // lives as long as the process, as SimGrid wants it
}

/// A flow is a SimGrid communication. SimGrid makes one costly to create and, in a process without actors, quadratic to destroy (all are in
/// one list that every end scans), so the network keeps the communications of flows that have ended and runs them again: `idle` per route.
class SimGridNetwork final : public FlowNetwork {
 public:
  explicit SimGridNetwork(const CostedGraph& graph);
  [[nodiscard]] bool limits(std::uint32_t route) const override { return !routes_[route].empty(); }
  void start(std::uint32_t route, double bytes, std::uint32_t flow, double most) override;
  void run(Driver& driver) override;

 private:
  struct Slot {
    simgrid::s4u::CommPtr communication;
    Action* action = nullptr;  // of the communication, in SimGrid's solver
    std::uint32_t route = 0, flow = 0;
  };

  std::uint32_t create(std::uint32_t route);
  void advance();

  RouteZone* zone_ = nullptr;  // SimGrid owns it
  Model* network_ = nullptr;   // CM02
  std::shared_ptr<DateModel> dates_ = std::make_shared<DateModel>();
  simgrid::s4u::Host *source_ = nullptr, *target_ = nullptr;
  std::vector<Links> routes_;                            // the limited links
  std::vector<std::vector<simgrid::s4u::Link*>> faces_;  // of the same
  std::vector<std::vector<std::uint32_t>> idle_;         // per route, slots
  std::vector<Slot> slots_;
  std::unordered_map<const Action*, std::uint32_t> slot_of_;
  std::vector<std::uint32_t> ended_;
  Driver* driver_ = nullptr;
};

SimGridNetwork::SimGridNetwork(const CostedGraph& graph) : routes_(graph.routes.size()), faces_(graph.routes.size()), idle_(graph.routes.size()) {
  start_engine();
  dates_->precision.set();
  zone_ = new RouteZone;
  auto* zone = zone_->get_iface();
  source_ = zone->create_host("source", 1);
  target_ = zone->create_host("target", 1);

  std::vector<simgrid::s4u::Link*> link_of(graph.links.size(), nullptr);
  for (std::size_t r = 0; r < graph.routes.size(); ++r)
    for (const LinkId link : graph.routes[r]) {
      const BytesPerSecond bandwidth = graph.links[link.index()];
      if (is_unlimited(bandwidth)) continue;
      auto*& known = link_of[link.index()];
      if (known == nullptr) known = zone->create_link(std::to_string(link.value), bandwidth.count());
      routes_[r].push_back(known->get_impl());
      faces_[r].push_back(known);
    }
  auto* engine = simgrid::s4u::Engine::get_instance();
  engine->add_model(dates_);
  engine->seal_platform();
  const auto& models = engine->get_all_models();
  network_ = *std::find_if(models.begin(), models.end(), [](const Model* model) { return model->get_name() == "Network_CM02"; });
  dates_->network = network_;
}

/// A new communication, running from now on; `bytes` of it are set by the caller.
std::uint32_t SimGridNetwork::create(std::uint32_t route) {
  zone_->links = &routes_[route];
  const auto slot = static_cast<std::uint32_t>(slots_.size());
  auto communication = simgrid::s4u::Comm::sendto_async(source_, target_, 1);
  communication->set_state(simgrid::s4u::Activity::State::FINISHED);  // else its destructor would complain, with a backtrace
  Action* action = &network_->get_started_action_set()->back();
  slots_.push_back({std::move(communication), action, route, 0});
  [[maybe_unused]] const bool is_new = slot_of_.emplace(action, slot).second;
  PODSIM_ASSERT(is_new);  // the set's last is the one just created
  return slot;
}

/// Takes the actions that have ended back from SimGrid, before it tears them down, and tells the driver.
void SimGridNetwork::advance() {
  ended_.clear();
  for (auto* finished = network_->get_finished_action_set(); !finished->empty();) {
    Action& action = finished->front();
    action.suspend();                          // out of the sharing
    action.set_state(Action::State::STARTED);  // out of `finished`
    const std::uint32_t slot = slot_of_.at(&action);
    ended_.push_back(slots_[slot].flow);
    idle_[slots_[slot].route].push_back(slot);
  }
  driver_->advance(simgrid::s4u::Engine::get_clock(), ended_);
}

void SimGridNetwork::start(std::uint32_t route, double bytes, std::uint32_t flow, double most) {
  auto& idle = idle_[route];
  if (idle.empty()) {
    Slot& slot = slots_[create(route)];
    slot.action->set_remains(bytes);  // a communication has whole bytes, an action any number
    slot.flow = flow;
    if (most >= 0) slot.action->set_bound(most);
    return;
  }
  Slot& slot = slots_[idle.back()];
  idle.pop_back();
  slot.flow = flow;
  slot.action->set_remains(bytes);
  slot.action->set_last_update();
  slot.action->resume();
  if (most >= 0) slot.action->set_bound(most);
  // resume() has SimGrid share anew only what is joined to the route's first link, and not even that if this link has been touched at this date
  // already; so every link is touched.
  for (simgrid::s4u::Link* link : faces_[route]) link->set_bandwidth(link->get_bandwidth());
}

void SimGridNetwork::run(Driver& driver) {
  driver_ = &driver;
  dates_->driver = &driver;
  // Fired when all models have moved to the new date, before ended communications are torn down.
  simgrid::s4u::Engine::on_time_advance_cb([this](double) { advance(); });
  simgrid::s4u::Engine::get_instance()->run();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) MakeNetwork podsim_make_network;
FlowNetwork* podsim_make_network(const CostedGraph& graph) { return new SimGridNetwork{graph}; }

}  // namespace podsim::simgrid_engine
