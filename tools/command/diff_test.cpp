// `podsim diff`: a profile that is made of a run's own operations, against that run and against the plan that it is of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ParsedJson = nlohmann::ordered_json;

const std::string block =
    "run --machine tpu_v4 --slice 4x4 --workload llama3-8b-block --batch 4 --algorithm meshslice --slice-count 2 --dataflow os ";

/// HLO text and category as XLA would name the operation; both without the number behind the name.
std::pair<std::string, std::string> hlo_of(const ParsedJson& operation, std::size_t number) {
  const std::string category = operation["category"];
  const auto named = [&](const std::string& word, const std::string& rest) { return fmt::format("%{}.{} = {}", word, number, rest); };
  if (category == "matmul") return {named("fusion", "bf16[8,8]{1,0} fusion(bf16[8] %a), kind=kOutput"), "convolution fusion"};
  if (category == "attention") return {named("flash", "bf16[8,8]{1,0} custom-call(bf16[8] %a)"), "custom-call"};
  if (category == "elementwise") return {named("fusion", "bf16[8,8]{1,0} fusion(bf16[8] %a), kind=kLoop"), "loop fusion"};
  if (category == "copy") return {named("copy", "bf16[8,8]{1,0} copy(bf16[8] %a)"), "data formatting"};
  const std::int64_t bytes = operation["bytes"], devices = operation["devices"];
  const std::int64_t out = category == "all-gather" ? bytes * devices : category == "reduce-scatter" ? bytes / devices : bytes;
  return {named(category, fmt::format("s8[{}]{{0}} {}(s8[{}]{{0}} %p), replica_groups=[1,{}]<=[{}]", out, category, bytes, devices, devices)),
          category};
}

/// A trace as a TPU would leave it, one operation after the other; `slower` says by how much each is. A step has all of them once per layer.
std::string trace_of(const ParsedJson& run, int steps, const std::function<double(const ParsedJson&)>& slower, int layers = 1) {
  std::string text =
      R"({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:TPU:0"}},
{"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"XLA Ops"}},{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"XLA Modules"}})";
  double now = 0;
  for (int step = 0; step < steps; ++step) {
    const double begin = now;
    std::size_t number = 0;
    for (const ParsedJson& operation : run["operations"]) {
      const auto [hlo, category] = hlo_of(operation, ++number);
      const int count = operation["count"];
      const double us = 1e6 * (operation["busy_s"].get<double>() + operation["exposed_s"].get<double>()) * slower(operation) / count;
      for (int i = 0; i < count * layers && us > 0; ++i, now += us)
        text += fmt::format(
            ",\n"
            R"({{"ph":"X","pid":1,"tid":3,"ts":{:.6f},"dur":{:.6f},"name":"{}","args":{{"long_name":"{}","hlo_category":"{}","model_flops":"{}"}}}})",
            now, us, hlo.substr(1, hlo.find(' ') - 1), hlo, category, operation.value("flops", 0.0));
    }
    text += fmt::format(
        ",\n"
        R"x({{"ph":"X","pid":1,"tid":2,"ts":{:.6f},"dur":{:.6f},"name":"jit_step(1)","args":{{}}}})x",
        begin, now - begin);
  }
  return text + "]}\n";
}

double as_it_is(const ParsedJson&) { return 1; }
double slow_gathers(const ParsedJson& operation) { return operation["category"] == "all-gather" ? 1.5 : 1; }

double sum(const ParsedJson& rows, const char* key) {
  double total = 0;
  for (const ParsedJson& row : rows) total += row[key].get<double>();
  return total;
}

TEST(Diff, AProfileOfARunsOwnTimesHasNoGap) {
  const Folder folder;
  const std::string run_file = folder.file("run.json");
  ASSERT_EQ(podsim(block + "--format json -o " + run_file).status, exit_done);
  const ParsedJson run = ParsedJson::parse(test::bytes_of_file(run_file));
  const double makespan = run["makespan_s"];
  EXPECT_NEAR(sum(run["operations"], "busy_s"), run["compute_s"].get<double>(), 1e-12);
  EXPECT_NEAR(sum(run["operations"], "exposed_s"), run["exposed_communication_s"].get<double>(), 1e-12);

  const std::string profile = folder.file("p.trace.json", trace_of(run, 3, as_it_is));
  const ParsedJson diff = json_of("diff --measured " + profile + " " + run_file);
  for (const char* key : {"categories", "ops", "unmatched", "sentence"}) EXPECT_TRUE(diff.contains(key)) << key;
  for (const char* key : {"name", "predicted_s", "measured_s", "gap_s", "share"}) EXPECT_TRUE(diff["categories"][0].contains(key)) << key;
  EXPECT_NEAR(sum(diff["categories"], "predicted_s"), makespan, 1e-9 * makespan);
  EXPECT_NEAR(sum(diff["categories"], "measured_s"), diff["measured_s"].get<double>(), 1e-9 * makespan);
  const double most = run["waiting_s"].get<double>() + 1e-6 * makespan;  // the profile has the operations back to back
  for (const ParsedJson& row : diff["categories"]) EXPECT_LT(std::abs(row["gap_s"].get<double>()), most) << row;
  for (const ParsedJson& row : diff["ops"]) EXPECT_LT(std::abs(row["gap_s"].get<double>()), 1e-6 * makespan) << row;
  for (const ParsedJson& row : diff["unmatched"])  // hidden ones, and those whose size nothing tells
    EXPECT_TRUE(row["time_s"] == 0.0 || row["category"] == "elementwise" || row["category"] == "copy" || row["category"] == "attention") << row;
  EXPECT_THAT(diff["sentence"].get<std::string>(), HasSubstr("as long as predicted"));
  EXPECT_THAT(diff["notes"][0].get<std::string>(), HasSubstr("3 steps: how often the module jit_step(1) ran"));
}

TEST(Diff, ASlowedCollectiveIsNamedAndAPlanIsSimulatedToTheSameEnd) {
  const Folder folder;
  const std::string plan = folder.file("plan.textproto"), run_file = folder.file("run.json");
  ASSERT_EQ(podsim("tune --machine tpu_v4:spec --chips 4 --workload llama3-8b-block --batch 4 --quiet -o " + plan).status, exit_done);
  ASSERT_EQ(podsim("run --plan " + plan + " --format json -o " + run_file).status, exit_done);
  const ParsedJson run = ParsedJson::parse(test::bytes_of_file(run_file));
  const std::string profile = folder.file("p.trace.json", trace_of(run, 1, slow_gathers));
  const ParsedJson diff = json_of("diff --measured " + profile + " " + run_file + " --steps 1");
  double gathers = 0;
  for (const ParsedJson& operation : run["operations"])
    if (operation["category"] == "all-gather") gathers += operation["exposed_s"].get<double>();
  ASSERT_GT(gathers, 0.01 * run["makespan_s"].get<double>());
  EXPECT_EQ(diff["categories"][0]["name"], "all-gather");
  EXPECT_NEAR(diff["categories"][0]["gap_s"].get<double>(), 0.5 * gathers, 1e-3 * gathers);
  EXPECT_THAT(diff["sentence"].get<std::string>(), HasSubstr("100 % of the gap is all-gather"));
  EXPECT_EQ(json_of("diff --measured " + profile + " --steps 1 " + plan), diff);
  EXPECT_THAT(podsim("diff --measured " + profile + " --steps 1 " + plan).out, StartsWith(diff["sentence"].get<std::string>()));
  const Outcome csv = podsim("diff --measured " + profile + " --steps 1 --format csv " + plan);
  EXPECT_THAT(csv.out, StartsWith("kind,name,category,predicted_s,measured_s,gap_s,share\nstep,"));
  EXPECT_THAT(csv.out, HasSubstr("\ncategory,all-gather,all-gather,"));
}

TEST(Diff, TheLedgersStandSideBySideMostExposedFirst) {
  const Folder folder;
  const std::string run_file = folder.file("run.json");
  ASSERT_EQ(podsim(block + "--format json -o " + run_file).status, exit_done);
  const ParsedJson run = ParsedJson::parse(test::bytes_of_file(run_file));
  const std::string profile = folder.file("p.trace.json", trace_of(run, 1, slow_gathers));
  const std::string command = "diff --measured " + profile + " " + run_file + " --steps 1";
  const ParsedJson diff = json_of(command);
  std::map<std::string, double> exposed;
  for (const ParsedJson& row : run["collectives"]) exposed[row["name"]] = row["exposed_s"];
  double gathers = 0, longest = INFINITY;
  for (const ParsedJson& row : diff["collectives"]) {
    double of_ledger = 0;
    for (const std::string name : row["predicted"]) of_ledger += exposed.at(name), exposed.erase(name);
    EXPECT_NEAR(row["predicted_exposed_s"], of_ledger, 1e-12) << row;
    if (row["measured_exposed_s"].is_null()) continue;  // hidden ones, of which the profile says nothing
    EXPECT_NEAR(row["measured_exposed_s"], (row["kind"] == "all-gather" ? 1.5 : 1) * row["predicted_exposed_s"].get<double>(), 1e-9) << row;
    EXPECT_NEAR(row["share"], row["measured_exposed_s"].get<double>() / diff["measured_s"].get<double>(), 1e-12) << row;
    EXPECT_LE(row["measured_exposed_s"], longest) << row;
    longest = row["measured_exposed_s"];
    if (row["kind"] == "all-gather") gathers += row["gap_s"].get<double>();
  }
  EXPECT_THAT(exposed, ::testing::IsEmpty()) << "each of the run's ledger has a row";
  EXPECT_NEAR(gathers, diff["categories"][0]["gap_s"].get<double>(), 1e-9);
  const std::string first = diff["collectives"][0]["name"];
  EXPECT_THAT(podsim(command).out, ::testing::ContainsRegex("\ncollective +kind +axis +exposed, measured +predicted +gap +of the step +hidden, measured +predicted\n" + first + " "));
}

TEST(Diff, APlanOfLayersIsComparedWithAProfileOfTheWholeModel) {
  const Folder folder;
  const std::string plan = folder.file("plan.textproto"), run_file = folder.file("run.json");
  ASSERT_EQ(podsim("tune --machine tpu_v4:spec --chips 4 --workload llama3-8b-block --batch 4 --layers 3 --quiet -o " + plan).status, exit_done);
  ASSERT_EQ(podsim("run --plan " + plan + " --format json -o " + run_file).status, exit_done);
  const ParsedJson run = ParsedJson::parse(test::bytes_of_file(run_file));
  const double one = run["makespan_s"];
  EXPECT_EQ(run["blocks"], 3);

  const std::string model = folder.file("model.trace.json", trace_of(run, 2, as_it_is, 3));
  const ParsedJson diff = json_of("diff --measured " + model + " " + plan);
  EXPECT_EQ(diff["layers"], 3);
  EXPECT_NEAR(diff["predicted_s"].get<double>(), 3 * one, 1e-9);
  EXPECT_NEAR(sum(diff["categories"], "predicted_s"), 3 * one, 1e-9);
  EXPECT_LE(std::abs(diff["gap_s"].get<double>()), 3 * run["waiting_s"].get<double>() + 1e-6 * one);
  EXPECT_THAT(diff["sentence"].get<std::string>(), HasSubstr("as long as predicted for 3 layers"));
  EXPECT_THAT(diff["notes"].dump(), HasSubstr("the predicted step is 3 times the block, the plan's layers"));
  EXPECT_EQ(json_of("diff --measured " + model + " " + run_file), diff);

  const std::string one_block = folder.file("block.trace.json", trace_of(run, 2, as_it_is));
  const ParsedJson of_block = json_of("diff --measured " + one_block + " " + plan + " --layers 1");
  EXPECT_EQ(of_block["layers"], 1);
  EXPECT_NEAR(of_block["predicted_s"].get<double>(), one, 1e-9);
  EXPECT_THAT(of_block["sentence"].get<std::string>(), ::testing::AllOf(HasSubstr("as long as predicted"), ::testing::Not(HasSubstr("layers"))));
  const ParsedJson by_steps = ParsedJson::parse(podsim("diff --measured " + model + " " + plan + " --layers 1 --steps 6 --format json").out);
  EXPECT_NEAR(by_steps["measured_s"].get<double>(), of_block["measured_s"].get<double>(), 1e-9);
}

TEST(Diff, CtrlCWhileAPlanIsSimulatedIsSaidAndHasItsStatus) {
  const Folder folder;
  const std::string plan = folder.file("plan.textproto");
  ASSERT_EQ(podsim("tune --machine tpu_v4 --chips 4 --workload llama3-8b-block --batch 4 --quiet -o " + plan).status, exit_done);
  const std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  EXPECT_EQ(run_command({"diff", "--measured", "x.json", plan}, console), exit_interrupted);
  EXPECT_EQ(err.str(), "podsim: interrupted\n");
}

TEST(Diff, ARunsOperationsAreTheSameFoldedOrNot) {
  EXPECT_EQ(json_of(block)["operations"], json_of(block + "--fold off ")["operations"]);
}

TEST(Diff, ATableOfStatisticsWillDo) {
  const Folder folder;
  const std::string run_file = folder.file("run.json");
  ASSERT_EQ(podsim("run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm collective --format json -o " + run_file).status,
            exit_done);
  const ParsedJson run = ParsedJson::parse(test::bytes_of_file(run_file));
  double flops = 0, busy = 0;
  for (const ParsedJson& operation : run["operations"])
    if (operation["category"] == "matmul") flops = operation["flops"], busy = operation["busy_s"];
  const std::string table =
      folder.file("stats.csv", fmt::format("category,hlo_op,occurrences,avg_self_time_us,model_GFLOPs\nconvolution fusion,fusion.1,160,{},{}\n"
                                           "loop fusion,fusion.2,160,100,0\n",
                                           busy * 2e6, flops / (busy * 2e9)));
  const ParsedJson diff = json_of("diff --measured " + table + " --devices 16 --steps 10 " + run_file);
  ASSERT_EQ(diff["ops"].size(), 1u);
  EXPECT_EQ(diff["ops"][0]["measured"][0], "fusion.1");
  EXPECT_NEAR(diff["ops"][0]["gap_s"].get<double>(), busy, 1e-6 * busy);
  bool listed = false;
  for (const ParsedJson& row : diff["unmatched"])
    listed |= row["name"] == "fusion.2" && row["side"] == "measured" && std::abs(row["time_s"].get<double>() - 1e-4) < 1e-12;
  EXPECT_TRUE(listed) << diff["unmatched"];
}

TEST(Diff, AForeignProfileIsWarnedOfWithWhatIsMostAlike) {
  const Folder folder;
  const std::string run_file = folder.file("run.json"), other_file = folder.file("other.json");
  const std::string own = "run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm meshslice --slice-count 4 ";
  ASSERT_EQ(podsim(own + "--format json -o " + run_file).status, exit_done);
  ASSERT_EQ(podsim("run --machine tpu_v4 --slice 4x4 --collective all-to-all --axis row --bytes 64MiB --format json -o " + other_file).status, exit_done);
  const std::string foreign = folder.file("foreign.trace.json", trace_of(ParsedJson::parse(test::bytes_of_file(other_file)), 1, as_it_is));
  const Outcome outcome = podsim("diff --measured " + foreign + " " + run_file + " --format json");
  EXPECT_EQ(outcome.status, exit_done);
  EXPECT_THAT(outcome.err, StartsWith("podsim: warning: matched 0 of "));
  EXPECT_THAT(outcome.err, HasSubstr("is nearest to measured \"all-to-all.1\" (all-to-all, 67.11 MB)"));
  const ParsedJson diff = ParsedJson::parse(outcome.out);
  EXPECT_EQ(diff["matching"]["predicted"]["matched"], 0);
  EXPECT_EQ(diff["matching"]["measured"]["of"], 1);
  EXPECT_EQ(diff["matching"]["nearest"][0]["measured"]["name"], "all-to-all.1");
  ASSERT_EQ(diff["warnings"].size(), 1U);
  EXPECT_THAT(podsim("diff --measured " + foreign + " " + run_file).out, HasSubstr("\nmatched 0 of "));

  const Outcome beside = podsim(own + "--trace " + folder.file("t.json") + " --with " + foreign + " --format json");
  EXPECT_EQ(beside.status, exit_done);
  EXPECT_THAT(beside.err, HasSubstr("podsim: warning: matched 0 of "));
  EXPECT_THAT(ParsedJson::parse(beside.out)["notes"].dump(), HasSubstr("matched 0 of "));
  EXPECT_THAT(test::bytes_of_file(folder.file("t.json")), HasSubstr("of 1 measured ones\"}"));

  const std::string own_profile = folder.file("own.trace.json", trace_of(ParsedJson::parse(test::bytes_of_file(run_file)), 1, as_it_is));
  EXPECT_EQ(podsim("diff --measured " + own_profile + " " + run_file).err, "");
  EXPECT_THAT(podsim(own + "--trace " + folder.file("t.json") + " --with " + own_profile).err, Not(HasSubstr("warning")));
}

TEST(Diff, StepsThatTheProfileDoesNotHaveAreToldOrRefused) {
  const Folder folder;
  const std::string run_file = folder.file("run.json");
  ASSERT_EQ(podsim("run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm meshslice --slice-count 4 --format json -o " + run_file).status,
            exit_done);
  const std::string profile = folder.file("p.trace.json", trace_of(ParsedJson::parse(test::bytes_of_file(run_file)), 1, as_it_is));
  const std::string line = "diff --measured " + profile + " " + run_file + " --steps ";
  EXPECT_EQ(podsim(line + "1").err, "");
  const Outcome two = podsim(line + "2 --format json");
  EXPECT_EQ(two.status, exit_done);
  EXPECT_EQ(two.err,
            "podsim: warning: --steps 2 divides the profile by 2, but it has 1 step: how often the module jit_step(1) ran on /device:TPU:0\n");
  EXPECT_EQ(ParsedJson::parse(two.out)["warnings"].size(), 1U);
  const Outcome many = podsim(line + "50");
  EXPECT_EQ(many.status, exit_bad_input);
  EXPECT_THAT(many.err, HasSubstr("p.trace.json: expected --steps up to 4, as often as "));
  EXPECT_THAT(many.err, HasSubstr("found 50. The profile has 1 step: how often the module jit_step(1) ran on /device:TPU:0"));
}

TEST(Diff, SaysWhatIsWrong) {
  const Folder folder;
  const std::string run_file = folder.file("run.json"), good = folder.file("good.json", trace_of(ParsedJson{{"operations", ParsedJson::array()}}, 1, as_it_is));
  ASSERT_EQ(podsim("run --machine ideal --slice 4 --collective all-gather --axis row --bytes 64MiB --format json -o " + run_file).status, exit_done);
  const ParsedJson run = ParsedJson::parse(test::bytes_of_file(run_file));
  const std::string profile = folder.file("p.json", trace_of(run, 1, as_it_is));
  ASSERT_EQ(podsim("diff --measured " + profile + " " + run_file).status, exit_done) << podsim("diff --measured " + profile + " " + run_file).err;
  ParsedJson without = run, wrong = run;
  without.erase("operations");
  wrong["operations"][0]["busy_s"] = "long";
  const std::string measured = "diff --measured " + profile + " ";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"diff " + run_file, "--measured is missing"},
      {"diff --measured " + profile, "expected a plan, the JSON of a run or --hlo, found none"},
      {measured + run_file + " " + run_file, "found more"},
      {measured + folder.file("cut.json", "{\n\"makespan_s\": 1,\n"), "cut.json:3:1: expected the rest of a JSON object, found the end of the file"},
      {measured + folder.file("no.json", "{\"makespan_s\": ]}"), "no.json:1:16: this is no JSON: found \"]\""},
      {measured + folder.file("number.json", "{\n\"makespan_s\": 1"), "number.json:2:16: expected the rest of a JSON object, found the end of the file"},
      {measured + folder.file("text.json", "{\"makespan_s"), "text.json:1:13: expected the rest of a JSON object, found the end of the file"},
      {measured + folder.file("comma.json", "{\"makespan_s\": 1\n\"blocks\": 1}"), "comma.json:2:1: this is no JSON: found \"\\\"\""},
      {measured + folder.file("more.json", "{}\n x"), "more.json:2:2: this is no JSON: found \"x\""},
      {measured + folder.file("bytes.json", "{\"\xff\": 1}"), "bytes.json:1:1: this is no JSON of a run: The input is not valid UTF-8"},
      {measured + folder.file("deep.json", "{\"a\":" + std::string(100'000, '[')), "deep.json:1:"},
      {measured + folder.file("other.json", "{\"plans\": []}"), "other.json:1:1: expected the JSON of `podsim run`"},
      {measured + folder.file("list.json", "[]"), "list.json:1:1: expected the JSON of `podsim run`"},
      {measured + folder.file("old.json", without.dump()), "old.json:1:1: this run has no operations"},
      {measured + folder.file("wrong.json", wrong.dump()),
       "wrong.json: operations[0]: busy_s must be a number from 0 to 1e18, found \"\\\"long\\\"\""},
      {measured + folder.file("no.textproto", "no plan\n"), "no.textproto:1:"},
      {measured + folder.file("empty", ""), "empty:1:1: expected a plan or the JSON of a run, found an empty file"},
      {measured + folder.file("nowhere"), "nowhere"},
      {measured + run_file + " --machine tpu_v4", "--machine: belongs to a plan"},
      {measured + run_file + " --steps 0", "--steps"},
      {measured + run_file + " --layers 0", "--layers"},
      {measured + run_file + " --from pcap", "\"pcap\" is no form of profiles"},
      {"diff --measured nowhere.json " + run_file, "nowhere.json"},
      {"diff --measured profile.txt " + run_file, "--measured: expected a folder, a file name that ends in .pb, .json or .csv"},
      {"diff --measured " + folder.file("t.json", "{\"traceEvents\":[{\"ph\"") + " " + run_file, "t.json:1:"},
      {"diff --measured " + good + " " + run_file, "no operation on a line \"XLA Ops\""},
  };
  for (const auto& [line, message] : cases) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
    EXPECT_EQ(outcome.out, "") << line;
  }
}

}  // namespace
}  // namespace podsim
