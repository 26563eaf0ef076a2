#include "tools/report/machine_report.hpp"

#include <fmt/format.h>


#include "sim/base/csv.hpp"
#include "sim/machine/machine_fields.hpp"
#include "tools/report/json.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

using Cells = std::vector<std::vector<std::string>>;

std::vector<SourcedValue> sourced(const Machine& machine, std::string (*text)(const MachineField&, const Machine&, int)) {
  std::vector<SourcedValue> values;
  for (const MachineField& field : machine_fields()) {
    const auto names = index_names(field.index);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string path = path_of(field, names[i]);
      const auto source = machine.sources.find(path);
      if (source != machine.sources.end()) values.push_back({path, text(field, machine, static_cast<int>(i)), source->second});
    }
  }
  return values;
}

Cells cells_of(const std::vector<SourcedValue>& values) {
  Cells rows{{"path", "value", "source"}};
  for (const auto& [path, value, source] : values) rows.push_back({path, value, source});
  return rows;
}

std::string csv_of(const Cells& rows) {
  std::string text;
  for (const auto& row : rows) text += csv_row(row);
  return text;
}

/// An object per row but the first, which has the keys.
Json json_of(const Cells& rows) {
  Json json = Json::array();
  for (std::size_t r = 1; r < rows.size(); ++r) {
    Json object = Json::object();
    for (std::size_t c = 0; c < rows[r].size(); ++c) object.set(rows.front()[c], rows[r][c]);
    json.push_back(std::move(object));
  }
  return json;
}

}  // namespace

std::vector<SourcedValue> sourced_values(const Machine& machine) { return sourced(machine, value_text); }

std::string machine_report(const Machine& machine, Format format) {
  if (format == Format::table) return fmt::format("{}: {}\n\n{}", machine.name, machine.description, table(cells_of(sourced(machine, rounded_text)), 3));
  const Cells values = cells_of(sourced_values(machine));
  if (format == Format::csv) return csv_of(values);
  return Json{{"name", machine.name}, {"description", machine.description}, {"values", json_of(values)}}.dump(2) + "\n";
}

Expected<std::string> list_machines(Format format) {
  Cells rows{{"machine", "description"}};
  for (const std::string& name : shipped_machines()) {
    const auto machine = find_machine(name);
    if (!machine) return machine.error();
    rows.push_back({name, machine->description});
  }
  if (format == Format::table) return table(rows, 2);
  if (format == Format::csv) return csv_of(rows);
  rows.front().front() = "name";
  return Json{{"machines", json_of(rows)}}.dump(2) + "\n";
}

}  // namespace podsim
