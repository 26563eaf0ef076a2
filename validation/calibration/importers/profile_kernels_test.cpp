// Kernels of GPUs as operations of a step: real profiles first. Their figures are sums over the events of the JSON, by a few lines of Python.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/profile_operations.hpp"
#include "validation/calibration/importers/testing.hpp"

namespace podsim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string profiles_folder = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/";

ProfiledOperations real_profile(const std::string& name, const ProfileOptions& options = {}) {
  const auto files = find_profile(profiles_folder + name);
  if (!files) return ADD_FAILURE() << to_text(files.error()), ProfiledOperations{};
  auto found = profile_operations(*files, options);
  if (!found) return ADD_FAILURE() << to_text(found.error()), ProfiledOperations{};
  return *std::move(found);
}

double in_us(Seconds time) { return time.count() * 1e6; }

/// The time of all operations of a category, in us.
double of_category(const ProfiledOperations& profile, std::string_view category) {
  double sum = 0;
  for (const ProfiledOperation& operation : profile.operations) sum += operation.category == category ? in_us(operation.self) : 0;
  return sum;
}

std::string bytes_of_file(const std::string& name) {
  auto source = source_of_file(profiles_folder + name);
  if (!source) return ADD_FAILURE() << to_text(source.error()), std::string{};
  auto bytes = read_all(**source, std::size_t{1} << 28, name);
  return bytes ? *bytes : std::string{};
}

TEST(ProfileKernels, StepsOfJaxOnAnH200AreTheSameFromBothOfItsExporters) {
  const ProfiledOperations xplane = real_profile("jax_h200.xplane.pb.gz"), json = real_profile("jax_h200.trace.json.gz");
  for (const ProfiledOperations* profile : {&xplane, &json}) {
    EXPECT_EQ(profile->steps, 3);
    EXPECT_NEAR(in_us(profile->time), 339738.746, 1e-3) << "from the first kernel to the last";
    EXPECT_EQ(profile->operations.size(), 177U) << "nodes of the five command buffers";
    double busy = 0;
    for (const ProfiledOperation& operation : profile->operations) busy += in_us(operation.self);
    EXPECT_NEAR(busy, 338587.611, 1e-3) << "the time in which any kernel runs";
    EXPECT_NEAR(of_category(*profile, "matmul"), 242657.049, 2.6 * 3) << "less what a kernel runs beside the one before";
    EXPECT_THAT(profile->notes, Contains("3 steps: the kernels outside of loops run 3 times; `steps` may say otherwise"));
    EXPECT_THAT(profile->notes, Contains(HasSubstr("177 kernels in command buffers (CUDA graphs), 100.0 % of the time of all kernels")));
  }
  EXPECT_THAT(xplane.machines, ElementsAre("NVIDIA H200"));
  ASSERT_EQ(xplane.operations.size(), json.operations.size());
  for (std::size_t o = 0; o < json.operations.size(); ++o) {
    EXPECT_EQ(xplane.operations[o].name, json.operations[o].name);
    EXPECT_EQ(xplane.operations[o].category, json.operations[o].category);
    EXPECT_EQ(xplane.operations[o].occurrences, json.operations[o].occurrences);
    EXPECT_NEAR(in_us(xplane.operations[o].self), in_us(json.operations[o].self), 1e-6);
  }
}

TEST(ProfileKernels, AStepOfThemIsOneOfThree) {
  const auto files = find_profile(profiles_folder + "jax_h200.trace.json.gz");
  ASSERT_TRUE(files);
  Seconds all;
  for (int number = 1; number <= 3; ++number) {
    const auto step = profile_step(*files, {}, {.number = number});
    ASSERT_TRUE(step) << to_text(step.error());
    EXPECT_EQ(step->steps, 3);
    ASSERT_EQ(step->devices.size(), 1U);
    EXPECT_EQ(step->devices[0].events.size(), 522U) << "1,566 kernels in all";
    all += step->devices[0].step.time;
  }
  EXPECT_NEAR(in_us(all), 339738.746, 20) << "without the gaps between them";
}

TEST(ProfileKernels, StepsOfPyTorchHaveTheOperatorsThatLaunchedThem) {
  const ProfiledOperations torch = real_profile("torch_h200.pt.trace.json.gz");
  EXPECT_EQ(torch.steps, 2);
  EXPECT_TRUE(torch.has_operators);
  EXPECT_THAT(torch.machines, ElementsAre("NVIDIA H200"));
  EXPECT_NEAR(in_us(torch.time), 183616.0, 0.1);
  EXPECT_NEAR(of_category(torch, "matmul"), 131197.528, 0.1);
  EXPECT_NEAR(of_category(torch, "optimiser"), 13075.588, 0.1);
  EXPECT_THAT(torch.notes, Contains("2 steps: the annotations train_step"));
  EXPECT_THAT(torch.notes, Contains("PyTorch's 724 kernels, all with the operator that launched them"));
  EXPECT_EQ(torch.operations.front().provenance, "aten::gather");
}

TEST(ProfileKernels, AnEmptyStepThatPyTorchOpensAfterTheLastIsNone) {
  const ProfiledOperations profile = real_profile("hta_mi250_minitoy.pt.trace.json.gz");
  EXPECT_EQ(profile.steps, 1);
  EXPECT_NEAR(in_us(profile.time), 8911.5, 1) << "from the first kernel to the last";
  EXPECT_THAT(profile.notes, Contains("1 step: the annotations ProfilerStep#N but 1 in which no kernel was launched"));
}

TEST(ProfileKernels, CollectivesOfPyTorchHaveSizesAndWhatTheyExpose) {
  const ProfiledOperations profile = real_profile("hta_nccl_rank0.pt.trace.json.gz");
  EXPECT_EQ(profile.steps, 3);
  double exposed = 0, whole = 0;
  std::vector<std::int64_t> bytes;
  for (const ProfiledOperation& operation : profile.operations) {
    if (operation.category != "all-reduce" && operation.category != "broadcast") continue;
    EXPECT_EQ(operation.group, 2);
    EXPECT_EQ(operation.occurrences, 3);
    exposed += in_us(operation.self);
    whole += in_us(operation.self + operation.beside);
    if (operation.category == "all-reduce") bytes.push_back(operation.bytes.count());
  }
  EXPECT_NEAR(whole, 46876.493, 0.01);
  EXPECT_NEAR(exposed, 157500.078 - 118309.413, 0.01) << "the time of all kernels less that of all others";
  EXPECT_THAT(bytes, ::testing::UnorderedElementsAre(4 * 6637568, 4 * 2431040, 4 * 2049000, 4 * 7875584, 4 * 6563840));
  EXPECT_THAT(profile.notes, Contains("rank 0 of 2"));
}

// ---- Made-up ones -------------------------------------------------------------------------------------------------------------------------------

struct GpuKernel {
  int stream;
  double begin, duration;
  std::string name, operation{};
};

/// A GPU as jax.profiler tells it.
std::string gpu_trace(const std::vector<GpuKernel>& kernels) {
  std::string text = R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},)";
  for (const int stream : {1, 2}) text += fmt::format(R"x({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":"Stream #{0}(Compute)"}}}},)x", stream);
  for (const GpuKernel& kernel : kernels)
    text += fmt::format(R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":"{}","args":{{"correlation_id":"1"{}}}}},)", kernel.stream, kernel.begin, kernel.duration, kernel.name,
                        kernel.operation.empty() ? "" : fmt::format(R"(,"hlo_op":"{}")", kernel.operation));
  return text + "{}]}";
}

Expected<ProfiledOperations> operations_in(const std::string& text) { return profile_operations_in("trace-json", text, "t.json", {}); }

TEST(ProfileKernels, KernelsOfOneOperationAreAddedUp) {
  const auto found = operations_in(gpu_trace({{1, 0, 2, "Memset 0", "custom-call.5"}, {1, 2, 30, "nvjet_a", "custom-call.5"}, {1, 32, 3, "splitKreduce", "custom-call.5"}, {1, 40, 5, "fusion_7", "while.1::fusion.7"},
                                   {2, 30, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all-reduce-start.2"}}));
  ASSERT_TRUE(found) << to_text(found.error());
  ASSERT_EQ(found->operations.size(), 3U);
  const ProfiledOperation &product = found->operations[0], &fusion = found->operations[1], &reduce = found->operations[2];
  EXPECT_EQ(product.name, "custom-call.5");
  EXPECT_EQ(product.category, "matmul") << "of the kernel that takes most of its time";
  EXPECT_EQ(product.occurrences, 1);
  EXPECT_DOUBLE_EQ(in_us(product.self), 35);
  EXPECT_EQ(fusion.name, "fusion.7");
  EXPECT_FALSE(fusion.is_kernel);
  EXPECT_EQ(reduce.name, "all-reduce.2");
  EXPECT_EQ(reduce.category, "all-reduce");
  EXPECT_DOUBLE_EQ(in_us(reduce.self), 10) << "exposed from 35 to 40 and from 45 to 50";
  EXPECT_DOUBLE_EQ(in_us(reduce.beside), 10);
}

TEST(ProfileKernels, KernelsWithoutAnOperationStandUnderTheirNames) {
  const auto found = operations_in(gpu_trace({{1, 0, 5, "MemcpyH2D"}, {1, 5, 7, "loop_add_fusion", "command_buffer"}}));
  ASSERT_TRUE(found) << to_text(found.error());
  ASSERT_EQ(found->operations.size(), 2U);
  EXPECT_EQ(found->operations[0].name, "MemcpyH2D");
  EXPECT_EQ(found->operations[0].category, "copy");
  EXPECT_EQ(found->operations[1].name, "loop_add_fusion");
  EXPECT_TRUE(found->operations[1].is_kernel);
}

std::string refusal_of_kernels(const std::string& text) {
  const auto found = operations_in(text);
  return found ? "no error" : to_text(found.error());
}

TEST(ProfileKernels, BadKernelsAreToldWithTheirPlace) {
  EXPECT_EQ(refusal_of_kernels("{\"traceEvents\":[\n" + gpu_trace({{1, 0, -5, "k", "fusion.1"}}).substr(16)).substr(0, 87), "t.json:2:244: expected a duration of 0 or more of the kernel \"k\", found -5 us");
  const auto kineto = [](const std::string& fields) { return "{\"traceEvents\":[\n  {\"ph\":\"X\",\"cat\":\"kernel\"" + fields + "}]}"; };
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"name":"k","ts":1)")), "t.json:2:3: expected a number \"dur\" of the kernel \"k\", found none");
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"name":"k","dur":1)")), "t.json:2:3: expected a number \"ts\" of the kernel \"k\", found none");
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"ts":1,"dur":1)")), "t.json:2:3: expected the name of a kernel, found none");
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"name":"k","ts":1,"dur":-2)")), "t.json:2:3: expected a duration of 0 or more of the kernel \"k\", found -2 us");
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"name":"k","ts":1e300,"dur":2)")).substr(0, 27), "t.json:2:3: expected a time");
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"name":"k","ts":"1","dur":2)")).substr(0, 56), "t.json:2:3: this event cannot be read: its field \"ts\": T");
  EXPECT_EQ(refusal_of_kernels(kineto(R"(,"name":"k","ts":1,"dur":2,"args":{"device":"none","stream":-3,"External id":1e99})")), "no error");
}

TEST(ProfileKernels, ProcessesThatAreTextsAreReadOver) {
  const auto found = operations_in(R"x({"traceEvents":[{"ph":"X","cat":"Trace","ts":1,"dur":187313.289,"pid":"Spans","tid":"PyTorch Profiler","name":"PyTorch Profiler (0)","args":{"Op count":0}},
{"name":"Record Window End","ph":"i","s":"g","pid":"","tid":"","ts":2},{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}}]})x");
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->operations.size(), 1U);
  EXPECT_DOUBLE_EQ(in_us(found->time), 2);
}

TEST(ProfileKernels, AnyFrontOfARealTraceIsAnErrorAtItsPlace) {
  const std::string text = bytes_of_file("torch_h200.pt.trace.json.gz").substr(0, 400000);
  for (std::size_t length = 1; length < text.size(); length += 7919) EXPECT_THAT(refusal_of_kernels(text.substr(0, length)), HasSubstr(": the JSON is cut short here")) << length;
  const std::string bytes = bytes_of_file("jax_h200.xplane.pb.gz");
  for (std::size_t length = 1; length < bytes.size(); length += 4999) EXPECT_FALSE(profile_operations_in("xplane", bytes.substr(0, length), "x.pb")) << length;
}

TEST(ProfileKernels, AnImportOfCollectivesSaysWhyThereAreNone) {
  const auto imported = import_observations("trace-json", gpu_trace({{1, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all-reduce.1"}}), "t.json");
  EXPECT_THAT(testing::error_of(imported), HasSubstr("1 GPU skipped: kernels of collectives do not tell their sizes"));
}

TEST(ProfileKernels, StepsAreWhatDividesNineTenthsOfTheKernels) {
  const auto operations = [](const std::vector<double>& counts) {
    std::vector<ProfiledOperation> all;
    for (const double count : counts) all.push_back({"k", "elementwise", count, {}, {}, {}, {}});
    return all;
  };
  EXPECT_EQ(steps_by_divisor(operations({3, 3, 12, 12, 12, 24}), 1).steps, 3);
  EXPECT_EQ(steps_by_divisor(operations({1, 4, 4, 4}), 1).steps, 1);
  EXPECT_EQ(steps_by_divisor(operations({2, 3, 3, 12}), 1).steps, 3) << "cut short: as most occur";
  EXPECT_EQ(steps_by_divisor(operations({5, 5, 5, 5, 5, 5, 5, 5, 5, 1}), 1).steps, 5) << "what ran once is before the steps";
}

}  // namespace
}  // namespace podsim
