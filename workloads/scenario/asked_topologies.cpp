#include "workloads/scenario/asked_topologies.hpp"

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/search_space.hpp"

namespace podsim {

std::vector<FieldText> listed(const Fields& fields, std::string_view name, const std::vector<std::string>& otherwise) {
  std::vector<FieldText> values;
  for (const FieldText& given : fields.texts(name))
    for (std::string& text : split(given.text)) values.push_back({std::move(text), given.where});
  if (values.empty())
    for (const std::string& text : otherwise) values.push_back({text, fields.where(name)});
  return values;
}

namespace {

/// "row=32,col=8"
std::string text_of(const MeshSizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

/// The same on every row x col.
Expected<std::vector<Fields>> on_all_meshes(Fields fields, const SourceLocation& where) {
  Fields plain = fields;
  plain.erase("mesh_order");  // one that suits a mesh need not suit the slice's dimensions
  const auto system = read_system(plain);
  if (!system) return system.error();
  std::vector<Fields> meshes;
  for (const MeshSizes& sizes : meshes_of(*system, true)) {
    fields.set("mesh", text_of(sizes), where);
    meshes.push_back(fields);
  }
  return meshes;
}

}  // namespace

Expected<std::vector<AskedTopology>> topologies_asked_for(const Fields& base) {
  std::vector<FieldText> meshes = base.texts("mesh");
  if (meshes.empty()) meshes.emplace_back();
  std::vector<AskedTopology> asked;
  for (const FieldText& machine : listed(base, "machine"))
    for (const FieldText& slice : listed(base, "slice", {""}))
      for (const FieldText& topology : listed(base, "topology", {""}))
        for (const FieldText& order : listed(base, "mesh_order", {""})) {
          Fields fields = base;
          fields.set("machine", machine.text, machine.where);
          if (base.has("slice")) fields.set("slice", slice.text, slice.where);
          if (base.has("topology")) fields.set("topology", topology.text, topology.where);
          if (base.has("mesh_order")) fields.set("mesh_order", order.text, order.where);
          fields.erase("mesh");
          asked.emplace_back();
          for (const FieldText& mesh : meshes) {
            if (mesh.text == "all") {
              auto all = on_all_meshes(fields, mesh.where);
              if (!all) return all.error();
              asked.back().meshes.insert(asked.back().meshes.end(), all->begin(), all->end());
              continue;
            }
            if (!mesh.text.empty()) fields.set("mesh", mesh.text, mesh.where);
            asked.back().meshes.push_back(fields);
          }
        }
  return asked;
}

void search_meshes(std::vector<AskedTopology>& asked, const Fields& base, const ProblemKind& kind) {
  const bool is_product = kind.field == "gemm", is_block = kind.field == "workload", is_collective = kind.field == "collective" && !base.has("axis");
  if (asked.size() < 2 || base.has("mesh") || base.has("devices") || !(is_product || is_block || is_collective)) return;
  for (AskedTopology& topology : asked) {
    const Fields own = topology.meshes.front();
    Fields plain = own;
    plain.erase("mesh_order");
    const auto system = read_system(plain);
    if (!system) continue;  // read_comparison() says why
    const std::string own_mesh = to_text(system->mesh);
    if (system->mesh.axes().size() > 2 && !is_collective) topology.meshes.clear();
    for (const MeshSizes& sizes : meshes_of(*system, is_product || base.flag("allow_split_axes"))) {
      if (text_of(sizes) == own_mesh) continue;
      topology.meshes.push_back(own);
      topology.meshes.back().set("mesh", text_of(sizes), of_field("mesh"));
    }
    topology.is_mesh_searched = topology.meshes.size() > 1;
  }
}

}  // namespace podsim
