// What a compiled module and the JSON beside it say of the system, and what is said where they leave it open.
#include <filesystem>
#include <fstream>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/hlo/module_axes.hpp"
#include "workloads/hlo/testing.hpp"
#include "workloads/hlo/unpartitioned.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string module_text(int devices, const std::string& groups) {
  return "HloModule m, is_scheduled=true, num_partitions=" + std::to_string(devices) +
         "\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e {\n  x = f32[64] parameter(0)\n"
         "  ROOT r = f32[64] all-reduce(x), channel_id=1, replica_groups=" +
         groups + ", use_global_device_ids=true, to_apply=add\n}\n";
}

/// A module in a folder of its own, with the JSON beside it where there is one.
class Module {
 public:
  Module(const std::string& name, const std::string& text, const std::string& json = "")
      : folder_{std::filesystem::path{::testing::TempDir()} / ("module_system_" + name)} {
    std::filesystem::create_directories(folder_);
    std::ofstream{path()} << text;
    if (!json.empty()) std::ofstream{folder_ / "m.json"} << json;
  }
  ~Module() { std::filesystem::remove_all(folder_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  [[nodiscard]] std::string path() const { return (folder_ / "m.hlo").string(); }
  [[nodiscard]] std::string json() const { return (folder_ / "m.json").string(); }

 private:
  std::filesystem::path folder_;
};

Expected<Fields> completed(const Module& module, const std::vector<std::pair<std::string, std::string>>& given) {
  Fields fields;
  fields.set("hlo", module.path(), of_field("hlo"));
  for (const auto& [name, text] : given) fields.set(name, text, of_field(name));
  return with_module(std::move(fields));
}

std::vector<std::string> assumed_in(const Fields& fields) { return fields.known->modules.at(fields.text("hlo")).assumed; }

std::string of_json(const std::string& coords, const std::string& more = "") {
  return R"({"machine": "tpu_v5e", "slice": "v5e:2x4", "axes": {"x": 8}, "coords": )" + coords + more + "}";
}
// As JAX 0.10.2 orders the devices of mesh x=8 on 2x4 chips.
const std::string jax_order = "[[0,0,0],[1,0,0],[0,1,0],[1,1,0],[1,3,0],[0,3,0],[1,2,0],[0,2,0]]";

TEST(ModuleSystem, AllOfItFromTheJsonBesideTheModule) {
  const Module module{"json", module_text(8, "{{0,1,2,3,4,5,6,7}}"), of_json("[[0,0,0],[0,1,0],[0,2,0],[0,3,0],[1,0,0],[1,1,0],[1,2,0],[1,3,0]]")};
  const auto fields = completed(module, {});
  ASSERT_TRUE(fields) << to_text(fields.error());
  EXPECT_EQ(fields->text("machine"), "tpu_v5e");
  EXPECT_EQ(fields->text("slice"), "2x4");
  EXPECT_EQ(fields->text("mesh"), "x=8");
  EXPECT_EQ(fields->text("mesh_order"), "row-major");
  EXPECT_TRUE(fields->has("mesh_order"));
  EXPECT_THAT(assumed_in(*fields), ElementsAre("machine, slice, mesh and devices from " + module.json()));
}

TEST(ModuleSystem, DevicesInAnyOrderStandWhereTheJsonSays) {
  const std::string odd = "[[1,3,0],[0,0,0],[0,1,0],[0,2,0],[0,3,0],[1,0,0],[1,1,0],[1,2,0]]";
  for (const std::string& coords : {jax_order, odd}) {
    const Module module{"order", module_text(8, "{{0,1,2,3,4,5,6,7}}"), of_json(coords)};
    const auto fields = completed(module, {});
    ASSERT_TRUE(fields) << to_text(fields.error());
    const auto system = read_system(*fields);
    ASSERT_TRUE(system) << to_text(system.error());
    if (coords == odd)
      EXPECT_THAT(device_numbers(*system), ElementsAre(7, 0, 1, 2, 3, 4, 5, 6));
    else
      EXPECT_THAT(device_numbers(*system), ElementsAre(0, 4, 1, 5, 7, 3, 6, 2));
  }
}

TEST(ModuleSystem, WhatIsGivenStaysAndTheDifferenceIsTold) {
  const Module module{"given", module_text(8, "{{0,1,2,3,4,5,6,7}}"), of_json(jax_order)};
  const auto other_slice = completed(module, {{"slice", "8"}});
  ASSERT_TRUE(other_slice) << to_text(other_slice.error());
  EXPECT_EQ(other_slice->text("slice"), "8");
  EXPECT_FALSE(other_slice->has("devices"));
  EXPECT_THAT(assumed_in(*other_slice), ElementsAre("machine and mesh from " + module.json(),
                                                    module.json() + " has slice 2x4 and the order of devices, which is given otherwise"));
}

TEST(ModuleSystem, JsonThatIsNoneOrSaysSomethingElseIsAnError) {
  const auto error = [](const std::string& json) {
    const Module module{"bad", module_text(8, "{}"), json};
    const auto fields = completed(module, {});
    return fields ? std::string{} : to_text(fields.error());
  };
  EXPECT_THAT(error("{"), HasSubstr("m.json:1:1: expected JSON"));
  EXPECT_THAT(error(R"({"machine": 3})"), HasSubstr("m.json:1:2: expected a text in \"machine\""));
  EXPECT_THAT(error(of_json("[[0,9,0]]")), HasSubstr("expected coordinates in the slice 2x4, found (0, 9, 0)"));
  EXPECT_THAT(error(of_json("[[0,0,0]]", R"(, "cores": [1])")), HasSubstr("expected cores below 1, as tpu_v5e has on a chip, found 1"));
  EXPECT_THAT(error("{\n \"slices\": 0}"), HasSubstr("m.json:2:2: expected a number from 1 on in \"slices\", found 0"));
  EXPECT_THAT(error(R"({"axes": {"x": 0}})"), HasSubstr("m.json:1:2: expected sizes from 1 on in \"axes\""));
  EXPECT_THAT(error(R"({"axes": {"x": 2, "x": 4}})"), HasSubstr("expected the axis \"x\" once in \"axes\""));
  EXPECT_THAT(error(of_json("[[0,0,0],[0,1,0],[0,0,0]]")), HasSubstr("expected every device once in \"coords\", found (0, 0, 0) again"));
  EXPECT_THAT(error(of_json("[[0,0,0],[0,1,0]]", R"(, "slice_index": [0, 1], "slices": 3)")), HasSubstr("expected the 2 slices of \"slice_index\" in \"slices\", found 3"));
  EXPECT_THAT(error(of_json("[[0,0,0],[0,1,0]]", R"(, "cores": [0])")), HasSubstr("expected as many \"cores\" as \"coords\", 2, found 1"));
  EXPECT_THAT(error(of_json("[[0,0,0],[0,1,0]]", R"(, "devices": [3, 3])")), HasSubstr("expected every device once in \"devices\", found 3 again"));
  EXPECT_THAT(error(of_json("[[0,0,0],[0,1,0]]", R"(, "devices": [3])")), HasSubstr("expected as many \"devices\" as \"coords\", 2, found 1"));
  EXPECT_THAT(error(R"({"flops": 3})"), IsEmpty()) << "another file of that name";
}

TEST(ModuleSystem, SliceAndMeshWhereTheMachineLeavesOneReading) {
  const auto reading = [](int devices, const std::string& groups, const std::string& machine) {
    const Module module{"reading", module_text(devices, groups)};
    const auto fields = completed(module, {{"machine", machine}});
    return fields ? fields->text("slice") + " " + fields->text("mesh") : to_text(fields.error());
  };
  EXPECT_EQ(reading(16, "{{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}}", "tpu_v5e"), "4x4 row=4,col=4");
  EXPECT_EQ(reading(8, "mesh['data'=2,'model'=4] {'model'}", "tpu_v5e"), "2x4 data=2,model=4");
  EXPECT_EQ(reading(256, "mesh['axis_0'=32,'axis_1'=8] {'axis_1'}", "dgx_h100"), "32x8 row=32,col=8");
  EXPECT_EQ(reading(8, "{}", "dgx_h100"), "1x8 row=8");
  EXPECT_EQ(reading(8, "[4,2]<=[8]", "tpu7x"), "2x2x1 row=4,col=2");
  EXPECT_THAT(reading(12, "{}", "tpu_v5e"), HasSubstr("is missing, and tpu_v5e has no slice of the 12 devices of m"));
  EXPECT_THAT(reading(1, "{}", "tpu7x"), HasSubstr("m is of 1 device, where chips of tpu7x have 2"));
}

TEST(AxesOfCollectives, AreTheFewestThatExplainAllGroups) {
  using Axes = std::vector<std::pair<std::string, int>>;
  const auto axes = [](int devices, const std::string& groups) { return axes_of_collectives(test::module_of(module_text(devices, groups))); };
  EXPECT_EQ(axes(8, "{{0,1,2,3,4,5,6,7}}"), (Axes{{"", 8}}));
  EXPECT_EQ(axes(8, "{{0,4},{1,5},{2,6},{3,7}}"), (Axes{{"", 2}, {"", 4}}));
  EXPECT_EQ(axes(8, "{{0,1,4,5},{2,3,6,7}}"), (Axes{{"", 2}, {"", 2}, {"", 2}}));
  EXPECT_EQ(axes(8, "mesh['axis_0'=1,'axis_1'=8] {'axis_1'}"), (Axes{{"", 8}}));
  EXPECT_EQ(axes(8, "{{0,1,2,4},{3,5,6,7}}"), std::nullopt) << "no axes";
  EXPECT_EQ(axes_of_collectives(test::module_of("HloModule m, num_partitions=8\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n")), std::nullopt)
      << "no collectives";
}

TEST(AxesOfCollectives, CountShiftsAlongThem) {
  const std::string permute =
      "HloModule m, num_partitions=8\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT p = f32[4] collective-permute(x), channel_id=1, "
      "source_target_pairs=";
  const auto axes = [&](const std::string& pairs) { return axes_of_collectives(test::module_of(permute + pairs + "\n}\n"))->size(); };
  EXPECT_EQ(axes("{{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}"), 2u);
  EXPECT_EQ(axes("{{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}"), 1u);
  EXPECT_EQ(axes("{{0,5},{5,2},{2,0}}"), 1u) << "no shift";
}

TEST(Partitioned, ModulesOfWholeArraysAreRefusedByTheirFirstSharding) {
  const auto error = [](const std::string& text) {
    const auto ok = check_partitioned(test::module_of(text));
    return ok ? std::string{} : to_text(ok.error());
  };
  const std::string sharded = "ENTRY main {\n  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}\n  ROOT y = f32[8,8] add(x, x)\n}\n";
  EXPECT_THAT(error("HloModule m, num_partitions=4\n" + sharded), HasSubstr("m:3:3: expected a module that is partitioned"));
  EXPECT_EQ(error("HloModule m, is_scheduled=true, num_partitions=4\n" + sharded), "") << "compiled modules keep their parameters' shardings";
  EXPECT_EQ(error("HloModule m, num_partitions=4\nENTRY main_spmd {\n  ROOT x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}\n}\n"), "")
      << "named by the partitioner";
  EXPECT_EQ(error("HloModule m, num_partitions=4\nENTRY main {\n  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}\n  ROOT y = f32[32,8] "
                  "all-gather(x), dimensions={0}, replica_groups={{0,1,2,3}}\n}\n"),
            "");
  EXPECT_THAT(error("HloModule m, num_partitions=4\nENTRY main {\n  x = f32[8,8] parameter(0)\n  ROOT y = f32[8,8] custom-call(x), "
                    "custom_call_target=\"SPMDFullToShardShape\"\n}\n"),
              HasSubstr("m:4:3: "));
}

}  // namespace
}  // namespace podsim
