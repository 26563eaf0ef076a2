#include "workloads/advice/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "workloads/advice/gemm_choice.hpp"
#include "workloads/advice/xla_flags.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Texts = std::vector<FieldChange>;

Fields fields_of(const Texts& texts) {
  Fields fields;
  for (const auto& [name, text] : texts) fields.add(name, text, of_field(name));
  return fields;
}

Run run_of(const Fields& fields) {
  const auto system = read_system(fields);
  EXPECT_TRUE(system) << to_text(system.error());
  const auto problem = read_problem(fields, *system, DType::bf16);
  EXPECT_TRUE(problem) << to_text(problem.error());
  auto run = simulate(*system, *problem);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

Advice advice_of(const Fields& fields, RunOptions options = {}) {
  const podsim::Run run = run_of(fields);
  options.threads = 1;
  auto advice = advise(fields, run, options);
  EXPECT_TRUE(advice) << to_text(advice.error());
  return *std::move(advice);
}

const TriedRemedy* tried_with(const Advice& advice, const Texts& changes) {
  const auto found = std::ranges::find_if(advice.tried, [&](const TriedRemedy& tried) { return tried.remedy.changes == changes; });
  return found == advice.tried.end() ? nullptr : &*found;
}

const Texts product{{"machine", "tpu_v4"}, {"slice", "4x4"}, {"mesh", "row=8,col=2"}, {"gemm", "m=16384,n=8192,k=8192"}, {"algorithm", "collective"}, {"dataflow", "os"}};

TEST(Advice, EachOutcomeIsThatOfARunWithTheRemedysTexts) {
  const Fields fields = fields_of(product);
  const Advice advice = advice_of(fields);
  ASSERT_GT(advice.tried.size(), 10U);
  for (const TriedRemedy& tried : advice.tried) EXPECT_EQ(tried.makespan_s, run_of(with(fields, tried.remedy)).row.result.makespan_s) << words_of(tried.remedy);
}

TEST(Advice, TheBestOfDifferentFieldsAreSimulatedTogether) {
  const Fields fields = fields_of(product);
  const Advice advice = advice_of(fields);
  ASSERT_TRUE(advice.together) << advice.why_not_together;
  std::set<std::string> seen;
  for (const FieldChange& change : advice.together->remedy.changes) EXPECT_TRUE(seen.insert(change.field).second) << change.field << " twice";
  EXPECT_THAT(advice.together->remedy.changes, Contains(advice.tried.front().remedy.changes.front())) << "the best alone is one of them";
  EXPECT_EQ(advice.together->makespan_s, run_of(with(fields, advice.together->remedy)).row.result.makespan_s);
}

// An all-gather over links without latency takes bytes over bandwidth, and all of it is exposed.
TEST(Advice, LinksTwiceAsFastHalveWhatIsExposedWhereOnlyBytesCount) {
  const Advice advice = advice_of(fields_of({{"machine", "ideal"}, {"slice", "8"}, {"mesh", "x=8"}, {"set", "link.bandwidth=100GB/s"}, {"collective", "all-gather"}, {"bytes", "64MiB"}}));
  ASSERT_TRUE(advice.links_factor);
  EXPECT_EQ(*advice.links_factor, 2);
  EXPECT_NEAR(advice.faster_links->makespan_s, advice.before.makespan_s / 2, 1e-12);
  EXPECT_EQ(words_of(advice.faster_links->remedy), "--set link.bandwidth=200GB/s");
}

TEST(Advice, LinksThatDoNotHelpAreSaidNotToHelp) {
  const Advice advice = advice_of(fields_of({{"machine", "ideal"}, {"slice", "8"}, {"mesh", "x=8"}, {"set", "link.bandwidth=100GB/s"}, {"set", "link.latency=1ms"}, {"collective", "all-gather"}, {"bytes", "1KiB"}}));
  EXPECT_FALSE(advice.links_factor) << "latency stays";
  ASSERT_TRUE(advice.faster_links);
  EXPECT_THAT(advice.faster_links->remedy.what, HasSubstr("16 times"));
}

// libtpu begins a collective where the core comes to its -start; of a pipeline's module much of what is exposed could have begun earlier.
TEST(Advice, OfAModuleRewritesAndEarlierStartsAreTried) {
  const auto fields = with_module(fields_of({{"hlo", PODSIM_SOURCE_DIR "/validation/aot/modules/maxtext_pipeline_v5p.hlo.gz"}}));
  ASSERT_TRUE(fields) << to_text(fields.error());
  const Advice advice = advice_of(*fields);
  const TriedRemedy* earlier = tried_with(advice, {{"hlo_schedule", "overlap"}});
  ASSERT_NE(earlier, nullptr);
  EXPECT_TRUE(helps(*earlier, advice));
  EXPECT_LT(earlier->exposed_communication_s, advice.before.exposed_communication_s);
  const TriedRemedy* apart = tried_with(advice, {{"rewrite", "split"}, {"hlo_schedule", "overlap"}});
  ASSERT_NE(apart, nullptr);
  EXPECT_LT(apart->makespan_s, advice.before.makespan_s);
  EXPECT_GT(apart->makespan_s, earlier->makespan_s);
  EXPECT_FALSE(helps(*apart, advice)) << "earlier starts alone are better";
  for (const char* const rewrite : {"reduce-scatter", "bf16-reductions"}) {
    const TriedRemedy* tried = tried_with(advice, {{"rewrite", rewrite}});
    ASSERT_NE(tried, nullptr);
    EXPECT_LE(tried->makespan_s, advice.before.makespan_s);
  }
}

// A step that a configuration of MaxText says: as many sequences, in other keys.
TEST(Advice, OfAConfigurationOfMaxTextTheRemediesAreItsKeys) {
  const Fields fields = fields_of({{"machine", "tpu_v5e"}, {"slice", "4x4"}, {"maxtext", PODSIM_SOURCE_DIR "/workloads/training/examples/v5e_128b.yml"}, {"training", "global_parameter_scale=1"}, {"training", "base_num_decoder_layers=2"}, {"training", "ici_tensor_parallelism=1"}});
  const podsim::Run run = run_of(fields);
  std::set<std::string> seen;
  for (const Remedy& remedy : remedies_of(fields, run)) {
    const std::string words = words_of(remedy);
    SCOPED_TRACE(words);
    for (const char* const key : {"remat_policy=", "gradient_accumulation_steps=", "ici_tensor_parallelism=", "shard_optimizer_over_data="})
      if (words.find(key) != std::string::npos) seen.insert(key);
    if (remedy.changes.front().field != "training") continue;
    EXPECT_EQ(words.find("--"), std::string::npos) << "as MaxText takes it";
    const Fields changed = with(fields, remedy);
    std::set<std::string> keys;
    for (const FieldText& key : changed.texts("training")) EXPECT_TRUE(keys.insert(key.text.substr(0, key.text.find('='))).second) << key.text << " beside another";
    const auto system = read_system(changed);
    if (!system) continue;
    const auto problem = read_problem(changed, *system, DType::bf16);
    ASSERT_TRUE(problem) << to_text(problem.error());
    EXPECT_EQ(std::get<TrainingSpec>(*problem).step.batch, run.row.problem.training->given.batch);
  }
  EXPECT_EQ(seen.size(), 3U) << "nothing is divided over data";
}

TEST(Advice, OverlapWithTheNextLayerIsSaidToBeThereAlready) {
  const Fields fields = fields_of({{"machine", "dgx_h100"}, {"slice", "1x8"}, {"mesh", "fsdp=8"}, {"training", "llama3.2-1b"}, {"batch", "32"}});
  const auto needless = needless_remedies(fields, run_of(fields));
  ASSERT_EQ(needless.size(), 1U);
  EXPECT_EQ(needless.front().remedy.what, "overlap with the next layer");
  EXPECT_THAT(needless.front().why, HasSubstr("one ahead of its use"));
}

TEST(Advice, OfModulesTheFlagsOfXlaAreNamed) {
  const Remedy combine{"", {{"rewrite", "combine"}, {"combine_threshold", "256MiB"}}}, bf16{"", {{"rewrite", "bf16-reductions"}}};
  EXPECT_EQ(xla_flags(combine, true),
            "XLA_FLAGS=--xla_gpu_all_reduce_combine_threshold_bytes=268435456 --xla_gpu_all_gather_combine_threshold_bytes=268435456 --xla_gpu_reduce_scatter_combine_threshold_bytes=268435456");
  EXPECT_EQ(xla_flags(combine, false), "LIBTPU_INIT_ARGS=--xla_jf_crs_combiner_threshold_in_bytes=268435456");
  EXPECT_EQ(xla_flags({"", {{"rewrite", "combine"}}}, false), "LIBTPU_INIT_ARGS=--xla_jf_crs_combiner_threshold_in_bytes=31457280");
  EXPECT_EQ(xla_flags({"", {{"hlo_schedule", "overlap"}}}, true), "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true");
  EXPECT_EQ(xla_flags(bf16, true), "") << "the program says it";
}

TEST(Advice, AProductWithoutAnAlgorithmTakesTheFastest) {
  Texts open = product;
  std::erase_if(open, [](const FieldChange& change) { return change.field == "algorithm" || change.field == "dataflow"; });
  const Fields fields = fields_of(open);
  const auto system = read_system(fields);
  ASSERT_TRUE(system);
  const auto chosen = fastest_gemm_algorithm(fields, *system, {});
  ASSERT_TRUE(chosen) << to_text(chosen.error());
  EXPECT_GT(chosen->simulated, 6U);
  const double least = run_of(with(fields, {"", chosen->changes})).row.result.makespan_s;
  for (const char* const algorithm : {"collective", "wang", "summa"}) EXPECT_LE(least, run_of(with(fields, {"", {{"algorithm", algorithm}}})).row.result.makespan_s) << algorithm;
}

const Texts step{{"machine", "tpu_v5e"}, {"slice", "4x4"}, {"mesh", "data=4,fsdp=4"}, {"training", "llama3-8b"}, {"batch", "32"}};

// 8 billion parameters over four devices do not fit 16 GB: what fits comes first, however fast the rest.
TEST(Advice, OfAStepThatDoesNotFitTheRemediesThatFitComeFirst) {
  const Fields fields = fields_of(step);
  const Advice advice = advice_of(fields);
  ASSERT_TRUE(advice.before.over_hbm);
  const auto first_over = std::ranges::find_if(advice.tried, &TriedRemedy::over_hbm);
  EXPECT_TRUE(std::all_of(first_over, advice.tried.end(), [](const TriedRemedy& tried) { return tried.over_hbm; }));
  for (const TriedRemedy& tried : advice.tried) EXPECT_TRUE(tried.over_hbm || helps(tried, advice)) << words_of(tried.remedy);
  for (const TriedRemedy& tried : advice.tried) EXPECT_EQ(tried.over_hbm, run_of(with(fields, tried.remedy)).row.over_hbm);
}

TEST(Advice, WhatTakesTooLongIsNamedAndTheRestStands) {
  RunOptions options;
  options.most_instances = 1;
  const Advice advice = advice_of(fields_of(product), options);
  for (const TriedRemedy& tried : advice.tried) EXPECT_EQ(tried.exposed_communication_s, 0) << words_of(tried.remedy) << ": one product on each device, one task";
  EXPECT_GT(advice.not_tried.size(), 10U);
  EXPECT_FALSE(advice.faster_links);
}

TEST(Advice, AMeshIsMovedOnTheSameSlice) {
  const Fields fields = fields_of({{"machine", "tpu_v4"}, {"mesh", "row=8,col=2"}, {"gemm", "m=16384,n=8192,k=8192"}, {"algorithm", "collective"}});
  const podsim::Run run = run_of(fields);
  bool any = false;
  for (const Remedy& remedy : remedies_of(fields, run)) {
    if (remedy.changes.front().field != "mesh") continue;
    any = true;
    EXPECT_EQ(run_of(with(fields, remedy)).row.result.slice, run.row.result.slice) << words_of(remedy);
  }
  EXPECT_TRUE(any);
}

// Every kind of problem has remedies, and none of them is a text that its field does not take.
TEST(Advice, NoRemedyIsRefusedForItsTextsAlone) {
  const std::vector<Texts> problems{product,
                                    {{"machine", "tpu_v4"}, {"slice", "4x4"}, {"collective", "all-reduce"}, {"bytes", "16MiB"}},
                                    {{"machine", "tpu_v4"}, {"slice", "4x4"}, {"mesh", "x=4,y=4"}, {"program", "C = A @ B"}, {"shape", "A=4096x4096"}, {"shape", "B=4096x4096"}, {"shard", "A=x,-"}, {"shard", "B=-,y"}},
                                    {{"machine", "dgx_h100"}, {"slice", "4x8"}, {"mesh", "stage=4,data=2,fsdp=2,col=2"}, {"training", "llama3.2-1b"}, {"batch", "32"}, {"microbatches", "8"}}};
  for (const Texts& texts : problems) {
    const Fields fields = fields_of(texts);
    const podsim::Run run = run_of(fields);
    const auto kind = problem_kind(fields);
    ASSERT_TRUE(kind);
    const std::vector<Remedy> remedies = remedies_of(fields, run);
    EXPECT_FALSE(remedies.empty()) << texts.back().text;
    for (const Remedy& remedy : remedies)
      for (const FieldChange& change : remedy.changes) {
        const Status ok = check_field(*scenario_field(change.field), change.text, (*kind)->field);
        EXPECT_TRUE(ok) << words_of(remedy);
      }
  }
}

}  // namespace
}  // namespace podsim
