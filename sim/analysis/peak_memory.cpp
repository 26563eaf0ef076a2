#include "sim/analysis/peak_memory.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace podsim {

namespace {

/// Of the device's memory.
bool is_scratch(const Buffer& buffer) { return buffer.role == Role::scratch && !buffer.on_host; }

/// Buffers of one program: when each was live on each node.
class Lives {
 public:
  Lives(const Model& model, std::uint32_t program)
      : calls_(model.deployment.programs[program].devices.size()), nodes_{model.deployment.programs[program].devices.size()} {
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
  void call(std::size_t task, Bytes scratch, std::size_t local, Picoseconds begin, Picoseconds end) {
    if (scratch > Bytes{}) calls_[local].push_back({task, scratch, begin, end});
  }

  Bytes peak(const Program& program, std::size_t local) const {
    Bytes now = kept(program), peak = now;
    for (const Change& change : changes(program, local)) peak = std::max(peak, now += change.by);
    return peak;
  }

  std::vector<LiveBuffer> live_at_peak(const Program& program, std::size_t local) const {
    const std::vector<Change> all = changes(program, local);
    Bytes now = kept(program), peak = now;
    std::size_t until = 0;  // changes before the peak
    for (std::size_t c = 0; c < all.size(); ++c)
      if (now += all[c].by; now > peak) peak = now, until = c + 1;
    std::vector<int> live(program.buffers.size() + calls_[local].size(), 0);
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      live[b] = program.buffers[b].role != Role::scratch && !program.buffers[b].on_host ? 1 : 0;
    for (std::size_t c = 0; c < until; ++c) live[all[c].of] += all[c].by > Bytes{} ? 1 : -1;
    std::vector<LiveBuffer> result;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (live[i] <= 0) continue;
      if (i < program.buffers.size()) {
        result.push_back({program.buffers[i].name, size_of(program.buffers[i]), BufferId{i}});
        continue;
      }
      const CallScratch& call = calls_[local][i - program.buffers.size()];
      result.push_back({program.tasks[call.task].label, call.size, {}});
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t position(const Region& region, std::size_t local) const { return region.buffer.index() * nodes_ + local; }
  void touch(const Region& region, std::size_t local, Picoseconds end) {
    Picoseconds& last = end_[position(region, local)];
    last = std::max(last, end);
  }

  /// Something becomes live or ends: a scratch buffer, by its position in the program, or the scratch buffers of a call, by its position behind those.
  struct Change {
    Picoseconds at;
    Bytes by;
    std::size_t of = 0;
  };
  /// Sorted; at one time those that end come first.
  [[nodiscard]] std::vector<Change> changes(const Program& program, std::size_t local) const {
    std::vector<Change> all;
    const auto lives = [&](std::size_t of, Bytes size, Picoseconds begin, Picoseconds end) {
      all.push_back({begin, size, of});
      all.push_back({end, Bytes{} - size, of});
    };
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (const std::size_t at = b * nodes_ + local; is_scratch(program.buffers[b]) && begin_[at] <= end_[at])
        lives(b, size_of(program.buffers[b]), begin_[at], end_[at]);
    for (std::size_t c = 0; c < calls_[local].size(); ++c) {
      const CallScratch& call = calls_[local][c];
      lives(program.buffers.size() + c, call.size, call.begin, call.end);
    }
    std::ranges::sort(all, {}, [](const Change& change) { return std::tuple{change.at, change.by, change.of}; });
    return all;
  }
  /// Inputs and outputs.
  static Bytes kept(const Program& program) {
    Bytes sum;
    for (const Buffer& buffer : program.buffers)
      if (buffer.role != Role::scratch) sum += size_on_device(buffer);
    return sum;
  }

  struct CallScratch {
    std::size_t task = 0;
    Bytes size;
    Picoseconds begin, end;
  };
  std::vector<std::vector<CallScratch>> calls_;  // by node
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
      here.call(t, played.scratch, l, start, sent);
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

std::vector<Lives> lives_of(const Model& model, const Timeline& timeline) {
  std::vector<Lives> lives;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) lives.emplace_back(model, p);
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) follow(model, timeline, p, t, lives);
  return lives;
}

}  // namespace

std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline) {
  const std::vector<Lives> lives = lives_of(model, timeline);
  std::vector<Bytes> peaks(model.nodes());
  for (std::uint32_t node = 0; node < model.nodes(); ++node)
    if (const auto& [p, local] = model.deployment.places[node]; p != no_device) peaks[node] = lives[p].peak(model.schedule->programs[p], local);
  return peaks;
}

std::vector<LiveBuffer> live_at_peak(const Model& model, const Timeline& timeline, DeviceId device) {
  const auto& [p, local] = model.deployment.places[model.node_of[device.index()]];
  if (p == no_device) return {};
  return lives_of(model, timeline)[p].live_at_peak(model.schedule->programs[p], local);
}

}  // namespace podsim
