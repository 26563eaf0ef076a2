#include "tools/sweep/sweep_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/machine/machine_fields.hpp"
#include "tools/sweep/point_run.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

// ---- Fields -------------------------------------------------------------------------------------------------------------------------------

/// What the problem of a field needs besides.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> needs{
    {{"gemm", "algorithm"}, {"collective", "axis"}, {"collective", "bytes"}}};

// ---- Values by themselves ---------------------------------------------------------------------------------------------------------------

std::string name_of(const SweepAxis& axis) { return std::string{scenario_fields()[axis.field].name}; }

/// The kind of problem that check_field() asks for; empty: none is given.
std::string_view kind_of(const SweepBlock& block) {
  if (block.axis("maxtext") != nullptr) return "maxtext";
  for (const ProblemKind& kind : problem_kinds())
    if (block.axis(kind.field) != nullptr) return kind.field;
  return "";
}

/// What is wrong; empty: nothing.
std::string message_of(const Status& read) {
  if (read) return "";
  const Diagnostic& error = read.error();
  return error.where.is_field ? error.message : to_text(error);  // of a file that a value names: with its place there
}

/// Of a set: whether any of the block's machines takes it.
std::string set_message(const SweepAxis& axis, const std::string& text, const SweepBlock& block) {
  std::string message;
  const SweepAxis* machines = block.axis("machine");
  for (const SweepValue& name : machines != nullptr ? machines->values : std::vector<SweepValue>{}) {
    auto machine = find_machine(name.text);
    if (!machine) continue;
    message = message_of(set_machine_value(*machine, axis.path, text, "--set", {}));
    if (message.empty()) break;
  }
  return message;
}

// ---- Systems ---------------------------------------------------------------------------------------------------------------------------------

/// Line and column: one value may be part of several blocks, all cases that it stands around.
using ValuePlace = std::pair<int, int>;
ValuePlace place_of(const SourceLocation& where) { return {where.line, where.column}; }

/// Of values that are part of systems.
struct SystemValues {
  std::set<ValuePlace> fit;                // that are part of a system
  std::map<ValuePlace, Diagnostic> wrong;  // that were to blame where there was none
};

/// Which values of one block's system axes go with some of the others.
class SystemTrial {
 public:
  SystemTrial(const SweepBlock& block, SystemValues& values) : values_{values} {
    for (const SweepAxis& axis : block.axes)
      if (const FieldKind& field = scenario_fields()[axis.field]; field.part() == FieldKind::Part::system || field.name == "schedule" || field.name == "plan")
        axes_.push_back(&axis);
  }

  /// Every value with some of the others first, which is enough where they go together; what is left with all of them, up to a limit.
  void run() {
    std::size_t longest = 1, all = 1;
    for (const SweepAxis* axis : axes_) {
      longest = std::max(longest, axis->values.size());
      all = std::min(all * axis->values.size(), most_trials);
    }
    for (std::size_t i = 0; i < longest; ++i) try_one([&](std::size_t, std::size_t count) { return i % count; });
    for (std::size_t i = 0; i < all && !all_fit(); ++i) {
      std::size_t left = i;
      try_one([&](std::size_t, std::size_t count) { return std::exchange(left, left / count) % count; });
    }
  }

  /// Why there is no system at all, where no single value is to blame.
  std::string no_system;
  /// The axes of all meshes that were seen.
  std::set<std::string> mesh_axes;

 private:
  static constexpr std::size_t most_trials = 1000;

  [[nodiscard]] bool all_fit() const {
    return std::all_of(axes_.begin(), axes_.end(), [&](const SweepAxis* axis) {
      return std::all_of(axis->values.begin(), axis->values.end(),
                         [&](const SweepValue& value) { return values_.fit.contains(place_of(value.where)); });
    });
  }

  template <class Choice>
  void try_one(const Choice& choice) {
    PointInputs inputs;
    std::vector<const SweepValue*> values;
    std::map<std::string, const SweepValue*> of_field_name;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const SweepAxis& axis = *axes_[a];
      const SweepValue& value = axis.values[choice(a, axis.values.size())];
      values.push_back(&value);
      if (!axis.path.empty()) {
        if (!value.text.empty()) inputs.sets.emplace_back(axis.path, value.text);
        continue;
      }
      of_field_name[name_of(axis)] = &value;
      if (value.text != "all") inputs.texts[axis.field] = value.text;
    }
    const auto fields = with_plan(fields_of(inputs));
    const auto system = fields ? read_system(*fields) : Expected<System>{fields.error()};
    if (system) {
      no_system.clear();
      for (const SweepValue* value : values) values_.fit.insert(place_of(value->where));
      for (const MeshAxis& axis : system->mesh.axes()) mesh_axes.insert(axis.name);
      if (const auto mesh = of_field_name.find("mesh"); mesh != of_field_name.end() && mesh->second->text == "all") mesh_axes.insert({"row", "col"});
      return;
    }
    if (const auto blamed = of_field_name.find(system.error().where.file); system.error().where.is_field && blamed != of_field_name.end())
      values_.wrong.try_emplace(place_of(blamed->second->where), Diagnostic{blamed->second->where, system.error().message});
    else if (mesh_axes.empty())
      no_system = to_text(system.error());
  }

  std::vector<const SweepAxis*> axes_;
  SystemValues& values_;
};

// ---- All of it ----------------------------------------------------------------------------------------------------------------------------

class SweepCheck {
 public:
  Status run(const std::vector<SweepBlock>& blocks) {
    for (const SweepBlock& block : blocks) check_fields(block);
    for (const SweepBlock& block : blocks)
      for (const SweepAxis& axis : block.axes) check_values(axis, block);
    if (problems_.empty()) {
      SystemValues values;
      for (const SweepBlock& block : blocks) check_systems(block, values);
      for (const auto& [place, why] : values.wrong)
        if (!values.fit.contains(place)) problem(why.where, why.message);
    }
    return problems_.empty() ? success() : Status{all_problems()};
  }

 private:
  static constexpr std::size_t most_problems = 20;

  void problem(const SourceLocation& where, const std::string& message) {
    problems_.try_emplace(place_of(where), Diagnostic{where, message});  // what stands around several cases is said once
  }

  /// Which fields go together is the same whatever their values: told by the first ones.
  void check_fields(const SweepBlock& block) {
    if (block.axis("machine") == nullptr && block.axis("plan") == nullptr) problem(block.where, "machine is missing");
    for (const auto& [field, needed] : needs)
      if (block.axis(field) != nullptr && block.axis(needed) == nullptr) problem(block.where, fmt::format("{} needs {}", field, needed));
    PointInputs inputs;
    std::map<std::string, SourceLocation> places;
    for (const SweepAxis& axis : block.axes)
      for (const SweepValue& value : axis.values)
        if (axis.path.empty() && !value.text.empty()) {
          inputs.texts[axis.field] = value.text;
          places[name_of(axis)] = value.where;
          break;
        }
    const auto kind = problem_kind(fields_of(inputs));
    if (kind) return;
    const auto blamed = places.find(kind.error().where.file);
    problem(blamed == places.end() ? block.where : blamed->second, kind.error().message);
  }

  void check_values(const SweepAxis& axis, const SweepBlock& block) {
    for (const SweepValue& value : axis.values) {
      if (value.text.empty()) continue;
      const std::string message =
          axis.path.empty() ? message_of(check_field(scenario_fields()[axis.field], value.text, kind_of(block))) : set_message(axis, value.text, block);
      if (!message.empty()) problem(value.where, message);
    }
  }

  void check_systems(const SweepBlock& block, SystemValues& values) {
    SystemTrial trial{block, values};
    trial.run();
    if (!trial.no_system.empty()) problem(block.where, "there is no such system: " + trial.no_system);
    if (const SweepAxis* axes = block.axis("axis"); axes != nullptr && !trial.mesh_axes.empty())
      for (const SweepValue& value : axes->values)
        for (const std::string& name : split(value.text))
          if (!trial.mesh_axes.contains(name))
            problem(value.where, fmt::format("no mesh of this sweep has the axis {}{}", quoted(name),
                                             did_you_mean(name, {trial.mesh_axes.begin(), trial.mesh_axes.end()})));
  }

  [[nodiscard]] Diagnostic all_problems() const {
    Diagnostic all = problems_.begin()->second;
    std::size_t told = 1;
    for (auto entry = std::next(problems_.begin()); entry != problems_.end() && told < most_problems; ++entry, ++told)
      all.message += '\n' + to_text(entry->second);
    if (problems_.size() > told) all.message += fmt::format("\n{}: and {} more", all.where.file, problems_.size() - told);
    return all;
  }

  std::map<ValuePlace, Diagnostic> problems_;
};

}  // namespace

std::vector<Diagnostic> doubts_about(const std::vector<SweepBlock>& blocks) {
  std::vector<Diagnostic> doubts;
  const auto add = [&](const Machine& machine) {
    for (const Diagnostic& doubt : doubts_about(machine))
      if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) doubts.push_back(doubt);
  };
  for (const SweepBlock& block : blocks) {
    const SweepAxis* machines = block.axis("machine");
    for (const SweepValue& name : machines != nullptr ? machines->values : std::vector<SweepValue>{}) {
      const auto machine = find_machine(name.text);
      if (!machine) continue;
      add(*machine);
      for (const SweepAxis& axis : block.axes)
        for (const SweepValue& value : axis.path.empty() ? std::vector<SweepValue>{} : axis.values)
          if (Machine changed = *machine; !value.text.empty() && set_machine_value(changed, axis.path, value.text, "--set", value.where)) add(changed);
    }
  }
  return doubts;
}

Status check_sweep(const std::vector<SweepBlock>& blocks) { return SweepCheck{}.run(blocks); }

}  // namespace podsim
