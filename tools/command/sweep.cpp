#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>

#include "sim/config/files.hpp"
#include "tools/command/command.hpp"
#include "tools/command/options.hpp"
#include "tools/command/record_option.hpp"
#include "tools/command/sweep_files.hpp"
#include "tools/command/sweep_merge.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/console/progress.hpp"
#include "tools/sweep/asked_points.hpp"
#include "tools/sweep/store_report.hpp"
#include "tools/sweep/sweep_check.hpp"
#include "tools/sweep/sweep_run.hpp"

namespace podsim {

namespace {

OptionGroup sweep_options() {
  const OptionGroup own{{"file", input_file("FILE.textproto"), "the sweep; --file may be left out"},
                        {"store", output_file("FILE.sqlite", files_of_store), "where results are kept; left out: FILE.sqlite beside the sweep"},
                        {"threads", word("N", "0"), "runs at a time; 0: all cores. The results do not depend on it"},
                        {"shard", word("I/N"), "run only the I-th of N shares of the points, of equal size; for several computers"},
                        {"merge", input_files("PART..."), "make --store the store of all these, instead of running"},
                        {"export", word("csv|json"), "print every stored point in order, instead of running"},
                        {"query", word("SQL"), "print what one SQL statement reads; `results` is the view to begin with"},
                        {"status", flag(), "print how far the sweep is, also while it runs"}};
  return joined({own, record_options(), output_options(table_json_csv)});
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

/// Every point as --export json prints it. Errors: those of the store and of the file.
Status record_points(Sink& sink, Database& database, const Options& options) {
  const auto points = export_results(database, Format::json);
  if (!points) return points.error();
  return write_record(sink, "sweep", *points, options);
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
  const auto record = record_request(options);
  if (!record) return report(record.error(), console);
  auto database = open_store_to_read(store, console.interrupted);
  if (!database) return report(database.error(), console);
  if (*record != nullptr)
    if (auto ok = record_points(**record, *database, options); !ok) return report(ok.error(), console);
  const auto text = options.has("export")  ? export_results(*database, export_format)
                    : options.has("query") ? query_results(*database, options.text("query"), format)
                                           : store_status(*database, store, format);
  if (!text) return report(text.error(), console);
  if (auto ok = write_output(options, *text, console); !ok) return report(ok.error(), console);
  return exit_done;
}

int run_file(const std::string& file, const std::string& store_file, const std::optional<SweepShard>& shard, const Options& options, Console& console) {
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return report(threads.error(), console);
  const auto text = read_file(file, config_limit);
  if (!text) return report(text.error(), console);
  auto blocks = read_sweep(*text, file);
  if (!blocks) return report(blocks.error(), console);
  if (auto ok = outputs_stand_alone(files_of_sweep(options, store_file, *blocks)); !ok) return report(ok.error(), console);
  const std::vector<Diagnostic> doubts = doubts_about(*blocks);
  const auto points = checked_points(*std::move(blocks));
  if (!points) return report(points.error(), console);
  warn(doubts, console);
  auto store = SweepStore::open(store_file);
  if (!store) return report(store.error(), console);
  const auto end = [&] {
    ProgressLine line{console, options.flag("quiet"), 0};
    return run_sweep({*text, file, PODSIM_VERSION, shard}, *points, *store, {static_cast<int>(*threads), console.interrupted, [&](const SweepCount& so_far) {
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

/// Errors: options that do not go together.
Status go_together(const Options& options) {
  const int asked = static_cast<int>(options.has("export")) + static_cast<int>(options.has("query")) + static_cast<int>(options.flag("status"));
  if (asked > 1) return Diagnostic{{}, "expected one of --export, --query and --status, found several"};
  if (options.has("merge")) {
    if (options.has("file")) return Diagnostic{option("merge"), "expected stores alone, found --file too: the parts know their sweep"};
    if (options.has("shard")) return Diagnostic{option("shard"), "belongs to a sweep that runs; --merge runs none"};
    if (!options.has("store")) return Diagnostic{{}, "--store is missing: the file that the parts are merged into"};
    return success();
  }
  if (options.has("shard") && (asked > 0 || (options.has("record") && !options.has("file")))) return Diagnostic{option("shard"), "belongs to a sweep that runs; a store tells of all points that are in it"};
  if (!options.has("file") && asked == 0 && !options.has("record"))
    return Diagnostic{{}, "sweep what? A FILE.textproto, or --store with --export, --query, --status, --record or --merge; --help has examples"};
  if (!options.has("file") && !options.has("store")) return Diagnostic{{}, "--store is missing: the file that keeps the results"};
  return success();
}

}  // namespace

int sweep_verb(const std::vector<std::string>& arguments, Console& console) {
  // Words are the parts of a merge, and otherwise the sweep.
  const bool merges = std::find(arguments.begin(), arguments.end(), "--merge") != arguments.end();
  const Parsed parsed = parse(arguments, sweep_options(), usage_of("sweep"), console, merges ? "merge" : "file");
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;
  if (auto ok = go_together(options); !ok) return report(ok.error(), console);
  std::optional<SweepShard> shard;
  if (options.has("shard")) {
    const auto read = parse_shard(options.text("shard"), option("shard"));
    if (!read) return report(read.error(), console);
    shard = *read;
  }
  const std::string store = options.has("store") ? options.text("store") : store_beside(options.text("file"), shard);
  if (auto ok = outputs_stand_alone(files_of_sweep(options, store)); !ok) return report(ok.error(), console);
  if (options.has("merge")) {
    const auto complete = merge_parts(options, console);
    if (!complete) return report(complete.error(), console);
    const int status = report_from(store, options, console);
    return status == exit_done && !*complete ? exit_false : status;
  }
  const bool runs = options.has("file") && !options.has("export") && !options.has("query") && !options.flag("status");
  return runs ? run_file(options.text("file"), store, shard, options, console) : report_from(store, options, console);
}

}  // namespace podsim
