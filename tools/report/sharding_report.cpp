#include "tools/report/sharding_report.hpp"

#include <fmt/format.h>

#include "tools/report/json.hpp"

namespace podsim {
namespace {

Json range_json(const std::pair<std::int64_t, std::int64_t>& range) {
  Json json = Json::array();
  json.push_back(range.first);
  json.push_back(range.second);
  return json;
}

Json numbers_json(const std::vector<std::int64_t>& numbers) {
  Json json = Json::array();
  for (const std::int64_t number : numbers) json.push_back(number);
  return json;
}

double elements_of(const Extents& extents) {
  double elements = 1;
  for (const std::int64_t extent : extents) elements *= static_cast<double>(extent);
  return elements;
}

}  // namespace

PaddedElements padding_of(const ShardingQuestion& question) {
  const double padded = elements_of(question.array.extents), added = padded - elements_of(question.extents);
  return {added, added / padded};
}

std::string sharding_title(const ShardingQuestion& question) {
  const std::size_t rank = question.extents.size();
  std::string text = fmt::format("{}, ", fmt::join(question.array.extents, "x"));
  if (!question.named) return text + to_text(question.hlo);
  text += fmt::format("{} on {}", jax_text(question.array.sharding, question.array.mesh, rank), to_text(question.array.mesh));
  std::string cut;
  for (const auto& index : question.array.at) cut += (cut.empty() ? "" : ",") + (index ? std::to_string(*index) : "-");
  return rank > 2 ? text + ", at " + cut : text;
}

std::string sharding_json(const ShardingQuestion& question, const BlockGrid& grid) {
  const ShownArray& array = question.array;
  const std::size_t rank = question.extents.size();
  Json mesh = Json::object();
  for (const MeshAxis& axis : array.mesh.axes()) mesh.set(axis.name, axis.size);
  Json json{{"array", numbers_json(question.extents)},
            {"mesh", question.named ? mesh : Json{}},
            {"spec", question.named ? Json{to_text(array.sharding, array.mesh, rank)} : Json{}},
            {"partition_spec", question.named ? Json{jax_text(array.sharding, array.mesh, rank)} : Json{}},
            {"hlo", to_text(question.hlo)},
            {"platform", array.platform},
            {"padded", Json{}}};
  if (array.extents != question.extents) {
    const PaddedElements padding = padding_of(question);
    json.set("padded", Json{{"array", numbers_json(array.extents)},
                            {"elements", padding.elements < 0x1p53 ? Json{static_cast<std::int64_t>(padding.elements)} : Json{padding.elements}},
                            {"share", padding.share}});
  }
  Json shards = Json::array();
  for (const ShownBlock& block : grid.blocks) {
    Json shard{{"devices", numbers_json(block.devices)},
               {"rows", range_json(grid.row_dimension ? block.ranges[*grid.row_dimension] : std::pair<std::int64_t, std::int64_t>{0, 1})},
               {"columns", range_json(block.ranges[grid.column_dimension])}};
    if (rank > 2) {
      Json ranges = Json::array();
      for (const auto& range : block.ranges) ranges.push_back(range_json(range));
      shard.set("ranges", std::move(ranges));
    }
    shards.push_back(std::move(shard));
  }
  json.set("shards", std::move(shards));
  return json.dump(2) + "\n";
}

}  // namespace podsim
