// Modules in binary form mean what their text does, and hostile ones are errors.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_proto_text.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/testing.hpp"
#include "workloads/hlo/xla_hlo.pb.h"

namespace podsim {
namespace {

using ::testing::HasSubstr;

const std::string folder = "workloads/hlo/testdata/proto/";

std::string bytes_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Without places, and without what one of the forms leaves out: the number of partitions, and what else the header says in words.
HloModule comparable(HloModule module) {
  module.file.clear();
  module.num_partitions.reset();
  module.others.clear();
  module.has_lines = true;
  // Computations stand in different orders.
  std::vector<int> by_name(module.computations.size()), place(by_name.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  std::ranges::sort(by_name, {}, [&](int c) { return module.computations[static_cast<std::size_t>(c)].name; });
  std::vector<HloComputation> sorted;
  for (const int c : by_name) {
    place[static_cast<std::size_t>(c)] = static_cast<int>(sorted.size());
    sorted.push_back(module.computations[static_cast<std::size_t>(c)]);
  }
  module.computations = std::move(sorted);
  module.entry = place[static_cast<std::size_t>(module.entry)];
  for (HloComputation& computation : module.computations) {
    for (HloInstruction& instruction : computation.instructions)
      for (HloCall& call : instruction.calls) call.computation = place[static_cast<std::size_t>(call.computation)];
    computation.line = computation.column = 0;
    for (HloInstruction& instruction : computation.instructions) {
      instruction.line = instruction.column = 0;
      HloAttributes attributes = *instruction.attributes;
      std::ranges::sort(attributes.others, {}, &HloAttribute::name);
      std::ranges::sort(attributes.backend_config);  // JSON with its keys in another order
      if (attributes != *instruction.attributes) instruction.attributes = attributes;
    }
  }
  return module;
}

void expect_same(HloModule binary, HloModule text) {
  binary = comparable(std::move(binary)), text = comparable(std::move(text));
  // Where the text has {...}, the message has values.
  for (std::size_t c = 0; c < std::min(binary.computations.size(), text.computations.size()); ++c)
    for (std::size_t i = 0; i < std::min(binary.computations[c].instructions.size(), text.computations[c].instructions.size()); ++i)
      if (text.computations[c].instructions[i].attributes->literal.kind == HloLiteral::Kind::elided &&
          binary.computations[c].instructions[i].opcode == HloOpcode::constant) {
        HloAttributes attributes = *binary.computations[c].instructions[i].attributes;
        EXPECT_EQ(attributes.literal.kind, HloLiteral::Kind::values);
        attributes.literal = text.computations[c].instructions[i].attributes->literal;
        binary.computations[c].instructions[i].attributes = attributes;
      }
  ASSERT_EQ(binary.computations.size(), text.computations.size());
  for (std::size_t c = 0; c < text.computations.size(); ++c) {
    const auto& [mine, theirs] = std::pair{binary.computations[c], text.computations[c]};
    ASSERT_EQ(mine.name, theirs.name);
    ASSERT_EQ(mine.instructions.size(), theirs.instructions.size()) << mine.name;
    for (std::size_t i = 0; i < theirs.instructions.size(); ++i) {
      const HloInstruction &a = mine.instructions[i], &b = theirs.instructions[i];
      ASSERT_EQ(a.name, b.name) << "the order of the schedule";
      EXPECT_EQ(to_text(*a.shape), to_text(*b.shape)) << a.name;
      EXPECT_EQ(opcode_text(a), opcode_text(b)) << a.name;
      EXPECT_EQ(a.operands, b.operands) << a.name;
      EXPECT_EQ(a.op_name, b.op_name) << a.name;
      EXPECT_EQ(a.source, b.source) << a.name;
      EXPECT_EQ(a.attributes->sharding, b.attributes->sharding) << a.name;
      EXPECT_EQ(a.attributes->backend_config, b.attributes->backend_config) << a.name;
      EXPECT_EQ(a.attributes->frontend_attributes, b.attributes->frontend_attributes) << a.name;
      EXPECT_EQ(a.attributes->literal.integers, b.attributes->literal.integers) << a.name;
      EXPECT_THAT(a.attributes->literal.reals, ::testing::Pointwise(::testing::NanSensitiveDoubleEq(), b.attributes->literal.reals)) << a.name;
      std::string others[2];
      for (const HloAttribute& other : a.attributes->others) others[0] += other.name + '=' + other.text + ' ';
      for (const HloAttribute& other : b.attributes->others) others[1] += other.name + '=' + other.text + ' ';
      EXPECT_EQ(others[0], others[1]) << a.name;
      if (!std::ranges::any_of(b.attributes->literal.reals, [](double value) { return value != value; })) {
        EXPECT_TRUE(a == b) << a.name;
      }
    }
  }
  EXPECT_EQ(binary.aliases, text.aliases);
  EXPECT_EQ(binary.donors, text.donors);
  EXPECT_EQ(binary.is_scheduled, text.is_scheduled);
  EXPECT_EQ(binary.named_devices, text.named_devices);
}

class BinaryForm : public ::testing::TestWithParam<const char*> {};

TEST_P(BinaryForm, MeansWhatTheTextMeans) {
  const auto text = read_hlo_file(folder + GetParam() + ".hlo");
  ASSERT_TRUE(text) << to_text(text.error());
  const auto binary = read_hlo_file(folder + GetParam() + ".hlo.pb");
  ASSERT_TRUE(binary) << to_text(binary.error());
  expect_same(*binary, *text);
}

TEST_P(BinaryForm, AsHloProtoIsTheSame) {
  const std::string module = bytes_of(folder + GetParam() + ".hlo.pb");
  xla::HloFile file;
  ASSERT_TRUE(file.mutable_hlo_module()->ParseFromString(module));
  const auto alone = read_hlo(module, "m"),
             wrapped = read_hlo(file.SerializeAsString() + std::string{"\x1a\x02\x08\x01", 4}, "m");  // with a buffer_assignment
  ASSERT_TRUE(alone && wrapped) << to_text(wrapped ? alone.error() : wrapped.error());
  EXPECT_EQ(alone->computations.size(), wrapped->computations.size());
  EXPECT_EQ(alone->name, wrapped->name);
}

INSTANTIATE_TEST_SUITE_P(FromJax, BinaryForm, ::testing::Values("mlp", "loop", "ring", "mixed", "donated"));

TEST(ReadHloProto, ErrorsNameTheInstruction) {
  xla::HloModule module;
  ASSERT_TRUE(module.ParseFromString(bytes_of(folder + "mlp.hlo.pb")));
  const auto changed = [&](const auto& change) {
    xla::HloModule copy = module;
    change(copy, *copy.mutable_computations(copy.computations_size() - 1));
    const auto read = read_hlo(copy.SerializeAsString(), "m.pb");
    return read ? std::string{"none"} : to_text(read.error());
  };
  using Module = xla::HloModule;
  using Computation = xla::HloComputation;
  const std::string& name = module.computations(module.computations_size() - 1).instructions(0).name();
  EXPECT_EQ(changed([](Module&, Computation& entry) { entry.mutable_instructions(0)->mutable_shape()->set_element_type(99); }),
            "m.pb: instruction \"" + name + "\": expected the number of an element type, found 99");
  EXPECT_THAT(changed([](Module&, Computation& entry) { entry.mutable_instructions(0)->set_name("a b"); }),
              HasSubstr("instruction \"a b\": expected the name of an instruction"));
  EXPECT_THAT(changed([](Module&, Computation& entry) { entry.mutable_instructions(entry.instructions_size() - 1)->set_operand_ids(0, 1 << 30); }),
              HasSubstr("expected operands in its computation, found the number 1073741824"));
  EXPECT_THAT(changed([](Module&, Computation& entry) { entry.mutable_instructions(1)->set_id(entry.instructions(0).id()); }),
              HasSubstr("of an instruction once"));
  EXPECT_THAT(changed([](Module& m, Computation& entry) {
                m.mutable_schedule()->mutable_sequences(0)->mutable_value()->clear_instruction_ids(), static_cast<void>(entry);
              }),
              HasSubstr("expected a schedule of its"));
  EXPECT_EQ(changed([](Module&, Computation& entry) {
              xla::HloInstruction& call = *entry.mutable_instructions(0);
              call.set_opcode("custom-call"), call.set_constrain_layout(true);
              call.add_operand_shapes_with_layout()->set_element_type(98);
            }),
            "m.pb: instruction \"" + name + "\": expected the number of an element type, found 98");
  // What the text's reader finds is told by the instruction, too.
  EXPECT_EQ(changed([](Module&, Computation& entry) {
              entry.mutable_instructions(0)->set_opcode("dot"),
                  entry.mutable_instructions(0)->mutable_dot_dimension_numbers()->add_lhs_batch_dimensions(-1);
            }),
            "m.pb: " + name + ": expected a number from 0 on, got \"-1}\"");
  EXPECT_EQ(changed([](Module& m, Computation&) { m.clear_computations(); }),
            "m.pb:1:1: expected a module: text that begins with \"HloModule\", or an HloProto or HloModuleProto");
}

TEST(ReadHloProto, AnAsynchronousOperationOfOneInstructionIsThatInstructionsStart) {
  xla::HloModule module;
  module.set_name("m");
  module.set_entry_computation_id(2);
  const auto add = [](xla::HloComputation& computation, std::int64_t id, const std::string& name, const std::string& opcode,
                      std::int64_t length) -> xla::HloInstruction& {
    xla::HloInstruction& instruction = *computation.add_instructions();
    instruction.set_id(id), instruction.set_name(name), instruction.set_opcode(opcode);
    instruction.mutable_shape()->set_element_type(11);
    instruction.mutable_shape()->add_dimensions(length);
    computation.set_root_id(id);
    return instruction;
  };
  xla::HloComputation& wrapped = *module.add_computations();
  wrapped.set_id(1), wrapped.set_name("wrapped");
  add(wrapped, 1, "p", "parameter", 8);
  xla::HloInstruction& slice = add(wrapped, 2, "cut", "slice", 4);
  slice.add_operand_ids(1);
  slice.add_slice_dimensions()->set_limit(4), slice.mutable_slice_dimensions(0)->set_stride(1);
  xla::HloComputation& entry = *module.add_computations();
  entry.set_id(2), entry.set_name("e");
  add(entry, 11, "x", "parameter", 8);
  xla::HloInstruction& start = add(entry, 12, "s", "async-start", 8);
  start.add_operand_ids(11), start.add_called_computation_ids(1);
  const xla::Shape whole = start.shape(), part = slice.shape();
  start.mutable_shape()->Clear();
  start.mutable_shape()->set_element_type(13);
  start.mutable_shape()->add_tuple_shapes()->set_element_type(13);
  *start.mutable_shape()->mutable_tuple_shapes(0)->add_tuple_shapes() = whole;
  *start.mutable_shape()->add_tuple_shapes() = part;
  add(entry, 13, "d", "async-done", 4).add_operand_ids(12);
  const auto read = read_hlo(module.SerializeAsString(), "m");
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_EQ(read->computations.size(), 1u);
  EXPECT_EQ(opcode_text(test::instruction_named(*read, "s")), "slice-start");
  EXPECT_EQ(opcode_text(test::instruction_named(*read, "d")), "slice-done");
  EXPECT_EQ(test::instruction_named(*read, "s").attributes->slice, std::vector<HloSliceExtent>{(HloSliceExtent{0, 4, 1})});
}

TEST(ReadHloProto, TextsThatGrowBeyondMeasureAreRefused) {
  xla::HloModule module;
  module.set_name("m");
  auto& entry = *module.add_computations();
  entry.set_name("e");
  module.set_entry_computation_name("e");
  auto& x = *entry.add_instructions();
  x.set_name(std::string(1 << 12, 'x'));
  x.set_opcode("parameter");
  x.mutable_shape()->set_element_type(11);
  auto& tuple = *entry.add_instructions();
  tuple.set_name("t");
  tuple.set_id(1);
  tuple.set_opcode("tuple");
  tuple.mutable_shape()->set_element_type(13);
  for (int i = 0; i < 1 << 16; ++i) tuple.add_operand_ids(0);
  const auto text = text_of_hlo_proto(module.SerializeAsString(), "m", std::size_t{1} << 20);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("expected a module whose text has at most 1048576 bytes"));
}

TEST(ReadHloProto, MutatedMessagesAreReadOrRefused) {
  for (const char* const name : {"mlp", "loop", "ring", "donated"}) {
    const std::string bytes = bytes_of(folder + name + ".hlo.pb");
    Rng random{1, stream_of(name)};
    for (int mutant = 0; mutant < 2500; ++mutant) {
      std::string changed = bytes;
      for (int i = random.between(1, 3); i > 0; --i) {
        const std::size_t at = random.below(changed.size());
        switch (random.below(4)) {
          case 0: changed[at] = static_cast<char>(random.below(256)); break;
          case 1: changed.erase(at, 1 + random.below(8)); break;
          case 2: changed.insert(at, 1, static_cast<char>(random.below(256))); break;
          default: changed[at] = static_cast<char>(changed[at] ^ 1 << random.below(8)); break;
        }
      }
      const auto module = read_hlo(changed, "m", {.tolerant = mutant % 2 == 1});
      if (!module) {
        ASSERT_FALSE(module.error().message.empty()) << name << " mutant " << mutant;
      } else if (module->entry >= 0) {
        peak_memory_of(*module);
      }
    }
  }
}

TEST(ReadHloFile, GzipIsUnpackedAndItsFaultsAreErrors) {
  const std::string path = "workloads/hlo/testdata/proto/mlp.hlo", packed = ::testing::TempDir() + "/mlp.hlo.gz";
  ASSERT_EQ(std::system(("gzip -c " + path + " > " + packed).c_str()), 0);
  const auto plain = read_hlo_file(path), unpacked = read_hlo_file(packed);
  ASSERT_TRUE(unpacked) << to_text(unpacked.error());
  EXPECT_EQ(unpacked->computations, plain->computations);
  const std::string bytes = bytes_of(packed);
  std::ofstream{packed, std::ios::binary} << bytes.substr(0, bytes.size() / 2);
  const auto cut = read_hlo_file(packed);
  ASSERT_FALSE(cut);
  EXPECT_THAT(to_text(cut.error()), ::testing::ContainsRegex("mlp.hlo.gz:[1-9][0-9]+:[0-9]+: the compressed data are cut short at compressed byte")) << "the line that was reached";
  std::string corrupt = bytes;
  corrupt[bytes.size() / 2] = static_cast<char>(~corrupt[bytes.size() / 2]);
  std::ofstream{packed, std::ios::binary} << corrupt;
  const auto wrong = read_hlo_file(packed);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(to_text(wrong.error()), ::testing::ContainsRegex("mlp.hlo.gz:[1-9][0-9]+:[0-9]+: the compressed data are corrupt before compressed byte"));
}

}  // namespace
}  // namespace podsim
