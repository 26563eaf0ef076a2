// Every printed PartitionSpec against the shards of the numeric engine; the collectives beside the specs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

#include "sim/engine/numeric/inputs.hpp"
#include "tools/report/jax_plan_report.hpp"
#include "workloads/test_blocks.hpp"

namespace podsim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::mesh_of;
using testing::plan_with;

/// "P('row', ('a', 'b'))": the names that divide each dimension.
std::vector<std::vector<std::string>> read_spec(const std::string& spec) {
  EXPECT_TRUE(spec.starts_with("P(") && spec.ends_with(")")) << spec;
  std::vector<std::vector<std::string>> dims(1);
  int depth = 0;
  for (std::size_t i = 2; i + 1 < spec.size(); ++i) {
    if (spec[i] == '(') ++depth;
    if (spec[i] == ')') --depth;
    if (spec[i] == ',' && depth == 0) dims.emplace_back();
    if (spec[i] != '\'') continue;
    const std::size_t end = spec.find('\'', i + 1);
    dims.back().push_back(spec.substr(i + 1, end - i - 1));
    i = end;
  }
  return dims;
}

/// The block of a device, as offsets into the array flattened row-major: by what JAX documents of NamedSharding, from the printed texts alone.
Layout block_by_spec(const json& plan, const json& array, int device) {
  std::map<std::string, std::pair<int, int>> axes;  // name -> size, coordinate of the device
  int rest = device;
  const auto names = plan["axis_names"].get<std::vector<std::string>>();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const int size = plan["mesh"][*name];
    axes[*name] = {size, rest % size};
    rest /= size;
  }
  const auto dims = read_spec(array["spec"]);
  const auto shape = array["shape"].get<std::vector<std::int64_t>>();
  EXPECT_LE(dims.size(), shape.size());
  std::vector<std::int64_t> begin, length;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t blocks = 1, block = 0;
    if (d < dims.size())
      for (const std::string& name : dims[d]) {
        EXPECT_TRUE(axes.contains(name)) << name;
        blocks *= axes[name].first;
        block = block * axes[name].first + axes[name].second;
      }
    EXPECT_EQ(shape[d] % blocks, 0);
    begin.push_back(block * (shape[d] / blocks));
    length.push_back(shape[d] / blocks);
  }
  return coalesced(box_of(shape, begin, length));
}

bool same(const Layout& a, const Layout& b) {
  if (a.offset != b.offset || a.rank != b.rank) return false;
  for (std::size_t d = 0; d < static_cast<std::size_t>(a.rank); ++d)
    if (a.length[d] != b.length[d] || a.stride[d] != b.stride[d]) return false;
  return true;
}

const json& array_of(const json& plan, const std::string& layer, const std::string& tensor) {
  static const json none;
  for (const json& array : plan["layers"])
    if (array["name"] == layer && array["tensor"] == tensor) return array;
  ADD_FAILURE() << "no " << tensor << " of " << layer;
  return none;
}

/// Every device holds what the printed spec says.
void expect_blocks(const json& plan, const json& array, const Mesh& mesh, const Buffer& buffer) {
  if (array.is_null()) return;
  ASSERT_EQ(array["dtype"], name_of(buffer.dtype));
  ASSERT_EQ(array["bytes_per_device"], size_of(buffer).count());
  for (int device = 0; device < mesh.devices(); ++device)
    ASSERT_TRUE(same(block_by_spec(plan, array, device), coalesced(shard_layout(mesh, buffer, DeviceId{device}))))
        << buffer.tensor << " of " << array["name"] << ": " << array["spec"] << " of " << array["shape"] << " on device " << device;
}

json json_of(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass, const AxisNames& names = {}) {
  const auto made = jax_plan(submesh, workload, plan, pass, names);
  if (!made) return ADD_FAILURE() << to_text(made.error()), json::object();
  DeviceOrder order;
  for (int device = 0; device < submesh.mesh.devices(); ++device) order.push_back(device);
  return json::parse(jax_plan_json(*made, order));
}

/// What the tensors of a whole block are in the list of layers.
std::pair<std::string, std::string> listed(const std::string& tensor, const std::vector<WorkloadPart>& parts) {
  if (const std::size_t dot = tensor.rfind('.'); dot != std::string::npos) return {tensor.substr(0, dot), tensor.substr(dot + 1)};
  const auto in = [](Pass pass) { return [pass](const WorkloadPart& part) { return part.pass == pass; }; };
  if (tensor == "dY") return {std::find_if(parts.begin(), parts.end(), in(Pass::backward))->name, tensor};
  if (tensor == "dX") return {parts.back().name, tensor};
  if (tensor == "X") return {parts.front().name, tensor};
  return {std::find_if(parts.rbegin(), parts.rend(), in(Pass::forward))->name, tensor};
}

void expect_all(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass) {
  const json printed = json_of(submesh, workload, plan, pass);
  const auto parts = parts_of(workload, plan, submesh, pass);
  ASSERT_TRUE(parts) << to_text(parts.error());
  std::set<std::pair<std::string, std::string>> seen;
  for (const WorkloadPart& part : *parts) {
    const auto schedule = part_schedule(submesh, part, plan.options);
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    const std::vector<PartTensor> tensors = tensors_of(part, *schedule);
    for (const Buffer& buffer : schedule->programs.front().buffers) {
      if (buffer.role == Role::scratch) continue;
      const auto tensor = std::find_if(tensors.begin(), tensors.end(), [&](const PartTensor& t) { return t.tensor == buffer.tensor; });
      ASSERT_NE(tensor, tensors.end());
      expect_blocks(printed, array_of(printed, part.name, tensor->name), submesh.mesh, buffer);
      seen.emplace(part.name, tensor->name);
    }
  }
  EXPECT_EQ(printed["layers"].size(), seen.size()) << "an array is listed that no part has, or twice";
  const auto block = block_schedule(submesh, workload, plan, pass);
  ASSERT_TRUE(block) << to_text(block.error());
  for (const Buffer& buffer : block->programs.front().buffers) {
    if (buffer.role == Role::scratch) continue;
    const auto [layer, tensor] = listed(buffer.tensor, *parts);
    expect_blocks(printed, array_of(printed, layer, tensor), submesh.mesh, buffer);
  }
}

TEST(JaxPlan, EverySpecOfABlockGivesTheDevicesTheShardsThatTheEngineHas) {
  int plans = 0;
  for (const TransformerBlock& block : {testing::small_block(), testing::small_gated_block()})
    for (const Mesh& mesh :
         {mesh_of(2, 2), mesh_of(4, 2), mesh_of(2, 4), mesh_of(1, 4), mesh_of(4, 1), mesh_of(1, 1), mesh_of(4, 2, true, {{2, true}, {2, false}})}) {
      if (block.name == testing::small_gated_block().name && mesh != mesh_of(4, 2)) continue;  // what it adds has the cuts of the others
      const auto workload = workload_of(block, mesh.devices());
      ASSERT_TRUE(workload);
      for (const auto& [name, plan] : testing::plans_for(*workload))
        for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", block.name, to_text(mesh), name, name_of(pass)));
          if (pass != Pass::both && mesh != mesh_of(4, 2)) continue;  // what both passes hold is checked on every mesh
          const auto submesh = workload_submesh(mesh);
          if (!parts_of(*workload, plan, mesh, pass)) continue;  // heads that this mesh would split
          expect_all(*submesh, *workload, plan, pass);
          ++plans;
          if (HasFatalFailure()) return;
        }
    }
  EXPECT_GE(plans, 60);
}

/// What each of the six products reads and writes: whether X, W and Y are stored transposed.
struct Storage {
  ProductChoice choice;
  bool x, w, y;
};
const std::vector<Storage> storages{
    {{"collective", Dataflow::os, false}, false, false, false}, {{"collective", Dataflow::ls, false}, false, true, false},
    {{"collective", Dataflow::rs, false}, true, false, false},  {{"collective", Dataflow::os, true}, true, true, true},
    {{"collective", Dataflow::ls, true}, false, true, true},    {{"collective", Dataflow::rs, true}, true, false, true}};

TEST(JaxPlan, ShapesAreThoseOfTheArraysAsTheyAreStored) {
  const auto workload = workload_of(std::vector<NamedProduct>{{64, 32, 128}});
  const Mesh mesh = mesh_of(4, 2);
  for (const Storage& storage : storages) {
    SCOPED_TRACE(fmt::format("{} {}", name_of(storage.choice.dataflow), storage.choice.transposed));
    const json printed =
        json_of(*workload_submesh(mesh), *workload, plan_with(*workload, {storage.choice}, ActivationLayout::tokens_by_row), Pass::both);
    const auto expect = [&](const std::string& tensor, bool transposed, int rows, int columns) {
      for (const std::string& name : {tensor, "d" + tensor}) {
        if (name == "dY" && !transposed) continue;  // checked as Y
        const json& array = array_of(printed, "gemm1", name);
        EXPECT_EQ(array["transposed"], transposed) << name;
        EXPECT_EQ(array["shape"], (transposed ? json{columns, rows} : json{rows, columns})) << name;
        EXPECT_EQ(array["spec"], "P('row', 'col')") << name;
      }
    };
    expect("X", storage.x, 64, 128);
    expect("W", storage.w, 128, 32);
    expect("Y", storage.y, 64, 32);
  }
}

TEST(JaxPlan, AlgorithmsAlongOneRingShardAlongThatAxisAlone) {
  for (const auto& [mesh, ring] : {std::pair{mesh_of(1, 4), "col"}, {mesh_of(4, 1), "row"}})
    for (const std::string algorithm : {"1d-os", "1d-fsdp", "1d-megatron", "tp-ag-overlapped", "jax-ag-bidirectional"}) {
      SCOPED_TRACE(algorithm + " on " + to_text(mesh));
      const auto workload = workload_of(std::vector<NamedProduct>{{64, 64, 64}});
      const Plan plan = plan_with(*workload, {{algorithm, Dataflow::os, false}}, ActivationLayout::tokens_by_row);
      const Submesh submesh = *workload_submesh(mesh);
      expect_all(submesh, *workload, plan, Pass::forward);
      const std::string other = ring == std::string{"row"} ? "col" : "row";
      const json printed = json_of(submesh, *workload, plan, Pass::forward);
      for (const json& array : printed["layers"]) EXPECT_EQ(array["spec"].get<std::string>().find(other), std::string::npos) << array;
    }
}

TEST(JaxPlan, APartOfAnAxisIsAnAxisOfASplitMesh) {
  const Mesh mesh = *Mesh::make({{"row", 8, true}, {"col", 4, true}});
  const auto workload = workload_of(std::vector<NamedProduct>{{64, 64, 64}, {64, 32, 64}});
  const AxisView low{0, 1, 4}, high{0, 4, 2}, middle{0, 2, 2}, col = mesh.whole(1);
  struct Case {
    Submesh submesh;
    json mesh;
    std::string spec;
  };
  std::size_t turn = 0;
  for (const Case& one : {Case{*submesh_of(mesh, low, col), {{"row_0", 2}, {"row_1", 4}, {"model", 4}}, "P('row_1', 'model')"},
                          Case{*submesh_of(mesh, high, low), {{"row_0", 2}, {"row_1", 4}, {"model", 4}}, "P('row_0', 'row_1')"},
                          Case{*submesh_of(mesh, col, middle), {{"row_0", 2}, {"row_1", 2}, {"row_2", 2}, {"model", 4}}, "P('model', 'row_1')"},
                          Case{*submesh_of(mesh, mesh.whole(0), {1, 2, 2}), {{"row", 8}, {"model_0", 2}, {"model_1", 2}}, "P('row', 'model_0')"}}) {
    SCOPED_TRACE(one.spec);
    ++turn;
    for (std::size_t s = turn % 2; s < storages.size(); s += 2) {  // each in two of the four
      const Storage& storage = storages[s];
      const auto layout = input_layout(storage.choice.dataflow, storage.choice.transposed);
      Plan plan;
      for (const char* name : {"gemm1", "gemm2"}) plan.stages.push_back({name, layout, storage.choice});
      expect_all(one.submesh, *workload, plan, Pass::both);
      const json printed = json_of(one.submesh, *workload, plan, Pass::both, {{"col", "model"}});
      EXPECT_EQ(printed["mesh"], one.mesh);
      for (const json& array : printed["layers"]) EXPECT_EQ(array["spec"], one.spec);
      EXPECT_THAT(printed["notes"].dump(), HasSubstr("which no PartitionSpec can say: JAX's mesh needs the axis split"));
    }
  }
}

TEST(JaxPlan, MoreAxesThanAProgramMayHaveAreAnError) {
  const Mesh mesh = *Mesh::make({{"row", 36, true}, {"col", 2, true}});
  const auto workload = workload_of(std::vector<NamedProduct>{{72, 72, 72}});
  const Plan plan = plan_with(*workload, {{"collective", Dataflow::os, false}}, ActivationLayout::tokens_by_row);
  const auto submesh = submesh_of(mesh, {0, 4, 3}, {0, 1, 2});  // strides 1, 2, 4, 12, 36
  ASSERT_TRUE(submesh) << to_text(submesh.error());
  const auto made = jax_plan(*submesh, *workload, plan, Pass::forward);
  ASSERT_FALSE(made);
  EXPECT_EQ(to_text(made.error()), "gemm1: expected a mesh of at most 4 axes, found row_0=3,row_1=3,row_2=2,row_3=2,col=2");
  const auto taken = jax_plan(*submesh_of(mesh, {0, 1, 4}, mesh.whole(1)), *workload, plan, Pass::forward, {{"col", "row_1"}});
  ASSERT_FALSE(taken);
  EXPECT_THAT(to_text(taken.error()), HasSubstr("\"row_1\" is named twice"));
}

// ---- Collectives ----

json collectives_of(const Mesh& mesh, const Workload& workload, const Plan& plan, Pass pass) {
  return json_of(*workload_submesh(mesh), workload, plan, pass)["collectives"];
}

TEST(JaxPlan, OutputAndLeftStationaryProductsAreWhatJaxInserts) {
  const auto workload = workload_of(std::vector<NamedProduct>{{64, 32, 128}});
  const std::int64_t x = 64 * 128 * 2, w = 128 * 32 * 2, y = 64 * 32 * 2;
  for (const auto& [R, C] : {std::pair{2, 2}, {4, 2}, {2, 4}})
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(fmt::format("{}x{} {}", R, C, transposed));
      const auto gathered = [](std::int64_t bytes, int along, int across) { return bytes / across * (along - 1) / along; };
      const auto one = [&](Dataflow dataflow) {
        return collectives_of(mesh_of(R, C), *workload, plan_with(*workload, {{"collective", dataflow, transposed}}, ActivationLayout::tokens_by_row),
                              Pass::forward)
            .at(0);
      };
      const json os = one(Dataflow::os), ls = one(Dataflow::ls);
      for (const json& product : {os, ls}) {
        EXPECT_EQ(product["jax"], product["plan"]) << product.dump(2);
        EXPECT_EQ(product["jax_received_bytes"], product["plan_received_bytes"]);
      }
      // The left operand moves along columns, the right one along rows; transposed the left one is W.
      EXPECT_EQ(os["plan_received_bytes"], gathered(transposed ? w : x, C, R) + gathered(transposed ? x : w, R, C));
      EXPECT_EQ(ls["plan_received_bytes"], gathered(transposed ? x : w, R, C) + gathered(y, C, R));
      EXPECT_EQ(ls["computes"], transposed ? "Y.T = W.T @ X.T" : "Y = X @ W");
    }
}

TEST(JaxPlan, RightStationaryProductsAreWhatJaxCouldInsertWithTheFewestBytes) {
  const auto workload = workload_of(std::vector<NamedProduct>{{32, 256, 256}});  // X is small
  const json rs = collectives_of(mesh_of(4, 2), *workload,
                                 plan_with(*workload, {{"collective", Dataflow::rs, false}}, ActivationLayout::features_by_row), Pass::forward)
                      .at(0);
  EXPECT_EQ(rs["fewest"], rs["plan"]) << rs.dump(2);
  EXPECT_EQ(rs["jax"][0]["tensor"], "W") << "the rules gather the right operand";
  EXPECT_LT(rs["fewest_received_bytes"], rs["jax_received_bytes"]);
}

TEST(JaxPlan, EveryAlgorithmThatCutsItsGathersReceivesWhatOneGatherWould) {
  const auto workload = workload_of(std::vector<NamedProduct>{{64, 64, 128}});
  for (const Dataflow dataflow : all_dataflows)
    for (const Mesh& mesh : {mesh_of(2, 2), mesh_of(4, 2), mesh_of(2, 4)}) {
      const auto with = [&](const std::string& algorithm, std::int64_t slices) {
        Plan plan = plan_with(*workload, {{algorithm, dataflow, false, slices}}, ActivationLayout::tokens_by_row);
        return collectives_of(mesh, *workload, plan, Pass::both);
      };
      const json whole = with("collective", 0), sliced = with("meshslice", 4), panels = with("summa", 0), ring = with("wang", 0);
      ASSERT_EQ(whole.size(), 3U);
      for (std::size_t p = 0; p < 3; ++p) {
        SCOPED_TRACE(whole[p].dump(2));
        for (const json& other : {sliced, panels, ring})
          EXPECT_EQ(other[p]["plan_received_bytes"], whole[p]["plan_received_bytes"]) << other[p].dump(2);
        for (const json& transfer : sliced[p]["plan"]) EXPECT_EQ(transfer["times"], 4);
        EXPECT_EQ(sliced[p]["slice_count"], 4);
      }
    }
}

TEST(JaxPlan, NormsAndReLayoutsHaveTheirCollectives) {
  const Mesh mesh = mesh_of(2, 2);
  for (const TransformerBlock& block : {testing::small_block(), testing::small_gated_block()}) {
    const auto workload = workload_of(block, mesh.devices());
    for (const auto& [name, plan] : testing::plans_for(*workload)) {
      if (!parts_of(*workload, plan, mesh, Pass::both)) continue;
      SCOPED_TRACE(block.name + " " + name);
      int norms = 0;
      for (const json& one : collectives_of(mesh, *workload, plan, Pass::both)) {
        if (one["name"].get<std::string>().starts_with("norm")) {
          ++norms;
          EXPECT_EQ(one["jax_received_bytes"], one["plan_received_bytes"]) << one.dump(2);
          for (const json& transfer : one["jax"]) EXPECT_EQ(transfer["kind"], "all-reduce");
        }
        if (one["name"].get<std::string>().ends_with("re-layout")) {
          EXPECT_GT(one["jax_received_bytes"], 0);
          for (const json& transfer : one["jax"]) EXPECT_NE(transfer["kind"], "all-gather");
          for (const json& transfer : one["plan"]) EXPECT_EQ(transfer["kind"], "all-to-all");
        }
      }
      EXPECT_EQ(norms, 4);
    }
  }
}

// ---- Names ----

TEST(JaxPlan, AxesHaveTheNamesThatAreAskedFor) {
  const Mesh mesh = mesh_of(4, 2);
  const auto workload = workload_of(std::vector<NamedProduct>{{64, 64, 64}});
  const Plan plan = plan_with(*workload, {{"collective", Dataflow::os, false}}, ActivationLayout::tokens_by_row);
  const auto swapped = parse_axis_names(" row = col , col=row", mesh, {});
  ASSERT_TRUE(swapped) << to_text(swapped.error());
  const json printed = json_of(*workload_submesh(mesh), *workload, plan, Pass::forward, *swapped);
  EXPECT_EQ(printed["axis_names"], (json{"col", "row"}));
  EXPECT_EQ(printed["plan_axes"], (json{{"row", {"col"}}, {"col", {"row"}}}));
  EXPECT_EQ(array_of(printed, "gemm1", "X")["spec"], "P('col', 'row')");
  EXPECT_EQ(printed["collectives"][0]["plan"][0]["axes"], json{"row"}) << "X moves along columns";

  const auto error = [&](const std::string& text) {
    const auto names = parse_axis_names(text, mesh, {"names", 1, 1});
    return names ? "none" : to_text(names.error());
  };
  EXPECT_EQ(error("row=data,cols=model"), "names:1:10: no mesh axis \"cols\" in row=4,col=2, did you mean \"col\"?");
  EXPECT_EQ(error("row=data,row=model"), "names:1:10: expected each axis at most once, got \"row\" again");
  EXPECT_EQ(error("row=data,col=data"), "names:1:14: expected a name of its own for each axis, got \"data\", which is that of row");
  EXPECT_EQ(error("row=col"), "names:1:5: expected a name of its own for each axis, got \"col\", which is that of col");
  EXPECT_EQ(error(""), "names:1:1: expected AXIS=NAME, as in row=data,col=model; got \"\"");
  EXPECT_EQ(error("row=data,"), "names:1:10: expected AXIS=NAME, as in row=data,col=model; got \"\"");
  for (const char* name : {"", "1", "a b", "it's", "a=b"})
    EXPECT_THAT(error("row=" + std::string{name}), HasSubstr("names:1:5: expected a name of letters")) << name;
}

}  // namespace
}  // namespace podsim
