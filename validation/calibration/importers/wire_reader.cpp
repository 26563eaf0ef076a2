#include "validation/calibration/importers/wire_reader.hpp"

#include <algorithm>
#include <utility>

namespace podsim {

WireReader::WireReader(std::unique_ptr<ByteSource> bytes, std::string file)
    : bytes_{std::move(bytes)}, file_{std::move(file)}, buffer_(std::size_t{1} << 16) {}

Diagnostic WireReader::error(std::uint64_t at, std::string_view message) const {
  return {{file_}, "at byte " + std::to_string(at) + ": " + std::string{message}};
}

Expected<bool> WireReader::fill() {
  if (at_ < have_) return true;
  const auto count = bytes_->read(buffer_.data(), buffer_.size());
  if (!count) return count.error();
  at_ = 0;
  have_ = *count;
  return have_ > 0;
}

Expected<std::uint64_t> WireReader::varint(std::uint64_t end) {
  const std::uint64_t begin = position_;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (end != 0 && position_ == end) return error(begin, "a number goes beyond its message");
    const auto more = fill();
    if (!more) return more.error();
    if (!*more) return error(position_, "the file is cut short");
    const auto byte = static_cast<unsigned char>(buffer_[at_++]);
    ++position_;
    value |= static_cast<std::uint64_t>(byte & 0x7F) << std::min(shift, 63);
    if ((byte & 0x80) == 0) return value;
  }
  return error(begin, "a number is longer than ten bytes");
}

Done WireReader::move(std::uint64_t count, char* into) {
  while (count > 0) {
    const auto more = fill();
    if (!more) return more.error();
    if (!*more) return error(position_, "the file is cut short");
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(count, have_ - at_));
    if (into != nullptr) into = std::copy_n(buffer_.data() + at_, part, into);
    at_ += part;
    position_ += part;
    count -= part;
  }
  return done();
}

Expected<std::optional<WireReader::Field>> WireReader::next(std::uint64_t end) {
  if (end != 0 && position_ >= end) return std::optional<Field>{};
  if (end == 0) {
    const auto more = fill();
    if (!more) return more.error();
    if (!*more) return std::optional<Field>{};
  }
  Field field;
  field.begin = position_;
  const auto tag = varint(end);
  if (!tag) return tag.error();
  field.number = static_cast<std::uint32_t>(*tag >> 3);
  if (*tag >> 3 == 0 || *tag >> 3 >= 1U << 29) return error(field.begin, "this is no field of a profile");
  const auto fits = [&](std::uint64_t length) { return end == 0 || length <= end - position_; };
  switch (*tag & 7) {
    case 0: {
      const auto value = varint(end);
      if (!value) return value.error();
      return std::optional{field};
    }
    case 1:
    case 5: {
      const std::uint64_t length = (*tag & 7) == 1 ? 8 : 4;
      if (!fits(length)) return error(field.begin, "this field goes beyond its message");
      if (Done moved = move(length, nullptr); !moved) return moved.error();
      return std::optional{field};
    }
    case 2: {
      const auto length = varint(end);
      if (!length) return length.error();
      if (!fits(*length) || *length > std::uint64_t{1} << 62) return error(field.begin, "this field goes beyond its message");
      field.kind = Kind::bytes;
      field.length = *length;
      return std::optional{field};
    }
    default: return error(field.begin, "this is no field of a profile");
  }
}

Expected<std::string> WireReader::take(const Field& field, std::uint64_t most) {
  if (field.length > most) return error(field.begin, "this field is longer than " + std::to_string(most) + " bytes");
  // In pieces: a length that is not true must not take memory.
  std::string bytes;
  for (std::uint64_t left = field.length; left > 0;) {
    const std::uint64_t part = std::min<std::uint64_t>(left, buffer_.size());
    bytes.resize(bytes.size() + part);
    if (Done moved = move(part, bytes.data() + (bytes.size() - part)); !moved) return moved.error();
    left -= part;
  }
  return bytes;
}

Done WireReader::skip(const Field& field) { return move(field.length, nullptr); }

}  // namespace podsim
