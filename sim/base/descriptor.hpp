// File descriptors with an owner, and what their system calls report.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// Closes its descriptor at the end of the scope. Negative: none.
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
  /// 0, or the errno of what was written before and could not be stored.
  int close();

 private:
  int number_ = -1;
};

/// Writes all of it. 0, or the errno that ended it.
int write_all(int descriptor, std::string_view bytes);

/// "cannot write the file: No space left on device". Its cause is the environment where another attempt may succeed: no space, no descriptors, no memory,
/// a failing disk. Of EINTR: cancelled_work(), because the program asks for signals only to end.
Diagnostic system_error(const std::string& file, std::string_view action, int error_number);

}  // namespace podsim
