#include "workloads/training/step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr std::array mesh_sizes{&TrainingMesh::slice, &TrainingMesh::stage, &TrainingMesh::data, &TrainingMesh::fsdp, &TrainingMesh::expert, &TrainingMesh::row, &TrainingMesh::col};
static_assert(mesh_sizes.size() == training_axes.size());
constexpr std::array<std::string_view, 2> optimizer_names{"adamw", "sgd"};
constexpr std::string_view host_suffix = "@host";

std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

/// The names that a list of saved stages may hold, in the order of a layer. The output of the last stage is the input of the next layer.
std::vector<std::string> savable_stages() {
  TrainingModel model;
  model.layers = model.width = model.heads = model.kv_heads = model.head_dim = model.mlp = model.sequence = model.experts = model.experts_per_token = 1;
  std::vector<std::string> names;
  for (const Stage& stage : layer_stages(model)) names.push_back(stage.name);
  names.pop_back();
  return names;
}

/// The place of a piece of a text whose first character is at `where`; a place without columns stays as it is.
SourceLocation moved(SourceLocation where, std::size_t by) {
  if (where.column > 0) where.column += static_cast<int>(by);
  return where;
}

Expected<std::vector<SavedStage>> parse_saved(std::string_view list, const SourceLocation& where) {
  const std::vector<std::string> known = savable_stages();
  std::vector<SavedStage> saved(known.size());
  std::size_t at = 0;
  for (const std::string& piece : split(list)) {
    const bool on_host = std::string_view{piece}.ends_with(host_suffix);
    const std::string name = on_host ? piece.substr(0, piece.size() - host_suffix.size()) : piece;
    const auto found = std::find(known.begin(), known.end(), name);
    const SourceLocation place = moved(where, at);
    if (found == known.end())
      return Diagnostic{place, fmt::format("expected stages of a layer, {} (with {} kept there), found {}{}", fmt::join(known, ", "), host_suffix, quoted(name), did_you_mean(name, known))};
    SavedStage& slot = saved[static_cast<std::size_t>(found - known.begin())];
    if (!slot.name.empty()) return Diagnostic{place, "expected every stage once, found " + quoted(name) + " again"};
    slot = {name, on_host};
    at += piece.size() + 1;
  }
  std::erase_if(saved, [](const SavedStage& stage) { return stage.name.empty(); });
  return saved;
}

/// No less than the bytes of all activations and logits of a step on all devices: counts of bytes stay within 64 bits where it does.
double bytes_of_everything(const TrainingStep& step) {
  const TrainingModel& model = step.model;
  double features = 8 * static_cast<double>(model.width);
  for (const Stage& stage : layer_stages(model)) features += static_cast<double>(stage.tokens / model.sequence) * (static_cast<double>(stage.inputs) + static_cast<double>(stage.outputs));
  return 8 * static_cast<double>(step.tokens()) * (static_cast<double>(model.layers) * features + static_cast<double>(model.vocabulary));
}

/// What a step must be before its extents are looked at.
std::vector<Diagnostic> basic_problems(const TrainingStep& step) {
  std::vector<Diagnostic> problems = problems_of(step.model);
  const auto problem = [&](const char* field, std::string message) { problems.push_back({of_field(field), std::move(message)}); };
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const auto count = [&](const char* field, std::int64_t value) {
    if (value < 1 || value > most) problem(field, fmt::format("expected a whole number from 1 to {}, found {}", most, value));
  };
  count("batch", step.batch);
  count("microbatches", step.microbatches);
  count("virtual_stages", step.virtual_stages);
  count("loss_chunks", step.loss_chunks);
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < mesh_sizes.size(); ++a) {
    const std::int64_t size = step.mesh.*mesh_sizes[a];
    if (size < 1 || size > most_training_devices) problem("mesh", fmt::format("expected {} from 1 to {}, found {}", training_axes[a], most_training_devices, size));
    else if (devices <= most_training_devices) devices *= size;
  }
  if (devices > most_training_devices) problem("mesh", fmt::format("expected at most {} devices, found more", most_training_devices));
  if (!problems.empty()) return problems;
  // Twice the tokens, as padding less than doubles them where each part has a sequence.
  if (step.batch > most / step.model.sequence || step.microbatches > most / step.mesh.batch_parts() / step.model.sequence)
    problem("batch", fmt::format("expected at most 2^40 tokens, found {} sequences of {} in {} microbatches", step.batch, step.model.sequence, step.microbatches));
  if (step.mesh.stage > 1 && step.pipeline.empty()) problem("pipeline", fmt::format("{} stages need the name of a schedule", step.mesh.stage));
  if (step.mesh.stage == 1 && step.virtual_stages > 1)
    problem("virtual_stages", fmt::format("expected 1 with one stage, found {}", step.virtual_stages));
  std::vector<std::string> names;
  for (const Stage& stage : layer_stages(step.model)) names.push_back(stage.name);
  for (const SavedStage& saved : step.remat.saved)
    if (std::find(names.begin(), names.end(), saved.name) == names.end())
      problem("remat", fmt::format("{} has no stage {}, it has {}", step.model.name, quoted(saved.name), fmt::join(names, ", ")));
  return problems;
}

/// Rounds extents up, and notes each that it changes.
class Divider {
 public:
  explicit Divider(const TrainingStep& step) : result_{step, {}} {}

  void divide_all() {
    TrainingStep& step = result_.step;
    TrainingModel& model = step.model;
    const TrainingMesh& mesh = step.mesh;
    const std::int64_t both = std::lcm(mesh.row, mesh.col);
    const std::int64_t layers = mesh.stage * step.virtual_stages;
    if (model.layers % layers != 0)
      problems_.push_back({of_field("layers"), fmt::format("expected a multiple of {} (stage={} x virtual_stages={}), found {}; the next is {}", layers, mesh.stage,
                                                            step.virtual_stages, model.layers, rounded_up(model.layers, layers))});
    divide("batch", step.batch, step.microbatches * mesh.batch_parts(),
           fmt::format("microbatches={}{}", step.microbatches, axes({"slice", "data", "fsdp", "expert", "row"})));
    if (result_.step.model.heads > 0) divide_heads();
    const bool by_data = step.optimizer_shards() > 1;
    divide("width", model.width, step.optimizer_shards() * mesh.fsdp * mesh.expert * both, by_data ? axes({"data", "fsdp", "expert", "row", "col"}) : axes({"fsdp", "expert", "row", "col"}));
    if (mesh.expert > 1 && (model.experts == 0 || model.experts % mesh.expert != 0))
      problems_.push_back({of_field("mesh"), fmt::format("expected experts that expert={} divides, found {}", mesh.expert, model.experts == 0 ? "none" : std::to_string(model.experts))});
    divide("mlp", model.mlp, both, axes({"row", "col"}));
    if (model.vocabulary > 0) divide("vocabulary", model.vocabulary, mesh.col, axes({"col"}));
  }

  Expected<DividedStep> result() && {
    if (problems_.empty()) problems_ = problems_of(result_.step.model);  // rounding up may have made it too large
    if (problems_.empty() && bytes_of_everything(result_.step) > 4e18)
      problems_.push_back({of_field("batch"), "expected a step whose activations without rematerialisation are below 4 exabytes, found more"});
    if (problems_.empty()) return std::move(result_);
    Diagnostic all = problems_.front();
    for (std::size_t p = 1; p < problems_.size(); ++p) all.message += fmt::format("\n`{}`: {}", problems_[p].where.file, problems_[p].message);
    return all;
  }

 private:
  /// Those of `names` larger than 1: " x fsdp=4 x row=2"
  [[nodiscard]] std::string axes(std::initializer_list<std::string_view> names) const {
    std::string text;
    for (const std::string_view name : names)
      if (const std::int64_t size = size_of(result_.step.mesh, name); size > 1) text += fmt::format(" x {}={}", name, size);
    return text;
  }

  void divide(const char* field, std::int64_t& extent, std::int64_t by, std::string_view why) {
    if (extent % by == 0) return;
    const std::int64_t to = rounded_up(extent, by);
    if (why.starts_with(" x ")) why.remove_prefix(3);
    if (result_.step.pad)
      round(field, extent, to);
    else
      problems_.push_back({of_field(field), fmt::format("expected a multiple of {} ({}), found {}; the next is {}, or `pad`", by, why, extent, to)});
  }

  void round(const char* field, std::int64_t& extent, std::int64_t to) {
    const auto same = std::find_if(result_.paddings.begin(), result_.paddings.end(), [&](const Padding& p) { return p.extent == field; });
    if (same == result_.paddings.end()) result_.paddings.push_back({field, extent, to});
    else same->to = to;
    extent = to;
  }

  /// Each device along col has whole groups of heads; with fewer of keys and values than devices, several have the same (attention_groups()). The
  /// features of all heads are divided by row too.
  void divide_heads() {
    TrainingModel& model = result_.step.model;
    const std::int64_t col = result_.step.mesh.col, both = std::lcm(result_.step.mesh.row, col), of_features = both / std::gcd(both, model.head_dim);
    const std::string why = axes({"row", "col"});
    if (model.kv_heads == model.heads) {
      divide("heads", model.heads, std::lcm(col, of_features), why);
      model.kv_heads = model.heads;
      return;
    }
    if (model.kv_heads % col != 0 && col % model.kv_heads != 0) {
      const std::int64_t group = model.heads / model.kv_heads;
      divide("kv_heads", model.kv_heads, col, why);
      if (!result_.step.pad) return;
      round("heads", model.heads, model.kv_heads * group);
    }
    const std::int64_t groups = std::lcm(model.kv_heads, of_features);
    divide("heads", model.heads, col % model.kv_heads == 0 ? std::lcm(groups, col) : groups, why);
  }

  DividedStep result_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::string_view training_axis(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> others{
      {{"pp", "stage"}, {"pipeline", "stage"}, {"dp", "data"}, {"ep", "expert"}, {"tp", "col"}, {"tensor", "col"}, {"model", "col"}}};
  const auto found = std::ranges::find(others, name, &std::pair<std::string_view, std::string_view>::first);
  return found == others.end() ? name : found->second;
}

std::int64_t size_of(const TrainingMesh& mesh, std::string_view axis) {
  const auto found = std::find(training_axes.begin(), training_axes.end(), axis);
  PODSIM_ASSERT(found != training_axes.end());
  return mesh.*mesh_sizes[static_cast<std::size_t>(found - training_axes.begin())];
}

Expected<TrainingMesh> parse_training_mesh(std::string_view text, const SourceLocation& where) {
  TrainingMesh mesh;
  if (text == "1") return mesh;
  std::array<bool, training_axes.size()> given{};
  const std::vector<std::string> names(training_axes.begin(), training_axes.end());
  std::size_t at = 0;
  for (const std::string& piece : split(text)) {
    const SourceLocation place = moved(where, at);
    const std::size_t equals = std::min(piece.find('='), piece.size());
    const std::string name = piece.substr(0, equals);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || equals == piece.size())
      return Diagnostic{place, fmt::format("expected sizes of the axes {}, as in stage=2,fsdp=4, found {}{}", fmt::join(names, ", "), quoted(piece),
                                           found == names.end() ? did_you_mean(name, names) : "")};
    const auto axis = static_cast<std::size_t>(found - names.begin());
    if (given[axis]) return Diagnostic{place, fmt::format("expected every axis once, found {} again", name)};
    given[axis] = true;
    const auto size = parse_integer(std::string_view{piece}.substr(equals + 1), 1, most_training_devices, moved(place, equals + 1));
    if (!size) return size.error();
    mesh.*mesh_sizes[axis] = *size;
    std::int64_t devices = 1;
    for (const auto member : mesh_sizes)
      if (devices <= most_training_devices) devices *= mesh.*member;
    if (devices > most_training_devices) return Diagnostic{place, fmt::format("expected at most {} devices, found more", most_training_devices)};
    at += piece.size() + 1;
  }
  return mesh;
}

std::string to_text(const TrainingMesh& mesh) {
  std::vector<std::string> pieces;
  for (std::size_t a = 0; a < mesh_sizes.size(); ++a)
    if (mesh.*mesh_sizes[a] != 1) pieces.push_back(fmt::format("{}={}", training_axes[a], mesh.*mesh_sizes[a]));
  return pieces.empty() ? "1" : fmt::format("{}", fmt::join(pieces, ","));
}

Expected<Remat> parse_remat(std::string_view text, const SourceLocation& where) {
  constexpr std::string_view selected = "selected:";
  if (text == "none") return Remat{Remat::Kind::none, {}};
  if (text == "full") return Remat{Remat::Kind::full, {}};
  if (text == "layer") return Remat{Remat::Kind::layer, {}};
  if (!text.starts_with(selected)) return Diagnostic{where, "expected none, full, layer or selected:STAGE,..., found " + quoted(text)};
  auto saved = parse_saved(text.substr(selected.size()), moved(where, selected.size()));
  if (!saved) return saved.error();
  return Remat{Remat::Kind::selected, std::move(*saved)};
}

std::string to_text(const Remat& remat) {
  if (remat.kind == Remat::Kind::none) return "none";
  if (remat.kind == Remat::Kind::full) return "full";
  if (remat.kind == Remat::Kind::layer) return "layer";
  std::string text = "selected:";
  for (const SavedStage& stage : remat.saved) text += (text.back() == ':' ? "" : ",") + stage.name + std::string{stage.on_host ? host_suffix : ""};
  return text;
}

std::string_view name_of(Optimizer optimizer) { return optimizer_names[static_cast<std::size_t>(optimizer)]; }

std::optional<Optimizer> optimizer_named(std::string_view name) {
  const auto found = std::find(optimizer_names.begin(), optimizer_names.end(), name);
  if (found == optimizer_names.end()) return std::nullopt;
  return static_cast<Optimizer>(found - optimizer_names.begin());
}

Expected<DividedStep> divided(const TrainingStep& step) {
  const std::vector<Diagnostic> problems = basic_problems(step);
  if (!problems.empty()) {
    Diagnostic all = problems.front();
    for (std::size_t p = 1; p < problems.size(); ++p) all.message += fmt::format("\n`{}`: {}", problems[p].where.file, problems[p].message);
    return all;
  }
  Divider divider{step};
  divider.divide_all();
  return std::move(divider).result();
}

}  // namespace podsim
