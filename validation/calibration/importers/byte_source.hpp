// Bytes that come in pieces: of a text in memory or of a file, inflated if they are compressed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace google::protobuf::io {
class ZeroCopyInputStream;
}

namespace podsim {

/// Any number of gzip members one after the other, inflated, if the bytes begin as gzip does; else the bytes as they are. Takes some 200 KiB.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// The next bytes, good until the next call; none: the end. Errors: unreadable, compressed data that are corrupt or cut short.
  Expected<std::string_view> next();
  /// The same bytes for Protobuf's readers, which know no errors but the end: ended() says why it came.
  virtual google::protobuf::io::ZeroCopyInputStream& stream() = 0;
  /// After the end. Errors: those of next().
  [[nodiscard]] virtual Status ended() const = 0;
};

/// `bytes`, at most 2 GiB, must outlive it. `file` is for errors.
std::unique_ptr<ByteSource> source_of(std::string_view bytes, const std::string& file);

/// Errors: those of InputFile.
Expected<std::unique_ptr<ByteSource>> source_of_file(const std::string& path);

/// All bytes. Errors: those of reading, or more than `most`.
Expected<std::string> read_all(ByteSource& source, std::size_t most, const std::string& file);

}  // namespace podsim
