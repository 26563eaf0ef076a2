// A file that is written from front to back, plain or compressed, and is there only when it is complete.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

/// Where bytes go: an OutputFile (sim/base/output_file.hpp), plain or compressed.
class Sink {
 public:
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// After a failure: nothing. close() has the error.
  virtual void write(std::string_view bytes) = 0;
  /// Whether writing on is of no use.
  [[nodiscard]] virtual bool failed() const = 0;
  /// Once, after all bytes. Errors: some of them could not be written.
  virtual Status close() = 0;

 protected:
  Sink() = default;
};

/// A file, compressed if its name ends in `.gz`: a gzip header without a name or time, so that the same bytes become the same file. Opened at once,
/// so that what cannot be written is known before there is anything to write. Errors: it cannot.
Expected<std::unique_ptr<Sink>> open_sink(const std::string& path);

}  // namespace podsim
