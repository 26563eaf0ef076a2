// Bytes that come in pieces: of a text in memory or of a file, inflated if they are compressed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills at most `size` (> 0) bytes; 0: the end. Errors: unreadable, compressed data that are corrupt or cut short.
  virtual Expected<std::size_t> read(char* into, std::size_t size) = 0;
};

/// `bytes` must outlive it.
std::unique_ptr<ByteSource> source_of(std::string_view bytes);

/// Errors: those of InputFile.
Expected<std::unique_ptr<ByteSource>> source_of_file(const std::string& path);

/// The bytes of `compressed` inflated if they begin as gzip does, else as they are. `file` is for errors.
std::unique_ptr<ByteSource> inflated(std::unique_ptr<ByteSource> compressed, const std::string& file);

/// All bytes. Errors: those of reading, or more than `most`.
Expected<std::string> read_all(ByteSource& source, std::size_t most, const std::string& file);

}  // namespace podsim
