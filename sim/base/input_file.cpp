#include "sim/base/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr std::string_view cannot_read = "cannot read the file";

bool is_binary(std::string_view bytes) { return !bytes.empty() && static_cast<unsigned char>(bytes.front()) >= 0x80; }

Diagnostic too_large(const std::string& path, const SizeLimit& limit, bool binary, const std::string& found) {
  const std::string other = !binary && limit.text < limit.binary ? fmt::format(" ({} in binary form)", to_text(limit.binary)) : "";
  return {{path, 0, 0}, fmt::format("expected at most {}{}, found {}", to_text(binary ? limit.binary : limit.text), other, found)};
}

}  // namespace

Expected<InputFile> InputFile::open(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return system_error(path, cannot_read, errno);
  if (S_ISDIR(about.st_mode)) return Diagnostic{{path, 0, 0}, "expected a file, found a directory"};
  return InputFile{path, std::move(file), S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) : 0};
}

Expected<std::size_t> InputFile::read(char* into, std::size_t size) {
  const ssize_t count = ::read(file_.get(), into, size);
  if (count < 0) return system_error(path_, cannot_read, errno);
  return static_cast<std::size_t>(count);
}

Expected<std::string> read_file(const std::string& path, const SizeLimit& limit) {
  auto file = InputFile::open(path);
  if (!file) return file.error();
  // What knows its size is read in one piece, and the byte behind it tells that this was all; other pieces grow with what has come.
  constexpr std::size_t first_piece = std::size_t{1} << 16;
  const std::size_t size = file->size();
  std::string bytes;
  for (std::size_t have = 0;;) {
    const bool binary = is_binary(std::string_view{bytes}.substr(0, have));
    const std::size_t most = static_cast<std::size_t>((binary ? limit.binary : limit.text).count());
    if (have > 0 && size > most) return too_large(path, limit, binary, fmt::format("{} bytes", size));
    if (have > most) return too_large(path, limit, binary, "more");
    // A pipe fills a piece little by little: the next one begins when it is full.
    if (have == bytes.size())
      bytes.resize(have + std::min(have == 0 ? first_piece : std::max(have, size >= have ? size - have + 1 : 0), most - have + 1));
    const auto count = file->read(bytes.data() + have, bytes.size() - have);
    if (!count) return count.error();
    have += *count;
    if (*count == 0) {
      bytes.resize(have);
      return bytes;
    }
  }
}

}  // namespace podsim
