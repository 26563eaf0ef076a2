#include "tools/command/pod.hpp"

#include <fmt/format.h>

#include "sim/base/units.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/engine/machine_fields.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

Expected<std::vector<std::pair<std::string, int>>> parse_mesh(const std::string& text) {
  std::vector<std::pair<std::string, int>> sizes;
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos || equals == 0)
      return Diagnostic{option("mesh"), "expected NAME=SIZE separated by commas, as row=32,col=8, found " + quoted(text)};
    const auto size = parse_integer(piece.substr(equals + 1), 1, 1 << 24, option("mesh"));
    if (!size) return size.error();
    sizes.emplace_back(piece.substr(0, equals), static_cast<int>(*size));
  }
  return sizes;
}

Diagnostic no_machine() {
  return {{}, fmt::format("--machine is missing; shipped are {} (or give a textproto file)", fmt::join(shipped_machines(), ", "))};
}

}  // namespace

Expected<Machine> machine_of(const std::string& name, const std::vector<std::string>& sets) {
  auto machine = find_machine(name);
  if (!machine) return machine;
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos) return Diagnostic{option("set"), "expected PATH=VALUE, found " + quoted(set)};
    if (auto ok = set_machine_value(*machine, set.substr(0, equals), set.substr(equals + 1), "--set", option("set")); !ok) return ok.error();
  }
  return machine;
}

Expected<Pod> make_pod(const PodRequest& request) {
  auto machine = machine_of(request.machine, request.sets);
  if (!machine) return machine.error();
  std::vector<std::pair<std::string, int>> sizes;
  if (!request.mesh.empty()) {
    auto parsed = parse_mesh(request.mesh);
    if (!parsed) return parsed.error();
    sizes = std::move(*parsed);
  }
  std::string shape = request.slice;
  if (shape.empty()) {
    if (sizes.empty()) return Diagnostic{{}, "--slice is missing: the chips per physical dimension, as 16x16 or 4x8x8"};
    for (const auto& [name, size] : sizes) shape += (shape.empty() ? "" : "x") + std::to_string(size);
  }
  auto slice = parse_slice(shape, *machine, option("slice"));
  if (!slice) return slice.error();
  const auto wrap = parse_wrap(request.wrap, option("wrap"));
  if (!wrap) return wrap.error();
  auto grid = build_grid(*machine, *slice, *wrap);
  if (!grid) return grid.error();
  auto mesh = sizes.empty() ? default_mesh(*grid) : mesh_over(*grid, sizes);
  if (!mesh) return Diagnostic{option("mesh"), mesh.error().message};
  auto placement = place_row_major(*mesh, *grid);
  if (!placement) return placement.error();
  const bool hypothetical = is_hypothetical(*machine, *slice, *wrap);
  return Pod{std::move(*machine), std::move(*slice), *wrap, hypothetical, std::move(*grid), std::move(*mesh), std::move(*placement)};
}

Expected<Grid> regrid(const Pod& pod) { return build_grid(pod.machine, pod.slice, pod.wrap); }

Expected<Schedule> saved_schedule(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) return bytes.error();
  return read_schedule(*bytes, path);
}

Expected<Pod> pod_of(const Options& options, const std::string& default_machine) {
  if (!options.has("machine") && default_machine.empty()) return no_machine();
  const auto meshes = options.texts("mesh");
  if (meshes.size() > 1) return Diagnostic{option("mesh"), "expected one mesh; compare takes several"};
  std::string mesh = meshes.empty() ? "" : meshes.front();
  if (mesh.empty() && options.has("schedule")) {  // a saved schedule says what it is for
    const auto schedule = saved_schedule(options.text("schedule"));
    if (!schedule) return schedule.error();
    mesh = to_text(schedule->mesh);
  }
  return make_pod({options.has("machine") ? options.text("machine") : default_machine, options.has("slice") ? options.text("slice") : "",
                   options.text("wrap"), std::move(mesh), options.texts("set")});
}

Expected<std::vector<PodRequest>> pod_requests(const Options& options) {
  if (!options.has("machine")) return no_machine();
  std::vector<std::string> meshes = options.texts("mesh");
  if (meshes.empty()) meshes.emplace_back();
  std::vector<PodRequest> requests;
  for (const std::string& machine : split(options.text("machine")))
    for (const std::string& slice : options.has("slice") ? split(options.text("slice")) : std::vector<std::string>{""})
      for (const std::string& mesh : meshes) {
        if (mesh != "all") {
          requests.push_back({machine, slice, options.text("wrap"), mesh, options.texts("set")});
          continue;
        }
        const auto pod = make_pod({machine, slice, options.text("wrap"), "", options.texts("set")});
        if (!pod) return pod.error();
        const int devices = pod->mesh.devices();
        for (int rows = devices; rows >= 1; --rows)
          if (devices % rows == 0)
            requests.push_back({machine, slice, options.text("wrap"), fmt::format("row={},col={}", rows, devices / rows), options.texts("set")});
      }
  return requests;
}

}  // namespace podsim
