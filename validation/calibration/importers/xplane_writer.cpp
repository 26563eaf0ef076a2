#include "validation/calibration/importers/xplane_writer.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>

#include "validation/calibration/importers/xplane.pb.h"

namespace podsim {

namespace {

using google::protobuf::io::CodedOutputStream;

// Fields with messages: their tags are one byte, the number and 2 for what has a length.
constexpr std::uint32_t tag_of(int field) { return static_cast<std::uint32_t>(field) << 3U | 2U; }
constexpr std::size_t most_events = std::size_t{1} << 20;  // in one XLine: readers take messages whole

std::uint64_t size_with_length(std::uint64_t size) { return 1 + CodedOutputStream::VarintSize64(size) + size; }

/// Passes the bytes on.
class PassedOn final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit PassedOn(const std::function<void(std::string_view)>& write) : write_{write} {}
  bool Write(const void* buffer, int size) override {
    write_({static_cast<const char*>(buffer), static_cast<std::size_t>(size)});
    return true;
  }

 private:
  const std::function<void(std::string_view)>& write_;
};

void set(proto::XStat& stat, std::int64_t id, const XPlaneNames::Value& value) {
  stat.set_metadata_id(id);
  if (const auto* number = std::get_if<std::int64_t>(&value)) stat.set_int64_value(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) stat.set_uint64_value(*number);
  if (const auto* number = std::get_if<double>(&value)) stat.set_double_value(*number);
  if (const auto* text = std::get_if<std::string>(&value)) stat.set_str_value(*text);
}

void set(proto::XEvent& message, const XPlaneEvent& event) {
  message.Clear();
  message.set_metadata_id(event.metadata);
  message.set_offset_ps(event.begin_ps);
  message.set_duration_ps(event.duration_ps);
  for (const auto& [id, value] : event.stats) {
    proto::XStat& stat = *message.add_stats();
    stat.set_metadata_id(id);
    stat.set_int64_value(value);
  }
}

/// A long line is several messages of one id.
struct Piece {
  std::size_t first = 0;
  std::uint64_t events_size = 0;
};

std::vector<Piece> pieces_of(const XPlaneLine& line) {
  std::vector<Piece> pieces(1);
  proto::XEvent message;
  std::size_t count = 0;
  line.each([&](const XPlaneEvent& event) {
    if (count > 0 && count % most_events == 0) pieces.push_back({count, 0});
    ++count;
    set(message, event);
    pieces.back().events_size += size_with_length(message.ByteSizeLong());
  });
  return pieces;
}

std::string heading_of(const XPlaneLine& line) {
  proto::XLine heading;
  heading.set_id(line.id);
  heading.set_name(line.name);
  return heading.SerializeAsString();
}

std::string end_of(const XPlaneLine& line) {
  proto::XLine end;
  end.set_duration_ps(line.duration_ps);
  end.set_display_id(line.id);
  return end.SerializeAsString();
}

void write_line(const XPlaneLine& line, const std::vector<Piece>& pieces, CodedOutputStream& out) {
  const std::string heading = heading_of(line), end = end_of(line);
  const auto begin_piece = [&](const Piece& piece) {
    out.WriteTag(tag_of(proto::XPlane::kLinesFieldNumber));
    out.WriteVarint64(heading.size() + piece.events_size + end.size());
    out.WriteString(heading);
  };
  proto::XEvent message;
  std::size_t count = 0, piece = 0;
  begin_piece(pieces[0]);
  line.each([&](const XPlaneEvent& event) {
    if (piece + 1 < pieces.size() && count == pieces[piece + 1].first) {
      out.WriteString(end);
      begin_piece(pieces[++piece]);
    }
    ++count;
    set(message, event);
    out.WriteTag(tag_of(proto::XLine::kEventsFieldNumber));
    out.WriteVarint64(message.ByteSizeLong());
    message.SerializeWithCachedSizes(&out);
  });
  out.WriteString(end);
}

}  // namespace

std::int64_t XPlaneNames::add(Event event) {
  for (const auto& [name, value] : event.stats) stat(name);
  events_.push_back(std::move(event));
  return static_cast<std::int64_t>(events_.size());
}

std::int64_t XPlaneNames::stat(std::string_view name) {
  const auto found = std::ranges::find(stats_, name);
  const auto number = found - stats_.begin() + 1;
  if (found == stats_.end()) stats_.emplace_back(name);
  return number;
}

void XSpaceWriter::hostname(std::string_view name) {
  proto::XSpace space;
  space.add_hostnames(std::string{name});
  write_(space.SerializeAsString());
}

Status XSpaceWriter::plane(XPlaneOut plane) {
  proto::XPlane heading, names;  // before the lines, so that readers know whose they are, and behind them
  heading.set_id(plane.id);
  heading.set_name(plane.name);
  for (const auto& [name, value] : plane.stats) set(*names.add_stats(), plane.names.stat(name), value);
  for (std::size_t i = 0; i < plane.names.events().size(); ++i) {
    const XPlaneNames::Event& event = plane.names.events()[i];
    proto::XEventMetadataEntry& entry = *names.add_event_metadata();
    entry.set_key(static_cast<std::int64_t>(i) + 1);
    entry.mutable_value()->set_id(entry.key());
    entry.mutable_value()->set_name(event.name);
    entry.mutable_value()->set_display_name(event.display_name);
    for (const auto& [name, value] : event.stats) set(*entry.mutable_value()->add_stats(), plane.names.stat(name), value);
  }
  for (std::size_t i = 0; i < plane.names.stats().size(); ++i) {
    proto::XStatMetadataEntry& entry = *names.add_stat_metadata();
    entry.set_key(static_cast<std::int64_t>(i) + 1);
    entry.mutable_value()->set_id(entry.key());
    entry.mutable_value()->set_name(plane.names.stats()[i]);
  }
  std::uint64_t size = heading.ByteSizeLong() + names.ByteSizeLong();
  std::vector<std::vector<Piece>> pieces;
  for (const XPlaneLine& line : plane.lines) {
    pieces.push_back(pieces_of(line));
    const std::uint64_t around = heading_of(line).size() + end_of(line).size();
    for (const Piece& piece : pieces.back()) size += size_with_length(around + piece.events_size);
  }
  if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return Diagnostic{{}, fmt::format("the profile of {} would take {} bytes, more than the 2 GiB of a message that its readers take", plane.name, size)};
  PassedOn bytes{write_};
  google::protobuf::io::CopyingOutputStreamAdaptor stream{&bytes, 1 << 18};
  CodedOutputStream out{&stream};
  out.WriteTag(tag_of(proto::XSpace::kPlanesFieldNumber));
  out.WriteVarint64(size);
  heading.SerializeToCodedStream(&out);
  for (std::size_t i = 0; i < plane.lines.size(); ++i) write_line(plane.lines[i], pieces[i], out);
  names.SerializeToCodedStream(&out);
  return success();
}

}  // namespace podsim
