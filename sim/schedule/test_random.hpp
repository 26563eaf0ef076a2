// Random small schedules, for property tests of several folders. All are well-shaped; they may be unmatched, race or deadlock.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim::testing {

struct RandomScheduleOptions {
  bool exchanges = true;     // Send and Recv, which may deadlock through the cores' program order
  bool careless = true;      // guards may disagree, shifts may leave open axes, regions their buffers
  double edge_chance = 0.7;  // of an edge to each earlier task: near 1 there is no race
  bool guards = true;
  std::vector<MeshAxis> axes{};  // none: one or two, of 1 to 4 devices
  int most_tasks = 9;
  bool far = false;        // shifts as far as half round an axis, Sends along all axes at once; else neighbours, mostly
  std::int64_t scale = 1;  // regions of 2 x 2 elements become 2 scale x 2 scale
};

class RandomScheduleWriter {
 public:
  RandomScheduleWriter(std::uint64_t seed, const RandomScheduleOptions& options) : rng_{seed, stream_of("schedule")}, options_{options}, w_{axes()} {}

  Schedule write() {
    for (int b = 0, count = rng_.between(1, 3); b < count; ++b) w_.scratch(std::string(1, static_cast<char>('a' + b)), {6 * options_.scale, 6 * options_.scale});
    for (int t = 0, count = rng_.between(1, options_.most_tasks); t < count; ++t) {
      const std::string label = "t" + std::to_string(t);
      switch (rng_.below(options_.exchanges ? 6 : 4)) {
        case 0: matmul(label); break;
        case 1: copy_of(label); break;
        case 2:
        case 3: move(label); break;
        default: exchange(label); break;
      }
    }
    for (; !receives_.empty(); receives_.erase(receives_.begin())) add_receive(receives_.front());
    return std::move(w_.schedule);
  }

 private:
  struct Receive {
    Recv op;
    Guard where;
  };

  std::vector<MeshAxis> axes() {
    if (!options_.axes.empty()) return options_.axes;
    std::vector<MeshAxis> result;
    for (int a = 0, count = rng_.between(1, 2); a < count; ++a)
      result.push_back({std::string(1, static_cast<char>('x' + a)), rng_.between(1, 4), rng_.below(2) == 0});
    return result;
  }
  bool chance(double part) { return rng_.uniform() < part; }
  AxisView axis() { return w_.axis(static_cast<int>(rng_.below(w_.schedule.mesh.axes().size()))); }

  /// 2 x 2 elements, times the scale; block indices may be affine.
  Region region() {
    const std::int64_t s = options_.scale;
    Region result{BufferId{static_cast<int>(rng_.below(w_.now().buffers.size()))}, {}};
    for (int d = 0; d < 2; ++d) {
      const AxisView view = axis();
      const bool out = options_.careless && chance(0.005);
      if (chance(0.3))
        result.dims.push_back(block(Affine{{AxisTerm{view, 1}}, rng_.between(-2, 2), 3}, 2 * s));
      else
        result.dims.push_back(span(s * (out ? 5 : rng_.between(0, 4)), 2 * s));
    }
    return result;
  }

  Guard guard() {
    if (!options_.guards || !chance(0.3)) return {};
    const AxisView view = axis();
    const int low = rng_.between(0, view.size - 1);
    return between(view, low, rng_.between(low + 1, view.size));
  }

  std::vector<Edge> edges(const Op& op) {
    std::vector<Edge> result;
    const auto& tasks = w_.now().tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (chance(options_.edge_chance)) result.push_back({TaskId{t}, half_of(tasks[t].op), half_of(op)});
    return result;
  }
  /// Both, or now and then one that the operation has.
  Half half_of(const Op& op) {
    if (chance(0.7)) return Half::both;
    if (std::holds_alternative<Shift>(op)) return chance(0.5) ? Half::send : Half::receive;
    if (std::holds_alternative<Send>(op)) return Half::send;
    if (std::holds_alternative<Recv>(op)) return Half::receive;
    return Half::both;
  }
  void add(const std::string& label, Op op, Guard where) {
    std::vector<Edge> after = edges(op);
    w_.add(label, std::move(op), std::move(after), std::move(where));
  }

  void matmul(const std::string& label) { add(label, Matmul{region(), region(), region(), 1, 1, 1, chance(0.3), chance(0.3), chance(0.3)}, guard()); }
  void copy_of(const std::string& label) { add(label, copy(region(), region(), chance(0.7) ? Unit::core : Unit::dma), guard()); }

  void move(const std::string& label) {
    const AxisView view = axis();
    const int farthest = options_.far ? std::max(1, view.size / 2) : 2;
    Affine by{rng_.between(-farthest, farthest)};
    if (w_.schedule.mesh.axes().size() == 2 && w_.schedule.mesh.wraps(view) && chance(0.3))
      by = Affine{{AxisTerm{w_.axis(1 - view.axis), chance(0.5) ? 1 : -1}}, rng_.between(-1, 1)};
    Guard where = guard();
    if (!w_.schedule.mesh.wraps(view) && !(options_.careless && chance(0.03))) {
      const std::int64_t distance = by.constant;  // an open axis: only devices that have a partner
      for (const Condition& condition : between(view, std::max<std::int64_t>(0, -distance), view.size - std::max<std::int64_t>(0, distance)))
        where.push_back(condition);
    }
    add(label, shift(view, std::move(by), region(), region(), chance(0.3) ? Combine::add : Combine::replace), std::move(where));
  }

  /// A Send along an axis (unless `far`, others keep their coordinates), with its Recv some time before or after it.
  void exchange(const std::string& label) {
    const AxisView view = axis();
    const int by = rng_.between(1, std::max(1, view.size - 1));
    if (view.size == 1) return copy_of(label);
    Peer to, from;
    for (int a = 0; a < static_cast<int>(w_.schedule.mesh.axes().size()); ++a) {
      const int along = a == view.axis ? by : options_.far ? rng_.between(0, w_.axis(a).size - 1) : 0;
      to.push_back(own(w_.axis(a), along));
      from.push_back(own(w_.axis(a), -along));
    }
    const int channel = rng_.between(0, 1);
    const Region source = region();
    Receive receive{{channel, from, region(), chance(0.2) ? Combine::add : Combine::replace}, {}};
    const bool first = chance(0.5);
    if (first) add_receive(receive);
    add(label, Send{channel, to, source, {}}, options_.careless && chance(0.05) ? guard() : Guard{});
    if (first) return;
    if (chance(0.5))
      add_receive(receive);
    else
      receives_.push_back(receive);
  }
  void add_receive(const Receive& receive) { add("r", receive.op, options_.careless && chance(0.05) ? guard() : receive.where); }

  Rng rng_;
  RandomScheduleOptions options_;
  Writer w_;
  std::vector<Receive> receives_;  // still to come
};

inline Schedule random_schedule(std::uint64_t seed, const RandomScheduleOptions& options = {}) { return RandomScheduleWriter{seed, options}.write(); }

}  // namespace podsim::testing
