// Machines with known values and what would be observed on them.
#pragma once

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/machine/machine_fields.hpp"
#include "validation/calibration/fit/calibrate.hpp"
#include "validation/calibration/fit/closed_form.hpp"

namespace podsim::testing {

using Values = std::vector<std::pair<std::string, std::string>>;

inline void set(Machine& machine, const Values& values) {
  for (const auto& [path, value] : values)
    if (const auto ok = set_machine_value(machine, path, value, "test", {}); !ok) throw std::runtime_error(ok.error().message);
}

/// Any shape, extents above 2 wrap; every cost there is has a value.
inline Machine some_machine(const Values& values = {}) {
  Machine machine;
  machine.name = "some";
  machine.slices.any_shape = true;
  set(machine, {{"chip.peak", "100 TFLOP/s"},
                {"chip.hbm_bandwidth", "1 TB/s"},
                {"chip.hbm", "32 GB"},
                {"link.bandwidth", "50 GB/s"},
                {"link.latency", "1 us"},
                {"software.per_message", "0.5 us"},
                {"software.launch", "5 us"}});
  set(machine, values);
  return machine;
}

inline System pod_with(const Machine& machine, const std::string& slice, const std::vector<std::pair<std::string, int>>& sizes = {}, bool snake = false) {
  auto system = system_of_slice(machine, slice, sizes, snake);
  if (!system) throw std::runtime_error(to_text(system.error()));
  return *std::move(system);
}

/// A slice without wraparound under x=4,y=4 or the like as JAX lays it on a TPU v4: over 2x2x4 x is the line of 4, and y folds the square, whose order 0, 2, 1, 3 crosses its corners twice.
inline System open_pod(Machine machine, const std::vector<int>& extents, const std::vector<std::pair<std::string, int>>& sizes) {
  machine.name = "tpu_v4";
  SystemSpec spec;
  spec.machine = std::move(machine);
  spec.slice = {extents, true};
  spec.wrap = {Wrap::Rule::none, {}};
  spec.mesh = sizes;
  spec.order = JaxOrder{};
  auto system = make_system(spec);
  if (!system) throw std::runtime_error(to_text(system.error()));
  return *std::move(system);
}

inline Observation observed(ObservedOp op, const std::string& axis, int devices, std::int64_t bytes) {
  Observation o;
  o.op = op;
  o.axis = axis;
  o.devices = devices;
  o.bytes = Bytes{bytes};
  return o;
}
inline Observation product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Observation o;
  o.op = ObservedOp::matmul;
  o.m = m, o.n = n, o.k = k;
  return o;
}

/// A standard normal number.
inline double normal(Rng& rng) {
  const double u = 1 - rng.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * rng.uniform());
}

/// Fills in the times that des gives, with multiplicative noise.
inline std::vector<Observation> times_on(const System& system, std::vector<Observation> observations, double noise = 0, std::uint64_t seed = 0,
                                         const PredictOptions& options = {}) {
  Rng rng{seed, 7};
  for (Observation& o : observations) {
    const auto time = predict(o, system, options);
    if (!time) throw std::runtime_error(to_text(time.error()));
    o.time = Seconds{time->count() * std::exp(noise * normal(rng))};
  }
  return observations;
}

/// Two kinds over both axes of a 4x8 torus, from 4 KiB to 16 MiB, products, copies.
inline std::vector<Observation> a_survey() {
  std::vector<Observation> all;
  for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter})
    for (const auto& [axis, devices] : {std::pair{"row", 4}, {"col", 8}})
      for (std::int64_t bytes = 4096; bytes <= (16 << 20); bytes *= 8) all.push_back(observed(op, axis, devices, bytes));
  for (const std::int64_t extent : {128, 256, 512, 1024, 2048, 4096}) all.push_back(product(extent, extent, extent));
  for (const std::int64_t extent : {1, 8}) all.push_back(product(extent, 8192, 8192));
  for (std::int64_t bytes = 1 << 16; bytes <= (256 << 20); bytes *= 8) all.push_back(observed(ObservedOp::hbm_copy, "", 1, bytes));
  return all;
}

inline const CalibratedValue* value_of(const Calibration& calibration, const std::string& path, const std::string& at = "") {
  for (const CalibratedValue& value : calibration.parameters)
    if (value.path == path && value.at == at) return &value;
  return nullptr;
}
inline const Undetermined* undetermined_of(const Calibration& calibration, const std::string& path) {
  for (const Undetermined& u : calibration.undetermined)
    if (u.path == path) return &u;
  return nullptr;
}

/// The number at a path of a machine.
inline double number_at(const Machine& machine, const std::string& path) {
  for (const MachineField& field : machine_fields()) {
    const std::vector<std::string> names = index_names(field.index);
    for (std::size_t e = 0; e < names.size(); ++e)
      if (path_of(field, names[e]) == path || path_of(field, "") == path) return field.get(machine, static_cast<int>(e));
  }
  throw std::runtime_error("no value " + path);
}

inline std::string to_text(const Calibration& c) {
  std::string text;
  for (const CalibratedValue& v : c.parameters)
    text += v.path + " " + v.at + " = " + std::to_string(v.value) + " [" + std::to_string(v.low) + ", " + std::to_string(v.high) + "] " + v.unit + "\n";
  for (const Undetermined& u : c.undetermined) text += "undetermined: " + u.path + " " + u.at + ": " + u.why + "\n";
  return text;
}

}  // namespace podsim::testing
