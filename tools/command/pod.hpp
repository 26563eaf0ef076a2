// The pod that a command line asks for: machine, slice, topology, mesh, placement.
#pragma once

#include <map>

#include "tools/command/options.hpp"
#include "topologies/mesh_placement.hpp"
#include "topologies/pod.hpp"

namespace podsim {

/// Texts as on the command line; empty means not given. Errors: none of slice and mesh, and those of each part; with `strict_slice` a slice
/// that the vendor does not offer.
struct PodRequest {
  std::string machine, slice, wrap = "auto", mesh;
  std::vector<std::string> sets{};
  std::string mesh_order = "row-major";                         // jax, snake, a file of chip numbers
  bool allow_split_axes = false, contiguous_submeshes = false;  // of jax
  WhatIf what_if{};
  std::vector<std::string> stragglers{};  // "3.2=0.8", "random:1%=0.8"
  std::uint64_t seed = 0;                 // of random stragglers
  bool strict_slice = false;
  std::map<std::string, SourceLocation, std::less<>> places{};  // of what comes from a plan's file, by its option: "slice", "mesh", ...
};
Expected<Pod> make_pod(const PodRequest& request);

/// Of --straggler.
int slow_devices(const Pod& pod);
/// Whether the slice, the topology or a machine value is one that is not offered as it is.
bool is_hypothetical(const Pod& pod);
/// "twisted, 2 slices, without 0.0-0.1, 0.1-0.2=0.5, 3 slow devices"; empty: the pod as the vendor builds it.
std::string to_text(const WhatIf& what_if, int slow_devices);
/// "tpu_v4 4x4x8 twisted row=16,col=8"
std::string pod_text(const Pod& pod);

/// The devices of a slice as jax.devices() is asked for them.
DeviceList device_list(const Machine& machine, const Slice& slice);

/// The schedule in a file. Errors: it cannot be read, or what is wrong with it.
Expected<Schedule> saved_schedule(const std::string& path);

/// The single pod of run, check and show. `default_machine` may be empty: then --machine must be given. Without --mesh, a
/// --schedule's own mesh.
Expected<Pod> pod_of(const Options& options, const std::string& default_machine);
Expected<PodRequest> pod_request_of(const Options& options, const std::string& default_machine);
/// The same without slice and mesh.
Expected<PodRequest> pod_request_anywhere(const Options& options, const std::string& default_machine);

/// Every pod of compare: machines x slices x meshes. Errors: as make_pod; no machine given.
Expected<std::vector<PodRequest>> pod_requests(const Options& options);

Expected<Machine> machine_of(const std::string& name, const std::vector<std::string>& sets);

}  // namespace podsim
