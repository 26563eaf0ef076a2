#include <fmt/format.h>
#include <fmt/ostream.h>

#include <chrono>

#include "sim/base/units.hpp"
#include "tools/command/command.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/print.hpp"
#include "tools/command/tuning_pods.hpp"
#include "tools/command/workload.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {
int tune_verb(const std::vector<std::string>& arguments, Console& console) {
  po::options_description described;
  described.add(pod_options(false)).add(tuning_pod_options()).add(what_if_options(false)).add(workload_options());
  described.add_options()("algorithms", po::value<std::string>()->default_value("collective,meshslice,wang"), "")(
      "top", po::value<std::string>()->default_value("5"), "")("exhaustive", po::bool_switch(), "");
  described.add(engine_options()).add(output_options());
  const Parsed parsed = parse(arguments, described, "", console);
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;
  const auto begin = std::chrono::steady_clock::now();
  const auto lap = [&](const char* what) {
    fmt::print(console.err, "{} {:.3f}\n", what, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  };
  const auto manner = manner_of(options, console);
  if (!manner) return report(manner.error(), console);
  auto pods = tuning_pods(options);
  if (!pods) return report(pods.error(), console);
  lap("pods");
  auto workload = workload_asked_for(options, pods->front().mesh.devices());
  if (!workload) return report(workload.error(), console);
  TuningRequest request;
  request.workload = *workload;
  request.pods = *pods;
  request.algorithms = split(options.text("algorithms"));
  request.options.slice_copies = pods->front().machine.slice_copies;
  request.exhaustive = options.flag("exhaustive");
  request.top = static_cast<std::size_t>(*options.integer("top", 1, 1000));
  request.engine = manner->engine;
  request.hbm = pods->front().machine.chip.hbm;
  request.threads = manner->threads;
  request.stop = console.interrupted;
  auto tuning = tune(request);
  if (!tuning) return report(tuning.error(), console);
  lap("tuned");
  fmt::print(console.out, "candidates {} simulated {} pruned {}\n", tuning->candidates, tuning->simulated, tuning->pruned);
  for (const auto& plan : tuning->plans) {
    fmt::print(console.out, "{} {} {} fwd {} mem {}\n", to_text(request.pods[plan.pod].slice), to_text(request.pods[plan.pod].mesh),
               to_text(to_seconds(plan.time)), to_text(to_seconds(plan.forward)), to_text(plan.memory.total()));
    for (const auto& stage : plan.plan.stages)
      if (stage.product)
        fmt::print(console.out, "   {} {} {}{} S={}\n", stage.name, stage.product->algorithm, stage.product->transposed ? "T" : "",
                   name_of(stage.product->dataflow), stage.product->slice_count);
    if (&plan == &tuning->plans.front())
      for (const auto& part : plan.parts)
        fmt::print(console.out, "      {} {} {}\n", part.part.name, part.part.pass == Pass::forward ? "f" : "b", to_text(to_seconds(part.cost.time)));
  }
  for (const auto& e : tuning->excluded) fmt::print(console.out, "excluded {}: {}\n", e.what, e.reason);
  return 0;
}
}  // namespace podsim
