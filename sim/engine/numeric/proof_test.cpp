// A contribution that is lost, doubled, swapped or stale does not pass, however many devices there are and whatever the dtype.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"

namespace podsim {
namespace {

using namespace hand_built;

constexpr std::array<DType, 2> dtypes{DType::f32, DType::bf16};

/// A schedule that is right, and what is done to it.
using Change = std::function<void(Program&)>;
void expect_caught(const Schedule& right, const Change& change, const std::string& what) {
  Schedule wrong = right;
  change(wrong.programs[0]);
  const CheckOptions options{.random_orders = 0, .threads = 1};
  for (const bool is_wrong : {false, true}) {
    const Expected<CheckReport> report = check(is_wrong ? wrong : right, options);
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_EQ(report->bit_equal, !is_wrong) << what << " on " << right.mesh.devices() << " devices\n" << to_text(report->problems);
    EXPECT_EQ(report->ok, !is_wrong) << what;
    EXPECT_TRUE(report->matched && report->race_free) << what << ": found by the numbers\n" << to_text(report->problems);
  }
}

template <class Op>
Op& op(Program& program, std::size_t task) {
  return std::get<Op>(program.tasks[task].op);
}

TEST(Proof, FindsOneLostSumOfARingOfAnyLength) {
  for (const DType dtype : dtypes)
    for (const int P : {2, 3, 16, 64}) {
      const Schedule right = ring_reduce_scatter(P, 1, dtype);
      for (const std::size_t step : std::set<std::size_t>{1, static_cast<std::size_t>(P) / 2})
        expect_caught(right, [&](Program& program) { op<Shift>(program, step).combine = Combine::replace; }, "replaced");
    }
}

TEST(Proof, FindsTheBlockOfANeighbour) {
  for (const DType dtype : dtypes)
    for (const int P : {4, 64}) {
      const Schedule right = ring_reduce_scatter(P, 1, dtype);
      const Region another{BufferId{2}, {block(own(right.mesh.whole(0), 1), 1), all(3)}};
      expect_caught(right, [&](Program& program) { op<Local>(program, static_cast<std::size_t>(P)).reads[0] = another; }, "the sum of all but one");
    }
}

TEST(Proof, FindsADoubledTerm) {
  for (const DType dtype : dtypes)
    for (const int P : {2, 64}) {
      // Device 0 adds its own terms of the last block twice.
      expect_caught(
          ring_reduce_scatter(P, 1, dtype),
          [&](Program& program) {
            const Region result = whole(program, 1);
            Region own_terms = whole(program, 0);
            own_terms.dims[0] = span(0, 1);
            add(program, "once more", Local{LocalKind::add, {result, own_terms}, {result}, 1, Unit::core}, {P},
                {{own(AxisView{0, 1, P}), 0, 1}});
          },
          "doubled");
    }
}

TEST(Proof, FindsALostSliceOfAProduct) {
  for (const DType dtype : dtypes) {
    const Schedule right = sliced_product(2, {4, 4, 256}, 64, 2, dtype);
    std::vector<std::size_t> products;
    for (std::size_t t = 0; t < right.programs[0].tasks.size(); ++t)
      if (std::holds_alternative<Matmul>(right.programs[0].tasks[t].op)) products.push_back(t);
    ASSERT_EQ(products.size(), 64U);
    for (const std::size_t lost : {1, 2, 32}) {
      expect_caught(right, [&](Program& program) { op<Matmul>(program, products[lost]).accumulate = false; }, "slices before lost");
      expect_caught(
          right,
          [&](Program& program) {
            auto& cut = op<Local>(program, products[lost] - 3);
            ASSERT_EQ(program.tasks[products[lost] - 3].label, "cut W");
            cut.reads[0].dims[1] = span(static_cast<std::int64_t>(lost) - 1, 1);
          },
          "the slice before is taken for one operand");
    }
  }
}

TEST(Proof, FindsAStaleSlice) {
  for (const DType dtype : dtypes)
    expect_caught(
        sliced_product(2, {4, 4, 32}, 4, 2, dtype),
        [](Program& program) {
          for (Task& task : program.tasks)
            if (auto* local = std::get_if<Local>(&task.op); local != nullptr && task.label == "cut X") local->reads[0].dims[2] = span(0, 1);
        },
        "every slice is the first");
}

TEST(Proof, FindsSwappedSingleElements) {
  // Y on device d: element d of every device. One element a pair.
  for (const DType dtype : dtypes)
    for (const int P : {2, 64}) {
      Schedule right{"all-to-all", mesh_of({{"x", P, true}}), {}, {}};
      const AxisView x = right.mesh.whole(0);
      Program program{every_device(right.mesh), {input("X", {P}, {{x}}, dtype), output("Y", {P}, {{x}}, dtype)}, {}};
      const auto at = [&](int buffer, std::int64_t add_to_own) { return Region{BufferId{buffer}, {block(own(x, add_to_own), 1)}}; };
      add(program, "own", copy(at(0, 0), at(1, 0)));
      for (int step = 1; step < P; ++step)
        add(program, "step", Shift{x, step, at(0, step), at(1, -step), Combine::replace, {}});
      right.computes = Collective{CollectiveKind::all_to_all, {x}, whole(program, 0), whole(program, 1), 0, 0, 0};
      right.programs.push_back(program);
      expect_caught(right, [&](Program& wrong) { op<Local>(wrong, 0).reads[0] = at(0, 1); }, "another element of its own");
      expect_caught(right, [&](Program& wrong) { op<Shift>(wrong, static_cast<std::size_t>(P) / 2).source = at(0, 0); }, "the sender's own");
    }
}

TEST(Proof, HoldsForTheLongestSums) {
  // K beyond 2^24 / 16.
  constexpr std::int64_t k = (1 << 20) + 64;
  Schedule right{"long", Mesh{}, {}, Products{{"Y", "X", "W", 1, 2, k, false, false}}};
  Program program{every_device(right.mesh), {input("X", {1, k}, {{}, {}}), input("W", {k, 2}, {{}, {}}), output("Y", {1, 2}, {{}, {}})}, {}};
  const auto half = [&](std::int64_t begin, std::int64_t length, bool accumulate) {
    Region x = whole(program, 0), w = whole(program, 1);
    x.dims[1] = w.dims[0] = span(begin, length);
    return Matmul{x, w, whole(program, 2), 1, 1, 1, false, false, accumulate};
  };
  const int first = add(program, "first half", half(0, k / 2, false));
  add(program, "second half", half(k / 2, k / 2, true), {first});
  right.programs.push_back(program);
  expect_caught(right, [&](Program& wrong) { op<Matmul>(wrong, 1) = half(k / 2, k / 2 - 1, true); }, "the last term is lost");
}

}  // namespace
}  // namespace podsim
