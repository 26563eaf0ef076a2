// Standard output that knows whether all of it was written, and why not.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

namespace podsim {

/// A stream on a descriptor. std::cout tells that writing failed, but not why.
class StandardOutput : private std::streambuf {
 public:
  /// `on_first_byte` is called before there is anything to write.
  explicit StandardOutput(int descriptor = 1, void (*on_first_byte)() = nullptr);

  std::ostream& stream() { return stream_; }
  /// Writes what is left and closes the descriptor. Returns the exit status of a command that ended with `status`: where its output was lost, `err` says
  /// why, and exit_done and exit_false become exit_bad_input.
  int finish(int status, std::ostream& err);

 private:
  int_type overflow(int_type character) override;
  int sync() override;

  int descriptor_;
  void (*on_first_byte_)();
  int error_ = 0;  // the first errno
  std::array<char, std::size_t{1} << 16> buffer_;
  std::ostream stream_;
};

/// Standard input, output and error that were closed are opened on /dev/null, output such that writing fails: else the first files that are opened would
/// take their numbers, and be written to.
void open_missing_standard_files();

}  // namespace podsim
