// OperationTimes of GPUs: their operations are kernels on streams.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/importers/kernel_category.hpp"
#include "validation/calibration/importers/operation_sums.hpp"
#include "validation/calibration/importers/profile_operations.hpp"
#include "validation/calibration/importers/stream_times.hpp"

namespace podsim {

/// A kernel with an HLO operation is a part of that operation; one in a command buffer is the node of its graph, as several nodes run one kernel.
void OperationTimes::add_kernel(ProfileLine line, const ProfileEvent& event) {
  const bool has_operation = !event.name.empty();
  const std::string of = fmt::format("{}\n{}\n{}", event.name, event.graph, event.provenance);
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", of, event.kernel, event.node, event.bytes.count(), event.group);
  const auto [known, is_new] = by_text_.try_emplace(key, static_cast<std::uint32_t>(ops_.size()));
  const std::uint32_t op = known->second;
  if (is_new) {
    const std::uint32_t whole = has_operation ? by_text_.try_emplace(of, op).first->second : op;
    std::string name = has_operation ? std::string{event.name} : short_kernel_name(event.kernel);
    if (!has_operation && event.graph.empty() && !event.provenance.empty()) name = fmt::format("{}: {}", event.provenance, name);
    ops_.push_back({std::move(name), {}, {}, std::string{event.provenance}, event.flops, std::string{event.kernel}, whole,
                    has_operation, !event.graph.empty(), event.bytes, event.group});
  }
  lines_[line].push_back({event.begin_ps, event.duration_ps, event.duration_ps, op, -1});
}

std::string OperationTimes::category_of_kernel(std::uint32_t op) const {
  const Op& from = ops_[op];
  return kernel_category(from.kernel, from.has_operation ? from.name : from.is_kernel ? std::string{} : from.provenance);
}

/// Of all streams, by time; empty: it has none. Where a line of operations has their HLO texts, as in a simulation's profile, that is better.
std::vector<OperationTimes::Event> OperationTimes::kernels_on(const ReadProfile::Device& device) const {
  std::vector<Event> kernels;
  if (const auto* operations = events_on(device, operations_line); operations != nullptr && !operations->empty() && !ops_[operations->front().op].text.empty()) return kernels;
  for (const auto& [name, line] : device.lines) {
    const auto events = is_stream(name) ? lines_.find(line) : lines_.end();
    if (events == lines_.end()) continue;
    std::ranges::copy_if(events->second, std::back_inserter(kernels), [this](const Event& event) { return !ops_[event.op].kernel.empty(); });
  }
  std::ranges::stable_sort(kernels, {}, &Event::begin_ps);
  return kernels;
}

std::vector<double> OperationTimes::times_of_kernels(const std::vector<Event>& kernels) const {
  std::map<std::uint32_t, KernelRank> ranks;
  std::vector<StreamSpan> spans;
  spans.reserve(kernels.size());
  for (const Event& event : kernels) {
    const auto [rank, is_new] = ranks.try_emplace(event.op, KernelRank::arithmetic);
    if (is_new) {
      const std::string category = category_of_kernel(event.op);
      rank->second = is_collective_category(category) ? KernelRank::communication : category == "copy" ? KernelRank::copy : KernelRank::arithmetic;
    }
    spans.push_back({event.begin_ps, event.begin_ps + event.span_ps, rank->second});
  }
  const std::vector<std::int64_t> own = own_times(spans);
  return {own.begin(), own.end()};
}

void OperationTimes::add_kernels(std::vector<Event>& kernels, Sums& sums) const {
  const std::vector<double> own = times_of_kernels(kernels);
  sums.starts.clear();
  for (const Op& op : ops_) sums.starts.push_back(op.whole);
  std::vector<double> runs(ops_.size(), 0);
  std::int64_t last = 0;
  double busy = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::uint32_t op = kernels[k].op, whole = ops_[op].whole;
    busy += own[k];
    sums.self[whole] += own[k];
    sums.of_kernel[op] += own[k];
    sums.beside[whole] += static_cast<double>(kernels[k].span_ps) - own[k];
    runs[op] += 1;
    last = std::max(last, kernels[k].begin_ps + kernels[k].span_ps);
  }
  std::map<std::uint32_t, double> occurrences;  // an operation runs some of its kernels several times
  for (std::uint32_t op = 0; op < ops_.size(); ++op) {
    if (!(runs[op] > 0)) continue;
    const auto [least, is_new] = occurrences.try_emplace(ops_[op].whole, runs[op]);
    if (!is_new) least->second = std::min(least->second, runs[op]);
  }
  for (const auto& [whole, count] : occurrences) sums.occurrences[whole] += count;
  sums.time += std::max(busy, static_cast<double>(last - kernels.front().begin_ps));
  ++sums.devices;
}

/// The category of the kernel that takes most of the operation's time.
void OperationTimes::describe_kernels(const Sums& sums, std::uint32_t op, ProfiledOperation& operation) const {
  const Op& from = ops_[op];
  std::uint32_t longest = op;
  if (from.has_operation)
    for (std::uint32_t part = op; part < ops_.size(); ++part)
      if (ops_[part].whole == op && sums.of_kernel[part] > sums.of_kernel[longest]) longest = part;
  operation.category = category_of_kernel(longest);
  operation.of_kernels = true;
  operation.is_kernel = from.is_kernel;
  if (from.bytes.count() > 0) operation.bytes = from.bytes;
  if (from.group > 0) operation.group = from.group;
}

void OperationTimes::note_kernels(const Sums& sums, ProfiledOperations& found) const {
  double in_graphs = 0, all = 0;
  std::size_t count = 0;
  for (std::uint32_t op = 0; op < ops_.size(); ++op) {
    all += sums.of_kernel[op];
    if (!ops_[op].is_kernel || !(sums.of_kernel[op] > 0)) continue;
    in_graphs += sums.of_kernel[op];
    ++count;
  }
  if (count > 0)
    found.notes.push_back(fmt::format("{} in command buffers (CUDA graphs), {} of the time of all kernels, do not tell their HLO operation: they stand under their own names",
                                      counted(static_cast<std::int64_t>(count), "kernel"), percent(in_graphs / all)));
}

/// From each run of the first kernel that runs once in each step to the next; none: there is no such kernel, or it is all one step.
std::vector<OperationTimes::Event> OperationTimes::steps_of_kernels(const ReadProfile::Device& device, const ProfileOptions& options) const {
  std::vector<Event> kernels = kernels_on(device);
  if (kernels.empty()) return {};
  Sums sums{ops_.size()};
  add_kernels(kernels, sums);
  ProfiledOperations found;
  add_operations(sums, options, found);
  const int steps = options.steps > 0 ? options.steps : steps_by_divisor(found.operations, options.layers).steps;
  std::map<std::uint32_t, int> runs;
  std::int64_t last = 0;
  for (const Event& kernel : kernels) ++runs[kernel.op], last = std::max(last, kernel.begin_ps + kernel.span_ps);
  const auto first = std::ranges::find_if(kernels, [&](const Event& kernel) { return runs[kernel.op] == steps; });
  std::vector<Event> windows;
  if (steps < 2 || first == kernels.end()) return windows;
  std::ranges::copy_if(kernels, std::back_inserter(windows), [op = first->op](const Event& kernel) { return kernel.op == op; });
  windows.front().begin_ps = kernels.front().begin_ps;
  for (std::size_t s = 0; s < windows.size(); ++s)
    windows[s].span_ps = windows[s].duration_ps = (s + 1 < windows.size() ? windows[s + 1].begin_ps : last) - windows[s].begin_ps;
  return windows;
}

CountedSteps steps_by_divisor(const std::vector<ProfiledOperation>& operations, int layers) {
  constexpr double most_of_them = 0.9;
  constexpr std::int64_t most_steps = 1 << 24;
  std::map<std::int64_t, std::size_t> counts;
  for (const ProfiledOperation& operation : operations) ++counts[std::llround(operation.occurrences)];
  int best = 1;
  for (const auto& [count, of_count] : counts) {  // any other divisor is smaller than the count of some operation that it divides
    if (count < 2 || count > most_steps) continue;
    std::size_t divided = 0;
    for (const auto& [other, number] : counts) divided += other % count == 0 ? number : 0;
    if (static_cast<double>(divided) >= most_of_them * static_cast<double>(operations.size())) best = static_cast<int>(count);
  }
  if (best == 1 && counts.contains(1)) return {1, ": some kernels run once"};
  if (best == 1) return steps_by_occurrences(operations, layers);
  return {best, fmt::format(": the kernels outside of loops run {} times", best)};
}

}  // namespace podsim
