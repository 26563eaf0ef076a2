#include "tools/command/search_options.hpp"

#include "tools/command/scenario_options.hpp"
#include "workloads/scenario/search_space.hpp"

namespace podsim {

namespace {

Expected<std::vector<Slice>> slices_asked_for(const Options& options, const Machine& machine) {
  if (options.has("chips") == options.has("slice"))
    return Diagnostic{{}, options.has("chips") ? "expected --chips or --slice, found both" : "expected --chips N or --slice AxB, found neither"};
  const std::string& which = options.text("slices");
  if (which != "offered" && which != "2-d") return Diagnostic{option("slices"), "expected offered or 2-d, found " + quoted(which)};
  if (options.has("chips")) {
    const auto chips = options.integer("chips", 1, 1 << 20);
    if (!chips) return chips.error();
    auto slices = slices_of(machine, *chips, which == "2-d");
    if (!slices) return Diagnostic{option("chips"), slices.error().message + "; --slices 2-d searches what-if tori"};
    return slices;
  }
  std::vector<Slice> slices;
  for (const std::string& text : split(options.text("slice"))) {
    auto slice = parse_slice(text, machine, option("slice"));
    if (!slice) return slice.error();
    slices.push_back(*std::move(slice));
  }
  return slices;
}

/// Without slice, mesh and faults; nor the step whose mesh a configuration of MaxText has, which may ask for the number of chips.
Expected<SystemSpec> base_of(Fields fields) {
  for (const char* open : {"slice", "mesh", "maxtext", "training"}) fields.erase(open);
  return read_system_spec(fields);
}

/// Each with the faults asked for.
Expected<std::vector<System>> with_faults_of(const Fields& fields, std::vector<System> systems) {
  for (System& system : systems) {
    auto faults = read_faults(fields, system);
    if (!faults) return faults.error();
    auto faulty = with_faults(system, *std::move(faults));
    if (!faulty) return fields.placed(faulty.error());
    system = *std::move(faulty);
  }
  return systems;
}

}  // namespace

OptionGroup search_options() {
  return {{"chips", word("N"), "every slice of so many chips", true},
          {"slices", word("offered|2-d", "offered"), "of --chips: what the vendor offers, or every AxB as a what-if"}};
}

Expected<std::vector<System>> systems_to_search(const Options& options, std::vector<std::string_view> training) {
  const Fields fields = fields_of(options);
  auto base = base_of(fields);
  if (!base) return base.error();
  auto slices = slices_asked_for(options, base->machine);
  if (!slices) return slices.error();
  SearchSpace space{*std::move(base), *std::move(slices)};
  space.training = std::move(training);
  const std::vector<std::string> asked = options.texts("mesh");
  space.split_axes = options.flag("allow-split-axes") || asked == std::vector<std::string>{"all"};
  for (const std::string& text : space.split_axes ? std::vector<std::string>{} : asked) {
    auto mesh = parse_mesh(text, option("mesh"));
    if (!mesh) return mesh.error();
    space.meshes.push_back(*std::move(mesh));
  }
  const bool faults = fields.has("fail") || fields.has("degrade") || fields.has("straggler");
  space.turn = space.base.topology.kind == TopologySpec::Kind::as_built && space.base.slices == 1 && !faults;
  auto systems = systems_in(space);
  if (!systems) return fields.placed(systems.error());
  return with_faults_of(fields, *std::move(systems));
}

Expected<System> system_of_shape(const Options& options, const Slice& slice, int rows, int cols) {
  const Fields fields = fields_of(options);
  auto spec = base_of(fields);
  if (!spec) return spec.error();
  spec->slice = slice;
  spec->mesh = {{"row", rows}, {"col", cols}};
  auto system = make_system(*spec);
  if (!system) return fields.placed(system.error());
  auto systems = with_faults_of(fields, {*std::move(system)});
  if (!systems) return systems.error();
  return std::move(systems->front());
}

}  // namespace podsim
