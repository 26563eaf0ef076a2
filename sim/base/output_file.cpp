#include "sim/base/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "sim/base/file_names.hpp"

namespace podsim {

namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 16;
constexpr std::string_view cannot_write = "cannot write the file";

/// The names of part files, for remove_part_files(): a signal handler cannot be given any. What finds no place stays behind when a signal ends the process.
std::array<std::atomic<const char*>, 4096> part_files{};
static_assert(std::atomic<const char*>::is_always_lock_free);
std::atomic<int> appearing{0};  // calls of close_together()

Expected<Descriptor> opened(const std::string& path, const std::string& name, int flags) {
  Descriptor file{::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NOCTTY)};
  if (!file) return system_error(name, cannot_write, errno);
  return file;
}

}  // namespace

/// A new file beside the target, removed unless it takes the target's place.
class OutputFile::Part {
 public:
  /// `replaced`: what is there now, null: nothing.
  Part(std::string target, const struct stat* replaced) : target_{std::move(target)}, replaces_{replaced != nullptr} { create(replaced); }
  ~Part() {
    if (path_ == nullptr) return;
    if (is_created_) ::unlink(path_->c_str());
    forget();
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] bool replaces() const { return replaces_; }
  [[nodiscard]] std::string path() const { return *path_; }
  [[nodiscard]] const std::string& target() const { return target_; }
  Descriptor take_file() { return std::move(file_); }

  /// The complete file takes the target's place. 0, or an errno.
  int replace_target(Descriptor& file) {
    if (file) {  // else it was finished
      if (replaces_ && ::fsync(file.get()) != 0) return errno;
      if (const int error = file.close(); error != 0) return error;
    }
    if (std::rename(path_->c_str(), target_.c_str()) != 0) return replaces_ ? overwrite_target() : errno;
    is_created_ = false;
    return 0;
  }

 private:
  void create(const struct stat* replaced) {
    const std::filesystem::path at{target_};
    if (!at.has_filename()) return static_cast<void>(error_ = ENOENT);
    constexpr std::size_t longest_stem = 200;  // with the rest below the 255 bytes of a name
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::uint64_t number = 0;
      if (::getrandom(&number, sizeof number, 0) != sizeof number) return static_cast<void>(error_ = errno);
      path_ = std::make_unique<std::string>(
          (at.parent_path() / fmt::format("{}.{:016x}.part", at.filename().string().substr(0, longest_stem), number)).string());
      remember();
      const mode_t mode = replaced != nullptr ? S_IRUSR | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
      file_ = Descriptor{::open(path_->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
      error_ = file_ ? 0 : errno;
      is_created_ = error_ == 0;
      if (is_created_ && replaced != nullptr) imitate(*replaced);
      if (is_created_) return;
      forget();
      if (error_ != EEXIST) return;
    }
  }

  void imitate(const struct stat& replaced) {
    // Where its owner may not be given away, the new file belongs to the user who writes it.
    if (::fchown(file_.get(), replaced.st_uid, replaced.st_gid) != 0) {}
    constexpr mode_t permissions = 0777;
    if (::fchmod(file_.get(), replaced.st_mode & permissions) != 0) error_ = errno;
  }

  void remember() {
    for (std::atomic<const char*>& entry : part_files) {
      const char* none = nullptr;
      if (entry.compare_exchange_strong(none, path_->c_str())) return static_cast<void>(entry_ = &entry);
    }
  }
  void forget() {
    // A signal handler that has taken the name is about to end the process, and reads it: it is never freed.
    if (entry_ != nullptr && entry_->exchange(nullptr) == nullptr) static_cast<void>(path_.release());
    entry_ = nullptr;
    path_.reset();
  }

  /// Where the target cannot be renamed over.
  int overwrite_target() {
    const Descriptor from{::open(path_->c_str(), O_RDONLY | O_CLOEXEC)};
    Descriptor to{::open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)};
    if (!from || !to) return errno;
    std::string bytes(buffer_size, '\0');
    for (;;) {
      const ssize_t count = ::read(from.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno;
      if (count == 0) return to.close();
      if (const int error = write_all(to.get(), {bytes.data(), static_cast<std::size_t>(count)}); error != 0) return error;
    }
  }

  std::string target_;
  bool replaces_ = false, is_created_ = false;
  std::unique_ptr<std::string> path_;
  std::atomic<const char*>* entry_ = nullptr;
  Descriptor file_;
  int error_ = 0;
};

OutputFile::OutputFile(std::string path, Descriptor file, std::unique_ptr<Part> part)
    : path_{std::move(path)}, part_{std::move(part)}, file_{std::move(file)} {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Expected<OutputFile> OutputFile::open(const std::string& path) {
  const auto end = end_of_links(path);
  if (!end) return end.error();
  if (const auto number = own_descriptor(*end)) {
    Descriptor file{::fcntl(*number, F_DUPFD_CLOEXEC, 0)};
    if (!file) return system_error(path, cannot_write, errno);
    return OutputFile{path, std::move(file), nullptr};
  }
  struct stat about {};
  const bool exists = ::stat(path.c_str(), &about) == 0;  // by the name that was given: the kernel refuses links that others planted
  if (!exists && errno != ENOENT) return system_error(path, cannot_write, errno);
  if (exists) {
    const bool regular = S_ISREG(about.st_mode);
    auto file = opened(path, path, regular ? 0 : O_TRUNC);  // of a regular file: may it be written at all?
    if (!file) return file.error();
    if (!regular) return OutputFile{path, *std::move(file), nullptr};
  }
  auto part = std::make_unique<Part>(*end, exists ? &about : nullptr);
  if (const int error = part->error(); error != 0) {
    if (!exists || (error != EACCES && error != EPERM)) return system_error(path, cannot_write, error);
    auto file = opened(*end, path, O_TRUNC);
    if (!file) return file.error();
    return OutputFile{path, *std::move(file), nullptr};
  }
  Descriptor file = part->take_file();
  return OutputFile{path, std::move(file), std::move(part)};
}

std::string OutputFile::part_path() const { return part_ == nullptr ? "" : part_->path(); }

void OutputFile::write(std::string_view bytes) {
  if (failed()) return;
  buffer_ += bytes;
  if (buffer_.size() >= buffer_size) flush();
}

void OutputFile::flush() {
  if (!failed() && file_) error_ = write_all(file_.get(), buffer_);
  buffer_.clear();
}

Status OutputFile::finish() {
  flush();
  if (!failed() && part_ != nullptr && file_) {
    if (part_->replaces() && ::fsync(file_.get()) != 0) error_ = errno;
    if (const int error = file_.close(); !failed()) error_ = error;
  }
  if (failed()) return system_error(path_, cannot_write, error_);
  return success();
}

Status OutputFile::close() {
  flush();
  if (!failed() && part_ != nullptr) error_ = part_->replace_target(file_);
  if (const int error = file_.close(); !failed()) error_ = error;
  part_.reset();
  if (failed()) return system_error(path_, cannot_write, error_);
  return success();
}

Status OutputFile::close_together(std::vector<OutputFile>& files, const std::vector<std::string>& obsolete) {
  ++appearing;
  std::vector<std::string> appeared;  // that replaced nothing
  Status all = success();
  if (!files.empty() && files.front().part_ != nullptr && files.front().part_->replaces()) ::unlink(files.front().part_->target().c_str());
  for (const std::string& path : obsolete) ::unlink(path.c_str());
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    std::string target = file->part_ != nullptr && !file->part_->replaces() ? file->part_->target() : "";
    all = file->close();
    if (!all) break;
    if (!target.empty()) appeared.push_back(std::move(target));
  }
  if (!all)
    for (const std::string& target : appeared) ::unlink(target.c_str());
  --appearing;
  return all;
}

bool files_appear() { return appearing.load() > 0; }

Status write_file(const std::string& path, std::string_view bytes) {
  auto file = OutputFile::open(path);
  if (!file) return file.error();
  file->write(bytes);
  return file->close();
}

void remove_part_files() {
  for (std::atomic<const char*>& entry : part_files)
    if (const char* path = entry.exchange(nullptr); path != nullptr) ::unlink(path);
}

}  // namespace podsim
