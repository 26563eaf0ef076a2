#include "sim/engine/des/program_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/schedule/text.hpp"

namespace podsim::des {

namespace {

const std::uint32_t* data_or_null(const std::vector<std::uint32_t>& table) { return table.empty() ? nullptr : table.data(); }

class Tabulator {
 public:
  explicit Tabulator(const Model& model) : model_{model}, deployment_{model.deployment} {}

  Expected<ProgramTables> run() {
    std::size_t counters = 0;
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p) counters += model_.costs[p].size() * deployment_.programs[p].devices.size();
    result_.own.assign(counters, absent_gate);
    result_.receive.assign(counters, absent_gate);
    find_common_latencies();
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      if (auto ok = tabulate(p); !ok) return ok.error();
    return std::move(result_);
  }

 private:
  /// Per routing, the latency of all its paths; negative: they differ.
  void find_common_latencies() {
    common_latency_.assign(model_.routings.size(), Seconds{-1});
    std::vector<bool> seen(model_.routings.size(), false);
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
        const std::uint32_t routing = model_.costs[p][t].routing;
        if (routing == no_device || seen[routing]) continue;
        seen[routing] = true;
        const Participants& who = deployment_.who(p, t);
        bool first = true, same = true;
        Seconds latency{-1};
        for (std::size_t l = 0; l < who.to.size(); ++l) {
          if (!who.does(l)) continue;
          const Seconds here = model_.paths[model_.routings[routing][l]].latency;
          same = same && (first || here == latency);
          latency = here;
          first = false;
        }
        if (same) common_latency_[routing] = latency;
      }
  }

  Status tabulate(std::uint32_t p) {
    ProgramTable& table = result_.programs.emplace_back();
    const Program& program = model_.schedule->programs[p];
    table.nodes = static_cast<std::uint32_t>(deployment_.programs[p].devices.size());
    if (!model_.core_shares.empty()) table.shares_first = model_.core_shares[p].first.data();
    const std::size_t n = program.tasks.size();
    table.tasks.reserve(n);
    std::vector<std::vector<Wait>> waits;  // own gate and receive gate of each task
    waits.reserve(2 * n);
    for (std::size_t t = 0; t < n; ++t) {
      table.tasks.push_back(row(p, t));
      if (table.tasks.back().on_core) table.core.push_back(static_cast<std::uint32_t>(t));
      for (const bool receive_gate : {false, true}) {
        waits.push_back(has_gate(table.tasks.back(), receive_gate) ? waits_of(program, TaskId{t}, receive_gate) : std::vector<Wait>{});
        if (waits.back().size() > most_waits)
          return Diagnostic{location_of(program.tasks[t].written_at), fmt::format("task {} waits for {} halves of others; expected at most {}",
                                                                                  task_name(program, TaskId{t}), waits.back().size(), most_waits)};
      }
    }
    index_followers(table, waits);
    for (std::size_t t = 0; t < n; ++t) {
      const Participants& who = deployment_.who(p, t);
      const TaskRow& task = table.tasks[t];
      if (has_gate(task, false)) count(p, result_.own.data() + task.counters, task.to, who.doers, waits[2 * t], task.on_core ? 1 : 0);
      if (has_gate(task, true)) count(p, result_.receive.data() + task.counters, task.from, who.receivers, waits[2 * t + 1], 0);
    }
    return success();
  }

  static bool has_gate(const TaskRow& row, bool receive_gate) { return receive_gate ? row.from != nullptr : row.to != nullptr; }

  TaskRow row(std::uint32_t p, std::size_t t) {
    const TaskCost& cost = model_.costs[p][t];
    const Participants& who = deployment_.who(p, t);
    TaskRow row;
    row.kind = cost.kind;
    row.on_core = cost.on_core;
    row.first_activity = deployment_.programs[p].first_activity[t];
    row.counters = next_counter_;
    next_counter_ += deployment_.programs[p].devices.size();
    if (cost.kind != TaskCost::Kind::receive) row.to = data_or_null(who.to), row.rank = data_or_null(who.rank);
    row.from = data_or_null(who.from);
    row.to_task = data_or_null(who.to_task);
    row.from_task = data_or_null(who.from_task);
    row.work = ceil_to_clock(cost.work).count();
    row.work_seconds = cost.work;
    if (!model_.memory_paths.empty() && cost.memory_bytes > 0) {
      row.flow_bytes = cost.memory_bytes;
      row.launch_seconds = cost.launch;
      row.rest_seconds = cost.rest;
      row.launch = ceil_to_clock(cost.launch).count();
      row.rest = ceil_to_clock(cost.rest).count();
    }
    row.reduction_seconds = cost.reduction;
    if (!model_.core_shares.empty() && !model_.core_shares[p].behind[t].empty()) row.shares_behind = model_.core_shares[p].behind[t].data();
    row.reduction = ceil_to_clock(cost.reduction).count();
    if (cost.kind == TaskCost::Kind::transfer) {
      row.paths = model_.routings[cost.routing].data();
      row.delay_without_latency = cost.delay;
      const Seconds latency = common_latency_[cost.routing];
      row.delay = latency < Seconds{} ? -1 : ceil_to_clock(cost.delay + latency).count();
      row.flow_bytes = cost.flow_bytes;
    }
    return row;
  }

  /// Per task what follows its `sent` or end, then what follows its `received`.
  void index_followers(ProgramTable& table, const std::vector<std::vector<Wait>>& waits) {
    const std::size_t n = table.tasks.size();
    std::vector<std::uint32_t> rows(2 * n + 1, 0);
    for (const auto& list : waits)
      for (const Wait& wait : list) ++rows[2 * wait.task.index() + (wait.received ? 1 : 0) + 1];
    for (std::size_t i = 1; i < rows.size(); ++i) rows[i] += rows[i - 1];
    table.followers.assign(rows.back(), Follower{0, false});
    for (std::size_t t = 0; t < n; ++t) std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(2 * t), 3, table.tasks[t].followers);
    for (std::size_t i = 0; i < waits.size(); ++i)
      for (const Wait& wait : waits[i])
        table.followers[rows[2 * wait.task.index() + (wait.received ? 1 : 0)]++] = Follower{static_cast<std::uint32_t>(i / 2), i % 2 == 1};
  }

  /// Sets the counters of a gate on the nodes that `table` names: the waits that are present there, and `more`.
  void count(std::uint32_t p, std::uint16_t* counters, const std::uint32_t* table, std::uint32_t present, const std::vector<Wait>& waits, int more) {
    const std::size_t nodes = deployment_.programs[p].devices.size();
    const auto all = static_cast<std::uint16_t>(waits.size() + static_cast<std::size_t>(more));
    if (present == nodes)
      std::fill_n(counters, nodes, all);
    else
      for (std::size_t l = 0; l < nodes; ++l)
        if (table[l] != no_device) counters[l] = all;
    for (const Wait& wait : waits) {
      const Participants& who = deployment_.who(p, wait.task.index());
      if ((wait.received ? who.receivers : who.doers) == nodes) continue;
      const auto& there = wait.received ? who.from : who.to;
      for (std::size_t l = 0; l < nodes; ++l)
        if (counters[l] != absent_gate && (there.empty() || there[l] == no_device)) --counters[l];
    }
  }

  const Model& model_;
  const Deployment& deployment_;
  std::vector<Seconds> common_latency_;
  std::size_t next_counter_ = 0;
  ProgramTables result_;
};

}  // namespace

Expected<ProgramTables> tabulate(const Model& model) { return Tabulator{model}.run(); }

}  // namespace podsim::des
