// File descriptors with an owner, and the errors of their system calls.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// Owns a descriptor and closes it at the end of the scope. Negative: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_{number} {}
  Descriptor(Descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// 0, or the errno: bytes written earlier may fail to reach the disk only now.
  int close();

 private:
  int number_ = -1;
};

/// Writes all bytes. 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view bytes);

/// "cannot write the file: No space left on device". Cause::environment for errors that may go away by themselves: no space, descriptors or memory, a
/// failing disk. EINTR becomes cancelled_work(), because the program handles signals only to stop.
Diagnostic system_error(const std::string& file, std::string_view action, int error_number);

}  // namespace podsim
