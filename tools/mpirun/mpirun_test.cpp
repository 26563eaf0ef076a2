// The program itself, started by mpirun on 2 to 4 ranks: what it computes, and how it ends. How long it takes is nobody's claim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/fft/fft.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "algorithms/lu/lu.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/base/test_files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/lower.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/validate.hpp"
#include "tools/command/test_command.hpp"
#include "tools/mpirun/test_mpirun.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {
namespace {

using test::Ended, test::expect_refused, test::file_of_test, test::mpirun, test::saved;

void expect_right(const Schedule& schedule) {
  const Ended ended = mpirun(schedule.mesh.devices(), "--check --repeat 2 --schedule " + saved(schedule));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("ok: bit-equal to the numeric engine"), std::string::npos) << ended.text;
}

// ---- Results ----------------------------------------------------------------------------------------------------------------------------

Schedule collective(CollectiveKind kind, const std::string& algorithm, std::vector<MeshAxis> axes, DType dtype = DType::f32,
                    const CollectiveDetails& details = {}) {
  const auto mesh = Mesh::make(std::move(axes));
  std::vector<AxisView> along;
  for (int a = 0; a < static_cast<int>(mesh->axes().size()); ++a) along.push_back(mesh->whole(a));
  const auto schedule = collective_schedule(*mesh, kind, along, Bytes{4800}, dtype, details);
  const auto lowered = lower(*schedule, *always(algorithm));
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return *lowered;
}

Schedule gemm(const std::string& algorithm, Dataflow dataflow, int R, int C, const GemmOptions& options = {}, DType dtype = DType::f32,
              Pass pass = Pass::forward) {
  const auto mesh = C == 0 ? Mesh::make({{"ring", R, true}}) : Mesh::make({{"row", R, true}, {"col", C, true}});
  const auto schedule = make_layer(**gemm_algorithm(algorithm), *mesh, {64, 96, 128, dtype, dataflow}, pass, options);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto lowered = lower(*schedule, ring_or_line());
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return *lowered;
}

Schedule lowered_by_rings(const Expected<Schedule>& schedule) {
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto lowered = lower(*schedule, ring_or_line());
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return *lowered;
}

Schedule transform(bool inverse, FftOrder order, int chunks) {
  const auto mesh = Mesh::make({{"row", 2, true}, {"col", 2, true}});
  return lowered_by_rings(make_fft(FftMethod::pencil, *mesh, {{32, 32, 32}, {{mesh->whole(0)}, {mesh->whole(1)}}, DType::c64, inverse, order, chunks, true}));
}

Schedule factorisation(std::int64_t n, Extents right, int look_ahead) {
  const auto mesh = Mesh::make({{"row", 2, true}, {"col", 2, true}});
  const LuProblem problem{{n, n}, right, 16, {mesh->whole(0)}, {mesh->whole(1)}, look_ahead};
  return lowered_by_rings(right.empty() ? make_lu(LuMethod::block, *mesh, problem) : make_solve(SolveMethod::block, *mesh, problem));
}

struct Case {
  std::string name;
  std::function<Schedule()> make;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

using enum CollectiveKind;
const std::vector<MeshAxis> ring_of_4{{"x", 4, true}}, line_of_4{{"x", 4, false}}, ring_of_3{{"x", 3, true}}, pair{{"x", 2, true}},
    square{{"row", 2, true}, {"col", 2, true}};
GemmOptions slices(std::int64_t count, std::int64_t block = 8) {
  GemmOptions options;
  options.slice_count = count;
  options.block = block;
  return options;
}

/// Of 32x32x32 numbers over 2x2 devices.
Schedule transform(FftMethod method, DType input, bool inverse, int chunks) {
  const Mesh mesh = *Mesh::make(square);
  FftProblem problem;
  problem.extents = {32, 32, 32};
  problem.sharding = {{mesh.whole(0)}, {mesh.whole(1)}, {}};
  problem.input = input, problem.inverse = inverse, problem.chunks = chunks, problem.slice_copies = chunks > 1;
  return *lower(*make_fft(method, mesh, problem), ring_or_line());
}

/// Of 128x128 over 2x2 devices.
LuProblem matrix_of_128(const Mesh& mesh) {
  LuProblem problem;
  problem.matrix = {128, 128};
  problem.block = 16;
  problem.rows = {mesh.whole(0)}, problem.columns = {mesh.whole(1)};
  problem.look_ahead = 1;
  return problem;
}
Schedule factors() {
  const Mesh mesh = *Mesh::make(square);
  return *lower(*make_lu(LuMethod::block, mesh, matrix_of_128(mesh)), ring_or_line());
}
Schedule solution() {
  const Mesh mesh = *Mesh::make(square);
  LuProblem problem = matrix_of_128(mesh);
  problem.right = {128, 4};
  return *lower(*make_solve(SolveMethod::block, mesh, problem), ring_or_line());
}

const std::vector<Case> cases{
    {"all_gather_ring_2", [] { return collective(all_gather, "ring", pair); }},
    {"all_gather_ring_4", [] { return collective(all_gather, "ring", ring_of_4); }},
    {"all_gather_line_4", [] { return collective(all_gather, "line", line_of_4); }},
    {"all_gather_direct_3", [] { return collective(all_gather, "direct", ring_of_3); }},
    {"all_gather_pallas_bidirectional_4", [] { return collective(all_gather, "pallas-bidirectional", ring_of_4); }},
    {"reduce_scatter_ring_shortest_4", [] { return collective(reduce_scatter, "ring-shortest", ring_of_4); }},
    {"reduce_scatter_line_4", [] { return collective(reduce_scatter, "line", line_of_4); }},
    {"reduce_scatter_pallas_alternating_4", [] { return collective(reduce_scatter, "pallas-alternating", ring_of_4); }},
    {"all_reduce_halving_doubling_4", [] { return collective(all_reduce, "halving-doubling", ring_of_4); }},
    {"all_reduce_halves_2x2", [] { return collective(all_reduce, "halves", square); }},
    {"all_reduce_ring_bf16_3", [] { return collective(all_reduce, "ring", ring_of_3, DType::bf16); }},
    {"all_to_all_ring_4", [] { return collective(all_to_all, "ring", ring_of_4); }},
    {"all_to_all_pairwise_3", [] { return collective(all_to_all, "pairwise", ring_of_3); }},
    {"all_reduce_c64_4", [] { return collective(all_reduce, "ring", ring_of_4, DType::c64); }},
    {"all_reduce_s32_2x2", [] { return collective(all_reduce, "halves", square, DType::s32); }},
    {"reduce_scatter_c64_3", [] { return collective(reduce_scatter, "direct", ring_of_3, DType::c64); }},
    {"all_to_all_c64_4", [] { return collective(all_to_all, "pairwise", ring_of_4, DType::c64); }},
    {"all_gather_s32_4", [] { return collective(all_gather, "ring", ring_of_4, DType::s32); }},
    {"fft_32x32x32_2x2", [] { return transform(false, FftOrder::transposed, 1); }},
    {"ifft_32x32x32_natural_2x2", [] { return transform(true, FftOrder::natural, 2); }},
    {"lu_128_2x2", [] { return factorisation(128, {}, 0); }},
    {"lu_128_look_ahead_2x2", [] { return factorisation(128, {}, 1); }},
    {"solve_112_2x2", [] { return factorisation(112, {112, 3}, 0); }},
    {"broadcast_ring_4", [] { return collective(broadcast, "ring", ring_of_4, DType::f32, {.root = 2}); }},
    {"reduce_line_4", [] { return collective(reduce, "line", line_of_4, DType::f32, {.root = 1}); }},
    {"permute_by_pairs_4",
     [] {
       return collective(permute, "direct", ring_of_4, DType::f32, {.pairs = {{0, 1}, {1, 0}, {3, 2}}});
     }},
    {"collective_os_2x2", [] { return gemm("collective", Dataflow::os, 2, 2); }},
    {"meshslice_os_2x2", [] { return gemm("meshslice", Dataflow::os, 2, 2, slices(2)); }},
    {"meshslice_ls_2x2", [] { return gemm("meshslice", Dataflow::ls, 2, 2, slices(2)); }},
    {"meshslice_rs_1x2", [] { return gemm("meshslice", Dataflow::rs, 1, 2, slices(2)); }},
    {"meshslice_bf16_layer_2x2", [] { return gemm("meshslice", Dataflow::os, 2, 2, slices(2), DType::bf16, Pass::both); }},
    {"wang_os_2x2", [] { return gemm("wang", Dataflow::os, 2, 2); }},
    {"wang_ls_1x4", [] { return gemm("wang", Dataflow::ls, 1, 4); }},
    {"cannon_2x2", [] { return gemm("cannon", Dataflow::os, 2, 2); }},
    {"summa_2x2", [] { return gemm("summa", Dataflow::os, 2, 2); }},
    {"jax_ag_overlapped_4", [] { return gemm("jax-ag-overlapped", Dataflow::os, 4, 0); }},
    {"jax_rs_bidirectional_4", [] { return gemm("jax-rs-bidirectional", Dataflow::rs, 4, 0); }},
    {"fft_pencil_32_2x2", [] { return transform(FftMethod::pencil, DType::c64, false, 1); }},
    {"ifft_pencil_in_chunks_32_2x2", [] { return transform(FftMethod::pencil, DType::f32, true, 2); }},
    {"fft_naive_32_2x2", [] { return transform(FftMethod::naive, DType::f32, false, 1); }},
    {"lu_block_128_2x2", factors},
    {"solve_block_128_2x2", solution},
    {"megatron_layer_2", [] { return gemm("1d-megatron", Dataflow::os, 2, 0, {}, DType::f32, Pass::both); }},
};

class Mpirun : public ::testing::TestWithParam<Case> {};
TEST_P(Mpirun, HasTheBitsOfTheNumericEngine) { expect_right(GetParam().make()); }
INSTANTIATE_TEST_SUITE_P(Schedules, Mpirun, ::testing::ValuesIn(cases), [](const auto& tested) { return tested.param.name; });

/// No matrix happens to be singular.
bool runs_on_its_data(const Schedule& schedule) {
  for (const Filling filling : {Filling::uniform, Filling::integers}) {
    NumericOptions options;
    options.filling = filling;
    if (!make_numeric_engine(options)->run(schedule)) return false;
  }
  return true;
}

/// Of the random schedules those that are right, move something, and are for 2 to 4 ranks. Their buffers are inputs, so that all are filled and
/// compared.
std::vector<Schedule> random_schedules(std::size_t count, std::uint64_t first_seed, bool every_kind = false) {
  std::vector<Schedule> found;
  for (std::uint64_t seed = first_seed; found.size() < count; ++seed) {
    testing::RandomScheduleOptions options;
    options.edge_chance = 0.9;
    options.careless = false;
    options.every_kind = every_kind;
    Schedule schedule = testing::RandomScheduleWriter{seed, options}.write();
    const int devices = schedule.mesh.devices();
    if (devices < 2 || devices > 4 || !validate(schedule).ok()) continue;
    const Unrolled unrolled = unroll(schedule);
    const auto moves = [](const Activity& activity) { return activity.kind == Activity::Kind::transfer; };
    if (std::count_if(unrolled.graph.activities.begin(), unrolled.graph.activities.end(), moves) < 4) continue;
    schedule.name = "random " + std::to_string(seed);
    for (Program& program : schedule.programs)
      for (Buffer& buffer : program.buffers) {
        buffer.role = Role::input;
        buffer.tensor = buffer.name;
        buffer.sharding.assign(buffer.extents.size(), {});
        buffer.sharding[0] = {schedule.mesh.whole(0)};
      }
    if (every_kind && !runs_on_its_data(schedule)) continue;
    found.push_back(std::move(schedule));
  }
  return found;
}

TEST(MpirunRandom, SchedulesHaveTheBitsOfTheNumericEngine) {
  for (const Schedule& schedule : random_schedules(test::cases(6, 2), 1)) {
    SCOPED_TRACE(schedule.name);
    expect_right(schedule);
  }
}

TEST(MpirunRandom, SchedulesOfEveryKindOfWorkHaveTheBitsOfTheNumericEngine) {
  for (const Schedule& schedule : random_schedules(test::cases(8, 3), 1, true)) {
    SCOPED_TRACE(schedule.name);
    expect_right(schedule);
  }
}

/// Every kind of work that one device does, on both ranks; the rows that are picked are those that a factorisation chose.
Schedule every_kind_of_work() {
  testing::Writer w{pair};
  const std::int64_t n = 12;
  const auto whole = [&](BufferId buffer) {
    Region region{buffer, {}};
    for (const std::int64_t extent : w.now().buffers[buffer.index()].extents) region.dims.push_back(all(extent));
    return region;
  };
  const auto row_of = [&](BufferId buffer, std::int64_t row) {
    Region region = whole(buffer);
    region.dims[0] = span(row, 1);
    return region;
  };
  const AxisView x = w.axis(0);
  w.now().buffers = {{"A", {n, n}, DType::f32, Role::input, "A", {{x}, {}}}, {"Z", {n, n}, DType::c64, Role::input, "Z", {{}, {x}}}};
  const auto out = [&](const std::string& name, std::vector<std::int64_t> extents, DType dtype = DType::f32) {
    w.now().buffers.push_back({name, extents, dtype, Role::output, name, std::vector<std::vector<AxisView>>(extents.size())});
    w.now().buffers.back().sharding[0] = {x};
    return BufferId{w.now().buffers.size() - 1};
  };
  const BufferId a{0}, z{1};
  const BufferId factors = out("LU", {n, n}), index = out("P", {3, n}, DType::s32), picked = out("picked", {n, n}), placed = out("placed", {n, n}),
                 swapped = out("swapped", {n, n}, DType::c64), lower = out("L", {n, n}), upper = out("U", {n, n}), solved = out("X", {n, n}),
                 system = out("S", {n, n}), numbers = out("N", {n}, DType::s32), there = out("F", {n, n}, DType::c64), back = out("B", {n, n}, DType::c64),
                 turned = out("T", {n, n}, DType::c64), moved = out("M", {n, n}, DType::c64), sum = out("I", {n}, DType::s32);
  const BufferId narrow = out("narrow", {n, n}, DType::bf16), loss = out("loss", {1}), distance = out("distance", {1}), difference = out("difference", {n, n}),
                 statistics = out("statistics", {n, 2}), slopes = out("slopes", {n, n}), table = out("table", {n, n}), squares = out("squares", {n, n}),
                 descended = out("descended", {n, n}), stepped = out("stepped", {n, n}), mean = out("mean", {n, n}), spread = out("spread", {n, n});
  std::vector<Edge> last;
  const auto add = [&](const Local& local) { last = {testing::after(w.add(std::string{traits_of(local.kind).name}, local, last))}; };
  const auto numbered = [](Local local, std::vector<Numbering> numbering, double factor = 1) {
    local.numbering = std::move(numbering);
    local.factor = factor;
    return local;
  };
  add({LocalKind::getrf_panel, {whole(a)}, {whole(factors), whole(index)}});
  add(numbered({LocalKind::gather_rows, {whole(a), row_of(index, 1)}, {whole(picked)}}, {}, n));
  add(numbered({LocalKind::scatter_rows, {whole(a), whole(picked), row_of(index, 2)}, {whole(placed)}}, {}, n));
  add({LocalKind::swap_rows, {whole(z), row_of(index, 0)}, {whole(swapped)}});
  add(numbered({LocalKind::lower_triangle, {whole(factors)}, {whole(lower)}}, {{own(x), 4, 2}, {own(x), 4, 2}}));
  add(numbered({LocalKind::upper_triangle, {whole(factors)}, {whole(upper)}}, {{own(x)}, {1}}));
  add({LocalKind::trsm_lower, {whole(factors), whole(picked)}, {whole(solved)}});
  add({LocalKind::trsm_upper, {whole(factors), whole(solved)}, {whole(solved)}});
  add({LocalKind::solve, {whole(a), whole(picked)}, {whole(system)}});
  add(numbered({LocalKind::iota, {}, {whole(numbers)}}, {{own(x), 3, 2}}));
  Local transform{LocalKind::fft, {whole(a)}, {whole(there)}};
  transform.dims = {0, 1};
  add(transform);
  transform = {LocalKind::ifft, {whole(there)}, {whole(back)}};
  transform.dims = {1, 0};
  add(transform);
  Local twiddle = numbered({LocalKind::twiddle, {whole(back)}, {whole(turned)}}, {{own(x), 4, 2}, {7}}, -100);
  twiddle.dims = {1, 0};
  add(twiddle);
  add({LocalKind::convert, {whole(a)}, {whole(narrow)}});
  add(numbered({LocalKind::mean_square, {whole(a), whole(picked)}, {whole(distance)}}, {}, n * n));
  add(numbered({LocalKind::mean_square_grad, {whole(a), whole(picked)}, {whole(difference)}}, {}, n * n));
  const auto of_classes = [&](LocalKind kind, std::vector<Region> reads, BufferId result) {
    Local local = numbered({kind, std::move(reads), {whole(result)}}, {}, n);
    local.classes = n;
    return local;
  };
  add(of_classes(LocalKind::softmax_statistics, {whole(a)}, statistics));
  add(of_classes(LocalKind::cross_entropy, {whole(a), whole(statistics), row_of(index, 1)}, loss));
  add(of_classes(LocalKind::cross_entropy_grad, {whole(a), whole(statistics), row_of(index, 1)}, slopes));
  add(numbered({LocalKind::add_rows, {whole(slopes), row_of(index, 1)}, {whole(table)}}, {{own(x)}}, n));
  add({LocalKind::multiply, {whole(a), whole(a)}, {whole(squares)}});
  Local step{LocalKind::adamw, {whole(a), whole(slopes), whole(difference), whole(squares)}, {whole(stepped), whole(mean), whole(spread)}};
  step.optimiser = {0.01, 0.9, 0.95, 1e-8, 0.1, 3};
  add(step);
  Local descent{LocalKind::sgd, {whole(a), whole(slopes)}, {whole(descended)}};
  descent.optimiser = step.optimiser;
  add(descent);
  const TaskId sent = w.add("move", testing::shift(x, 1, whole(turned), whole(moved)), last);
  w.add("move numbers", testing::shift(x, 1, whole(numbers), whole(sum)), {testing::after(sent)});
  const TaskId first = TaskId{w.now().tasks.size() - 1};
  const TaskId added = w.add("add", testing::shift(x, 1, whole(turned), whole(moved), Combine::add), {testing::after(first)});
  w.add("add numbers", testing::shift(x, 1, whole(numbers), whole(sum), Combine::add), {testing::after(added)});
  return w.schedule;
}

TEST(MpirunKinds, EveryOneHasTheBitsOfTheNumericEngine) { expect_right(every_kind_of_work()); }

TEST(MpirunErrors, OfARunNameTheFirstTaskOnceAndAreNoBadInput) {
  Schedule schedule = every_kind_of_work();
  Program& program = schedule.programs[0];
  // On device 1 the matrix is 0; device 0 waits for what follows from it.
  program.tasks.insert(program.tasks.begin(), {"zero", Local{LocalKind::subtract, {std::get<Local>(program.tasks[0].op).reads[0], std::get<Local>(program.tasks[0].op).reads[0]},
                                                             {std::get<Local>(program.tasks[0].op).reads[0]}},
                                               {}, testing::between(schedule.mesh.whole(0), 1, 2), {}});
  for (std::size_t t = 1; t < program.tasks.size(); ++t) {
    for (Edge& edge : program.tasks[t].after) ++edge.task.value;
    if (t == 1) program.tasks[t].after = {testing::after(TaskId{0})};
  }
  for (const char* options : {"--schedule ", "--check --schedule "}) {
    const Ended ended = mpirun(2, options + saved(schedule));
    EXPECT_EQ(ended.status, 1) << ended.text;
    const std::string message = "task 1 \"getrf-panel\" on device 1 (x=1): matrix is singular: column 0 is zero below the diagonal";
    EXPECT_NE(ended.text.find(message), std::string::npos) << ended.text;
    EXPECT_EQ(ended.text.find(message), ended.text.rfind(message)) << "said by more than one rank: " << ended.text;
  }
}

TEST(MpirunChecks, AFalseClaimIsFound) {
  Schedule schedule = collective(all_gather, "ring", ring_of_4);
  std::get<Collective>(schedule.computes).kind = permute;
  std::get<Collective>(schedule.computes).pairs = {{1, 0}};
  std::get<Collective>(schedule.computes).output.dims[1].length = 1;
  const Ended ended = mpirun(4, "--check --schedule " + saved(schedule));
  EXPECT_EQ(ended.status, 1) << ended.text;
  EXPECT_NE(ended.text.find("FAILED: the result is not what the schedule says it computes"), std::string::npos) << ended.text;
}

TEST(MpirunLowers, CollectivesThatAreNotLowered) {
  const auto mesh = Mesh::make(ring_of_4);
  const auto schedule = collective_schedule(*mesh, all_gather, {mesh->whole(0)}, Bytes{4096}, DType::f32);
  expect_right(*schedule);
  const Ended ended = mpirun(4, "--check --algorithm direct --schedule " + saved(*schedule));
  EXPECT_EQ(ended.status, 0) << ended.text;
}

// ---- What it writes ---------------------------------------------------------------------------------------------------------------------

TEST(MpirunWrites, EveryTaskOfTheTimelineOnceAndAfterWhatItWaitsFor) {
  const std::string timeline = file_of_test("timeline.csv"), observed = file_of_test("observed.csv");
  const Schedule schedule = collective(reduce_scatter, "ring-one-way", ring_of_4);
  const Ended ended = mpirun(4, "--repeat 3 --timeline " + timeline + " -o " + observed + " --schedule " + saved(schedule));
  ASSERT_EQ(ended.status, 0) << ended.text;
  std::istringstream lines{test::bytes_of_file(timeline)};
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "device,task,part,peer,start_s,end_s,label,collective,origin");
  std::size_t rows = 0;
  double latest = 0;
  while (std::getline(lines, line)) {
    ++rows;
    std::vector<std::string> fields;
    std::istringstream row{line};
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    ASSERT_EQ(fields.size(), 9U) << line;
    EXPECT_GE(std::stod(fields[4]), 0) << line;
    EXPECT_GE(std::stod(fields[5]), std::stod(fields[4])) << line;
    EXPECT_EQ(fields[8], "reduce-scatter");
    latest = std::max(latest, std::stod(fields[5]));
  }
  const Unrolled unrolled = unroll(schedule);
  std::size_t expected = 0;
  for (const Activity& activity : unrolled.graph.activities) expected += activity.kind == Activity::Kind::transfer ? 2 : 1;
  EXPECT_EQ(rows, expected);

  const auto observations = read_observations(test::bytes_of_file(observed), observed);
  ASSERT_TRUE(observations) << to_text(observations.error());
  ASSERT_EQ(observations->size(), 1U);
  EXPECT_EQ((*observations)[0].op, ObservedOp::reduce_scatter);
  EXPECT_EQ((*observations)[0].devices, 4);
  EXPECT_EQ((*observations)[0].bytes, Bytes{4800});
  EXPECT_NEAR((*observations)[0].time.count(), latest, 1e-9);
}

TEST(MpirunWrites, ATraceOfWhatWasMeasuredThatDiffComparesWithAPrediction) {
  GemmOptions options;
  options.slice_count = 2;
  const std::string chrome = file_of_test("run.json"), profile = file_of_test("run.xplane.pb"), schedule = saved(gemm("meshslice", Dataflow::os, 2, 2, options));
  const std::string machine = "validation/lab/machine.textproto";
  for (const std::string& file : {chrome, profile}) {
    const Ended ended = mpirun(4, "--pace " + machine + " --trace " + file + " --schedule " + schedule);
    ASSERT_EQ(ended.status, 0) << ended.text;
  }
  const auto trace = nlohmann::json::parse(test::bytes_of_file(chrome));
  std::map<int, int> products;
  double latest = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || !event.contains("args")) continue;
    latest = std::max(latest, event["ts"].get<double>() + event["dur"].get<double>());
    if (event["args"].value("op", "") == "matmul") ++products[event["pid"].get<int>()];
  }
  EXPECT_EQ(products, (std::map<int, int>{{1, 2}, {2, 2}, {3, 2}, {4, 2}})) << "of each device one a slice";
  EXPECT_NEAR(latest, std::stod(trace["metadata"]["makespan_us"].get<std::string>()), 1e-3);

  const std::string predicted = file_of_test("predicted.json");
  const test::Outcome run = test::podsim("run --machine " + machine + " --slice 2x2 --schedule " + schedule + " --format json -o " + predicted);
  ASSERT_EQ(run.status, 0) << run.err;
  const test::Outcome diff = test::podsim("diff --measured " + profile + " " + predicted + " --format json");
  ASSERT_EQ(diff.status, 0) << diff.err;
  const auto matched = diff.json()["matching"]["predicted"];
  EXPECT_EQ(matched["matched"], matched["of"]) << diff.out;
  EXPECT_GT(matched["of"].get<int>(), 0);
  expect_refused(4, "--schedule " + schedule + " --trace run.txt", "--trace: expected a name that ends in .json, .json.gz or .xplane.pb");
}

TEST(MpirunWrites, ASurveyOfObservationsThatCanBeRead) {
  const std::string file = file_of_test("survey.csv");
  const Ended ended = mpirun(2, "--quiet --rounds 1 --seconds-each 0 --max-bytes 128KiB --survey " + file);
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto rows = read_observations(test::bytes_of_file(file), file);
  ASSERT_TRUE(rows) << to_text(rows.error());
  std::map<ObservedOp, int> alone;
  std::map<ObservedSchedule, int> with_a_product;
  for (const Observation& row : *rows) row.op != ObservedOp::matmul&& row.m > 0 ? ++with_a_product[row.schedule] : ++alone[row.op];
  using enum ObservedOp;
  EXPECT_THAT(alone, ::testing::ElementsAre(::testing::Pair(all_gather, 8), ::testing::Pair(reduce_scatter, 8), ::testing::Pair(all_reduce, 8),
                                            ::testing::Pair(all_to_all, 8), ::testing::Pair(permute, 8), ::testing::Pair(matmul, 12),
                                            ::testing::Pair(hbm_copy, 4)));
  EXPECT_THAT(with_a_product, ::testing::ElementsAre(::testing::Pair(ObservedSchedule::plain, 8), ::testing::Pair(ObservedSchedule::overlapped, 8)));
}

// ---- Bad input: a message, status 2, and an end --------------------------------------------------------------------------------------------

TEST(MpirunRefuses, AnotherNumberOfRanks) {
  expect_refused(3, "--schedule " + saved(collective(all_gather, "ring", ring_of_4)), "the schedule is for 4 devices, there are 3 ranks");
}

TEST(MpirunRefuses, FilesThatAreNoSchedule) {
  const std::string whole = write_schedule(collective(all_gather, "ring", pair), Encoding::binary);
  expect_refused(2, "--schedule " + file_of_test("missing.pb"), "missing.pb: cannot read the file");
  expect_refused(2, "--schedule " + saved("cut.pb", whole.substr(0, whole.size() / 2)), "cut.pb");
  expect_refused(2, "--schedule " + saved("noise.textproto", "\xff\xfe programs { 12 }"), "noise.textproto:1:");
}

TEST(MpirunRefuses, SchedulesThatAreWrong) {
  Schedule racing = collective(all_gather, "ring", pair);
  for (Task& task : racing.programs[0].tasks) task.after.clear();
  expect_refused(2, "--schedule " + saved(racing), "podsim: error: ");

  Schedule huge = collective(all_gather, "ring", pair);
  huge.programs[0].buffers.push_back({"huge", {std::int64_t{1} << 40}, DType::f32, Role::scratch, {}, {}});
  expect_refused(2, "--schedule " + saved(huge), "running the schedule needs");
}

TEST(MpirunRefuses, CoresThatWouldWaitForEachOther) {
  // Device 0: A waits for what device 1 sends after B; device 1 likewise. Legal in any order but the cores'.
  testing::Writer w{{{"x", 2, true}}};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4}), c = w.scratch("c", {4});
  const Peer other{own(w.axis(0), 1)};
  const TaskId received = w.add("receive", Recv{0, other, testing::part(b, 0, 4), Combine::replace});
  w.add("A", testing::copy(testing::part(b, 0, 4), testing::part(c, 0, 4)), {testing::after(received)});
  const TaskId second = w.add("B", Local{LocalKind::scale, {testing::part(a, 0, 4)}, {testing::part(a, 0, 4)}, 2, Unit::core});
  w.add("send", Send{0, other, testing::part(a, 0, 4), {}}, {testing::after(second)});
  expect_refused(2, "--schedule " + saved(w.schedule), "deadlock (core work runs in program order)");
}

TEST(MpirunRefuses, OptionsThatDoNotGoTogether) {
  expect_refused(2, "", "expected --schedule or --survey, found neither");
  expect_refused(2, "--survey a.csv --check", "--check: belongs to --schedule, not to --survey");
  expect_refused(2, "--schedule a.pb --repeat 0", "--repeat");
  expect_refused(2, "--shedule a.pb", "unknown option");
}

}  // namespace
}  // namespace podsim
