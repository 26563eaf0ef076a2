#include "validation/calibration/importers/profile_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/base/test_files.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A trace of devices of one host; each does one product of `us`.
std::string one_host(int devices, double us, int first = 0) {
  std::string text = R"({"traceEvents":[)";
  for (int d = first; d < first + devices; ++d)
    text += fmt::format(R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"/device:TPU:{1}"}}}},
{{"ph":"M","pid":{0},"tid":3,"name":"thread_name","args":{{"name":"XLA Ops"}}}},
{{"ph":"X","pid":{0},"tid":3,"ts":{0},"dur":{2},"name":"fusion.1","args":{{"long_name":"%fusion.1 = bf16[8,8] fusion(bf16[8] %a), kind=kOutput"}}}},)", d + 1, d, us);
  return text + "{}]}";
}

class ProfileFolder : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path{folder_.file("log/" + name)}.parent_path());
    return folder_.file("log/" + name, text);
  }
  [[nodiscard]] std::string folder() const { return folder_.file("log"); }
  [[nodiscard]] ProfileFiles found(const std::string& below = "", std::string_view form = {}) const {
    const auto files = find_profile(below.empty() ? folder() : folder() + "/" + below, form);
    if (!files) return ADD_FAILURE() << to_text(files.error()), ProfileFiles{};
    return *files;
  }
  test::Folder folder_;
};

TEST_F(ProfileFolder, TheFolderOfARunOrAnyAboveItNamesItsFilesInTheOrderOfTheirNumbers) {
  const std::string two = put("plugins/profile/2026_01_02/host-2.xplane.pb", ""), ten = put("plugins/profile/2026_01_02/host-10.xplane.pb", "");
  put("plugins/profile/2026_01_02/host-2.trace.json.gz", "");
  for (const char* name : {"", "plugins/profile", "plugins/profile/2026_01_02"}) {
    EXPECT_THAT(found(name).files, ElementsAre(two, ten)) << name;
    EXPECT_EQ(found(name).form, "xplane");
    EXPECT_TRUE(found(name).notes.empty());
  }
  EXPECT_EQ(found("", "trace-json").files.size(), 1U);
}

TEST_F(ProfileFolder, OfSeveralRunsItIsTheLastAndOursOnlyAlone) {
  put("plugins/profile/2026_01_02/h.xplane.pb", "");
  const std::string last = put("plugins/profile/2026_01_10/h.xplane.pb", "");
  put("plugins/profile/podsim/host-0.xplane.pb", "");
  EXPECT_THAT(found().files, ElementsAre(last));
  EXPECT_THAT(found().notes, ElementsAre(HasSubstr("2026_01_10 is the last of 3 runs")));
}

TEST_F(ProfileFolder, HostsAreOneProfileAndDevicesNumberedAlikeAreNumberedOn) {
  put("a.trace.json", one_host(2, 10));
  put("b.trace.json", one_host(2, 20));
  const auto step = profile_step(found());
  ASSERT_TRUE(step) << to_text(step.error());
  std::vector<std::string> devices;
  for (const ProfiledDeviceStep& device : step->devices) devices.push_back(device.device);
  EXPECT_THAT(devices, ElementsAre("/device:TPU:0", "/device:TPU:1", "/device:TPU:2", "/device:TPU:3"));
  EXPECT_DOUBLE_EQ(step->devices[3].step.time.count(), 20e-6);
  EXPECT_THAT(step->notes, ::testing::Contains(HasSubstr("b.trace.json are numbered from 2 on")));
  const auto all = profile_operations(found());
  ASSERT_TRUE(all) << to_text(all.error());
  EXPECT_DOUBLE_EQ(all->operations.at(0).self.count(), 15e-6) << "a mean over the devices of both hosts";
}

TEST_F(ProfileFolder, HostsThatNumberThroughKeepTheirNumbers) {
  put("a.trace.json", one_host(2, 10));
  put("b.trace.json", one_host(2, 20, 6));
  const auto step = profile_step(found());
  ASSERT_TRUE(step) << to_text(step.error());
  EXPECT_EQ(step->devices.back().device, "/device:TPU:7");
  EXPECT_THAT(step->notes, ::testing::Not(::testing::Contains(HasSubstr("numbered"))));
}

TEST_F(ProfileFolder, SaysWhatIsMissing) {
  put("notes.txt", "");
  const auto none = find_profile(folder());
  ASSERT_FALSE(none);
  EXPECT_THAT(to_text(none.error()), HasSubstr("expected a folder with plugins/profile/RUN/*.xplane.pb, found none in it"));
  const auto table = find_profile(folder(), "hlo-stats");
  ASSERT_FALSE(table);
  EXPECT_THAT(to_text(table.error()), HasSubstr("expected a file"));
  EXPECT_TRUE(files_of_profile(folder()).empty());
  put("broken.xplane.pb", "\xff");
  const auto broken = profile_operations(found());
  ASSERT_FALSE(broken);
  EXPECT_THAT(to_text(broken.error()), HasSubstr("broken.xplane.pb"));
}

}  // namespace
}  // namespace podsim
