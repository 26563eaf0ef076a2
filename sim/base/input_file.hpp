// Files that are read whole, up to a limit.
#pragma once

#include <string>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// How much of a file is read before it is refused: what has no end (/dev/zero, a pipe) would otherwise fill the memory.
struct SizeLimit {
  Bytes text;
  Bytes binary = text;  // of a file whose first byte is not ASCII, as the binary forms of podsim's files begin
};

/// The whole of a file, a device or a pipe. Errors, with the reason: it cannot be opened or read, it is a directory, it has more bytes than the limit,
/// or a signal arrived while it waited for bytes (cancelled_work(): the program asks for signals only to end).
Expected<std::string> read_file(const std::string& path, const SizeLimit& limit);

}  // namespace podsim
