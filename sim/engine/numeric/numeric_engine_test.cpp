// The engine on schedules written by hand: what transfers, products, guards and programs leave in the buffers.
#include "sim/engine/numeric/numeric_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/executor.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"

namespace podsim {
namespace {

using namespace hand_built;

Tensors run(const Schedule& schedule, const NumericOptions& options = {}) {
  const Expected<Tensors> tensors = make_numeric_engine(options)->run(schedule);
  EXPECT_TRUE(tensors) << to_text(tensors.error());
  return tensors ? *tensors : Tensors{};
}

std::vector<Order> some_orders(int random) {
  std::vector<Order> orders{{}};
  for (int i = 0; i < random; ++i) orders.push_back({static_cast<std::uint64_t>(i)});
  return orders;
}

/// All values as bits: a NaN equals itself.
std::vector<std::uint32_t> bits(const Tensors& tensors) {
  std::vector<std::uint32_t> all;
  for (const auto& device : tensors.values)
    for (const auto& buffer : device)
      for (const float value : buffer) all.push_back(std::bit_cast<std::uint32_t>(value));
  return all;
}

Schedule on_one_device(std::vector<Buffer> buffers) {
  Schedule schedule{"one device", mesh_of({{"x", 1, false}}), {}, {}};
  schedule.programs.push_back({every_device(schedule.mesh), std::move(buffers), {}});
  return schedule;
}

// ---- Opaque operations ----

TEST(Opaque, TakesPartInOrderAndIsNotComputed) {
  Schedule schedule = on_one_device({input("X", {4}, {{}}), output("Y", {4}, {{}})});
  Program& program = schedule.programs.front();
  const Region x{BufferId{0}, {all(4)}}, y{BufferId{1}, {all(4)}};
  add(program, "only time", Local{LocalKind::opaque, {x}, {}});
  add(program, "copy", Local{LocalKind::copy, {x}, {y}}, {0});
  const Tensors tensors = run(schedule);
  EXPECT_EQ(tensors.values[0][0], tensors.values[0][1]);
  Local many{LocalKind::opaque, {}, {y}};
  many.reads.assign(20, x);
  add(program, "result", many, {1});
  const auto outcome = make_numeric_engine({})->run(schedule);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().cause, Cause::data);
  EXPECT_EQ(outcome.error().message, R"(task 2 "result" on device 0 (x=0): the operation is opaque: what it computes is not known)");
}

// ---- Transfers ----

TEST(Ring, AllGatherDeliversEveryShardInEveryOrder) {
  const Schedule schedule = ring_all_gather(4, 2);
  for (const Order& order : some_orders(20)) {
    const Tensors tensors = run(schedule, {.order = order});
    std::vector<float> gathered;
    for (const auto& device : tensors.values) gathered.insert(gathered.end(), device[0].begin(), device[0].end());
    for (const auto& device : tensors.values) EXPECT_EQ(device[1], gathered);
  }
}

TEST(Ring, ReduceScatterLeavesEachDeviceItsBlockOfTheSum) {
  const Schedule schedule = ring_reduce_scatter(4, 2);
  for (const Order& order : some_orders(20)) {
    const Tensors tensors = run(schedule, {.order = order});
    for (std::size_t d = 0; d < 4; ++d)
      for (std::size_t i = 0; i < 6; ++i) {
        float sum = 0;
        for (const auto& device : tensors.values) sum += device[0][6 * d + i];
        EXPECT_EQ(tensors.values[d][1][i], sum);
      }
    EXPECT_TRUE(tensors.values[0][2].empty()) << "scratch is dropped";
  }
}

TEST(Transfer, ElementsCorrespondInRowMajorOrderWhateverTheShapes) {
  Schedule schedule{"reshape", mesh_of({{"x", 2, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{every_device(schedule.mesh), {input("X", {4, 6}, {{x}, {}}), output("Y", {5, 2, 4}, {{}, {}, {}})}, {}};
  // A 3x4 box of a 4x6 buffer into a 3x1x4, then a 2x6 one into a 3x2x2.
  add(program, "box", Shift{x, 1, {BufferId{0}, {span(1, 3), span(2, 4)}}, {BufferId{1}, {span(2, 3), span(1, 1), all(4)}}, Combine::replace, {}});
  add(program, "other", Shift{x, 1, {BufferId{0}, {span(0, 2), all(6)}}, {BufferId{1}, {span(0, 3), all(2), span(2, 2)}}, Combine::replace, {}}, {0});
  schedule.programs.push_back(program);
  const Tensors tensors = run(schedule);
  const std::vector<float>&from = tensors.values[0][0], &to = tensors.values[1][1];
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(to[8 * (i / 4) + 4 * (i / 2 % 2) + 2 + i % 2], from[i]) << i;
    if (i / 4 > 0) {
      EXPECT_EQ(to[8 * (2 + i / 4) + 4 + i % 4], from[6 * (1 + i / 4) + 2 + i % 4]) << i;
    }
  }
  EXPECT_TRUE(std::isnan(to[0])) << "nobody wrote it";
}

TEST(Transfer, SendAndReceiveMeetAcrossPrograms) {
  // Device 0 sends its 4 numbers twice on one channel; device 2 adds the second to the first, device 1 idles.
  Schedule schedule{"pipeline", mesh_of({{"stage", 3, false}}), {}, {}};
  Program first{{{{0, 1}}}, {input("X", {4}, {{}})}, {}}, last{{{{2, 3}}}, {output("Y", {4}, {{}})}, {}};
  const Peer to_last{Affine{2}}, to_first{Affine{0}};
  const int sent = add(first, "send", Send{7, to_last, whole(first, 0), {}});
  add(first, "send again", Send{7, to_last, whole(first, 0), {}}, {sent});
  const int received = add(last, "receive", Recv{7, to_first, whole(last, 0), Combine::replace});
  add(last, "receive again", Recv{7, to_first, whole(last, 0), Combine::add}, {received});
  schedule.programs = {first, last};
  for (const Order& order : some_orders(5)) {
    const Tensors tensors = run(schedule, {.order = order});
    EXPECT_TRUE(tensors.values[1].empty());
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(tensors.values[2][0][i], 2 * tensors.values[0][0][i]);
  }
}

TEST(Guard, TasksAreAbsentWhereItDoesNotHold) {
  Schedule schedule{"guards", mesh_of({{"x", 4, false}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{every_device(schedule.mesh), {input("X", {1}, {{x}}), output("Y", {1}, {{x}})}, {}};
  // 0 -> 1 -> 2 by a guarded shift on an open axis; then device 3 copies its own.
  add(program, "shift", Shift{x, 1, whole(program, 0), whole(program, 1), Combine::replace, {}}, {}, {{own(x), 0, 2}});
  add(program, "copy", copy(whole(program, 0), whole(program, 1)), {}, {{own(x), 3, 4}});
  schedule.programs.push_back(program);
  const Tensors tensors = run(schedule);
  EXPECT_TRUE(std::isnan(tensors.values[0][1][0]));
  EXPECT_EQ(tensors.values[1][1], tensors.values[0][0]);
  EXPECT_EQ(tensors.values[2][1], tensors.values[1][0]);
  EXPECT_EQ(tensors.values[3][1], tensors.values[3][0]);
}

// ---- Locals ----

TEST(Local, KindsDoWhatTheTableSays) {
  Schedule schedule = on_one_device({input("A", {20}, {{}}), input("B", {20}, {{}}), output("Y", {5, 20}, {{}, {}})});
  Program& program = schedule.programs[0];
  const Region a = whole(program, 0), b = whole(program, 1);
  const auto row = [](std::int64_t r) { return Region{BufferId{2}, {span(r, 1), all(20)}}; };
  add(program, "copy", Local{LocalKind::copy, {a}, {row(0)}, 1, Unit::core});
  add(program, "add", Local{LocalKind::add, {a, b}, {row(1)}, 1, Unit::core});
  add(program, "scale", Local{LocalKind::scale, {a}, {row(2)}, -2.5, Unit::core});
  add(program, "place", Local{LocalKind::alias, {b}, {row(3)}, 1, Unit::dma});
  const int launch = add(program, "launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
  program.tasks[static_cast<std::size_t>(launch)].origin = Origin{0, CollectiveKind::all_gather, schedule.mesh.whole(0), {}};
  add(program, "in place", Local{LocalKind::add, {row(0), row(1)}, {row(1)}, 1, Unit::core}, {0, 1});
  const Tensors tensors = run(schedule);
  const auto& buffers = tensors.values[0];
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(buffers[2][i], buffers[0][i]);
    EXPECT_EQ(buffers[2][20 + i], 2 * buffers[0][i] + buffers[1][i]);
    EXPECT_EQ(buffers[2][40 + i], -2.5F * buffers[0][i]);
    EXPECT_EQ(buffers[2][60 + i], buffers[1][i]);
    EXPECT_TRUE(std::isnan(buffers[2][80 + i]));
  }
}

TEST(Local, ReadsAllBeforeItWritesWhereTheRegionsOverlap) {
  Schedule schedule = on_one_device({input("A", {40}, {{}}), output("Y", {40}, {{}})});
  Program& program = schedule.programs[0];
  const Region low{BufferId{1}, {span(0, 39)}}, high{BufferId{1}, {span(1, 39)}};
  add(program, "copy", copy(whole(program, 0), whole(program, 1)));
  add(program, "move up", Local{LocalKind::scale, {low}, {high}, 1, Unit::core}, {0});
  const Tensors tensors = run(schedule);
  for (std::size_t i = 1; i < 40; ++i) EXPECT_EQ(tensors.values[0][1][i], tensors.values[0][0][i - 1]);
}

TEST(Local, ElementwiseKindsAreThoseOfFloat32) {
  Schedule schedule = on_one_device({input("A", {20}, {{}}), input("B", {20}, {{}}), output("Y", {8, 20}, {{}, {}})});
  Program& program = schedule.programs[0];
  const Region a = whole(program, 0), b = whole(program, 1);
  const auto row = [](std::int64_t r) { return Region{BufferId{2}, {span(r, 1), all(20)}}; };
  add(program, "subtract", Local{LocalKind::subtract, {a, b}, {row(0)}});
  add(program, "multiply", Local{LocalKind::multiply, {a, b}, {row(1)}});
  add(program, "divide", Local{LocalKind::divide, {a, b}, {row(2)}});
  add(program, "add a number", Local{LocalKind::add_number, {a}, {row(3)}, 0.25});
  add(program, "reciprocal", Local{LocalKind::reciprocal, {b}, {row(4)}, 3});
  add(program, "relu", Local{LocalKind::relu, {a}, {row(5)}});
  const int copied = add(program, "copy", copy(a, row(6)));
  add(program, "in place", Local{LocalKind::divide, {row(6), row(1)}, {row(6)}}, {copied, 1});
  add(program, "maximum", Local{LocalKind::maximum, {a, b}, {row(7)}});
  const Tensors tensors = run(schedule);
  const auto& buffers = tensors.values[0];
  bool below_zero = false;
  for (std::size_t i = 0; i < 20; ++i) {
    const float x = buffers[0][i], y = buffers[1][i];
    EXPECT_EQ(buffers[2][i], x - y);
    EXPECT_EQ(buffers[2][20 + i], x * y);
    EXPECT_EQ(buffers[2][40 + i], x / y);
    EXPECT_EQ(buffers[2][60 + i], x + 0.25F);
    EXPECT_EQ(buffers[2][80 + i], 3.0F / y);
    EXPECT_EQ(buffers[2][100 + i], std::max(x, 0.0F));
    EXPECT_EQ(buffers[2][120 + i], x / (x * y));
    EXPECT_EQ(buffers[2][140 + i], std::max(x, y));
    below_zero |= x < 0;
  }
  EXPECT_TRUE(below_zero);
}

TEST(Local, SumsRunInOrderOfTheIndexAndRoundOnce) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Schedule schedule = on_one_device({input("A", {3, 40, 5}, {{}, {}, {}}, dtype), output("Y", {3, 5}, {{}, {}}, dtype)});
    Program& program = schedule.programs[0];
    program.buffers.push_back(scratch("sums", {3, 1, 5}, dtype));
    add(program, "sum", Local{LocalKind::sum_along, {whole(program, 0)}, {whole(program, 2)}});
    add(program, "copy", copy(whole(program, 2), whole(program, 1)), {0});
    const Tensors tensors = run(schedule, {1, Filling::uniform});
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 5; ++j) {
        float sum = tensors.values[0][0][i * 200 + j];
        for (std::size_t k = 1; k < 40; ++k) sum += tensors.values[0][0][i * 200 + k * 5 + j];
        EXPECT_EQ(tensors.values[0][1][i * 5 + j], dtype == DType::bf16 ? round_to_bf16(sum) : sum);
      }
  }
}

TEST(Local, BroadcastsRepeatDimensionsOfOne) {
  Schedule schedule = on_one_device({input("A", {2, 1, 3}, {{}, {}, {}}), output("Y", {2, 4, 3}, {{}, {}, {}}), input("B", {1, 1, 1}, {{}, {}, {}}),
                                     output("Z", {2, 4, 3}, {{}, {}, {}})});
  Program& program = schedule.programs[0];
  add(program, "rows", Local{LocalKind::broadcast_in_dim, {whole(program, 0)}, {whole(program, 1)}});
  add(program, "a number", Local{LocalKind::broadcast_in_dim, {whole(program, 2)}, {whole(program, 3)}});
  const Tensors tensors = run(schedule);
  for (std::size_t e = 0; e < 24; ++e) {
    EXPECT_EQ(tensors.values[0][1][e], tensors.values[0][0][e / 12 * 3 + e % 3]) << e;
    EXPECT_EQ(tensors.values[0][3][e], tensors.values[0][2][0]) << e;
  }
}

TEST(Local, BlocksOfADimensionComeFirstAndGoBack) {
  Schedule schedule = on_one_device({input("A", {2, 6, 5}, {{}, {}, {}}), output("Y", {3, 2, 2, 5}, {{}, {}, {}, {}}), output("Z", {2, 6, 5}, {{}, {}, {}})});
  Program& program = schedule.programs[0];
  add(program, "apart", Local{.kind = LocalKind::pack_blocks, .reads = {whole(program, 0)}, .writes = {whole(program, 1)}, .dims = {1, 0}});
  add(program, "together", Local{.kind = LocalKind::unpack_blocks, .reads = {whole(program, 1)}, .writes = {whole(program, 2)}, .dims = {0, 1}}, {0});
  const Tensors tensors = run(schedule);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 6; ++j)
      for (std::size_t k = 0; k < 5; ++k)
        EXPECT_EQ(tensors.values[0][1][((j / 2 * 2 + i) * 2 + j % 2) * 5 + k], tensors.values[0][0][(i * 6 + j) * 5 + k]);
  EXPECT_EQ(tensors.values[0][2], tensors.values[0][0]);
}

// ---- bf16 ----

TEST(Bf16, RoundsToNearestTiesToEven) {
  const float step = 0x1p-7F;  // between 1 and 2
  EXPECT_EQ(round_to_bf16(1 + step / 2), 1);
  EXPECT_EQ(round_to_bf16(1 + 3 * step / 2), 1 + 2 * step);
  EXPECT_EQ(round_to_bf16(std::nextafter(1 + step / 2, 2.0F)), 1 + step);
  EXPECT_EQ(round_to_bf16(-1 - 3 * step / 2), -1 - 2 * step);
  EXPECT_EQ(round_to_bf16(0x1.fep127F), 0x1.fep127F);
  EXPECT_EQ(round_to_bf16(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(round_to_bf16(0x1p-133F), 0x1p-133F);  // the smallest subnormal
  EXPECT_TRUE(std::signbit(round_to_bf16(-0.0F)));
  EXPECT_TRUE(std::isnan(round_to_bf16(std::bit_cast<float>(0x7fffffffU))));
  EXPECT_TRUE(std::isnan(round_to_bf16(std::bit_cast<float>(0x7f800001U))));
}

/// The numbers of a format of 8 bits from 0 on, by its definition.
std::vector<float> positive_numbers(int mantissa, int bias, int codes) {
  std::vector<float> numbers;
  for (int code = 0; code < codes; ++code) {
    const int exponent = code >> mantissa, fraction = code & ((1 << mantissa) - 1);
    numbers.push_back(exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa)
                                    : std::ldexp(static_cast<float>((1 << mantissa) + fraction), exponent - bias - mantissa));
  }
  return numbers;
}

TEST(Float8, RoundsToNearestTiesToEvenBetweenAllNeighbours) {
  const auto holds = [](DType dtype, const std::vector<float>& numbers) {
    for (const float sign : {1.0F, -1.0F})
      for (std::size_t code = 0; code < numbers.size(); ++code) {
        EXPECT_EQ(stored_in(dtype, sign * numbers[code]), sign * numbers[code]);
        if (code + 1 == numbers.size()) break;
        const float low = sign * numbers[code], high = sign * numbers[code + 1], middle = (low + high) / 2;
        EXPECT_EQ(stored_in(dtype, middle), code % 2 == 0 ? low : high);
        EXPECT_EQ(stored_in(dtype, std::nextafter(middle, low)), low);
        EXPECT_EQ(stored_in(dtype, std::nextafter(middle, high)), high);
      }
  };
  holds(DType::f8e4m3fn, positive_numbers(3, 7, 127));  // 448 is the last, then the NaN
  holds(DType::f8e5m2, positive_numbers(2, 15, 124));   // 57344 is the last, then infinity
}

TEST(Float8, OverflowsAsXlaDoes) {
  EXPECT_EQ(round_to_f8e4m3fn(464), 448) << "a tie, and the next one would be odd";
  EXPECT_TRUE(std::isnan(round_to_f8e4m3fn(std::nextafter(464.0F, 1e3F))));
  EXPECT_TRUE(std::isnan(round_to_f8e4m3fn(-std::numeric_limits<float>::infinity())));
  EXPECT_EQ(round_to_f8e5m2(std::nextafter(61440.0F, 0.0F)), 57344);
  EXPECT_EQ(round_to_f8e5m2(61440), std::numeric_limits<float>::infinity()) << "a tie";
  EXPECT_EQ(round_to_f8e5m2(-1e30F), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(round_to_f8e5m2(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(round_to_f8e5m2(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::signbit(round_to_f8e4m3fn(-0.0F)) && std::signbit(round_to_f8e4m3fn(-0x1p-11F)));
}

TEST(Int8, WrapsAndKeepsWhatIsNoNumber) {
  for (const auto& [value, held] : {std::pair{127.0F, 127.0F}, {128.0F, -128.0F}, {-129.0F, 127.0F}, {300.0F, 44.0F}, {-128.0F, -128.0F}}) EXPECT_EQ(wrap_to_s8(value), held);
  EXPECT_TRUE(std::isnan(wrap_to_s8(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Narrow, EveryStoreRounds) {
  for (const DType dtype : {DType::f8e4m3fn, DType::f8e5m2, DType::s8}) {
    const Schedule schedule = ring_reduce_scatter(3, 2, dtype);
    const Tensors tensors = run(schedule, {.filling = Filling::uniform});
    const auto x = [&](std::size_t device, std::size_t at) { return tensors.values[device][0][at]; };
    for (std::size_t d = 0; d < 3; ++d)
      for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(x(d, i), stored_in(dtype, x(d, i)));
        // Block d of the devices behind it comes first; each sum is stored.
        const std::size_t at = 6 * d + i;
        const float two = stored_in(dtype, x((d + 2) % 3, at) + x((d + 1) % 3, at));
        EXPECT_EQ(tensors.values[d][1][i], stored_in(dtype, x(d, at) + two)) << name_of(dtype);
      }
  }
}

TEST(Bf16, EveryStoreRoundsAndMatmulsAreFloatInside) {
  Schedule schedule{"bf16", mesh_of({{"x", 2, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  const DType bf16 = DType::bf16;
  Program program{every_device(schedule.mesh),
                  {input("X", {3, 33}, {{x}, {}}, bf16), input("W", {33, 5}, {{}, {x}}, bf16), output("Y", {3, 5}, {{}, {}}, bf16),
                   output("Z", {3, 5}, {{}, {}}, bf16), output("V", {3, 5}, {{}, {}}, bf16)},
                  {}};
  const Region y = whole(program, 2), z = whole(program, 3), v = whole(program, 4);
  add(program, "product", Matmul{whole(program, 0), whole(program, 1), y, 1, 1, 1, false, false, false});
  add(program, "copy", copy(y, z), {0});
  add(program, "wire", Shift{x, 1, y, z, Combine::add, {}}, {1});
  add(program, "scale", Local{LocalKind::scale, {z}, {v}, 1.0 / 3, Unit::core}, {2});
  add(program, "accumulate", Matmul{whole(program, 0), whole(program, 1), y, 1, 1, 1, false, false, true}, {2});
  schedule.programs.push_back(program);
  const Tensors tensors = run(schedule, {.filling = Filling::uniform});
  const auto product = [&](std::size_t d, std::size_t i) {
    double sum = 0;  // exact enough: rounds to the same bf16 unless it lies on a tie to 1e-7
    for (std::size_t k = 0; k < 33; ++k)
      sum += static_cast<double>(tensors.values[d][0][33 * (i / 5) + k]) * static_cast<double>(tensors.values[d][1][5 * k + i % 5]);
    return static_cast<float>(sum);
  };
  for (std::size_t d = 0; d < 2; ++d) {
    for (const float value : tensors.values[d][0]) EXPECT_EQ(value, round_to_bf16(value));
    for (std::size_t i = 0; i < 15; ++i) {
      const float own = round_to_bf16(product(d, i)), other = round_to_bf16(product(1 - d, i));
      const float sum = round_to_bf16(own + other);
      EXPECT_EQ(tensors.values[d][3][i], sum);
      EXPECT_EQ(tensors.values[d][4][i], round_to_bf16(static_cast<float>(static_cast<double>(sum) / 3)));
      EXPECT_EQ(tensors.values[d][2][i], round_to_bf16(own + product(d, i)));
    }
  }
}

// ---- Inputs ----

TEST(Inputs, ShardsAgreeAndViewsFlattenRowMajor) {
  Schedule schedule{"inputs", mesh_of({{"r", 2, true}, {"c", 3, true}}), {}, {}};
  const AxisView r = schedule.mesh.whole(0), c = schedule.mesh.whole(1);
  schedule.programs.push_back({every_device(schedule.mesh),
                               {input("X", {4, 12}, {{}, {}}), input("X", {2, 4}, {{r}, {c}}), input("X", {4, 1, 2, 2}, {{}, {c}, {}, {}}),
                                input("X", {4, 2}, {{}, {c, r}}), input("X", {4, 12, 1}, {{}, {}, {}})},
                               {}});
  for (const Filling filling : {Filling::integers, Filling::uniform}) {
    const Tensors tensors = run(schedule, {.filling = filling});
    for (std::size_t d = 0; d < 6; ++d) {
      const auto& buffers = tensors.values[d];
      const std::size_t row = d / 3, col = d % 3;
      const auto global = [&](std::size_t i, std::size_t j) { return tensors.values[0][0][12 * i + j]; };
      EXPECT_EQ(buffers[0], tensors.values[0][0]);
      EXPECT_EQ(buffers[4], tensors.values[0][0]);
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(buffers[1][4 * i + j], global(2 * row + i, 4 * col + j));
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(buffers[2][4 * i + j], global(i, 4 * col + j));
        for (std::size_t j = 0; j < 2; ++j) EXPECT_EQ(buffers[3][2 * i + j], global(i, 2 * (2 * col + row) + j));
      }
    }
  }
}

TEST(Inputs, HaveTheirRangesAndDependOnTheSeed) {
  const Schedule schedule = on_one_device({input("X", {3000}, {{}}), input("W", {3000}, {{}})});
  std::set<float> integers;
  const Tensors tensors = run(schedule), other_seed = run(schedule, {.seed = 2}), uniform = run(schedule, {.filling = Filling::uniform});
  for (const float value : tensors.values[0][0]) integers.insert(value);
  EXPECT_EQ(integers, (std::set<float>{-8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_NE(tensors.values[0][0], tensors.values[0][1]) << "tensors differ by their names";
  EXPECT_NE(tensors.values[0][0], other_seed.values[0][0]);
  double sum = 0, squares = 0;
  for (const float value : uniform.values[0][0]) {
    EXPECT_LT(std::abs(value), 1);
    sum += static_cast<double>(value), squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 3000, 0, 0.04);
  EXPECT_NEAR(squares / 3000, 1.0 / 3, 0.02);
}

TEST(Inputs, IntegersAreAsLargeAsEveryPartialSumAllows) {
  const auto products = [](std::vector<std::int64_t> ks) {
    Products all;
    for (const std::int64_t k : ks) all.push_back({"Y", "X", "W", 1, 1, k, false, false});
    return all;
  };
  EXPECT_EQ(integer_range(products({1})), 4096);
  EXPECT_EQ(integer_range(products({4096})), 64);
  EXPECT_EQ(integer_range(products({16, 4096, 64})), 64) << "the longest sum decides";
  EXPECT_EQ(integer_range(products({1 << 24})), 1);
  EXPECT_EQ(integer_range(products({std::int64_t{1} << 30})), 1);
  Schedule schedule = ring_reduce_scatter(5, 1);
  EXPECT_EQ(integer_range(schedule.computes), (1 << 24) / 5);
  EXPECT_EQ(integer_range(ring_all_gather(5, 1).computes), 1 << 24) << "nothing is added";

  // bf16 has 8 bits: the integers would not survive a store that rounds.
  schedule.programs[0].buffers[0].dtype = schedule.programs[0].buffers[1].dtype = schedule.programs[0].buffers[2].dtype = DType::bf16;
  const Tensors tensors = run(schedule);
  const auto wide = [](float value) { return value != round_to_bf16(value); };
  EXPECT_TRUE(std::any_of(tensors.values[0][0].begin(), tensors.values[0][0].end(), wide));
  EXPECT_TRUE(Reference::make(schedule, {})->compare(tensors).bit_equal);
}

TEST(Inputs, OfACollectiveDifferOnEveryDeviceAlongItsAxes) {
  // X is declared to be the same on both rows, yet the all-gather along them is of what each has.
  Schedule schedule{"replicated", mesh_of({{"r", 2, true}, {"c", 2, true}}), {}, {}};
  const AxisView r = schedule.mesh.whole(0), c = schedule.mesh.whole(1);
  Program program{every_device(schedule.mesh), {input("X", {4}, {{c}}), output("Y", {8}, {{}})}, {}};
  schedule.programs.push_back(program);
  const auto gather_along = [&](std::vector<AxisView> axes) {
    schedule.computes = Collective{CollectiveKind::all_gather, std::move(axes), whole(program, 0), whole(program, 1), 0, 0, 0};
    return run(schedule).values;
  };
  const auto rows = gather_along({r}), columns = gather_along({c});
  EXPECT_NE(rows[0][0], rows[2][0]);
  EXPECT_EQ(columns[0][0], columns[2][0]) << "a schedule along c may rely on the rows being alike";
  EXPECT_NE(columns[0][0], columns[1][0]);
}

// ---- Orders, threads, limits ----

TEST(Threads, DoNotChangeAResultNotEvenOfARacySchedule) {
  Schedule racy = ring_reduce_scatter(5, 4096);  // large enough that threads take part
  for (Task& task : racy.programs[0].tasks) task.after.clear();
  for (const Schedule& schedule : {sliced_product(4, {128, 128, 512}, 2, 8), racy})
    for (const Order& order : some_orders(5)) {
      const Tensors one = run(schedule, {.filling = Filling::uniform, .order = order, .threads = 1});
      for (const int threads : {2, 5}) {
        const Tensors many = run(schedule, {.filling = Filling::uniform, .order = order, .threads = threads});
        EXPECT_EQ(bits(one), bits(many));
      }
    }
}

TEST(Order, RandomOrdersUncoverAMissingEdge) {
  Schedule schedule = ring_all_gather(4, 2);
  schedule.programs[0].tasks[2].after.clear();  // the second step may run before the first has arrived
  const Tensors in_program_order = run(schedule);
  int different = 0;
  for (const Order& order : some_orders(10)) different += run(schedule, {.order = order}).values != in_program_order.values;
  EXPECT_GT(different, 2);
  EXPECT_TRUE(Reference::make(schedule, {})->compare(in_program_order).bit_equal) << "program order hides it";
}

TEST(Order, CoreOrderIsNotKept) {
  // Two copies to one place with nothing between them: the later in the program sometimes runs first.
  Schedule schedule = on_one_device({input("A", {1}, {{}}), input("B", {1}, {{}}), output("Y", {1}, {{}})});
  Program& program = schedule.programs[0];
  add(program, "a", copy(whole(program, 0), whole(program, 2)));
  add(program, "b", copy(whole(program, 1), whole(program, 2)));
  std::set<float> results;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    results.insert(run(schedule, {.seed = 2, .filling = Filling::uniform, .order = {seed}}).values[0][2][0]);
  EXPECT_EQ(results.size(), 2U);
}

TEST(Order, ARoundInProgramOrderIsTheLowestTaskOfEveryProgram) {
  Schedule schedule{"two stages", mesh_of({{"stage", 3, false}}), {}, {}};
  Program first{{{{0, 2}}}, {input("X", {1}, {{}}), output("Y", {1}, {{}})}, {}}, last = first;
  last.devices = {{{2, 3}}};
  add(first, "only", copy(whole(first, 0), whole(first, 1)));
  add(last, "nowhere", copy(whole(last, 0), whole(last, 1)), {}, {{own(schedule.mesh.whole(0)), 0, 1}});
  add(last, "one", copy(whole(last, 0), whole(last, 1)));
  add(last, "two", copy(whole(last, 0), whole(last, 1)));
  schedule.programs = {first, last};
  const Unrolled unrolled = unroll(schedule);
  ReadySet ready{unrolled.graph, {}};
  GraphProgress{unrolled.graph}.start([&](std::uint32_t activity) { ready.add(activity); });
  std::vector<std::uint32_t> round;
  ready.take(round);
  EXPECT_EQ(round, (std::vector<std::uint32_t>{0, 1, 2})) << "the first program's task on both devices, the second program's first";
  ready.take(round);
  EXPECT_EQ(round, (std::vector<std::uint32_t>{3}));
  EXPECT_TRUE(ready.empty());
}

TEST(Limits, ADeadlockIsAnErrorThatNamesTheTasks) {
  // Each device wants to receive before it sends.
  Schedule schedule{"deadlock", mesh_of({{"x", 2, false}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{every_device(schedule.mesh), {input("X", {1}, {{x}}), output("Y", {1}, {{x}})}, {}};
  const Peer other{own(x, 1)};
  const int receive = add(program, "wait first", Recv{0, other, whole(program, 1), Combine::replace});
  add(program, "then send", Send{0, other, whole(program, 0), {}}, {receive});
  schedule.programs.push_back(program);
  const Expected<Tensors> tensors = make_numeric_engine({})->run(schedule);
  ASSERT_FALSE(tensors);
  EXPECT_THAT(to_text(tensors.error()), ::testing::HasSubstr("deadlock"));
  EXPECT_THAT(to_text(tensors.error()), ::testing::HasSubstr("then send"));
}

TEST(Limits, ToldToStopItHasNoResult) {
  std::atomic<bool> stop = true;
  const Expected<Tensors> tensors = make_numeric_engine({.stop = &stop})->run(ring_all_gather(4, 2));
  ASSERT_FALSE(tensors);
  EXPECT_EQ(tensors.error().cause, Cause::cancelled);
  const Expected<Reference> reference = Reference::make(ring_all_gather(4, 2), {.stop = &stop});
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().cause, Cause::cancelled);

  // In the middle: no activity of a later round runs.
  stop = false;
  const Schedule schedule = ring_all_gather(4, 2);
  std::size_t finished = 0, rounds = 0;
  const RunHooks hooks{&stop, [&](std::size_t so_far, std::size_t) { finished = so_far, stop = ++rounds == 2; }};
  const auto executor = Executor::make(schedule, 1, {Bytes{}, Bytes{1 << 20}}, hooks);
  ASSERT_TRUE(executor);
  const Status ran = (*executor)->run(1, Filling::integers, {});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().cause, Cause::cancelled);
  EXPECT_EQ(rounds, 2U);
  EXPECT_EQ(finished, 8U) << "of 16";
}

TEST(Limits, TooMuchMemoryIsAnErrorBeforeItIsTaken) {
  Schedule schedule{"huge", mesh_of({{"x", 4096, true}, {"y", 4096, true}}), {}, {}};
  schedule.programs.push_back({every_device(schedule.mesh), {scratch("huge", {std::int64_t{1} << 50})}, {}});
  const Expected<Tensors> huge = make_numeric_engine({})->run(schedule);
  ASSERT_FALSE(huge);
  EXPECT_THAT(to_text(huge.error()), ::testing::HasSubstr("the limit is"));
  // 2 devices with 2 x 1024 floats each, and a copy of the results.
  Schedule small{"small", mesh_of({{"x", 2, true}}), {}, {}};
  small.programs.push_back({every_device(small.mesh), {input("X", {1024}, {{}}), scratch("s", {1024})}, {}});
  EXPECT_TRUE(make_numeric_engine({.max_bytes = Bytes{3 * 8192}})->run(small));
  const Expected<Tensors> over = make_numeric_engine({.max_bytes = Bytes{3 * 8192 - 1}})->run(small);
  ASSERT_FALSE(over);
  EXPECT_EQ(to_text(over.error()), "executing the schedule on 2 devices needs 24.58 kB of memory; the limit is 24.57 kB");
}

TEST(Limits, BadSchedulesAreErrors) {
  Schedule collective{"not lowered", mesh_of({{"x", 2, true}}), {}, {}};
  const AxisView x = collective.mesh.whole(0);
  Program program{every_device(collective.mesh), {input("X", {2}, {{x}}), output("Y", {4}, {{}})}, {}};
  add(program, "gather", Collective{CollectiveKind::all_gather, {x}, whole(program, 0), whole(program, 1), 0, 0, 0});
  collective.programs.push_back(program);
  EXPECT_FALSE(make_numeric_engine({})->run(collective));
  const Schedule deep = on_one_device({scratch("deep", {1, 1, 1, 1, 1, 1, 1, 1, 1})});
  const Expected<Tensors> tensors = make_numeric_engine({})->run(deep);
  ASSERT_FALSE(tensors);
  EXPECT_EQ(to_text(tensors.error()), "buffer \"deep\" has 9 dimensions; the numeric engine takes at most 8");
}

}  // namespace
}  // namespace podsim
