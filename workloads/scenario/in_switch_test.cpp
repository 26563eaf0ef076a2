// Switches that add up and copy: right values on every engine, each block once on every link, and refused where no switch can.
#include <gmock/gmock.h>

#include <map>

#include "algorithms/collectives/collectives.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/engines.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/validate.hpp"
#include "topologies/machines.hpp"
#include "topologies/system.hpp"

namespace podsim {
namespace {

using enum CollectiveKind;
using ::testing::HasSubstr;

System rails(const std::string& slice, double efficiency = 0.8) {
  SystemSpec spec;
  spec.machine = *find_machine("dgx_h100");
  spec.machine.link[1].in_switch_efficiency = efficiency;
  spec.slice = *parse_slice(slice, spec.machine, {});
  auto system = make_system(spec);
  EXPECT_TRUE(system) << to_text(system.error());
  return *std::move(system);
}

Expected<Schedule> lowered(const System& system, CollectiveKind kind, std::int64_t bytes, std::string_view algorithm, int chunks = 4) {
  std::vector<AxisView> axes;
  for (int a = 0; a < static_cast<int>(system.mesh.axes().size()); ++a)
    if (system.mesh.whole(a).size > 1) axes.push_back(system.mesh.whole(a));
  const auto schedule = collective_schedule(system.mesh, kind, axes, Bytes{bytes}, DType::f32);
  if (!schedule) return schedule.error();
  return lower(*schedule, *always(algorithm, in_chunks(chunks)));
}

double seconds_on(const System& system, const Schedule& schedule, std::string_view engine, bool folded = false) {
  const auto model = (folded ? make_folded_model : make_model)(schedule, system.machine, *system.topology, system.placement, {}, {});
  EXPECT_TRUE(model) << to_text(model.error());
  if (!model) return 0;
  const auto timeline = (*timing_engine(engine))->run(*model, {});
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

TEST(InSwitch, IsRightAndTakesTheSameTimeOnEveryEngine) {
  for (const std::string slice : {"1x2", "1x3", "1x8", "2x4", "3x2"})
    for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce}) {
      const System system = rails(slice);
      const auto schedule = lowered(system, kind, 4 * 48 * 64, slice.starts_with("1") ? "in-switch" : "hierarchical-in-switch");
      ASSERT_TRUE(schedule) << to_text(schedule.error());
      SCOPED_TRACE(slice + " " + std::string{name_of(kind)});
      EXPECT_TRUE(validate(*schedule).ok());
      const auto checked = check(*schedule, {});
      ASSERT_TRUE(checked) << to_text(checked.error());
      EXPECT_TRUE(checked->ok);
      const double des = seconds_on(system, *schedule, "des");
      EXPECT_EQ(des, seconds_on(system, *schedule, "des", true)) << "folded";
      EXPECT_NEAR(des, seconds_on(system, *schedule, "simgrid"), 1e-6 * des + 1e-9);
    }
}

/// Bytes on each link, by its name.
std::map<std::string, double> carried(const System& system, const Schedule& schedule) {
  const auto model = make_model(schedule, system.machine, *system.topology, system.placement);
  EXPECT_TRUE(model) << to_text(model.error());
  std::map<std::string, double> bytes;
  for (std::uint32_t p = 0; p < model->costs.size(); ++p)
    for (std::size_t t = 0; t < model->costs[p].size(); ++t) {
      const TaskCost& cost = model->costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer) continue;
      for (std::size_t l = 0; l < model->deployment.who(p, t).to.size(); ++l)
        for (const PathLink& link : model->links_of(model->path(cost, l)))
          if (!model->links[link.link].is_memory) bytes[system.topology->link_name(LinkId{static_cast<int>(link.link)})] += static_cast<double>(cost.payload.count());
    }
  return bytes;
}

TEST(InSwitch, EveryLinkCarriesEachBlockOnceEachWay) {
  const System system = rails("1x4");
  constexpr std::int64_t block = 4096;
  for (const auto& [kind, input, up, down] : std::vector<std::tuple<CollectiveKind, std::int64_t, double, double>>{
           {all_gather, block, 1, 3}, {reduce_scatter, 4 * block, 3, 1}, {all_reduce, 4 * block, 4, 4}}) {
    const auto schedule = lowered(system, kind, input, "in-switch");
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    double most_up = 0, most_down = 0;
    int links = 0;
    for (const auto& [name, bytes] : carried(system, *schedule)) {
      const bool rises = name.find("->") != std::string::npos && name.find("->0.") == std::string::npos;
      (rises ? most_up : most_down) = std::max(rises ? most_up : most_down, bytes / block);
      ++links;
    }
    EXPECT_EQ(links, 8) << "up and down of four GPUs";
    EXPECT_EQ(most_up, up) << name_of(kind);
    EXPECT_EQ(most_down, down) << name_of(kind);
  }
}

TEST(InSwitch, DrawsMemoryOnceForWhatTheSwitchCopiesAndForASum) {
  System system = rails("1x8", 1);
  system.machine.chip.hbm_bandwidth = BytesPerSecond{100e9};  // a third of what the link carries
  system.machine.link[1].latency = system.machine.software.in_switch_launch = Seconds{};
  system.machine.software.launch.fill(Seconds{});
  system.machine.software.efficiency.fill({});
  system.machine.chip.own_block_bandwidth = unlimited<BytesPerSecond>;
  system = *with_machine(system, system.machine);
  const std::int64_t block = 1 << 20;
  const auto gather = lowered(system, all_gather, block, "in-switch"), scatter = lowered(system, reduce_scatter, 8 * block, "in-switch");
  ASSERT_TRUE(gather && scatter);
  // Read once and written seven times; read seven times and written once.
  for (const auto* schedule : {&*gather, &*scatter})
    for (const std::string engine : {"des", "simgrid"}) EXPECT_NEAR(seconds_on(system, *schedule, engine), 8 * block / 100e9, 1e-9) << engine;
}

TEST(InSwitch, IsRefusedWhereNoSwitchAddsUp) {
  const auto problem = [](const System& system, std::string_view algorithm) {
    const auto schedule = lowered(system, all_reduce, 1 << 16, algorithm);
    if (!schedule) return to_text(schedule.error());
    const auto model = make_model(*schedule, system.machine, *system.topology, system.placement);
    return model ? std::string{} : to_text(model.error());
  };
  EXPECT_THAT(problem(rails("1x4", 0), "in-switch"), HasSubstr("theirs cannot"));
  EXPECT_THAT(problem(rails("2x4"), "in-switch"), HasSubstr("theirs cannot")) << "the switches of rails only pass on";
  SystemSpec grid;
  grid.machine = *find_machine("tpu_v4");
  grid.slice = *parse_slice("4x4x4", grid.machine, {});
  EXPECT_THAT(problem(*make_system(grid), "in-switch"), HasSubstr("they have no such switch"));
}

TEST(InSwitch, SavedSchedulesKeepIt) {
  const auto schedule = lowered(rails("1x4"), all_reduce, 1 << 16, "in-switch");
  ASSERT_TRUE(schedule);
  const auto again = read_schedule(write_schedule(*schedule, Encoding::text), "saved");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(*again, *schedule);
}

TEST(InSwitch, CopiesAndAddendsNeedACarrier) {
  const auto schedule = lowered(rails("1x4"), all_reduce, 1 << 16, "in-switch");
  ASSERT_TRUE(schedule);
  // Of all carriers, or of those of one stage: without them the links would carry nothing of its blocks.
  const auto problems_with = [&](InSwitch lost, std::string_view stage) {
    Schedule spoiled = *schedule;
    for (std::size_t t = 0; t < spoiled.programs[0].tasks.size(); ++t) {
      auto* shift = std::get_if<Shift>(&spoiled.programs[0].tasks[t].op);
      if (shift == nullptr || shift->in_switch != InSwitch::carrier) continue;
      const bool adds = spoiled.programs[0].buffers[shift->target.buffer.index()].name.starts_with("arrival");
      if (stage.empty() || (stage == "add") == adds) shift->in_switch = lost;
    }
    const auto problems = check_shapes(spoiled);
    return problems.empty() ? std::string{} : problems.front().message;
  };
  for (const std::string_view stage : {"", "add", "copy"})
    for (const InSwitch lost : {InSwitch::none, InSwitch::addend, InSwitch::copy})
      EXPECT_THAT(problems_with(lost, stage), ::testing::ContainsRegex("along col a carrier.* has 2 ")) << stage << " " << name_of(lost);
  Schedule unsaid = *schedule;
  for (Task& task : unsaid.programs[0].tasks) task.origin->in_switch = false;
  EXPECT_THAT(check_shapes(unsaid).front().message, HasSubstr("its origin does not say that a switch works on the collective"));
  unsaid = *schedule;
  unsaid.programs[0].tasks.front().origin->in_switch = false;
  EXPECT_THAT(check_shapes(unsaid).front().message, HasSubstr("its origin differs from that of an earlier task"));
  Schedule adds = *schedule;
  for (Task& task : adds.programs[0].tasks)
    if (auto* shift = std::get_if<Shift>(&task.op)) shift->combine = Combine::add;
  EXPECT_THAT(check_shapes(adds).front().message, HasSubstr("what a switch adds up or copies replaces its target"));
}

}  // namespace
}  // namespace podsim
