#include "validation/calibration/importers/profile_ops.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/base/statistics.hpp"
#include "sim/base/text.hpp"
#include "validation/calibration/importers/step_category.hpp"

namespace podsim {

namespace {

bool is_collective_word(std::string_view name) {
  return name.starts_with("all-") || name.starts_with("reduce-scatter") || name.starts_with("collective-permute") ||
         name.starts_with("async-collective");
}

/// `all-gather-start.3`, `async-collective-done`: the two ends of what runs beside other operations.
bool is_end_of_asynchronous(std::string_view name) {
  return is_collective_word(name) && (name.find("-start") != std::string_view::npos || name.find("-done") != std::string_view::npos);
}

}  // namespace

namespace {

std::optional<int> number_behind(std::string_view front, std::string_view plane) {
  if (!plane.starts_with(front)) return std::nullopt;
  plane.remove_prefix(front.size());
  int number = 0;
  const auto [rest, status] = std::from_chars(plane.data(), plane.data() + plane.size(), number);
  if (status != std::errc{} || rest != plane.data() + plane.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

void tell_operation(ProfileEvent& event, std::string_view hlo_op) {
  if (const std::size_t nested = hlo_op.rfind("::"); nested != std::string_view::npos) hlo_op.remove_prefix(nested + 2);
  const bool in_graph = hlo_op.starts_with("command_buffer");
  event.name = in_graph ? std::string_view{} : hlo_op;
  event.graph = in_graph ? hlo_op : std::string_view{};
  if (!in_graph) event.node = -1;  // several kernels of one operation
}

std::string_view provenance_of_kernel(std::string_view tf_op) { return tf_op == "XlaModule:" ? std::string_view{} : tf_op; }

std::int64_t node_of_graph(double cuda_graph_node_id) {
  return cuda_graph_node_id >= 0 && cuda_graph_node_id < 9e15 ? static_cast<std::int64_t>(cuda_graph_node_id) & 0xffffffff : -1;
}

void add_machine(ReadProfile& profile, const std::string& name) {
  if (!name.empty() && std::ranges::find(profile.machines, name) == profile.machines.end()) profile.machines.push_back(name);
}

std::optional<int> tpu_named(std::string_view plane) { return number_behind("/device:TPU:", plane); }
std::optional<int> gpu_named(std::string_view plane) { return number_behind("/device:GPU:", plane); }

void ProfileOps::add(ProfileLine line, const ProfileEvent& event) {
  if (is_end_of_asynchronous(event.name)) return add_end(line, event);
  if (event.duration_ps <= 0) return;
  auto known = by_text_.find(std::string{event.text});
  if (known == by_text_.end()) {
    auto hlo = parse_hlo_op(event.text);
    if (!hlo) {
      textless_ += is_collective_word(event.name) ? 1 : 0;
      return;
    }
    if (is_end_of_asynchronous(hlo->opcode)) return add_end(line, event);
    if (!observed_op_of(*hlo, event.category)) return;
    known = by_text_.emplace(std::string{event.text}, ops_.size()).first;
    ops_.push_back({*std::move(hlo), std::string{event.category}, event.flops, {}});
  }
  ops_[known->second].lines[line].push_back({event.begin_ps, event.duration_ps});
}

void ProfileOps::add_end(ProfileLine line, const ProfileEvent& event) {
  ++asynchronous_;
  if (event.duration_ps < 0) return;  // an end that takes no time of the core is one all the same
  auto hlo = parse_hlo_op(event.text);
  if (!hlo) return;
  const std::string name = hlo->name;
  if (is_done(name)) {
    dones_[start_of_done(name, event.text)][line].push_back({event.begin_ps, event.duration_ps});
    return;
  }
  if (!is_start(name)) return;
  const auto [known, added] = by_text_.try_emplace(std::string{event.text}, ops_.size());
  if (added) ops_.push_back({as_synchronous(*std::move(hlo)), {}, {}, {}, true});
  if (ops_[known->second].asynchronous) ops_[known->second].lines[line].push_back({event.begin_ps, event.duration_ps});
}

ProfileOps::Fastest ProfileOps::fastest_of(Lines& lines, const std::vector<ProfileLine>& devices) {
  Fastest fastest;
  std::vector<std::int64_t>& durations = fastest.durations_ps;
  std::size_t fewest = 0;
  bool first = true;
  for (const ProfileLine device : devices) {
    const auto found = lines.find(device);
    if (found == lines.end()) continue;
    auto& occurrences = found->second;
    std::ranges::sort(occurrences, {}, &Occurrence::begin_ps);
    fewest = first ? occurrences.size() : std::min(fewest, occurrences.size());
    first = false;
    for (std::size_t i = 0; i < occurrences.size(); ++i) {
      if (i == durations.size())
        durations.push_back(occurrences[i].duration_ps);
      else
        durations[i] = std::min(durations[i], occurrences[i].duration_ps);
    }
  }
  fastest.uneven = fewest != durations.size();
  return fastest;
}

ProfileOps::Fastest ProfileOps::fastest_of_asynchronous(Op& op, const std::vector<ProfileLine>& devices) {
  const auto dones = dones_.find(op.hlo.name);
  if (dones == dones_.end() || !observed_op_of(op.hlo, op.category)) return {};
  Lines waited;
  std::size_t taken = 0;
  for (const ProfileLine device : devices) {
    const auto begins = op.lines.find(device), ends = dones->second.find(device);
    if (begins == op.lines.end() || ends == dones->second.end()) continue;
    std::ranges::sort(begins->second, {}, &Occurrence::begin_ps);
    std::ranges::sort(ends->second, {}, &Occurrence::begin_ps);
    for (std::size_t i = 0; i < std::min(begins->second.size(), ends->second.size()); ++i) {
      const Occurrence &begin = begins->second[i], &end = ends->second[i];
      const std::int64_t whole = end.begin_ps + end.duration_ps - begin.begin_ps;
      if (whole <= 0 || end.duration_ps < whole / 10) continue;
      waited[device].push_back({begin.begin_ps, whole});
      taken += 2;
    }
  }
  asynchronous_ -= std::min(asynchronous_, taken);
  return fastest_of(waited, devices);
}

Expected<Imported> ProfileOps::finish(const ReadProfile& profile, const std::string& file, const ImportOptions& options) {
  Imported imported;
  std::vector<ProfileLine> devices;
  for (const ReadProfile::Device& device : profile.devices)
    for (const auto& [name, line] : device.lines) devices.push_back(line);
  std::map<std::string, std::size_t> skipped;  // operations by reason
  std::size_t uneven = 0;
  for (Op& op : ops_) {
    auto [fastest, differs] = op.asynchronous ? fastest_of_asynchronous(op, devices) : fastest_of(op.lines, devices);
    if (fastest.empty()) continue;
    uneven += differs ? 1 : 0;
    const Seconds middle{1e-12 * median({fastest.begin(), fastest.end()})};
    auto row = observation_of(op.hlo, {op.category, op.flops, middle}, options);
    if (!row) {
      ++skipped[row.error().message];
      continue;
    }
    row->source = op.hlo.name + ", " + counted(fastest.size(), "occurrence");
    if (op.asynchronous) row->schedule = ObservedSchedule::overlapped;
    row->where = {file, 0, 0};
    imported.observations.push_back(*std::move(row));
  }
  if (imported.observations.empty() && skipped.empty())
    return Diagnostic{{file},
                      "no collective and no matmul on the lines of operations of " + counted(profile.devices.size(), "TPU") +
                          (profile.notes.empty() ? "" : "; " + profile.notes.front())};
  imported.notes.push_back("durations are the minimum over " + counted(profile.devices.size(), "device") +
                           " of each occurrence, and of those the median: a collective contains waiting for the slowest device");
  for (const auto& [why, count] : skipped) imported.notes.push_back(counted(count, "operation") + " skipped: " + why);
  if (uneven > 0) imported.notes.push_back(counted(uneven, "operation") + " not as often on every device; occurrences are matched from the first");
  if (asynchronous_ > 0)
    imported.notes.push_back(counted(asynchronous_, "event") +
                             " skipped: starts and ends of asynchronous collectives that the core did not wait for, or that have no counterpart");
  if (textless_ > 0) imported.notes.push_back(counted(textless_, "collective event") + " skipped: without HLO text, which has the shapes");
  if (std::ranges::any_of(imported.observations, [](const Observation& row) { return row.op == ObservedOp::matmul; }))
    imported.notes.emplace_back("matmuls are fusions: m and n are a split of the result, k follows from the FLOPs");
  imported.notes.insert(imported.notes.end(), profile.notes.begin(), profile.notes.end());
  return imported;
}

}  // namespace podsim
