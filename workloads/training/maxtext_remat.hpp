// MaxText's remat_policy in terms of the stages of a layer. Internal to workloads/training.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/training/step.hpp"

namespace podsim {

inline constexpr std::string_view custom_policy = "custom";

/// A stage, and the tensors of the policy `custom` that are its output.
struct RematTensors {
  std::string_view stage;
  std::vector<std::string_view> keys;
};
/// In the order of a layer.
const std::vector<RematTensors>& remat_tensors();

/// "full", "none", "minimal", ... but not "custom"; nullopt for another word.
std::optional<Remat> remat_of_policy(std::string_view policy);
std::vector<std::string> remat_policies();
/// The policy's name, if one is the same.
std::optional<std::string> policy_of(const Remat& remat);

}  // namespace podsim
