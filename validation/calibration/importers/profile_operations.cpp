#include "validation/calibration/importers/profile_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "sim/base/text.hpp"
#include "validation/calibration/importers/hlo_stats.hpp"
#include "validation/calibration/importers/operation_sums.hpp"
#include "validation/calibration/importers/step_category.hpp"

namespace podsim {

namespace {

constexpr std::size_t longest_table = std::size_t{1} << 28;
constexpr int most_occurrences = 1 << 24;

double seconds_of(double picoseconds) { return picoseconds * 1e-12; }

Diagnostic no_operations(const ReadProfile& profile, const std::string& file) {
  return {{file},
          "no operation on a line " + quoted(operations_line) + " of a TPU and no kernel on a stream of a GPU; devices with such lines: " + std::to_string(profile.devices.size()) +
              (profile.notes.empty() ? "" : "; " + profile.notes.front())};
}

}  // namespace

void OperationTimes::add(ProfileLine line, const ProfileEvent& event) {
  if (event.duration_ps < 0) return;
  if (!event.kernel.empty()) return add_kernel(line, event);
  auto known = by_text_.find(std::string{event.text});
  if (known == by_text_.end()) {
    const auto hlo = parse_hlo_op(event.text);  // once per operation: texts are long
    const std::string_view key = hlo ? event.text : event.name;
    known = by_text_.try_emplace(std::string{key}, static_cast<std::uint32_t>(ops_.size())).first;
    if (known->second == ops_.size())
      ops_.push_back({hlo && event.name == event.text ? hlo->name : std::string{event.name}, hlo ? std::string{event.text} : std::string{},
                      std::string{event.category}, std::string{event.provenance}, event.flops, {}, known->second, true});
  }
  lines_[line].push_back({event.begin_ps, event.duration_ps, std::max<std::int64_t>(event.span_ps, 0), known->second, event.overlapped_ps.value_or(-1)});
}

const std::vector<OperationTimes::Event>* OperationTimes::events_on(const ReadProfile::Device& device, std::string_view name) const {
  const auto line = device.lines.find(std::string{name});
  const auto events = line == device.lines.end() ? lines_.end() : lines_.find(line->second);
  return events == lines_.end() ? nullptr : &events->second;
}

/// Of each done or update its start on the same device; of other operations themselves. Other devices may run other programs, with the same names.
std::vector<std::uint32_t> OperationTimes::starts_on(const std::vector<Event>& events) const {
  std::vector<std::uint32_t> starts;
  std::vector<bool> occurs(ops_.size(), false);
  for (const Event& event : events) occurs[event.op] = true;
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t op = 0; op < ops_.size(); ++op)
    if (occurs[op]) by_name.try_emplace(ops_[op].name, op);
  for (std::uint32_t op = 0; op < ops_.size(); ++op) {
    starts.push_back(op);
    if (!occurs[op]) continue;
    if (!is_done(ops_[op].name) && !is_update(ops_[op].name)) continue;
    if (const auto start = by_name.find(start_of_done(ops_[op].name, ops_[op].text)); start != by_name.end()) starts.back() = start->second;
  }
  return starts;
}

/// Sorts events by time, those that contain others first, and subtracts from each those directly in it.
std::vector<double> OperationTimes::sort_and_take_self(std::vector<Event>& events) {
  std::ranges::sort(events, [](const Event& a, const Event& b) {
    return std::pair{a.begin_ps, -a.span_ps} < std::pair{b.begin_ps, -b.span_ps} ||
           (std::pair{a.begin_ps, -a.span_ps} == std::pair{b.begin_ps, -b.span_ps} && a.op < b.op);
  });
  std::vector<double> self;
  std::vector<std::size_t> open;
  const auto end_of = [&events](std::size_t e) { return events[e].begin_ps + events[e].span_ps; };
  for (std::size_t e = 0; e < events.size(); ++e) {
    // An event that goes on beyond another one is not in it, even if clocks make it seem to begin there.
    while (!open.empty() && (end_of(open.back()) <= events[e].begin_ps || end_of(open.back()) < end_of(e))) open.pop_back();
    const auto duration = static_cast<double>(events[e].duration_ps);
    if (!open.empty()) self[open.back()] -= duration;
    self.push_back(duration);
    open.push_back(e);
  }
  for (double& each : self) each = std::max(each, 0.0);
  return self;
}

void OperationTimes::add_device(std::vector<Event>& events, const std::vector<Event>* steps, Sums& sums) const {
  const std::vector<double> self = sort_and_take_self(events);
  sums.starts = starts_on(events);
  const auto end_of = [&events](std::size_t e) { return events[e].begin_ps + events[e].span_ps; };
  std::int64_t last = 0;
  for (std::size_t e = 0; e < events.size(); ++e) last = std::max(last, end_of(e));
  double busy = 0;
  std::map<std::uint32_t, std::vector<std::size_t>> starts, dones;  // events by operation
  std::map<std::uint32_t, double> between;                          // time of updates, which is not beside
  std::vector<bool> has_end(ops_.size(), false);
  for (std::uint32_t op = 0; op < ops_.size(); ++op)
    if (sums.starts[op] != op) has_end[sums.starts[op]] = true;
  std::map<std::uint32_t, double> told;  // by operation
  for (std::size_t e = 0; e < events.size(); ++e) {
    busy += self[e];
    const std::uint32_t op = events[e].op, whole = sums.starts[op];
    if (events[e].overlapped_ps >= 0) told[whole] += static_cast<double>(events[e].overlapped_ps);
    sums.self[whole] += self[e];
    if (op == whole) sums.occurrences[op] += 1;
    if (op == whole && has_end[op])
      starts[op].push_back(e);
    else if (op == whole)
      continue;
    else if (is_done(ops_[op].name))
      dones[whole].push_back(e);
    else
      between[whole] += self[e];
  }
  for (const auto& [op, overlapped] : told) sums.beside[op] += overlapped;
  for (const auto& [op, ends] : dones) {
    if (told.contains(op)) continue;
    const std::vector<std::size_t>& begins = starts[op];
    double beside = 0;
    for (std::size_t i = 0; i < std::min(begins.size(), ends.size()); ++i) {
      const auto whole = static_cast<double>(end_of(ends[i]) - events[begins[i]].begin_ps);
      beside += std::max(whole - self[begins[i]] - self[ends[i]], 0.0);
    }
    const auto updates = between.find(op);
    sums.beside[op] += updates == between.end() ? beside : std::max(beside - updates->second, 0.0);
  }
  std::int64_t first = events.front().begin_ps;
  if (steps != nullptr)
    for (const Event& step : *steps) first = std::min(first, step.begin_ps), last = std::max(last, step.begin_ps + step.span_ps);
  sums.time += std::max(busy, static_cast<double>(last - first));
  ++sums.devices;
}

/// What the profile says of its steps.
CountedSteps OperationTimes::steps_in(const ReadProfile& profile, const ProfileOptions& options, const ProfiledOperations& found) const {
  for (const ReadProfile::Device& device : profile.devices)
    if (const auto* steps = events_on(device, steps_line))
      return {static_cast<int>(steps->size()), ": the events on the line Steps of " + device.name};
  for (const ReadProfile::Device& device : profile.devices)
    if (const auto* modules = events_on(device, modules_line)) {
      std::map<std::uint32_t, std::pair<double, int>> sums;  // time, count
      for (const Event& event : *modules) sums[event.op].first += static_cast<double>(event.duration_ps), ++sums[event.op].second;
      const auto longest = std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second.first; });
      return {longest->second.second, ": how often the module " + ops_[longest->first].name + " ran on " + device.name};
    }
  if (profile.steps) return *profile.steps;
  const bool of_kernels = std::ranges::any_of(profile.devices, [this](const ReadProfile::Device& device) { return !kernels_on(device).empty(); });
  CountedSteps by_occurrences = of_kernels ? steps_by_divisor(found.operations, options.layers) : steps_by_occurrences(found.operations, options.layers);
  by_occurrences.why += "; `steps` may say otherwise";
  return by_occurrences;
}

Status OperationTimes::count_steps(const ReadProfile& profile, const std::string& file, const ProfileOptions& options, ProfiledOperations& found) const {
  const CountedSteps own = steps_in(profile, options, found);
  const std::string has = counted(static_cast<std::size_t>(own.steps), "step") + own.why;
  if (options.steps == 0) {
    found.steps = own.steps;
    found.notes.push_back(has);
    return success();
  }
  const auto most = std::ranges::max_element(found.operations, {}, &ProfiledOperation::occurrences);
  if (options.steps > most->occurrences + 0.5)
    return Diagnostic{{file}, fmt::format("expected `steps` up to {}, as often as {} occurs, which no operation exceeds, found {}. The profile has {}", std::llround(most->occurrences),
                                          most->name, options.steps, has)};
  found.steps = options.steps;
  found.notes.push_back(counted(static_cast<std::size_t>(options.steps), "step") + ", as told");
  if (options.steps != own.steps) found.warnings.push_back(fmt::format("`steps` {} divides the profile by {}, but it has {}", options.steps, options.steps, has));
  return success();
}

/// What a fusion does is guessed where the profile says nothing but its name.
void OperationTimes::note_bare_fusions(const Sums& sums, ProfiledOperations& found) const {
  std::size_t count = 0;
  std::string first;
  for (std::uint32_t op = 0; op < ops_.size(); ++op) {
    const Op& from = ops_[op];
    if (!(sums.self[op] > 0) || from.is_kernel || !from.text.empty() || !from.category.empty() || !from.name.starts_with("fusion")) continue;
    if (count++ == 0) first = from.name;
  }
  if (count > 0)
    found.notes.push_back(counted(count, "fusion") + " without HLO text or category, such as " + first +
                          ": counted as elementwise, which may be wrong");
}

/// The operations that occur; returns the position of each one's in `found`.
std::vector<std::uint32_t> OperationTimes::add_operations(const Sums& sums, const ProfileOptions& options, ProfiledOperations& found) const {
  const auto devices = static_cast<double>(sums.devices);
  std::vector<std::uint32_t> positions(ops_.size(), 0);
  for (std::uint32_t op = 0; op < ops_.size(); ++op) {
    if (!(sums.occurrences[op] > 0 || sums.self[op] > 0)) continue;
    const Op& from = ops_[op];
    HloOp hlo = parse_hlo_op(from.text).value_or(HloOp{});
    hlo.name = from.name;
    if (hlo.opcode.empty()) hlo.opcode = from.name.substr(0, from.name.find('.'));
    ProfiledOperation operation = described_operation(std::move(hlo), from.text, from.category, from.flops, options.cores);
    operation.provenance = from.provenance;
    operation.occurrences = sums.occurrences[op] / devices;
    operation.self = Seconds{seconds_of(sums.self[op]) / devices};
    operation.beside = Seconds{seconds_of(sums.beside[op]) / devices};
    if (!from.kernel.empty()) describe_kernels(sums, op, operation);
    positions[op] = static_cast<std::uint32_t>(found.operations.size());
    found.operations.push_back(std::move(operation));
  }
  return positions;
}

Expected<ProfiledOperations> OperationTimes::finish(const ReadProfile& profile, const std::string& file, const ProfileOptions& options) {
  Sums sums{ops_.size()};
  const auto busiest = std::ranges::find_if(profile.devices, &ReadProfile::Device::busiest);
  for (const ReadProfile::Device& device : profile.devices) {
    if (busiest != profile.devices.end() && &device != &*busiest) continue;
    if (std::vector<Event> kernels = kernels_on(device); !kernels.empty()) {
      add_kernels(kernels, sums);
      continue;
    }
    const auto line = device.lines.find(std::string{operations_line});
    if (line == device.lines.end()) continue;
    if (const auto events = lines_.find(line->second); events != lines_.end()) add_device(events->second, events_on(device, steps_line), sums);
  }
  if (sums.devices == 0) return no_operations(profile, file);
  const auto devices = static_cast<double>(sums.devices);
  ProfiledOperations found;
  found.time = Seconds{seconds_of(sums.time) / devices};
  add_operations(sums, options, found);
  note_bare_fusions(sums, found);
  note_kernels(sums, found);
  found.machines = profile.machines;
  found.has_operators = profile.has_operators;
  if (Status ok = count_steps(profile, file, options, found); !ok) return ok.error();
  found.notes.push_back(busiest != profile.devices.end()
                            ? "measured times are those of " + busiest->name + ", which the profile, podsim's own, names as the busiest"
                            : "measured times are means over " + counted(sums.devices, "device") + "; a collective contains waiting for the slowest");
  found.notes.insert(found.notes.end(), profile.notes.begin(), profile.notes.end());
  return found;
}

// ---- One step ---------------------------------------------------------------------------------------------------------------------------

/// The steps of a device by time; none: nothing tells them apart.
std::vector<OperationTimes::Event> OperationTimes::steps_on(const ReadProfile::Device& device, const ProfileOptions& options) const {
  std::vector<Event> steps;
  if (const auto* named = events_on(device, steps_line)) {
    steps = *named;
  } else if (const auto* modules = events_on(device, modules_line)) {
    std::map<std::uint32_t, double> sums;
    for (const Event& event : *modules) sums[event.op] += static_cast<double>(event.duration_ps);
    const auto longest = std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second; });
    std::ranges::copy_if(*modules, std::back_inserter(steps), [&](const Event& event) { return event.op == longest->first; });
  } else {
    return steps_of_kernels(device, options);
  }
  std::ranges::sort(steps, {}, [](const Event& step) { return std::pair{step.begin_ps, step.span_ps}; });
  return steps;
}

/// `events`: of the step; `window`: the step, null if nothing tells it apart.
ProfiledDeviceStep OperationTimes::step_of(const ReadProfile::Device& device, std::vector<Event> events, const Event* window,
                                           const ProfileOptions& options) const {
  Sums sums{ops_.size()};
  std::vector<Event> steps;
  if (window != nullptr && events_on(device, steps_line) != nullptr) steps.push_back(*window);
  const bool of_kernels = !events.empty() && !ops_[events.front().op].kernel.empty();
  if (of_kernels)
    add_kernels(events, sums);
  else
    add_device(events, steps.empty() ? nullptr : &steps, sums);
  ProfiledDeviceStep result{device.name, device.busiest, {}, {}};
  result.step.time = Seconds{seconds_of(sums.time)};
  const std::vector<std::uint32_t> positions = add_operations(sums, options, result.step);
  const std::vector<double> self = of_kernels ? times_of_kernels(events) : sort_and_take_self(events);
  const std::int64_t origin = window == nullptr ? events.front().begin_ps : window->begin_ps;
  std::vector<std::uint32_t> begun(ops_.size(), 0), done(ops_.size(), 0);
  for (std::size_t e = 0; e < events.size(); ++e) {
    const std::uint32_t op = events[e].op, whole = sums.starts[op];
    if (!(sums.occurrences[whole] > 0 || sums.self[whole] > 0)) continue;  // an end without time of what began before
    const std::uint32_t occurrence = op == whole ? begun[op]++ : is_done(ops_[op].name) ? done[whole]++ : done[whole];
    const std::int64_t begin = events[e].begin_ps - origin;
    result.events.push_back({begin, begin + events[e].span_ps, std::llround(self[e]), op, positions[whole], occurrence});
  }
  return result;
}

Expected<ProfiledStep> OperationTimes::step(const ReadProfile& profile, const std::string& file, const ProfileOptions& options, const StepChoice& choice) {
  const std::optional<int>& number = choice.number;
  ProfiledStep result;
  std::vector<const ReadProfile::Device*> devices;
  for (const ReadProfile::Device& device : profile.devices)
    if (events_on(device, operations_line) != nullptr || !kernels_on(device).empty()) devices.push_back(&device);
  if (devices.empty()) return no_operations(profile, file);
  const auto busiest = std::ranges::find_if(devices, [](const auto* device) { return device->busiest; });
  const ReadProfile::Device& told = busiest == devices.end() ? *devices.front() : **busiest;
  const std::vector<Event> steps = steps_on(told, options);
  result.steps = std::max(1, static_cast<int>(steps.size()));
  if (number && (*number < 1 || *number > result.steps))
    return Diagnostic{{file}, fmt::format("expected a step from 1 to {}, found {}", result.steps, *number)};
  if (steps.empty()) result.notes.emplace_back("the profile has neither Steps nor XLA Modules: all of it is taken as one step");
  if (number) {
    result.number = *number;
  } else if (!steps.empty()) {
    std::vector<int> by_time;
    for (int s = 0; s < result.steps; ++s) by_time.push_back(s);
    std::ranges::stable_sort(by_time, {}, [&](int s) { return steps[static_cast<std::size_t>(s)].span_ps; });
    result.number = by_time[(by_time.size() - 1) / 2] + 1;
  }
  for (const Op& op : ops_) result.names.push_back(op.name);
  std::size_t without = 0, left_out = 0;
  for (const ReadProfile::Device* device : devices) {
    if (choice.takes && !choice.takes(device->name)) {
      ++left_out;
      continue;
    }
    std::vector<Event> all = kernels_on(*device);
    if (all.empty()) all = *events_on(*device, operations_line);
    const std::vector<Event> own = steps_on(*device, options);
    std::vector<Event> within;
    const auto chosen = static_cast<std::size_t>(result.number) - 1;
    if (steps.empty()) {
      within = all;
    } else if (chosen < own.size()) {
      const std::int64_t begin = own[chosen].begin_ps, end = begin + own[chosen].span_ps;
      const bool goes_on = chosen + 1 < own.size() && own[chosen + 1].begin_ps <= end;  // what takes no time and stands at the end belongs to the next step
      std::ranges::copy_if(all, std::back_inserter(within), [&](const Event& event) {
        return event.begin_ps >= begin && (event.begin_ps < end || (event.begin_ps == end && !goes_on));
      });
    }
    if (within.empty()) {
      ++without;
      continue;
    }
    result.devices.push_back(step_of(*device, std::move(within), steps.empty() ? nullptr : &own[chosen], options));
  }
  if (left_out == devices.size())
    return Diagnostic{{file},
                      fmt::format("expected one of the devices that are asked for, found {}{}", devices.front()->name,
                                  left_out > 1 ? fmt::format(" and {} more", left_out - 1) : "")};
  if (result.devices.empty()) return Diagnostic{{file}, fmt::format("no operation in step {} of {}", result.number, result.steps)};
  if (without > 0) result.notes.push_back(fmt::format("{} without an operation in step {}", counted(without, "device"), result.number));
  result.notes.insert(result.notes.end(), profile.notes.begin(), profile.notes.end());
  return result;
}

ProfiledOperation described_operation(HloOp op, std::string_view text, std::string_view hlo_category, Flops flops, int cores) {
  ProfiledOperation operation;
  operation.name = without_end(op.name);
  operation.category = step_category(op, text, hlo_category);
  if (flops.count() > 0 && std::isfinite(flops.count())) operation.flops = static_cast<double>(cores) * flops;
  if (operation.category == "matmul") return operation;
  if (const auto row = observation_of(as_synchronous(std::move(op)), {hlo_category, {}, Seconds{1}}, {}); row) {
    operation.bytes = row->bytes;
    operation.group = row->devices;
  }
  return operation;
}

CountedSteps steps_by_occurrences(const std::vector<ProfiledOperation>& operations, int layers) {
  std::map<std::int64_t, std::size_t> counts;
  for (const ProfiledOperation& operation : operations)
    if (operation.occurrences >= 1 && operation.occurrences <= most_occurrences) ++counts[std::llround(operation.occurrences)];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  const int count = most == counts.end() ? 1 : static_cast<int>(most->first);
  if (layers > 1 && count % layers == 0) return {count / layers, fmt::format(": most operations occur {} times, once per layer", count)};
  return {count, ": the number of occurrences that most operations have"};
}

namespace {

constexpr std::string_view table_form = "hlo-stats";

Expected<ProfiledOperations> operations_of_table(std::unique_ptr<ByteSource> bytes, const std::string& file, const ProfileOptions& options) {
  const auto text = read_all(*bytes, longest_table, file);
  if (!text) return text.error();
  return operations_of_hlo_stats(*text, file, options);
}

Diagnostic table_without_timeline(const std::string& file) {
  return {{file}, "a table of HLO statistics has no timeline; *.xplane.pb, *.trace.json and *.trace.json.gz have one"};
}

}  // namespace

Expected<ProfiledOperations> profile_operations(const ProfileFiles& files, const ProfileOptions& options) {
  if (files.form == table_form) {
    auto source = source_of_file(files.name);
    if (!source) return source.error();
    return operations_of_table(*std::move(source), files.name, options);
  }
  OperationTimes times;
  const auto profile = read_profile(files, times);
  if (!profile) return profile.error();
  return times.finish(*profile, files.name, options);
}

Expected<ProfiledOperations> profile_operations_in(std::string_view format, std::string_view bytes, const std::string& file,
                                                   const ProfileOptions& options) {
  if (format == table_form) return operations_of_table(source_of(bytes, file), file, options);
  OperationTimes times;
  const auto profile = read_profile(format, source_of(bytes, file), file, times);
  if (!profile) return profile.error();
  return times.finish(*profile, file, options);
}

Expected<ProfiledStep> profile_step(const ProfileFiles& files, const ProfileOptions& options, const StepChoice& choice) {
  if (files.form == table_form) return table_without_timeline(files.name);
  OperationTimes times;
  const auto profile = read_profile(files, times);
  if (!profile) return profile.error();
  return times.step(*profile, files.name, options, choice);
}

Expected<ProfiledStep> profile_step_in(std::string_view format, std::string_view bytes, const std::string& file, const ProfileOptions& options,
                                       const StepChoice& choice) {
  if (format == table_form) return table_without_timeline(file);
  OperationTimes times;
  const auto profile = read_profile(format, source_of(bytes, file), file, times);
  if (!profile) return profile.error();
  return times.step(*profile, file, options, choice);
}

}  // namespace podsim
