#include "sim/config/files.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace podsim {

std::optional<std::string> contents_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) return std::nullopt;
  return text;
}

}  // namespace podsim
