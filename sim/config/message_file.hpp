// Protobuf messages as files: what the readers and writers of machines, schedules and results have in common. Internal to sim/config.
#pragma once

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

/// What a kind of file is called, and which versions of it are understood.
struct FileFormat {
  std::string_view noun;  // "a schedule"
  char tag = 0;           // tells kinds of binary files apart; 0: text only
  int version = 1;        // the newest that this program reads, and the one it writes
};

/// Binary files begin with this and the tag of their kind. Its first byte begins no UTF-8 text.
inline constexpr std::string_view binary_magic = "\x89PODSIM";

/// A field of a message: the way to it from the root of the file. Built on the stack while reading (a parent outlives its children) and
/// resolved to a line and column only when there is something to say about it.
struct Place {
  const Place* parent = nullptr;
  const char* field = nullptr;  // null: the root
  int index = -1;               // of a repeated field

  [[nodiscard]] Place at(const char* name, int i = -1) const { return {this, name, i}; }
};

/// One file while it is being read: its message, where every field of it stands, and everything that is wrong with it.
class MessageFile {
 public:
  /// `message` must outlive this, and so must the bytes that are parsed.
  MessageFile(const FileFormat& format, std::string file, google::protobuf::Message& message);
  ~MessageFile();
  MessageFile(const MessageFile&) = delete;
  MessageFile& operator=(const MessageFile&) = delete;

  /// Fills the message. False, with problems noted: the bytes are neither textproto nor binary, cut short, of another kind or a newer
  /// version; unknown or repeated fields, required ones missing, texts that are not UTF-8, numbers that are not finite.
  bool parse(std::string_view bytes);

  [[nodiscard]] SourceLocation where(const Place& place) const;
  /// Notes a problem. In a binary file, which has no lines, the message begins with the path of the field.
  void problem(const Place& place, std::string_view message);
  /// Notes a problem whose place is resolved already.
  void problem(Diagnostic diagnostic);
  [[nodiscard]] bool ok() const { return count_ == 0; }
  /// Whether further problems are only counted: their text need not be made up, which a file full of them would make slow.
  [[nodiscard]] bool full() const;
  /// All problems as one: the first in the file with its place, the others below it, each on a line of its own.
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
  std::string_view text_;                         // what was parsed, if it is text
  mutable std::unique_ptr<Locations> locations_;  // of its fields, found when the first one is asked for: they take more memory than the message
  std::vector<Diagnostic> problems_;              // the first few
  int count_ = 0;                                 // of all
};

/// As textproto: short messages on one line, others indented, no line over 150 columns unless a single value is longer.
std::string to_textproto(const google::protobuf::Message& message);

/// As binary: Protobuf's wire format in a frame.
std::string to_binary(const google::protobuf::Message& message, const FileFormat& format);

/// Magic, the tag of the kind of file, the length of the payload, the payload: nothing can be cut off or added without being noticed.
std::string framed(char tag, std::string_view payload);

std::string encode(const google::protobuf::Message& message, const FileFormat& format, Encoding encoding);

}  // namespace podsim
