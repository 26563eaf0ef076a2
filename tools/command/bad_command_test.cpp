// What a wrong command line is told, word for word, and its exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>

#include "sim/base/invariant.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/schedule/testing.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;

struct Case {
  std::string line, message;  // without "podsim: error: "
};

void expect_each(const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    const Outcome outcome = podsim(entry.line);
    EXPECT_EQ(outcome.status, exit_bad_input) << entry.line;
    EXPECT_EQ(outcome.err, "podsim: error: " + entry.message + "\n") << entry.line;
    EXPECT_EQ(outcome.out, "") << entry.line;
  }
}

const std::string ring4 = " --machine ideal --slice 4 ";
const std::string gather = " --collective all-gather --axis row --bytes 16 ";
const std::string gemm = " --gemm m=16,n=16,k=16 ";

TEST(BadCommand, Devices) {
  const std::string run = "run --machine tpu_v4 --slice 2x4 --mesh x=2,y=2 --collective all-gather --bytes 1KiB --devices ";
  const auto told = [&](const std::string& devices) { return podsim(run + devices).err; };
  const std::string expected = ": expected devices from 0 to 7, separated by commas, found ";
  EXPECT_EQ(told("0,2,4,9"), "--devices:1:7" + expected + "\"9\"\n");
  EXPECT_EQ(told("0,2,-1,4"), "--devices:1:5" + expected + "\"-1\"\n");
  EXPECT_EQ(told("0,two"), "--devices:1:3" + expected + "\"two\"\n");
  EXPECT_EQ(told("0,,2"), "--devices:1:3" + expected + "\"\"\n");
  EXPECT_EQ(told("99999999999999999999"), "--devices:1:1" + expected + "\"99999999999999999999\"\n");
  EXPECT_EQ(told("0,2,4,2"), "--devices:1:7: expected every device once, found 2 again\n");
  EXPECT_EQ(podsim("run --machine tpu_v4 --slice 1x1 --collective all-gather --bytes 1KiB --devices 1").err,
            "--devices:1:1: expected 0, the only device, found \"1\"\n");
  const std::string fewer = "--devices: expected 4 devices, as many as the mesh x=2,y=2 has, found ";
  expect_each({{run + "0,2,4", fewer + "3"},
               {run + "0,2,4,6,7", fewer + "5"},
               {run + "0,1,2,3 --mesh-order snake", "--devices: says the order of devices itself; expected --mesh-order row-major beside it, found \"snake\""},
               {"run --machine tpu_v4 --mesh x=2 --collective all-gather --bytes 1KiB --devices 0,1", "--devices: numbers devices of the --slice, which is missing"},
               {"tune --machine tpu_v4 --slice 2x4 --gemm m=16,n=16,k=16 --devices 0", "unknown option \"--devices\", did you mean \"--slices\" or \"--slice\"?; --help lists the options"}});
}

TEST(BadCommand, Verbs) {
  expect_each({
      {"nosuchfile.log", "nosuchfile.log: cannot read the file: No such file or directory"},
      {PODSIM_SOURCE_DIR "/README.md --devices 16", "`podsim " PODSIM_SOURCE_DIR "/README.md` takes nothing behind the file, found \"--devices\": it says what the file is, and the commands that take it"},
      {"rnu", "unknown verb \"rnu\", did you mean \"run\"?; `podsim help` lists the verbs"},
      {"ru", "unknown verb \"ru\", did you mean \"run\"?; `podsim help` lists the verbs"},
      {"Compare", "unknown verb \"Compare\", did you mean \"compare\"?; `podsim help` lists the verbs"},
      {"machines", "unknown verb \"machines\", did you mean `podsim show machine`?; `podsim help` lists the verbs"},
      {"list meshes", "unknown verb \"list\"; `podsim help` lists the verbs"},
      {"list topology", "unknown verb \"list\", did you mean `podsim show topology`?; `podsim help` lists the verbs"},
      {"help nope", "unknown verb \"nope\"; `podsim help` lists the verbs"},
      {"--machine ideal", "unknown verb \"--machine\"; `podsim help` lists the verbs"},
      {"show", "show what? machine, topology, mesh, sharding, schedule, pipeline, plan, program, training, hlo or timeline"},
      {"show machin", "cannot show \"machin\", did you mean \"machine\"?; expected machine, topology, mesh, sharding, schedule, pipeline, plan, program, training, hlo or timeline"},
      {"show --machine ideal", "cannot show \"--machine\", did you mean \"machine\"?; expected machine, topology, mesh, sharding, schedule, pipeline, plan, program, training, hlo or timeline"},
  });
  const Outcome nothing = test::run_words({});
  EXPECT_EQ(nothing.status, exit_bad_input);
  EXPECT_THAT(nothing.err, HasSubstr("usage: podsim VERB"));
}

TEST(BadCommand, Options) {
  expect_each({
      {"run --colective all-gather",
       "unknown option \"--colective\", did you mean \"--collective\", \"--collectives\" or \"--chakra-collectives\"?; --help lists the options"},
      {"run --zzz", "unknown option \"--zzz\"; --help lists the options"},
      {"run all-reduce -b 8 -e 1M --machine h100:1x8", "unknown option \"-b\"; sizes as nccl-tests has them, `-b 8 -e 128M -f 2`, are of `podsim compare`, which takes `--bytes 8..128M`, too"},
      {"run -x", "unknown option \"-x\"; --help lists the options"},
      {"run --machine", "the required argument for option '--machine' is missing"},
      {"run --machine ideal --machine ideal", "option '--machine' cannot be specified more than once"},
      {"run --quiet=yes", "option '--quiet' does not take any arguments"},
      {"run" + ring4 + "gather" + gather, "expected options only, found \"gather\"; --help lists the options"},
      {"run --quiet stray --slice 4", "expected options only, found \"stray\"; --help lists the options"},
      {"show schedule tpu_v4", "expected options only, found \"tpu_v4\", did you mean `--machine tpu_v4`?; --help lists the options"},
      {"show schedule 4x4x4", "expected options only, found \"4x4x4\", did you mean `--slice 4x4x4`?; --help lists the options"},
      {"show pipeline tpu_v4", "expected options only, found \"tpu_v4\"; --help lists the options"},
      {"show tpu_v4",
       "cannot show \"tpu_v4\", did you mean `show machine tpu_v4`?; expected machine, topology, mesh, sharding, schedule, pipeline, plan, "
       "program, training, hlo or timeline"},
      {"run --quiet --machine=ideal -o x stray", "expected options only, found \"stray\"; --help lists the options"},
      {"run" + ring4 + gather + "--format yaml", "--format: expected table, json or csv, found \"yaml\""},
      {"check --slice 4" + gather + "--format csv", "--format: expected table or json, found \"csv\""},
      {"show schedule --slice 4" + gather + "--format json", "--format: expected table, found \"json\""},
      {"show topology --slice 4 --format csv", "--format: expected table or json, found \"csv\""},
      {"run" + ring4 + gather + "--engine simgird", "--engine: there is no engine \"simgird\", did you mean \"simgrid\"?"},
      {"check --slice 4" + gather + "--orders many", "--orders: expected a whole number from 0 to 1000, got \"many\""},
      {"check --slice 4" + gather + "--orders 1001", "--orders: expected a whole number from 0 to 1000, got \"1001\""},
      {"run" + ring4 + gather + "-o /nonexistent/result.json", "/nonexistent/result.json: cannot write the file: No such file or directory"},
  });
}

TEST(BadCommand, WordsBehindTwoDashesAreNoOptions) {
  expect_each({{"run -- word", "expected options only, found \"word\"; --help lists the options"},
               {"run --quiet -- --quiet", "expected options only, found \"--quiet\"; --help lists the options"}});
}

TEST(BadCommand, FilesWhoseNamesAreTooLong) {
  const Folder folder;
  const std::string name(300, 'x'), store = folder.file("store");
  for (const std::string& line : {"sweep --merge " + name + " --store " + store, "sweep --merge " + name + " other --store " + store, "report " + name + " -o " + store, "calibrate " + name}) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(name)) << line;
  }
}

/// A stream that a fault of podsim's own meets.
struct BrokenBuffer : std::streambuf {
  int_type overflow(int_type) override { throw InternalError{"a.cpp:7: expected b, in c()"}; }
  std::streamsize xsputn(const char*, std::streamsize) override { throw InternalError{"a.cpp:7: expected b, in c()"}; }
};

TEST(BadCommand, AnInternalErrorIsToldWithTheCommandLine) {
  BrokenBuffer broken;
  std::ostream out{&broken};
  out.exceptions(std::ios::badbit);
  std::ostringstream err;
  Console console{out, err, false};
  EXPECT_EQ(run_command({"show", "machine", "--machine", "ideal", "--set", "chip.peak=1 TFLOP/s"}, console), exit_internal);
  EXPECT_EQ(err.str(),
            "podsim: internal error: a.cpp:7: expected b, in c()\nThis is a fault of podsim, not of its input. Please report it with the files that this command line names:\n"
            "  podsim show machine --machine ideal --set 'chip.peak=1 TFLOP/s'\n");
}

TEST(BadCommand, AbbreviationsAreNotGuessed) {
  for (const std::string option : {"--mach", "--machin", "--sli", "--coll"}) {
    const Outcome outcome = podsim("run " + option + " ideal");
    EXPECT_EQ(outcome.status, exit_bad_input);
    EXPECT_THAT(outcome.err, ::testing::StartsWith("podsim: error: unknown option \"" + option + "\", did you mean "));
  }
  EXPECT_THAT(podsim("run --mach ideal").err, HasSubstr("\"--machine\""));
}

TEST(BadCommand, Machines) {
  expect_each({
      {"run --slice 4" + gather,
       "--machine is missing; shipped are dgx_a100, dgx_b200, dgx_h100, dgx_h200, gb200_nvl72, ideal, tpu7x, tpu_v3, tpu_v4, tpu_v5e, "
       "tpu_v5p, tpu_v6e (or give a textproto file)"},
      {"run --machine tpu_v44 --slice 4" + gather, "unknown machine \"tpu_v44\", did you mean \"tpu_v4\", \"tpu_v3\" or \"tpu_v5e\"?"},
      {"run --machine ./nothing.textproto --slice 4" + gather, "./nothing.textproto: cannot read the file: No such file or directory"},
      {"run" + ring4 + gather + "--set link.bandwidth", "--set: expected PATH=VALUE, found \"link.bandwidth\""},
      {"run" + ring4 + gather + "--set link.bandwidth=45",
       "--set: link.bandwidth: a bandwidth needs a unit (B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s, PiB/s), got \"45\""},
      {"run" + ring4 + gather + "--set link.latency=1", "--set: link.latency: a time needs a unit (ps, ns, us, ms, s), got \"1\""},
      {"run" + ring4 + gather + "--set link.bandwith=45GB/s",
       "--set: unknown machine field \"link.bandwith\", did you mean \"link.bandwidth\", \"dcn.nic_bandwidth\" or \"chip.hbm_bandwidth\"?"},
      {"run --machine tpu_v4 --slice 32x8 --strict-slice --gemm m=16,n=16,k=16 --algorithm collective",
       "--strict-slice: tpu_v4 is not offered with a slice 32x8 (256 chips), expected one such as 4x8x8 (256 chips), 4x4x16 (256 chips) or 4x4x12 "
       "(192 chips)"},
      {"show topology --machine tpu_v4 --slice v5p-8", "--slice: slices of tpu_v4 are called v4-N, where N counts cores, 2 per chip, got \"v5p-8\""},
      {"run" + ring4 + gather + "--set link.bandwidth=0GB/s", "--set: link.bandwidth: a bandwidth must be positive, got \"0GB/s\""},
      {"run" + ring4 + gather + "--set link.latency=2h", "--set: link.latency: a time needs a known unit (ps, ns, us, ms, s), got \"2h\""},
  });
}

TEST(BadCommand, SlicesAndMeshes) {
  expect_each({
      {"run --machine ideal" + gather, "--slice is missing: the chips per physical dimension, as 16x16 or 4x8x8"},
      {"run --machine v5p" + gather, "--slice is missing: the chips per physical dimension, as 4x4x4 or 4x8x8, or the name of a slice, as v5p-128"},
      {"run --machine v5e" + gather, "--slice is missing: the chips per physical dimension, as 4x4 or 16x16, or the name of a slice, as v5e-16"},
      {"run --machine h100" + gather, "--slice is missing: the nodes and the GPUs of a node, as 1x8 or 4x8"},
      {"run --machine ideal --slice 4x" + gather, "--slice: a slice is written as chips per dimension, such as 16x16 or 4x4x8, got \"4x\""},
      {"run --machine ideal --slice 0x4" + gather, "--slice: every extent of a slice must be at least 1, got 0 in \"0x4\""},
      {"run --machine ideal --slice 2x2x2x2x2" + gather, "--slice: a slice has at most 4 dimensions, got 5 in \"2x2x2x2x2\""},
      {"run --machine ideal --slice 4x4 --mesh row=3,col=5" + gather,
       "--mesh: the mesh row=3,col=5 has 15 devices, but the slice 4x4 has 16 chips; row=4,col=4 fits"},
      {"run --machine ideal --slice 4x4 --mesh row" + gather, "--mesh: expected NAME=SIZE separated by commas, as row=32,col=8, found \"row\""},
      {"run --machine ideal --slice 4x4 --mesh row=four,col=4" + gather, "--mesh: expected a whole number from 1 to 16777216, got \"four\""},
      {"run --machine ideal --slice 4x4 --mesh row=4,row=4" + gather, "--mesh: mesh axis \"row\" is named twice"},
      {"run --machine ideal --slice 4 --mesh row=4 --mesh col=4" + gather, "--mesh: expected one mesh; compare takes several"},
      {"run" + ring4 + gather + "--wrap round", "--wrap: expected auto, all, none, or dimensions such as x,y (of x, y, z, w), got \"round\""},
      {"run" + ring4 + gather + "--wrap y", "dimension y cannot wrap: the slice 4 has 1 dimension (x)"},
  });
}

TEST(BadCommand, Problems) {
  expect_each({
      {"run" + ring4, "expected one of --gemm, --collective, --workload, --training, --hlo, --program, --plan, --schedule, --msccl and --chakra, found none"},
      {"run" + ring4 + gather + gemm, "expected one of --gemm, --collective, --workload, --training, --hlo, --program, --plan, --schedule, --msccl and --chakra, found several"},
      {"run" + ring4 + gather + "--pad", "--pad: belongs to --gemm, --program and --training, not to --collective"},
      {"run" + ring4 + gather + "--slice-count 2", "--slice-count: belongs to --gemm, --workload, --program and --training, not to --collective"},
      {"run" + ring4 + gemm + "--axis row", "--axis: belongs to --collective, not to --gemm"},
      {"run" + ring4 + "--mesh row=4 --schedule f --bytes 16", "--bytes: belongs to --collective and --msccl, not to --schedule"},
      {"run" + ring4 + "--schedule f", "f: cannot read the file: No such file or directory"},
  });
}

TEST(BadCommand, Collectives) {
  const std::string all_gather = "run" + ring4 + "--collective all-gather ";
  expect_each({
      {"run" + ring4 + "--collective all-gater --axis row --bytes 16",
       "--collective: there is no collective \"all-gater\", did you mean \"all-gather\"?"},
      {all_gather + "--axis row", "--bytes is missing: the input of the collective on each device"},
      {all_gather + "--axis rwo --bytes 16", "--axis: no mesh axis \"rwo\" in row=4, did you mean \"row\"?"},
      {all_gather + "--axis row,row --bytes 16", "--axis: mesh axis \"row\" is named twice"},
      {all_gather + "--axis row --bytes 0", "--collective: the bytes on each device must be a positive multiple of 2 (bf16 elements), found 0"},
      {all_gather + "--axis row --bytes 15", "--collective: the bytes on each device must be a positive multiple of 2 (bf16 elements), found 15"},
      {all_gather + "--axis row --bytes 16 --dtype fp8", "--dtype: expected the dtype f32, bf16, f8e4m3fn, f8e5m2, s8, c64 or s32, found \"fp8\""},
      {all_gather + "--axis row --bytes 12 --dtype c64", "--collective: the bytes on each device must be a positive multiple of 8 (c64 elements), found 12"},
      {"run" + ring4 + "--collective reduce-scatter --axis row --bytes 20 --dtype f32",
       "--collective: the bytes on each device must be a positive multiple of 16 (f32 elements for each of 4 devices), found 20"},
      {all_gather + "--axis row --bytes 16 --algorithm rng", "--algorithm: there is no collective algorithm \"rng\", did you mean \"ring\"?"},
      {all_gather + "--axis row --bytes 16 --wrap none --algorithm ring",
       "task 0 \"all-gather\": a ring needs an axis that wraps, row is open; `line` is the algorithm for open axes"},
  });
}

TEST(BadCommand, Gemms) {
  const std::string system = "run --machine ideal --slice 4x2 --algorithm meshslice --slice-count 8 --gemm ";
  expect_each({
      {system + "m=16,n=16", "--gemm: k= is missing in \"m=16,n=16\""},
      {system + "m=16,n=16,k=16,m=8", "--gemm: m is given twice"},
      {system + "m=16,n=16,q=16", "--gemm: expected m=,n=,k= and perhaps dtype=, separated by commas, found \"q=16\""},
      {system + "16x16", "--gemm: expected m=,n=,k= and perhaps dtype=, separated by commas, found \"16\""},
      {system + "16x16y16", "--gemm: expected m=,n=,k= and perhaps dtype=, separated by commas, found \"16x16y16\""},
      {system + "m=16,n=16,k=1e3", "--gemm: expected a whole number from 1 to 1099511627776, got \"1e3\""},
      {system + "m=16,n=16,k=-4", "--gemm: expected a whole number from 1 to 1099511627776, got \"-4\""},
      {system + "m=16,n=16,k=16,dtype=c64", "--gemm: expected the dtype f32, bf16, f8e4m3fn, f8e5m2 or s8, found \"c64\""},
      {system + "m=16,n=16,k=16,dtype=s32", "--gemm: expected the dtype f32, bf16, f8e4m3fn, f8e5m2 or s8, found \"s32\""},
      {system + "m=16,n=16,k=16,dtype=int8", "--gemm: expected the dtype f32, bf16, f8e4m3fn, f8e5m2 or s8, found \"int8\""},
      {system + "m=512,n=1024,k=250", "k must be a positive multiple of 256 (meshslice os on row=4,col=2, S=8, B=8), found 250; --pad rounds it up"},
      {system + "m=510,n=1024,k=256", "m must be a positive multiple of 4 (meshslice os on row=4,col=2, S=8, B=8), found 510; --pad rounds it up"},
      {system + "m=16,n=16,k=256 --dataflow is", "--dataflow: expected os, ls or rs, found \"is\""},
      {system + "m=16,n=16,k=256 --slice-copies maybe", "--slice-copies: expected on or off, found \"maybe\""},
      {"run --machine ideal --slice 4x2 --gemm m=16,n=16,k=16 --algorithm meshslice", "--algorithm meshslice needs --slice-count"},
      {"run --machine ideal --slice 4x2 --gemm m=16,n=16,k=16 --algorithm collective --slice-count 2",
       "--algorithm collective takes no --slice-count"},
      {"compare --machine ideal --slice 4x2 --slice-count 2", "expected one of --gemm, --collective, --workload, --training, --program and --msccl, found none"},
      {"compare --machine ideal --slice 4x2 --gemm m=16,n=16,k=16 --slice-count 2,",
       "--slice-count: expected values between commas, found an empty one"},
  });
  const Outcome cube = podsim("run --machine ideal --slice 2x2x2 --gemm m=16,n=16,k=16 --algorithm collective");
  EXPECT_EQ(cube.status, exit_bad_input);
  EXPECT_THAT(cube.err, HasSubstr("row=2,col=2,depth=2"));
}

TEST(BadCommand, WhereNothingAppliesCompareSaysWhyOfEach) {
  const Outcome outcome = podsim("compare --machine ideal --slice 4x2 --gemm m=16,n=16,k=17 --slice-count 2");
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_EQ(outcome.err,
            "podsim: error: ideal 4x2 row=4,col=2, collective os: k must be a positive multiple of 4 (collective os on row=4,col=2), found 17; --pad "
            "rounds it up\n"
            "podsim: error: ideal 4x2 row=4,col=2, meshslice os S=2: k must be a positive multiple of 64 (meshslice os on row=4,col=2, S=2, B=8), "
            "found 17; "
            "--pad rounds it up\n");
}

TEST(BadCommand, FilesAreToldLineAndColumn) {
  const Folder folder;
  const auto error_of = [](const std::string& line) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  const std::string machine = folder.file("m.textproto", "format_version: 1\nname: \"m\"\nchip {\n  pek { value: \"1 TFLOP/s\" }\n}\n");
  EXPECT_THAT(error_of("show machine --machine " + machine), ::testing::StartsWith(machine + ":4:3: unknown field \"pek\""));
  const std::string schedule = folder.file("s.textproto", "format_version: 1\nmesh { name: \"x\" size: 0 }\n");
  EXPECT_EQ(error_of("run --machine ideal --slice 4 --schedule " + schedule),
            schedule + ":2:18: the size of a mesh axis must be at least 1, got 0\n");
  const std::string newer = folder.file("n.textproto", "format_version: 99\n");
  EXPECT_THAT(error_of("check --slice 4 --schedule " + newer), HasSubstr("99"));
  const std::string nothing = folder.file("empty.textproto", "");
  EXPECT_THAT(error_of("check --slice 4 --schedule " + nothing), HasSubstr(nothing));
}

TEST(BadCommand, AScheduleOfAnotherSizeIsNamedWithBoth) {
  const Folder folder;
  testing::Writer w{std::vector<MeshAxis>{{"x", 6, true}}};
  const std::string path = folder.file("six.textproto", write_schedule(w.schedule, Encoding::text));
  const Outcome outcome = podsim("run --machine ideal --slice 4 --mesh row=4 --schedule " + path);
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_EQ(outcome.err, "podsim: error: " + path + ": the schedule's mesh is x=6, the system's is row=4: they must have as many devices\n");
}

TEST(BadCommand, RunsBeyondTheClockAreErrors) {
  const std::string slow =
      "run --machine ideal --slice 16 --set link.bandwidth=10MB/s --collective all-gather --axis row --algorithm ring-one-way --bytes ";
  for (const std::string engine : {" --engine analytic", " --engine simgrid"}) {
    EXPECT_EQ(podsim(slow + "5TB" + engine).status, exit_done);
    EXPECT_EQ(podsim(slow + "7TB" + engine).err, "podsim: error: the run takes more than 106 days, which is as far as the clock goes\n");
    EXPECT_EQ(
        podsim(slow + "30TB" + engine).err,
        "podsim: error: task 2 \"all-gather +0\" on device 0 (row=0) takes 3000000 s; expected less than 2000000 s, as the clock goes to 106 days\n");
  }
}

/// What would take minutes or gigabytes is refused with the limit, before it is begun.
TEST(HostileSizes, OfTrainingStepsAreRefusedWithTheirLimit) {
  const std::string step = "run --machine tpu_v5p --slice 2x2x1 --training llama3-8b --force ";
  for (const auto& [sizes, error] : std::vector<std::pair<std::string, std::string>>{
           {"--layers 1000000", "podsim: error: --layers: expected at most 65536 passes of layers in all, found 1000000 layers for 1 microbatch\n"},
           {"--batch 40000 --microbatches 10000", "podsim: error: --microbatches: expected at most 65536 passes of layers in all, found 32 layers for 10000 microbatches\n"},
           {"--mesh stage=4 --batch 65536 --microbatches 65536", "podsim: error: --microbatches: expected at most 65536 passes of layers in all, found 32 layers for 65536 microbatches\n"},
           {"--batch 4294967300 --microbatches 4294967297 --seq 1 --pad",
            "podsim: error: --microbatches: expected at most 65536 passes of layers in all, found 32 layers for 4294967297 microbatches\n"},
           {"--mesh stage=4 --layers 65536 --virtual-stages 16384 --batch 64 --microbatches 4",
            "podsim: error: --microbatches: expected at most 65536 passes of layers in all, found 65536 layers for 4 microbatches\n"}}) {
    const Outcome outcome = podsim(step + sizes);
    EXPECT_EQ(outcome.status, exit_bad_input) << sizes;
    EXPECT_EQ(outcome.err, error) << sizes;
  }
}

}  // namespace
}  // namespace podsim
