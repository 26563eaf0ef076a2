// Device lists and meshes that must be there, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topologies/jax/device_mesh.hpp"

namespace podsim::testing {

using Ints = std::vector<int>;

/// A slice of that kind with hosts of 2x2x1.
inline std::vector<JaxDevice> devices(DeviceKind kind, const Ints& extents, int slices = 1) {
  const auto made = jax_devices({kind, extents, devices_per_chip(kind), {2, 2, 1}, slices});
  EXPECT_TRUE(made) << to_text(made.error());
  return *made;
}

inline DeviceMesh assigned(DeviceKind kind, const Ints& extents, const Ints& shape, const DeviceMeshOptions& options = {}) {
  const Expected<DeviceMesh> mesh = assign_device_mesh(kind, devices(kind, extents), shape, options);
  EXPECT_TRUE(mesh) << to_text(mesh.error());
  return *mesh;
}

template <class T>
std::string error_of(const Expected<T>& outcome) {
  return outcome ? "accepted" : to_text(outcome.error());
}

}  // namespace podsim::testing
