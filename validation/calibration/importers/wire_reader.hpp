// Protobuf's wire format from a source of bytes, field by field, so that a message need not be in memory whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "validation/calibration/importers/byte_source.hpp"

namespace google::protobuf::io {
class CodedInputStream;
}

namespace podsim {

/// Reads with Protobuf's CodedInputStream and says where something is wrong. A file may have any length, a message in it 2 GiB.
class WireReader {
 public:
  WireReader(std::unique_ptr<ByteSource> bytes, std::string file);
  ~WireReader();

  enum class Kind { number, bytes };
  struct Field {
    std::uint32_t number = 0;
    Kind kind = Kind::number;
    int length = 0;           // of bytes: still to be read or skipped; of a number: none
    std::uint64_t begin = 0;  // where the field is
  };

  /// The next field of the message that was entered, or of the root; nothing at its end. A field of bytes is left for take, skip or enter.
  /// Errors: fields that are cut short, go beyond their message, or are none.
  Expected<std::optional<Field>> next();
  /// The field is a message, whose fields follow up to leave(). One at a time; the root's fields only.
  void enter(const Field& field);
  void leave();
  Expected<std::string> take(const Field& field, int most);
  Status skip(const Field& field);
  [[nodiscard]] Diagnostic error(std::uint64_t at, std::string_view message) const;

 private:
  [[nodiscard]] std::uint64_t position() const;
  [[nodiscard]] Diagnostic cut_short() const;
  Expected<std::uint64_t> varint();
  Expected<int> length_at(std::uint64_t begin);
  Status move(int count, std::string* into);

  std::unique_ptr<ByteSource> bytes_;
  std::string file_;
  std::unique_ptr<google::protobuf::io::CodedInputStream> coded_;
  std::uint64_t origin_ = 0;    // where coded_ began
  std::optional<int> outside_;  // what limited coded_ before enter()
};

}  // namespace podsim
