#include "validation/calibration/importers/xplane.hpp"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "sim/base/text.hpp"
#include "validation/calibration/importers/profile_ops.hpp"
#include "validation/calibration/importers/wire_reader.hpp"
#include "validation/calibration/importers/xplane.pb.h"
#include "validation/calibration/importers/xplane_writer.hpp"

namespace podsim {

namespace {

// Fields of XSpace and XPlane, which are read one by one.
constexpr std::uint32_t space_planes = 1, plane_name = 2, plane_lines = 3, plane_events = 4, plane_stats = 5, plane_own_stats = 6;
constexpr int longest_field = 1 << 29;  // one line of operations

struct PlaneEvent {
  std::int64_t metadata = 0, begin_ps = 0, duration_ps = 0;
  std::uint32_t line = 0;  // position in Plane::lines
};

/// What an event has besides: a number, or a text.
struct EventStat {
  std::size_t event = 0;
  std::int64_t stat = 0;
  double value = 0;
  std::int64_t text = -1;      // of `refers`: a stat whose name it is; else a position in Plane::texts; -1: a number
  bool refers = false;
};

/// What is kept of a plane until its end, as the metadata come after the lines.
struct Plane {
  std::string name;
  std::vector<std::string> lines;         // names, each once
  std::optional<std::int64_t> origin_ns;  // the time of the first line
  std::vector<PlaneEvent> events;
  std::unordered_map<std::int64_t, proto::XEventMetadata> events_of;
  std::unordered_map<std::int64_t, std::string> stats;  // names
  std::vector<EventStat> event_stats;                   // one of which may be the device's own duration
  std::vector<std::string> texts;                       // of events, each once
  std::unordered_map<std::string, std::int64_t> places;  // in `texts`
  std::vector<proto::XStat> own;                        // of the device itself
};

bool is_device(std::string_view plane) { return tpu_named(plane) || gpu_named(plane); }

double number_of(const proto::XStat& stat) {
  switch (stat.value_case()) {
    case proto::XStat::kDoubleValue: return stat.double_value();
    case proto::XStat::kUint64Value: return static_cast<double>(stat.uint64_value());
    case proto::XStat::kInt64Value: return static_cast<double>(stat.int64_value());
    default: return 0;
  }
}

class PlaneReader {
 public:
  PlaneReader(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink) : wire_{std::move(bytes), file}, file_{file}, sink_{sink} {}

  Expected<ReadProfile> read() {
    while (true) {
      const auto field = wire_.next();
      if (!field) return field.error();
      if (!*field) break;
      any_ = true;
      const bool plane = (*field)->number == space_planes;
      if (plane && (*field)->kind != WireReader::Kind::bytes) return wire_.error((*field)->begin, "a plane must be a message");
      if (Status read = plane ? read_plane(**field) : wire_.skip(**field); !read) return read.error();
    }
    if (!any_) return Diagnostic{{file_}, "the file is empty"};
    if (aggregated_ > 0) profile_.notes.push_back(counted(aggregated_, "event") + " skipped: aggregates, which have no place in time");
    return std::move(profile_);
  }

 private:
  Status read_plane(const WireReader::Field& plane);
  Status read_plane_field(const WireReader::Field& field, Plane& plane);
  Status read_line(const WireReader::Field& field, Plane& plane);
  static void add_stat(const proto::XStat& stat, Plane& plane);
  void use(const Plane& plane);

  /// The message in a field.
  template <class Message>
  Status take(const WireReader::Field& field, Message& message) {
    const auto bytes = wire_.take(field, longest_field);
    if (!bytes) return bytes.error();
    if (!message.ParseFromString(*bytes)) return wire_.error(field.begin, "this field is damaged");
    return success();
  }

  WireReader wire_;
  const std::string& file_;
  ProfileSink& sink_;
  ReadProfile profile_;
  ProfileLine lines_ = 0;  // so far
  std::size_t aggregated_ = 0;
  bool any_ = false;
};

Status PlaneReader::read_plane(const WireReader::Field& field) {
  wire_.enter(field);
  Plane plane;
  while (true) {
    const auto part = wire_.next();
    if (!part) return part.error();
    if (!*part) break;
    // Other planes are passed over as soon as their name is known.
    const bool other = !plane.name.empty() && !is_device(plane.name);
    if (Status read = other ? wire_.skip(**part) : read_plane_field(**part, plane); !read) return read;
  }
  wire_.leave();
  // Of GPUs the lines that are derived from their streams are read, where they are there.
  if (tpu_named(plane.name) || (gpu_named(plane.name) && !plane.lines.empty())) use(plane);
  return success();
}

Status PlaneReader::read_plane_field(const WireReader::Field& field, Plane& plane) {
  if (field.number < plane_name || field.number > plane_own_stats) return wire_.skip(field);
  if (field.kind != WireReader::Kind::bytes) return wire_.error(field.begin, "this field of a plane must not be a number");
  switch (field.number) {
    case plane_name: {
      auto name = wire_.take(field, 1 << 16);
      if (!name) return name.error();
      plane.name = *std::move(name);
      return success();
    }
    case plane_lines: return read_line(field, plane);
    case plane_events: {
      proto::XEventMetadataEntry entry;
      if (Status taken = take(field, entry); !taken) return taken;
      plane.events_of[entry.key()] = std::move(*entry.mutable_value());
      return success();
    }
    case plane_own_stats: {
      proto::XStat stat;
      if (Status taken = take(field, stat); !taken) return taken;
      plane.own.push_back(std::move(stat));
      return success();
    }
    default: {
      proto::XStatMetadataEntry entry;
      if (Status taken = take(field, entry); !taken) return taken;
      plane.stats[entry.key()] = entry.value().name();
      return success();
    }
  }
}

Status PlaneReader::read_line(const WireReader::Field& field, Plane& plane) {
  google::protobuf::Arena arena;
  auto* line = google::protobuf::Arena::CreateMessage<proto::XLine>(&arena);
  if (Status taken = take(field, *line); !taken) return taken;
  if (!sink_.takes(line->name())) return success();
  if (!plane.origin_ns) plane.origin_ns = line->timestamp_ns();
  const double shift_ps = 1e3 * (static_cast<double>(line->timestamp_ns()) - static_cast<double>(*plane.origin_ns));
  constexpr double most = 1e18;  // sums of a few fit 64 bits
  const auto known = std::ranges::find(plane.lines, line->name());  // long lines come in pieces
  const auto number = static_cast<std::uint32_t>(known - plane.lines.begin());
  if (known == plane.lines.end()) plane.lines.push_back(line->name());
  for (const proto::XEvent& event : line->events()) {
    if (event.num_occurrences() != 0) {
      ++aggregated_;
      continue;
    }
    const double begin_ps = static_cast<double>(event.offset_ps()), duration_ps = static_cast<double>(event.duration_ps());
    if (!(std::abs(shift_ps) < most && std::abs(begin_ps) < most && std::abs(duration_ps) < most)) continue;
    for (const proto::XStat& stat : event.stats()) add_stat(stat, plane);
    plane.events.push_back({event.metadata_id(), event.offset_ps() + std::llround(shift_ps), event.duration_ps(), number});
  }
  return success();
}

void PlaneReader::add_stat(const proto::XStat& stat, Plane& plane) {
  EventStat kept{plane.events.size(), stat.metadata_id()};
  if (stat.value_case() == proto::XStat::kRefValue) {
    kept.text = static_cast<std::int64_t>(stat.ref_value()), kept.refers = true;
  } else if (stat.value_case() == proto::XStat::kStrValue) {
    const auto [place, is_new] = plane.places.try_emplace(stat.str_value(), static_cast<std::int64_t>(plane.texts.size()));
    if (is_new) plane.texts.push_back(stat.str_value());
    kept.text = place->second;
  } else if (kept.value = number_of(stat); !(kept.value >= 0)) {
    return;
  }
  plane.event_stats.push_back(kept);
}

void PlaneReader::use(const Plane& plane) {
  const auto name_of_stat = [&plane](std::int64_t id) {
    const auto found = plane.stats.find(id);
    return found == plane.stats.end() ? std::string_view{} : std::string_view{found->second};
  };
  std::vector<std::int64_t> durations;
  for (const PlaneEvent& event : plane.events) durations.push_back(event.duration_ps);
  std::unordered_map<std::size_t, std::int64_t> overlapped;  // by event
  struct Kernel {
    std::string_view operation, provenance;
    std::int64_t node = -1;
  };
  std::vector<Kernel> kernels(gpu_named(plane.name) ? plane.events.size() : 0);
  for (const auto& [event, stat, value, text, refers] : plane.event_stats) {
    if (!(value < 1e18)) continue;
    const std::string_view name = name_of_stat(stat);
    if (text >= 0) {
      if (kernels.empty()) continue;
      const std::string_view word = refers ? name_of_stat(text) : std::string_view{plane.texts[static_cast<std::size_t>(text)]};
      if (name == "hlo_op") kernels[event].operation = word;
      if (name == "tf_op") kernels[event].provenance = word;
      continue;
    }
    if (name == "cuda_graph_node_id" && !kernels.empty()) kernels[event].node = node_of_graph(value);
    if (name == "device_duration_ps" && value > 0) durations[event] = std::llround(value);
    if (name == overlapped_stat) overlapped[event] = std::llround(value);
  }

  struct Known {
    Flops flops;
    std::string_view category, provenance;
  };
  const auto text_of = [&name_of_stat](const proto::XStat& stat) {
    return stat.value_case() == proto::XStat::kRefValue ? name_of_stat(static_cast<std::int64_t>(stat.ref_value())) : std::string_view{stat.str_value()};
  };
  std::unordered_map<std::int64_t, Known> known;
  for (const auto& [id, metadata] : plane.events_of) {
    Known& op = known[id];
    for (const proto::XStat& stat : metadata.stats()) {
      const std::string_view name = name_of_stat(stat.metadata_id());
      if (name == "flops" || (name == "model_flops" && op.flops.count() == 0)) op.flops = Flops{number_of(stat)};
      if (name == "hlo_category") op.category = text_of(stat);
      if (name == "tf_op") op.provenance = text_of(stat);
    }
  }
  ReadProfile::Device device{plane.name, {}};
  for (const proto::XStat& stat : plane.own) {
    const std::string_view name = name_of_stat(stat.metadata_id());
    device.busiest |= name == busiest_stat && number_of(stat) == 1;
    if (name == "gpu_device_name" || name == "device_type_string") add_machine(profile_, std::string{text_of(stat)});
  }
  std::vector<ProfileLine> lines;
  for (const std::string& name : plane.lines) {
    lines.push_back(lines_++);
    device.lines.emplace(name, lines.back());
  }
  profile_.devices.push_back(std::move(device));
  for (std::size_t e = 0; e < plane.events.size(); ++e) {
    const PlaneEvent& event = plane.events[e];
    const auto metadata = plane.events_of.find(event.metadata);
    if (metadata == plane.events_of.end()) continue;
    const Known& op = known.at(event.metadata);
    const std::string& text = metadata->second.name();
    const std::string& name = metadata->second.display_name().empty() ? text : metadata->second.display_name();
    const auto beside = overlapped.find(e);
    ProfileEvent told{name, text, op.category, op.flops, event.begin_ps, durations[e], event.duration_ps,
                      beside == overlapped.end() ? std::nullopt : std::optional{beside->second}, op.provenance};
    if (is_stream(plane.lines[event.line])) {
      told.kernel = text, told.node = kernels[e].node, told.provenance = provenance_of_kernel(kernels[e].provenance);
      tell_operation(told, kernels[e].operation);
    }
    sink_.add(lines[event.line], told);
  }
}

}  // namespace

Expected<ReadProfile> read_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink) {
  return PlaneReader{std::move(bytes), file, sink}.read();
}

Expected<Imported> import_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options) {
  ProfileOps ops;
  const auto profile = read_xplane(std::move(bytes), file, ops);
  if (!profile) return profile.error();
  return ops.finish(*profile, file, options);
}

}  // namespace podsim
