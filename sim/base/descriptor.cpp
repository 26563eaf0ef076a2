#include "sim/base/descriptor.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "sim/base/cancellation.hpp"

namespace podsim {

namespace {

Cause cause_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: return Cause::environment;
    default: return Cause::input;
  }
}

}  // namespace

int Descriptor::close() {
  if (number_ < 0) return 0;
  // Linux has closed it even where it reports an error: never twice.
  return ::close(std::exchange(number_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {  // a pipe or terminal that another process has set to not wait
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

Diagnostic system_error(const std::string& file, std::string_view action, int error_number) {
  if (error_number == EINTR) return cancelled_work();
  return {{file, 0, 0}, std::string{action} + ": " + std::generic_category().message(error_number), cause_of(error_number)};
}

}  // namespace podsim
