#include "sim/base/file_names.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "sim/base/descriptor.hpp"

namespace podsim {

namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the kernel follows

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path{"."}; }

bool in_proc(const fs::path& path) {
  std::error_code none;
  return fs::canonical(folder_of(path), none).string().starts_with("/proc/");
}

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code problem;
  return std::filesystem::exists(path, problem);
}

Expected<std::string> end_of_links(const std::string& path) {
  fs::path at{path};
  for (int links = 0; links < most_links; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(at, error)) || in_proc(at)) return at.string();
    const fs::path to = fs::read_symlink(at, error);
    if (error) return system_error(path, "cannot follow the link", error.value());
    at = folder_of(at) / to;
  }
  return system_error(path, "cannot follow the link", ELOOP);
}

std::optional<int> own_descriptor(const std::string& path) {
  const fs::path at{path};
  std::error_code none;
  if (fs::canonical(folder_of(at), none) != fs::path{"/proc"} / std::to_string(::getpid()) / "fd") return std::nullopt;
  const std::string name = at.filename().string();
  int number = 0;
  const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (status != std::errc{} || rest != name.data() + name.size()) return std::nullopt;
  return number;
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0) {
    if (!S_ISREG(about.st_mode)) return std::nullopt;
    return FileIdentity{about.st_dev, about.st_ino, ""};
  }
  if (errno != ENOENT) return std::nullopt;
  const auto end = end_of_links(path);
  if (!end) return std::nullopt;
  const fs::path at{*end};
  if (!at.has_filename() || ::stat(folder_of(at).c_str(), &about) != 0) return std::nullopt;
  return FileIdentity{about.st_dev, about.st_ino, at.filename().string()};
}

}  // namespace podsim
