#include "sim/config/schedule_config.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/schedule.pb.h"
#include "sim/config/schedule_names.hpp"
#include "sim/config/test_schedules.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

void expect_round_trip(const Schedule& schedule) {
  for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
    const std::string bytes = write_schedule(schedule, encoding);
    const auto read = read_schedule(bytes, "saved");
    ASSERT_TRUE(read) << to_text(read.error()) << "\n" << write_schedule(schedule, Encoding::text);
    EXPECT_EQ(*read, schedule) << write_schedule(schedule, Encoding::text);
    EXPECT_EQ(write_schedule(*read, encoding), bytes);
  }
}

TEST(ScheduleConfig, EveryOperationIsSavedAndReadBackEqual) { expect_round_trip(every_operation()); }

TEST(ScheduleConfig, EveryNodeOfAReferenceIsSavedAndReadBackEqual) {
  Schedule schedule = every_operation();
  schedule.computes = every_node();
  schedule.programs[0].buffers[0].unpadded = {7, 60, 15};
  expect_round_trip(schedule);
}

TEST(ScheduleConfig, AnEmptyScheduleIsSavedAndReadBackEqual) { expect_round_trip(Schedule{}); }

TEST(ScheduleConfig, AnyScheduleIsSavedAndReadBackEqual) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    expect_round_trip(random_schedule(seed));
    if (HasFailure()) return;
  }
}

TEST(ScheduleConfig, EveryValueOfTheEnumerationsHasItsNumber) {
  for (const LocalTraits& traits : local_table) EXPECT_EQ(local_kind_numbered(saved_number(traits.kind)), traits.kind) << traits.name;
  for (int k = 0; k < collective_kind_count; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    EXPECT_EQ(collective_kind_numbered(saved_number(kind)), kind) << name_of(kind);
  }
  EXPECT_EQ(collective_kind_count, proto::Collective::Kind_descriptor()->value_count());
  for (const ReferenceTraits& traits : reference_table) EXPECT_EQ(reference_kind_numbered(saved_number(traits.kind)), traits.kind) << traits.name;
  for (int d = 0; d < dtype_count; ++d) EXPECT_EQ(dtype_numbered(saved_number(static_cast<DType>(d))), static_cast<DType>(d));
  EXPECT_EQ(dtype_count, proto::DType::Name_descriptor()->value_count());
}

// The numbers are in files that people keep: a value may be added, none may change.
TEST(ScheduleConfig, NumbersOfSavedValuesStay) {
  EXPECT_EQ(saved_number(LocalKind::copy), 0);
  EXPECT_EQ(saved_number(LocalKind::add), 1);
  EXPECT_EQ(saved_number(LocalKind::scale), 2);
  EXPECT_EQ(saved_number(LocalKind::launch), 3);
  EXPECT_EQ(saved_number(LocalKind::alias), 4);
  EXPECT_EQ(saved_number(LocalKind::norm_sums), 5);
  EXPECT_EQ(saved_number(LocalKind::attention_grad), 14);
  EXPECT_EQ(saved_number(LocalKind::transpose), 15);
  EXPECT_EQ(saved_number(LocalKind::join), 16);
  EXPECT_EQ(saved_number(LocalKind::subtract), 18);
  EXPECT_EQ(saved_number(LocalKind::broadcast_in_dim), 25);
  EXPECT_EQ(saved_number(LocalKind::fft), 27);
  EXPECT_EQ(saved_number(LocalKind::solve), 39);
  EXPECT_EQ(saved_number(LocalKind::unpack_blocks), 41);
  EXPECT_EQ(saved_number(LocalKind::convert), 42);
  EXPECT_EQ(saved_number(LocalKind::adamw), 50);
  EXPECT_EQ(saved_number(LocalKind::from_host), 51);
  EXPECT_EQ(saved_number(LocalKind::one_hot), 52);
  EXPECT_EQ(saved_number(LocalKind::stack), 53);
  EXPECT_EQ(saved_number(LocalKind::maximum), 55);
  EXPECT_EQ(saved_number(ReferenceKind::input), 0);
  EXPECT_EQ(saved_number(ReferenceKind::gelu), 10);
  EXPECT_EQ(saved_number(ReferenceKind::block_collective), 13);
  EXPECT_EQ(saved_number(ReferenceKind::add_rows), 35);
  EXPECT_EQ(saved_number(ReferenceKind::iota), 36);
  EXPECT_EQ(saved_number(CollectiveKind::all_gather), 0);
  EXPECT_EQ(saved_number(CollectiveKind::permute), 6);
  EXPECT_EQ(saved_number(DType::f32), 0);
  EXPECT_EQ(saved_number(DType::bf16), 1);
}

TEST(ScheduleConfig, ATextIsWrittenForPeople) {
  Schedule schedule = every_operation();
  schedule.name = "golden";
  schedule.programs.resize(1);
  schedule.programs[0].buffers[0].sharding.resize(2);
  schedule.programs[0].tasks.resize(2);
  schedule.computes = Products{{"Y", "X", "W", 64, 32, 16, false, true}};
  EXPECT_EQ(write_schedule(schedule, Encoding::text), R"(# proto-file: sim/config/schedule.proto
# proto-message: podsim.proto.Schedule

format_version: 1
name: "golden"
mesh { name: "row" size: 4 wraps: true }
mesh { name: "col" size: 8 }
program {
  devices { range { first: 0 last: 8 } range { first: 16 last: 32 } }
  buffer {
    name: "X"
    extents: [2, 8, 16]
    dtype: bf16
    role: input
    tensor: "X"
    sharding { axis { name: "row" } }
    sharding { axis { name: "col" stride: 2 size: 2 } axis { name: "row" } }
  }
  buffer { name: "Y" extents: [8, 16] dtype: f32 role: output tensor: "Y" sharding { } sharding { axis { name: "col" } } }
  buffer { name: "scratch" extents: [8] dtype: f32 }
  buffer { name: "scratch" extents: [8] dtype: f32 }
  buffer { dtype: f32 }
  buffer {
    name: "Z"
    extents: [4, 1, 8]
    dtype: c64
    role: output
    tensor: "Z"
    sharding {}
    sharding { axis { name: "row" } }
    sharding {}
    unpadded: [24]
    grouped: [3]
  }
  buffer { name: "P" extents: [8] dtype: s32 role: output tensor: "P" sharding { } }
  buffer { name: "away" extents: [8] dtype: f32 on_host: true }
  task {
    label: "multiply"
    matmul {
      left { buffer: "X" dim { length: 2 } dim { index { term { axis { name: "row" } add: 1 } } stride: 2 length: 2 } dim { offset: 4 length: 8 } }
      right {
        buffer: "Y"
        dim {
          index {
            term { axis { name: "col" stride: 2 size: 2 } coefficient: -2 }
            term { axis { name: "row" } coefficient: 3 }
            constant: 7
            modulus: 5
          }
          stride: -4
          offset: 30
          length: 3
        }
        dim { length: 16 }
      }
      out {
        buffer: "Y"
        dim {
          index {
            term { axis { name: "col" stride: 2 size: 2 } coefficient: -2 }
            term { axis { name: "row" } coefficient: 3 }
            constant: 7
            modulus: 5
          }
          stride: -4
          offset: 30
          length: 3
        }
        dim { length: 16 }
      }
      left_split: 2
      out_split: 0
      transpose_left: true
      transpose_right: true
      accumulate: true
    }
  }
  task { local { kind: scale read { position: 2 dim { length: 8 } } write { position: 3 dim { length: 8 } } factor: 0.1 } after { task: 0 } }
}
product { m: 64 n: 32 k: 16 transpose_right: true }
)");
}

TEST(ScheduleConfig, AHandWrittenRingReadsAsItsMeaning) {
  const auto schedule = read_schedule(R"(
    format_version: 1
    mesh { name: "ring" size: 4 wraps: true }
    program {
      buffer { name: "A" extents: [4, 16] dtype: f32 }
      task {
        label: "step 1"
        shift {
          axis { name: "ring" }
          by { constant: 1 }
          source { buffer: "A" dim { index { term { axis { name: "ring" } } } length: 1 } dim { length: 16 } }
          target { buffer: "A" dim { index { term { axis { name: "ring" } add: -1 } } length: 1 } dim { length: 16 } }
        }
      }
      task {  # only what has arrived can be sent on
        label: "half"
        shift {
          axis { name: "ring" stride: 2 }
          by { constant: 1 }
          source { buffer: "A" dim { length: 1 } dim { length: 16 } }
          target { buffer: "A" dim { length: 1 } dim { length: 16 } }
        }
        after { label: "step 1" done: received gates: send }
      }
    })",
                                      "ring");
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  Schedule expected;
  expected.mesh = *Mesh::make({{"ring", 4, true}});
  const AxisView ring = expected.mesh.whole(0);
  const Region row0{BufferId{0}, {all(1), all(16)}};
  expected.programs = {
      Program{every_device(expected.mesh),
              {{"A", {4, 16}, DType::f32, Role::scratch, "", {}}},
              {{"step 1",
                Shift{ring, 1, {BufferId{0}, {block(own(ring), 1), all(16)}}, {BufferId{0}, {block(own(ring, -1), 1), all(16)}}, {}, {}},
                {},
                {},
                {}},
               {"half", Shift{AxisView{0, 2, 2}, 1, row0, row0, {}, {}}, {{TaskId{0}, Half::receive, Half::send}}, {}, {}}}}};
  EXPECT_EQ(*schedule, expected);
}

/// The first block of a markdown file that is indented by four and begins so.
std::string code_block(const std::string& path, const std::string& begin) {
  std::ifstream stream(path);
  std::string block;
  for (std::string line; std::getline(stream, line);) {
    const bool code = line.starts_with("    ");
    if (block.empty() ? line == "    " + begin : code) {
      block += line.substr(4) + '\n';
    } else if (!block.empty()) {
      break;
    }
  }
  return block;
}

TEST(ScheduleConfig, TheExampleOfTheReadmeIsAValidSchedule) {
  const std::string text = code_block(std::string(PODSIM_SOURCE_DIR) + "/sim/config/README.md", "format_version: 1");
  const auto schedule = read_schedule(text, "README");
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  EXPECT_EQ(schedule->programs.at(0).tasks.size(), 4u);
  const Validation validation = validate(*schedule);
  EXPECT_TRUE(validation.ok()) << to_text(validation.all());
}

std::string two_calls() {
  std::ifstream file{std::string(PODSIM_SOURCE_DIR) + "/algorithms/examples/two_calls.textproto"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(ScheduleConfig, FunctionsAndCallsAreReadWithTheirPlaces) {
  const auto schedule = read_schedule(two_calls(), "f");
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  ASSERT_EQ(schedule->functions.size(), 1U);
  const auto line_of = [](const WrittenAt& place) { return place.line; };
  const Function& layer = schedule->functions.front();
  EXPECT_EQ(layer.name, "layer");
  EXPECT_EQ(layer.parameters, 3);
  EXPECT_EQ(layer.body.buffers.size(), 4U);
  EXPECT_TRUE(layer.body.devices.intervals.empty());
  EXPECT_EQ(line_of(layer.body.tasks.at(1).written_at), 24);
  EXPECT_EQ(line_of(layer.body.buffers.at(3).written_at), 14);
  const Program& program = schedule->programs.front();
  EXPECT_EQ(program.tasks.at(1).op, Op(Call{0, {BufferId{3}, BufferId{2}, BufferId{4}}}));
  EXPECT_EQ(line_of(program.tasks.at(1).written_at), 44);
  expect_round_trip(*schedule);
}

TEST(BadSchedule, IsToldExactlyOfFunctionsAndCalls) {
  const auto error_with = [](const std::string& from, const std::string& to) {
    std::string text = two_calls();
    text.replace(text.find(from), from.size(), to);
    const auto schedule = read_schedule(text, "f");
    if (!schedule) return to_text(schedule.error());
    const auto problems = check_shapes(*schedule);
    return problems.empty() ? std::string{"none"} : to_text(problems.front());
  };
  EXPECT_EQ(error_with("call { function: \"layer\"", "call { function: \"later\""), R"(f:42:12: unknown function "later", did you mean "layer"?)");
  EXPECT_EQ(error_with("name: \"layer\"", "name: \"\""), "f:9:3: a function has an empty name\nf:42:12: unknown function \"layer\"\nf:46:12: unknown function \"layer\"");
  EXPECT_EQ(error_with("parameters: 3", "parameters: 5"), "f:8:1: expected parameters among the 4 buffers, found 5");
  EXPECT_EQ(error_with("argument { buffer: \"X\" }", "argument { buffer: \"x\" }"), R"(f:42:41: unknown buffer "x", did you mean "X"?)");
  EXPECT_EQ(error_with("argument { buffer: \"X\" }", "argument {}"), "f:42:30: an argument needs a buffer");
  EXPECT_EQ(error_with("argument { buffer: \"X\" }", ""), R"(f:40:3: task 0 "first": "layer" takes 3 buffers, found 2)");
  EXPECT_EQ(error_with("argument { buffer: \"X\" }", "argument { buffer: \"V\" }"),
            R"(f:40:3: task 0 "first": "x" of "layer" is f32[32,256], buffer "V" is f32[64,256])");
  EXPECT_EQ(error_with("length: 32 } dim { length: 256 } }\n      right", "length: 33 } dim { length: 256 } }\n      right"),
            R"(f:24:3: function "layer": task 1 "product": left: dimension 0 of buffer "x" has 32 elements, the range takes 33)");
}

TEST(ScheduleConfig, TheBinaryFormIsSmallerThanTheText) {
  const Schedule schedule = every_operation();
  EXPECT_LT(3 * write_schedule(schedule, Encoding::binary).size(), write_schedule(schedule, Encoding::text).size());
}

TEST(ScheduleConfig, ABinaryFileCutAnywhereIsRefused) {
  const std::string bytes = write_schedule(every_operation(), Encoding::binary);
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(read_schedule(bytes.substr(0, length), "cut")) << length;
}

}  // namespace
}  // namespace podsim
