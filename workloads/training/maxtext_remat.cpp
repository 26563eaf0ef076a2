#include "workloads/training/maxtext_remat.hpp"

#include <algorithm>
#include <array>

namespace podsim {

namespace {

struct Policy {
  std::string_view name, remat;
};
// As MaxText's decoders give them to jax.checkpoint. `minimal` keeps the outputs of all products with weights, `..._offloaded` keeps them on the host.
constexpr std::array<Policy, 11> policies{{
    {"full", "full"},
    {"none", "none"},
    {"minimal", "selected:in_proj,out_proj,ff1,ff2"},
    {"minimal_with_context", "selected:in_proj,attention,out_proj,ff1,ff2"},
    {"save_dot_with_context_except_mlp", "selected:in_proj,attention,out_proj"},
    {"save_dot_except_mlp", "selected:in_proj,out_proj"},
    {"save_dot_except_mlpwi", "selected:in_proj,out_proj,ff2"},
    {"save_qkv_proj", "selected:in_proj"},
    {"qkv_proj_offloaded", "selected:in_proj@host"},
    {"minimal_offloaded", "selected:in_proj@host,out_proj@host,ff1@host,ff2@host"},
    {"save_out_proj", "selected:out_proj"},
}};

}  // namespace

const std::vector<RematTensors>& remat_tensors() {
  static const std::vector<RematTensors> tensors{{"in_proj", {"query_proj", "key_proj", "value_proj", "qkv_proj"}},
                                                 {"attention", {"context"}},
                                                 {"out_proj", {"out_proj"}},
                                                 {"ff1", {"mlpwi", "mlpwi_0", "mlpwi_1"}},
                                                 {"ff2", {"mlpwo"}}};
  return tensors;
}

std::optional<Remat> remat_of_policy(std::string_view policy) {
  const auto found = std::find_if(policies.begin(), policies.end(), [&](const Policy& entry) { return entry.name == policy; });
  if (found == policies.end()) return std::nullopt;
  const auto remat = parse_remat(found->remat, {});
  return *remat;
}

std::vector<std::string> remat_policies() {
  std::vector<std::string> names;
  for (const Policy& policy : policies) names.emplace_back(policy.name);
  return names;
}

std::optional<std::string> policy_of(const Remat& remat) {
  const std::string text = to_text(remat);
  const auto found = std::find_if(policies.begin(), policies.end(), [&](const Policy& entry) { return entry.remat == text; });
  return found == policies.end() ? std::nullopt : std::optional<std::string>{found->name};
}

}  // namespace podsim
