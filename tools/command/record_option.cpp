#include "tools/command/record_option.hpp"

#include <fmt/format.h>

#include "tools/page/recorded_run.hpp"

namespace podsim {

OptionGroup record_options() { return {{"record", output_file("FILE"), "write what is known of the result, for `podsim report`"}}; }

Expected<std::unique_ptr<Sink>> record_request(const Options& options) {
  if (!options.has("record")) return std::unique_ptr<Sink>{};
  const std::string& path = options.text("record");
  if (path.ends_with(".gz")) return Diagnostic{option("record"), "expected a file that does not end in .gz, found " + quoted(path)};
  return open_sink(path);
}

Status write_record(Sink& sink, const Run& run, Details details, const Options& options, const RunOptions& how) {
  if (details.devices.empty()) {
    how.tell(fmt::format("writing the record: measuring {} devices", run.model.nodes()));
    details.devices = measure_devices(run.model, run.timeline);
  }
  std::vector<std::string> missing;
  if (run.model.calls != nullptr) {
    missing.emplace_back(
        "the critical path, what each machine value would change, and the list of links and memories by utilisation: functions were played once; "
        "--calls inline plays every task");
  } else if (details.links.empty()) {
    how.tell("writing the record: measuring links");
    details.links = measure_links(run.model, run.timeline);
  }
  if (!details.explanation && run.model.calls == nullptr) {
    auto explanation = explain(run, how);
    if (explanation)
      details.explanation = *std::move(explanation);
    else if (!is_of_input(explanation.error().cause))
      return explanation.error();
    else
      missing.push_back("the critical path and what each machine value would change: " + explanation.error().message);
  }
  how.tell("writing the record");
  auto record = record_of(run, details, "podsim run " + options.command_line(), PODSIM_VERSION, how.control.stop, how.counting);
  if (!record) return record.error();
  record->missing.insert(record->missing.end(), missing.begin(), missing.end());
  sink.write(write_record(*record));
  return sink.close();
}

Status write_record(Sink& sink, std::string_view verb, std::string_view json, const Options& options) {
  Record record;
  record.podsim_version = PODSIM_VERSION;
  record.command = fmt::format("podsim {} {}", verb, options.command_line());
  record.result = recorded_result(json);
  sink.write(write_record(record));
  return sink.close();
}

}  // namespace podsim
