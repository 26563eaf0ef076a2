#include <fmt/format.h>
#include <fmt/ostream.h>

#include "sim/config/files.hpp"
#include "tools/command/command.hpp"
#include "tools/command/options.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/sweep_files.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/console/progress.hpp"
#include "tools/sweep/point_run.hpp"
#include "tools/sweep/store_report.hpp"
#include "tools/sweep/sweep_check.hpp"
#include "tools/sweep/sweep_run.hpp"

namespace podsim {

namespace {

OptionGroup sweep_options() {
  const OptionGroup own{{"file", input_file("FILE.textproto"), "the sweep; --file may be left out"},
                        {"store", output_file("FILE.sqlite", files_of_store), "where results are kept; left out: FILE.sqlite beside the sweep"},
                        {"threads", word("N", "0"), "runs at a time; 0: all cores. The results do not depend on it"},
                        {"export", word("csv|json"), "print every stored point in order, instead of running"},
                        {"query", word("SQL"), "print what one SQL statement reads; `results` is the view to begin with"},
                        {"status", flag(), "print how far the sweep is, also while it runs"}};
  return joined({own, output_options(table_json_csv)});
}

std::string progress_text(const SweepCount& count, double seconds) {
  const double rate = static_cast<double>(count.finished) / seconds;
  return fmt::format("[{}/{}] {} skipped, {:.3g} points/s, {} left", count.known + count.finished, count.points, count.skipped, rate,
                     count.finished > 0 ? time_text(static_cast<double>(count.remaining()) / rate) : "-");
}

void tell_failures(const SweepEnd& end, Console& console) {
  if (end.count.failed == 0) return;
  fmt::print(console.err, "podsim: {} of {} points could not be run on this computer; the same command tries them again\n", end.count.failed,
             end.count.points);
  for (const auto& [position, why] : end.failures) fmt::print(console.err, "  point {}: {}\n", position + 1, why);
  if (end.count.failed > end.failures.size()) fmt::print(console.err, "  and {} more\n", end.count.failed - end.failures.size());
}

std::optional<int> devices_of(const PointInputs& inputs) {
  const auto fields = with_plan(fields_of(inputs));
  const auto system = fields ? read_system(*fields) : Expected<System>{fields.error()};
  if (!system) return std::nullopt;
  return system->mesh.devices();
}

int report_from(const std::string& store, const Options& options, Console& console) {
  const Format format = format_of(options);
  Format export_format = Format::csv;
  if (options.has("export")) {
    if (options.text("export") == "json")
      export_format = Format::json;
    else if (options.text("export") != "csv")
      return report({option("export"), "expected csv or json, found " + quoted(options.text("export"))}, console);
  }
  auto database = open_store_to_read(store, console.interrupted);
  if (!database) return report(database.error(), console);
  const auto text = options.has("export")  ? export_results(*database, export_format)
                    : options.has("query") ? query_results(*database, options.text("query"), format)
                                           : store_status(*database, store, format);
  if (!text) return report(text.error(), console);
  if (auto ok = write_output(options, *text, console); !ok) return report(ok.error(), console);
  return exit_done;
}

int run_file(const std::string& file, const std::string& store_file, const Options& options, Console& console) {
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return report(threads.error(), console);
  const auto text = read_file(file, config_limit);
  if (!text) return report(text.error(), console);
  auto blocks = read_sweep(*text, file);
  if (!blocks) return report(blocks.error(), console);
  if (auto ok = outputs_stand_alone(files_of_sweep(options, store_file, *blocks)); !ok) return report(ok.error(), console);
  if (auto ok = check_sweep(*blocks); !ok) return report(ok.error(), console);
  const auto points = expand(*std::move(blocks), devices_of);
  if (!points) return report(points.error(), console);
  auto store = SweepStore::open(store_file);
  if (!store) return report(store.error(), console);
  const auto end = [&] {
    ProgressLine line{console, options.flag("quiet"), 0};
    return run_sweep({*text, file, PODSIM_VERSION}, *points, *store, {static_cast<int>(*threads), console.interrupted, [&](const SweepCount& so_far) {
                                                                        line.show([&](double seconds) { return progress_text(so_far, seconds); });
                                                                      }});
  }();
  if (!end) return report(end.error(), console);
  const SweepCount& count = end->count;
  tell_failures(*end, console);
  if (count.remaining() > count.failed || (count.failed > 0 && console.interrupted.requested())) {
    fmt::print(console.err, "podsim: interrupted: {} of {} points are done and stored in {}; the same command goes on\n", count.known + count.finished,
               count.points, store_file);
    return exit_interrupted;
  }
  if (!options.flag("quiet") && console.err_is_terminal)
    fmt::print(console.err, "podsim: {} points: {} were known, {} runs simulated now\n", count.points, count.known, count.simulated);
  const int status = report_from(store_file, options, console);
  return status == exit_done && count.failed > 0 ? exit_false : status;
}

}  // namespace

int sweep_verb(const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, sweep_options(), usage_of("sweep"), console, "file");
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;
  const int asked = static_cast<int>(options.has("export")) + static_cast<int>(options.has("query")) + static_cast<int>(options.flag("status"));
  if (asked > 1) return report({{}, "expected one of --export, --query and --status, found several"}, console);
  if (!options.has("file") && asked == 0)
    return report({{}, "sweep what? A FILE.textproto, or --store with --export, --query or --status; --help has examples"}, console);
  if (!options.has("file") && !options.has("store")) return report({{}, "--store is missing: the file that keeps the results"}, console);
  const std::string store = options.has("store") ? options.text("store") : store_beside(options.text("file"));
  if (auto ok = outputs_stand_alone(files_of_sweep(options, store)); !ok) return report(ok.error(), console);
  return asked > 0 ? report_from(store, options, console) : run_file(options.text("file"), store, options, console);
}

}  // namespace podsim
