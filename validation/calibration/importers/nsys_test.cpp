// Exports of Nsight Systems: a real one, one with NVTX ranges made here, bad ones.
#include "validation/calibration/importers/nsys.hpp"

#include <gtest/gtest.h>

#include "sim/base/test_files.hpp"
#include "sim/config/database.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {
namespace {

const std::string real_export = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/nsight_2025_5.sqlite";

Expected<ProfiledOperations> operations_of(const std::string& file) {
  const auto files = find_profile(file, "nsys");
  if (!files) return files.error();
  return profile_operations(*files);
}

std::string database(const test::Folder& folder, const std::vector<std::string>& statements) {
  const std::string file = folder.file("export.sqlite");
  auto database = Database::open(file, Database::Mode::write);
  EXPECT_TRUE(database && database->run_all(statements));
  return file;
}

const std::vector<std::string> tables{"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
                                      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER)",
                                      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER)",
                                      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT, textId INTEGER)",
                                      "INSERT INTO StringIds VALUES (1, 'gemm_kernel'), (2, 'relu_kernel'), (3, 'step')"};

std::vector<std::string> with(std::vector<std::string> statements) {
  statements.insert(statements.begin(), tables.begin(), tables.end());
  return statements;
}

TEST(Nsys, ARealExport) {
  EXPECT_TRUE(is_nsys_export(real_export));
  const auto found = operations_of(real_export);
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->machines, std::vector<std::string>{"NVIDIA GeForce RTX 3060"});
  Seconds busy;
  for (const ProfiledOperation& operation : found->operations) busy = busy + operation.self;
  EXPECT_NEAR(busy.count(), (1440 + 1344 + 1056 + 1728 + 1376 + 864) * 1e-9, 1e-12);  // kernels, graphs, the copy: as sqlite3 adds them up
}

TEST(Nsys, KernelsHaveTheirRangesAndStepsAreTheRangesThatRepeat) {
  const test::Folder folder;
  std::vector<std::string> rows;
  for (int step = 0; step < 3; ++step) {
    const int at = 100000 * step;
    rows.push_back("INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(at) + ", " + std::to_string(at + 90000) + ", 7, NULL, 3)");
    rows.push_back("INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(at + 10) + ", " + std::to_string(at + 20) + ", 7, 'mlp', NULL)");
    for (int k = 0; k < 2; ++k) {
      const int id = 2 * step + k;
      rows.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(at + 15 + 20 * k) + ", " + std::to_string(at + 16 + 20 * k) + ", 7, " + std::to_string(id) + ")");
      rows.push_back("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(at + 1000 + 40000 * k) + ", " + std::to_string(at + 31000 + 40000 * k) + ", 0, 7, " + std::to_string(id) + ", " +
                     std::to_string(k + 1) + ")");
    }
  }
  const auto found = operations_of(database(folder, with(rows)));
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->steps, 3);
  ASSERT_EQ(found->operations.size(), 2U);
  for (const ProfiledOperation& operation : found->operations) EXPECT_NEAR(operation.self.count(), 3 * 30e-6, 1e-12) << operation.name;
  EXPECT_EQ(found->operations.front().provenance, "mlp");  // the innermost range around the launch
  EXPECT_EQ(found->operations.back().provenance, "step");
}

TEST(Nsys, BadOnesAreRefused) {
  const test::Folder folder;
  const std::string text = folder.file("text.sqlite", "hello");
  EXPECT_FALSE(is_nsys_export(text));
  EXPECT_EQ(to_text(operations_of(text).error()), text + ": expected a SQLite file, found something else");
  const std::string none = database(folder, with({}));
  EXPECT_EQ(to_text(operations_of(none).error()), none + ": expected kernels of GPUs in the table CUPTI_ACTIVITY_KIND_KERNEL, found none (profile with --trace=cuda,nvtx)");
  std::filesystem::remove(none);
  const std::string backwards = database(folder, with({"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 10, 0, 7, 1, 1)"}));
  EXPECT_EQ(to_text(operations_of(backwards).error()), backwards + ": expected times of CUPTI_ACTIVITY_KIND_KERNEL that do not end before they begin, found 20 to 10 ns");
}

}  // namespace
}  // namespace podsim
