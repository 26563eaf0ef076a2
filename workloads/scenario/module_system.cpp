// The system of a compiled module, where it is not given.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/text.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/compiled_for.hpp"
#include "workloads/hlo/module_axes.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

std::string mesh_text(const std::vector<std::pair<std::string, int>>& axes) {
  std::vector<std::string> pieces;
  for (const auto& [name, size] : axes) pieces.push_back(fmt::format("{}={}", name, size));
  return fmt::format("{}", fmt::join(pieces, ","));
}

class ModuleSystem {
 public:
  ModuleSystem(Fields fields, std::shared_ptr<const HloModule> module, bool needs_slice)
      : fields_{std::move(fields)}, module_{std::move(module)}, needs_slice_{needs_slice} {}

  Expected<Fields> complete(const Fields& otherwise) {
    const auto beside = read_compiled_for(fields_.text("hlo"));
    if (!beside) return fields_.of_named_file("hlo", beside.error());
    if (*beside)
      if (auto ok = take(**beside); !ok) return ok.error();
    fields_.complete(otherwise);
    if (fields_.has("machine") && !(fields_.has("slice") && fields_.has("mesh")))
      if (auto ok = deduce(); !ok) return ok.error();
    auto known = fields_.known != nullptr ? std::make_shared<KnownObjects>(*fields_.known) : std::make_shared<KnownObjects>();
    known->modules[fields_.text("hlo")] = {module_, std::move(assumed_)};
    fields_.known = std::move(known);
    return std::move(fields_);
  }

 private:
  // ---- From the JSON beside the module ------------------------------------------------------------------------------------------------

  Status take(const CompiledFor& told) {
    std::vector<std::string> taken, otherwise;
    const auto offer = [&](const char* field, const char* what, const std::string& value, std::string_view key) {
      if (value.empty()) return;
      if (!fields_.has(field)) {
        fields_.set(field, value, told.where(key));
        taken.emplace_back(what);
      } else if (fields_.text(field) != value) {
        otherwise.push_back(fmt::format("{} {}", what, value));
      }
    };
    offer("machine", "machine", told.machine, "machine");
    offer("slice", "slice", told.slice, "slice");
    if (told.slices > 1) offer("pods", "pods", std::to_string(told.slices), told.places.contains("slices") ? "slices" : "slice_index");
    offer("mesh", "mesh", mesh_text(told.axes), "axes");
    const bool ordered = fields_.has("mesh_order") || fields_.has("devices");
    if (!told.devices.empty() && fields_.has("machine") && fields_.has("slice") && fields_.has("mesh")) {
      const bool here = fields_.text("slice") == told.slice && fields_.text("pods") == std::to_string(told.slices);
      if (ordered || !here) {
        otherwise.emplace_back("the order of devices");
      } else {
        if (auto ok = order(told); !ok) return ok;
        taken.emplace_back("devices");
      }
    }
    const auto list = [](const std::vector<std::string>& all) {
      if (all.size() < 2) return fmt::format("{}", fmt::join(all, ""));
      return fmt::format("{} and {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
    };
    if (!taken.empty()) assumed_.push_back(fmt::format("{} from {}", list(taken), told.file));
    if (!otherwise.empty()) assumed_.push_back(fmt::format("{} has {}, which is given otherwise", told.file, list(otherwise)));
    return success();
  }

  /// Row-major or JAX's order, which know along which dimensions axes run, if the devices are in one; else the devices as a list.
  Status order(const CompiledFor& told) {
    const auto machine = read_machine(fields_);
    if (!machine) return machine.error();
    const auto slice = parse_slice(told.slice, *machine, told.where("slice"));
    if (!slice) return slice.error();
    std::vector<int> wanted;
    for (const CompiledFor::Device& device : told.devices) {
      int chip = device.slice;
      for (std::size_t d = 0; d < device.coords.size(); ++d) {
        const int extent = d < slice->extents.size() ? slice->extents[d] : 1;
        if (device.coords[d] >= extent)
          return Diagnostic{told.where("coords"), fmt::format("expected coordinates in the slice {}, found ({})", told.slice, fmt::join(device.coords, ", "))};
        chip = chip * extent + device.coords[d];
      }
      if (device.core >= machine->chip.devices)
        return Diagnostic{told.where("cores"),
                          fmt::format("expected cores below {}, as {} has on a chip, found {}", machine->chip.devices, machine->name, device.core)};
      wanted.push_back(chip * machine->chip.devices + device.core);
    }
    const SourceLocation where = told.where("coords");
    for (const auto& [name, split] : {std::pair{"row-major", false}, {"jax", false}, {"jax", true}}) {
      Fields tried = fields_;
      tried.set("mesh_order", name, where);
      if (split) tried.set("allow_split_axes", "true", where);
      const auto spec = read_system_spec(tried, *machine);
      const auto system = spec ? make_system(*spec) : Expected<System>{spec.error()};
      if (!system || device_numbers(*system) != wanted) continue;
      fields_ = std::move(tried);
      return success();
    }
    fields_.set("devices", fmt::format("{}", fmt::join(wanted, ",")), where);
    return success();
  }

  // ---- From the module and the machine ------------------------------------------------------------------------------------------------

  Status deduce() {
    const auto machine = read_machine(fields_);
    if (!machine) return success();  // whoever reads the system tells it
    const auto pods = fields_.count("pods");
    if (!pods) return pods.error();
    const std::int64_t named = devices_of(*module_), all = spans_slices(*module_) ? named * *pods : named;
    if (!fields_.has("mesh")) deduce_mesh(*machine, all, *pods);
    if (fields_.has("slice")) return success();
    if (fields_.has("mesh") && !deduced_mesh_) return success();  // its sizes are those of the slice
    if (!needs_slice_ || all % *pods != 0) return success();
    return deduce_slice(*machine, all / *pods);
  }

  void deduce_mesh(const Machine& machine, std::int64_t all, std::int64_t pods) {
    auto axes = axes_of_collectives(*module_);
    if (!axes) return;
    if (fields_.has("slice")) {
      const auto slice = parse_slice(fields_.text("slice"), machine, fields_.where("slice"));
      if (!slice || chips_of(*slice) * machine.chip.devices * pods != all || fields_.has("devices")) return;
    }
    static constexpr std::array names{"row", "col", "depth", "axis3"};
    for (std::size_t i = 0; i < axes->size(); ++i)
      if (std::string& name = (*axes)[i].first; name.empty()) name = i < names.size() ? std::string{names[i]} : fmt::format("axis{}", i);
    if (spans_slices(*module_) && pods > 1) axes->insert(axes->begin(), {"pod", static_cast<int>(pods)});
    fields_.set("mesh", mesh_text(*axes), {module_->file});
    deduced_mesh_ = true;
    assumed_.push_back(fmt::format("mesh {}: the axes over which its collectives run", fields_.text("mesh")));
  }

  Status deduce_slice(const Machine& machine, std::int64_t devices) {
    if (machine.slices.any_shape && deduced_mesh_) return success();  // the sizes of the mesh
    const auto wrong = [&](const std::string& what) { return Diagnostic{fields_.where("slice"), fmt::format("is missing, and {}", what)}; };
    if (devices % machine.chip.devices != 0)
      return wrong(fmt::format("{} is of {} device{}, where chips of {} have {}; --devices says which ones of a slice", module_->name, devices,
                               devices == 1 ? "" : "s", machine.name, machine.chip.devices));
    const std::int64_t chips = devices / machine.chip.devices;
    const auto offered = offered_slices(machine, chips);
    if (offered.empty()) return wrong(fmt::format("{} has no slice of the {} devices of {}", machine.name, devices, module_->name));
    if (offered.size() > 1 && machine.interconnect == Interconnect::grid && !machine.slices.any_shape) {
      std::vector<std::string> shapes;
      for (const Slice& slice : offered) shapes.push_back(to_text(slice));
      return wrong(
          fmt::format("{} has {} slices of the {} devices of {}: {}", machine.name, offered.size(), devices, module_->name, fmt::join(shapes, ", ")));
    }
    fields_.set("slice", to_text(offered.front()), {module_->file});
    assumed_.push_back(fmt::format("slice {}: {} of {} with {} device{}", to_text(offered.front()), offered.size() > 1 ? "the first" : "the one",
                                   machine.name, devices, devices == 1 ? "" : "s"));
    return success();
  }

  Fields fields_;
  std::shared_ptr<const HloModule> module_;
  std::vector<std::string> assumed_;
  bool needs_slice_, deduced_mesh_ = false;
};

}  // namespace

Expected<KnownModule> module_named(const Fields& fields) {
  const std::string path = fields.text("hlo");
  if (fields.known != nullptr)
    if (const auto known = fields.known->modules.find(path); known != fields.known->modules.end()) return known->second;
  auto module = read_hlo_file(path);
  if (!module) return fields.of_named_file("hlo", module.error());
  return KnownModule{std::make_shared<const HloModule>(*std::move(module)), {}};
}

Expected<Fields> with_module(Fields fields, const Fields& otherwise) {
  if (!fields.has("hlo")) {
    fields.complete(otherwise);
    return fields;
  }
  auto known = module_named(fields);
  if (!known) return known.error();
  return ModuleSystem{std::move(fields), std::move(known->module), true}.complete(otherwise);
}

Expected<Fields> with_axes_of(std::shared_ptr<const HloModule> module, Fields fields, const Fields& otherwise) {
  return ModuleSystem{std::move(fields), std::move(module), false}.complete(otherwise);
}

}  // namespace podsim
