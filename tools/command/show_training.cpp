#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/csv.hpp"
#include "sim/base/units.hpp"
#include "tools/command/options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/report/training_report.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {
namespace {

constexpr std::int64_t most_sequences = std::int64_t{1} << 40;

OptionValue choice(std::vector<std::string> choices, std::string otherwise) {
  std::string name = fmt::format("{}", fmt::join(choices, "|"));
  return no_field({OptionValue::Kind::one, std::move(name), std::move(otherwise), nullptr, false, std::move(choices)});
}

/// Those that say what a step is; MaxText has keys for them.
const OptionGroup step_options{
    {"mesh", no_field(word("stage=2,fsdp=4", "1")), "sizes of the axes slice, stage, data, fsdp, row, col"},
    {"batch", no_field(word("N")), "sequences on all devices; left out: one per device"},
    {"batch-per-device", no_field(word("B")), "the same over the devices; may be a fraction"},
    {"microbatches", no_field(word("M", "1")), "of a step"},
    {"pipeline", no_field(word("NAME")), "the schedule of several stages: 1f1b"},
    {"virtual-stages", no_field(word("V", "1")), "stages on each rank"},
    {"remat", no_field(word("none|full|selected:LIST", "none")), "what the backward pass computes again"},
    {"scan", choice({"on", "off"}, "off"), "layers as a loop"},
    {"optimizer", choice({"adamw", "sgd"}, "adamw"), "and so its state"},
};

OptionGroup training_options() {
  return joined({{{"training", input_files("NAME|FILE.textproto"), "a model; with --maxtext: KEY=VALUE. Both without the option's name"},
                  {"maxtext", input_file("FILE.yml"), "a configuration of MaxText"},
                  {"chips", no_field(word("N")), "with --maxtext: the devices of a slice, for axes of -1"}},
                 step_options,
                 {{"pad", no_field(flag()), "round extents up to what the axes divide"},
                  {"live-forwards", no_field(word("N")), "forward passes of a virtual stage whose activations a rank holds at\nonce, as show pipeline has them; left out: all of them"},
                  {"attention-flops", choice({"whole", "causal"}, "whole"), "causal: half of the scores of causal attention"}},
                 output_options(table_json_csv)});
}

Expected<std::int64_t> read_batch(const Options& options, const TrainingMesh& mesh) {
  if (options.given("batch") && options.given("batch-per-device")) return Diagnostic{{}, "--batch and --batch-per-device say the same; expected one of them"};
  if (options.given("batch")) return options.integer("batch", 1, most_sequences);
  if (!options.given("batch-per-device")) return mesh.devices();
  const auto each = parse_number(options.text("batch-per-device"), option("batch-per-device"));
  if (!each) return each.error();
  const double all = *each * static_cast<double>(mesh.devices()), whole = std::round(all);
  if (!(whole >= 1 && whole <= static_cast<double>(most_sequences) && std::abs(all - whole) <= 1e-6 * whole))
    return Diagnostic{option("batch-per-device"), fmt::format("expected a whole number of sequences on {} devices, found {}", mesh.devices(), all)};
  return static_cast<std::int64_t>(whole);
}

Expected<TrainingStep> read_step(const Options& options) {
  const std::vector<std::string> names = options.texts("training");
  if (names.size() > 1) return Diagnostic{{}, "expected one model, found " + quoted(names[0]) + " and " + quoted(names[1])};
  const auto model = find_training_model(names.front());
  if (!model) return model.error();
  TrainingStep step;
  step.model = *model;
  const auto mesh = parse_training_mesh(options.text("mesh"), {option("mesh").file, 1, 1});
  if (!mesh) return mesh.error();
  step.mesh = *mesh;
  const auto batch = read_batch(options, step.mesh);
  if (!batch) return batch.error();
  step.batch = *batch;
  const auto microbatches = options.integer("microbatches", 1, most_sequences);
  if (!microbatches) return microbatches.error();
  step.microbatches = *microbatches;
  const auto virtual_stages = options.integer("virtual-stages", 1, most_sequences);
  if (!virtual_stages) return virtual_stages.error();
  step.virtual_stages = *virtual_stages;
  const auto remat = parse_remat(options.text("remat"), {option("remat").file, 1, 1});
  if (!remat) return remat.error();
  step.remat = *remat;
  if (options.has("pipeline")) step.pipeline = options.text("pipeline");
  step.scan = options.text("scan") == "on";
  step.optimizer = *optimizer_named(options.text("optimizer"));
  return step;
}

Expected<TrainingStep> read_configuration(const Options& options) {
  for (const OptionSpec& spec : step_options)
    if (options.given(spec.name)) return Diagnostic{option(spec.name), "MaxText's keys say this; expected KEY=VALUE"};
  MaxTextSystem system;
  if (options.has("chips")) {
    const auto chips = options.integer("chips", 1, most_training_devices);
    if (!chips) return chips.error();
    system.devices = *chips;
  }
  const std::string& file = options.text("maxtext");
  const auto text = read_file(file, config_limit);
  if (!text) return text.error();
  return read_maxtext(*text, file, options.texts("training"), system);
}

/// Problems of a step in terms of what was given: an option, a key of MaxText, or an extent of the model.
Diagnostic in_words_of(const Options& options, Diagnostic problem) {
  if (!problem.where.is_field) return problem;
  std::string name = problem.where.file;
  std::replace(name.begin(), name.end(), '_', '-');
  const bool is_option = !options.has("maxtext") && std::any_of(step_options.begin(), step_options.end(), [&](const OptionSpec& spec) { return spec.name == name; });
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

Expected<int> print_training(const Options& options, Console& console) {
  const Format format = format_of(options);
  if (!options.has("training") && !options.has("maxtext")) {
    for (const OptionSpec& spec : training_options())
      if (options.given(spec.long_name()) && spec.long_name() != "format" && spec.long_name() != "output" && spec.long_name() != "quiet")
        return Diagnostic{{}, "--" + spec.long_name() + " needs a model: podsim show training lists those shipped"};
    return print_output(options, list_models(format), console);
  }
  if (!options.has("maxtext") && options.has("chips")) return Diagnostic{option("chips"), "belongs to --maxtext; --mesh says the devices"};
  auto step = options.has("maxtext") ? read_configuration(options) : read_step(options);
  if (!step) return step.error();
  step->pad = options.flag("pad");
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
  return perform(arguments, training_options(), "show_training", console, &print_training, "training");
}

}  // namespace podsim
