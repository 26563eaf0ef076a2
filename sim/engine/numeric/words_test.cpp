// Complex and whole numbers in buffers: inputs, moves, sums, comparison with what a schedule claims; block-cyclic shards; data that a task cannot work on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/engine/numeric/test_boxes.hpp"
#include "sim/engine/numeric/transformer_kernels.hpp"

namespace podsim {
namespace {

using namespace hand_built;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestBox;

constexpr std::array<Filling, 6> fillings{Filling::integers, Filling::uniform, Filling::fractions, Filling::positive, Filling::arange, Filling::ones};

CheckReport report_of(const Schedule& schedule, const CheckOptions& options = {}) {
  const Expected<CheckReport> report = check(schedule, options);
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

TEST(Words, CollectivesOfComplexAndWholeNumbersAreProven) {
  for (const DType dtype : {DType::c64, DType::s32})
    for (const Schedule& schedule : {ring_all_gather(4, 3, dtype), ring_reduce_scatter(4, 3, dtype), ring_reduce_scatter(3, 1, dtype)})
      for (const InputData data : {InputData::random, InputData::arange, InputData::ones}) {
        CheckOptions options;
        options.data = data;
        const CheckReport report = report_of(schedule, options);
        EXPECT_TRUE(report.ok && report.bit_equal && report.inexact.empty()) << schedule.name << " " << name_of(dtype) << "\n" << to_text(report.problems);
      }
}

TEST(Words, ALostContributionIsFound) {
  for (const DType dtype : {DType::c64, DType::s32}) {
    Schedule schedule = ring_reduce_scatter(4, 2, dtype);
    std::get<Shift>(schedule.programs[0].tasks[2].op).combine = Combine::replace;
    const CheckReport report = report_of(schedule);
    EXPECT_FALSE(report.ok);
    EXPECT_THAT(to_text(report.problems), HasSubstr(dtype == DType::c64 ? "part of element" : "the result is wrong: element"));
  }
}

TEST(Words, WhatIsNeverWrittenIsFound) {
  for (const DType dtype : {DType::c64, DType::s32}) {
    Schedule schedule = ring_reduce_scatter(4, 2, dtype);
    schedule.programs[0].tasks.back().where = {{own(schedule.mesh.whole(0)), 1, 4}};
    EXPECT_FALSE(report_of(schedule).ok);
    for (const Filling filling : fillings) {
      NumericOptions options;
      options.filling = filling;
      const auto tensors = make_numeric_engine(options)->run(schedule);
      ASSERT_TRUE(tensors);
      EXPECT_FALSE(Reference::make(schedule, options)->compare(*tensors).agrees) << name_of(dtype) << static_cast<int>(filling);
    }
  }
}

TEST(Words, InputsAreFunctionsOfThePlaceInTheTensor) {
  for (const DType dtype : {DType::c64, DType::s32, DType::f32})
    for (const Filling filling : fillings) {
      Schedule schedule{"inputs", mesh_of({{"x", 2, true}, {"y", 3, true}}), {}, {}};
      const AxisView x = schedule.mesh.whole(0), y = schedule.mesh.whole(1);
      schedule.programs.push_back({every_device(schedule.mesh), {input("X", {2, 4}, {{x}, {y}}, dtype), input("X", {4, 12}, {{}, {}}, dtype)}, {}});
      const std::vector<Buffer>& buffers = schedule.programs[0].buffers;
      const InputMaker maker{schedule, 1, filling};
      const auto words = static_cast<std::size_t>(words_of(dtype));
      std::vector<float> whole(48 * words), shard(8 * words);
      maker.fill_shard(buffers[1], DeviceId{0}, whole.data());
      ThreadPool pool{2};
      const std::vector<double> tensor = maker.global_tensor(buffers[0], false, pool);
      ASSERT_EQ(tensor.size(), whole.size());
      for (std::size_t w = 0; w < whole.size(); ++w) EXPECT_EQ(tensor[w], number_in(whole[w], dtype));
      for (int d = 0; d < 6; ++d) {
        maker.fill_shard(buffers[0], DeviceId{d}, shard.data());
        for (std::size_t e = 0; e < 8; ++e)
          for (std::size_t part = 0; part < words; ++part) {
            const std::size_t row = static_cast<std::size_t>(d) / 3 * 2 + e / 4, column = static_cast<std::size_t>(d) % 3 * 4 + e % 4;
            EXPECT_EQ(std::bit_cast<std::uint32_t>(shard[e * words + part]), std::bit_cast<std::uint32_t>(whole[(row * 12 + column) * words + part]));
          }
      }
      for (std::size_t w = 0; w < whole.size(); ++w) {
        const double number = tensor[w];
        const bool real = w % words == 0;
        const double known = filling == Filling::arange ? static_cast<double>(w / words) : 1;
        if (filling == Filling::arange || filling == Filling::ones) {
          EXPECT_EQ(number, real ? known : 0);
        }
        if (filling == Filling::integers || (dtype == DType::s32 && filling == Filling::uniform)) {
          EXPECT_EQ(number, std::floor(number));
          EXPECT_TRUE(number != 0 && std::abs(number) <= 8) << "without a claim";
        }
        if (filling == Filling::uniform && dtype != DType::s32) {
          EXPECT_TRUE(number != 0 && std::abs(number) < 1);
        }
      }
    }
}

TEST(Words, OutputsAreShownAsWhatTheyAre) {
  for (const DType dtype : {DType::c64, DType::s32}) {
    CheckOptions options;
    options.data = InputData::arange;
    const CheckReport report = report_of(ring_all_gather(2, 1, dtype), options);
    ASSERT_EQ(report.outputs.size(), 1U);
    EXPECT_EQ(report.outputs[0].dtype, dtype);
    EXPECT_THAT(report.outputs[0].extents, ElementsAre(2, 3));
    const std::vector<double> complex{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0}, whole{0, 1, 2, 3, 4, 5};
    EXPECT_EQ(report.outputs[0].values, dtype == DType::c64 ? complex : whole);
  }
}

TEST(Words, SumsOfWholeNumbersWrap) {
  TestBox a{{3}, DType::s32}, b{{3}, DType::s32}, out{{3}, DType::s32};
  a.integers({2147483647, -5, 7}), b.integers({1, -6, 2147483647});
  add(a.view(), b.view(), out.view());
  EXPECT_THAT(out.integers(), ElementsAre(-2147483647 - 1, -11, -2147483647 + 5));
  subtract(out.view(), b.view(), out.view());
  EXPECT_EQ(out.integers(), a.integers());
}

TEST(Words, MovesKeepBitsAndPairs) {
  for (const DType dtype : {DType::c64, DType::s32})
    for (const bool spread : {false, true}) {
      TestBox a{{3, 4}, dtype, spread}, turned{{4, 3}, dtype, spread}, repeated{{3, 2, 4}, dtype, spread}, one{{3, 1, 4}, dtype}, sum{{3, 1}, dtype, spread};
      const auto words = static_cast<std::size_t>(words_of(dtype));
      std::vector<std::int32_t> bits;
      for (std::size_t w = 0; w < 12 * words; ++w) bits.push_back(static_cast<std::int32_t>(0x7f800001U + 37 * w));  // no numbers as floats
      a.integers(bits);
      transpose(false, a.view(), turned.view());
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 4; ++j)
          for (std::size_t part = 0; part < words; ++part)
            EXPECT_EQ(turned.integer(static_cast<std::int64_t>((j * 3 + i) * words + part)), bits[(i * 4 + j) * words + part]);
      copy(a.view(), one.view());
      std::vector<float> room;
      broadcast_in_dim(one.view(), repeated.view(), room);
      for (std::size_t w = 0; w < 24 * words; ++w) EXPECT_EQ(repeated.integer(static_cast<std::int64_t>(w)), bits[w / (8 * words) * 4 * words + w % (4 * words)]);
      EXPECT_EQ(turned.changed_outside() + repeated.changed_outside(), 0);

      for (std::size_t w = 0; w < bits.size(); ++w)
        a.word(static_cast<std::int64_t>(w)) = dtype == DType::s32 ? std::bit_cast<float>(static_cast<std::int32_t>(w)) : static_cast<float>(w);
      sum_along(a.view(), sum.view(), room);
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t part = 0; part < words; ++part) {
          const std::size_t first = i * 4 * words + part;
          EXPECT_EQ(number_in(sum.word(static_cast<std::int64_t>(i * words + part)), dtype), static_cast<double>(4 * first + 6 * words));
        }
    }
}

// ---- Block-cyclic shards --------------------------------------------------------------------------------------------------------------

/// n x n in blocks of b x b, dealt out over R x C devices; not every device has as many blocks.
Buffer block_cyclic(std::string name, Role role, const Mesh& mesh, std::int64_t n, std::int64_t b, DType dtype = DType::f32) {
  const AxisView row = mesh.whole(0), col = mesh.whole(1);
  const auto most = [&](const AxisView& axis) { return (n / b + axis.size - 1) / axis.size; };
  Buffer buffer{name, {most(row), 1, b, most(col), 1, b}, dtype, role, std::move(name), {{}, {row}, {}, {}, {col}, {}}};
  buffer.unpadded = {n, n};
  buffer.grouped = {3, 3};
  return buffer;
}

TEST(BlockCyclic, EveryElementIsOnOneDeviceAndInputsAreThoseOfTheWhole) {
  for (const auto& [R, C, n, b] : std::vector<std::array<int, 4>>{{3, 3, 64, 4}, {2, 2, 8, 2}, {4, 2, 6, 2}, {1, 5, 9, 3}, {5, 1, 2, 1}})
    for (const DType dtype : {DType::f32, DType::c64, DType::s32}) {
      Schedule schedule{"cyclic", mesh_of({{"row", R, true}, {"col", C, true}}), {}, {}};
      schedule.programs.push_back({every_device(schedule.mesh), {block_cyclic("A", Role::input, schedule.mesh, n, b, dtype), input("A", {n, n}, {{}, {}}, dtype)}, {}});
      const Buffer &shard = schedule.programs[0].buffers[0], &all = schedule.programs[0].buffers[1];
      EXPECT_EQ(data_elements(shard), n * n);
      const InputMaker maker{schedule, 1, Filling::integers};
      const auto words = static_cast<std::size_t>(words_of(dtype)), count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
      std::vector<float> whole(count * words), held(static_cast<std::size_t>(words_in(shard)));
      maker.fill_shard(all, DeviceId{0}, whole.data());
      std::vector<int> times(count, 0);
      for (int d = 0; d < R * C; ++d) {
        maker.fill_shard(shard, DeviceId{d}, held.data());
        const ShardData data = data_of_shard(schedule.mesh, shard, DeviceId{d});
        std::set<std::int64_t> of_buffer;
        for_each_run<2>({&data.in_buffer, &data.in_tensor}, [&](std::int64_t run, const std::array<RunCursor, 2>& at) {
          for (std::int64_t i = 0; i < run; ++i) {
            const std::int64_t in_buffer = at[0].offset() + i * at[0].stride(), in_tensor = at[1].offset() + i * at[1].stride();
            ++times[static_cast<std::size_t>(in_tensor)];
            of_buffer.insert(in_buffer);
            const std::int64_t row = in_tensor / n, column = in_tensor % n;
            EXPECT_TRUE(row / b % R == d / C && column / b % C == d % C);
            // Block q of the device is its q-th.
            const std::int64_t local = (((row / b / R * b + row % b) * shard.extents[3] + column / b / C) * b) + column % b;
            EXPECT_EQ(in_buffer, local);
            for (std::size_t part = 0; part < words; ++part)
              EXPECT_EQ(std::bit_cast<std::uint32_t>(held[static_cast<std::size_t>(in_buffer) * words + part]),
                        std::bit_cast<std::uint32_t>(whole[static_cast<std::size_t>(in_tensor) * words + part]));
          }
        });
        for (std::int64_t e = 0; e < static_cast<std::int64_t>(held.size() / words); ++e)
          EXPECT_TRUE(of_buffer.contains(e) || held[static_cast<std::size_t>(e) * words] == 0.0F) << "padding";
      }
      EXPECT_THAT(times, ::testing::Each(1));
    }
}

/// Y = A + 7 of a block-cyclic array, which the claim has with its padding or without.
Schedule cyclic_sum(std::int64_t n, std::int64_t claimed) {
  Schedule schedule{"cyclic", mesh_of({{"row", 3, true}, {"col", 2, true}}), {}, {}};
  Program program{every_device(schedule.mesh), {block_cyclic("A", Role::input, schedule.mesh, n, 2), block_cyclic("Y", Role::output, schedule.mesh, n, 2)}, {}};
  add(program, "add", Local{LocalKind::add_number, {whole(program, 0)}, {whole(program, 1)}, 7});
  schedule.programs = {program};
  ReferenceNode in, out;
  in.tensor = "A", in.extents = {claimed};
  out.kind = ReferenceKind::add_number, out.operands = {0}, out.extents = {claimed}, out.number = 7;
  schedule.computes = ReferenceProgram{{in, out}, {{"Y", 1}}, ""};
  return schedule;
}

TEST(BlockCyclic, AClaimIsAboutTheTensorWithItsPaddingOrWithout) {
  for (const std::int64_t n : {2, 8, 10, 12}) {
    const std::int64_t rows = (n / 2 + 2) / 3 * 6, columns = (n / 2 + 1) / 2 * 4;
    for (const std::int64_t claimed : {n * n, rows * columns}) {
      const CheckReport report = report_of(cyclic_sum(n, claimed));
      EXPECT_TRUE(report.ok) << n << " " << claimed << to_text(report.problems);
    }
  }
  CheckOptions options;
  options.data = InputData::arange;
  const CheckReport report = report_of(cyclic_sum(4, 16), options);
  ASSERT_EQ(report.outputs.size(), 1U);
  EXPECT_THAT(report.outputs[0].extents, ElementsAre(4, 4));
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(report.outputs[0].values[i], static_cast<double>(i) + 7);
}

TEST(BlockCyclic, PaddingThatDoesNotFitIsRefused) {
  const auto problem_of = [](auto change) {
    Schedule schedule = cyclic_sum(10, 100);
    change(schedule.programs[0].buffers[0]);
    const auto report = check(schedule, {});
    return report ? to_text(report->problems) : to_text(report.error());
  };
  EXPECT_THAT(problem_of([](Buffer& buffer) { buffer.unpadded = {14, 10}; }), HasSubstr("the extents without padding, 14x10, are not within"));
  EXPECT_THAT(problem_of([](Buffer& buffer) { buffer.unpadded = {9, 10}; }), HasSubstr("are not within")) << "whole blocks are data";
  EXPECT_THAT(problem_of([](Buffer& buffer) { buffer.grouped = {3}; }), HasSubstr("are not within"));
  EXPECT_THAT(problem_of([](Buffer& buffer) { buffer.grouped = {4, 2}; }), HasSubstr("are not within"));
  EXPECT_THAT(problem_of([](Buffer& buffer) { buffer.unpadded.clear(); }), HasSubstr("are not within"));
}

// ---- Data that a task cannot work on ----------------------------------------------------------------------------------------------------

/// Every device solves a system of its own part of A, which is singular where A is all ones; device 3 and those behind it.
Schedule systems(const Guard& where = {}) {
  Schedule schedule{"systems", mesh_of({{"x", 8, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{every_device(schedule.mesh),
                  {input("A", {60, 60}, {{x}, {}}), input("B", {60}, {{x}}), output("X", {60}, {{x}}), scratch("zeros", {60, 60})},
                  {}};
  const int before = add(program, "difference", Local{LocalKind::subtract, {whole(program, 0), whole(program, 0)}, {whole(program, 3)}});
  const int all = add(program, "keep", copy(whole(program, 0), whole(program, 3)), {before}, {{own(x, 0, false), 0, 3}});
  add(program, "solve", Local{LocalKind::solve, {whole(program, 3), whole(program, 1)}, {whole(program, 2)}}, {before, all}, where);
  schedule.programs.push_back(std::move(program));
  return schedule;
}

TEST(RunErrors, AreTheSameForAnyNumberOfThreadsAndNameTaskAndDevice) {
  for (const int threads : {1, 2, 5}) {
    NumericOptions options;
    options.threads = threads;
    const auto tensors = make_numeric_engine(options)->run(systems());
    ASSERT_FALSE(tensors);
    EXPECT_EQ(to_text(tensors.error()), "task 2 \"solve\" on device 3 (x=3): matrix is singular: column 0 is zero below the diagonal");
    EXPECT_EQ(tensors.error().cause, Cause::data);
  }
  Schedule right = systems();
  right.programs[0].tasks[2].where = {{own(right.mesh.whole(0), 0, false), 0, 3}};
  EXPECT_TRUE(make_numeric_engine({})->run(right));
}

TEST(RunErrors, AreProblemsOfACheckedSchedule) {
  const auto report = check(systems(), {});
  ASSERT_TRUE(report) << "not bad input";
  EXPECT_FALSE(report->ok || report->bit_equal);
  EXPECT_TRUE(report->matched && report->deadlock_free && report->race_free);
  EXPECT_THAT(to_text(report->problems), HasSubstr("matrix is singular: column 0 is zero below the diagonal"));
}

TEST(RunErrors, AnIndexOfNoRowNamesTheTask) {
  Schedule schedule{"rows", mesh_of({{"x", 2, true}}), {}, {}};
  Program program{every_device(schedule.mesh), {input("A", {4, 2}, {{}, {}}), output("Y", {3, 2}, {{}, {}}), scratch("index", {3}, DType::s32)}, {}};
  Local iota{LocalKind::iota, {}, {whole(program, 2)}};
  iota.numbering = {{own(schedule.mesh.whole(0))}};
  const int made = add(program, "index", iota);
  Local gather{LocalKind::gather_rows, {whole(program, 0), whole(program, 2)}, {whole(program, 1)}};
  gather.factor = 3;
  add(program, "gather", gather, {made});
  schedule.programs.push_back(std::move(program));
  const auto tensors = make_numeric_engine({})->run(schedule);
  ASSERT_FALSE(tensors);
  EXPECT_EQ(to_text(tensors.error()), "task 1 \"gather\" on device 1 (x=1): row number 3 is outside 0..2");
  std::get<Local>(schedule.programs[0].tasks[1].op).factor = 4;
  EXPECT_TRUE(make_numeric_engine({})->run(schedule));
}

}  // namespace
}  // namespace podsim
