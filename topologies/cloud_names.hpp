// What clouds call slices that have another name here.
#pragma once

#include <string>
#include <string_view>

namespace podsim {

/// "v5e-16" of Google Cloud's "v5litepod-16"; other texts as they are.
inline std::string without_cloud_name(std::string_view slice) {
  constexpr std::string_view of_cloud = "v5litepod-";
  return slice.starts_with(of_cloud) ? "v5e-" + std::string{slice.substr(of_cloud.size())} : std::string{slice};
}

}  // namespace podsim
