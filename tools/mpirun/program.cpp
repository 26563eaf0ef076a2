#include "tools/mpirun/program.hpp"

#include <fmt/ostream.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/output_file.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/model/task_cost.hpp"
#include "tools/command/options.hpp"
#include "tools/mpirun/measured_trace.hpp"
#include "tools/mpirun/survey.hpp"
#include "tools/mpirun/verdict.hpp"
#include "tools/report/json.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

constexpr std::string_view usage =
    R"(usage: mpirun -n P podsim_mpirun --schedule FILE [--repeat N] [--check] [OPTION...]
       mpirun -n P podsim_mpirun --survey FILE.csv

Runs a saved schedule for real: one rank is one device, transfers are MPI messages, products OpenBLAS calls on one thread. All ranks on one host, as
their clock is its clock. --survey measures what `podsim calibrate` wants to know of this host.

examples:
  podsim show schedule --slice 2 --collective all-gather --axis row --bytes 1MiB --dtype f32 -o gather.textproto
  mpirun -n 2 podsim_mpirun --schedule gather.textproto --repeat 100 --check
)";

constexpr Bytes memory_limit{std::int64_t{8} << 30};

OptionGroup described() {
  return {{"schedule", input_file("FILE"), "a schedule that `podsim show schedule -o FILE` saved; as many devices as ranks"},
          {"algorithm", word("NAME"), "of its collectives; left out: ring, or line on open axes"},
          {"repeat", word("N", "1"), "runs, after one that is not counted (1)"},
          {"check", flag(), "compare the results with the numeric engine's, and with what it says it computes; status 1 if they differ"},
          {"seed", word("N", "1"), "of the inputs (1)"},
          {"pace", word("NAME|FILE"), "a machine: products and Locals last as long as its model says, while messages make progress. With --check they do their arithmetic in that time, and last longer if that does"},
          {"straggler", words("RANK=PART"), "a slow rank, by its coordinates in the schedule's mesh: with 3.2=0.8 its core tasks last as --pace says, over 0.8; repeatable"},
          {"between-looks", word("TIME", "0s"), "how long a rank that waits sleeps before it looks for messages again: where ranks share cores (0s)"},
          {"timeline", output_file("FILE.csv"), "when each task instance of the fastest run began and ended"},
          {"trace", output_file("FILE.json|FILE.xplane.pb"), "the fastest run as `podsim run --trace` writes it: for ui.perfetto.dev, XProf and `podsim diff --measured`"},
          {"output,o", output_file("FILE.csv"), "the fastest run as an observation: of a schedule that computes a collective"},
          {"survey", output_file("FILE.csv"), "measure collectives, products and copies on this host, as observations"},
          {"rounds", word("N", "3"), "of --survey: how often over all operations (3)"},
          {"seconds-each", word("S", "0.2"), "of --survey: how long each operation is repeated in a round (0.2)"},
          {"max-bytes", word("BYTES", "64MiB"), "of --survey: the largest input of a collective and the largest copy (64MiB)"},
          {"format", word("table|json", "table"), "of what is printed"},
          {"quiet", flag(), "no progress"},
          {"help,h", flag(), "this page"}};
}

/// What every rank has to know before the first message.
struct Request {
  Options options;
  int repeat = 1;
  std::uint64_t seed = 1;
  SurveyEffort effort{};
  Bytes most{};
  Format format = Format::table;
  std::optional<Machine> pace{};
};

Expected<Request> request_of(const Options& given) {
  Request request{given};
  if (given.has("schedule") == given.has("survey"))
    return Diagnostic{{}, fmt::format("expected --schedule or --survey, found {}", given.has("survey") ? "both" : "neither")};
  for (const char* name : {"algorithm", "repeat", "timeline", "trace", "output", "seed", "pace", "straggler"})
    if (given.has("survey") && given.given(name)) return Diagnostic{option(name), "belongs to --schedule, not to --survey"};
  if (given.has("survey") && given.flag("check")) return Diagnostic{option("check"), "belongs to --schedule, not to --survey"};
  for (const char* name : {"rounds", "seconds-each", "max-bytes"})
    if (!given.has("survey") && given.given(name)) return Diagnostic{option(name), "belongs to --survey, not to --schedule"};
  const auto rounds = given.integer("rounds", 1, 1000);
  if (!rounds) return rounds.error();
  const auto repeat = given.integer("repeat", 1, 1'000'000);
  if (!repeat) return repeat.error();
  const auto seed = given.integer("seed", 0, std::int64_t{1} << 62);
  if (!seed) return seed.error();
  const auto seconds = parse_number(given.text("seconds-each"), option("seconds-each"));
  if (!seconds) return seconds.error();
  if (!(*seconds >= 0 && *seconds <= 3600))
    return Diagnostic{option("seconds-each"), "expected 0 to 3600 seconds, found " + quoted(given.text("seconds-each"))};
  const auto most = parse_bytes(given.text("max-bytes"), option("max-bytes"));
  if (!most) return most.error();
  request.most = *most;
  const auto between_looks = parse_seconds(given.text("between-looks"), option("between-looks"));
  if (!between_looks) return between_looks.error();
  if (given.given("straggler") && !given.has("pace")) return Diagnostic{option("straggler"), "needs --pace, which says how long a task takes at full speed"};
  if (given.has("pace")) {
    const auto machine = find_machine(given.text("pace"));
    if (!machine) return machine.error();
    request.pace = *machine;
  }
  if (given.has("trace"))
    if (auto ok = check_trace_name(given.text("trace")); !ok) return ok.error();
  const std::string& format = given.text("format");
  if (format != "table" && format != "json") return Diagnostic{option("format"), "expected table or json, found " + quoted(format)};
  request.repeat = static_cast<int>(*repeat);
  request.seed = static_cast<std::uint64_t>(*seed);
  request.effort = {static_cast<int>(*rounds), Seconds{*seconds}, *between_looks};
  request.format = format == "json" ? Format::json : Format::table;
  return request;
}

/// Read by the root alone, so that all ranks have the same bytes and come to the same conclusions. Not lowered.
Expected<Schedule> schedule_from(const std::string& path, const Team& team) {
  const Expected<std::string> bytes = team.is_root() ? read_file(path, schedule_limit) : Expected<std::string>{""};
  if (const Status read = team.agree(bytes ? success() : Status{bytes.error()}); !read) return read.error();
  Expected<Schedule> schedule = read_schedule(team.from_root(*bytes), path);
  if (!schedule) return schedule.error();
  if (schedule->mesh.devices() != team.size())
    return Diagnostic{{path, 0, 0},
                      fmt::format("the schedule is for {} devices, there are {} ranks: mpirun -n {}", schedule->mesh.devices(), team.size(),
                                  schedule->mesh.devices())};
  return schedule;
}

Expected<Schedule> lowered_by(const Schedule& schedule, const Options& options) {
  Expected<CollectiveChooser> chooser = ring_or_line();
  if (options.has("algorithm")) chooser = always(options.text("algorithm"));
  if (!chooser) return Diagnostic{option("algorithm"), chooser.error().message};
  return lower(schedule, *chooser);
}

/// What the schedule computes, as an observation.
Expected<Observation> observation_of(const Schedule& schedule, const Measured& measured) {
  const auto* collective = std::get_if<Collective>(&schedule.computes);
  if (collective == nullptr)
    return Diagnostic{option("output"), "an observation is of a collective, which the schedule does not say that it computes; see --timeline"};
  Observation observation;
  observation.op = *observed_op_named(name_of(collective->kind));
  for (const AxisView& axis : collective->axes) observation.devices *= axis.size;
  observation.bytes = bytes_of(schedule.programs[0], collective->input);
  observation.dtype = schedule.programs[0].buffers[collective->input.buffer.index()].dtype;
  observation.time = minimum(measured);
  observation.schedule = ObservedSchedule::plain;
  observation.source = schedule.name;
  return observation;
}

void print(const Request& request, const Schedule& schedule, const Measured& measured, const std::optional<Verdict>& verdict, std::ostream& out) {
  const Seconds longest = *std::max_element(measured.makespans.begin(), measured.makespans.end());
  if (request.format == Format::json) {
    Json makespans = Json::array();
    for (const Seconds makespan : measured.makespans) makespans.push_back(makespan.count());
    Json json{{"schedule", schedule.name},
              {"ranks", schedule.mesh.devices()},
              {"repetitions", measured.makespans.size()},
              {"makespans_s", std::move(makespans)},
              {"makespan_s", minimum(measured).count()},
              {"median_s", median(measured).count()},
              {"longest_s", longest.count()},
              {"compute_s", measured.core.count()}};
    if (verdict)
      json.set("check", Json{{"same_as_numeric", verdict->same_as_numeric},
                             {"as_reference", verdict->has_reference ? Json(verdict->as_reference) : Json()},
                             {"ok", verdict->ok()}});
    fmt::print(out, "{}\n", json.dump(2));
    return;
  }
  fmt::print(out, "schedule      {}\n", schedule.name);
  fmt::print(out, "ranks         {}\n", schedule.mesh.devices());
  fmt::print(out, "makespan      {}   the least of {}; median {}, longest {}\n", to_text(minimum(measured)), measured.makespans.size(),
             to_text(median(measured)), to_text(longest));
  fmt::print(out, "core work     {}   of the rank that has most\n", to_text(measured.core));
  if (verdict && verdict->ok())
    fmt::print(out, "check         ok: bit-equal to the numeric engine{}\n",
               verdict->has_reference ? ", and what it says it computes" : "; it does not say what it computes");
  if (verdict && !verdict->ok()) fmt::print(out, "check         FAILED: {}\n", verdict->problem);
}

/// At the root; agreed on.
Status write_at_root(const std::string& path, const std::string& text, const Team& team) {
  return team.agree(team.is_root() ? write_file(path, text) : success());
}

/// "3.2=0.8": a device of the mesh and its part of the speed.
Expected<std::pair<DeviceId, double>> slow_rank(const std::string& text, const Mesh& mesh) {
  const std::size_t equals = text.find('=');
  std::string example = "0";
  for (std::size_t a = 1; a < mesh.axes().size(); ++a) example += ".0";
  const Diagnostic wrong{option("straggler"), fmt::format("expected a rank's coordinates in the mesh and a part of the speed, as {}=0.8, found {}", example, quoted(text))};
  if (equals == std::string::npos) return wrong;
  const auto part = parse_number(text.substr(equals + 1), option("straggler"));
  if (!part) return part.error();
  if (!(*part > 0 && *part <= 1)) return Diagnostic{option("straggler"), "expected a part of the speed above 0 and up to 1, found " + quoted(text)};
  const std::vector<std::string> pieces = split(text.substr(0, equals), '.');
  if (pieces.size() != mesh.axes().size()) return wrong;
  Coordinates coordinates;
  for (std::size_t a = 0; a < pieces.size(); ++a) {
    const auto coordinate = parse_integer(pieces[a], 0, mesh.axes()[a].size - 1, option("straggler"));
    if (!coordinate) return wrong;
    coordinates.push_back(static_cast<int>(*coordinate));
  }
  return std::pair{mesh.device(coordinates), *part};
}

/// Of each device, as --straggler says.
Expected<std::vector<double>> speeds_of(const Options& options, const Mesh& mesh) {
  std::vector<double> speeds(static_cast<std::size_t>(mesh.devices()), 1.0);
  for (const std::string& text : options.texts("straggler")) {
    const auto slow = slow_rank(text, mesh);
    if (!slow) return slow.error();
    speeds[slow->first.index()] = slow->second;
  }
  return speeds;
}

/// Work lasts what the model says that it takes on the machine, over the rank's part of its speed.
Pacing pacing_of(const Request& request, const Schedule& lowered, const RankRunner& runner, double speed) {
  Pacing pacing{request.effort.between_looks, {}, !request.options.flag("check")};
  if (!request.pace) return pacing;
  for (const RankTask& task : runner.tasks()) {
    const Activity& activity = runner.graph().activities[task.activity];
    const Program& program = lowered.programs[activity.program];
    const bool works = task.part == RankTask::Part::work;
    const Seconds whole = works ? cost_of(*request.pace, program, program.tasks[activity.task.index()]).work : Seconds{};
    pacing.least.push_back(task.on_core ? 1 / speed * whole : whole);  // as the model has it: a slow device is one whose core is slow
  }
  return pacing;
}

int run_schedule(const Request& request, const Team& team, Console& console) {
  const Options& options = request.options;
  const auto fail = [&](const Diagnostic& diagnostic) { return report(diagnostic, console); };
  const auto schedule = schedule_from(options.text("schedule"), team);
  if (const Status read = team.agree(schedule ? success() : Status{schedule.error()}); !read) return fail(read.error());
  const auto lowered = lowered_by(*schedule, options);
  if (const Status agreed = team.agree(lowered ? success() : Status{lowered.error()}); !agreed) return fail(agreed.error());
  const auto runner = RankRunner::make(*lowered, team, memory_limit);
  if (const Status made = team.agree(runner ? success() : Status{runner.error()}); !made) return fail(made.error());

  const auto speeds = speeds_of(options, lowered->mesh);
  if (!speeds) return fail(speeds.error());
  (*runner)->set_pacing(pacing_of(request, *lowered, **runner, (*speeds)[static_cast<std::size_t>(team.rank())]));
  const Measured measured = measure(**runner, team, {request.repeat, options.flag("check"), request.seed});
  if (const Status worked = worked_on_its_data(**runner, team); !worked) return fail(worked.error());
  std::optional<Verdict> verdict;
  if (options.flag("check")) {
    const auto judged = judge(*lowered, **runner, team, request.seed, memory_limit);
    if (!judged) return fail(judged.error());
    verdict = *judged;
  }
  if (options.has("timeline"))
    if (const Status written = write_at_root(options.text("timeline"), timeline_csv(*lowered, **runner, measured, team), team); !written)
      return fail(written.error());
  if (options.has("trace")) {
    const auto timeline = measured_timeline(**runner, measured, team);
    const auto write = [&]() -> Status {
      if (!timeline) return timeline.error();
      const auto machine = request.pace ? Expected<Machine>{*request.pace} : find_machine("ideal");
      if (!machine) return machine.error();
      return write_measured_trace(options.text("trace"), *lowered, *machine, *timeline);
    };
    if (const Status written = team.agree(team.is_root() ? write() : success()); !written) return fail(written.error());
  }
  if (options.has("output")) {
    const auto observation = observation_of(*schedule, measured);
    if (!observation) return fail(observation.error());
    if (const Status written = write_at_root(options.text("output"), write_observations({*observation}), team); !written)
      return fail(written.error());
  }
  print(request, *schedule, measured, verdict, console.out);
  return verdict && !verdict->ok() ? exit_false : exit_done;
}

int run_survey(const Request& request, const Team& team, Console& console) {
  const auto fail = [&](const Diagnostic& diagnostic) { return report(diagnostic, console); };
  const auto points = survey_points(team.size(), request.most);
  if (!points) return fail(points.error());
  const bool tells = !request.options.flag("quiet");
  const auto found = survey(*points, team, memory_limit, request.effort, [&](int round, std::size_t p, Seconds least) {
    if (!tells) return;
    const Observation& o = (*points)[p].observation;
    const std::string what = o.m > 0 ? fmt::format("{}x{}x{}", o.m, o.n, o.k) : to_text(o.bytes);
    fmt::print(console.err, "podsim_mpirun: round {} of {}, {} of {}: {} {}: {}\n", round + 1, request.effort.rounds, p + 1, points->size(),
               name_of(o.op), what, to_text(least));
    console.err.flush();
  });
  if (!found) return fail(found.error());
  if (const Status written = write_at_root(request.options.text("survey"), write_observations(*found), team); !written) return fail(written.error());
  return exit_done;
}

}  // namespace

int run_over_mpi(const std::vector<std::string>& arguments, const Team& team, Console& console) {
  const Parsed parsed = parse(arguments, described(), usage, console);
  if (parsed.status) return *parsed.status;
  const auto request = request_of(*parsed.options);
  if (!request) return report(request.error(), console);
  return request->options.has("survey") ? run_survey(*request, team, console) : run_schedule(*request, team, console);
}

}  // namespace podsim
