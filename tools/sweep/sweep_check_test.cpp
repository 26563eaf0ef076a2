// What a wrong sweep is told before anything runs, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::blocks_of;

const std::string gather_fields = "collective: 'all-gather' axis: 'row' bytes: '16'";
const std::string gemm_fields = "gemm: 'm=16,n=16,k=16' algorithm: 'collective'";

std::string wrong(const std::string& sweeps) {
  const Status ok = check_sweep(blocks_of(sweeps));
  return ok ? "" : to_text(ok.error());
}

TEST(SweepCheck, FindsNothingWrongWithWhatOnlySomeCombinationsCannotDo) {
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' " + gather_fields + " }"), "");
  // Each slice goes with one of the meshes, and three divides nothing.
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: ['4x4', '8x8'] mesh: ['row=8,col=8', 'row=4,col=4'] gemm: 'm=64,n=64,k=64' "
                  "algorithm: 'meshslice' slice_count: 3 }"),
            "");
  // The cable is there on one slice only; rings need axes that wrap.
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: ['2', '8'] fail: ['6-7', ''] wrap: ['none', 'all'] " + gather_fields + " algorithm: 'ring' }"), "");
  // A machine around two cases, of which it can do one.
  EXPECT_EQ(wrong("sweep { machine: ['tpu_v4', 'ideal'] case { slice: 'v4-8' } case { slice: '4x4' } " + gather_fields + " }"), "");
}

TEST(SweepCheck, SaysWhatIsMissingOrDoesNotBelong) {
  EXPECT_EQ(wrong("sweep { slice: '4' " + gather_fields + " }"), "s:2:1: machine is missing");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' }"), "s:2:1: expected one of `gemm`, `collective`, `workload`, `training`, `hlo`, `program`, `plan`, `schedule`, `msccl` and `chakra`, found none");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' " + gather_fields + gemm_fields + " }"),
            "s:2:1: expected one of `gemm`, `collective`, `workload`, `training`, `hlo`, `program`, `plan`, `schedule`, `msccl` and `chakra`, found several");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' gemm: 'm=1,n=1,k=1' }"), "s:2:1: gemm needs algorithm");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' collective: 'reduce' axis: 'row' }"), "s:2:1: collective needs bytes");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4'\n" + gather_fields + "\nblock: [1, 2] }"), "s:4:9: belongs to `gemm`, `workload` and `program`, not to `collective`");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4'\n" + gemm_fields + "\nshift: 1 }"), "s:4:8: belongs to `collective`, not to `gemm`");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' case { " + gather_fields + " }\n case { " + gemm_fields + " } }"),
            "s:2:26: there is no such system: `slice` is missing: the chips per physical dimension, as 16x16 or 4x8x8\n"
            "s:3:2: there is no such system: `slice` is missing: the chips per physical dimension, as 16x16 or 4x8x8");
}

/// A sweep with one field more, on its third line, whose value begins in column 20.
struct WrongValue {
  std::string field, message, problem = gather_fields;
};

TEST(SweepCheck, TellsEveryTextThatIsWrongByItself) {
  const std::string block = "workload: 'gpt3-block'";
  const std::vector<WrongValue> cases{
      {"wrap: 'some'", "expected auto, all, none, or dimensions such as x,y (of x, y, z, w), got \"some\""},
      {"topology: 'donut'", ""},
      {"pods: 0", "expected a whole number from 1 to 1024, got \"0\""},
      {"mesh: 'row4'", "expected NAME=SIZE separated by commas, as row=32,col=8, found \"row4\""},
      {"mesh: 'row=5'", ""},
      {"mesh_order: 'rows'", ""},
      {"fail: '0-9'", ""},
      {"fail: 'any'", "any is for podsim run, expected a cable between two chips, as 0.0-0.1"},
      {"degrade: '0-1'", ""},
      {"straggler: '3.2'", "expected CHIP=PART or random:PERCENT%=PART, as 3.2=0.8 or random:1%=0.8, found \"3.2\""},
      {"seed: -1", ""},
      {"algorithm: 'rings'", "there is no collective algorithm \"rings\", did you mean \"ring\"?"},
      {"engine: 'dse'", ""},
      {"fold: 'on'", "expected auto or off, found \"on\""},
      {"dtype: 'bf17'", "expected the dtype f32, bf16, f8e4m3fn, f8e5m2, s8, c64 or s32, found \"bf17\""},
      {"chunks: 0", ""},
      {"pass: 'sideways'", "expected forward, backward or both, found \"sideways\"", gemm_fields},
      {"dataflow: 'xs'", "expected os, ls or rs, found \"xs\"", gemm_fields},
      {"slice_count: 0", "", gemm_fields},
      {"block: 0", "", gemm_fields},
      {"prefetch: -1", "", gemm_fields},
      {"slice_copies: 'maybe'", "expected on or off, found \"maybe\"", gemm_fields},
      {"wang_operand: 'z'", "expected x or w, found \"z\"", gemm_fields},
      {"collectives: 'rong'", "", gemm_fields},
      {"given: 'X,Z'", "expected X, W or dY, found \"Z\"", gemm_fields},
      {"only: 'gem'", "expected gemm or other, found \"gem\"", block},
      {"heads: 0", "", block},
      {"dataflow: 'os,xs'", "expected os, ls or rs, found \"xs\"", block},
      {"algorithm: 'meshslice,canon'", "", block},
  };
  for (const WrongValue& entry : cases) {
    const std::size_t column = entry.field.find(':') + 3;
    const std::string at = "s:4:" + std::to_string(column) + ": ";
    const std::string said = wrong("sweep { machine: 'ideal' slice: '4'\n" + entry.problem + "\n" + entry.field + " }");
    EXPECT_THAT(said, ::testing::StartsWith(at + entry.message)) << entry.field;
    EXPECT_GT(said.size(), at.size() + 10) << entry.field;
  }
}

TEST(SweepCheck, TellsWrongTextsOfPrograms) {
  const std::string program = "program: 'v = solve(A, b)' shape: 'A=64x64; b=64' shard: 'A=row,-; b=row'";
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' " + program + " algorithm: ['solve=block', 'solve=naive', ''] block: [8, 16] look_ahead: [0, 1] }"), "");
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' case { " + program + " algorithm: 'fft=slab,solve=naive' } case { " + gather_fields + " algorithm: 'ring' } }"), "");
  const std::vector<WrongValue> cases{
      {"algorithm: 'solve=blok'", "there is no algorithm \"blok\" of solve, did you mean \"block\"?"},
      {"algorithm: 'ring'", "expected fft=, lu= or solve= and an algorithm"},
      {"algorithm: 'solve=block,solve=naive'", "\"solve\" is given twice"},
      {"order: 'reverse'", "expected transposed or natural, found \"reverse\""},
      {"overlap: 0", "expected a whole number from 1 to 65536, got \"0\""},
      {"look_ahead: 2", "expected a whole number from 0 to 1, got \"2\""},
      {"block: 0", "expected a whole number from 1 to 1048576, got \"0\""},
      {"slice_copies: 'maybe'", "expected on or off, found \"maybe\""},
      {"choose: 'luck'", "expected default, bytes or time, found \"luck\""},
      {"minimise: 'luck'", "expected bytes, collectives or time, found \"luck\""},
      {"collectives: 'rong'", "there is no collective algorithm \"rong\""},
  };
  for (const WrongValue& entry : cases)
    EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4'\n" + program + "\n" + entry.field + " }"),
                ::testing::StartsWith("s:4:" + std::to_string(entry.field.find(':') + 3) + ": " + entry.message));
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4'\ncase { " + program + "\nalgorithm: ['solve=block', 'solve=blok'] } }"), ::testing::StartsWith("s:4:28: there is no algorithm"));
}

TEST(SweepCheck, TellsWrongTextsOfTrainingSteps) {
  const std::string training = "training: ['gpt3-175b', 'llama3-8b'] mesh: ['stage=2,fsdp=2', 'fsdp=4']";
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' " + training + " remat: ['none', 'full', 'selected:ff1'] pipeline: ['1f1b', ''] batch: [4, 3] algorithm: 'meshslice' "
                  "slice_count: 2 seq: [1024, 4096] layers: 2 optimizer: 'sgd' scan: 'on' collectives: 'auto' microbatches: 2 }"),
            "");
  const std::vector<WrongValue> cases{
      {"remat: ['full', 'bogus']", "expected none, full, layer or selected:STAGE,..., found \"bogus\""},
      {"remat: ['full', 'selected:ff9']", "expected stages of a layer"},
      {"pipeline: ['1f1b', 'nonsense']", "no pipeline schedule \"nonsense\""},
      {"optimizer: ['sgd', 'adam']", "expected adamw or sgd, found \"adam\""},
      {"scan: ['on', 'yes']", "expected on or off, found \"yes\""},
      {"microbatches: [1, 0]", "expected a whole number"},
      {"batch_per_device: ['0.5', 'half']", ""},
      {"algorithm: ['wang', 'ring']", ""},
      {"collectives: ['auto', 'rong']", "there is no collective algorithm \"rong\""},
      {"steps: [1, 0]", "expected a whole number from 1 to 1000, got \"0\""},
      {"layers: [2, 0]", "expected"},
  };
  for (const WrongValue& entry : cases)
    EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4'\n" + training + "\n" + entry.field + " }"),
                ::testing::StartsWith("s:4:" + std::to_string(entry.field.find(", ") + 3) + ": " + entry.message));
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4'\ntraining: ['llama3-8b', 'llama3-8'] }"), ::testing::StartsWith("s:3:25: there is no model \"llama3-8\""));
}

TEST(SweepCheck, TellsWrongTextsOfModules) {
  for (const auto& [field, message] : std::vector<std::pair<std::string, std::string>>{{"hlo_cost: 'moddel'", "expected model or estimated-cycles"},
                                                                                       {"hlo_schedule: 'txt'", "expected text or overlap"},
                                                                                       {"rewrite: 'all-reduce'", "expected reduce-scatter"},
                                                                                       {"clock: '940'", "expected a clock"},
                                                                                       {"trip_count: 'while.1=2; while.2=x'", "expected a whole number"},
                                                                                       {"ragged: '/no/such.csv'", ""}})
    EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' hlo: 'm.hlo'\n" + field + " }"),
                ::testing::StartsWith("s:3:" + std::to_string(field.find(':') + 3) + ": " + message));
}

TEST(SweepCheck, TellsWrongTextsOfFieldsThatEveryoneNeeds) {
  EXPECT_EQ(wrong("sweep { machine: ['ideal', 'tpu_v44'] slice: '4' " + gather_fields + " }"),
            "s:2:28: unknown machine \"tpu_v44\", did you mean \"tpu_v4\", \"tpu_v3\" or \"tpu_v5e\"?");
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: ['4', '4y4'] " + gather_fields + " }"), ::testing::StartsWith("s:2:39: "));
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' gemm: ['m=1,n=1,k=1', 'm=1,n=1'] algorithm: 'cannon' }"),
              ::testing::StartsWith("s:2:59: k= is missing"));
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' gemm: 'm=1,n=1,k=1' algorithm: ['cannon', 'canon'] }"), ::testing::StartsWith("s:2:79: "));
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' collective: 'all-gathr' axis: 'row' bytes: '1' }"),
            "s:2:49: there is no collective \"all-gathr\", did you mean \"all-gather\"?");
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' collective: 'all-gather' axis: 'row' bytes: ['1', '1 MBB'] }"),
              ::testing::StartsWith("s:2:87: "));
  EXPECT_EQ(wrong("sweep { machine: 'ideal' slice: '4' collective: 'all-gather' axis: ['row', 'rwo'] bytes: '1' }"),
            "s:2:76: no mesh of this sweep has the axis \"rwo\", did you mean \"row\"?");
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' schedule: '/no/such' }"), ::testing::StartsWith("s:2:47: "));
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' plan: '/no/such' }"), ::testing::StartsWith("s:2:43: "));
  EXPECT_THAT(wrong("sweep { machine: 'ideal' slice: '4' workload: ['gpt3-block', 'gpt3-blok'] }"), ::testing::StartsWith("s:2:62: "));
}

TEST(SweepCheck, TellsSetsThatNoMachineTakes) {
  const auto with_set = [](const std::string& set) { return wrong("sweep { machine: ['ideal', 'tpu_v4'] slice: '4x4'\n set { " + set + " } " + gather_fields + " }"); };
  EXPECT_EQ(with_set("path: 'link.bandwidth' value: ['', '45 GB/s']"), "");
  EXPECT_THAT(with_set("path: 'link.bandwith' value: '45 GB/s'"), ::testing::HasSubstr("did you mean \"link.bandwidth\""));
  EXPECT_THAT(with_set("path: 'link.bandwith' value: '45 GB/s'"), ::testing::StartsWith("s:3:37: "));
  EXPECT_THAT(with_set("path: 'link.bandwidth' value: ['1 GB/s', '45']"), ::testing::StartsWith("s:3:49: "));
}

TEST(SweepCheck, TellsAValueAroundCasesOnceAndAllProblemsInOrder) {
  EXPECT_EQ(wrong("sweep {\n machine: 'idael'\n case { slice: '4' " + gather_fields + " }\n case { slice: '8' " + gather_fields + " algorithm: 'rign' }\n}"),
            "s:3:11: unknown machine \"idael\", did you mean \"ideal\"?\n"
            "s:5:80: there is no collective algorithm \"rign\", did you mean \"ring\"?");
}

TEST(SweepCheck, GivesTheStatusAndPlaceThroughTheCommandAndTouchesNoStore) {
  const test::Folder folder;
  const std::string file = folder.file("wrong.textproto", "format_version: 1\nsweep { machine: 'ideal' slice: '4' " + gather_fields + "\n  engine: 'dse' }\n");
  const test::Outcome outcome = test::podsim("sweep " + file);
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_THAT(outcome.err, ::testing::StartsWith(file + ":3:11: "));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder.file("wrong.sqlite")));
}

}  // namespace
}  // namespace podsim
