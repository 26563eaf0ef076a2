#include "tools/command/observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "sim/base/units.hpp"
#include "tools/command/scenario_options.hpp"
#include "topologies/machines.hpp"

namespace podsim {

OptionGroup import_options() {
  std::string forms;
  for (const ImportFormat& format : import_formats()) forms += fmt::format("{}{}", forms.empty() ? "" : "|", format.name);
  return {{"observations", input_files("FILE"), "what was measured, - for standard input; repeatable, --observations may be left out"},
          {"from", word(forms), "the form of the files; left out: by the content of each"},
          {"op", word("NAME"), "benchmarks of collectives: the operation, where the text does not name it"},
          {"devices", no_field(word("N")), "devices that took part, where the file does not tell"},
          {"axis-sizes", written_as(Form::pairs, word("x=4,y=4")), "meshslice-log: devices along each axis, where the log does not tell"},
          {"cores", word("N", "1"), "profiles of TPUs: cores of a device"},
          {"core-peak", word("RATE"), "hlo-stats: rows that are faster than this are rejected"}};
}

std::vector<std::string> with_named_words(std::vector<std::string> arguments) {
  for (std::string& word : arguments) {
    if (word.starts_with('-')) break;
    if (machine_and_slice(word)) {
      word = "--machine=" + word;
    } else if (std::error_code none; std::filesystem::is_regular_file(word, none)) {
      const auto format = format_of_file(word);
      if (format && *format != nullptr) word = "--observations=" + word;
    }
  }
  return arguments;
}

Expected<Imported> imported_observations(const Options& options) {
  const std::vector<std::string> files = options.texts("observations");
  if (files.empty()) return Diagnostic{{}, "expected files of observations, found none"};
  ImportOptions how;
  if (options.has("op")) {
    std::string name = options.text("op");
    std::replace(name.begin(), name.end(), '_', '-');  // as nccl-tests spells it
    const auto op = observed_op_named(name);
    if (!op || *op == ObservedOp::matmul || *op == ObservedOp::hbm_copy)
      return Diagnostic{option("op"), "expected a collective of nccl-tests, as all-gather or all-reduce, found " + quoted(options.text("op"))};
    how.op = *op;
  }
  if (options.has("devices")) {
    const auto devices = options.integer("devices", 1, 1 << 24);
    if (!devices) return devices.error();
    how.devices = static_cast<int>(*devices);
  }
  if (options.has("axis-sizes"))
    for (const std::string& piece : split(options.text("axis-sizes"))) {
      const std::size_t equals = piece.find('=');
      if (equals == std::string::npos || equals == 0) return Diagnostic{option("axis-sizes"), "expected NAME=SIZE, found " + quoted(piece)};
      const auto size = parse_integer(piece.substr(equals + 1), 1, 1 << 24, option("axis-sizes"));
      if (!size) return size.error();
      how.axes[piece.substr(0, equals)] = static_cast<int>(*size);
    }
  const auto cores = options.integer("cores", 1, 64);
  if (!cores) return cores.error();
  how.cores = static_cast<int>(*cores);
  if (options.has("core-peak")) {
    const auto peak = parse_flops_per_second(options.text("core-peak"), option("core-peak"));
    if (!peak) return peak.error();
    how.core_peak = *peak;
  }
  Imported all;
  for (const std::string& file : files) {
    auto imported = import_file(options.has("from") ? options.text("from") : "", file == "-" ? "/dev/stdin" : file, how);
    if (!imported) return imported.error();
    all.observations.insert(all.observations.end(), imported->observations.begin(), imported->observations.end());
    for (std::string& note : imported->notes) all.notes.push_back(files.size() > 1 ? file + ": " + note : std::move(note));
    if (all.mesh.empty() && &file == &files.front()) all.mesh = std::move(imported->mesh), all.mesh_at = imported->mesh_at;
    if (all.mesh != imported->mesh && &file != &files.front()) all.mesh.clear();  // as where one file has runs on several
  }
  return all;
}

std::vector<Diagnostic> doubts_about(const Imported& observations, const Machine& machine) {
  std::vector<Diagnostic> doubts = doubts_about(machine);
  for (Diagnostic& doubt : doubts_about(observations.observations)) doubts.push_back(std::move(doubt));
  return doubts;
}

Expected<System> system_of(Imported& observations, const Options& options, const std::string& default_machine) {
  auto fields = system_fields(options, default_machine);
  if (!fields) return fields.error();
  if (!observations.mesh.empty() && fields->has("slice") && !fields->has("mesh") && !fields->has("devices")) {
    std::vector<std::string> axes;
    for (const auto& [name, size] : observations.mesh) axes.push_back(fmt::format("{}={}", name, size));
    const std::string mesh = fmt::format("{}", fmt::join(axes, ","));
    fields->set("mesh", mesh, observations.mesh_at);
    if (!fields->has("mesh_order")) fields->set("mesh_order", "jax", observations.mesh_at);
    observations.notes.push_back(fmt::format("the mesh is the file's, {}, in the order {}", mesh, fields->text("mesh_order")));
  }
  return read_system(*fields);
}

}  // namespace podsim
