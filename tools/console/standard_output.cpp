#include "tools/console/standard_output.hpp"

#include <fcntl.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "sim/base/descriptor.hpp"
#include "tools/console/console.hpp"

namespace podsim {

StandardOutput::StandardOutput(int descriptor, void (*on_first_byte)())
    : descriptor_{descriptor}, on_first_byte_{on_first_byte}, stream_{nullptr} {
  stream_.rdbuf(this);
}

int StandardOutput::finish(int status, std::ostream& err) {
  sync();
  if (::close(descriptor_) != 0 && error_ == 0 && errno != EBADF && errno != EINTR) error_ = errno;
  if (error_ == 0) return status;
  fmt::print(err, "podsim: error: standard output: {}\n", std::generic_category().message(error_));
  return status == exit_done || status == exit_false ? exit_bad_input : status;
}

StandardOutput::int_type StandardOutput::overflow(int_type character) {
  if (on_first_byte_ != nullptr) std::exchange(on_first_byte_, nullptr)();
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(character, traits_type::eof())) sputc(traits_type::to_char_type(character));
  return traits_type::not_eof(character);
}

int StandardOutput::sync() {
  if (error_ == 0) error_ = write_all(descriptor_, {pbase(), static_cast<std::size_t>(pptr() - pbase())});
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0 ? 0 : -1;
}

void open_missing_standard_files() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace podsim
