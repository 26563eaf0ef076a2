#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/csv.hpp"
#include "sim/base/units.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/report/training_report.hpp"

namespace podsim {
namespace {

OptionValue choice(std::vector<std::string> choices, std::string otherwise) {
  std::string name = fmt::format("{}", fmt::join(choices, "|"));
  return no_field({OptionValue::Kind::one, std::move(name), std::move(otherwise), nullptr, false, std::move(choices)});
}

OptionGroup shown_options() {
  return joined({field_options({FieldKind::Group::training, FieldKind::Group::model}),
                 {{"mesh", no_field(written_as(Form::mesh, word("stage=2,fsdp=4", "1"))), "sizes of the axes slice, stage, data, fsdp, expert, row, col"},
                  {"chips", no_field(word("N")), "with --maxtext: the devices of a slice, for axes of -1"},
                  {"batch", word("N"), "sequences on all devices; left out: one per device"},
                  {"pad", flag(), "round extents up to what the axes divide"},
                  {"live-forwards", no_field(word("N")), "forward passes of a virtual stage whose activations a rank holds at once, as show pipeline has them; left out: all of them"},
                  {"attention-flops", choice({"whole", "causal"}, "whole"), "causal: half of the scores of causal attention"}},
                 output_options(table_json_csv)});
}

Expected<TrainingStep> read_shown_step(const Options& options) {
  MaxTextSystem system;
  if (options.has("maxtext") && options.given("mesh")) return Diagnostic{option("mesh"), "MaxText's keys say this; expected KEY=VALUE"};
  if (options.has("chips")) {
    const auto chips = options.integer("chips", 1, most_training_devices);
    if (!chips) return chips.error();
    system.devices = *chips;
  }
  const auto mesh = parse_training_mesh(options.text("mesh"), option("mesh"));
  if (!mesh) return mesh.error();
  return read_training_step(fields_of(options), *mesh, system);
}

/// Problems of a step in terms of what was given: an option, a key of MaxText, or an extent of the model.
Diagnostic in_words_of(const Options& options, Diagnostic problem) {
  if (!problem.where.is_field) return problem;
  std::string name = problem.where.file;
  std::replace(name.begin(), name.end(), '_', '-');
  const OptionGroup described = shown_options();
  const bool is_option = !options.has("maxtext") && std::any_of(described.begin(), described.end(), [&](const OptionSpec& spec) { return spec.name == name; });
  if (!is_option) problem.message = problem.where.file + ": " + problem.message;
  problem.where = is_option ? option(name) : SourceLocation{};
  return problem;
}

std::string list_models(Format format) {
  std::vector<std::vector<std::string>> rows{{"model", "parameters", "description"}};
  for (const std::string& name : shipped_training_models()) {
    TrainingStep step;
    step.model = *find_training_model(name);
    const std::int64_t parameters = counts_of(step).parameters();
    rows.push_back({name, format == Format::table ? parameters_text(parameters) : std::to_string(parameters), step.model.description});
  }
  if (format == Format::table) return table(rows, 3);
  std::string text;
  Json json = Json::array();
  for (const auto& row : rows) text += csv_row(row);
  for (std::size_t r = 1; r < rows.size(); ++r)
    json.push_back(Json{{"name", rows[r][0]}, {"parameters", static_cast<std::int64_t>(std::stoll(rows[r][1]))}, {"description", rows[r][2]}});
  return format == Format::csv ? text : Json{{"models", std::move(json)}}.dump(2) + "\n";
}

/// A file to be edited, and given to --training; the step, its mesh and its options are not part of it.
bool writes_model(const Options& options) { return options.has("output") && options.text("output").ends_with(".textproto"); }

Expected<int> print_training(const Options& options, Console& console) {
  const Format format = format_of(options);
  if (!options.has("training") && !options.has("maxtext")) {
    if (writes_model(options)) return Diagnostic{option("output"), "a model file is written of --training or --maxtext, which are missing"};
    for (const OptionSpec& spec : shown_options())
      if (options.given(spec.long_name()) && spec.long_name() != "format" && spec.long_name() != "output" && spec.long_name() != "quiet")
        return Diagnostic{{}, "--" + spec.long_name() + " needs a model: podsim show training lists those shipped"};
    return print_output(options, list_models(format), console);
  }
  if (!options.has("maxtext") && options.has("chips")) return Diagnostic{option("chips"), "belongs to --maxtext; --mesh says the devices"};
  const auto step = read_shown_step(options);
  if (!step) return step.error();
  if (writes_model(options)) return print_output(options, write_training_model(step->model), console);
  const auto whole = divided(*step);
  if (!whole) return in_words_of(options, whole.error());
  TrainingReport report{*step, *whole, options.text("attention-flops") == "causal" ? AttentionFlops::causal : AttentionFlops::whole, std::nullopt};
  if (options.has("live-forwards")) {
    const auto live = options.integer("live-forwards", 1, step->mesh.stage == 1 ? 1 : step->microbatches * step->virtual_stages);
    if (!live) return live.error();
    report.live_forwards = *live;
  }
  const std::string text = format == Format::json ? training_json(report).dump(2) + "\n" : format == Format::csv ? training_csv(report) : training_table(report);
  return print_output(options, text, console);
}

}  // namespace

int show_training(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, shown_options(), "show_training", console, &print_training, "training");
}

}  // namespace podsim
