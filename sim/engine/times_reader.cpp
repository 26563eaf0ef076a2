#include "sim/engine/times_reader.hpp"

#include <vector>

#include "sim/base/invariant.hpp"

namespace podsim {

void read_times(const Model& model, const Timeline& timeline, TimesReader& reader) {
  PODSIM_ASSERT(!timeline.interrupted && timeline.size() == model.deployment.activities());
  std::vector<Picoseconds> start, sent;  // per device of the program, where not all of them run the task
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) {
    const auto& program = model.deployment.programs[p];
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const Participants& who = model.deployment.who(p, t);
      const std::size_t first = program.first_activity[t];
      if (who.doers == 0) continue;
      if (who.doers == who.to.size()) {
        reader.read(p, t, timeline.starts().subspan(first, who.doers), timeline.sents().subspan(first, who.doers));
        continue;
      }
      start.resize(who.to.size());
      sent.resize(who.to.size());
      for (std::size_t l = 0; l < who.to.size(); ++l)
        if (who.does(l)) start[l] = timeline.start(first + who.rank[l]), sent[l] = timeline.sent(first + who.rank[l]);
      reader.read(p, t, start, sent);
    }
  }
}

}  // namespace podsim
