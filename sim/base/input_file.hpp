// Files that are read: in pieces, or whole up to a limit.
#pragma once

#include <string>

#include "sim/base/descriptor.hpp"
#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// A file, a device or a pipe, from front to back.
class InputFile {
 public:
  /// Errors: why it cannot be opened; it is a directory.
  static Expected<InputFile> open(const std::string& path);
  /// At most `size` (> 0) bytes; 0: the end. Errors: it cannot be read; a signal arrived while it waited for bytes (cancelled_work(): the program asks for
  /// signals only to end).
  Expected<std::size_t> read(char* into, std::size_t size);
  /// As the file system says; 0 of what does not know its size.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  InputFile(std::string path, Descriptor file, std::size_t size) : path_{std::move(path)}, file_{std::move(file)}, size_{size} {}

  std::string path_;
  Descriptor file_;
  std::size_t size_;
};

/// How much of a file is read before it is refused: what has no end (/dev/zero, a pipe) would otherwise fill the memory.
struct SizeLimit {
  Bytes text;
  Bytes binary = text;  // of a file whose first byte is not ASCII, as the binary forms of podsim's files begin
};

/// The whole of it. Errors: those of InputFile; it has more bytes than the limit.
Expected<std::string> read_file(const std::string& path, const SizeLimit& limit);

}  // namespace podsim
