// Shared libraries that are loaded when something first needs them. Most runs need none, and SimGrid alone takes longer to load than such a run takes.
#pragma once

#include <string>
#include <type_traits>

#include "sim/base/expected.hpp"

namespace podsim {

/// A library of this process. It stays loaded until the process ends: its threads and handlers may outlive every copy of this object.
class SharedLibrary {
 public:
  /// `file` is a name without a folder, such as "libfftw3.so.3". The system looks for it in the RUNPATH of the program or Python module that podsim is
  /// linked into, which names the folder of our own modules, then where it looks for all libraries. A path must be absolute: what is in the current folder is not run.
  /// `package`: what to install where it is missing.
  /// Cost: milliseconds the first time, microseconds later. Safe in several threads. Errors (Cause::environment): there is none, it cannot be loaded,
  /// or it is a relative path.
  static Expected<SharedLibrary> load(const std::string& file, const std::string& package);

  /// Sets `function` to the library's function of this name, which must have that type. Errors (Cause::environment): it has none.
  template <class Function>
  requires std::is_function_v<Function>
  Status find(const char* name, Function*& function) const {
    const Expected<void*> address = find(name);
    if (!address) return address.error();
    function = reinterpret_cast<Function*>(*address);  // NOLINT: what POSIX has dlsym() for
    return success();
  }

 private:
  explicit SharedLibrary(void* handle, std::string file) : handle_{handle}, file_{std::move(file)} {}
  [[nodiscard]] Expected<void*> find(const char* name) const;

  void* handle_;
  std::string file_;
};

/// Finds functions of one library, one after the other. The first error stays, and nothing is set from then on.
class FunctionFinder {
 public:
  FunctionFinder(const std::string& file, const std::string& package) : library_{SharedLibrary::load(file, package)} {
    if (!library_) status_ = library_.error();
  }
  template <class Function>
  void operator()(const char* name, Function*& function) {
    if (status_) status_ = library_->find(name, function);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Expected<SharedLibrary> library_;
  Status status_ = success();
};

}  // namespace podsim
