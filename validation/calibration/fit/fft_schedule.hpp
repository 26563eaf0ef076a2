// The schedule of an observed FFT of three dimensions, as XLA compiles it for GPUs.
#pragma once

#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// The mesh of a slice that has room for an observed FFT: axes x and y as its `mesh` says if they are within a node; else "node" and "gpu", where one
/// of the array's dimensions is divided by all devices.
MeshSizes fft_mesh(const Observation& observation, const Slice& slice);

/// shard_map with jnp.fft and lax.all_to_all, array [points, points, points]: real input is converted to complex (a pass of its own). FFTs are along the
/// last dimension only, so between two of them dimension 2 comes to the front: by a transpose, or, where the devices divide what comes next, by a
/// transpose, an all-to-all of contiguous blocks, and a pass that puts them together. The inverse takes complex input; that it scales after each FFT, in a
/// pass of its own, is assumed.
///
///   before   [n0/x, n1/y, n2]
///   after    [n1/x, n2/y, n0]
///   cost     passes of the block: conversion (three quarters), 3 FFTs (inverse: 6), a transpose where a group has one device, else 2 and an all-to-all
///   errors   other than three dimensions of one length (an assert); a mesh without the axes of fft_mesh()
///   source   the compiled programs of ASKabalan/jaxdecomp-benchmarks, out_prof/a100/8/jaxfft @78913b3d
Expected<Schedule> fft_schedule(const Observation& observation, const Mesh& mesh);

}  // namespace podsim
