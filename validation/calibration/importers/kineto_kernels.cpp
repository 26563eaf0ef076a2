#include "validation/calibration/importers/kineto_kernels.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

enum class KinetoKind { kernel, operation, launch, annotation };

struct KinetoWord {
  std::string_view word;
  KinetoKind kind;
};
// `cat` of today's traces, and of those before 2022.
constexpr std::array<KinetoWord, 15> kineto_kinds = {{{"kernel", KinetoKind::kernel},
                                             {"gpu_memcpy", KinetoKind::kernel},
                                             {"gpu_memset", KinetoKind::kernel},
                                             {"Kernel", KinetoKind::kernel},
                                             {"Memcpy", KinetoKind::kernel},
                                             {"Memset", KinetoKind::kernel},
                                             {"cpu_op", KinetoKind::operation},
                                             {"Operator", KinetoKind::operation},
                                             {"cuda_runtime", KinetoKind::launch},
                                             {"cuda_driver", KinetoKind::launch},
                                             {"hip_runtime", KinetoKind::launch},
                                             {"Runtime", KinetoKind::launch},
                                             {"user_annotation", KinetoKind::annotation},
                                             {"gpu_user_annotation", KinetoKind::annotation},
                                             {"python_function", KinetoKind::annotation}}};

constexpr std::string_view step_begins = "ProfilerStep#";
constexpr std::string_view any_collective = "record_param_comms";  // within the operator that names the collective

std::optional<KinetoKind> kineto_kind_of(std::string_view word) {
  const auto found = std::ranges::find(kineto_kinds, word, &KinetoWord::word);
  return found == kineto_kinds.end() ? std::nullopt : std::optional{found->kind};
}

/// Bytes of an element of c10::ScalarType as Kineto names it.
double element_bytes(std::string_view dtype) {
  struct Size {
    std::string_view name;
    double bytes;
  };
  constexpr std::array<Size, 17> sizes = {{{"Float", 4},
                                           {"BFloat16", 2},
                                           {"Half", 2},
                                           {"Double", 8},
                                           {"Long", 8},
                                           {"Int", 4},
                                           {"Short", 2},
                                           {"Byte", 1},
                                           {"Char", 1},
                                           {"Bool", 1},
                                           {"ComplexFloat", 8},
                                           {"ComplexDouble", 16},
                                           {"UInt32", 4},
                                           {"UInt64", 8},
                                           {"Float8_e4m3fn", 1},
                                           {"Float8_e5m2", 1},
                                           {"UInt16", 2}}};
  const auto found = std::ranges::find(sizes, dtype, &Size::name);
  return found == sizes.end() ? 0 : found->bytes;
}

/// deviceProperties[].name of the devices that ran kernels, and where the process stands among others.
void tell_root(std::string_view root, const std::map<std::int64_t, std::size_t>& devices, ReadProfile& profile) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(simdjson::padded_string{root}).get(json) != simdjson::SUCCESS) return;
  simdjson::dom::array properties;
  if (json["deviceProperties"].get(properties) == simdjson::SUCCESS)
    for (const simdjson::dom::element property : properties) {
      std::int64_t id = -1;
      std::string_view name;
      if (property["id"].get(id) == simdjson::SUCCESS && property["name"].get(name) == simdjson::SUCCESS && devices.contains(id)) add_machine(profile, std::string{name});
    }
  std::int64_t rank = -1, ranks = -1;
  const auto distributed = json["distributedInfo"];
  if (distributed["rank"].get(rank) == simdjson::SUCCESS && distributed["world_size"].get(ranks) == simdjson::SUCCESS && ranks > 1)
    profile.notes.push_back(fmt::format("rank {} of {}", rank, ranks));
}

}  // namespace

bool KinetoKernels::takes(std::string_view kind) { return kineto_kind_of(kind).has_value(); }

KinetoKernels::Name KinetoKernels::name_of(std::string_view text) {
  const auto known = known_.find(text);
  if (known != known_.end()) return known->second;
  names_.emplace_back(text);
  return known_.emplace(text, static_cast<Name>(names_.size() - 1)).first->second;
}

void KinetoKernels::add_annotation(const ChromeTraceEvent& event) {
  if (event.kind == "python_function") return;
  if (event.external >= 0 && event.kind == "user_annotation") annotations_.try_emplace(event.external, name_of(event.name));
  if (event.kind == "user_annotation" && event.name.starts_with("nccl:") && event.begin_us && event.duration_us)
    spans_.push_back({event.pid, event.tid, *event.begin_us, *event.begin_us + *event.duration_us, name_of(event.name)});
  if (event.kind == "gpu_user_annotation" || event.name.starts_with("nccl:")) return;  // the CPU's of the same names are counted
  if (event.name.starts_with(step_begins) && event.begin_us && event.duration_us) steps_.push_back({event.pid, event.tid, *event.begin_us, *event.begin_us + *event.duration_us});
  auto& [time, count] = repeated_[std::string{event.name}];
  time += event.duration_us.value_or(0);
  ++count;
}

Status KinetoKernels::add(const ChromeTraceEvent& event, const SourceLocation& where) {
  if (event.phase != "X") return success();
  switch (*kineto_kind_of(event.kind)) {
    case KinetoKind::annotation: add_annotation(event); return success();
    case KinetoKind::operation:
      if (event.name.starts_with(step_begins)) add_annotation(event);  // as they were once told
      if (event.name == any_collective) return success();
      if (event.external >= 0) operators_.try_emplace(event.external, name_of(event.name));
      if (event.begin_us && event.duration_us) spans_.push_back({event.pid, event.tid, *event.begin_us, *event.begin_us + *event.duration_us, name_of(event.name)});
      return success();
    case KinetoKind::launch:
      if (event.begin_us && event.correlation >= 0) launches_.push_back({event.pid, event.tid, *event.begin_us, *event.begin_us, 0, event.correlation});
      return success();
    case KinetoKind::kernel: break;
  }
  const auto missing = [&](std::string_view field) { return Diagnostic{where, fmt::format("expected a number {} of the kernel {}, found none", quoted(field), quoted(event.name))}; };
  if (!event.begin_us) return missing("ts");
  if (!event.duration_us) return missing("dur");
  if (event.name.empty()) return Diagnostic{where, "expected the name of a kernel, found none"};
  if (!(*event.duration_us >= 0)) return Diagnostic{where, fmt::format("expected a duration of 0 or more of the kernel {}, found {} us", quoted(event.name), *event.duration_us)};
  constexpr double most = 1e18;  // both fit 64 bits as picoseconds from the first kernel
  if (!(std::abs(*event.begin_us) < most) || !(*event.duration_us < 1e12)) return Diagnostic{where, fmt::format("expected a time of less than 1e12 us of the kernel {}, found {} us", quoted(event.name), *event.duration_us)};
  Kernel kernel{name_of(event.name), event.device >= 0 ? event.device : std::max<std::int64_t>(event.pid, 0), event.stream >= 0 ? event.stream : std::max<std::int64_t>(event.tid, 0),
                *event.begin_us, *event.duration_us, event.external, event.correlation, 0};
  if (!event.collective.empty()) {
    const double bytes = event.elements_in * element_bytes(event.dtype);
    kernel.collective = static_cast<std::uint32_t>(messages_.size());
    messages_.push_back({name_of("nccl:" + std::string{event.collective}), Bytes{bytes > 0 && bytes < 1e15 ? static_cast<std::int64_t>(bytes) : 0},
                         event.group >= 1 && event.group < 1e9 ? static_cast<int>(event.group) : 0});
  }
  kernels_.push_back(kernel);
  return success();
}

/// By correlation: the innermost operator on the thread of each launch. O(n log n).
std::unordered_map<std::int64_t, KinetoKernels::Name> KinetoKernels::operators_of_launches() const {
  std::vector<Span> all = spans_;
  all.insert(all.end(), launches_.begin(), launches_.end());
  // What contains others comes before them, and an operator before a launch at its beginning.
  std::ranges::stable_sort(all, {}, [](const Span& span) { return std::tuple{span.pid, span.tid, span.begin_us, -span.end_us}; });
  std::unordered_map<std::int64_t, Name> found;
  std::vector<const Span*> open;
  for (const Span& span : all) {
    if (!open.empty() && (open.back()->pid != span.pid || open.back()->tid != span.tid)) open.clear();
    while (!open.empty() && open.back()->end_us < span.begin_us) open.pop_back();
    if (span.correlation < 0)
      open.push_back(&span);
    else if (!open.empty())
      found.try_emplace(span.correlation, open.back()->name);
  }
  return found;
}

/// ProfilerStep#N within which kernels were launched. After the last one PyTorch opens another, which ends with the profile and in which nothing may happen.
std::int64_t KinetoKernels::steps_with_kernels() const {
  std::unordered_set<std::int64_t> of_kernels;
  for (const Kernel& kernel : kernels_) of_kernels.insert(kernel.correlation);
  std::vector<double> begins;
  for (const Span& launch : launches_)
    if (of_kernels.contains(launch.correlation)) begins.push_back(launch.begin_us);
  if (begins.empty())  // a trace without launches
    for (const Kernel& kernel : kernels_) begins.push_back(kernel.begin_us);
  std::ranges::sort(begins);
  return std::ranges::count_if(steps_, [&](const Span& step) {
    const auto first = std::ranges::lower_bound(begins, step.begin_us);
    return first != begins.end() && *first < step.end_us;
  });
}

/// ProfilerStep#N, else the annotation that takes most time: "train_step".
void KinetoKernels::tell_steps(ReadProfile& profile) const {
  const auto longest = std::ranges::max_element(repeated_, {}, [](const auto& entry) { return entry.second.first; });
  const auto steps = steps_with_kernels(), empty = static_cast<std::int64_t>(steps_.size()) - steps;
  if (steps > 0)
    profile.steps = {static_cast<int>(steps), fmt::format(": the annotations ProfilerStep#N{}", empty > 0 ? fmt::format(" but {} in which no kernel was launched", empty) : "")};
  else if (longest != repeated_.end())
    profile.steps = {longest->second.second, ": the annotations " + longest->first};
}

void KinetoKernels::finish(ProfileSink& sink, ProfileLine next, std::string_view root, ReadProfile& profile) const {
  if (kernels_.empty()) return;
  std::map<std::int64_t, std::size_t> devices;
  for (const Kernel& kernel : kernels_) devices.try_emplace(kernel.device, 0);
  for (auto& [number, position] : devices) {
    position = profile.devices.size();
    profile.devices.push_back({fmt::format("/device:GPU:{}", number), {}});
  }
  double origin_us = kernels_.front().begin_us;
  for (const Kernel& kernel : kernels_) origin_us = std::min(origin_us, kernel.begin_us);
  const std::unordered_map<std::int64_t, Name> by_launch = operators_of_launches();
  const auto operator_of = [&](const Kernel& kernel) -> std::string_view {
    if (kernel.collective > 0) return names_[messages_[kernel.collective].operation];
    const bool is_own = kernel.external != kernel.correlation;
    for (const auto& [by, id] : {std::pair{&operators_, is_own ? kernel.external : -1}, {&by_launch, kernel.correlation}, {&operators_, kernel.external}, {&annotations_, kernel.external}})
      if (const auto found = by->find(id); found != by->end()) return names_[found->second];
    return {};
  };
  std::size_t alone = 0, of_another_clock = 0;
  for (const Kernel& kernel : kernels_) {
    ReadProfile::Device& device = profile.devices[devices.at(kernel.device)];
    const std::string stream = fmt::format("{}{}", streams_begin, kernel.stream);
    if (!sink.takes(stream)) continue;
    const auto [line, is_new] = device.lines.try_emplace(stream, next);
    next += is_new ? 1 : 0;
    const std::string_view by = operator_of(kernel);
    alone += by.empty() ? 1 : 0;
    const Message& message = messages_[kernel.collective];
    const double begin_ps = (kernel.begin_us - origin_us) * 1e6;
    if (!(begin_ps < 1e18)) {
      ++of_another_clock;
      continue;
    }
    ProfileEvent event;
    event.begin_ps = std::llround(begin_ps);
    event.duration_ps = event.span_ps = std::llround(kernel.duration_us * 1e6);
    event.kernel = names_[kernel.name], event.provenance = by, event.bytes = message.bytes, event.group = message.group;
    sink.add(line->second, event);
  }
  std::erase_if(profile.devices, [](const ReadProfile::Device& device) { return device.lines.empty(); });
  profile.notes.push_back(fmt::format("{} {}{}", whose_, counted(static_cast<std::int64_t>(kernels_.size()), "kernel"),
                                      alone == 0 ? ", all with the operator that launched them" : fmt::format(", {} without an operator that launched them", alone)));
  if (of_another_clock > 0) profile.notes.push_back(fmt::format("{} left out: later than the first by more than 1e12 us, so of another clock", counted(static_cast<std::int64_t>(of_another_clock), "kernel")));
  profile.has_operators = true;
  tell_root(root, devices, profile);
  tell_steps(profile);
}

}  // namespace podsim
