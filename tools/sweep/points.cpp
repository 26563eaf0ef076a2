#include "tools/sweep/points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "algorithms/gemm/gemm.hpp"
#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "tools/report/shell_word.hpp"

namespace podsim {

namespace {

bool takes_no_slices(const PointInputs& inputs) {
  if (inputs.text("gemm").empty() && inputs.text("workload").empty()) return false;
  const auto algorithm = gemm_algorithm(inputs.text("algorithm"));
  return algorithm && !(*algorithm)->takes_slice_count;
}

void put(PointInputs& inputs, const SweepAxis& axis, const std::string& text) {
  if (axis.path.empty())
    inputs.texts[axis.field] = text;
  else if (!text.empty())
    inputs.sets.emplace_back(axis.path, text);
}

}  // namespace

/// The blocks being walked, one axis inside the other.
class SweepExpansion {
 public:
  SweepExpansion(std::vector<SweepBlock> blocks, const DevicesOf& devices_of) : devices_of_{devices_of} { points_.blocks_ = std::move(blocks); }

  Expected<Points> run() {
    for (std::size_t b = 0; b < points_.blocks_.size() && count_ <= most_points; ++b) {
      block_ = &points_.blocks_[b];
      points_.choices_.emplace_back();
      choice_.assign(block_->axes.size(), 0);
      known_.clear();
      walk(0, {});
      points_.begins_.push_back(count_);
    }
    if (count_ > most_points) return Diagnostic{block_->where, fmt::format("expected at most {} points in all, found more", most_points)};
    return std::move(points_);
  }

 private:
  void walk(std::size_t a, const PointInputs& inputs) {
    if (count_ > most_points) return;
    if (a == block_->axes.size()) {
      points_.choices_.back().insert(points_.choices_.back().end(), choice_.begin(), choice_.end());
      ++count_;
      return;
    }
    const SweepAxis& axis = block_->axes[a];
    const std::string_view field = scenario_fields()[axis.field].name;
    if (field == "slice_count" && takes_no_slices(inputs)) return take(a, value(a, "", axis.values.front().where), inputs);
    const std::size_t given = axis.values.size() - known_[a].size();
    for (std::size_t v = 0; v < given; ++v) {
      const std::optional<int> devices = field == "mesh" && block_->axes[a].values[v].text == "all" ? devices_of_(inputs) : std::nullopt;
      if (!devices) take(a, static_cast<std::uint32_t>(v), inputs);
      for (int rows = devices.value_or(0); rows >= 1; --rows)
        if (*devices % rows == 0) take(a, value(a, fmt::format("row={},col={}", rows, *devices / rows), block_->axes[a].values[v].where), inputs);
    }
  }

  void take(std::size_t a, std::uint32_t v, const PointInputs& inputs) {
    choice_[a] = v;
    PointInputs with = inputs;
    put(with, block_->axes[a], block_->axes[a].values[v].text);
    walk(a + 1, with);
  }

  /// The number of a value that the file does not have; it goes behind the given ones.
  std::uint32_t value(std::size_t a, const std::string& text, const SourceLocation& where) {
    std::vector<SweepValue>& values = block_->axes[a].values;
    const auto [entry, is_new] = known_[a].try_emplace(text, static_cast<std::uint32_t>(values.size()));
    if (is_new) values.push_back({text, where});
    return entry->second;
  }

  const DevicesOf& devices_of_;
  Points points_;
  SweepBlock* block_ = nullptr;
  std::vector<std::uint32_t> choice_;
  std::map<std::size_t, std::map<std::string, std::uint32_t>> known_;  // of each axis: the values that were added
  std::size_t count_ = 0;
};

Fields fields_of(const PointInputs& inputs) {
  Fields fields;
  for (const auto& [path, value] : inputs.sets) fields.add("set", path + "=" + value, of_field("set"));
  for (std::size_t f = 0; f < inputs.texts.size(); ++f) {
    const std::string name{scenario_fields()[f].name};
    fields.add_value(name, inputs.texts[f], of_field(name));
  }
  return fields;
}

Expected<Points> expand(std::vector<SweepBlock> blocks, const DevicesOf& devices_of) { return SweepExpansion{std::move(blocks), devices_of}.run(); }

PointInputs Points::inputs(std::size_t position) const {
  PODSIM_ASSERT(position < size());
  const std::size_t b = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), position) - begins_.begin());
  const std::size_t in_block = position - (b == 0 ? 0 : begins_[b - 1]);
  const std::vector<SweepAxis>& axes = blocks_[b].axes;
  PointInputs inputs;
  for (std::size_t a = 0; a < axes.size(); ++a) put(inputs, axes[a], axes[a].values[choices_[b][in_block * axes.size() + a]].text);
  return inputs;
}

std::string option_of(std::string_view field) {
  std::string option{field};
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

std::vector<std::string> arguments_of(const PointInputs& inputs) {
  std::vector<std::string> arguments;
  const Fields fields = fields_of(inputs);
  for (const FieldKind* field : fields.given()) {
    const std::string option = option_of(field->name);
    for (const FieldText& given : fields.texts(field->name))
      arguments.push_back(field->form == Form::flag ? "--" + option : fmt::format("--{}={}", option, given.text));
  }
  return arguments;
}

std::string command_of(const PointInputs& inputs) {
  std::string command = "podsim run";
  for (const std::string& argument : arguments_of(inputs)) {
    const std::size_t equals = argument.find('=');
    command += ' ' + argument.substr(0, equals);
    if (equals == std::string::npos) continue;
    const std::string value = argument.substr(equals + 1);
    command += (value.starts_with('-') ? '=' : ' ') + shell_word(value);
  }
  return command;
}

}  // namespace podsim
