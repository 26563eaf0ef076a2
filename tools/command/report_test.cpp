// run --record and report: what a record holds, and pages that are data and no script of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "sim/base/rng.hpp"
#include "sim/base/test_asked.hpp"
#include "sim/config/message_file.hpp"
#include "tools/command/test_command.hpp"
#include "tools/page/page.hpp"
#include "tools/page/recorded_result.hpp"
#include "tools/report/json.hpp"
#include "tools/report/role_colours.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ParsedJson = nlohmann::ordered_json;

const std::string product = "run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm meshslice --slice-count 2 --quiet ";

/// What every verb but `run` is recorded by, small.
const std::vector<std::pair<ResultKind, std::string>> other_verbs{
    {ResultKind::comparison, "compare --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithms collective,meshslice --slice-count 2 --quiet"},
    {ResultKind::tuning, "tune --machine tpu_v4 --slice 2x2 --gemm m=4096,n=4096,k=4096 --pareto 2 --quiet"},
    {ResultKind::tuning, "tune --machine tpu_v5p --chips 4 --training llama3-8b --batch 4 --mesh stage=2,fsdp=2 --microbatches 2,4 --pipeline 1f1b,gpipe --virtual-stages 1 --remat full --top 2 --pad --quiet"},
    {ResultKind::validation, "validate tpu_v5p_ppermute --quiet"},
    {ResultKind::differences, "compare --machine ideal --slice 4 --hlo " PODSIM_SOURCE_DIR "/workloads/differences/testdata/ring.hlo --algorithms tp-ag-overlapped,jax-rs-overlapped --set chip.hbm_bandwidth=1TB/s --quiet"},
    {ResultKind::diff, "diff --measured " PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/jax_h200.xplane.pb.gz --hlo " PODSIM_SOURCE_DIR "/validation/diff/testdata/h200_llama.hlo.gz --machine dgx_h200 --quiet"},
    {ResultKind::calibration, "calibrate " PODSIM_SOURCE_DIR "/validation/datasets/tpu_v5p_ppermute/observations.csv --base tpu_v5p --slice 2x2 --mesh row=4 --quiet"},
    {ResultKind::check, "check --slice 4 --collective all-reduce --bytes 16 --dtype f32 --edges --quiet"},
    {ResultKind::explanation,
     "validate --observations " PODSIM_SOURCE_DIR "/tests/golden/input/nccl_bare.txt --from nccl-tests --op all-gather --devices 4 --machine dgx_h100 --slice 1x4 --mesh ring=4 --explain --quiet"},
};

Record recorded(const std::string& line, const Folder& folder) {
  const std::string file = folder.file("run.record");
  const Outcome outcome = podsim(line + " --record " + file);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  auto record = read_record(bytes_of_file(file), file);
  EXPECT_TRUE(record) << to_text(record.error());
  return record ? *std::move(record) : Record{};
}

/// What a page holds as data.
ParsedJson data_in(const std::string& page) {
  const std::string begin = "<script id=\"records\" type=\"application/json\">";
  const std::size_t from = page.find(begin) + begin.size();
  return ParsedJson::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(RunRecord, HasTheFiguresOfTheRunWithItsDetails) {
  const Folder folder;
  const Record record = recorded(product, folder);
  const ParsedJson kept = ParsedJson::parse(record.result);
  ParsedJson printed = test::json_of(product + "--explain --per device,link");
  for (const char* time : {"wall_s", "build_s"}) printed.erase(time);
  EXPECT_EQ(kept, printed);
  EXPECT_THAT(record.command, HasSubstr("podsim run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096"));
  EXPECT_TRUE(record.missing.empty());
  for (const SourcedValue& value : record.machine) EXPECT_NE(value.source, "") << value.path;
}

TEST(RunRecord, PrintsWhatIsPrintedWithoutIt) {
  const Folder folder;
  ParsedJson with = test::json_of(product + "--record " + folder.file("a.record")), without = test::json_of(product);
  for (ParsedJson* json : {&with, &without}) json->erase("wall_s"), json->erase("build_s");
  EXPECT_EQ(with, without);
}

TEST(RunRecord, TimelinesOfRepresentativesStandForAllDevices) {
  const Folder folder;
  for (const std::string fold : {"auto", "off"}) {
    const Record record = recorded(product + "--fold " + fold, folder);
    int devices = 0;
    for (const RecordedTimeline& timeline : record.timelines) devices += timeline.alike;
    EXPECT_EQ(devices, 16) << fold;
    ASSERT_FALSE(record.timelines.empty());
    Picoseconds core;
    for (const RecordedLine& line : record.timelines.front().lines)
      if (line.name == "compute")
        for (const RecordedBar& bar : line.bars) core += bar.end - bar.begin;
    EXPECT_NEAR(static_cast<double>(core.count()), ParsedJson::parse(record.result)["compute_s"].get<double>() * 1e12, 0.5) << fold;
  }
}

TEST(RunRecord, EqualRunsGiveEqualBytes) {
  const Folder folder;
  std::string bytes[3];
  for (int i = 0; i < 3; ++i) {
    const std::string file = folder.file(std::to_string(i));
    ASSERT_EQ(podsim(product + "--threads " + std::to_string(i + 1) + " --record " + file + " --format json").status, exit_done);
    bytes[i] = bytes_of_file(file);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0], bytes[2]);
}

// Whatever the topology, and however the run is folded.
TEST(RunRecord, EveryLinkHasItsTraffic) {
  const Folder folder;
  const std::string twisted = "run --machine tpu_v4 --slice 4x4x8 --topology twisted --mesh row=16,col=8 --gemm m=8192,n=4096,k=4096 --algorithm collective --quiet ";
  const std::string switched = "run --machine dgx_h100 --slice 2x8 --mesh row=2,col=8 --collective all-gather --axis row,col --bytes 1MiB --quiet ";
  for (const std::string& line : {product, twisted, switched}) {
    const Record folded = recorded(line, folder), unfolded = recorded(line + "--fold off", folder);
    ASSERT_TRUE(folded.network && unfolded.network);
    ASSERT_EQ(folded.network->links.size(), unfolded.network->links.size());
    double sum = 0, most = 0;
    for (std::size_t l = 0; l < folded.network->links.size(); ++l) {
      EXPECT_EQ(folded.network->links[l].bytes, unfolded.network->links[l].bytes) << l;
      sum += folded.network->links[l].bytes;
      most = std::max(most, folded.network->links[l].utilisation);
    }
    const ParsedJson result = ParsedJson::parse(folded.result);
    EXPECT_EQ(sum, result["link_bytes"].get<double>()) << line;
    double printed = 0;
    for (const ParsedJson& link : result["per_link"])
      if (!link["link"].get<std::string>().starts_with("HBM")) printed = std::max(printed, link["utilisation"].get<double>());
    EXPECT_EQ(most, printed) << line;
  }
}

Picoseconds sum_of(const RecordedTimeline& timeline, const std::string& name) {
  Picoseconds sum;
  for (const RecordedLine& line : timeline.lines)
    if (line.name == name)
      for (const RecordedBar& bar : line.bars) sum += bar.end - bar.begin;
  return sum;
}

// Runs whose functions are played once: a pipeline, a step without stages, and the loop of a compiled module.
const std::string pipeline =
    "run --machine tpu_v4 --slice 4x4 --mesh stage=4,fsdp=4 --training llama3-8b --batch 32 --pad --microbatches 8 --remat full --force --quiet ";
const std::vector<std::string> with_calls{
    pipeline,
    "run --machine tpu_v5p --slice 2x2x1 --mesh fsdp=4 --training llama3-8b --batch 4 --remat full --pad --force --quiet ",
    "run --machine tpu_v5p --slice 2x2x2 --mesh row=2,col=2,depth=2 --hlo " PODSIM_SOURCE_DIR "/workloads/hlo/testdata/tpu_layers.hlo --quiet ",
};

TEST(RunRecord, CallsAreOfAKindOfTheirOwnAndWhatTheyHoldIsTheFiguresOfTheRun) {
  const Folder folder;
  for (const std::string& line : with_calls) {
    const Record record = recorded(line, folder);
    const ParsedJson result = ParsedJson::parse(record.result);
    std::int64_t calls = 0;
    for (const RecordedTimeline& timeline : record.timelines) {
      const auto own = std::find_if(result["per_device"].begin(), result["per_device"].end(), [&](const ParsedJson& device) { return device["device"] == timeline.device; });
      ASSERT_NE(own, result["per_device"].end());
      EXPECT_NEAR(static_cast<double>(sum_of(timeline, "compute").count()), (*own)["compute_s"].get<double>() * 1e12, 0.5) << timeline.name;
      ASSERT_EQ(timeline.lines.front().name, "calls");
      for (const RecordedBar& bar : timeline.lines.front().bars) {
        ++calls;
        ASSERT_GT(bar.call, 0U);
        Picoseconds parts;
        for (const auto& [name, time] : record.calls.at(bar.call - 1).parts) parts += time;
        EXPECT_EQ(parts, bar.end - bar.begin) << record.tasks[bar.task];
      }
    }
    EXPECT_EQ(calls, result["calls"]["played"].get<std::int64_t>()) << "every call of every program";
    for (const std::string& name : record.missing) EXPECT_THAT(name, Not(HasSubstr("calls hold")));
  }
}

TEST(RunRecord, CallsAreNamedByPassStageAndMicrobatch) {
  const Folder folder;
  const Record record = recorded(pipeline, folder);
  EXPECT_THAT(record.tasks, Contains("fwd_0__3 layer 2 (forward, stage 0, microbatch 3)"));
  EXPECT_THAT(record.tasks, Contains("bwd_2__7 layer 21 (backward, stage 2, microbatch 7)"));
  EXPECT_THAT(record.tasks, Contains("update layer 1 (optimiser)"));
}

TEST(RunRecord, EveryTaskHasARoleThatHasAColour) {
  const Folder folder;
  for (const std::string& line : {product, pipeline}) {
    const Record record = recorded(line, folder);
    ASSERT_EQ(record.task_roles.size(), record.tasks.size());
    for (const std::string& role : record.task_roles) EXPECT_EQ(std::ranges::count(role_colours(), role, &RoleColour::role), 1) << role;
    const auto role_of_task = [&](const std::string& task) { return record.task_roles.at(static_cast<std::size_t>(std::ranges::find(record.tasks, task) - record.tasks.begin())); };
    if (line == product) {
      EXPECT_EQ(role_of_task("matmul s0"), "matmul");
      EXPECT_EQ(role_of_task("gather X s0 launch"), "launch");
      EXPECT_THAT(record.task_roles, Contains("all-gather"));
    } else {
      EXPECT_EQ(role_of_task("fwd_0__3 layer 2 (forward, stage 0, microbatch 3)"), "forward");
      EXPECT_EQ(role_of_task("bwd_2__7 layer 21 (backward, stage 2, microbatch 7)"), "backward");
      EXPECT_EQ(role_of_task("update layer 1 (optimiser)"), "optimiser");
    }
  }
}

TEST(RunRecord, ATaskWithoutARoleAmongOthersIsAnError) {
  const Folder folder;
  Record record = recorded(product, folder);
  record.task_roles.pop_back();
  const auto read = read_record(write_record(record), "few");
  ASSERT_FALSE(read);
  EXPECT_THAT(to_text(read.error()), HasSubstr("expected a role for each of"));
}

TEST(RunRecord, OneWithoutRolesSaysThatItsTimelineHasNoColours) {
  const Folder folder;
  Record record = recorded(product, folder);
  EXPECT_TRUE(read_record_or_json(write_record(record), "new")->missing.empty());
  record.task_roles.clear();
  EXPECT_THAT(read_record_or_json(write_record(record), "old")->missing, Contains(HasSubstr("the colours of the timeline")));
}

TEST(RunRecord, APipelineHasEachMicrobatchOncePerStageAndPassWhenItWasSimulated) {
  const Folder folder;
  for (const char* calls : {"auto", "inline"}) {
    SCOPED_TRACE(calls);
    const Record record = recorded("run --machine ideal --slice 4 --mesh stage=4 --training " PODSIM_SOURCE_DIR "/workloads/training/examples/small.textproto --batch 8 --microbatches 8 --pipeline 1f1b --quiet --calls " + std::string{calls}, folder);
    ASSERT_TRUE(record.pipeline);
    ASSERT_EQ(record.pipeline->rows.size(), 4u);
    std::set<std::tuple<PipelineRole, int, int>> seen;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      std::int64_t end = 0;
      for (const DrawnPipelineTask& task : record.pipeline->rows[stage].tasks) {
        EXPECT_GE(task.begin, end);
        end = task.end;
        if (task.role == PipelineRole::optimizer) continue;
        EXPECT_EQ(task.stage, static_cast<int>(stage));
        EXPECT_TRUE(seen.emplace(task.role, task.stage, task.microbatch).second) << task.microbatch << " is drawn twice";
      }
      EXPECT_LE(to_seconds(Picoseconds{end}).count(), ParsedJson::parse(record.result)["makespan_s"].get<double>() * (1 + 1e-12));
    }
    EXPECT_EQ(seen.size(), 2u * 4 * 8);
    for (int stage = 1; stage < 4; ++stage)  // a stage has what the one before it sends
      EXPECT_GE(record.pipeline->rows[static_cast<std::size_t>(stage)].tasks.front().begin, record.pipeline->rows[static_cast<std::size_t>(stage) - 1].tasks.front().end);
    const ParsedJson page = data_in(page_of({record}, {"a"}));
    EXPECT_THAT(page[0]["pipeline"]["picture"].get<std::string>(), ::testing::StartsWith("data:image/svg+xml;base64,"));
  }
}

TEST(ReportPage, PointsOfASweepAreCsvAndAChart) {
  const Folder folder;
  const std::string store = folder.file("s.sqlite"), record = folder.file("s.record"), csv = folder.file("s.csv"), chart = folder.file("s.vl.json");
  ASSERT_EQ(podsim("sweep " PODSIM_SOURCE_DIR "/tools/sweep/examples/gemm.textproto --store " + store + " --record " + record + " --quiet").status, exit_done);
  ASSERT_EQ(podsim("report " + record + " -o " + csv).status, exit_done);
  EXPECT_EQ(bytes_of_file(csv), podsim("sweep --store " + store + " --export csv").out);
  ASSERT_EQ(podsim("report " + record + " -o " + chart).status, exit_done);
  const ParsedJson spec = ParsedJson::parse(bytes_of_file(chart));
  EXPECT_EQ(spec["encoding"]["y"]["field"], "makespan_s");
  for (const ParsedJson& row : spec["data"]["values"]) EXPECT_TRUE(row.contains(spec["encoding"]["x"]["field"].get<std::string>())) << row;
  EXPECT_EQ(podsim("report " + record + " " + record + " -o " + csv).status, exit_bad_input);
}

TEST(RunRecord, WhatIsInFlightInCallsIsThatOfTheAxis) {
  const Folder folder;
  for (const auto& [line, axis] : {std::pair{with_calls[1], "fsdp"}, {with_calls[2], "row"}}) {  // all that moves along it is in calls
    const Record record = recorded(line, folder);
    const ParsedJson found = ParsedJson::parse(record.result)["axes"][0];
    EXPECT_EQ(found["axis"], axis);
    EXPECT_NEAR(static_cast<double>(sum_of(record.timelines.front(), std::string{axis} + " in calls").count()), found["in_flight_s"].get<double>() * 1e12, 0.5);
  }
}

TEST(RunRecord, LinksOfCallsCarryWhatTheyDoWrittenOut) {
  const Folder folder;
  const std::string small = "run --machine tpu_v4 --slice 2x4 --mesh stage=2,fsdp=4 --training llama3-8b --batch 8 --pad --microbatches 2 --remat full --force --quiet ";
  const Record played = recorded(small, folder), inlined = recorded(small + "--calls inline", folder);
  ASSERT_FALSE(played.calls.empty());
  ASSERT_TRUE(inlined.calls.empty());
  ASSERT_TRUE(played.network && inlined.network);
  ASSERT_EQ(played.network->links.size(), inlined.network->links.size());
  double sum = 0;
  for (std::size_t l = 0; l < played.network->links.size(); ++l) {
    const RecordedLink &one = played.network->links[l], &other = inlined.network->links[l];
    EXPECT_EQ(one.bytes, other.bytes) << l;
    EXPECT_NEAR(one.utilisation, other.utilisation, 1e-2 * other.utilisation) << l << ": of makespans that differ by what moves beside calls";
    sum += one.bytes;
  }
  EXPECT_EQ(sum, ParsedJson::parse(played.result)["link_bytes"].get<double>());
}

TEST(RunRecord, LiveMemoryReachesThePeakOfTheDevice) {
  const Folder folder;
  for (const std::string& line : {product, std::string{"run --machine tpu_v5p --slice 2x2x1 --mesh fsdp=4 --training llama3-8b --batch 4 --remat full --pad --force --quiet "}}) {
    const Record record = recorded(line, folder);
    ASSERT_FALSE(record.timelines.empty());
    for (const RecordedTimeline& timeline : record.timelines) {
      Bytes now, peak;
      for (std::size_t c = 0; c < timeline.memory.size(); ++c) {
        now += timeline.memory[c].by;
        if (c + 1 == timeline.memory.size() || timeline.memory[c + 1].at > timeline.memory[c].at) peak = std::max(peak, now);
      }
      const ParsedJson devices = ParsedJson::parse(record.result)["per_device"];
      const auto own = std::find_if(devices.begin(), devices.end(), [&](const ParsedJson& device) { return device["device"] == timeline.device; });
      ASSERT_NE(own, devices.end());
      EXPECT_EQ(peak.count(), (*own)["peak_memory_bytes"].get<std::int64_t>()) << line;
    }
  }
}

TEST(RunRecord, IsReadBackEqual) {
  const Folder folder;
  const std::string bytes = write_record(recorded(product, folder));
  const auto again = read_record(bytes, "again");
  ASSERT_TRUE(again);
  EXPECT_EQ(write_record(*again), bytes);
}

TEST(RunRecord, ATruncatedOneIsAnError) {
  const Folder folder;
  const std::string bytes = write_record(recorded(product, folder));
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, bytes.size() / 2, bytes.size() - 1}) EXPECT_FALSE(read_record(bytes.substr(0, size), "cut")) << size;
}

TEST(Record, OfEveryVerbHasItsResult) {
  const Folder folder;
  for (const auto& [kind, line] : other_verbs) {
    const Record record = recorded(line, folder);
    EXPECT_EQ(record.kind, kind) << line;
    ParsedJson printed = test::json_of(line);
    printed.erase("wall_s");
    if (printed.contains("rows"))
      for (ParsedJson& row : printed["rows"]) row.erase("wall_s"), row.erase("build_s");
    EXPECT_EQ(ParsedJson::parse(record.result), printed) << line;
    const std::string bytes = write_record(record);
    EXPECT_EQ(write_record(recorded(line + " --threads 1", folder)), bytes) << line;
    const ParsedJson data = data_in(page_of({record}, {"a"}));
    EXPECT_EQ(data[0]["kind"], std::string{name_of(kind)});
    EXPECT_EQ(data[0]["result"], printed) << line;
  }
}

TEST(Record, OfASweepHasItsPointsFromARunAndFromAStore) {
  const Folder folder;
  const std::string sweep = folder.file("small.textproto",
                                        "format_version: 1\nsweep { machine: \"tpu_v4\" slice: \"2x2\" gemm: \"m=1024,n=1024,k=1024\" algorithm: [\"collective\", \"wang\"] }\n");
  const Record record = recorded("sweep " + sweep + " --store " + folder.file("store") + " --quiet", folder);
  EXPECT_EQ(record.kind, ResultKind::sweep);
  EXPECT_EQ(ParsedJson::parse(record.result), test::json_of("sweep --store " + folder.file("store") + " --export json"));
  EXPECT_EQ(recorded("sweep --quiet --store " + folder.file("store"), folder).result, record.result);
}

TEST(Record, TimesOfPodsimItselfAreLeftOutOfItAndNothingElse) {
  EXPECT_EQ(recorded_result(R"({"wall_s": 1, "a": [{"build_s": 2, "b": 1e-3}, 5, "x"], "mesh": {"wall_s": 4}})"), R"({"a":[{"b":0.001},5,"x"],"mesh":{"wall_s":4}})");
}

TEST(RunRecord, EveryBitThatFlipsIsSeen) {
  const Folder folder;
  std::string bytes = write_record(recorded("run --machine ideal --slice 2 --collective all-gather --axis row --bytes 64 --quiet", folder));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    char& byte = bytes[bit / 8];
    const char whole = byte;
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const auto damaged = read_record_or_json(bytes, "damaged");
    byte = whole;
    ASSERT_FALSE(damaged) << "bit " << bit << " of " << 8 * bytes.size();
    EXPECT_THAT(to_text(damaged.error()), HasSubstr("damaged"));
  }
  ASSERT_TRUE(read_record_or_json(bytes, "whole"));
  bytes[bytes.size() / 2] ^= 1;
  for (const std::string& command : {"report " + folder.file("flipped", bytes) + " -o " + folder.file("page.html"), "show timeline " + folder.file("flipped", bytes)}) {
    const Outcome outcome = podsim(command);
    EXPECT_EQ(outcome.status, exit_bad_input) << command;
    EXPECT_THAT(outcome.err, ::testing::ContainsRegex(folder.file("flipped") + ": damaged: expected bytes with the checksum [0-9a-f]{8} behind the header, found [0-9a-f]{8}"));
  }
}

TEST(RunRecord, OneWithoutAChecksumIsOfTheFirstVersion) {
  const auto old = read_record(framed('C', "\x08\x01"), "old.record");
  ASSERT_FALSE(old);
  EXPECT_EQ(to_text(old.error()), "old.record: expected a record of format_version 2, found version 1, which has no checksum: the command writes a new one");
}

/// The mutants that a test tries: PODSIM_RECORD_MUTANTS, or few.
int mutants_asked() { return test::asked("PODSIM_RECORD_MUTANTS", 5000); }

/// Mutants of a record are refused, or make a page that is data.
void try_mutants(const Record& record, int mutants) {
  const std::string payload = write_record(record).substr(binary_magic.size() + 1 + 8 + 4);
  int read = 0;
  for (int m = 0; m < mutants; ++m) {
    Rng rng{static_cast<std::uint64_t>(m)};
    std::string mutant = payload;
    for (int change = rng.between(1, 4); change-- > 0;) {
      const auto at = static_cast<std::size_t>(rng.below(mutant.size()));
      if (rng.below(4) == 0)
        mutant.erase(at, static_cast<std::size_t>(rng.between(1, 8)));
      else
        mutant[at] = static_cast<char>(rng.below(256));
      if (mutant.empty()) mutant = "x";
    }
    const auto mutated = read_record_or_json(framed('K', mutant, true), "mutant");
    if (!mutated) continue;
    ++read;
    EXPECT_NO_THROW(static_cast<void>(data_in(page_of({*mutated}, {"mutant"})))) << m;
  }
  EXPECT_GT(read, mutants / 100);
  EXPECT_LT(read, mutants);
}

TEST(RunRecord, MutantsAreRefusedOrMakeAPage) {
  const Folder folder;
  try_mutants(recorded("run --machine ideal --slice 2 --collective all-gather --axis row --bytes 64 --quiet", folder), mutants_asked());
  Record calls = recorded(with_calls[2], folder);
  ASSERT_FALSE(calls.calls.empty());
  calls.machine.clear(), calls.network.reset(), calls.command = "podsim", calls.result = R"({"makespan_s":5e-5,"operations":[]})";
  try_mutants(calls, mutants_asked() / 5);
}

TEST(Record, MutantsOfOtherVerbsAreRefusedOrMakeAPage) {
  const auto with = [](ResultKind kind, const std::string& result) {
    Record record;
    record.podsim_version = "1", record.command = "podsim", record.result = result, record.kind = kind;
    return record;
  };
  const std::vector<Record> records{
      with(ResultKind::comparison, R"({"rows":[{"makespan_s":0.5,"algorithm":"wang"}],"skipped":[],"verdicts":["a"]})"),
      with(ResultKind::tuning, R"({"plans":[{"rank":1,"predicted_s":0.25,"mesh":{"row":2}}],"candidates":3})"),
      with(ResultKind::validation, R"({"datasets":[{"name":"a","rows":[{"measured_s":1,"predicted_s":2}],"cases":[]}],"rungs":{}})"),
      with(ResultKind::differences, R"({"module":"a","schedules":[{"schedule":"b","makespan_s":1}],"differences":[{"kind":"copy","gain_s":0.5}]})"),
      with(ResultKind::explanation, R"({"median_abs_error":0.5,"rows":[{"measured_s":1,"expected_s":2,"bound":"alpha, 3 %","algorithms":[]}]})"),
      with(ResultKind::sweep, R"({"columns":["point","bytes"],"rows":[{"point":1,"bytes":null}]})")};
  for (const Record& record : records) try_mutants(record, mutants_asked() / static_cast<int>(records.size()));
}

TEST(ReportPage, NamesInItAreNeverMarkup) {
  const Folder folder;
  Record record = recorded(product, folder);
  const std::string hostile = "</script><script>alert(1)</script><!--\"'&\x01\xff";
  record.command = record.tasks.front() = hostile;
  record.machine.front().source = hostile;
  const std::string page = page_of({record}, {hostile});
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_EQ(data_in(page)[0]["tasks"]["names"][0].get<std::string>(), as_utf8(hostile));
}

TEST(ReportPage, AnyBytesOfNamesAndOneLongLabelAreText) {
  const Folder folder;
  Record record = recorded(product, folder);
  const std::string label(100'000, '<');  // and the page is not so large that it is compressed
  record.tasks.front() = label;
  record.network->nodes.front() = record.memory_kinds.front() = "\"</script><script>alert(1)</script>";
  const std::string page = page_of({record}, {"a"});
  EXPECT_THAT(page, Not(HasSubstr("</script><script>alert(1)")));
  const ParsedJson data = data_in(page);
  EXPECT_EQ(data[0]["tasks"]["names"][0].get<std::string>(), label);
  EXPECT_EQ(data[0]["network"]["nodes"][0].get<std::string>(), record.network->nodes.front());
}

TEST(ReportPage, LoadsNothing) {
  const Folder folder;
  const std::string page = page_of({recorded(product, folder)}, {"a"});
  const std::size_t data = page.find("id=\"records\""), behind = page.find("</script>", data);
  std::string code = page.substr(0, data) + page.substr(behind);
  code.erase(code.find("http://www.w3.org/2000/svg"), 26);  // the name of a language
  for (const char* what : {"://", "src=", "@import", "url(", "fetch(", "XMLHttp", "innerHTML", "insertAdjacent", "document.write", "eval("}) EXPECT_THAT(code, Not(HasSubstr(what)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(ReportPage, IsSmallForManyChips) {
  const Folder folder;
  for (const auto& [line, most] : std::vector<std::pair<std::string, std::size_t>>{
           {"run --machine tpu_v4 --slice 16x16 --workload gpt3-block --algorithm meshslice --slice-count 8 --quiet", 2'000'000},
           {"run --machine tpu_v4 --slice 16x16x16 --mesh row=256,col=16 --gemm m=1048576,n=65536,k=32768 --algorithm meshslice --slice-count 8 --quiet", 8'000'000}}) {
    const Record record = recorded(line, folder);
    EXPECT_LT(write_record(record).size(), 20'000'000U);
    EXPECT_LT(page_of({record}, {"a"}).size(), most) << line;
  }
}

TEST(ReportPage, IsTheSameForTheSameRun) {
  const Folder folder;
  const std::string file = folder.file("page.html"), record = folder.file("run.record");
  recorded(product, folder);
  std::string pages[2];
  for (std::string& page : pages) {
    ASSERT_EQ(podsim("report " + record + " -o " + file).status, exit_done);
    page = bytes_of_file(file);
  }
  EXPECT_EQ(pages[0], pages[1]);
}

TEST(ReportPage, TheJsonOfARunMakesOneThatSaysWhatIsMissing) {
  const Folder folder;
  const std::string json = folder.file("run.json"), page = folder.file("page.html");
  ASSERT_EQ(podsim(product + "--format json -o " + json).status, exit_done);
  ASSERT_EQ(podsim("report " + json + " -o " + page).status, exit_done);
  const ParsedJson data = data_in(bytes_of_file(page));
  EXPECT_EQ(data[0]["result"], ParsedJson::parse(bytes_of_file(json)));
  EXPECT_THAT(data[0]["missing"][0].get<std::string>(), HasSubstr("--record"));
}

TEST(ReportPage, BadInputIsNamedAndLeavesNoFile) {
  const Folder folder;
  const std::string page = folder.file("page.html"), other = folder.file("other.json", "{\"a\": 1}"), cut = folder.file("cut.json", "{\"makespan_s\": 1,\n");
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected a record"},
           {other, other + ":1:1: expected the JSON of `podsim run`"},
           {cut, cut + ":2:1: expected the rest of a JSON object"},
           {folder.file("none"), "none"},
           {folder.file("nan.json", "{\"rows\": [],\n \"verdicts\": NaN}"), "nan.json:2:"},
       }) {
    const Outcome outcome = podsim("report " + line + " -o " + page);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(page)) << line;
  }
}

}  // namespace
}  // namespace podsim
