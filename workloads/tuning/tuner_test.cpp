// The tuner finds the best plan, whatever it leaves out on the way.
#include "workloads/tuning/tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/base/units.hpp"
#include "workloads/tuning/system_search.hpp"
#include "workloads/tuning/test_tuning.hpp"

namespace podsim {
namespace {

using testing::Enumeration;
using ::testing::HasSubstr;
using testing::text_of;

/// A gated block on 2x4 of tpu_v4 and other ways to lay out 8 chips.
TuningRequest plain_request(const std::vector<testing::SliceMesh>& shapes = {{{2, 4}, 2, 4}, {{4, 2}, 4, 2}, {{2, 2, 2}, 4, 2}}) {
  TuningRequest request;
  TransformerBlock block = testing::small_gated_block();
  block.dtype = DType::bf16;
  block.heads = 8, block.kv_heads = 8, block.hidden = 64, block.ff = 256, block.batch = 8;
  request.workload = *workload_of(block, 8);
  for (const testing::SliceMesh& shape : shapes)
    request.systems.push_back(testing::slice_pod(*find_machine("tpu_v4"), shape.extents, shape.R, shape.C, Wrap::Rule::all));
  request.algorithms = {"collective", "meshslice", "wang"};
  request.options = {2, 1, true};
  request.largest_slice_count = 4;
  request.engine = testing::des();
  request.threads = 1;
  return request;
}

Tuning tuned(const TuningRequest& request) {
  auto tuning = tune(request);
  EXPECT_TRUE(tuning) << to_text(tuning.error());
  return tuning ? *std::move(tuning) : Tuning{};
}

TEST(Tuner, PruningChangesNoPlan) {
  int compared = 0, limited = 0, several = 0, fewer = 0;
  for (std::uint64_t seed = 0; compared < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed};
    TuningRequest request = testing::random_request(rng);
    testing::slow_down_and_bound(request, seed);
    auto pruned = tune(request);
    if (pruned && rng.below(2) == 0) {
      // A limit that the best plan does not keep, of what a plan holds or works with.
      const MemoryUse& memory = pruned->plans.front().memory;
      request.hbm = memory.total() - (rng.below(4) == 0 ? memory.working : Bytes{1});
      pruned = tune(request);
      ++limited;
    }
    request.exhaustive = true;
    const auto exhaustive = tune(request);
    ASSERT_EQ(pruned.has_value(), exhaustive.has_value()) << to_text(pruned ? exhaustive.error() : pruned.error());
    if (!pruned) continue;
    ASSERT_EQ(text_of(pruned->plans), text_of(exhaustive->plans));
    EXPECT_LE(pruned->simulated, exhaustive->simulated);
    EXPECT_EQ(pruned->candidates, exhaustive->candidates);
    EXPECT_EQ(exhaustive->pruned, 0);
    for (const TunedPlan& plan : pruned->plans) EXPECT_TRUE(!request.hbm || plan.memory.total() <= *request.hbm);
    ++compared;
    several += pruned->plans.size() > 1;
    fewer += pruned->simulated < exhaustive->simulated;
  }
  EXPECT_GE(limited, 5);
  EXPECT_GT(several, 5);
  EXPECT_GT(fewer, 12);
}

/// Small, with few choices per product, so that re-layouts pay; on half of the machines nothing but arithmetic takes time, so that memory decides.
TuningRequest request_to_enumerate(std::uint64_t seed) {
  Rng rng{seed, 5};
  TuningRequest request = plain_request();
  request.systems.erase(request.systems.begin() + rng.between(1, 3), request.systems.end());
  if (seed % 2 == 0) {
    Machine machine = *find_machine("ideal");
    for (LinkParameters& link : machine.link) link.bandwidth = unlimited<BytesPerSecond>;
    for (System& system : request.systems)
      system = testing::slice_pod(machine, system.slice.extents, system.mesh.axes()[0].size, system.mesh.axes()[1].size, Wrap::Rule::all);
  }
  TransformerBlock block = *request.workload.block;
  block.attention = seed % 12 == 0;
  block.residuals = rng.below(2) == 0;
  request.pass = block.attention ? Pass::forward : rng.below(2) == 0 ? Pass::both : Pass::backward;
  request.workload = *workload_of(block, 8);
  if (seed % 3 == 1)
    request.workload =
        *workload_of({{96 * rng.between(1, 4), 96 * rng.between(1, 4), 96, DType::bf16}, {96, 192, 96 * rng.between(1, 4), DType::bf16}});
  request.algorithms = {block.attention ? "wang" : "meshslice"};
  request.largest_slice_count = 3;
  request.top = seed % 4 < 2 ? 1 : 5;
  request.options.prefetch = 0;  // more slices need less memory, and more time
  if (seed % 5 == 0) request.collectives = {"", "direct"};
  request.allowed = [seed](const std::string& stage, const ProductChoice& choice) {
    return counter_hash(seed, stream_of(stage), static_cast<std::uint64_t>(choice.dataflow) * 2 + (choice.transposed ? 1 : 0)) % 5 < 2;
  };
  return request;
}

// By looking at every plan there is, which the search never does.
TEST(Tuner, NoPlanIsBetter) {
  int limited = 0, turned = 0;
  for (std::uint64_t seed = 0; seed < 48; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TuningRequest request = request_to_enumerate(seed);
    const std::vector<Enumeration::Found> all = Enumeration{request}.all();
    const auto best_within = [&](std::optional<Bytes> limit) {
      std::optional<Enumeration::Found> best;
      for (const Enumeration::Found& one : all)
        if (!limit || one.memory <= *limit)
          if (!best || std::tuple{one.time, one.memory, one.system} < std::tuple{best->time, best->memory, best->system}) best = one;
      return best;
    };
    for (int step = 0; step < 5; ++step) {
      const auto best = best_within(request.hbm);
      const auto found = tune(request);
      ASSERT_EQ(best.has_value(), found.has_value()) << "step " << step << (found ? "" : ": " + to_text(found.error()));
      if (!best) break;
      const TunedPlan& plan = found->plans.front();
      EXPECT_EQ(plan.time, best->time) << "step " << step << ": " << plan.time.count() << " ps, there is " << best->time.count();
      EXPECT_EQ(plan.memory.total(), best->memory) << "step " << step;
      EXPECT_EQ(plan.system, best->system) << "step " << step;
      limited += request.hbm.has_value();
      turned +=
          std::any_of(plan.parts.begin(), plan.parts.end(), [](const TunedPart& part) { return part.part.kind == WorkloadPart::Kind::relayout; });
      request.hbm = best->memory - Bytes{1};
    }
  }
  EXPECT_GT(limited, 15);
  EXPECT_GT(turned, 10);
}

TEST(Tuner, OfPodsThatTakeEquallyLongTheOneOfLeastMemoryIsFirst) {
  TuningRequest request = plain_request();
  Machine machine = *find_machine("ideal");
  for (LinkParameters& link : machine.link) link.bandwidth = unlimited<BytesPerSecond>;
  request.systems.clear();
  for (const testing::SliceMesh& shape : {testing::SliceMesh{{1, 8}, 1, 8}, {{2, 4}, 2, 4}, {{8, 1}, 8, 1}})
    request.systems.push_back(testing::slice_pod(machine, shape.extents, shape.R, shape.C));
  request.allowed = [](const std::string&, const ProductChoice& choice) {
    return choice.algorithm == "collective" && choice.dataflow == Dataflow::os;
  };
  const Tuning all = tuned(request);
  ASSERT_EQ(all.plans.size(), 3U);
  EXPECT_EQ(all.plans.front().time, all.plans.back().time);
  EXPECT_LT(all.plans.front().memory.total(), all.plans.back().memory.total());
  EXPECT_EQ(all.plans.front().system, 1U);
  request.top = 1;
  EXPECT_EQ(text_of(tuned(request).plans), text_of(all.plans.front()));
}

TEST(Tuner, ThreadsChangeNothing) {
  TuningRequest request = plain_request();
  request.hbm = tuned(request).plans.front().memory.total() - Bytes{1};
  const Tuning one = tuned(request);
  for (const int threads : {2, 5}) {
    request.threads = threads;
    EXPECT_EQ(text_of(tuned(request)), text_of(one)) << threads << " threads";
  }
}

TEST(Tuner, SharesOfASearchMakeTheSameSearch) {
  int bounded = 0;
  for (std::uint64_t seed = 0, compared = 0; compared < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, 7};
    TuningRequest request = testing::random_request(rng);
    testing::slow_down_and_bound(request, seed);
    request.exhaustive = seed % 3 == 0;
    const auto alone = tune(request);
    if (!alone) continue;
    ++compared;
    bounded += !alone->parts.least.empty();
    auto together = std::make_shared<SimulatedParts>();
    for (std::size_t share = 0; share < 3; ++share) {
      TuningRequest part = request;
      part.share = share, part.shares = 3;
      const Tuning found = tuned(part);
      together->parts.insert(found.parts.parts.begin(), found.parts.parts.end());
      together->collectives.insert(found.parts.collectives.begin(), found.parts.collectives.end());
      together->least.insert(found.parts.least.begin(), found.parts.least.end());
    }
    TuningRequest given = request;
    given.elsewhere = together;
    const Tuning same = tuned(given);
    EXPECT_EQ(text_of(same.plans), text_of(alone->plans));
    EXPECT_EQ(same.simulated, alone->simulated);
    EXPECT_EQ(same.pruned, alone->pruned);
    EXPECT_EQ(same.excluded.size(), alone->excluded.size());
    // Wrong costs show that they are used.
    auto doubled = std::make_shared<SimulatedParts>(*together);
    for (auto& [key, cost] : doubled->parts) cost.time = cost.time + cost.time;
    given.elsewhere = doubled;
    if (request.exhaustive) {
      EXPECT_EQ(tuned(given).plans.front().time, alone->plans.front().time + alone->plans.front().time);
    }
  }
  EXPECT_GT(bounded, 2);
}

TEST(Tuner, APlanIsItsParts) {
  const TuningRequest request = plain_request();
  const Tuning tuning = tuned(request);
  ASSERT_EQ(tuning.plans.size(), 3U) << "one per pod";
  std::set<std::size_t> systems;
  for (const TunedPlan& plan : tuning.plans) {
    EXPECT_TRUE(systems.insert(plan.system).second);
    const System& system = request.systems[plan.system];
    const auto parts = parts_of(request.workload, plan.plan, system.mesh, request.pass);
    ASSERT_TRUE(parts) << to_text(parts.error());
    ASSERT_EQ(parts->size(), plan.parts.size());
    Picoseconds time;
    MemoryUse memory = resident_memory(request.workload, plan.plan, system.mesh, request.pass);
    for (std::size_t p = 0; p < parts->size(); ++p) {
      EXPECT_EQ((*parts)[p], plan.parts[p].part);
      const auto split = split_of_part(system, (*parts)[p], request.options, std::string{by_dimension_name}, *request.engine);
      ASSERT_TRUE(split);
      const Picoseconds part_time = split->compute + split->exposed_communication + split->waiting;
      EXPECT_EQ(part_time, plan.parts[p].cost.time) << (*parts)[p].name;
      time += part_time;
      memory.working = std::max(memory.working, plan.parts[p].cost.working);
    }
    EXPECT_EQ(plan.time, time);
    EXPECT_EQ(plan.forward + plan.backward, time);
    EXPECT_EQ(text_of(plan.memory), text_of(memory));
  }
  for (std::size_t i = 1; i < tuning.plans.size(); ++i) EXPECT_LE(tuning.plans[i - 1].time, tuning.plans[i].time);
}

TEST(Tuner, SimulatesEqualPartsOfEqualRingsOnce) {
  const std::vector<testing::SliceMesh> one{{{2, 4}, 2, 4}}, same{{{2, 4}, 2, 4}, {{2, 4, 1}, 2, 4}, {{2, 1, 4}, 2, 4}},
      other{{{2, 4}, 2, 4}, {{4, 2}, 4, 2}};
  const Tuning single = tuned(plain_request(one)), thrice = tuned(plain_request(same)), two = tuned(plain_request(other));
  EXPECT_EQ(single.simulated, thrice.simulated);
  EXPECT_EQ(3 * single.candidates, thrice.candidates);
  ASSERT_EQ(thrice.plans.size(), 3U);
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(thrice.plans[p].system, p);
    EXPECT_EQ(thrice.plans[p].plan, single.plans.front().plan);
    EXPECT_EQ(thrice.plans[p].time, single.plans.front().time);
  }
  EXPECT_GT(two.simulated, single.simulated);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------------------------

TEST(Tuner, SaysWhichPlansNeedTooMuch) {
  TuningRequest request = plain_request();
  const Tuning unlimited = tuned(request);
  EXPECT_TRUE(unlimited.excluded.empty()) << text_of(unlimited);
  const TunedPlan& best = unlimited.plans.front();
  request.hbm = best.memory.total() - Bytes{1};
  const Tuning limited = tuned(request);
  ASSERT_FALSE(limited.plans.empty() || limited.excluded.empty());
  for (const TunedPlan& plan : limited.plans) EXPECT_LE(plan.memory.total(), *request.hbm);
  EXPECT_GE(limited.plans.front().time, best.time);
  EXPECT_EQ(limited.excluded.front().what, to_text(request.systems[best.system].slice) + " " + to_text(request.systems[best.system].mesh));
  EXPECT_THAT(limited.excluded.front().reason, HasSubstr("a plan of " + to_text(to_seconds(best.time)) + " needs"));
}

// What needs most is ruled out in its layout, and nothing else.
TEST(SystemSearch, RulesOutWhatNeedsTooMuch) {
  const TuningRequest request = plain_request();
  const Workload& workload = request.workload;
  const Mesh& mesh = request.systems[0].mesh;
  const PartCosts costs{request.systems, request.options, std::string{by_dimension_name}, *request.engine, 1, nullptr};
  const std::vector<WorkloadPart> large{
      *relayout_before(workload, 3, ActivationLayout::tokens_by_row, mesh, Pass::forward),
      *part_of(workload, 2, ActivationLayout::tokens_by_row, {}, mesh, Pass::forward),
      *part_of(workload, 6, ActivationLayout::tokens_by_row, ProductChoice{"wang", Dataflow::os, false, 0}, mesh, Pass::forward)};
  for (const WorkloadPart& part : large) {
    auto search = SystemSearch::make(request, 0, costs);
    ASSERT_TRUE(search) << to_text(search.error());
    TunedPlan plan;
    plan.memory.working = Bytes{100};
    plan.parts = {{{}, {{}, Bytes{50}}}, {part, {{}, Bytes{100}}}};
    search->exclude(plan, Bytes{99});
    EXPECT_TRUE(search->best(false)) << part.name;
    const auto listed = [&](const WorkloadPart& one) {
      const std::vector<WorkloadPart> all = search->all_parts();
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    if (part.kind == WorkloadPart::Kind::product) continue;  // still listed, not chosen
    EXPECT_FALSE(listed(part)) << part.name;
    WorkloadPart turned = part;
    turned.layout = other(part.layout);
    EXPECT_TRUE(listed(turned)) << part.name;
  }
}

TEST(Tuner, SaysWhyNothingFits) {
  TuningRequest request = plain_request();
  request.hbm = Bytes{1000};
  const auto tuning = tune(request);
  ASSERT_FALSE(tuning);
  EXPECT_THAT(to_text(tuning.error()), HasSubstr("no plan applies: "));
  EXPECT_THAT(to_text(tuning.error()), HasSubstr("kB of 1 kB: weights"));
}

TEST(Tuner, SaysWhyNothingApplies) {
  TuningRequest request = plain_request({{{2, 4}, 2, 4}});
  TransformerBlock block = *request.workload.block;
  block.heads = block.kv_heads = 3, block.head_dim = 8;
  request.workload = *workload_of(block, 8);
  auto tuning = tune(request);
  ASSERT_FALSE(tuning);
  EXPECT_THAT(to_text(tuning.error()), HasSubstr("3 heads of 3 groups cannot be shared by"));

  request = plain_request();
  request.algorithms = {"meshslise"};
  tuning = tune(request);
  ASSERT_FALSE(tuning);
  EXPECT_THAT(to_text(tuning.error()), HasSubstr("meshslice"));

  request.algorithms = {"1d-os"};
  tuning = tune(request);
  ASSERT_FALSE(tuning);
  EXPECT_THAT(to_text(tuning.error()), HasSubstr("1d-os works on one axis"));

  request.systems.clear();
  tuning = tune(request);
  ASSERT_FALSE(tuning);
  EXPECT_EQ(to_text(tuning.error()), "there is no system to search on");
}

// ---- Baselines, narrowed choices ------------------------------------------------------------------------------------------------------

TEST(Tuner, IsNeverSlowerThanABaseline) {
  TuningRequest request = plain_request();
  for (std::size_t system = 0; system < request.systems.size(); ++system)
    for (const testing::NamedPlan& named : testing::plans_for(request.workload)) {
      BaselinePlan baseline{named.name, system, named.plan};
      baseline.plan.options = request.options;
      request.baselines.push_back(std::move(baseline));
    }
  const Tuning tuning = tuned(request);
  ASSERT_GT(tuning.baselines.size(), 10U);
  EXPECT_EQ(tuning.baselines.size() + tuning.excluded.size(), request.baselines.size());
  for (const TunedPlan& baseline : tuning.baselines) {
    EXPECT_LE(tuning.plans.front().time, baseline.time) << baseline.baseline;
    EXPECT_TRUE(std::any_of(request.baselines.begin(), request.baselines.end(), [&](const BaselinePlan& asked) {
      return asked.name == baseline.baseline && asked.system == baseline.system && asked.plan == baseline.plan;
    }));
  }
  request.baselines.clear();
  EXPECT_EQ(text_of(tuned(request).plans), text_of(tuning.plans)) << "baselines change no plan";
}

TEST(Tuner, ABaselineBeyondTheOptionsMayWin) {
  TuningRequest request = plain_request({{{2, 4}, 2, 4}});
  const TunedPlan best = tuned(request).plans.front();
  request.baselines = {{"published", 0, best.plan}};
  request.allowed = [&](const std::string& stage, const ProductChoice& choice) {
    return std::none_of(best.plan.stages.begin(), best.plan.stages.end(),
                        [&](const StagePlan& planned) { return planned.name == stage && planned.product == choice; });
  };
  const Tuning tuning = tuned(request);
  ASSERT_FALSE(tuning.plans.empty());
  EXPECT_EQ(tuning.plans.front().baseline, "published");
  EXPECT_EQ(tuning.plans.front().time, best.time);
}

TEST(Tuner, KeepsToWhatIsAllowed) {
  TuningRequest request = plain_request();
  request.allowed = [](const std::string& stage, const ProductChoice& choice) {
    return stage == "ff1" ? choice.slice_count == 2 && choice.dataflow == Dataflow::ls : choice.algorithm == "collective";
  };
  for (const TunedPlan& plan : tuned(request).plans)
    for (const StagePlan& stage : plan.plan.stages) EXPECT_TRUE(!stage.product || request.allowed(stage.name, *stage.product)) << stage.name;
}

// ---- Interrupted ----------------------------------------------------------------------------------------------------------------------

TEST(Tuner, StoppedItGivesTheBestThatItKnows) {
  TuningRequest request = plain_request();
  const Tuning whole = tuned(request);
  EXPECT_FALSE(whole.interrupted);
  std::optional<Picoseconds> before;
  int with_plans = 0;
  for (std::int64_t n = 1; n < whole.simulated; n += 1 + n / 6) {
    std::atomic<bool> stop = false;
    request.stop = &stop;
    request.progress = [&](const TuningProgress& progress) {
      if (progress.simulated >= n) stop = true;
    };
    const Tuning tuning = tuned(request);
    EXPECT_TRUE(tuning.interrupted);
    EXPECT_EQ(tuning.simulated, n);
    if (tuning.plans.empty()) {
      EXPECT_FALSE(before) << "a plan that was known is forgotten after " << n;
      continue;
    }
    const TunedPlan& plan = tuning.plans.front();
    EXPECT_GE(plan.time, whole.plans.front().time);
    EXPECT_TRUE(!before || plan.time <= *before) << "after " << n;
    before = plan.time;
    ++with_plans;
  }
  EXPECT_GT(with_plans, 3);
}

TEST(Tuner, TellsOfItsProgress) {
  TuningRequest request = plain_request();
  std::int64_t last = 0;
  Picoseconds bound;
  std::optional<Picoseconds> best;
  request.progress = [&](const TuningProgress& progress) {
    EXPECT_EQ(progress.simulated, ++last);
    EXPECT_GE(progress.bound, bound) << "a bound never falls";
    EXPECT_TRUE(!best || !progress.best || *progress.best <= *best);
    if (progress.best) best = progress.best;
    bound = progress.bound;
  };
  const Tuning tuning = tuned(request);
  EXPECT_EQ(last, tuning.simulated);
  EXPECT_LE(bound, tuning.plans.front().time);
  ASSERT_TRUE(best);
  EXPECT_GE(*best, tuning.plans.front().time);
}

// ---- Pareto ---------------------------------------------------------------------------------------------------------------------------

TEST(ParetoPlans, TradeTimeForMemory) {
  int steps = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, 9};
    const TuningRequest request = testing::random_request(rng);
    const auto best = tune(request);
    const auto front = pareto_plans(request, 6);
    ASSERT_TRUE(front) << to_text(front.error());
    ASSERT_EQ(front->empty(), !best.has_value());
    if (front->empty()) continue;
    EXPECT_EQ(text_of(front->front()), text_of(best->plans.front()));
    EXPECT_LE(front->size(), 6U);
    for (std::size_t i = 1; i < front->size(); ++i, ++steps) {
      EXPECT_LT((*front)[i].memory.total(), (*front)[i - 1].memory.total());
      EXPECT_GT((*front)[i].time, (*front)[i - 1].time);
    }
  }
  EXPECT_GT(steps, 8);
}

}  // namespace
}  // namespace podsim
