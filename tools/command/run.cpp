#include <fmt/ostream.h>

#include "sim/base/units.hpp"
#include "sim/config/result_config.hpp"
#include "tools/command/alignment.hpp"
#include "tools/command/command.hpp"
#include "tools/command/failures.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/print.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/result_print.hpp"
#include "tools/command/workload.hpp"
#include "tools/command/trace_option.hpp"

namespace podsim {

namespace {

constexpr std::string_view run_usage =
    R"(usage: podsim run --machine M --slice AxB [--mesh row=R,col=C] (--gemm ... | --collective ... | --schedule FILE) [OPTION...]

Simulates one thing and prints its time, how it splits into compute, exposed communication and waiting, MFU, traffic and memory.
With -o FILE.textproto or FILE.pb the result is saved; --trace FILE.json shows when everything happened.

examples:
  podsim run --machine tpu_v4 --slice 4x8x8 --mesh row=32,col=8 --gemm m=524288,n=49152,k=12288 --algorithm meshslice --slice-count 16
  podsim run --machine ideal --set link.bandwidth=45GB/s --set link.latency=1us --slice 16 \
             --collective all-gather --axis row --bytes 16MiB --algorithm ring-one-way --engine simgrid --format json
  podsim run --machine tpu_v4 --slice 4x4x8 --collective all-reduce --axis row,col --bytes 1MiB --algorithm auto
)";

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// What is known of a run that was told to stop.
int interrupted(const SimulatedRun& run, Console& console) {
  const auto all = static_cast<double>(run.model.deployment.activities());
  fmt::print(console.err, "podsim: interrupted: simulated {} of the run, {} of {} task instances ({:.0f} %)\n",
             to_text(to_seconds(run.timeline.makespan)), run.timeline.finished, run.model.deployment.activities(),
             all > 0 ? 100 * static_cast<double>(run.timeline.finished) / all : 0);
  return exit_interrupted;
}

}  // namespace

int run_verb(const std::vector<std::string>& arguments, Console& console) {
  po::options_description described;
  described.add(pod_options(false)).add(what_if_options(false)).add(problem_options(false)).add(workload_options());
  po::options_description telling{"what to tell"};
  telling.add_options()                                                                                          //
      ("explain", po::bool_switch(), "the critical path, what each machine value would change, and a sentence")  //
      ("per", po::value<std::string>()->value_name("device,link"), "the time and traffic of every device, every link");
  described.add(engine_options()).add(telling).add(trace_options()).add(output_options(table_json_csv));
  const Parsed parsed = parse(arguments, described, run_usage, console);
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;

  const Format format = format_of(options);
  auto manner = manner_of(options, console);
  if (!manner) return report(manner.error(), console);
  for (const std::string& what : options.has("per") ? split(options.text("per")) : std::vector<std::string>{})
    if (what != "device" && what != "link") return report({option("per"), "expected device or link, found " + quoted(what)}, console);
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, *manner);
  auto request = pod_request_of(options, "");
  if (!request) return report(request.error(), console);
  const bool any_cable = request->what_if.fail == std::vector<std::string>{"any"};
  if (any_cable) request->what_if.fail.clear();
  manner->tell("laying out the pod");
  auto pod = make_pod(*request);
  if (!pod) return report(pod.error(), console);
  const auto trace = trace_request(options, pod->mesh.devices());
  if (!trace) return report(trace.error(), console);
  const ProblemOf problem_on = [&](Pod& on, const Manner& how) { return problem_of(options, on, DType::bf16, how); };
  const auto run = simulate_best(*pod, problem_on, *manner);
  if (!run) return report(run.error(), console);
  if (run->timeline.interrupted) {
    line.end();
    return interrupted(*run, console);
  }
  if (*trace) {
    manner->tell("writing the trace");
    if (auto ok = write_trace(**trace, *run); !ok) return report(ok.error(), console);
  }
  Details details;
  details.notes = alignment_notes(*request, *pod);
  if (!pod->what_if.fail.empty() || !pod->what_if.degrade.empty() || !pod->placement.speed.empty()) {
    const auto healthy = healthy_makespan(*pod, problem_on, *manner);
    if (!healthy) return report(healthy.error(), console);
    details.healthy_s = *healthy;
  }
  if (any_cable) {
    auto losses = lose_any_cable(*pod, problem_on, *manner);
    if (!losses) return report(losses.error(), console);
    details.losses = *std::move(losses);
  }
  for (const std::string& what : options.has("per") ? split(options.text("per")) : std::vector<std::string>{}) {
    if (what == "device")
      details.devices = measure_devices(run->model, run->timeline);
    else
      details.links = measure_links(run->model, run->timeline);
  }
  if (options.flag("explain")) {
    auto explanation = explain(*run, *manner);
    if (!explanation) return report(explanation.error(), console);
    details.explanation = *std::move(explanation);
  }
  const Row& row = run->row;
  line.end();
  if (*trace && !(*trace)->note.empty() && !options.flag("quiet")) fmt::print(console.err, "podsim: note: {}\n", (*trace)->note);

  std::string text;
  if (const std::string path = options.has("output") ? options.text("output") : ""; ends_with(path, ".textproto") || ends_with(path, ".pb"))
    text = write_result(row.result, ends_with(path, ".pb") ? Encoding::binary : Encoding::text);
  else
    text = format == Format::json ? result_json(*run, details) : format == Format::csv ? result_csv({row}) : result_table(*run, details);
  if (auto ok = write_output(options, text, console); !ok) return report(ok.error(), console);
  return exit_done;
}

}  // namespace podsim
