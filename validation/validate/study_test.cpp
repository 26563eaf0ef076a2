// Study files: what is read, and what is wrong with others.
#include <gtest/gtest.h>

#include "validation/validate/study.hpp"

namespace podsim {
namespace {

std::string problem(const std::string& text) {
  const auto study = read_study(text, "s");
  return study ? "none" : to_text(study.error());
}

const std::string head = "format_version: 1\nmachine: \"ideal\"\nsystem { slice: \"8\" }\n";
const std::string body = "bound { median: 0.05 p95: 0.1 }";

TEST(Study, SaysWhatTheHostTakesAndWhichValuesAreFitted) {
  const auto study = read_study(head + R"(host { value: "100 us" source: "a test" }
case {
  name: "c" rung: other_sizes
  fit { op: "fft" points: 512 mesh: "2x4" mesh: "1x8" }
  set { path: "link.bandwidth" value: "90 GB/s" source: "a test" }
  value: "link.bandwidth" value: "chip.hbm_bandwidth"
  no_bound: "why"
})",
                                "s");
  ASSERT_TRUE(study) << to_text(study.error());
  ASSERT_TRUE(study->host);
  EXPECT_EQ(study->host->time, Seconds{100e-6});
  EXPECT_EQ(study->cases[0].values, (std::vector<std::string>{"link.bandwidth", "chip.hbm_bandwidth"}));
  ASSERT_EQ(study->cases[0].machine_values.size(), 1U);
  EXPECT_EQ(study->cases[0].machine_values[0].value, "90 GB/s");
  Observation o;
  o.op = ObservedOp::fft, o.devices = 8, o.points = 512, o.mesh = {2, 4};
  EXPECT_TRUE(passes(study->cases[0].fit[0], o));
  o.mesh = {4, 2};
  EXPECT_FALSE(passes(study->cases[0].fit[0], o));
  o.mesh = {1, 8}, o.points = 256;
  EXPECT_FALSE(passes(study->cases[0].fit[0], o));
  EXPECT_EQ(problem(head + "host { value: \"100\" source: \"a test\" }\ncase { name: \"c\" rung: other_sizes no_bound: \"why\" }\n"),
            "s:4:8: a time needs a unit (ps, ns, us, ms, s), got \"100\"");
}

TEST(Study, StepsNameModelsOfItsOwnAndDivideTheOptimizer) {
  const auto study = read_study(R"(format_version: 1
machine: "dgx_h100"
system { slice: "1x8" }
training_model { format_version: 1 name: "small" layers: 2 width: 64 heads: 4 mlp: 256 gradients: "f32" }
step { name: "divided" model: "small" mesh: "data=4,col=2" batch: 8 shard_optimizer_over_data: true }
step { name: "whole" model: "small" mesh: "data=4,col=2" batch: 8 }
step { name: "shipped" model: "llama3-8b" mesh: "data=8" batch: 8 }
case { name: "c" rung: other_scale no_bound: "a test" }
)",
                                "s");
  ASSERT_TRUE(study) << to_text(study.error());
  ASSERT_EQ(study->steps.size(), 3U);
  EXPECT_EQ(study->steps[0].step.model.width, 64);
  EXPECT_EQ(study->steps[0].step.model.gradients, DType::f32);
  EXPECT_EQ(study->steps[0].step.optimizer_shards(), 4);
  EXPECT_EQ(study->steps[1].step.optimizer_shards(), 1);
  EXPECT_EQ(study->steps[2].step.model.name, "llama3-8b");
}

TEST(Study, HoldsEveryThingItsFileSays) {
  const auto study = read_study(R"(format_version: 1
machine: "tpu_v5p"
system { slice: "2x2x1" mesh: "ring=4" mesh_order: "snake" }
set { path: "link.bandwidth" value: "90 GB/s" source: "a test" }
hypothesis { name: "one way" choice { collective: "all-gather" algorithm: "ring-one-way" } matmul: "overlapped" }
case {
  name: "c" rung: composite
  fit { dataset: "other" op: "permute" devices: 4 schedule: "plain" }
  fit_system { slice: "4x1x1" }
  predict { op: "all-gather" op: "matmul" with_product: true system { slice: "8x1x1" topology: "torus" } }
  parts: 3
  prior { path: "link.bandwidth" sigma: 0.1 }
  hold: "link.latency"
  bound { median: 0.05 p95: 0.1 }
}
case { name: "d" rung: other_sizes no_bound: "why" }
)",
                                "s");
  ASSERT_TRUE(study) << to_text(study.error());
  ASSERT_TRUE(study->system);
  EXPECT_EQ(study->system->text("slice"), "2x2x1");
  EXPECT_EQ(study->system->text("mesh"), "ring=4");
  EXPECT_EQ(study->system->text("mesh_order"), "snake");
  ASSERT_EQ(study->values.size(), 1U);
  EXPECT_EQ(study->values[0].value, "90 GB/s");
  ASSERT_EQ(study->hypotheses.size(), 1U);
  EXPECT_EQ(study->hypotheses[0].predict.algorithm[static_cast<std::size_t>(CollectiveKind::all_gather)], "ring-one-way");
  EXPECT_EQ(study->hypotheses[0].predict.unknown_matmul, ObservedSchedule::overlapped);
  ASSERT_EQ(study->cases.size(), 2U);
  const StudyCase& c = study->cases[0];
  EXPECT_EQ(c.tier, Tier::composite);
  EXPECT_EQ(c.parts, 3);
  EXPECT_EQ(c.fit_system->text("slice"), "4x1x1");
  EXPECT_EQ(c.predict[0].system->text("topology"), "torus");
  EXPECT_EQ(c.hold, std::vector<std::string>{"link.latency"});
  EXPECT_EQ(c.priors[0].relative_sigma, 0.1);
  Observation o;
  o.op = ObservedOp::permute, o.devices = 4, o.schedule = ObservedSchedule::plain;
  EXPECT_TRUE(passes(c.fit[0], o));
  o.devices = 2;
  EXPECT_FALSE(passes(c.fit[0], o));
  o.op = ObservedOp::all_gather;
  EXPECT_FALSE(passes(c.predict[0], o));
  o.m = o.n = o.k = 8;
  EXPECT_TRUE(passes(c.predict[0], o));
  EXPECT_EQ(study->cases[1].no_bound, "why");
  EXPECT_TRUE(passes(study->cases[1].predict.at(0), o)) << "all rows";
}

TEST(Study, RunsAreScenariosThatRowsNameByHowTheyBegin) {
  const std::string a_case = "case { name: \"c\" rung: composite predict { run: \"gemm:\" } no_bound: \"w\" }\n";
  const auto study = read_study(head + a_case + "run { name: \"gemm: cannon\" scenario { slice: \"4x4\" gemm: \"64,64,64\" algorithm: \"cannon\" slice_count: 2 } }\n", "s");
  ASSERT_TRUE(study) << to_text(study.error());
  ASSERT_EQ(study->runs.size(), 1U);
  EXPECT_EQ(study->runs[0].name, "gemm: cannon");
  EXPECT_EQ(study->runs[0].fields.text("algorithm"), "cannon");
  EXPECT_EQ(study->runs[0].where, (SourceLocation{"s", 5, 1}));
  Observation row;
  row.op = ObservedOp::run, row.run = "gemm: cannon";
  const RowFilter& filter = study->cases[0].predict[0];
  EXPECT_TRUE(passes(filter, row));
  row.run = "pipeline: 1f1b";
  EXPECT_FALSE(passes(filter, row));
  row.op = ObservedOp::all_gather, row.run.clear();
  EXPECT_FALSE(passes(filter, row));
  const std::string run = "run { name: \"a\" scenario { slice: \"4\" } }\n";
  EXPECT_EQ(problem(head + a_case + run + run), "s:6:7: there is a run \"a\" already");
  EXPECT_EQ(problem(head + a_case + "run { name: \"a\" scenario { machine: \"ideal\" } }"),
            "s:5:28: machine does not belong to a run of a study, whose machine is that of its case");
  EXPECT_EQ(problem(head + a_case + "run { name: \"a\" scenario { slice: [\"4\", \"8\"] } }"), "s:5:28: expected one value of slice, found 2, which is a sweep (podsim sweep)");
}

TEST(Study, ThatIsOlderThanScenariosIsRead) {
  const auto study = read_study(R"(format_version: 1
machine: "tpu_v5p"
pod { slice: "2x2x1" mesh: "ring=4" snake: true }
case { name: "c" rung: other_scale fit { op: "permute" } fit_pod { slice: "4x1x1" } predict { pod { slice: "8x1x1" } } no_bound: "why" }
)",
                                "s");
  ASSERT_TRUE(study) << to_text(study.error());
  EXPECT_EQ(study->system->text("mesh"), "ring=4");
  EXPECT_EQ(study->system->text("mesh_order"), "snake");
  EXPECT_EQ(study->cases.at(0).fit_system->text("slice"), "4x1x1");
  EXPECT_EQ(study->cases.at(0).predict.at(0).system->text("slice"), "8x1x1");
  EXPECT_FALSE(study->cases.at(0).predict.at(0).system->has("mesh_order"));
}

TEST(Study, NamesWhatIsWrongAndWhere) {
  EXPECT_EQ(problem(head), "s:1:1: expected at least one case { ... }, found none");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes }"), "s:4:1: expected a bound, or the reason why there is no_bound; found neither");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes no_bound: \"w\" " + body + " }"),
            "s:4:1: expected a bound, or the reason why there is no_bound; found both");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes parts: 1 " + body + " }"), "s:4:36: expected 2 to 16 parts, found 1");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes parts: 3 turns: 4 " + body + " }"),
            "s:4:45: expected 1 to 3 turns, as many as there are parts, found 4");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes turns: 1 " + body + " }"),
            "s:4:36: expected the parts that are fitted in turn, found turns without parts");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes fit { op: \"gather\" } " + body + " }"),
            "s:4:42: expected an operation, as all-gather or matmul, found \"gather\"");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes predict { schedule: \"both\" } " + body + " }"),
            "s:4:46: expected unknown, plain, overlapped or bidirectional, found \"both\"");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes fit { pod { slice: \"8\" } } " + body + " }"),
            "s:4:42: what is fitted has one system: fit_system");
  EXPECT_EQ(problem(head + "case { name: \"c\" rung: other_sizes bound { median: 0.1 p95: 0.05 } }"),
            "s:4:36: expected a median above 0 and a p95 that is no less");
  EXPECT_EQ(problem("format_version: 1\nmachine: \"ideal\"\ncase { name: \"c\" rung: other_sizes " + body + " }"),
            "s:3:1: expected a system to run on: the study has none, nor have all of fit and predict");
  EXPECT_EQ(
      problem("format_version: 1\nmachine: \"ideal\"\nsystem { slice: \"8\" mesh: \"ring\" }\ncase { name: \"c\" rung: other_sizes " + body + " }"),
      "s:3:21: expected NAME=SIZE separated by commas, as row=32,col=8, found \"ring\"");
  EXPECT_EQ(problem("format_version: 1\nmachine: \"ideal\"\nsystem { slice: [\"8\", \"4\"] engine: \"des\" }\ncase { name: \"c\" rung: other_sizes " + body +
                    " }"),
            "s:3:1: slice is missing\ns:3:10: expected one value of slice, found 2, which is a sweep (podsim sweep)\n"
            "s:3:28: engine does not belong to the system of a study");
  EXPECT_EQ(problem(head + "hypothesis { name: \"h\" choice { collective: \"gather\" algorithm: \"ring\" } }\ncase { name: \"c\" rung: other_sizes " +
                    body + " }"),
            "s:4:33: expected a collective, as all-gather, found \"gather\"");
  EXPECT_EQ(problem(head + "hypothesis { name: \"h\" matmul: \"unknown\" }\ncase { name: \"c\" rung: other_sizes " + body + " }"),
            "s:4:24: expected plain, overlapped or bidirectional, found \"unknown\"");
  EXPECT_NE(
      problem(head + "hypothesis { name: \"h\" choice { collective: \"all-gather\" algorithm: \"rings\" } }\ncase { name: \"c\" rung: other_sizes " +
              body + " }")
          .find("did you mean \"ring\""),
      std::string::npos);
  const std::string one_case = "case { name: \"c\" rung: other_scale no_bound: \"w\" }";
  EXPECT_EQ(problem(head + "step { name: \"s\" }\n" + one_case), "s:4:1: expected keys of maxtext or a model, found neither");
  EXPECT_EQ(problem(head + "step { name: \"s\" model: \"palm-540b\" maxtext: \"a=1\" batch: 1 }\n" + one_case), "s:4:1: expected keys of maxtext or a model, found both");
  EXPECT_EQ(problem(head + "step { name: \"s\" model: \"palm-540b\" batch: 1 mesh: \"rows=2\" }\n" + one_case).substr(0, 7), "s:4:46:");
  EXPECT_NE(problem(head + "step { name: \"s\" model: \"palm-540b\" batch: 4 mesh: \"col=7\" }\n" + one_case).find("expected a multiple of 7"), std::string::npos);
  EXPECT_EQ(problem(head + "step { name: \"s\" maxtext: \"a=1\" shard_optimizer_over_data: true }\n" + one_case), "s:4:33: MaxText's keys say this; expected KEY=VALUE");
  EXPECT_NE(problem(head + "step { name: \"s\" maxtext: \"a=1\" products: \"wangs\" }\n" + one_case).find("did you mean \"wang\""), std::string::npos);
  const std::string model = "training_model { format_version: 1 name: \"m\" layers: 2 width: 64 heads: 5 mlp: 256 }\n";
  EXPECT_EQ(problem(head + model + one_case).substr(0, 14), "s:4:66: must d");
  EXPECT_EQ(problem(head + "training_model { format_version: 2 name: \"m\" layers: 2 width: 64 heads: 4 mlp: 256 }\n" + one_case),
            "s:4:18: expected 1, the version of a training model, found 2");
  EXPECT_NE(problem(head + "cases { }").find("s:4:"), std::string::npos);
  EXPECT_NE(problem("format_version: 2\nmachine: \"ideal\"\n").find("version"), std::string::npos);
}

}  // namespace
}  // namespace podsim
