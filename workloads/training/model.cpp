#include "workloads/training/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/invariant.hpp"
#include "sim/config/message_file.hpp"
#include "workloads/training/embedded_models.hpp"
#include "workloads/training/model_message.hpp"

namespace podsim {

namespace {

constexpr FileFormat model_format{"a training model", 0, 1};
constexpr std::int64_t largest_model_extent = std::int64_t{1} << 30;

static_assert(static_cast<int>(Norm::none) == proto::TrainingModel::none && static_cast<int>(Norm::rms) == proto::TrainingModel::rms &&
              static_cast<int>(Norm::layer) == proto::TrainingModel::layer);

DType read_dtype(const std::string& text, const char* field, MessageFile& file, const Place& root) {
  const auto dtype = dtype_named(text);
  if (dtype && is_real(*dtype)) return *dtype;
  file.problem(root.at(field), "expected bf16 or f32, found " + quoted(text));
  return DType::bf16;
}

TrainingModel read_model(const proto::TrainingModel& message, MessageFile& file, const Place& root) {
  TrainingModel model;
  model.name = message.name();
  if (model.name.empty()) file.problem(root.at("name"), "expected a name, found an empty text");
  model.description = message.description();
  model.layers = message.layers();
  model.width = message.width();
  model.heads = message.heads();
  model.kv_heads = message.has_kv_heads() ? message.kv_heads() : model.heads;
  model.head_dim = message.head_dim();
  if (!message.has_head_dim() && model.heads > 0) {
    model.head_dim = model.width / model.heads;
    if (model.width % model.heads != 0)
      file.problem(root.at("heads"), fmt::format("must divide the width {} where head_dim is left out, found {}", model.width, model.heads));
  }
  model.mlp = message.mlp();
  model.gated = message.gated();
  model.experts = message.experts();
  model.experts_per_token = message.experts_per_token();
  if (message.has_experts() && model.experts == 0) file.problem(root.at("experts"), "expected at least 1, found 0; leave it out for a model without a router");
  model.vocabulary = message.vocabulary();
  if (message.has_vocabulary() && model.vocabulary == 0)
    file.problem(root.at("vocabulary"), fmt::format("expected a whole number from 1 to {}, found 0; leave it out for a model without one", largest_model_extent));
  model.tied = message.tied();
  model.positions = message.positions();
  model.parallel = message.parallel();
  model.causal = message.causal();
  model.norm = static_cast<Norm>(message.norm());
  model.biases = message.biases();
  model.sequence = message.sequence();
  model.weights = read_dtype(message.weights(), "weights", file, root);
  model.gradients = read_dtype(message.gradients(), "gradients", file, root);
  model.activations = read_dtype(message.activations(), "activations", file, root);
  model.moments = read_dtype(message.moments(), "moments", file, root);
  model.master_weights = message.has_master_weights() ? message.master_weights() : model.weights == DType::bf16;
  return model;
}

}  // namespace

std::vector<Diagnostic> problems_of(const TrainingModel& model) {
  std::vector<Diagnostic> problems;
  const auto problem = [&](const char* field, std::string message) { problems.push_back({of_field(field), std::move(message)}); };
  const auto extent = [&](const char* field, std::int64_t value, std::int64_t low) {
    if (value < low || value > largest_model_extent)
      problem(field, fmt::format("expected a whole number from {} to {}, found {}", low, largest_model_extent, value));
  };
  extent("layers", model.layers, 1);
  extent("width", model.width, 1);
  const bool attends = model.heads != 0;
  extent("heads", model.heads, 0);
  if (attends) extent("kv_heads", model.kv_heads, 1), extent("head_dim", model.head_dim, 1);
  else if (model.kv_heads != 0) problem("kv_heads", fmt::format("expected 0, as `heads` says, found {}", model.kv_heads));
  extent("mlp", model.mlp, 1);
  extent("experts", model.experts, 0);
  extent("experts_per_token", model.experts_per_token, model.experts > 0 ? 1 : 0);
  extent("vocabulary", model.vocabulary, 0);
  extent("positions", model.positions, 0);
  extent("sequence", model.sequence, 1);
  if (!problems.empty()) return problems;
  // Counts below are sums of a few such products: bounded together, none of them leaves 64 bits.
  const double layer = static_cast<double>(model.width) * (4.0 * static_cast<double>(model.heads) * static_cast<double>(model.head_dim) + 4.0 * static_cast<double>(std::max<std::int64_t>(model.experts, 1)) * static_cast<double>(model.mlp) + static_cast<double>(model.experts));
  const double ends = static_cast<double>(model.width) * static_cast<double>(2 * model.vocabulary + model.positions);
  if (static_cast<double>(model.layers) * layer + ends > 1e17) problem("layers", "expected a model of at most 1e17 parameters, found more");
  if (attends && model.heads % model.kv_heads != 0) problem("kv_heads", fmt::format("must divide the {} heads, found {}", model.heads, model.kv_heads));
  if (model.experts_per_token > model.experts)
    problem("experts_per_token", model.experts == 0 ? fmt::format("needs experts, found {}", model.experts_per_token)
                                                    : fmt::format("expected at most the {} experts, found {}", model.experts, model.experts_per_token));
  if (model.experts > 0 && model.parallel) problem("parallel", "expected layers whose MLP reads attention's output, as those with experts do");
  if (model.tied && model.vocabulary == 0) problem("tied", "needs a vocabulary, whose embedding gives the logits");
  if (model.positions > 0 && model.positions < model.sequence)
    problem("positions", fmt::format("expected at least the {} of the sequence, found {}", model.sequence, model.positions));
  return problems;
}

TransformerBlock layer_of(const TrainingModel& model, std::int64_t sequences, std::int64_t layers) {
  TransformerBlock block;
  block.name = model.name;
  block.hidden = model.width;
  block.attention = model.heads > 0;
  block.heads = model.heads;
  block.kv_heads = model.kv_heads;
  block.head_dim = model.head_dim;
  block.ff = model.mlp;
  block.experts = model.experts;
  block.experts_per_token = model.experts_per_token;
  block.gated = model.gated;
  block.causal = model.causal;
  block.norm = model.norm;
  block.sequence = model.sequence;
  block.batch = sequences;
  block.layers = layers;
  block.dtype = model.activations;
  const auto element = [](DType dtype) { return static_cast<double>(size_of(dtype).count()); };
  block.optimizer_bytes = 2 * element(model.moments) + (model.master_weights ? element(DType::f32) : 0);
  return block;
}

std::vector<Stage> layer_stages(const TrainingModel& model, std::int64_t sequences) {
  auto workload = workload_of(layer_of(model, sequences), 1);
  PODSIM_ASSERT(workload);
  std::vector<Stage> stages = std::move(workload->stages);
  if (model.parallel) std::erase_if(stages, [](const Stage& stage) { return stage.name == "norm2" || stage.name == "residual1"; });
  return stages;
}

TrainingModel training_model_of(const proto::TrainingModel& message, MessageFile& file, const Place& place) {
  if (message.format_version() != model_format.version)
    file.problem(place.at("format_version"), fmt::format("expected {}, the version of {}, found {}", model_format.version, model_format.noun, message.format_version()));
  const bool was_ok = file.ok();
  TrainingModel model = read_model(message, file, place);
  if (was_ok && file.ok())
    for (const Diagnostic& problem : problems_of(model)) file.problem(place.at(problem.where.file.c_str()), problem.message);
  return model;
}

Expected<TrainingModel> read_training_model(std::string_view text, const std::string& file) {
  proto::TrainingModel message;
  MessageFile parsed{model_format, file, message};
  if (!parsed.parse(text)) return parsed.error();
  TrainingModel model = training_model_of(message, parsed, Place{});
  if (!parsed.ok()) return parsed.error();
  return model;
}

std::string write_training_model(const TrainingModel& model) {
  proto::TrainingModel message;
  message.set_format_version(model_format.version);
  message.set_name(model.name);
  if (!model.description.empty()) message.set_description(model.description);
  message.set_layers(model.layers);
  message.set_width(model.width);
  message.set_heads(model.heads);
  if (model.kv_heads != model.heads) message.set_kv_heads(model.kv_heads);
  if (model.head_dim * model.heads != model.width) message.set_head_dim(model.head_dim);
  message.set_mlp(model.mlp);
  if (model.gated) message.set_gated(true);
  if (model.experts > 0) message.set_experts(model.experts), message.set_experts_per_token(model.experts_per_token);
  if (model.vocabulary > 0) message.set_vocabulary(model.vocabulary);
  if (model.tied) message.set_tied(true);
  if (model.positions > 0) message.set_positions(model.positions);
  if (model.parallel) message.set_parallel(true);
  if (!model.causal) message.set_causal(false);
  message.set_norm(static_cast<proto::TrainingModel::Norm>(model.norm));
  if (model.biases) message.set_biases(true);
  message.set_sequence(model.sequence);
  if (model.weights != DType::bf16) message.set_weights(std::string{name_of(model.weights)});
  if (model.gradients != DType::bf16) message.set_gradients(std::string{name_of(model.gradients)});
  if (model.activations != DType::bf16) message.set_activations(std::string{name_of(model.activations)});
  if (model.moments != DType::f32) message.set_moments(std::string{name_of(model.moments)});
  if (model.master_weights != (model.weights == DType::bf16)) message.set_master_weights(model.master_weights);
  return to_textproto(message);
}

std::vector<std::string> shipped_training_models() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_training_models()) names.emplace_back(file.name);
  std::sort(names.begin(), names.end());
  return names;
}

Expected<TrainingModel> find_training_model(const std::string& name) {
  for (const EmbeddedFile& file : embedded_training_models())
    if (file.name == name) return read_training_model(file.text, "workloads/training/models/" + name + ".textproto");
  std::error_code none;
  if (name.find('/') != std::string::npos || name.ends_with(".textproto") || std::filesystem::is_regular_file(name, none)) {
    const auto text = read_file(name, config_limit);
    if (!text) return text.error();
    return read_training_model(*text, name);
  }
  const std::vector<std::string> names = shipped_training_models();
  return Diagnostic{{}, "there is no model " + quoted(name) + did_you_mean(name, names) + fmt::format("; shipped are {}, or give a textproto file", fmt::join(names, ", "))};
}

}  // namespace podsim
