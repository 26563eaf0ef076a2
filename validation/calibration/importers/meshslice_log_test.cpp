// Logs of MeshSlice's benchmarks: every header that they print, a whole log, and the machine that a log is from.
#include "validation/calibration/importers/meshslice_log.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "validation/calibration/fit/test_calibrate.hpp"
#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/testing.hpp"

namespace podsim {
namespace {

using testing::imported;
using testing::notes_say;

using enum ObservedOp;

constexpr int rows = 4, columns = 8;  // of the device mesh: along x and along y

std::string log_error_of(const std::string& text, const ImportOptions& options = {.devices = 4}) {
  const auto result = import_meshslice_log(text, "log", options);
  return result ? "no error" : to_text(result.error());
}

/// A header as BenchCollectives2D.py prints it, and what is below it.
struct Section {
  std::string_view header;
  ObservedOp op;
  std::string_view axis;
  std::optional<int> dim;
};
constexpr std::array<Section, 10> sections = {{{"Allgather_y: dim=0", all_gather, "y", 0},
                                               {"Allgather_y dim=1: ", all_gather, "y", 1},
                                               {"Allgather_x: dim=0", all_gather, "x", 0},
                                               {"Allgather_x: ", all_gather, "x", 1},
                                               {"ReduceScatter_y: ", reduce_scatter, "y", 0},
                                               {"ReduceScatter_y: dim=1", reduce_scatter, "y", 1},
                                               {"ReduceScatter_x: ", reduce_scatter, "x", 0},
                                               {"ReduceScatter_x: dim=1", reduce_scatter, "x", 1},
                                               {"SendRecv_y: ", permute, "y", std::nullopt},
                                               {"SendRecv_x: ", permute, "x", std::nullopt}}};

/// Bytes of a size that the benchmark prints, in KB: what the operation takes on each device.
std::int64_t input_bytes(const Section& section, int kilobytes) {
  const std::int64_t shard = std::int64_t{kilobytes} * 1024;
  return section.op == reduce_scatter ? shard * (section.axis == "x" ? rows : columns) : shard;
}

/// What the script prints when it is run once per operation: the devices, the shapes of every array, headers and times.
std::string log_of(const std::function<double(const Section&, int kilobytes)>& milliseconds) {
  std::string text;
  std::optional<ObservedOp> op;
  for (const Section& section : sections) {
    if (op != section.op)
      text += fmt::format("Global device count: {}\nLocal device count: {}\n[TpuDevice(id=0, process_index=0, coords=(0,0,0), core_on_chip=0), "
                          "TpuDevice(id=1, process_index=0, coords=(1,0,0), core_on_chip=0)]\n[]\nRunning benchmark on ({}, {}) devices.\n"
                          "Along dim=0\n",
                          rows * columns, columns, rows, columns);
    op = section.op;
    text += fmt::format("\n{}\n", section.header);
    for (int i = 0; i < 15; ++i) {
      const int kilobytes = 2 * 4096 * (1 << i) / 1024;
      text += fmt::format("[{0}, {1}]\n({0}, {1})\n({0}, {1})\n", 1 << i, columns * 4096);
      text += fmt::format("Size: {}KB,\t Time: {:.4f}+-{:.4f}ms\n", kilobytes, milliseconds(section, kilobytes), 0.0012);
    }
    if (section.header == "SendRecv_y: ") text += "Along dim=0\n";
  }
  return text + "Along dim=1\n";
}

TEST(MeshSliceLog, EveryHeaderOfTheBenchmark) {
  for (const Section& section : sections) {
    SCOPED_TRACE(section.header);
    const std::string text = fmt::format("\n{}\nSize: 8KB,\t Time: 0.0123+-0.0004ms\n", section.header);
    const Imported result = imported(import_meshslice_log(text, "log", {.axes = {{"x", rows}, {"y", columns}}}));
    ASSERT_EQ(result.observations.size(), 1U);
    const Observation& row = result.observations[0];
    EXPECT_EQ(row.op, section.op);
    EXPECT_EQ(row.axis, section.axis);
    EXPECT_EQ(row.array_dim, section.dim);
    EXPECT_EQ(row.devices, section.axis == "x" ? rows : columns);
    EXPECT_EQ(row.bytes, Bytes{input_bytes(section, 8)});
    EXPECT_DOUBLE_EQ(row.time.count(), 12.3e-6);
  }
}

TEST(MeshSliceLog, AWholeLogOfAllThreeOperations) {
  double time = 0;
  const Imported result = imported(import_meshslice_log(log_of([&](const Section&, int) { return time += 0.001; }), "log"));
  ASSERT_EQ(result.observations.size(), sections.size() * 15);
  for (std::size_t i = 0; i < result.observations.size(); ++i) {
    const Section& section = sections.at(i / 15);
    SCOPED_TRACE(fmt::format("{} {}", section.header, i % 15));
    const Observation& row = result.observations[i];
    EXPECT_EQ(row.op, section.op);
    EXPECT_EQ(row.axis, section.axis);
    EXPECT_EQ(row.array_dim, section.dim);
    EXPECT_EQ(row.devices, section.axis == "x" ? rows : columns);
    EXPECT_EQ(row.bytes, Bytes{input_bytes(section, 8 << (i % 15))});
    EXPECT_NEAR(row.time.count(), 1e-6 * static_cast<double>(i + 1), 1e-12);
  }
  EXPECT_TRUE(notes_say(result, "of the host"));
  EXPECT_TRUE(notes_say(result, "467 lines skipped"));  // three per size, five of each start, `Along dim` twice more
}

/// What the benchmark would have measured on a known system.
std::string log_on(const System& known) {
  return log_of([&](const Section& section, int kilobytes) {
    const int devices = section.axis == "x" ? rows : columns;
    const auto time = predict(testing::observed(section.op, std::string{section.axis}, devices, input_bytes(section, kilobytes)), known);
    EXPECT_TRUE(time) << to_text(time.error());
    return time ? 1e3 * time->count() : 0;
  });
}

TEST(MeshSliceLog, CalibratingFromALogRecoversTheRingsOfBothAxes) {
  const auto on = [](const Machine& machine) {
    return testing::pod_with(machine, fmt::format("{}x{}", rows, columns), {{"x", rows}, {"y", columns}});
  };
  const System known = on(testing::some_machine({{"link[x].bandwidth", "30 GB/s"}, {"link[y].bandwidth", "72 GB/s"}, {"software.launch", "20 us"}}));
  const std::string log = log_on(known);
  const Imported result = imported(import_observations("meshslice-log", log, "log"));
  const auto found = calibrate(result.observations, on(testing::some_machine()), {});
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_NEAR(testing::number_at(found->machine, "link[x].bandwidth"), 30e9, 0.3e9) << testing::to_text(*found);
  EXPECT_NEAR(testing::number_at(found->machine, "link[y].bandwidth"), 72e9, 0.7e9) << testing::to_text(*found);
  EXPECT_LT(found->median_abs_error, 0.01);
}

// Most of it has no closed form: reduce-scatters on lines, and all along y. Simulated at every step of the fit it takes minutes.
TEST(MeshSliceLog, CalibratingFromALogRecoversAPodWithoutWraparound) {
  const auto pod = [](const Machine& machine) { return testing::open_pod(machine, {2, 4, 4}, {{"x", rows}, {"y", columns}}); };
  const System known = pod(testing::some_machine({{"link.bandwidth", "30 GB/s"}, {"software.launch", "20 us"}}));
  const std::string log = log_on(known);
  const Imported result = imported(import_observations("meshslice-log", log, "log"));
  const auto found = calibrate(result.observations, pod(testing::some_machine()), {});
  ASSERT_TRUE(found) << to_text(found.error());
  for (const char* path : {"link[x].bandwidth", "link[y].bandwidth", "link[z].bandwidth"}) {
    if (testing::undetermined_of(*found, path) != nullptr) continue;
    EXPECT_NEAR(testing::number_at(found->machine, path), 30e9, 0.5e9) << path << "\n" << testing::to_text(*found);
  }
  EXPECT_LT(found->median_abs_error, 0.01);
  std::size_t simulated = 0;
  for (const Residual& row : found->residuals) {
    const Observation& o = result.observations[row.observation];
    if (closed_form(o, known)) continue;
    const auto time = predict(o, *with_machine(known, found->machine));
    ASSERT_TRUE(time);
    EXPECT_NEAR(row.predicted.count() / time->count(), 1, 1e-5) << name_of(o.op) << " along " << o.axis << ": what is reported is what is simulated";
    ++simulated;
  }
  EXPECT_EQ(simulated, 7U * 15) << "along y, and the reduce-scatters along x";
}

TEST(MeshSliceLog, TellsTheMeshThatItsRunsShare) {
  const std::string row = "Allgather_x: dim=0\nSize: 8KB,\t Time: 1ms\n", first = "Running benchmark on (4, 8) devices.\n";
  const auto mesh = [](const std::string& text) { return imported(import_meshslice_log(text, "log", {.devices = 4})).mesh; };
  const std::vector<std::pair<std::string, int>> expected{{"x", 4}, {"y", 8}};
  EXPECT_EQ(mesh(first + row), expected);
  EXPECT_EQ(mesh(first + row + first + row), expected);
  EXPECT_TRUE(mesh(first + row + "Running benchmark on (8, 4) devices.\n" + row).empty());
  EXPECT_TRUE(mesh("Running benchmark on 8 devices.\n" + row).empty());
  EXPECT_TRUE(mesh(row).empty());
}

TEST(MeshSliceLog, TheBenchmarkOnOneAxisHasNoNameForIt) {
  const std::string text = "Running benchmark on 8 devices.\n\nAllgather: \nSize: 8KB,\t Time: 0.0123+-4e-05ms\n\nReduceScatter: \n"
                           "Size: 8KB,\t Time: 0.02+-0.1ms\n\nSendRecv: \nSize: 8KB,\t Time: 0.03+-0.1ms\n";
  const Imported result = imported(import_meshslice_log(text, "log"));
  ASSERT_EQ(result.observations.size(), 3U);
  const std::array<ObservedOp, 3> ops = {all_gather, reduce_scatter, permute};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.observations[i].op, ops.at(i));
    EXPECT_EQ(result.observations[i].axis, "");
    EXPECT_EQ(result.observations[i].devices, 8);
    EXPECT_EQ(result.observations[i].bytes, Bytes{i == 1 ? 8 * 8192 : 8192});
  }
  EXPECT_EQ(result.observations[0].array_dim, 0);
  EXPECT_EQ(result.observations[2].array_dim, std::nullopt);
}

TEST(MeshSliceLog, DevicesAreThoseOfTheLogElseOfTheOptions) {
  const std::string row = "Allgather_x: dim=0\nSize: 8KB,\t Time: 1ms\n", started = "Running benchmark on (4, 8) devices.\n";
  const auto devices = [](const std::string& text, const ImportOptions& options) {
    return imported(import_meshslice_log(text, "log", options)).observations.at(0).devices;
  };
  EXPECT_EQ(devices(row, {.devices = 16}), 16);
  EXPECT_EQ(devices(row, {.devices = 16, .axes = {{"x", 2}}}), 2);
  EXPECT_EQ(devices(started + row, {.devices = 16}), 4);
  EXPECT_EQ(devices(started + row, {.axes = {{"x", 4}}}), 4);
  EXPECT_EQ(log_error_of(started + row, {.axes = {{"x", 8}}}), "log:2:1: the log has 4 devices along the axis \"x\", `axis_sizes` 8");
  EXPECT_EQ(log_error_of(row, {}), "log:1:1: the log does not tell how many devices the axis \"x\" has, and no option does (`axis_sizes` x=N)");
  EXPECT_EQ(log_error_of("Running benchmark on (4; 8) devices.\n"), "log:1:23: expected rows and columns, found \"4; 8\"");
  EXPECT_EQ(log_error_of("Running benchmark on (4, ) devices.\n").substr(0, 9), "log:1:26:");
}

TEST(MeshSliceLog, BadLinesAreToldWithTheirPlace) {
  EXPECT_EQ(log_error_of("Size: 8KB,\t Time: 1ms\n"), "log:1:1: this size stands under no header (Allgather_y: dim=0)");
  EXPECT_EQ(log_error_of("Allgather_y: dim=0\nSize: 8kb,\t Time: 1ms\n"), "log:2:7: a size must be a number of B, KB, MB or GB up to 4 TiB, got \"8kb\"");
  EXPECT_EQ(log_error_of("Allgather_y: dim=0\nSize: 8KB,\t Time: 1\n"), "log:2:19: a time must end in ns, us, ms or s, got \"1\"");
  EXPECT_EQ(log_error_of("Allgather_y: dim=0\nSize: 8KB\n"), "log:2:1: expected Size: <size>, Time: <time>, got \"Size: 8KB\"");
  EXPECT_EQ(log_error_of("nothing\n"), "log:1:1: there is no line Size: <size>, Time: <time>");
}

TEST(MeshSliceLog, AHeaderOfNoKnownFormIsAnError) {
  const std::string rows_before = "Allgather_y: dim=0\nSize: 8KB,\t Time: 1ms\n";
  const auto error = [&](const std::string& header) { return log_error_of(rows_before + header + "\nSize: 8KB,\t Time: 1ms\n"); };
  for (const std::string header : {"Gather_y: dim=0", "Gather_y dim=0:", "Gather_y:", "Gather: "})
    EXPECT_EQ(error(header), "log:3:1: \"" + header.substr(0, header.find_first_of(": ")) +
                                 "\" is no header: expected Allgather_x: dim=0 or the like, of Allgather, ReduceScatter and SendRecv");
  EXPECT_EQ(error("  AllReduce_x: dim=0").substr(0, 35), "log:3:3: \"AllReduce_x\" is no header");
  EXPECT_EQ(error("Allgather_y: "), "log:3:1: expected dim=0 or dim=1 in the header \"Allgather_y\", found neither");
  EXPECT_EQ(error("Allgather_y: dim=2"), "log:3:14: expected dim=0 or dim=1 in the header \"Allgather_y\", found \"dim=2\"");
  EXPECT_EQ(error("Allgather_y dim=1: dim=0"), "log:3:20: expected nothing behind this header, found \"dim=0\"");
  EXPECT_EQ(error("SendRecv_y: dim=0"), "log:3:13: expected nothing beside \"SendRecv_y\", which has no dimension, found \"dim=0\"");
  EXPECT_EQ(error("ReduceScatter_y dim=1").substr(0, 62), "log:3:1: \"ReduceScatter_y dim=1\" is no header: it has no colon");
  EXPECT_EQ(error("ReduceScatter-y:").substr(0, 39), "log:3:1: \"ReduceScatter-y\" is no header");
}

}  // namespace
}  // namespace podsim
