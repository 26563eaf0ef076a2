// Output files that appear only when complete. podsim writes all its files with this class, except stores, which SQLite writes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/descriptor.hpp"
#include "sim/base/expected.hpp"

namespace podsim {

/// A file written from front to back. The bytes go to a temporary part file beside the target; close() renames it over the target. Until close()
/// succeeds the target keeps its old contents. An OutputFile destroyed without close() leaves no file behind.
///
///   * The new file gets the mode of the one that it replaces, and its owner if the process may set it.
///   * A symbolic link stays a link; the file that it points to is replaced or created.
///   * Devices and pipes are written directly. /dev/stdout and other names of this process's open files continue at the current position.
///   * If the directory takes no new files, or the target cannot be renamed over (a mount of a single file), the target is overwritten in place.
///   * The part file is always new (O_EXCL), with an unpredictable name.
///   * A file that replaces another one is synced to the disk first (fsync), so that a power cut leaves either the old or the new one. New files are
///     not synced: they can be computed again.
class OutputFile {
 public:
  /// Opens the file at once, so that an unwritable target fails before any work is done. Errors: why it cannot be written.
  static Expected<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Does nothing after a failure; close() reports the error.
  void write(std::string_view bytes);
  /// The part file, for a library that writes files by itself: instead of write(), and closed before close(). Empty if the target is written directly.
  [[nodiscard]] std::string part_path() const;
  /// Whether an earlier write failed, so that further writes are useless.
  [[nodiscard]] bool failed() const { return error_ != 0; }
  /// All bytes are stored, though still in the part file; close() has only to rename it. For several files that shall appear together. Errors: as close().
  Status finish();
  /// Call once, after all bytes. Errors: some bytes could not be stored (the message says why).
  Status close();
  /// Closes files that are only of use together, each finished, so that nobody finds a part of the set: without the first file there is none. Its predecessor goes before any other file takes its place, then
  /// `obsolete`, the files of an earlier set that this one has not; it appears itself after all others. So not even SIGKILL leaves a part that looks whole. Signals that the program handles wait until all is done
  /// (files_appear()). Where one file cannot take its place, those that are new are taken away again. Errors: as close(), of the first that fails.
  static Status close_together(std::vector<OutputFile>& files, const std::vector<std::string>& obsolete = {});

 private:
  class Part;
  OutputFile(std::string path, Descriptor file, std::unique_ptr<Part> part);
  void flush();

  std::string path_, buffer_;
  std::unique_ptr<Part> part_;  // null: the file is written directly
  Descriptor file_;
  int error_ = 0;  // the first errno
};

/// Writes a whole file at once.
Status write_file(const std::string& path, std::string_view bytes);

/// Whether close_together() is at work, in any thread: a signal handler is not to end the process now.
bool files_appear();

/// Removes the part files of all unclosed OutputFiles of this process. Safe in a signal handler that ends the process afterwards.
void remove_part_files();

}  // namespace podsim
