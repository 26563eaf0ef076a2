#include "workloads/training/maxtext.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/text.hpp"
#include "workloads/training/maxtext_keys.hpp"
#include "workloads/training/maxtext_models.hpp"
#include "workloads/training/maxtext_remat.hpp"
#include "workloads/training/yaml_entries.hpp"

namespace podsim {

namespace {

constexpr std::int64_t largest_value = std::int64_t{1} << 30;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::optional<double> number_in(std::string text) {
  std::erase(text, '_');  // YAML 1.1 lets them group digits
  if (text.starts_with('+')) text.erase(0, 1);
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// A value as fixed keys have it: null and None alike, numbers and flags in one spelling.
std::string normalised(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::list) return value.items.empty() ? "[]" : fmt::format("[{}]", fmt::join(value.items, ", "));
  if (value.kind == YamlValue::Kind::other) return "{...}";
  std::string text = lower(value.text);
  if (text == "null" || text == "~") text = "none";
  if (const auto number = number_in(text)) return fmt::format("{}", *number);
  return text;
}

std::string told(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::scalar) return quoted(value.text);
  return value.kind == YamlValue::Kind::list ? fmt::format("a list of {}", value.items.size()) : "a mapping or a nested list";
}

/// The values of a configuration, by key. Problems are collected.
class Configuration {
 public:
  /// Errors: keys that may not be given.
  void set(const std::string& key, const SourceLocation& key_place, YamlValue value, bool override) {
    switch (use_of_key(key)) {
      case KeyUse::harmless: return;
      case KeyUse::sharding_rules:
        if (override) problem(key_place, key + " cannot be overridden: podsim shards as MaxText's own rules say");
        return;
      case KeyUse::fixed: return check_fixed(fixed_key(key), value);
      case KeyUse::unknown: return problem(key_place, "expected a key of MaxText, found " + quoted(key) + did_you_mean(key, known_keys()) +
                                                           "; unknown keys may change the computation");
      case KeyUse::read:
        if (override) overridden_.insert(key);
        values_[key] = std::move(value);
    }
  }
  /// Takes the keys of the model that model_name says, if it says one: those of a configuration give way to them, as in MaxText. Returns its description. Errors: no
  /// such model; a key that an override has otherwise, unless override_model_config is true, with which it stays.
  std::string take_named_model() {
    const YamlValue name = value("model_name");
    if (name.kind == YamlValue::Kind::scalar && name.text == "default") return "";
    const auto model = maxtext_model(name.kind == YamlValue::Kind::scalar ? name.text : "");
    if (!model) {
      problem(name.where, fmt::format("expected model_name to be default or one of {}, found {}{}", fmt::join(maxtext_model_names(), ", "), told(name), did_you_mean(name.text, maxtext_model_names())));
      return "";
    }
    const bool overrides_stay = flag("override_model_config");
    for (const auto& [key, text] : model->values) {
      YamlValue own = *read_yaml_value(text, {});
      own.where = name.where;
      if (overridden_.contains(key)) {
        if (!overrides_stay && normalised(value(key)) != normalised(own))
          problem(where(key), fmt::format("expected {} to be {} as in {}, found {}; override_model_config=true lets it differ", key, text, name.text, told(value(key))));
      } else {
        values_[key] = std::move(own);
      }
    }
    return model->description;
  }

  [[nodiscard]] bool given(const std::string& key) const { return values_.contains(key); }
  [[nodiscard]] YamlValue value(const std::string& key) const {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    YamlValue fallback = *read_yaml_value(default_of_key(key), {});
    fallback.where = {};  // said nowhere
    return fallback;
  }
  [[nodiscard]] SourceLocation where(const std::string& key) const { return value(key).where; }

  std::int64_t integer(const std::string& key, std::int64_t low, std::int64_t high = largest_value) {
    const YamlValue found = value(key);
    const auto number = found.kind == YamlValue::Kind::scalar ? number_in(found.text) : std::nullopt;
    if (number && *number == std::floor(*number) && *number >= static_cast<double>(low) && *number <= static_cast<double>(high)) return static_cast<std::int64_t>(*number);
    problem(found.where, fmt::format("expected {} to be a whole number from {} to {}, found {}", key, low, high, told(found)));
    return std::max<std::int64_t>(low, 1);
  }
  /// A count, or nothing for -1.
  std::optional<std::int64_t> count_or_rest(const std::string& key, std::int64_t high = largest_value) {
    if (normalised(value(key)) == "-1") return std::nullopt;
    const YamlValue found = value(key);
    const auto number = found.kind == YamlValue::Kind::scalar ? number_in(found.text) : std::nullopt;
    if (number && *number == std::floor(*number) && *number >= 1 && *number <= static_cast<double>(high)) return static_cast<std::int64_t>(*number);
    problem(found.where, fmt::format("expected {} to be -1 or a whole number from 1 to {}, found {}", key, high, told(found)));
    return 1;
  }
  double positive(const std::string& key) {
    const YamlValue found = value(key);
    const auto number = found.kind == YamlValue::Kind::scalar ? number_in(found.text) : std::nullopt;
    if (number && *number > 0 && *number <= static_cast<double>(largest_value)) return *number;
    problem(found.where, fmt::format("expected {} to be a number above 0, found {}", key, told(found)));
    return 1;
  }
  bool flag(const std::string& key) {
    const std::string text = normalised(value(key));
    if (text != "true" && text != "false") problem(where(key), fmt::format("expected {} to be true or false, found {}", key, told(value(key))));
    return text == "true";
  }
  /// One of `words`, by position; "" stands for nothing and for null.
  std::size_t word(const std::string& key, std::initializer_list<std::string_view> words) {
    const YamlValue found = value(key);
    const std::string text = found.text == "None" || found.text == "null" ? "" : found.text;
    const auto at = std::find(words.begin(), words.end(), text);
    if (found.kind == YamlValue::Kind::scalar && at != words.end()) return static_cast<std::size_t>(at - words.begin());
    std::vector<std::string> names;
    for (const std::string_view name : words) names.push_back(name.empty() ? "nothing" : std::string{name});
    problem(found.where, fmt::format("expected {} to be {}, found {}", key, fmt::join(names, " or "), told(found)));
    return 0;
  }

  void problem(SourceLocation where, std::string message) { problems_.push_back({std::move(where), std::move(message)}); }
  [[nodiscard]] bool ok() const { return problems_.empty(); }
  /// All problems as one: the first with its place, the others below it.
  [[nodiscard]] Diagnostic error() const {
    constexpr std::size_t most = 20;
    Diagnostic all = problems_.front();
    for (std::size_t p = 1; p < std::min(problems_.size(), most); ++p) all.message += "\n" + to_text(problems_[p]);
    if (problems_.size() > most) all.message += fmt::format("\nand {} more", problems_.size() - most);
    return all;
  }

 private:
  void check_fixed(const FixedKey& fixed, const YamlValue& value) {
    const std::string text = normalised(value);
    for (const std::string_view accepted : fixed.values)
      if (normalised({YamlValue::Kind::scalar, std::string{accepted}}) == text) return;
    std::vector<std::string> names;
    for (const std::string_view accepted : fixed.values) names.push_back(accepted.empty() ? "nothing" : std::string{accepted});
    problem(value.where, fmt::format("expected {} to be {}, found {}: {}", fixed.key, fmt::join(names, " or "), told(value), fixed.why));
  }

  std::map<std::string, YamlValue> values_;
  std::set<std::string> overridden_;
  std::vector<Diagnostic> problems_;
};

/// (heads and MLP, width, layers) are scaled by powers of two: each step of three doubles all of them, the first of the rest heads and MLP, the second
/// the width.
struct Scales {
  std::int64_t heads = 1, width = 1, layers = 1;
};
Scales read_scale(Configuration& config) {
  const std::int64_t scale = config.integer("global_parameter_scale", 1);
  if (!std::has_single_bit(static_cast<std::uint64_t>(scale))) {
    config.problem(config.where("global_parameter_scale"), fmt::format("expected global_parameter_scale to be a power of two, found {}", scale));
    return {};
  }
  const int k = std::countr_zero(static_cast<std::uint64_t>(scale)), q = k / 3, r = k % 3;
  return {std::int64_t{1} << (q + (r > 0 ? 1 : 0)), std::int64_t{1} << (q + (r > 1 ? 1 : 0)), std::int64_t{1} << q};
}

DType read_dtype(Configuration& config, const std::string& key) { return config.word(key, {"float32", "bfloat16"}) == 0 ? DType::f32 : DType::bf16; }

/// Experts, which MaxText has in the layers of some decoder blocks. Errors: experts in others; what podsim does not have of them.
void read_experts(Configuration& config, const Scales& scales, bool block_has_them, TrainingModel& model) {
  if (!block_has_them) {
    if (config.integer("num_experts", 1) > 1)
      config.problem(config.where("num_experts"), "expected num_experts to be 1, found " + told(config.value("num_experts")) + ": experts are those of decoder_block mixtral and qwen3_moe");
    return;
  }
  model.experts = config.integer("num_experts", 1);
  model.experts_per_token = config.integer("num_experts_per_tok", 1);
  if (const auto width = config.count_or_rest("base_moe_mlp_dim"); width && scales.heads * *width != model.mlp)
    config.problem(config.where("base_moe_mlp_dim"), fmt::format("expected base_moe_mlp_dim to be base_mlp_dim, as all layers have experts, found {}", told(config.value("base_moe_mlp_dim"))));
  constexpr std::array<std::array<std::string_view, 3>, 5> others{{{"capacity_factor", "-1", "tokens that no expert takes"},
                                                                   {"sparse_matmul", "true", "products with all experts"},
                                                                   {"shared_experts", "0", "experts of all tokens"},
                                                                   {"interleave_moe_layer_step", "1", "layers that differ"},
                                                                   {"use_ring_of_experts", "false", "tokens that are gathered"}}};
  for (const auto& [key, expected, why] : others)
    if (const YamlValue value = config.value(std::string{key}); normalised(value) != expected)
      config.problem(value.where, fmt::format("expected {} to be {} with experts, found {}: {}", key, expected, told(value), why));
}

TrainingModel read_model(Configuration& config) {
  TrainingModel model;
  model.description = config.take_named_model();
  const Scales scales = read_scale(config);
  const YamlValue run = config.value("run_name");
  model.name = run.kind == YamlValue::Kind::scalar && !run.text.empty() ? run.text : model.description.empty() ? "maxtext" : config.value("model_name").text;
  model.layers = scales.layers * config.integer("base_num_decoder_layers", 1);
  model.width = scales.width * config.integer("base_emb_dim", 1);
  model.heads = scales.heads * config.integer("base_num_query_heads", 1);
  model.kv_heads = scales.heads * config.integer("base_num_kv_heads", 1);
  model.head_dim = config.integer("head_dim", 1);
  model.mlp = scales.heads * config.integer("base_mlp_dim", 1);
  const YamlValue activations = config.value("mlp_activations");
  const std::size_t entries = activations.kind == YamlValue::Kind::list ? activations.items.size() : 0;
  if (entries != 1 && entries != 2)
    config.problem(activations.where, fmt::format("expected mlp_activations to be a list of one or two names, found {}", told(activations)));
  model.gated = entries == 2;
  model.vocabulary = config.integer("vocab_size", 1);
  model.tied = config.flag("logits_via_embedding");
  const std::size_t block = config.word("decoder_block", {"gpt3", "mixtral", "qwen3_moe", "llama2", "mistral", "gemma", "qwen3", "default"});
  const bool gpt3 = block == 0;
  read_experts(config, scales, block == 1 || block == 2, model);
  if (config.flag("use_qk_norm")) {
    if (block != 2 && block != 6) config.problem(config.where("use_qk_norm"), "expected use_qk_norm to be false with a decoder_block other than qwen3 and qwen3_moe, found true: further norms");
    model.description += fmt::format("{}norms of queries and keys are left out", model.description.empty() ? "" : "; ");
  }
  model.norm = gpt3 ? Norm::layer : Norm::rms;
  model.biases = gpt3;
  model.positions = config.count_or_rest("trainable_position_size").value_or(0);
  model.sequence = config.integer("max_target_length", 1);
  model.weights = read_dtype(config, "weight_dtype");
  model.gradients = read_dtype(config, "grad_dtype");
  model.activations = read_dtype(config, "dtype");
  model.moments = model.weights;
  const std::size_t first_moment = config.word("mu_dtype", {"", "float32", "bfloat16"});
  if (first_moment != 0 && (first_moment == 1) != (model.weights == DType::f32))
    config.problem(config.where("mu_dtype"), "expected mu_dtype to be as weight_dtype, which the second moment has, found " + told(config.value("mu_dtype")));
  return model;
}

/// Devices of a slice by its name, "v5e-256": of v2 and v3 cores, of v4 and v5p half as many chips as cores, else chips.
std::optional<std::int64_t> devices_of_topology(const std::string& name) {
  struct Generation {
    std::string_view prefix;
    std::int64_t per_device;
  };
  constexpr std::array<Generation, 8> generations{{{"v2-", 1}, {"v3-", 1}, {"v4-", 2}, {"v5p-", 2}, {"v5e-", 1}, {"v5litepod-", 1}, {"v6e-", 1}, {"tpu7x-", 1}}};
  for (const Generation& generation : generations) {
    if (!name.starts_with(generation.prefix)) continue;
    const auto number = number_in(name.substr(generation.prefix.size()));
    if (!number || *number != std::floor(*number) || *number < 1 || *number > static_cast<double>(most_training_devices)) return std::nullopt;
    const auto count = static_cast<std::int64_t>(*number);
    if (count % generation.per_device != 0) return std::nullopt;
    return count / generation.per_device;
  }
  return std::nullopt;
}

/// Fills the one axis of `keys` that takes the rest, if one does; `whole` is the number of devices, if known. `of_what` are they.
std::vector<std::int64_t> read_axes(Configuration& config, const std::vector<std::string>& keys, std::optional<std::int64_t> whole, const std::string& of_what,
                                    const std::string& how_to_say) {
  std::vector<std::int64_t> sizes;
  std::optional<std::size_t> rest;
  std::int64_t product = 1;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const auto size = config.count_or_rest(keys[k], most_training_devices);
    if (!size && rest) config.problem(config.where(keys[k]), fmt::format("expected one axis of -1 at most, found {} and {}", keys[*rest], keys[k]));
    if (!size) rest = k;
    sizes.push_back(size.value_or(1));
    if (product <= most_training_devices) product *= sizes.back();
  }
  const auto first_given = std::find_if(keys.begin(), keys.end(), [&](const std::string& key) { return config.given(key); });
  const SourceLocation place = config.where(rest ? keys[*rest] : first_given == keys.end() ? keys.front() : *first_given);
  if (product > most_training_devices) {
    config.problem(place, fmt::format("expected at most {} {}, found more", most_training_devices, of_what));
  } else if (whole && (rest ? *whole % product != 0 : *whole != product)) {
    config.problem(place, fmt::format("expected {} whose product {} the {} {}, found {}", fmt::join(keys, " x "), rest ? "divides" : "is", *whole, of_what, product));
  } else if (rest) {
    if (!whole) config.problem(place, fmt::format("{} is -1, the rest of how many {}? {}", keys[*rest], of_what, how_to_say));
    sizes[*rest] = whole.value_or(product) / product;
  }
  return sizes;
}

TrainingMesh read_mesh(Configuration& config, const MaxTextSystem& system) {
  std::optional<std::int64_t> devices = system.devices, slices = system.slices;
  const YamlValue topology = config.value("compile_topology");
  if (!devices && topology.kind == YamlValue::Kind::scalar && !topology.text.empty()) {
    devices = devices_of_topology(topology.text);
    if (!devices) config.problem(topology.where, "expected compile_topology to be the name of a slice, as v5e-256, found " + told(topology));
  }
  for (const char* key : {"compile_topology_num_slices", "num_slices"})
    if (!slices) slices = config.count_or_rest(key, most_training_devices);
  const bool rest_of_slices = normalised(config.value("dcn_data_parallelism")) == "-1";
  if (!slices && rest_of_slices) slices = 1;
  const std::vector<std::int64_t> inside = read_axes(
      config, {"ici_pipeline_parallelism", "ici_data_parallelism", "ici_fsdp_parallelism", "ici_expert_parallelism", "ici_tensor_parallelism"}, devices, "devices of a slice",
      "The number of chips or compile_topology=v5e-256 says it");
  const std::vector<std::int64_t> between = read_axes(config, {"dcn_data_parallelism"}, slices, "slices", "");
  TrainingMesh mesh{between[0], inside[0], inside[1], inside[2], inside[3], 1, inside[4]};
  if (mesh.slice > most_training_devices / (inside[0] * inside[1] * inside[2] * inside[3] * inside[4]))
    config.problem(config.where("dcn_data_parallelism"), fmt::format("expected at most {} devices, found more", most_training_devices));
  return mesh;
}

void read_batch(Configuration& config, TrainingStep& step) {
  const double per_device = config.positive("per_device_batch_size");
  const std::int64_t accumulated = config.integer("gradient_accumulation_steps", 1);
  const double batch = per_device * static_cast<double>(step.mesh.devices()) * static_cast<double>(accumulated);
  const double whole = std::round(batch);
  if (whole < 1 || std::abs(batch - whole) > 1e-6 * whole || whole > static_cast<double>(std::int64_t{1} << 40))
    config.problem(config.where("per_device_batch_size"),
                   fmt::format("expected a whole number of sequences on {} devices, found {} on each, {} in all", step.mesh.devices(), per_device, batch));
  else
    step.batch = static_cast<std::int64_t>(whole);
  step.microbatches = accumulated;
  if (step.mesh.stage == 1) return;
  if (accumulated > 1)
    config.problem(config.where("gradient_accumulation_steps"), fmt::format("expected gradient_accumulation_steps to be 1 beside a pipeline, found {}", accumulated));
  step.pipeline = "gpipe";
  step.microbatches = config.count_or_rest("num_pipeline_microbatches").value_or(step.mesh.stage);
  const std::int64_t layers = config.integer("num_layers_per_pipeline_stage", 1), chunk = layers * step.mesh.stage;
  if (step.model.layers % chunk != 0) {
    config.problem(config.where("num_layers_per_pipeline_stage"), fmt::format("expected the {} layers to be a multiple of {} stages x {} layers of each", step.model.layers, step.mesh.stage, layers));
    return;
  }
  step.virtual_stages = step.model.layers / chunk;
  const auto repeats = config.count_or_rest("num_pipeline_repeats");
  if (repeats && *repeats != step.virtual_stages)
    config.problem(config.where("num_pipeline_repeats"), fmt::format("expected num_pipeline_repeats to be {}, the layers over stages x layers of each, found {}", step.virtual_stages, *repeats));
}

Remat read_remat(Configuration& config) {
  const YamlValue policy = config.value("remat_policy");
  if (const auto named = remat_of_policy(policy.text); named && policy.kind == YamlValue::Kind::scalar) return *named;
  if (policy.text != custom_policy) {
    config.problem(policy.where, fmt::format("expected remat_policy to be {} or {}, found {}{}", fmt::join(remat_policies(), ", "), custom_policy, told(policy),
                                             did_you_mean(policy.text, remat_policies())));
    return {};
  }
  Remat remat{Remat::Kind::selected, {}};
  for (const RematTensors& tensors : remat_tensors()) {
    std::optional<std::size_t> choice;  // remat, device, offload
    for (const std::string_view key : tensors.keys) {
      const std::string name{key};
      if (!config.given(name)) continue;
      const std::size_t own = config.word(name, {"remat", "device", "offload"});
      if (choice && *choice != own)
        config.problem(config.where(name), fmt::format("expected {} alike: podsim has them as one product", fmt::join(tensors.keys, ", ")));
      choice = own;
    }
    if (choice.value_or(0) != 0) remat.saved.push_back({std::string{tensors.stage}, *choice == 2});
  }
  if (remat.saved.empty()) remat.kind = Remat::Kind::full;
  return remat;
}

TrainingStep read_step(Configuration& config, const MaxTextSystem& system) {
  TrainingStep step;
  step.model = read_model(config);
  step.mesh = read_mesh(config, system);
  if (config.ok()) read_batch(config, step);
  step.remat = read_remat(config);
  step.scan = config.flag("scan_layers");
  step.optimizer = config.word("opt_type", {"adamw", "sgd", "adam_pax"}) == 1 ? Optimizer::sgd : Optimizer::adamw;  // adam_pax: the states of adamw
  step.shard_optimizer_over_data = config.flag("shard_optimizer_over_data");
  if (step.shard_optimizer_over_data && step.mesh.slice > 1) config.problem(config.where("shard_optimizer_over_data"), "expected false: podsim does not divide it over slices, which MaxText would");
  step.embedding_by_product = config.flag("use_iota_embed");
  step.loss_chunks = config.integer("num_vocab_tiling", 1);
  return step;
}

/// The key of base.yml that a field of a model comes from.
std::string key_of_field(const std::string& field) {
  static const std::map<std::string, std::string> keys{{"layers", "base_num_decoder_layers"}, {"width", "base_emb_dim"},   {"heads", "base_num_query_heads"},
                                                       {"kv_heads", "base_num_kv_heads"},     {"head_dim", "head_dim"},     {"mlp", "base_mlp_dim"},
                                                       {"experts", "num_experts"},            {"experts_per_token", "num_experts_per_tok"},
                                                       {"vocabulary", "vocab_size"},          {"tied", "logits_via_embedding"}, {"positions", "trainable_position_size"},
                                                       {"sequence", "max_target_length"}};
  const auto found = keys.find(field);
  return found == keys.end() ? "run_name" : found->second;
}

/// A key of MaxText in KEY=VALUE; nothing for another text.
std::optional<std::string> key_of_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  std::string key = text.substr(0, equals);
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  if (!std::all_of(key.begin(), key.end(), plain)) return std::nullopt;
  return key;
}

}  // namespace

Expected<TrainingStep> read_maxtext(std::string_view text, const std::string& file, const std::vector<std::string>& overrides, const MaxTextSystem& system) {
  Configuration config;
  if (!text.empty()) {
    auto entries = read_yaml(text, file);
    if (!entries) return entries.error();
    for (YamlEntry& entry : *entries) config.set(entry.key, entry.where, std::move(entry.value), false);
  }
  std::map<std::string, std::size_t> seen;
  for (const std::string& word : overrides) {
    const auto key = key_of_override(word);
    if (!key) return Diagnostic{{}, "expected KEY=VALUE with a key of MaxText, found " + quoted(word)};
    if (!seen.emplace(*key, seen.size()).second) return Diagnostic{{*key, 1, 1}, "expected every key once, found " + quoted(word)};
    auto value = read_yaml_value(std::string_view{word}.substr(key->size() + 1), {*key, 1, static_cast<int>(key->size()) + 2});
    if (!value) return value.error();
    config.set(*key, {*key, 1, 1}, std::move(*value), true);
  }
  TrainingStep step = read_step(config, system);
  if (config.ok())
    for (const Diagnostic& problem : problems_of(step.model)) {
      const std::string key = key_of_field(problem.where.file);
      config.problem(config.where(key), key + ": " + problem.message);
    }
  if (!config.ok()) return config.error();
  return step;
}

}  // namespace podsim
