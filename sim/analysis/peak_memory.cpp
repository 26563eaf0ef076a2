#include "sim/analysis/peak_memory.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace podsim {

namespace {

/// Buffers of one program: when each was live on each node.
class Lives {
 public:
  Lives(const Model& model, std::uint32_t program) : scratch_of_calls_(model.deployment.programs[program].devices.size()), nodes_{model.deployment.programs[program].devices.size()} {
    const std::size_t count = model.schedule->programs[program].buffers.size() * nodes_;
    begin_.assign(count, Picoseconds{std::numeric_limits<std::int64_t>::max()});
    end_.assign(count, Picoseconds{-1});
  }

  void read(const Region& region, std::size_t local, Picoseconds end) { touch(region, local, end); }
  void write(const Region& region, std::size_t local, Picoseconds begin, Picoseconds end) {
    Picoseconds& first = begin_[position(region, local)];
    first = std::min(first, begin);
    touch(region, local, end);
  }

  /// Scratch buffers of a call; its arguments are read and written as of any task.
  void call(Bytes scratch, std::size_t local, Picoseconds begin, Picoseconds end) {
    scratch_of_calls_[local].emplace_back(begin, scratch);
    scratch_of_calls_[local].emplace_back(end, Bytes{} - scratch);
  }

  Bytes peak(const Program& program, std::size_t local) const {
    Bytes now;
    std::vector<std::pair<Picoseconds, Bytes>> changes = scratch_of_calls_[local];
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Bytes size = size_of(program.buffers[b]);
      const std::size_t at = b * nodes_ + local;
      if (program.buffers[b].role != Role::scratch)
        now += size;
      else if (begin_[at] <= end_[at])
        changes.emplace_back(begin_[at], size), changes.emplace_back(end_[at], Bytes{} - size);
    }
    std::sort(changes.begin(), changes.end());  // at one time releases (negative) come first
    Bytes peak = now;
    for (const auto& [time, change] : changes) peak = std::max(peak, now += change);
    return peak;
  }

 private:
  [[nodiscard]] std::size_t position(const Region& region, std::size_t local) const { return region.buffer.index() * nodes_ + local; }
  void touch(const Region& region, std::size_t local, Picoseconds end) {
    Picoseconds& last = end_[position(region, local)];
    last = std::max(last, end);
  }

  std::vector<std::vector<std::pair<Picoseconds, Bytes>>> scratch_of_calls_;  // by node
  std::size_t nodes_;
  std::vector<Picoseconds> begin_, end_;
};

void follow(const Model& model, const Timeline& timeline, std::uint32_t p, std::size_t t, std::vector<Lives>& lives) {
  const Participants& who = model.deployment.who(p, t);
  const Op& op = model.task(p, t).op;
  Lives& here = lives[p];
  for (std::size_t l = 0; l < who.to.size(); ++l) {
    if (!who.does(l)) continue;
    const std::uint32_t a = model.deployment.activity(p, t, l);
    const Picoseconds start = timeline.start(a), sent = timeline.sent(a);
    if (const auto* matmul = std::get_if<Matmul>(&op)) {
      here.read(matmul->left, l, sent);
      here.read(matmul->right, l, sent);
      here.write(matmul->out, l, start, sent);
    } else if (const auto* local = std::get_if<Local>(&op)) {
      for (const Region& region : local->reads) here.read(region, l, sent);
      for (const Region& region : local->writes) here.write(region, l, start, sent);
    } else if (const auto* call = std::get_if<Call>(&op)) {
      const PlayedCall& played = *model.call(p, t);
      for (std::size_t argument = 0; argument < call->arguments.size(); ++argument) {
        const Region whole{call->arguments[argument], {}};
        here.read(whole, l, sent);
        if (played.writes[argument]) here.write(whole, l, start, sent);
      }
      here.call(played.scratch, l, start, sent);
    } else {
      const auto* shift = std::get_if<Shift>(&op);
      const auto& [program, local_there] = model.deployment.places[who.to[l]];
      const Picoseconds received = later(sent, ceil_to_clock(model.reduction(p, t, l)));
      here.read(shift != nullptr ? shift->source : std::get<Send>(op).source, l, sent);
      const Region& target = shift != nullptr ? shift->target : std::get<Recv>(model.task(program, who.to_task[l]).op).target;
      lives[program].write(target, local_there, start, received);
    }
  }
}

}  // namespace

std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline) {
  std::vector<Lives> lives;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) lives.emplace_back(model, p);
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) follow(model, timeline, p, t, lives);
  std::vector<Bytes> peaks(model.nodes());
  for (std::uint32_t node = 0; node < model.nodes(); ++node)
    if (const auto& [p, local] = model.deployment.places[node]; p != no_device) peaks[node] = lives[p].peak(model.schedule->programs[p], local);
  return peaks;
}

}  // namespace podsim
