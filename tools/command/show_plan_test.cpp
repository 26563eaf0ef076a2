// `show plan --jax`, and the device ids that it shares with `show mesh`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::podsim;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string inputs = std::string{PODSIM_SOURCE_DIR} + "/tests/golden/input/", gemm_plan = inputs + "plan.textproto",
                  block_plan = inputs + "jax_plan.textproto";

TEST(ShowPlan, JaxTakesTheDevicesInTheOrderOfShowMesh) {
  for (const std::string system : {"", " --slice 4x2x1 --mesh row=4,col=2", " --mesh-order jax", " --mesh-order snake", " --topology crossbar",
                                   " --slice 2x2x1 --pods 2 --mesh row=4,col=2"}) {
    SCOPED_TRACE(system);
    const auto plan = json_of("show plan " + block_plan + " --jax" + system);
    const std::string own = system.find("--mesh ") == std::string::npos ? " --mesh row=4,col=2" : "",
                      slice = system.find("--slice") == std::string::npos ? " --slice 2x2x2" : "";
    EXPECT_EQ(plan["device_order"], json_of("show mesh --machine tpu_v4" + slice + own + system)["device_ids_row_major"]);
    EXPECT_EQ(plan["mesh"].dump(), R"({"row":4,"col":2})");
  }
}

TEST(ShowPlan, KeysAreThoseOfTheReport) {
  const auto plan = json_of("show plan " + block_plan + " --jax --axis-names row=data,col=model");
  EXPECT_THAT(test::keys(plan), ElementsAre("mesh", "axis_names", "plan_axes", "device_order", "layers", "collectives", "notes"));
  EXPECT_THAT(test::keys(plan["layers"][0]),
              ElementsAre("name", "pass", "tensor", "role", "transposed", "shape", "spec", "dtype", "bytes_per_device"));
  EXPECT_THAT(test::keys(plan["collectives"][0]),
              ElementsAre("name", "pass", "computes", "algorithm", "dataflow", "transposed", "slice_count", "jax", "fewest", "plan",
                          "jax_received_bytes", "fewest_received_bytes", "plan_received_bytes"));
  EXPECT_EQ(plan["axis_names"].dump(), R"(["data","model"])");
}

TEST(ShowPlan, ThePassIsThatOfThePlanOrTheOneThatIsAskedFor) {
  const auto passes = [](const std::string& pass) {
    std::set<std::string> found;
    const auto shown = json_of("show plan " + block_plan + " --jax" + pass);
    for (const auto& array : shown["layers"]) found.insert(array["pass"].get<std::string>());
    return found;
  };
  EXPECT_THAT(passes(""), ElementsAre("backward", "forward"));
  EXPECT_THAT(passes(" --pass forward"), ElementsAre("forward"));
  EXPECT_THAT(passes(" --pass backward"), ElementsAre("backward"));
}

TEST(ShowPlan, ThePythonNamesMeshAndIds) {
  const auto shown = podsim("show plan " + gemm_plan + " --jax --axis-names row=data");
  EXPECT_EQ(shown.status, exit_done) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("ids = [0, 2, 1, 3]\n"
                                    "by_id = {d.id: d for d in jax.devices()}\n"
                                    "mesh = jax.sharding.Mesh(np.array([by_id[i] for i in ids]).reshape(2, 2), ('data', 'col'))\n"));
  EXPECT_THAT(shown.out, HasSubstr("P('data', 'col')"));
  const auto large = podsim("show plan " + gemm_plan + " --jax --slice 8x8x8 --straggler 0.0.0=0.5 --mesh row=64,col=8");
  EXPECT_THAT(large.out, StartsWith("ids = ...  # 512 ids of devices: --format json lists them as device_order\n")) << large.err;
}

TEST(ShowPlan, BadAxisNamesSayWhereAndWhatWasExpected) {
  const auto error = [](const std::string& line) {
    const auto outcome = podsim("show plan " + gemm_plan + " " + line);
    EXPECT_EQ(outcome.status, 2) << line;
    EXPECT_EQ(outcome.out, "") << line;
    return outcome.err;
  };
  EXPECT_EQ(error("--axis-names row=data"), "podsim: error: --axis-names: belongs to --jax\n");
  EXPECT_EQ(error("--jax --axis-names row=data,column=model"), "--axis-names:1:10: no mesh axis \"column\" in row=2,col=2, did you mean \"col\"?\n");
  EXPECT_EQ(error("--jax --axis-names row=data,row=model"), "--axis-names:1:10: expected each axis at most once, got \"row\" again\n");
  EXPECT_EQ(error("--jax --axis-names row=x,col=x"),
            "--axis-names:1:11: expected a name of its own for each axis, got \"x\", which is that of row\n");
  EXPECT_EQ(error("--jax --axis-names data,model"), "--axis-names:1:1: expected AXIS=NAME, as in row=data,col=model; got \"data\"\n");
  EXPECT_THAT(error(gemm_plan + " --jax"), HasSubstr("one plan"));
  EXPECT_THAT(error("--jax --slice 2x2x2 --straggler 0.0.0=0.5 --mesh row=2,col=2,depth=2"),
              HasSubstr("a workload needs a mesh of two axes, row and col"));
}

}  // namespace
}  // namespace podsim
