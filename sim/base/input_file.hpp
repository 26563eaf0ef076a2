// Input files, read in pieces or whole up to a size limit.
#pragma once

#include <string>

#include "sim/base/descriptor.hpp"
#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// A file, device or pipe, read from front to back.
class InputFile {
 public:
  /// Errors: the file cannot be opened (the message says why), or is a directory.
  static Expected<InputFile> open(const std::string& path);
  /// Reads at most `size` (> 0) bytes; 0 at the end. Errors: the file cannot be read; a signal arrived while the call waited for bytes
  /// (cancelled_work(): the program handles signals only to stop).
  Expected<std::size_t> read(char* into, std::size_t size);
  /// The size that the file system reports; 0 if unknown (a pipe).
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  InputFile(std::string path, Descriptor file, std::size_t size) : path_{std::move(path)}, file_{std::move(file)}, size_{size} {}

  std::string path_;
  Descriptor file_;
  std::size_t size_;
};

/// The most bytes to read before a file is refused. Without it an endless input (/dev/zero, a pipe) would fill the memory.
struct SizeLimit {
  Bytes text;
  Bytes binary = text;  // of a file whose first byte is not ASCII: podsim's binary formats begin so
};

/// The whole file. Errors: those of InputFile; more bytes than the limit.
Expected<std::string> read_file(const std::string& path, const SizeLimit& limit);

}  // namespace podsim
