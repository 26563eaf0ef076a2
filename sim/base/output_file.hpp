// Files that are there only when they are complete. Everything that podsim writes is written by this class (but for stores, which are SQLite's).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/base/descriptor.hpp"
#include "sim/base/expected.hpp"

namespace podsim {

/// A file that is written from front to back. Its bytes go to a part file beside the target, and close() renames that over it. Until close() succeeds the
/// target has what it had before, and a file that is dropped unclosed leaves nothing behind.
///
///   * The new file has the mode of the one that it replaces, and its owner where that may be given away.
///   * A link stays a link; the file at its end is replaced, or created.
///   * What is no regular file (a device, a pipe) is written directly. A name of an open file of this process (/dev/stdout) goes on where that file is.
///   * A file whose folder takes no other files, or that cannot be renamed over (a mount of a single file), is overwritten in place.
///   * The part file is new, whatever lies there (O_EXCL), and its name cannot be foreseen.
///   * What replaces a file is on the disk before the old one is gone (fsync), so that a power cut leaves one of them. New files are not waited for: they
///     can be computed again.
class OutputFile {
 public:
  /// Opened at once, so that what cannot be written is known before there is anything to write. Errors: why it cannot.
  static Expected<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// After a failure: nothing. close() has the error.
  void write(std::string_view bytes);
  /// Whether writing on is of no use.
  [[nodiscard]] bool failed() const { return error_ != 0; }
  /// Once, after all bytes. Errors: some of them could not be stored, and why.
  Status close();

 private:
  class Part;
  OutputFile(std::string path, Descriptor file, std::unique_ptr<Part> part);
  void flush();

  std::string path_, buffer_;
  std::unique_ptr<Part> part_;  // null: the file is written directly
  Descriptor file_;
  int error_ = 0;  // the first errno
};

/// All of a file at once.
Status write_file(const std::string& path, std::string_view bytes);

/// Removes the part files of all OutputFiles of this process that are not closed. May be called by a signal handler that ends the process afterwards.
void remove_part_files();

}  // namespace podsim
