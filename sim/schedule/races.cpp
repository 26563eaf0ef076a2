#include "sim/schedule/races.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/schedule/box_list.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/touches.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_races = 100;
constexpr std::size_t direct_waits = 64;        // a search backwards looks at so many before the question is put off
constexpr std::size_t most_questions = 1 << 12;  // that are put off together

class RaceFinder {
 public:
  RaceFinder(const Schedule& schedule, const ActivityGraph& graph, const std::vector<std::uint32_t>& order)
      : schedule_{schedule}, graph_{graph}, order_{order}, before_{graph, order} {
    for (const Program& program : schedule.programs) {
      std::vector<bool> written(program.buffers.size(), false);
      for (const Task& task : program.tasks)
        for_each_touch(task.op, [&](const Touch& touch) {
          if (touch.write) written[touch.region.buffer.index()] = true;
        });
      written_.push_back(std::move(written));
    }
    for (int d = 0; d < schedule.mesh.devices(); ++d) {
      const auto p = program_of(schedule, DeviceId{d});
      accesses_.emplace_back(p ? schedule.programs[*p].buffers.size() : 0);
    }
  }

  Races run(Cancellation stop) {
    for (const std::uint32_t a : order_) {
      if (stop.requested() || races_.size() >= most_races) break;
      const Activity& activity = graph_.activities[a];
      for_each_touch(op(activity.program, activity.task), [&](const Touch& touch) {
        if (touch.side != Side::target) add({a, activity.device, activity.program, activity.task, touch, false});
      });
      if (activity.kind == Activity::Kind::transfer)
        for_each_touch(op(activity.receiver_program, activity.receiver_task), [&](const Touch& touch) {
          if (touch.side == Side::target) add({a, activity.receiver, activity.receiver_program, activity.receiver_task, touch, true});
        });
      if (questions_.size() >= most_questions) settle(stop);
    }
    settle(stop);
    std::sort(races_.begin(), races_.end(), [](const Race& a, const Race& b) { return a.number < b.number; });
    Races result;
    result.all = races_.size() < most_races;
    result.waits_looked_at = before_.waits_looked_at();
    races_.resize(std::min(races_.size(), most_races));
    for (Race& race : races_) result.found.push_back(std::move(race.diagnostic));
    return result;
  }

 private:
  struct Access {
    std::uint32_t activity;
    TaskId task;
    bool write, received;
    OverRead results;
    Box box;
  };
  /// A touch by an activity, on a device.
  struct Event {
    std::uint32_t activity;
    DeviceId device;
    std::uint32_t program;
    TaskId task;
    const Touch& touch;
    bool received;
  };
  /// Two accesses that conflict: the later one is at the end of an event.
  struct Conflict {
    DeviceId device;
    std::uint32_t program;
    BufferId buffer;
    TaskId earlier, later;
    bool earlier_writes, later_writes;
    std::size_t number;  // conflicts count in the order in which they are met
  };
  struct Race {
    std::size_t number;
    Diagnostic diagnostic;
  };

  const Op& op(std::uint32_t program, TaskId task) const { return schedule_.programs[program].tasks[task.index()].op; }

  void add(const Event& event) {
    const Touch& touch = event.touch;
    const std::size_t buffer = touch.region.buffer.index();
    if (!written_[event.program][buffer]) return;  // inputs: only ever read
    const Coordinates at = schedule_.mesh.coordinates(event.device);
    Access access{event.activity, event.task, touch.write, event.received, touch.results, evaluate(touch.region, at)};
    BoxList<Access>& earlier = accesses_[event.device.index()][buffer];
    earlier.remove_overlapping(access.box, [&](const Access& other) {
      if (!access.write && !other.write) return false;
      const Conflict conflict{event.device, event.program,  touch.region.buffer, other.task,
                              event.task,   other.write, access.write,        ++conflicts_};
      if (other.activity == access.activity) {  // reads come before writes
        if (other.write)
          report(conflict);
        else if (other.results == OverRead::nothing || (other.results == OverRead::same_region && other.box != access.box))
          report_overwritten_operand(conflict);
        return false;
      }
      const OrderQuestion question{other.activity, other.received, access.activity};
      const std::optional<bool> ordered = before_.within(direct_waits, question);
      if (ordered == std::optional{false}) {
        report(conflict);
        return false;
      }
      if (!ordered) {  // taken for ordered until it is settled; if it is not, that one race is enough
        questions_.push_back(question);
        asked_.push_back(conflict);
      }
      // What conflicts with the covered access conflicts with this one too, and is ordered through it.
      return access.write && contains(access.box, other.box);
    });
    earlier.add(std::move(access));
  }

  /// Answers the questions that were put off.
  void settle(Cancellation stop) {
    const std::vector<bool> ordered = before_.together(questions_, stop);
    for (std::size_t q = 0; q < questions_.size(); ++q)
      if (!ordered[q]) report(asked_[q]);
    questions_.clear();
    asked_.clear();
  }

  std::string place(DeviceId device) const { return fmt::format("device {} ({})", device.value, schedule_.mesh.name(device)); }
  std::string buffer_name(const Conflict& conflict) const {
    return quoted(schedule_.programs[conflict.program].buffers[conflict.buffer.index()].name);
  }

  void report(const Conflict& conflict) {
    const Program& p = schedule_.programs[conflict.program];
    const auto verb = [](bool writes) { return writes ? "writes" : "reads"; };
    races_.push_back(
        {conflict.number,
         {location_of(p.tasks[conflict.later.index()].written_at),
          fmt::format("race on {}: task {} {} and task {} {} overlapping parts of buffer {}, and neither happens before the other",
                      place(conflict.device), task_name(p, conflict.earlier), verb(conflict.earlier_writes), task_name(p, conflict.later),
                      verb(conflict.later_writes), buffer_name(conflict))}});
  }

  void report_overwritten_operand(const Conflict& conflict) {
    const Program& p = schedule_.programs[conflict.program];
    const Task& task = p.tasks[conflict.later.index()];
    const auto* local = std::get_if<Local>(&task.op);
    const bool elementwise = local != nullptr && traits_of(local->kind).in_place > 0;
    races_.push_back({conflict.number,
                      {location_of(task.written_at),
                       fmt::format("race on {}: task {} writes over parts of buffer {} that it reads; expected {}", place(conflict.device),
                                   task_name(p, conflict.later), buffer_name(conflict),
                                   elementwise ? "regions that are the same or do not overlap" : "regions that do not overlap")}});
  }

  const Schedule& schedule_;
  const ActivityGraph& graph_;
  const std::vector<std::uint32_t>& order_;
  HappensBefore before_;
  std::vector<std::vector<bool>> written_;                  // [program][buffer]
  std::vector<std::vector<BoxList<Access>>> accesses_;          // [device][buffer]
  std::vector<OrderQuestion> questions_;                    // put off
  std::vector<Conflict> asked_;                             // what for
  std::size_t conflicts_ = 0;
  std::vector<Race> races_;
};

}  // namespace

Races find_races(const Schedule& lowered, const ActivityGraph& graph, const std::vector<std::uint32_t>& order, Cancellation stop) {
  return RaceFinder{lowered, graph, order}.run(stop);
}

}  // namespace podsim
