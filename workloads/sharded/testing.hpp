// What tests of sharded programs share. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/rng.hpp"
#include "workloads/sharded/plan.hpp"

namespace podsim::testing {

inline Mesh mesh_with(const std::vector<std::pair<std::string, int>>& sizes) {
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : sizes) axes.push_back({name, size, true, {}});
  return *Mesh::make(axes);
}

/// "A=48x24; B=24x96" as entries.
inline std::vector<ProgramText::Entry> entries(const std::string& text, const std::string& option) {
  std::vector<ProgramText::Entry> all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    std::string piece = text.substr(begin, end - begin);
    piece.erase(0, piece.find_first_not_of(' '));
    all.push_back({piece, {option, 1, 1}});
    begin = end + 1;
  }
  return all;
}

inline ProgramText program_text(const std::string& statements, const std::string& shapes, const std::string& shards = "", const std::string& outs = "") {
  return {{{statements, {"program", 1, 1}}}, entries(shapes, "shape"), entries(shards, "shard"), entries(outs, "out")};
}

inline Expected<ShardedProgram> read(const Mesh& mesh, const std::string& statements, const std::string& shapes, const std::string& shards = "",
                                     const std::string& outs = "") {
  return read_program(program_text(statements, shapes, shards, outs), mesh);
}

/// A program that must be right.
inline ShardedProgram program_with(const Mesh& mesh, const std::string& statements, const std::string& shapes, const std::string& shards = "",
                                   const std::string& outs = "") {
  auto program = read(mesh, statements, shapes, shards, outs);
  EXPECT_TRUE(program) << to_text(program.error());
  return *std::move(program);
}

/// A text that began as one of the seeds and was changed byte by byte, or spliced with another.
inline std::string mutated(const std::vector<std::string>& seeds, Rng& rng) {
  constexpr std::string_view letters = "ABCXYxy=@+-*/.,;()T0123456789 \n#e_psumrel[]{}\xc3";
  std::string text = seeds[rng.below(seeds.size())];
  for (std::uint64_t edit = 1 + rng.below(4); edit > 0; --edit) {
    const std::size_t at = rng.below(text.size() + 1);
    switch (rng.below(4)) {
      case 0: text.insert(at, 1, letters[rng.below(letters.size())]); break;
      case 1:
        if (at < text.size()) text.erase(at, 1 + rng.below(3));
        break;
      case 2:
        if (at < text.size()) text[at] = letters[rng.below(letters.size())];
        break;
      default: text.insert(at, seeds[rng.below(seeds.size())].substr(rng.below(10), rng.below(20)));
    }
    if (text.empty()) text = "A";
  }
  return text;
}

/// "all-gather A x, all-reduce C x,y": the collectives of a plan, slices left out.
inline std::string collectives_of(const ShardedProgram& program, const ProgramPlan& plan) {
  std::string text;
  for (const auto& action : plan.actions) {
    const auto* step = std::get_if<PlannedStep>(&action);
    if (step == nullptr || !is_collective(step->step.kind)) continue;
    text += (text.empty() ? "" : ", ") + std::string{name_of(step->step.kind)} + " " +
            program.operations[static_cast<std::size_t>(plan.forms[static_cast<std::size_t>(step->before)].operation)].name + " ";
    for (std::size_t a = 0; a < step->step.axes.size(); ++a)
      text += (a > 0 ? "," : "") + program.mesh.axes()[static_cast<std::size_t>(step->step.axes[a])].name;
  }
  return text;
}

/// The sharding of the only output.
inline std::string output_of(const ShardedProgram& program, const ProgramPlan& plan) {
  const auto& [operation, form] = *plan.outputs.begin();
  return to_text(plan.forms[static_cast<std::size_t>(form)].sharding, program.mesh, program.operations[static_cast<std::size_t>(operation)].extents.size());
}

}  // namespace podsim::testing
