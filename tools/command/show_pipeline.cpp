#include <climits>

#include <fmt/format.h>

#include "tools/command/options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/report/pipeline_chart.hpp"
#include "tools/report/pipeline_report.hpp"

namespace podsim {
namespace {

OptionGroup pipeline_options() {
  OptionGroup described = joined(
      {{{"schedule", no_field({.kind = OptionValue::Kind::one, .name = "NAME", .form = Form::name, .names = scenario_field("pipeline")->names}), "the order of the work of every rank, as the list above has it"},
        {"stages", no_field(word("S")), "stages of the model, each a run of consecutive layers"},
        {"ranks", no_field(word("D")), "groups of devices; left out: as many as stages, with dual-pipe-v half"},
        {"microbatches", no_field(word("m")), "of one step"},
        {"fuse-steady-state", no_field(flag()), "interleaved-1f1b, kimi-k2: fuse each forward of the steady state with the backward behind it"},
        {"full", no_field(flag()), "what stands before and after the loop, every transfer and deletion, and where parameters and scalars live"},
        {"layers", no_field(word("L")), "with --full: layers of the model; left out: one per stage"},
        {"chart", no_field(flag()), "when each rank does what, instead of the lists"}},
       output_options(table_json_csv)});
  for (OptionSpec& spec : described)
    if (spec.long_name() == "output") spec.help += "; FILE.svg and FILE.png are pictures";
  return described;
}

/// An option that must be there; any integer, so that the library says which ones it takes.
Expected<int> count_of(const Options& options, const std::string& name, const std::string& example) {
  if (!options.has(name)) return Diagnostic{{}, "--" + name + " is needed: --" + name + " " + example};
  const auto count = options.integer(name, INT_MIN, INT_MAX);
  if (!count) return count.error();
  return static_cast<int>(*count);
}

Expected<PipelineSpec> read_pipeline(const Options& options) {
  if (!options.has("schedule")) return Diagnostic{{}, "--schedule is needed: --schedule 1f1b"};
  const auto schedule = pipeline_schedule_named(options.text("schedule"), option("schedule"));
  if (!schedule) return schedule.error();
  const auto stages = count_of(options, "stages", "4");
  if (!stages) return stages.error();
  const auto microbatches = count_of(options, "microbatches", "8");
  if (!microbatches) return microbatches.error();
  const bool halved = *schedule == PipelineSchedule::dual_pipe_v;
  const auto ranks = options.has("ranks") ? count_of(options, "ranks", "4") : Expected<int>{halved ? (*stages + 1) / 2 : *stages};
  if (!ranks) return ranks.error();
  return PipelineSpec{*schedule, *stages, *ranks, *microbatches, options.flag("fuse-steady-state")};
}

Expected<int> print_pipeline(const Options& options, Console& console) {
  const auto spec = read_pipeline(options);
  if (!spec) return spec.error();
  const bool full = options.flag("full"), chart = options.flag("chart");
  if (options.has("layers") && !full) return Diagnostic{option("layers"), "expected --full beside it"};
  Expected<int> layers = full ? options.has("layers") ? count_of(options, "layers", "8") : Expected<int>{spec->stages} : Expected<int>{0};
  if (!layers) return layers.error();
  const std::string file = options.has("output") ? options.text("output") : "";
  const bool svg = file.ends_with(".svg"), png = file.ends_with(".png");
  const Format format = format_of(options);
  if ((svg || png) && (format != Format::table || full))
    return Diagnostic{option("output"), fmt::format("expected a picture or --{}, got both", full ? "full" : "format " + options.text("format"))};
  if (chart && format != Format::table)
    return Diagnostic{option("chart"), fmt::format("expected a chart or --format {}, got both", options.text("format"))};
  const auto shown = shown_pipeline(*spec, full ? std::optional{*layers} : std::nullopt);
  if (!shown) return shown.error();

  Expected<std::string> text = std::string{};
  const std::string title = pipeline_title(*spec);
  if (svg || png) {
    const std::string described = fmt::format("{}: {} units, bubble {}", title, shown->times.makespan, percent(shown->times.bubble_fraction));
    text = svg ? pipeline_svg(shown->times, described) : pipeline_png(shown->times, described);
  } else if (format == Format::json) {
    text = pipeline_json(*shown);
  } else if (format == Format::csv) {
    text = pipeline_csv(*shown);
  } else {
    const bool to_console = file.empty();
    text =
        chart ? pipeline_chart(*spec, shown->times, to_console && console.colours, to_console ? console.columns : 0) : pipeline_lines(shown->lists);
    if (text) text = title + "\n\n" + *text + pipeline_figures(*shown);
  }
  if (!text) return text.error();
  return print_output(options, *text, console);
}

}  // namespace

int show_pipeline(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, pipeline_options(), "show_pipeline", console, &print_pipeline);
}

}  // namespace podsim
