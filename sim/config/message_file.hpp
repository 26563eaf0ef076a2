// Protobuf messages as files: shared by the readers and writers of machines, schedules and results. Internal to sim/config.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/config/encoding.hpp"

namespace google::protobuf {
class Message;
}

namespace podsim {

/// A kind of file: its name in messages, and its versions.
struct FileFormat {
  std::string_view noun;  // "a schedule"
  char tag = 0;           // distinguishes kinds of binary files; 0: text only
  int version = 1;        // the newest that this program reads, and the one that it writes
  bool checked = false;   // binary files have a checksum of their payload
};

/// Binary files begin with these bytes and the tag of their kind. The first byte cannot begin UTF-8 text.
inline constexpr std::string_view binary_magic = "\x89PODSIM";

/// A field of a message as a path from the root of the file. Places live on the stack of the reader (a parent outlives its children); line and column
/// are looked up only for an error.
struct Place {
  const Place* parent = nullptr;
  const char* field = nullptr;  // null: the root
  int index = -1;               // for a repeated field

  [[nodiscard]] Place at(const char* name, int i = -1) const { return {this, name, i}; }
};

/// A file being read: its message, the locations of its fields, and its errors.
class MessageFile {
 public:
  /// `message` and the parsed bytes must outlive this object.
  MessageFile(const FileFormat& format, std::string file, google::protobuf::Message& message);
  ~MessageFile();
  MessageFile(const MessageFile&) = delete;
  MessageFile& operator=(const MessageFile&) = delete;

  /// Fills the message. False, with problems recorded: bytes that are neither textproto nor binary, a truncated file, another kind or a newer
  /// version; unknown or repeated fields, missing required ones, invalid UTF-8, numbers that are not finite.
  bool parse(std::string_view bytes);

  [[nodiscard]] SourceLocation where(const Place& place) const;
  /// Records a problem. In a binary file, which has no lines, the message begins with the path of the field.
  void problem(const Place& place, std::string_view message);
  /// Records a problem whose location is known.
  void problem(Diagnostic diagnostic);
  [[nodiscard]] bool ok() const { return count_ == 0; }
  /// Whether further problems are only counted. Their texts need not be built then, which keeps a file with many errors fast.
  [[nodiscard]] bool full() const;
  /// All problems as one Diagnostic: the first with its location, the others below it, one per line.
  [[nodiscard]] Diagnostic error() const;

 private:
  struct Locations;

  bool parse_text(std::string_view text);
  bool parse_binary(std::string_view bytes);
  bool check_version();
  void check(const google::protobuf::Message& message, const Place& place);
  [[nodiscard]] std::string path_of(const Place& place) const;

  FileFormat format_;
  std::string file_;
  google::protobuf::Message& message_;
  std::string_view text_;                         // the parsed text, if it is text
  mutable std::unique_ptr<Locations> locations_;  // built at the first lookup: the table takes more memory than the message
  std::vector<Diagnostic> problems_;              // the first few
  int count_ = 0;                                 // number of all problems
};

/// Textproto: short messages on one line, others indented, no line over 150 columns unless a single value is longer.
std::string to_textproto(const google::protobuf::Message& message);

/// Binary: Protobuf's wire format in a frame.
std::string to_binary(const google::protobuf::Message& message, const FileFormat& format);

/// Magic bytes, tag, length of the payload, of a checked format its CRC-32, payload. Truncation and trailing bytes are detected; of a checked format
/// every damage.
std::string framed(char tag, std::string_view payload, bool checked = false);
/// CRC-32 as zlib computes it.
std::uint32_t checksum_of(std::string_view bytes);

std::string encode(const google::protobuf::Message& message, const FileFormat& format, Encoding encoding);

}  // namespace podsim
