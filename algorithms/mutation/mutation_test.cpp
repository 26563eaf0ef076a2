// No schedule with a contribution lost, doubled or swapped passes check(), and none that is right fails it on numbers. Another interpreter, on
// exact integers, says which is which.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "algorithms/mutation/bases.hpp"
#include "algorithms/mutation/interpreter.hpp"
#include "algorithms/mutation/mutants.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using mutation::Base;
using mutation::Judgement;
using mutation::Mutant;
using mutation::Verdict;

constexpr int thinned = test::cases(1, 4);  // sanitized builds make a fourth of the mutants, of a fourth of the schedules

CheckOptions options() {
  CheckOptions options;
  options.random_orders = 1;
  options.threads = 1;
  return options;
}

/// What became of the mutants of one test: by the truth, and by check().
struct Tally {
  int mutants = 0;
  std::map<Verdict, int> truth;
  int racy = 0, racy_but_right = 0;  // of those where races were looked for
  int ok = 0, unmatched = 0, deadlocks = 0, races = 0, numbers = 0;
};

void count(Tally& tally, const Judgement& truth, const CheckReport* report) {
  ++tally.mutants;
  ++tally.truth[truth.verdict];
  tally.racy += !truth.race.empty();
  tally.racy_but_right += !truth.race.empty() && truth.verdict == Verdict::right;
  ++(report && report->ok          ? tally.ok
     : !report || !report->matched ? tally.unmatched
     : !report->deadlock_free      ? tally.deadlocks
     : !report->race_free          ? tally.races
                                   : tally.numbers);
}

bool runs(const CheckReport& report) { return report.matched && report.deadlock_free; }
bool refused_for_numbers(const CheckReport& report) { return !report.ok && runs(report) && report.race_free; }

mutation::Trial trial_of(const Schedule& schedule, std::uint64_t seed) {
  const bool small = schedule.mesh.devices() <= 16 && schedule.programs.front().tasks.size() < 100;
  return {.seed = seed, .orders = small ? 4 : 2, .races = small};
}

void expect_right(const Base& base) {
  SCOPED_TRACE(base.name);
  const Judgement truth = mutation::judge(base.schedule, trial_of(base.schedule, 1));
  EXPECT_EQ(truth.verdict, Verdict::right) << truth.why;
  EXPECT_EQ(truth.race, "");
  const auto report = check(base.schedule, options());
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok) << to_text(report->problems);
}

void expect_agreement(const Base& base, const Mutant& mutant, std::uint64_t seed, Tally& tally) {
  SCOPED_TRACE(fmt::format("{}, seed {}: {}", base.name, seed, mutant.mistake));
  const mutation::Trial trial = trial_of(mutant.schedule, seed);
  const Judgement truth = mutation::judge(mutant.schedule, trial);
  const auto report = check(mutant.schedule, options());
  const bool right = truth.verdict == Verdict::right && truth.race.empty();
  EXPECT_FALSE(report && report->ok && !right) << "passed, but " << truth.why << truth.race;
  EXPECT_FALSE(report && refused_for_numbers(*report) && right) << "refused, but right: " << to_text(report->problems);
  if (report && runs(*report) && trial.races && truth.verdict != Verdict::malformed) {
    EXPECT_EQ(report->race_free, truth.race.empty()) << truth.race << to_text(report->problems);
  }
  count(tally, truth, report ? &*report : nullptr);
}

void record(const Tally& tally) {
  std::string text = fmt::format("{} mutants, by the truth:", tally.mutants);
  const auto of = [&](Verdict verdict) { return tally.truth.contains(verdict) ? tally.truth.at(verdict) : 0; };
  text += fmt::format(" {} right, {} wrong, {} stuck, {} malformed; {} race, {} of these are right all the same;", of(Verdict::right),
                      of(Verdict::wrong), of(Verdict::deadlock), of(Verdict::malformed), tally.racy, tally.racy_but_right);
  text += fmt::format(" by check(): {} ok, {} refused for shapes or matching, {} for deadlocks, {} for races, {} for numbers", tally.ok,
                      tally.unmatched, tally.deadlocks, tally.races, tally.numbers);
  ::testing::Test::RecordProperty("mutants", text);
}

using Mistake = Mutant (*)(const Schedule&, std::uint64_t);

/// Makes schedules, and mistakes of one sort after the other in each.
class Campaign {
 public:
  ~Campaign() { record(tally_); }

  template <class MakeBase>
  void of(MakeBase make_base, Mistake mistake, int mutants, std::uint64_t first_seed = 0) {
    if (bases_++ % thinned != 0) return;
    const Expected<Base> base = make_base();
    ASSERT_TRUE(base) << to_text(base.error());
    expect_right(*base);
    for (int i = 0; i < std::max(mutants / thinned, 1); ++i) {
      const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
      expect_agreement(*base, mistake(base->schedule, seed), seed, tally_);
    }
  }

 private:
  Tally tally_;
  int bases_ = 0;
};

constexpr DType dtypes[] = {DType::f32, DType::bf16};
constexpr Dataflow dataflows[] = {Dataflow::os, Dataflow::ls, Dataflow::rs};

// ---- 2 to 16 devices ------------------------------------------------------------------------------------------------------------------------

void small_gemms(DType dtype, std::uint64_t first) {
  Campaign campaign;
  for (const GemmAlgorithmEntry& algorithm : gemm_algorithms())
    for (std::uint64_t b = first; b < first + 6; ++b)
      campaign.of([&] { return mutation::small_gemm(algorithm, dtype, b); }, &mutation::mutate, 6, 100 * b);
}
TEST(Mutation, OfGemmsOnFewDevicesF32) { small_gemms(DType::f32, 0); }
TEST(Mutation, OfGemmsOnFewDevicesBf16) { small_gemms(DType::bf16, 50); }

void small_collectives(DType dtype, std::uint64_t first) {
  Campaign campaign;
  for (const auto& [name, kind] : mutation::algorithms_and_kinds())
    for (std::uint64_t b = first; b < first + 5; ++b)
      campaign.of([&, name = name, kind = kind] { return mutation::small_collective(name, kind, dtype, b); }, &mutation::mutate, 5, 100 * b);
}
TEST(Mutation, OfCollectivesOnFewDevicesF32) { small_collectives(DType::f32, 0); }
TEST(Mutation, OfCollectivesOnFewDevicesBf16) { small_collectives(DType::bf16, 50); }

// ---- Many devices, long sums ----------------------------------------------------------------------------------------------------------------

constexpr GemmOptions sliced(std::int64_t slices) { return {.slice_count = slices, .block = 1, .wang_operand = {}}; }

/// Every other mistake in a sum.
Mutant mutate_or_sum(const Schedule& base, std::uint64_t seed) {
  return seed % 2 == 0 ? mutation::mutate(base, seed) : mutation::mutate_sum(base, seed);
}

void gemms_on_64(DType dtype, int mutants) {
  Campaign campaign;
  for (const GemmAlgorithmEntry& algorithm : gemm_algorithms())
    for (const Dataflow dataflow : dataflows) {
      if (algorithm.only.value_or(dataflow) != dataflow) continue;
      const GemmOptions options = algorithm.needs_slice_count ? sliced(3) : GemmOptions{};
      campaign.of([&] { return mutation::gemm_on(algorithm, dataflow, dtype, 8, 8, options); }, &mutate_or_sum, mutants);
    }
}
TEST(Mutation, OfGemmsOn64DevicesF32) { gemms_on_64(DType::f32, 2); }
TEST(Mutation, OfGemmsOn64DevicesBf16) { gemms_on_64(DType::bf16, 6); }

void collectives_on_64(DType dtype, int mutants) {
  Campaign campaign;
  for (const auto& [name, kind] : mutation::algorithms_and_kinds()) {
    const bool sums = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce;
    const std::vector<int> extents = collective_algorithm_named(name)->needs.axes > 1 ? std::vector{8, 8} : std::vector{64};
    campaign.of([&, name = name, kind = kind] { return mutation::collective_on(name, kind, dtype, extents); },
                sums ? &mutation::mutate_sum : &mutation::mutate, sums ? mutants : 1);
  }
}
TEST(Mutation, OfCollectivesOn64DevicesF32) { collectives_on_64(DType::f32, 1); }
TEST(Mutation, OfCollectivesOn64DevicesBf16) { collectives_on_64(DType::bf16, 4); }

void sums_on(Campaign& campaign, const std::vector<int>& extents, std::string_view algorithm, CollectiveKind kind, DType dtype, int mutants) {
  campaign.of([&] { return mutation::collective_on(algorithm, kind, dtype, extents); }, &mutation::mutate_sum, mutants);
}
void sums_on(Campaign& campaign, int side, std::string_view algorithm, Dataflow dataflow, DType dtype, int mutants, const GemmOptions& options = {}) {
  campaign.of([&] { return mutation::gemm_on(**gemm_algorithm(algorithm), dataflow, dtype, side, side, options); }, &mutation::mutate_sum, mutants);
}

TEST(Mutation, OfSumsOver128Slices) {
  Campaign campaign;
  for (const DType dtype : dtypes)
    for (const Dataflow dataflow : dataflows) sums_on(campaign, 2, "meshslice", dataflow, dtype, 6, sliced(128));
}

TEST(Mutation, OfSumsOver128Devices) {
  using enum CollectiveKind;
  Campaign campaign;
  for (const std::string_view algorithm : {"ring-one-way", "ring-shortest", "line", "halving-doubling", "direct", "pallas-alternating"})
    sums_on(campaign, {128}, algorithm, reduce_scatter, DType::bf16, 3);
}

TEST(Mutation, OfSumsOver256Devices) {
  using enum CollectiveKind;
  Campaign campaign;
  sums_on(campaign, {256}, "line", reduce_scatter, DType::bf16, 1);
  for (const DType dtype : dtypes) {
    sums_on(campaign, {16, 16}, "ring", all_reduce, dtype, 2);
    sums_on(campaign, 16, "summa", Dataflow::ls, dtype, 2);
    sums_on(campaign, 16, "cannon", Dataflow::os, dtype, 2);
  }
}

TEST(Mutation, OfSumsOver1024Devices) {
  using enum CollectiveKind;
  Campaign campaign;
  for (const DType dtype : dtypes) {
    sums_on(campaign, {1024}, "halving-doubling", reduce_scatter, dtype, 2);
    sums_on(campaign, {1024}, "line", reduce, dtype, 2);
    sums_on(campaign, 32, "wang", Dataflow::ls, dtype, 1);
  }
}

TEST(Mutation, LeavesNoCollectiveOut) {
  const auto& listed = mutation::algorithms_and_kinds();
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
    for (int kind = 0; kind < collective_kind_count; ++kind) {
      const std::pair pair{entry.name, static_cast<CollectiveKind>(kind)};
      const bool does = static_cast<bool>(mutation::small_collective(pair.first, pair.second, DType::f32, 0));
      EXPECT_EQ(does, std::find(listed.begin(), listed.end(), pair) != listed.end()) << pair.first << " " << name_of(pair.second);
    }
}

// ---- What is claimed ------------------------------------------------------------------------------------------------------------------------

TEST(Mutation, OfTheClaimIsSeen) {
  const auto passes = [](const Schedule& schedule) {
    const auto report = check(schedule, options());
    return report && report->ok;
  };
  for (const GemmAlgorithmEntry& algorithm : gemm_algorithms()) {
    const auto base = mutation::small_gemm(algorithm, DType::bf16, 0);
    ASSERT_TRUE(base) << to_text(base.error());
    Schedule silent = base->schedule;
    silent.computes = {};
    EXPECT_FALSE(passes(silent)) << base->name;
    auto& products = std::get<Products>((silent = base->schedule).computes);
    products.pop_back();  // of a layer's three, or the only one
    EXPECT_FALSE(passes(silent)) << base->name;
  }
  for (const auto& [algorithm, kind] : mutation::algorithms_and_kinds()) {
    const auto base = mutation::small_collective(algorithm, kind, DType::f32, 0);
    ASSERT_TRUE(base) << to_text(base.error());
    Schedule silent = base->schedule;
    silent.computes = {};
    EXPECT_FALSE(passes(silent)) << base->name;
  }
}

}  // namespace
}  // namespace podsim
