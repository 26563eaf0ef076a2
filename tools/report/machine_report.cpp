#include "tools/report/machine_report.hpp"

#include <fmt/format.h>


#include "sim/base/csv.hpp"
#include "sim/machine/machine_fields.hpp"
#include "tools/report/json.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

using Cells = std::vector<std::vector<std::string>>;

/// Path, value and source of each value of the machine, under their headings.
Cells values_of(const Machine& machine, std::string (*text)(const MachineField&, const Machine&, int)) {
  Cells rows{{"path", "value", "source"}};
  for (const MachineField& field : machine_fields()) {
    const auto names = index_names(field.index);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string path = path_of(field, names[i]);
      const auto source = machine.sources.find(path);
      if (source != machine.sources.end()) rows.push_back({path, text(field, machine, static_cast<int>(i)), source->second});
    }
  }
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

std::string machine_report(const Machine& machine, Format format) {
  if (format == Format::table) return fmt::format("{}: {}\n\n{}", machine.name, machine.description, table(values_of(machine, rounded_text), 3));
  const Cells values = values_of(machine, value_text);
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
