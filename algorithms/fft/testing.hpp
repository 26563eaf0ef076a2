// FFT problems for tests of this folder. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/fft/fft.hpp"
#include "sim/base/rng.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim::testing {

/// "x=4,y=2", every axis wrapped.
inline Mesh fft_mesh(const std::string& text) {
  std::vector<MeshAxis> axes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    axes.push_back({text.substr(begin, equals - begin), std::stoi(text.substr(equals + 1, end - equals - 1)), true});
    begin = end + 1;
  }
  return *Mesh::make(axes);
}

/// "x+y,z,-"
inline std::vector<std::vector<AxisView>> fft_sharding(const std::string& text, const Mesh& mesh) {
  std::vector<std::vector<AxisView>> sharding;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    sharding.emplace_back();
    for (std::size_t at = begin; at < end;) {
      const std::size_t plus = std::min(text.find('+', at), end);
      if (const std::string name = text.substr(at, plus - at); name != "-") sharding.back().push_back(*mesh.axis(name));
      at = plus + 1;
    }
    begin = end + 1;
  }
  return sharding;
}

struct FftCase {
  std::string name;
  Mesh mesh;
  FftMethod method = FftMethod::pencil;
  FftProblem problem;
};

inline FftCase fft_case(FftMethod method, const std::string& mesh, const std::string& spec, Extents extents) {
  FftCase result{std::string{name_of(method)} + " " + spec + " on " + mesh, fft_mesh(mesh), method, {}};
  result.problem.extents = std::move(extents);
  result.problem.sharding = fft_sharding(spec, result.mesh);
  return result;
}

/// The methods on meshes of eight devices, some with axes folded on one dimension.
inline std::vector<FftCase> fft_cases() {
  using enum FftMethod;
  std::vector<FftCase> cases;
  for (const Extents& extents : {Extents{64, 64, 64}, Extents{48, 40, 24}}) {
    for (const auto& [mesh, spec] : std::vector<std::pair<std::string, std::string>>{
             {"x=4,y=2", "x,y,-"}, {"x=8,y=1", "x,y,-"}, {"x=1,y=8", "x,y,-"}, {"x=2,y=2,z=2", "x+y,z,-"}, {"x=2,y=2,z=2", "x,z+y,-"}})
      for (const FftMethod method : {pencil, naive}) cases.push_back(fft_case(method, mesh, spec, extents));
    for (const std::string spec : {"x+y,-,-", "-,x+y,-"}) cases.push_back(fft_case(slab, "x=4,y=2", spec, extents));
  }
  for (const FftMethod method : {slab, naive}) cases.push_back(fft_case(method, "x=8", "x,-", {96, 64}));
  for (const std::string mesh : {"x=2", "x=4", "x=8"})
    for (const FftMethod method : {four_step, naive}) cases.push_back(fft_case(method, mesh, "x", {1 << 15}));
  return cases;
}

/// Of each of fft_cases(): forward and inverse, both orders, real and complex input, with copies and without, in one chunk and in two.
inline std::vector<FftCase> all_fft_cases() {
  std::vector<FftCase> cases;
  for (const FftCase& form : fft_cases())
    for (unsigned bits = 0; bits < 32; ++bits) {
      FftCase c = form;
      if (c.method == FftMethod::naive && (bits & 0b11100U) != 0) continue;  // nothing to choose
      c.problem.inverse = (bits & 1U) != 0;
      c.problem.input = (bits & 2U) != 0 ? DType::f32 : DType::c64;
      c.problem.order = (bits & 4U) != 0 ? FftOrder::natural : FftOrder::transposed;
      c.problem.slice_copies = (bits & 8U) != 0;
      c.problem.chunks = (bits & 16U) != 0 ? 2 : 1;
      const auto multiples = fft_multiples(c.method, c.problem, c.mesh);
      EXPECT_TRUE(multiples) << to_text(multiples.error());
      bool divides = multiples.has_value();
      for (std::size_t d = 0; divides && d < multiples->size(); ++d) divides = c.problem.extents[d] % (*multiples)[d] == 0;
      EXPECT_TRUE(divides || c.problem.chunks > 1) << c.name;
      if (!divides) continue;  // 48x40x24 in two chunks
      c.name += std::string{c.problem.inverse ? " inverse " : " "} + std::string{name_of(c.problem.order)} + " " + std::string{name_of(c.problem.input)} +
                (c.problem.slice_copies ? " copies" : "") + " chunks " + std::to_string(c.problem.chunks);
      cases.push_back(std::move(c));
    }
  return cases;
}

/// Extents are all 1: see fft_multiples().
inline FftCase random_fft_case(Rng& rng) {
  const std::vector<std::string> meshes{"x=4,y=2", "x=3,y=2", "x=2,y=2,z=3", "x=5", "x=1,y=4"};
  FftCase c;
  const std::string mesh = meshes[rng.below(meshes.size())];
  c.mesh = fft_mesh(mesh);
  const std::size_t rank = 1 + rng.below(4);
  c.problem.extents.assign(rank, 1);
  c.problem.sharding.resize(rank);
  for (std::size_t a = 0; a < c.mesh.axes().size(); ++a)
    if (rng.below(5) > 0) c.problem.sharding[rank == 1 ? 0 : rng.below(rank - 1)].push_back(c.mesh.whole(static_cast<int>(a)));
  c.method = rng.below(4) == 0 ? FftMethod::naive : *default_fft_method(c.problem);
  if (c.method == FftMethod::slab && rank > 2 && rng.below(2) == 0) c.method = FftMethod::pencil;
  c.problem.chunks = rng.between(1, 3);
  c.problem.order = rng.below(2) == 0 ? FftOrder::natural : FftOrder::transposed;
  c.problem.inverse = rng.below(2) == 0;
  c.problem.slice_copies = rng.below(2) == 0;
  c.problem.input = rng.below(3) == 0 ? DType::f32 : DType::c64;
  c.name = std::string{name_of(c.method)} + " on " + mesh + " of rank " + std::to_string(rank) + " chunks " + std::to_string(c.problem.chunks) + " " +
           std::string{name_of(c.problem.order)} + (c.problem.slice_copies ? " copies" : "");
  return c;
}

inline Schedule lowered_fft(const FftCase& c, const CollectiveChooser& chooser) {
  const auto schedule = make_fft(c.method, c.mesh, c.problem);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  if (!schedule) return {};
  const auto lowered = lower(*schedule, chooser);
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return lowered ? *lowered : Schedule{};
}

}  // namespace podsim::testing
