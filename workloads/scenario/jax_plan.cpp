#include "workloads/scenario/jax_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/blame.hpp"
#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "workloads/scenario/jax_transfers.hpp"

namespace podsim {

namespace {

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto fits = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), fits);
}

/// Views of one axis that follow on each other are one view.
std::vector<AxisView> merged(const std::vector<AxisView>& views) {
  std::vector<AxisView> result;
  for (const AxisView& view : views) {
    if (!result.empty() && result.back().axis == view.axis && result.back().stride == view.stride * view.size)
      result.back() = {view.axis, view.stride, view.size * result.back().size};
    else
      result.push_back(view);
  }
  return result;
}

/// The mesh in which every view is an axis, or several.
class SplitMesh {
 public:
  explicit SplitMesh(const Mesh& mesh) : mesh_{mesh}, strides_(mesh.axes().size()) {
    for (std::size_t a = 0; a < strides_.size(); ++a) strides_[a] = {1, mesh.axes()[a].size};
  }

  void add(const std::vector<AxisView>& views) {
    for (const AxisView& view : merged(views)) {
      strides_[static_cast<std::size_t>(view.axis)].insert(view.stride);
      strides_[static_cast<std::size_t>(view.axis)].insert(view.stride * view.size);
    }
  }

  /// Errors: a name that another axis has.
  Status split(const AxisNames& names) {
    std::vector<MeshAxis> all;
    for (std::size_t a = 0; a < strides_.size(); ++a) {
      const MeshAxis& axis = mesh_.axes()[a];
      const auto given = std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.first == axis.name; });
      const std::string name = given == names.end() ? axis.name : given->second;
      const std::vector<int> at{strides_[a].begin(), strides_[a].end()};
      firsts_.push_back(static_cast<int>(all.size()));
      if (at.size() <= 2) {
        all.push_back({name, axis.size, axis.wraps, axis.factors});
        continue;
      }
      for (std::size_t i = at.size(); --i > 0;) {
        PODSIM_ASSERT(at[i] % at[i - 1] == 0 && "rows and columns of a submesh share no coordinate");
        all.push_back({fmt::format("{}_{}", name, at.size() - 1 - i), at[i] / at[i - 1], false, {}});
      }
    }
    firsts_.push_back(static_cast<int>(all.size()));
    auto made = Mesh::make(std::move(all));
    if (!made) return made.error();
    split_ = *std::move(made);
    return success();
  }

  [[nodiscard]] const Mesh& mesh() const { return split_; }
  /// The axes that an axis of the mesh has become.
  [[nodiscard]] std::vector<std::string> names_of(std::size_t axis) const {
    std::vector<std::string> names;
    for (int i = firsts_[axis]; i < firsts_[axis + 1]; ++i) names.push_back(split_.axes()[static_cast<std::size_t>(i)].name);
    return names;
  }
  [[nodiscard]] std::vector<int> axes_of(const std::vector<AxisView>& views) const {
    std::vector<int> axes;
    for (const AxisView& view : merged(views)) {
      const auto a = static_cast<std::size_t>(view.axis);
      int stride = mesh_.axes()[a].size;
      for (int i = firsts_[a]; i < firsts_[a + 1]; ++i) {
        stride /= split_.axes()[static_cast<std::size_t>(i)].size;
        if (stride >= view.stride && stride < view.stride * view.size) axes.push_back(i);
      }
    }
    return axes;
  }
  [[nodiscard]] Sharding sharding_of(const PartTensor& tensor) const {
    return Sharding{{axes_of(tensor.sharding[0]), axes_of(tensor.sharding[1])}, {}}.canonical();
  }
  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (std::size_t a = 0; a < strides_.size(); ++a) {
      if (firsts_[a + 1] - firsts_[a] < 2) continue;
      std::string parts;
      for (int i = firsts_[a]; i < firsts_[a + 1]; ++i) {
        const MeshAxis& part = split_.axes()[static_cast<std::size_t>(i)];
        parts += fmt::format("{}{}={}", parts.empty() ? "" : ",", part.name, part.size);
      }
      notes.push_back(
          fmt::format("Arrays are divided by a part of the axis {}={}, which no PartitionSpec can say: JAX's mesh needs the axis split into {}.",
                      mesh_.axes()[a].name, mesh_.axes()[a].size, parts));
    }
    return notes;
  }

 private:
  const Mesh& mesh_;
  std::vector<std::set<int>> strides_;  // per axis: where views begin and end
  std::vector<int> firsts_;             // per axis the first of its axes in the split mesh
  Mesh split_;
};

struct ScheduledPart {
  const WorkloadPart* part;
  Schedule schedule;
  std::vector<PartTensor> tensors;
};

Bytes bytes_on_device(const PartTensor& tensor) {
  std::int64_t elements = tensor.extents[0] * tensor.extents[1];
  for (const auto& axes : tensor.sharding)
    for (const AxisView& axis : axes) elements /= axis.size;
  return Bytes{elements * size_of(tensor.dtype).count()};
}

std::vector<std::string> notes_on(const std::vector<WorkloadPart>& parts) {
  const auto has = [&](auto test) { return std::any_of(parts.begin(), parts.end(), test); };
  std::vector<std::string> notes;
  if (has([](const WorkloadPart& part) { return part.kind == WorkloadPart::Kind::attention; }))
    notes.push_back(fmt::format(
        "The features that {} writes are ordered by group of heads: its queries, then its key, then its value. So are the columns of its W.",
        qkv_stage));
  if (has([](const WorkloadPart& part) { return part.kind == WorkloadPart::Kind::activation && part.gated; }))
    notes.emplace_back(
        "Each device's features before the activation are its columns of the gate, then its columns of up; the columns of the W before are ordered "
        "so.");
  if (has([](const WorkloadPart& part) { return part.kind == WorkloadPart::Kind::relayout; }))
    notes.emplace_back(
        "A re-layout transposes the block of each device, so that features come out in another order (along both mesh axes, then within a device); "
        "the "
        "rows of the W that reads them are ordered so. JAX keeps the order and exchanges blocks instead.");
  return notes;
}

}  // namespace

Expected<AxisNames> parse_axis_names(std::string_view text, const Mesh& mesh, const SourceLocation& where) {
  AxisNames names;
  std::size_t at = 0;
  const auto wrong = [&](std::size_t column, std::string message) {
    Diagnostic diagnostic{where, std::move(message)};
    if (where.column > 0) diagnostic.where.column += static_cast<int>(column);
    return diagnostic;
  };
  std::vector<std::size_t> columns;
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos) return wrong(at, "expected AXIS=NAME, as in row=data,col=model; got " + quoted(piece));
    const std::string axis{trimmed(std::string_view{piece}.substr(0, equals))}, name{trimmed(std::string_view{piece}.substr(equals + 1))};
    if (const auto known = mesh.axis(axis); !known) return wrong(at, known.error().message);
    if (std::any_of(names.begin(), names.end(), [&](const auto& other) { return other.first == axis; }))
      return wrong(at, fmt::format("expected each axis at most once, got {} again", quoted(axis)));
    if (!is_identifier(name))
      return wrong(at + equals + 1, "expected a name of letters, digits and _ that begins with no digit, got " + quoted(name));
    names.emplace_back(axis, name);
    columns.push_back(at + equals + 1);
    at += piece.size() + 1;
  }
  std::map<std::string, std::string> named;  // the axis of each name
  for (const MeshAxis& axis : mesh.axes())
    if (std::none_of(names.begin(), names.end(), [&](const auto& other) { return other.first == axis.name; })) named[axis.name] = axis.name;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const auto [other, added] = named.try_emplace(names[i].second, names[i].first); !added)
      return wrong(columns[i],
                   fmt::format("expected a name of its own for each axis, got {}, which is that of {}", quoted(names[i].second), other->second));
  return names;
}

Expected<JaxPlan> jax_plan(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass, const AxisNames& names) {
  const auto parts = parts_of(workload, plan, submesh, pass);
  if (!parts) return parts.error();
  std::vector<ScheduledPart> scheduled;
  SplitMesh split{submesh.mesh};
  for (const WorkloadPart& part : *parts) {
    auto schedule = part_schedule(submesh, part, plan.options);
    if (!schedule) return blamed_on(location_of(part.written_at), schedule.error());
    std::vector<PartTensor> tensors = tensors_of(part, *schedule);
    for (const PartTensor& tensor : tensors)
      for (const auto& views : tensor.sharding) split.add(views);
    scheduled.push_back({&part, *std::move(schedule), std::move(tensors)});
  }
  if (const Status ok = split.split(names); !ok) return ok.error();

  JaxPlan result;
  result.mesh = split.mesh();
  for (std::size_t a = 0; a < submesh.mesh.axes().size(); ++a) result.axes.emplace_back(submesh.mesh.axes()[a].name, split.names_of(a));
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& [part, schedule, tensors] : scheduled) {
    std::vector<JaxArray> arrays;
    for (const PartTensor& tensor : tensors)
      arrays.push_back({part->name, part->pass, tensor, {tensor.extents[0], tensor.extents[1]}, split.sharding_of(tensor), bytes_on_device(tensor)});
    auto compared = compare_with_jax(*part, schedule, arrays, split.mesh(), [&](const AxisView& view) { return split.axes_of({view}); });
    if (!compared) return in_context(part->name, compared.error());
    std::move(compared->begin(), compared->end(), std::back_inserter(result.comparisons));
    for (JaxArray& array : arrays)
      if (known.emplace(array.layer, array.tensor.name).second) result.arrays.push_back(std::move(array));
  }
  result.notes = split.notes();
  for (std::string& note : notes_on(*parts)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace podsim
