// An output file, plain or compressed, that appears only when complete.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

/// Receives bytes for an OutputFile (sim/base/output_file.hpp), plain or compressed.
class Sink {
 public:
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Does nothing after a failure; close() reports the error.
  virtual void write(std::string_view bytes) = 0;
  /// Whether an earlier write failed, so that further writes are useless.
  [[nodiscard]] virtual bool failed() const = 0;
  /// All bytes are stored, and close() has only to put the file in its place: of several files that shall appear together. Errors: as close().
  virtual Status finish() = 0;
  /// Call once, after all bytes. Errors: some bytes could not be written.
  virtual Status close() = 0;

 protected:
  Sink() = default;
};

/// A file, compressed if its name ends in `.gz`. The gzip header has no name or time, so equal contents give equal files. Opens the file at once, so
/// that an unwritable target fails before any work is done. Errors: it cannot be written.
Expected<std::unique_ptr<Sink>> open_sink(const std::string& path);

}  // namespace podsim
