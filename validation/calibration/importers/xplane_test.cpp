#include "validation/calibration/importers/xplane.hpp"

#include <gtest/gtest.h>

#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/profile_operations.hpp"
#include "validation/calibration/importers/testing.hpp"
#include "validation/calibration/importers/xplane.pb.h"

namespace podsim {
namespace {

using testing::error_of;

Expected<Imported> read_plane(const std::string& bytes, const ImportOptions& options = {}) { return import_observations("xplane", bytes, "x.pb", options); }

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}

std::string field(int number, const std::string& bytes) { return varint((static_cast<std::uint64_t>(number) << 3) | 2) + varint(bytes.size()) + bytes; }

const std::string plane_gather = "%all-gather.1 = bf16[2048,8192]{1,0} all-gather(bf16[512,8192]{1,0} %p), replica_groups={{0,1,2,3}}, dimensions={0}";
const std::string plane_fusion = "%fusion.7 = bf16[1,2048,2048]{1,2,0} fusion(bf16[8] %a), kind=kOutput, calls=%c";

enum Stat { flops = 1, category, device_duration, convolution };

/// A plane with the two operations, metadata 5 and 6; durations in ps of the gathers, and of the device's own for the fusion.
/// `more`: fields of the plane besides.
std::string plane(const std::string& name, const std::vector<std::int64_t>& gathers, std::uint64_t fused, const std::string& line_name = "XLA Ops",
                  const std::string& more = "") {
  proto::XLine line;
  line.set_name(line_name);
  std::int64_t at = 0;
  for (const std::int64_t duration : gathers) {
    auto* event = line.add_events();
    event->set_metadata_id(5);
    event->set_offset_ps(at += 1000);
    event->set_duration_ps(duration);
  }
  auto* event = line.add_events();
  event->set_metadata_id(6);
  event->set_duration_ps(1);
  event->mutable_stats()->Add()->set_metadata_id(device_duration);
  event->mutable_stats(0)->set_uint64_value(fused);

  proto::XEventMetadataEntry first, second;
  first.set_key(5);
  first.mutable_value()->set_name(plane_gather);
  first.mutable_value()->set_display_name("all-gather.1");
  second.set_key(6);
  second.mutable_value()->set_name(plane_fusion);
  second.mutable_value()->set_display_name("fusion.7");
  auto* stat = second.mutable_value()->add_stats();
  stat->set_metadata_id(flops);
  stat->set_int64_value(30064771072);  // of one of two cores
  stat = second.mutable_value()->add_stats();
  stat->set_metadata_id(category);
  stat->set_ref_value(convolution);
  std::string bytes = field(2, name) + field(3, line.SerializeAsString()) + field(4, first.SerializeAsString()) + field(4, second.SerializeAsString());
  for (const auto& [id, text] : std::map<int, std::string>{{flops, "flops"}, {category, "hlo_category"}, {device_duration, "device_duration_ps"}, {convolution, "convolution fusion"}}) {
    proto::XStatMetadataEntry entry;
    entry.set_key(id);
    entry.mutable_value()->set_name(text);
    bytes += field(5, entry.SerializeAsString());
  }
  return field(1, bytes + more);
}

const std::string host = field(1, field(2, "/host:CPU") + field(3, "this is no line"));

TEST(XPlane, OperationsAreThoseOfAllTpus) {
  const auto result = read_plane(host + plane("/device:TPU:0", {400, 500, 300}, 155000000) + plane("/device:TPU:1", {350, 600, 290}, 156000000) + field(4, "hostname"),
                           {.cores = 2});
  ASSERT_TRUE(result) << to_text(result.error());
  ASSERT_EQ(result->observations.size(), 2U);
  const Observation& row = result->observations[0];
  EXPECT_EQ(row.op, ObservedOp::all_gather);
  EXPECT_EQ(row.devices, 4);
  EXPECT_EQ(row.bytes, Bytes{512 * 8192 * 2});
  EXPECT_DOUBLE_EQ(row.time.count(), 350e-12);  // the median of 350, 500, 290
  const Observation& product = result->observations[1];
  EXPECT_EQ((std::array{product.m, product.n, product.k}), (std::array<std::int64_t, 3>{2048, 2048, 7168}));
  EXPECT_DOUBLE_EQ(product.time.count(), 155e-6);
  EXPECT_EQ(result->notes.at(0).substr(0, 43), "durations are the minimum over 2 devices of");
}

TEST(XPlane, StepsAndTheTimeOfEveryOperationAreThere) {
  proto::XLine steps;
  steps.set_name("Steps");
  for (int i = 0; i < 2; ++i) {
    steps.add_events()->set_metadata_id(5);
    steps.mutable_events(i)->set_duration_ps(1000);
  }
  const std::string line = field(3, steps.SerializeAsString());
  const auto found = profile_operations_in("xplane", host + plane("/device:TPU:0", {400, 600}, 2000, "XLA Ops", line) + plane("/device:TPU:1", {200, 400}, 1000), "x.pb");
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->steps, 2);
  ASSERT_EQ(found->operations.size(), 2U);
  EXPECT_EQ(found->operations[0].name, "all-gather.1");
  EXPECT_EQ(found->operations[0].occurrences, 2);
  EXPECT_NEAR(found->operations[0].self.count(), 800e-12, 1e-20) << "the mean of 1000 and 600";
  EXPECT_EQ(found->operations[1].category, "matmul");
  EXPECT_EQ(found->operations[1].flops, Flops{30064771072});
  EXPECT_NEAR(found->operations[1].self.count(), 1500e-12, 1e-20) << "the device's own durations";
}

TEST(XPlane, ADeviceThatIsNamedAsTheBusiestIsTheOneOfTheStep) {
  proto::XStatMetadataEntry entry;
  entry.set_key(9);
  entry.mutable_value()->set_name("busiest");
  proto::XStat busiest;
  busiest.set_metadata_id(9);
  busiest.set_int64_value(1);
  const std::string more = field(5, entry.SerializeAsString()) + field(6, busiest.SerializeAsString());
  const auto found = profile_operations_in("xplane", plane("/device:TPU:0", {400}, 2000) + plane("/device:TPU:1", {200}, 1000, "XLA Ops", more), "x.pb");
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_NEAR(found->operations[0].self.count(), 200e-12, 1e-20);
  EXPECT_EQ(found->notes.at(1), "measured times are those of /device:TPU:1, which the profile, podsim's own, names as the busiest");
}

TEST(XPlane, LinesInPiecesAreOneAndThoseOfGpusCount) {
  proto::XLine piece;
  piece.set_name("XLA Ops");
  auto* event = piece.add_events();
  event->set_metadata_id(5);
  event->set_offset_ps(9000);
  event->set_duration_ps(600);
  const auto found = profile_operations_in("xplane", plane("/device:GPU:0", {400}, 2000, "XLA Ops", field(3, piece.SerializeAsString())), "x.pb");
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->operations[0].occurrences, 2);
  EXPECT_NEAR(found->operations[0].self.count(), 1000e-12, 1e-20);
}

TEST(XPlane, OtherPlanesAndLinesAreLeftOut) {
  const std::string none = "x.pb: no collective and no matmul on the lines of operations of ";
  EXPECT_EQ(error_of(read_plane(host)), none + "0 TPUs");
  EXPECT_EQ(error_of(read_plane(plane("/device:TPU:0 SparseCore 1", {400}, 1))), none + "0 TPUs");
  EXPECT_EQ(error_of(read_plane(plane("/device:TPU:0", {400}, 1, "Async XLA Ops"))), none + "1 TPU");
}

TEST(XPlane, AnyFrontOfAProfileIsAnErrorAtItsByte) {
  const std::string bytes = plane("/device:TPU:0", {400, 500, 300}, 155000000);
  ASSERT_TRUE(read_plane(bytes, {.cores = 2}));
  EXPECT_EQ(error_of(read_plane("")), "x.pb: the file is empty");
  EXPECT_EQ(error_of(read_plane(bytes + std::string{"\x0a\xff\xff\xff\xff\xff\xff\xff\x7f", 9})),
            "x.pb: at byte " + std::to_string(bytes.size()) + ": this field is longer than 2 GiB, which no message is");
  for (std::size_t length = 1; length < bytes.size(); ++length)
    EXPECT_EQ(error_of(read_plane(bytes.substr(0, length))), "x.pb: at byte " + std::to_string(length) + ": the file is cut short");
}

TEST(XPlane, BytesThatAreNoProfileAreToldWithTheirPlace) {
  EXPECT_EQ(error_of(read_plane("hello")), "x.pb: at byte 2: this is no field of a profile");
  EXPECT_EQ(error_of(read_plane(std::string{"\x0f", 1})), "x.pb: at byte 0: this is no field of a profile");
  EXPECT_EQ(error_of(read_plane(std::string{"\x08\x01", 2})), "x.pb: at byte 0: a plane must be a message");
  EXPECT_EQ(error_of(read_plane(std::string(1, '\x0a') + std::string(11, '\xff'))), "x.pb: at byte 1: a number is longer than ten bytes");
  EXPECT_EQ(error_of(read_plane(field(1, std::string{"\x12\x7f/dev", 6}))), "x.pb: at byte 2: this field goes beyond its message");
  EXPECT_EQ(error_of(read_plane(field(1, field(2, "/device:TPU:0") + field(3, "\xff\xff")))), "x.pb: at byte 17: this field is damaged");
}

}  // namespace
}  // namespace podsim
