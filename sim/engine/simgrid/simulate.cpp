#include "sim/engine/simgrid/simulate.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "sim/engine/simgrid/child.hpp"
#include "sim/engine/simgrid/flow_network.hpp"
#include "sim/engine/simgrid/player.hpp"

namespace podsim::simgrid_engine {

namespace {

/// What the child writes first; then the ActivityTimes, or if something did not finish one byte per activity: whether it did.
struct Header {
  std::int64_t events = 0;
  Picoseconds cores_end;
  std::uint64_t all_finished = 0;
};
static_assert(std::is_trivially_copyable_v<ActivityTimes> && std::is_trivially_copyable_v<Header>);

void simulate_here(const CostedGraph& graph, MakeNetwork* make_network, Output& output) {
  const std::unique_ptr<FlowNetwork> network{make_network(graph)};
  Player player{graph, *network};
  player.begin();
  network->run(player);
  const std::size_t n = graph.graph.activities.size();
  std::vector<char> finished(n);
  for (std::size_t a = 0; a < n; ++a) finished[a] = player.finished(a) ? 1 : 0;
  const bool all = std::find(finished.begin(), finished.end(), 0) == finished.end();
  const Header header{player.events(), player.cores_end(), all ? 1U : 0U};
  output.write(&header, sizeof header);
  if (!all) {
    output.write(finished.data(), n);
    return;
  }
  std::vector<ActivityTimes> times(n);
  for (std::size_t a = 0; a < n; ++a) times[a] = player.times(a);
  output.write(times.data(), n * sizeof times[0]);
}

}  // namespace

Expected<Simulation> simulate(const CostedGraph& graph, Cancellation stop) {
  const Expected<MakeNetwork*> make_network = load_simgrid();
  if (!make_network) return make_network.error();
  const auto bytes = run_in_child([&](Output& output) { simulate_here(graph, *make_network, output); }, {stop});
  if (!bytes) return bytes.error();
  const std::size_t n = graph.graph.activities.size();
  Header header;
  const Diagnostic torn{{}, "simgrid: the child process left before its result was complete", Cause::environment};
  if (bytes->size() < sizeof header) return torn;
  std::memcpy(&header, bytes->data(), sizeof header);
  const std::byte* body = bytes->data() + sizeof header;
  if (bytes->size() != sizeof header + n * (header.all_finished != 0 ? sizeof(ActivityTimes) : 1)) return torn;
  Simulation result{{}, {}, header.cores_end, header.events};
  if (header.all_finished != 0) {
    result.times.resize(n);
    if (n > 0) std::memcpy(result.times.data(), body, n * sizeof(ActivityTimes));
  } else {
    for (std::size_t a = 0; a < n; ++a) result.finished.push_back(body[a] != std::byte{0});
  }
  return result;
}

}  // namespace podsim::simgrid_engine
