#include "sim/engine/numeric/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace podsim {
namespace {

std::string text_of(const Product& product) {
  return fmt::format("{} = {}{} {}{}", product.out, product.left, product.transpose_left ? "^T" : "", product.right,
                     product.transpose_right ? "^T" : "");
}

std::string text_of(const Mesh& mesh, const Collective& collective) {
  std::string axes;
  for (const AxisView& axis : collective.axes) axes += (axes.empty() ? "" : ", ") + mesh.name(axis);
  return fmt::format("{} along {}", name_of(collective.kind), axes);
}

/// `claimed`: the tensors.
std::vector<Diagnostic> unclaimed_outputs(const Schedule& schedule, const std::set<std::string>& claimed) {
  std::set<std::string> told;
  std::vector<Diagnostic> problems;
  for (const Program& program : schedule.programs)
    for (const Buffer& buffer : program.buffers) {
      if (buffer.role != Role::output || claimed.contains(buffer.tensor) || !told.insert(buffer.tensor).second) continue;
      problems.push_back({{}, fmt::format("the schedule does not say what its output {} is to hold: it was not compared", quoted(buffer.tensor))});
    }
  return problems;
}

std::vector<Diagnostic> unclaimed_outputs(const Schedule& schedule, const Collective& collective) {
  std::vector<Diagnostic> problems;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p)
    for (std::size_t b = 0; b < schedule.programs[p].buffers.size(); ++b) {
      const Buffer& buffer = schedule.programs[p].buffers[b];
      if (buffer.role != Role::output) continue;
      const std::int64_t elements = size_of(buffer).count() / size_of(buffer.dtype).count();
      const std::int64_t claimed = p == 0 && collective.output.buffer == BufferId{b} ? elements_of(collective.output) : 0;
      if (claimed == elements) continue;
      problems.push_back({{},
                          fmt::format("the schedule says of {} of {} elements of its output {} what they are to hold: the others were not compared",
                                      claimed, elements, quoted(buffer.name))});
    }
  return problems;
}

}  // namespace

bool claims_something(const Schedule& schedule) {
  const auto* products = std::get_if<Products>(&schedule.computes);
  return products != nullptr ? !products->empty() : !std::holds_alternative<std::monostate>(schedule.computes);
}

std::string claim_of(const Schedule& schedule) {
  if (!claims_something(schedule)) return "nothing";
  if (const auto* collective = std::get_if<Collective>(&schedule.computes)) return text_of(schedule.mesh, *collective);
  if (const auto* reference = std::get_if<ReferenceProgram>(&schedule.computes)) return claim_of(*reference);
  if (std::holds_alternative<SourceResults>(schedule.computes)) return "the module, interpreted in float64";
  std::string text;
  for (const Product& product : std::get<Products>(schedule.computes)) text += (text.empty() ? "" : ", ") + text_of(product);
  return text;
}

std::vector<Diagnostic> unclaimed_outputs(const Schedule& schedule) {
  if (const auto* collective = std::get_if<Collective>(&schedule.computes)) return unclaimed_outputs(schedule, *collective);
  if (std::holds_alternative<SourceResults>(schedule.computes)) return {};
  std::set<std::string> claimed;
  if (const auto* reference = std::get_if<ReferenceProgram>(&schedule.computes))
    for (const auto& [tensor, node] : reference->outputs) claimed.insert(tensor);
  else
    for (const Product& product : std::get<Products>(schedule.computes)) claimed.insert(product.out);
  return unclaimed_outputs(schedule, claimed);
}

}  // namespace podsim
