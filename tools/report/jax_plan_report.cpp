#include "tools/report/jax_plan_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

std::string spec_of(const JaxPlan& plan, const JaxArray& array) { return jax_text(array.sharding, plan.mesh, array.shape.size()); }

std::string mesh_text(const JaxPlan& plan, const DeviceOrder& devices) {
  std::string names, sizes;
  for (const MeshAxis& axis : plan.mesh.axes()) names += fmt::format("'{}', ", axis.name), sizes += fmt::format("{}, ", axis.size);
  if (plan.mesh.axes().size() > 1) names.resize(names.size() - 2), sizes.resize(sizes.size() - 2);  // (4,) is a tuple, (4) is none
  constexpr std::size_t most_shown = 256;
  std::string text;
  if (devices.size() > most_shown) {
    text = fmt::format("ids = ...  # {} ids of devices: --format json lists them as device_order\n", devices.size());
  } else {
    const auto last = static_cast<std::size_t>(plan.mesh.axes().empty() ? 1 : plan.mesh.axes().back().size);
    const std::size_t columns = last < 16 ? last * (16 / last) : last;
    for (std::size_t d = 0; d < devices.size(); d += columns) {
      const std::vector<int> row{devices.begin() + static_cast<std::ptrdiff_t>(d),
                                 devices.begin() + static_cast<std::ptrdiff_t>(std::min(d + columns, devices.size()))};
      text += fmt::format("{}{}", d == 0 ? "ids = [" : ",\n       ", fmt::join(row, ", "));
    }
    text += "]\n";
  }
  return text + fmt::format(
                    "by_id = {{d.id: d for d in jax.devices()}}\n"
                    "mesh = jax.sharding.Mesh(np.array([by_id[i] for i in ids]).reshape({}), ({}))\n",
                    sizes, names);
}

/// "all-gather X along col, 12.58 MB; shift W along row in 6 steps, 4.194 MB"
std::string transfers_text(const std::vector<JaxTransfer>& transfers) {
  std::vector<std::string> all;
  for (const JaxTransfer& one : transfers)
    all.push_back(fmt::format("{} {} along {}{}, {}", one.kind, one.tensor, fmt::join(one.axes, ","),
                              one.times > 1 ? fmt::format(" in {} steps", one.times) : "", to_text(one.received)));
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, "; "));
}

std::string choice_text_of(const ProductChoice& choice) {
  return fmt::format("{} {}{}{}", choice.algorithm, choice.transposed ? "transposed " : "", name_of(choice.dataflow),
                     choice.slice_count > 0 ? fmt::format(" S={}", choice.slice_count) : "");
}

std::string comparison_text(const JaxComparison& comparison) {
  const auto line = [](std::string_view who, const std::vector<JaxTransfer>& transfers, Bytes received) {
    return fmt::format("  {}: {}{}\n", who, transfers_text(transfers), transfers.size() > 1 ? fmt::format("; {} in all", to_text(received)) : "");
  };
  return fmt::format("{}{}: {}\n", comparison.layer, comparison.pass == Pass::backward ? " backward" : "", comparison.computes) +
         line("JAX", comparison.jax, comparison.jax_received) +
         (comparison.fewest_received < comparison.jax_received ? line("JAX, fewest bytes", comparison.fewest, comparison.fewest_received) : "") +
         line(comparison.choice ? "plan, " + choice_text_of(*comparison.choice) : "plan", comparison.plan, comparison.plan_received);
}

Json transfers_json(const std::vector<JaxTransfer>& transfers) {
  Json list = Json::array();
  for (const JaxTransfer& one : transfers)
    list.push_back(
        Json{{"kind", one.kind}, {"tensor", one.tensor}, {"axes", one.axes}, {"times", one.times}, {"received_bytes", one.received.count()}});
  return list;
}

Json comparison_json(const JaxComparison& comparison) {
  Json json{{"name", comparison.layer}, {"pass", name_of(comparison.pass)}, {"computes", comparison.computes}};
  const auto& choice = comparison.choice;
  json.set("algorithm", choice ? Json(choice->algorithm) : Json());
  json.set("dataflow", choice ? Json(name_of(choice->dataflow)) : Json());
  json.set("transposed", choice ? Json(choice->transposed) : Json());
  json.set("slice_count", choice && choice->slice_count > 0 ? Json(choice->slice_count) : Json());
  json.set("jax", transfers_json(comparison.jax));
  json.set("fewest", transfers_json(comparison.fewest));
  json.set("plan", transfers_json(comparison.plan));
  json.set("jax_received_bytes", comparison.jax_received.count());
  json.set("fewest_received_bytes", comparison.fewest_received.count());
  json.set("plan_received_bytes", comparison.plan_received.count());
  return json;
}

}  // namespace

std::string jax_plan_text(const JaxPlan& plan, const DeviceOrder& devices) {
  std::string text = mesh_text(plan, devices) + "\n";
  std::vector<std::vector<std::string>> rows{{"layer", "array", "role", "PartitionSpec", "shape", "per device"}};
  std::string last;
  for (const JaxArray& array : plan.arrays) {
    rows.push_back({array.layer == last ? "" : array.layer, array.tensor.name + (array.tensor.transposed ? ".T" : ""),
                    std::string{name_of(array.tensor.role)}, spec_of(plan, array),
                    fmt::format("{} {}", name_of(array.tensor.dtype), fmt::join(array.shape, "x")), to_text(array.per_device)});
    last = array.layer;
  }
  text += table(rows, 5);
  text += wrapped(
              "An array X.T is stored transposed: weights [outputs, inputs], activations [features, tokens]. Tokens are the rows of all sequences. "
              "Kept the other "
              "way round, it has its spec reversed.") +
          "\n";
  text +=
      "\nCollectives, with the bytes that a device receives: what JAX inserts for these specs by its usual rules (show program --choose default),\n"
      "what it could insert where that is less (--choose bytes), and the plan\n";
  for (const JaxComparison& comparison : plan.comparisons) text += comparison_text(comparison);
  for (const std::string& note : plan.notes) text += wrapped("note: " + note) + "\n";
  return text;
}

std::string jax_plan_code(const JaxPlan& plan, const DeviceOrder& devices) {
  std::string text = "import jax\nimport numpy as np\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n\n" + mesh_text(plan, devices) + "specs = {";
  std::string last;
  for (const JaxArray& array : plan.arrays) {
    if (array.layer != last) text += fmt::format("{}\n    '{}': {{", last.empty() ? "" : "},", array.layer);
    text += fmt::format("{}'{}{}': {}", array.layer != last ? "" : ", ", array.tensor.name, array.tensor.transposed ? ".T" : "", spec_of(plan, array));
    last = array.layer;
  }
  text += fmt::format("{}\n}}\n", last.empty() ? "" : "},");
  if (plan.arrays.empty()) return text;
  const JaxArray& first = plan.arrays.front();
  return text + fmt::format("x = jax.device_put(x, NamedSharding(mesh, specs['{}']['{}{}']))  # each array so\n", first.layer, first.tensor.name, first.tensor.transposed ? ".T" : "");
}

std::string jax_plan_json(const JaxPlan& plan, const DeviceOrder& devices) {
  Json mesh = Json::object(), plan_axes = Json::object(), layers = Json::array(), collectives = Json::array();
  std::vector<std::string> names;
  for (const MeshAxis& axis : plan.mesh.axes()) mesh.set(axis.name, axis.size), names.push_back(axis.name);
  for (const auto& [axis, parts] : plan.axes) plan_axes.set(axis, parts);
  for (const JaxArray& array : plan.arrays) {
    Json shape = Json::array();
    for (const std::int64_t extent : array.shape) shape.push_back(extent);
    layers.push_back(Json{{"name", array.layer},
                          {"pass", name_of(array.pass)},
                          {"tensor", array.tensor.name},
                          {"role", name_of(array.tensor.role)},
                          {"transposed", array.tensor.transposed},
                          {"shape", std::move(shape)},
                          {"spec", spec_of(plan, array)},
                          {"dtype", name_of(array.tensor.dtype)},
                          {"bytes_per_device", array.per_device.count()}});
  }
  for (const JaxComparison& comparison : plan.comparisons) collectives.push_back(comparison_json(comparison));
  return Json{{"mesh", std::move(mesh)}, {"axis_names", names},         {"plan_axes", std::move(plan_axes)},
              {"device_order", devices}, {"layers", std::move(layers)}, {"collectives", std::move(collectives)},
              {"notes", plan.notes}}
             .dump(2) +
         "\n";
}

}  // namespace podsim
