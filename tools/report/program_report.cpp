#include "tools/report/program_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "sim/base/units.hpp"
#include "tools/report/sharding_drawing.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

std::string shape_text(const Extents& extents) { return extents.empty() ? "scalar" : fmt::format("{}", fmt::join(extents, "x")); }

/// "next best: all-gather A along x, 25165824 B in all: 25.07 MB more, 256 times as much"
std::string next_best(const ProgramCollective& collective) {
  if (collective.alternative.empty()) return "";
  const double next = static_cast<double>(collective.alternative_bytes->count()), chosen = static_cast<double>(collective.chosen_bytes->count());
  std::string lost = "as much";
  if (next > chosen) lost = chosen > 0 ? fmt::format("{} more, {:.3g} times as much", bytes_text(next - chosen), next / chosen) : "more than none";
  if (next < chosen) lost = fmt::format("{} less", bytes_text(chosen - next));
  return fmt::format("next best: {}, {} B in all: {}", collective.alternative, collective.alternative_bytes->count(), lost);
}

}  // namespace

std::string program_table(const ProgramSummary& summary) {
  std::string text;
  if (!summary.association.empty()) text += fmt::format("order of the products: {}\n", summary.association);
  std::vector<std::vector<std::string>> rows{{"statement", "collective", "tensor", "axes", "from", "to", "input B", "received B"}};
  std::string why, last, next;
  for (const ProgramCollective& collective : summary.collectives) {
    rows.push_back({collective.statement == last ? "" : collective.statement,
                    collective.count == 1 ? collective.kind : fmt::format("{} x {}", collective.count, collective.kind), collective.tensor, fmt::format("{}", fmt::join(collective.axes, ",")), collective.before,
                    collective.after, std::to_string(collective.input.count()), std::to_string(collective.received.count())});
    last = collective.statement;
    why += wrapped(fmt::format("{} of {} along {}: {}.", collective.kind, collective.tensor, fmt::join(collective.axes, ","), collective.reason)) + "\n";
    // Once behind all collectives of an operation.
    const bool goes_on = &collective != &summary.collectives.back() && next_best(*(&collective + 1)) == next_best(collective);
    if (next = next_best(collective); !next.empty() && !goes_on) why += "  " + wrapped(next) + "\n";
  }
  if (summary.collectives.empty()) text += "no collective: every device has what it needs\n";
  else text += table(rows, 6) + "\n" + why;
  for (const ProgramCollective& slice : summary.slices)
    text += fmt::format("{} of {} along {} (free): {} -> {}\n", slice.kind, slice.tensor, fmt::join(slice.axes, ","), slice.before, slice.after);
  text += "\n";
  std::vector<std::vector<std::string>> facts;
  for (const auto& [name, sharding] : summary.shards) facts.push_back({"operand " + name, sharding});
  for (const ProgramKernel& kernel : summary.kernels)
    facts.push_back({fmt::format("{} of {}", kernel.function, kernel.name), kernel.algorithm + (kernel.note.empty() ? "" : ", " + kernel.note)});
  for (const ProgramOutput& output : summary.outputs)
    facts.push_back({"output " + output.name,
                     fmt::format("{} {}{}{}{}", shape_text(output.extents), output.sharding, output.is_real ? "" : ", " + output.dtype,
                                 output.cyclic.empty() ? "" : fmt::format(", block-cyclic by {}", fmt::join(output.cyclic, "x")),
                                 output.unreduced.empty() ? "" : fmt::format(", partial sums along {}", fmt::join(output.unreduced, ",")))});
  facts.push_back({"received per device", fmt::format("{} B in {} collective{}", summary.cost.received.count(), summary.cost.collectives, summary.cost.collectives == 1 ? "" : "s")});
  if (summary.per_iteration) facts.push_back({"per iteration", fmt::format("{} B received per device; the result has its operand's sharding", summary.per_iteration->count())});
  facts.push_back({"contains all-gather", summary.contains_all_gather ? "yes" : "no"});
  if (summary.padded > Bytes{}) facts.push_back({"padded", fmt::format("{} B of zeros, {} of the products' work", summary.padded.count(), percent(summary.padding))});
  text += table(facts, 2);
  if (!summary.note.empty()) text += wrapped("note: " + summary.note) + "\n";
  return text;
}

std::string program_drawings(const ProgramSummary& summary, const Mesh& mesh) {
  constexpr std::size_t columns = 100;
  std::string text;
  for (const ProgramOutput& output : summary.outputs) {
    if (!output.of_blocks || output.extents.empty() || output.extents.size() > 2) continue;
    ShownArray array{.extents = output.extents, .sharding = *output.of_blocks, .mesh = mesh};
    array.numbers.resize(static_cast<std::size_t>(mesh.devices()));
    std::iota(array.numbers.begin(), array.numbers.end(), std::int64_t{0});
    array.at.resize(array.extents.size());
    const auto grid = block_grid(array, {});
    if (grid) text += fmt::format("\n{}: the blocks of devices\n{}\n", output.name, draw_sharding(*grid, array.platform, false, columns).text);
  }
  return text;
}

Json program_json(const ProgramSummary& summary) {
  Json collectives = Json::array(), outputs = Json::array();
  for (const ProgramCollective& one : summary.collectives) {
    Json entry{{"statement", one.statement}, {"kind", one.kind},         {"tensor", one.tensor},        {"axes", one.axes},
               {"dim", one.dim},             {"bytes", one.input.count()}, {"received_bytes", one.received.count()}};
    entry.set("alternative", or_null(one.alternative));
    entry.set("alternative_bytes", one.alternative_bytes ? Json(one.alternative_bytes->count()) : Json());
    entry.set("reason", one.reason);
    if (one.count != 1) entry.set("count", one.count);
    collectives.push_back(std::move(entry));
  }
  for (const ProgramOutput& output : summary.outputs) {
    Json shape = Json::array();
    for (const std::int64_t extent : output.extents) shape.push_back(extent);
    Json entry{{"name", output.name}, {"shape", std::move(shape)}, {"spec", output.sharding}, {"unreduced", output.unreduced}};
    if (!output.is_real) entry.set("dtype", output.dtype);
    if (!output.cyclic.empty()) {
      Json blocks = Json::array();
      for (const std::int64_t block : output.cyclic) blocks.push_back(block);
      entry.set("blocks", std::move(blocks));
    }
    outputs.push_back(std::move(entry));
  }
  Json json{{"collectives", std::move(collectives)},
            {"received_bytes", summary.cost.received.count()},
            {"contains_all_gather", summary.contains_all_gather},
            {"outputs", std::move(outputs)},
            {"padded_bytes", summary.padded.count()}};
  if (!summary.kernels.empty()) {
    Json kernels = Json::array();
    for (const ProgramKernel& kernel : summary.kernels)
      kernels.push_back(Json{{"name", kernel.name}, {"function", kernel.function}, {"algorithm", kernel.algorithm}, {"note", or_null(kernel.note)}});
    json.set("kernels", std::move(kernels));
  }
  if (summary.association.empty()) return json;
  Json shards = Json::object();
  for (const auto& [name, sharding] : summary.shards) shards.set(name, sharding);
  json.set("association", summary.association);
  json.set("shards", std::move(shards));
  json.set("collectives_count", summary.cost.collectives);
  json.set("per_iteration_bytes", summary.per_iteration ? Json(summary.per_iteration->count()) : Json());
  if (!summary.note.empty()) json.set("note", summary.note);
  return json;
}

}  // namespace podsim
