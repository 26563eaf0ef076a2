// A stream of bytes from memory or a file, decompressed if necessary.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace google::protobuf::io {
class ZeroCopyInputStream;
}

namespace podsim {

/// If the bytes start as gzip does, they are inflated (any number of members in sequence); otherwise they pass unchanged. Uses some 200 KiB.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// The next bytes, valid until the next call; empty at the end. Errors: unreadable file, corrupt or truncated compressed data.
  Expected<std::string_view> next();
  /// The same bytes for Protobuf's readers, which see every error as the end; ended() tells the reason.
  virtual google::protobuf::io::ZeroCopyInputStream& stream() = 0;
  /// Call at the end. Errors: those of next().
  [[nodiscard]] virtual Status ended() const = 0;
};

/// `bytes`, at most 2 GiB, must outlive the source. `file` is for error messages.
std::unique_ptr<ByteSource> source_of(std::string_view bytes, const std::string& file);

/// Errors: those of InputFile.
Expected<std::unique_ptr<ByteSource>> source_of_file(const std::string& path);

/// All bytes, of a text. Errors: those of reading, at the line and column that were reached, or more than `most` bytes.
Expected<std::string> read_all(ByteSource& source, std::size_t most, const std::string& file);

}  // namespace podsim
