#include "sim/analysis/peak_memory.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace podsim {

namespace {

constexpr Picoseconds never_written{std::numeric_limits<std::int64_t>::max()}, never_used{-1};

/// Of the device's memory.
bool is_scratch(const Buffer& buffer) { return buffer.role == Role::scratch && !buffer.on_host; }

/// Inputs and outputs.
Bytes kept(const Program& program) {
  Bytes sum;
  for (const Buffer& buffer : program.buffers)
    if (buffer.role != Role::scratch) sum += size_on_device(buffer);
  return sum;
}

/// Calls visit(local) for each device that runs a task.
template <class Visit>
void each_doer(const Participants& who, Visit visit) {
  const std::size_t nodes = who.to.size();
  if (who.doers == nodes) {
    for (std::size_t l = 0; l < nodes; ++l) visit(l);
    return;
  }
  for (std::size_t l = 0; l < nodes; ++l)
    if (who.to[l] != no_device) visit(l);
}

void arrive_at(std::size_t local, Picoseconds* first, Picoseconds* last, Picoseconds begin, Picoseconds end) {
  first[local] = std::min(first[local], begin);
  last[local] = std::max(last[local], end);
}

}  // namespace

BufferLives::BufferLives(const Model& model) : model_{model}, programs_(model.costs.size()) {
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    OfProgram& program = programs_[p];
    const std::size_t nodes = model.deployment.programs[p].devices.size();
    std::uint32_t count = 0;
    for (const Buffer& buffer : model.schedule->programs[p].buffers) program.scratch.push_back(is_scratch(buffer) ? count++ : no_device);
    program.begin.assign(count * nodes, never_written);
    program.end.assign(count * nodes, never_used);
    program.calls.resize(nodes);
  }
}

void BufferLives::read(std::uint32_t p, std::size_t t, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) {
  const Participants& who = model_.deployment.who(p, t);
  const Op& op = model_.task(p, t).op;
  if (const auto* matmul = std::get_if<Matmul>(&op)) {
    used(p, matmul->left, who, sent);
    used(p, matmul->right, who, sent);
    written(p, matmul->out, who, start, sent);
  } else if (const auto* local = std::get_if<Local>(&op)) {
    for (const Region& region : local->reads) used(p, region, who, sent);
    for (const Region& region : local->writes) written(p, region, who, start, sent);
  } else if (std::holds_alternative<Call>(op)) {
    call(p, t, start);
  } else {
    const auto* shift = std::get_if<Shift>(&op);
    used(p, shift != nullptr ? shift->source : std::get<Send>(op).source, who, sent);
    arrive(p, t, start, sent);
  }
}

/// Of the region's buffer, per node of the program; null: no scratch buffer of the device.
Picoseconds* BufferLives::times_of(std::vector<Picoseconds> OfProgram::* times, std::uint32_t p, const Region& region) {
  const std::uint32_t scratch = programs_[p].scratch[region.buffer.index()];
  return scratch == no_device ? nullptr : (programs_[p].*times).data() + scratch * programs_[p].calls.size();
}

void BufferLives::used(std::uint32_t p, const Region& region, const Participants& who, std::span<const Picoseconds> end) {
  Picoseconds* const last = times_of(&OfProgram::end, p, region);
  if (last != nullptr) each_doer(who, [&](std::size_t l) { last[l] = std::max(last[l], end[l]); });
}

void BufferLives::written(std::uint32_t p, const Region& region, const Participants& who, std::span<const Picoseconds> begin,
                          std::span<const Picoseconds> end) {
  Picoseconds* const first = times_of(&OfProgram::begin, p, region);
  if (first == nullptr) return;
  each_doer(who, [&](std::size_t l) { first[l] = std::min(first[l], begin[l]); });
  used(p, region, who, end);
}

/// What the receivers of a transfer write.
void BufferLives::arrive(std::uint32_t p, std::size_t t, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) {
  const Participants& who = model_.deployment.who(p, t);
  const auto* shift = std::get_if<Shift>(&model_.task(p, t).op);
  if (shift == nullptr) {
    each_doer(who, [&](std::size_t l) {
      const auto& [program, local] = model_.deployment.places[who.to[l]];
      const Region& target = std::get<Recv>(model_.task(program, who.to_task[l]).op).target;
      if (Picoseconds* const first = times_of(&OfProgram::begin, program, target); first != nullptr)
        arrive_at(local, first, times_of(&OfProgram::end, program, target), start[l], later(sent[l], ceil_to_clock(model_.reduction(p, t, l))));
    });
    return;
  }
  Picoseconds *const first = times_of(&OfProgram::begin, p, shift->target), *const last = times_of(&OfProgram::end, p, shift->target);
  if (first == nullptr) return;
  const Deployment::Place* const places = model_.deployment.places.data();
  const std::uint32_t* const to = who.to.data();
  const Seconds sum = model_.costs[p][t].reduction;
  if (sum == Seconds{} || model_.speed.empty()) {
    const Picoseconds added = ceil_to_clock(sum);
    each_doer(who, [=](std::size_t l) { arrive_at(places[to[l]].local, first, last, start[l], later(sent[l], added)); });
    return;
  }
  Picoseconds added = ceil_to_clock(sum);
  double speed = 1;  // of the receiver that `added` is of
  each_doer(who, [&](std::size_t l) {
    if (const double other = model_.speed[to[l]]; other != speed) speed = other, added = ceil_to_clock(model_.at_speed(sum, to[l]));
    arrive_at(places[to[l]].local, first, last, start[l], later(sent[l], added));
  });
}

void BufferLives::call(std::uint32_t p, std::size_t t, std::span<const Picoseconds> start) {
  const Participants& who = model_.deployment.who(p, t);
  const PlayedCall& played = *model_.call(p, t);
  const std::vector<BufferId>& arguments = std::get<Call>(model_.task(p, t).op).arguments;
  for (std::size_t argument = 0; argument < arguments.size(); ++argument) {
    const Region whole{arguments[argument], {}};
    Picoseconds *const first = times_of(&OfProgram::begin, p, whole), *const last = times_of(&OfProgram::end, p, whole);
    if (first == nullptr) continue;
    const auto& [written, used] = played.arguments[argument];
    if (written) each_doer(who, [&](std::size_t l) { first[l] = std::min(first[l], start[l] + *written); });
    if (used) each_doer(who, [&](std::size_t l) { last[l] = std::max(last[l], start[l] + *used); });
  }
  if (!played.scratch.empty()) each_doer(who, [&](std::size_t l) { programs_[p].calls[l].push_back({t, start[l]}); });
}

/// Sorted; at one time those that end come first.
std::vector<BufferLives::Change> BufferLives::changes(std::uint32_t p, std::size_t local, std::size_t first_buffer) const {
  const std::vector<Buffer>& buffers = model_.schedule->programs[p].buffers;
  const OfProgram& program = programs_[p];
  std::vector<Change> all;
  for (std::size_t b = first_buffer; b < buffers.size(); ++b) {
    if (program.scratch[b] == no_device) continue;
    const std::size_t at = program.scratch[b] * program.calls.size() + local;
    if (program.begin[at] > program.end[at]) continue;
    all.push_back({program.begin[at], size_of(buffers[b]), b});
    all.push_back({program.end[at], Bytes{} - size_of(buffers[b]), b});
  }
  for (std::size_t c = 0; c < program.calls[local].size(); ++c) {
    const CallScratch& call = program.calls[local][c];
    for (const PlayedCall::ScratchChange& change : model_.call(p, call.task)->scratch) all.push_back({call.begin + change.at, change.by, buffers.size() + c});
  }
  std::ranges::sort(all, {}, [](const Change& change) { return std::tuple{change.at, change.by, change.of}; });
  return all;
}

void BufferLives::describe(PlayedCall& call, std::uint32_t node, std::size_t parameters) const {
  const auto& [p, local] = model_.deployment.places[node];
  const OfProgram& program = programs_[p];
  for (std::size_t b = 0; b < parameters; ++b) {
    PlayedCall::ArgumentUse& use = call.arguments.emplace_back();
    if (program.scratch[b] == no_device) continue;  // on the host
    const std::size_t at = program.scratch[b] * program.calls.size() + local;
    if (program.begin[at] != never_written) use.written = program.begin[at];
    if (program.end[at] != never_used) use.used = program.end[at];
  }
  for (const Change& change : changes(p, local, parameters)) {
    if (call.scratch.empty() || call.scratch.back().at != change.at) call.scratch.push_back({change.at, {}});
    call.scratch.back().by += change.by;
  }
}

Bytes BufferLives::peak(std::uint32_t p, std::size_t local) const {
  Bytes now = kept(model_.schedule->programs[p]), peak = now;
  for (const Change& change : changes(p, local)) peak = std::max(peak, now += change.by);
  return peak;
}

std::vector<Bytes> BufferLives::peaks() const {
  std::vector<Bytes> peaks(model_.nodes());
  for (std::uint32_t node = 0; node < model_.nodes(); ++node)
    if (const auto& [p, local] = model_.deployment.places[node]; p != no_device) peaks[node] = peak(p, local);
  return peaks;
}

std::vector<LiveBuffer> BufferLives::live_at_peak(DeviceId device) const {
  const auto& [p, local] = model_.deployment.places[model_.node_of[device.index()]];
  if (p == no_device) return {};
  const Program& program = model_.schedule->programs[p];
  const std::vector<CallScratch>& calls = programs_[p].calls[local];
  const std::vector<Change> all = changes(p, local);
  Bytes now = kept(program), peak = now;
  std::size_t until = 0;  // changes before the peak
  for (std::size_t c = 0; c < all.size(); ++c)
    if (now += all[c].by; now > peak) peak = now, until = c + 1;
  std::vector<Bytes> live(program.buffers.size() + calls.size());
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].role != Role::scratch) live[b] = size_on_device(program.buffers[b]);
  for (std::size_t c = 0; c < until; ++c) live[all[c].of] += all[c].by;
  std::vector<LiveBuffer> result;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i] <= Bytes{}) continue;
    if (i < program.buffers.size())
      result.push_back({program.buffers[i].name, live[i], BufferId{i}});
    else
      result.push_back({program.tasks[calls[i - program.buffers.size()].task].label, live[i], {}});
  }
  return result;
}

std::vector<LiveMemory> BufferLives::over_time(DeviceId device) const {
  if (model_.deployment.places[model_.node_of[device.index()]].program == no_device) return {};
  std::vector<LiveMemory> result{{}};
  Bytes now;
  const std::vector<MemoryChange> all = history(device);
  for (std::size_t c = 0; c < all.size(); ++c) {
    now += all[c].by;
    if (c + 1 < all.size() && all[c + 1].at == all[c].at) continue;
    if (result.back().from == all[c].at) result.pop_back();
    if (result.empty() || result.back().size != now) result.push_back({all[c].at, now});
  }
  return result;
}

std::vector<MemoryChange> BufferLives::history(DeviceId device) const {
  const auto& [p, local] = model_.deployment.places[model_.node_of[device.index()]];
  if (p == no_device) return {};
  const std::vector<Buffer>& buffers = model_.schedule->programs[p].buffers;
  std::vector<MemoryChange> history;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].role != Role::scratch && size_on_device(buffers[b]) > Bytes{}) history.push_back({{}, size_on_device(buffers[b]), BufferId{b}});
  for (const Change& change : changes(p, local))
    history.push_back({change.at, change.by, change.of < buffers.size() ? std::optional{BufferId{change.of}} : std::nullopt});
  return history;
}

std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline) {
  BufferLives lives{model};
  read_times(model, timeline, lives);
  return lives.peaks();
}

std::vector<LiveBuffer> live_at_peak(const Model& model, const Timeline& timeline, DeviceId device) {
  BufferLives lives{model};
  read_times(model, timeline, lives);
  return lives.live_at_peak(device);
}

std::vector<std::vector<MemoryChange>> memory_histories(const Model& model, const Timeline& timeline, const std::vector<DeviceId>& devices) {
  BufferLives lives{model};
  read_times(model, timeline, lives);
  std::vector<std::vector<MemoryChange>> histories;
  for (const DeviceId device : devices) histories.push_back(lives.history(device));
  return histories;
}

}  // namespace podsim
