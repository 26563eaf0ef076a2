// Protobuf's wire format from a source of bytes, field by field, so that a message need not be in memory whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "validation/calibration/importers/byte_source.hpp"

namespace podsim {

class WireReader {
 public:
  WireReader(std::unique_ptr<ByteSource> bytes, std::string file);

  enum class Kind { number, bytes };
  struct Field {
    std::uint32_t number = 0;
    Kind kind = Kind::number;
    std::uint64_t length = 0;  // of bytes: still to be read or skipped; of a number: none
    std::uint64_t begin = 0;   // where the field is
  };

  /// The next field of the message that ends at `end`; nothing at its end. `end` 0: the root, which ends with the bytes. A field of bytes is left for
  /// take, skip or a message of its own: its fields up to position() + length. Errors: fields that are cut short, go beyond their message, or are
  /// none.
  Expected<std::optional<Field>> next(std::uint64_t end = 0);
  Expected<std::string> take(const Field& field, std::uint64_t most);
  Done skip(const Field& field);
  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] Diagnostic error(std::uint64_t at, std::string_view message) const;

 private:
  Expected<bool> fill();
  Expected<std::uint64_t> varint(std::uint64_t end);
  Done move(std::uint64_t count, char* into);

  std::unique_ptr<ByteSource> bytes_;
  std::string file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, have_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace podsim
