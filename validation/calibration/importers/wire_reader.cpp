#include "validation/calibration/importers/wire_reader.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

WireReader::WireReader(std::unique_ptr<ByteSource> bytes, std::string file) : bytes_{std::move(bytes)}, file_{std::move(file)} {}
WireReader::~WireReader() = default;

Diagnostic WireReader::error(std::uint64_t at, std::string_view message) const {
  return {{file_}, "at byte " + std::to_string(at) + ": " + std::string{message}};
}

std::uint64_t WireReader::position() const { return origin_ + static_cast<std::uint64_t>(coded_->CurrentPosition()); }

Diagnostic WireReader::cut_short() const {
  if (Status end = bytes_->ended(); !end) return end.error();
  return error(position(), "the file is cut short");
}

Expected<std::uint64_t> WireReader::varint() {
  const std::uint64_t begin = position();
  std::uint64_t value = 0;
  if (coded_->ReadVarint64(&value)) return value;
  if (coded_->BytesUntilLimit() == 0) return error(begin, "a number goes beyond its message");
  const void* data = nullptr;
  int size = 0;
  if (!coded_->GetDirectBufferPointer(&data, &size)) return cut_short();
  return error(begin, "a number is longer than ten bytes");
}

/// The length before the bytes of the field that began at `begin`.
Expected<int> WireReader::length_at(std::uint64_t begin) {
  const auto length = varint();
  if (!length) return length.error();
  if (outside_ && *length > static_cast<std::uint64_t>(coded_->BytesUntilLimit())) return error(begin, "this field goes beyond its message");
  const int most = std::numeric_limits<int>::max() - coded_->CurrentPosition();
  if (*length > static_cast<std::uint64_t>(most)) return error(begin, "this field is longer than 2 GiB, which no message is");
  return static_cast<int>(*length);
}

Status WireReader::move(int count, std::string* into) {
  // In pieces: a length that is not true must not take memory.
  while (count > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!coded_->GetDirectBufferPointer(&data, &size)) return cut_short();
    size = std::min(size, count);
    if (into != nullptr) into->append(static_cast<const char*>(data), static_cast<std::size_t>(size));
    coded_->Skip(size);
    count -= size;
  }
  return success();
}

Expected<std::optional<WireReader::Field>> WireReader::next() {
  if (outside_) {
    if (coded_->BytesUntilLimit() == 0) return std::optional<Field>{};
  } else {
    // A new one for each field of the root, as its positions end at 2 GiB. The old one gives back first what it has read ahead.
    coded_.reset();
    origin_ = static_cast<std::uint64_t>(bytes_->stream().ByteCount());
    coded_ = std::make_unique<google::protobuf::io::CodedInputStream>(&bytes_->stream());
    const void* data = nullptr;
    int size = 0;
    if (!coded_->GetDirectBufferPointer(&data, &size)) {
      if (Status end = bytes_->ended(); !end) return end.error();
      return std::optional<Field>{};
    }
  }
  Field field;
  field.begin = position();
  const auto tag = varint();
  if (!tag) return tag.error();
  field.number = static_cast<std::uint32_t>(*tag >> 3);
  if (*tag >> 3 == 0 || *tag >> 3 >= 1U << 29) return error(field.begin, "this is no field of a profile");
  switch (*tag & 7) {
    case 0: {
      const auto value = varint();
      if (!value) return value.error();
      return std::optional{field};
    }
    case 1:
    case 5: {
      const int length = (*tag & 7) == 1 ? 8 : 4;
      if (outside_ && length > coded_->BytesUntilLimit()) return error(field.begin, "this field goes beyond its message");
      if (Status moved = move(length, nullptr); !moved) return moved.error();
      return std::optional{field};
    }
    case 2: {
      const auto length = length_at(field.begin);
      if (!length) return length.error();
      field.kind = Kind::bytes;
      field.length = *length;
      return std::optional{field};
    }
    default: return error(field.begin, "this is no field of a profile");
  }
}

void WireReader::enter(const Field& field) {
  PODSIM_ASSERT(!outside_);
  outside_ = coded_->PushLimit(field.length);
}

void WireReader::leave() {
  coded_->PopLimit(*outside_);
  outside_.reset();
}

Expected<std::string> WireReader::take(const Field& field, int most) {
  if (field.length > most) return error(field.begin, "this field is longer than " + std::to_string(most) + " bytes");
  std::string bytes;
  if (Status moved = move(field.length, &bytes); !moved) return moved.error();
  return bytes;
}

Status WireReader::skip(const Field& field) { return move(field.length, nullptr); }

}  // namespace podsim
