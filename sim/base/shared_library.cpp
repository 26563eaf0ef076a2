#include "sim/base/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace podsim {

namespace {

Diagnostic failure(std::string message) { return {{}, std::move(message), Cause::environment}; }

/// Of the last call, on this thread.
std::string loader_error() {
  const char* const text = ::dlerror();
  return text == nullptr ? "no reason was given" : text;
}

}  // namespace

Expected<SharedLibrary> SharedLibrary::load(const std::string& file, const std::string& package) {
  if (file.find('/') != std::string::npos && !file.starts_with('/'))
    return failure(fmt::format("{} cannot be loaded: expected the name of a library or an absolute path", file));
  // All symbols now: a library that lacks one fails here, not in the middle of a run. None of them for other libraries to find: SimGrid has functions
  // of MPI's names.
  if (void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) return SharedLibrary{handle, file};
  return failure(fmt::format("{} cannot be loaded: {}. Install {}", file, loader_error(), package));
}

Expected<void*> SharedLibrary::find(const char* name) const {
  if (void* const address = ::dlsym(handle_, name); address != nullptr) return address;
  return failure(fmt::format("{} has no function {}: it is another version than podsim was built with", file_, name));
}

}  // namespace podsim
