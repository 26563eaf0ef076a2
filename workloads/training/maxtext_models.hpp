// The models that MaxText has by name (model_name), as values of its keys. Internal to workloads/training.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace podsim {

/// What one of MaxText's files configs/models/NAME.yml says in keys that are read: the extents of a shipped model, in its keys. "-Instruct" in a name is
/// nothing, as there. Keys that do not change the computation are left out, and use_qk_norm of qwen3, whose norms of heads podsim leaves out. nullopt: a
/// name that is not MaxText's, or a model that podsim does not have.
struct MaxTextModel {
  std::string description;
  std::vector<std::pair<std::string, std::string>> values;  // key, value
};
std::optional<MaxTextModel> maxtext_model(std::string_view name);
std::vector<std::string> maxtext_model_names();

}  // namespace podsim
