// Reads Protobuf's wire format field by field from a stream, so that a message need not be in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/config/byte_source.hpp"

namespace google::protobuf::io {
class CodedInputStream;
}

namespace podsim {

/// Uses Protobuf's CodedInputStream and reports the location of errors. A file may have any length, a message in it up to 2 GiB.
class WireReader {
 public:
  WireReader(std::unique_ptr<ByteSource> bytes, std::string file);
  ~WireReader();

  enum class Kind { number, bytes };
  struct Field {
    std::uint32_t number = 0;
    Kind kind = Kind::number;
    int length = 0;           // of a bytes field: still to be read or skipped; of a number: unused
    std::uint64_t begin = 0;  // the position of the field
  };

  /// The next field of the entered message, or of the root; nullopt at its end. Follow a bytes field by take(), skip() or enter().
  /// Errors: fields that are truncated, exceed their message, or are invalid.
  Expected<std::optional<Field>> next();
  /// Enters a field that is a message; its fields follow until leave(). Not nested, and only for fields of the root.
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
  std::uint64_t origin_ = 0;    // the position at which coded_ began
  std::optional<int> outside_;  // the limit of coded_ before enter()
};

}  // namespace podsim
