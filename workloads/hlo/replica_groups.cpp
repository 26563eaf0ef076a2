#include "workloads/hlo/replica_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/invariant.hpp"
#include "workloads/hlo/hlo_cursor.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_devices_of_groups = (std::int64_t{1} << 31) - 1, most_listed = std::int64_t{1} << 24;
constexpr std::size_t most_extents = 64;

/// 0 for an extent below 1 or a product beyond the limit.
std::int64_t product_of_extents(const std::vector<std::int64_t>& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > most_devices_of_groups) return 0;
    product *= extent;
    if (product > most_devices_of_groups) return 0;
  }
  return product;
}

/// Element `at` of iota(dims), transposed.
std::int64_t iota_at(const std::vector<std::int64_t>& dims, const std::vector<int>& transpose, std::int64_t at) {
  if (transpose.empty()) return at;
  std::int64_t id = 0;
  for (std::size_t p = transpose.size(); p-- > 0;) {
    const auto d = static_cast<std::size_t>(transpose[p]);
    std::int64_t stride = 1;
    for (std::size_t i = d + 1; i < dims.size(); ++i) stride *= dims[i];
    id += at % dims[d] * stride;
    at /= dims[d];
  }
  return id;
}

bool is_permutation_of(const std::vector<int>& transpose, std::size_t rank) {
  std::vector<bool> seen(rank);
  for (const int d : transpose) {
    if (d < 0 || static_cast<std::size_t>(d) >= rank || seen[static_cast<std::size_t>(d)]) return false;
    seen[static_cast<std::size_t>(d)] = true;
  }
  return transpose.size() == rank;
}

Diagnostic beyond(const SourceLocation& where) {
  return {where, fmt::format("expected groups of at most {} devices whose extents are 1 or more", most_devices_of_groups)};
}

/// The parts that a mesh axis is split into by what is listed of it, most significant first: sizes, and for each listed part the first of its
/// sizes and how many they are. Empty if parts overlap or do not divide.
std::vector<std::int64_t> split_axis(std::int64_t size, const std::vector<ReplicaGroups::AxisPart>& listed, int axis) {
  std::vector<std::int64_t> cuts{1, size};
  for (const ReplicaGroups::AxisPart& part : listed)
    if (part.axis == axis && part.size > 0) cuts.insert(cuts.end(), {part.before, part.before * part.size});
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i] % cuts[i - 1] != 0) return {};
    sizes.push_back(cuts[i] / cuts[i - 1]);
  }
  if (sizes.empty()) sizes.push_back(1);
  return sizes;
}

}  // namespace

ReplicaGroups ReplicaGroups::of_list(const std::vector<std::vector<std::int64_t>>& groups) {
  ReplicaGroups result;
  result.spelling_ = Spelling::list;
  result.begins_.push_back(0);
  for (const std::vector<std::int64_t>& group : groups) {
    PODSIM_ASSERT(!group.empty());
    result.ids_.insert(result.ids_.end(), group.begin(), group.end());
    result.begins_.push_back(static_cast<std::int64_t>(result.ids_.size()));
  }
  return result;
}

Expected<ReplicaGroups> ReplicaGroups::of_iota(std::vector<std::int64_t> rows, std::vector<std::int64_t> dims, std::vector<int> transpose,
                                               const SourceLocation& where) {
  if (rows.size() != 2) return Diagnostic{where, fmt::format("expected [groups,size] before \"<=\", got [{}]", fmt::join(rows, ","))};
  const std::int64_t devices = product_of_extents(dims), in_rows = product_of_extents(rows);
  if (devices == 0 || in_rows == 0) return beyond(where);
  if (in_rows != devices)
    return Diagnostic{where, fmt::format("expected {} groups of {} devices, got the {} of [{}]", rows[0], rows[1], devices, fmt::join(dims, ","))};
  if (!transpose.empty() && !is_permutation_of(transpose, dims.size()))
    return Diagnostic{where, fmt::format("expected a permutation of the {} dimensions, got T({})", dims.size(), fmt::join(transpose, ","))};
  ReplicaGroups result;
  result.spelling_ = Spelling::iota;
  result.count_ = rows[0];
  result.size_ = rows[1];
  result.dims_ = std::move(dims);
  result.transpose_ = std::move(transpose);
  return result;
}

Expected<ReplicaGroups> ReplicaGroups::of_mesh(std::vector<Axis> axes, std::vector<std::int64_t> device_ids, std::vector<AxisPart> listed,
                                               const SourceLocation& where) {
  std::vector<std::int64_t> sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size);
  const std::int64_t devices = product_of_extents(sizes);
  if (devices == 0 || axes.empty()) return beyond(where);
  if (!device_ids.empty() && static_cast<std::int64_t>(device_ids.size()) != devices)
    return Diagnostic{where, fmt::format("expected the ids of the {} devices of the mesh, got {}", devices, device_ids.size())};
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const AxisPart& part = listed[i];
    const std::int64_t size = sizes[static_cast<std::size_t>(part.axis)];
    if (part.size != 0 && (part.size < 1 || part.before < 1 || part.before > size || part.size > size || size % (part.before * part.size) != 0))
      return Diagnostic{where, fmt::format("expected a part of the axis of size {}, got ({}){}", size, part.before, part.size)};
    for (std::size_t j = 0; j < i; ++j) {
      const AxisPart& other = listed[j];
      if (other.axis != part.axis) continue;
      const bool whole = part.size == 0 || other.size == 0;
      if (whole || (part.before < other.before * other.size && other.before < part.before * part.size))
        return Diagnostic{where,
                          fmt::format("expected every axis at most once, got {} again", quoted(axes[static_cast<std::size_t>(part.axis)].name))};
    }
  }

  ReplicaGroups result;
  result.spelling_ = Spelling::mesh;
  std::vector<std::vector<int>> split(axes.size());  // of each axis its dimensions in dims_
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::vector<std::int64_t> pieces = split_axis(sizes[axis], listed, static_cast<int>(axis));
    if (pieces.empty()) return Diagnostic{where, fmt::format("expected parts that divide axis {} of size {}", quoted(axes[axis].name), sizes[axis])};
    for (const std::int64_t piece : pieces) {
      split[axis].push_back(static_cast<int>(result.dims_.size()));
      result.dims_.push_back(piece);
    }
  }
  std::vector<bool> moved(result.dims_.size());
  std::vector<int> last;
  result.size_ = 1;
  for (const AxisPart& part : listed) {
    std::int64_t before = 1;
    for (const int d : split[static_cast<std::size_t>(part.axis)]) {
      const std::int64_t size = result.dims_[static_cast<std::size_t>(d)];
      if (part.size == 0 || (before >= part.before && before * size <= part.before * part.size && size > 1)) {
        last.push_back(d);
        moved[static_cast<std::size_t>(d)] = true;
        result.size_ *= size;
      }
      before *= size;
    }
  }
  for (std::size_t d = 0; d < result.dims_.size(); ++d)
    if (!moved[d]) result.transpose_.push_back(static_cast<int>(d));
  result.transpose_.insert(result.transpose_.end(), last.begin(), last.end());
  result.count_ = devices / result.size_;
  result.ids_ = std::move(device_ids);
  result.axes_ = std::move(axes);
  result.listed_ = std::move(listed);
  return result;
}

std::int64_t ReplicaGroups::count() const { return spelling_ == Spelling::list ? static_cast<std::int64_t>(begins_.size()) - 1 : count_; }

std::int64_t ReplicaGroups::size(std::int64_t group) const {
  if (spelling_ != Spelling::list) return size_;
  return begins_[static_cast<std::size_t>(group) + 1] - begins_[static_cast<std::size_t>(group)];
}

std::optional<std::int64_t> ReplicaGroups::uniform_size() const {
  if (is_all() || count() == 0) return std::nullopt;
  for (std::int64_t group = 1; spelling_ == Spelling::list && group < count(); ++group)
    if (size(group) != size(0)) return std::nullopt;
  return size(0);
}

std::int64_t ReplicaGroups::device(std::int64_t group, std::int64_t position) const {
  PODSIM_ASSERT(group >= 0 && group < count() && position >= 0 && position < size(group));
  if (spelling_ == Spelling::list) return ids_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(group)] + position)];
  const std::int64_t id = iota_at(dims_, transpose_, group * size_ + position);
  return ids_.empty() ? id : ids_[static_cast<std::size_t>(id)];
}

std::vector<std::int64_t> ReplicaGroups::devices(std::int64_t group) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size(group)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = device(group, static_cast<std::int64_t>(i));
  return all;
}

std::int64_t ReplicaGroups::total() const { return spelling_ == Spelling::list ? static_cast<std::int64_t>(ids_.size()) : count_ * size_; }

std::int64_t ReplicaGroups::largest() const {
  if (!ids_.empty()) return *std::max_element(ids_.begin(), ids_.end());
  return total() - 1;
}

std::string to_text(const ReplicaGroups& groups) {
  using Spelling = ReplicaGroups::Spelling;
  if (groups.is_all()) return "{}";
  if (groups.spelling_ == Spelling::list) {
    std::string text;
    for (std::int64_t group = 0; group < groups.count(); ++group)
      text += fmt::format("{}{{{}}}", group > 0 ? "," : "", fmt::join(groups.devices(group), ","));
    return '{' + text + '}';
  }
  if (groups.spelling_ == Spelling::iota) {
    std::string text = fmt::format("[{},{}]<=[{}]", groups.count_, groups.size_, fmt::join(groups.dims_, ","));
    return groups.transpose_.empty() ? text : text + fmt::format("T({})", fmt::join(groups.transpose_, ","));
  }
  std::string mesh, listed;
  for (const ReplicaGroups::Axis& axis : groups.axes_) mesh += fmt::format("{}'{}'={}", mesh.empty() ? "" : ",", axis.name, axis.size);
  for (const ReplicaGroups::AxisPart& part : groups.listed_) {
    listed += fmt::format("{}'{}'", listed.empty() ? "" : ",", groups.axes_[static_cast<std::size_t>(part.axis)].name);
    if (part.size > 0) listed += fmt::format(":({}){}", part.before, part.size);
  }
  const std::string ids = groups.ids_.empty() ? "" : fmt::format(", device_ids=({})", fmt::join(groups.ids_, ","));
  return fmt::format("mesh[{}]{} {{{}}}", mesh, ids, listed);
}

namespace {

class GroupsText {
 public:
  explicit GroupsText(HloCursor& cursor) : cursor_{cursor} {}

  Expected<ReplicaGroups> read() {
    Expected<ReplicaGroups> groups = cursor_.peek() == '{' ? read_list() : cursor_.peek() == '[' ? read_iota() : read_mesh();
    if (error_) return *error_;
    return groups;
  }

 private:
  bool expected(std::string_view what) {
    if (!error_) error_ = cursor_.expected(what);
    return false;
  }

  bool read_integer(std::int64_t& value, std::string_view what) {
    cursor_.skip_blanks();
    const std::size_t at = cursor_.at();
    const auto found = cursor_.take_integer();
    if (!found || *found < 0 || *found > most_devices_of_groups) {
      cursor_.move_to(at);
      return expected(what);
    }
    value = *found;
    cursor_.skip_blanks();
    return true;
  }

  /// Integers up to `end`, behind its opening bracket.
  bool read_integers(std::vector<std::int64_t>& values, char end, std::string_view what) {
    cursor_.skip_blanks();
    if (cursor_.take(end)) return true;
    do {
      if (static_cast<std::int64_t>(values.size()) == most_listed) return expected("at most 2^24 devices");
      if (!read_integer(values.emplace_back(), what)) return false;
    } while (cursor_.take(','));
    return cursor_.take(end) || expected(fmt::format("\",\" or \"{}\"", end));
  }

  /// Places are counted only for errors.
  Expected<ReplicaGroups> at(std::size_t begin, Expected<ReplicaGroups> groups) {
    if (!groups) return Diagnostic{cursor_.where(begin), groups.error().message};
    return groups;
  }

  Expected<ReplicaGroups> read_list() {
    const std::size_t begin = cursor_.at();
    std::vector<std::vector<std::int64_t>> groups;
    std::size_t listed = 0;
    cursor_.take('{');
    cursor_.skip_blanks();
    if (cursor_.take('}')) return ReplicaGroups{};
    do {
      cursor_.skip_blanks();
      if (!cursor_.take('{')) return expected("\"{\" and a group of devices"), ReplicaGroups{};
      if (!read_integers(groups.emplace_back(), '}', "the id of a device")) return ReplicaGroups{};
      if (groups.back().empty() && groups.size() > 1) return expected("a group of devices, not an empty one, before this"), ReplicaGroups{};
      listed += groups.back().size();
      if (listed > static_cast<std::size_t>(most_listed)) return expected("at most 2^24 devices"), ReplicaGroups{};
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    if (!cursor_.take('}')) return expected("\",\" and the next group, or \"}\""), ReplicaGroups{};
    if (groups.front().empty()) {
      if (groups.size() > 1) return Diagnostic{cursor_.where(begin), "expected groups of devices, got an empty one"};
      return ReplicaGroups{};  // {{}}: one group of all
    }
    ReplicaGroups result = ReplicaGroups::of_list(groups);
    std::vector<std::int64_t> ids;
    for (const std::vector<std::int64_t>& group : groups) ids.insert(ids.end(), group.begin(), group.end());
    if (!each_once(std::move(ids), begin)) return ReplicaGroups{};
    return result;
  }

  bool each_once(std::vector<std::int64_t> ids, std::size_t begin) {
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice != ids.end() && !error_) error_ = {cursor_.where(begin), fmt::format("expected every device at most once, got {} again", *twice)};
    return twice == ids.end();
  }

  /// `[4,2]T(1,0)` behind its opening bracket; the transpose may be left out.
  bool read_reshaped(std::vector<std::int64_t>& dims, std::vector<int>& transpose) {
    if (!read_integers(dims, ']', "an extent")) return false;
    if (dims.size() > most_extents) return expected("at most 64 extents, before this");
    if (!cursor_.take("T(")) return true;
    std::vector<std::int64_t> order;
    if (!read_integers(order, ')', "a dimension")) return false;
    for (const std::int64_t d : order) transpose.push_back(static_cast<int>(d));
    return true;
  }

  Expected<ReplicaGroups> read_iota() {
    const std::size_t begin = cursor_.at();
    std::vector<std::int64_t> rows, dims;
    std::vector<int> transpose;
    cursor_.take('[');
    if (!read_integers(rows, ']', "the number of groups")) return ReplicaGroups{};
    if (!cursor_.take("<=[")) return expected("\"<=[\""), ReplicaGroups{};
    if (!read_reshaped(dims, transpose)) return ReplicaGroups{};
    return at(begin, ReplicaGroups::of_iota(std::move(rows), std::move(dims), std::move(transpose), {}));
  }

  bool read_axis_name(std::string_view& name) {
    cursor_.skip_blanks();
    const std::size_t begin = cursor_.at();
    if (cursor_.take('\'')) {
      const std::size_t end = cursor_.text().find('\'', cursor_.at());
      if (end == std::string_view::npos || end == begin + 1) return expected("the name of an axis and \"'\"");
      name = cursor_.text().substr(begin + 1, end - begin - 1);
      cursor_.move_to(end + 1);
      return true;
    }
    name = cursor_.take_name();
    return !name.empty() || expected("the name of an axis");
  }

  bool read_device_ids(std::vector<std::int64_t>& ids) {
    const std::size_t begin = cursor_.at();
    if (!cursor_.take("device_ids=(")) return expected("\"device_ids=(\"");
    if (!cursor_.take('[')) return read_integers(ids, ')', "the id of a device") && each_once(ids, begin);
    std::vector<std::int64_t> dims;
    std::vector<int> transpose;
    if (!read_reshaped(dims, transpose)) return false;
    const std::int64_t devices = product_of_extents(dims);
    if (devices == 0 || devices > most_listed || (!transpose.empty() && !is_permutation_of(transpose, dims.size()))) {
      cursor_.move_to(begin);
      return expected("the ids of at most 2^24 devices");
    }
    for (std::int64_t i = 0; i < devices; ++i) ids.push_back(iota_at(dims, transpose, i));
    return cursor_.take(')') || expected("\")\"");
  }

  Expected<ReplicaGroups> read_mesh() {
    const std::size_t begin = cursor_.at();
    if (!cursor_.take("mesh[")) return expected("replica groups: {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=4] {'x'}"), ReplicaGroups{};
    std::vector<ReplicaGroups::Axis> axes;
    std::vector<std::int64_t> ids;
    std::vector<ReplicaGroups::AxisPart> listed;
    std::map<std::string_view, int> numbers;
    do {
      if (axes.size() == most_extents) return expected("at most 64 axes"), ReplicaGroups{};
      std::string_view name;
      std::int64_t size = 0;
      if (!read_axis_name(name)) return ReplicaGroups{};
      if (!numbers.emplace(name, static_cast<int>(axes.size())).second) return expected("every axis of a mesh once, before this"), ReplicaGroups{};
      if (!cursor_.take('=')) return expected("\"=\" and the size of the axis"), ReplicaGroups{};
      if (!read_integer(size, "the size of an axis")) return ReplicaGroups{};
      axes.push_back({std::string{name}, size});
    } while (cursor_.take(','));
    if (!cursor_.take(']')) return expected("\",\" and the next axis, or \"]\""), ReplicaGroups{};
    cursor_.skip_blanks();
    if (cursor_.take(',')) {
      cursor_.skip_blanks();
      if (!read_device_ids(ids)) return ReplicaGroups{};
      cursor_.skip_blanks();
    }
    if (!cursor_.take('{')) return expected("\"{\" and the axes of the groups"), ReplicaGroups{};
    cursor_.skip_blanks();
    if (!cursor_.take('}')) {
      do {
        std::string_view name;
        cursor_.skip_blanks();
        const std::size_t at = cursor_.at();
        if (!read_axis_name(name)) return ReplicaGroups{};
        const auto found = numbers.find(name);
        if (found == numbers.end()) return cursor_.expected_at(at, "an axis of the mesh");
        ReplicaGroups::AxisPart part{found->second, 1, 0};
        if (cursor_.take(":(")) {
          if (!read_integer(part.before, "the size before the part of an axis")) return ReplicaGroups{};
          if (!cursor_.take(')')) return expected("\")\""), ReplicaGroups{};
          if (!read_integer(part.size, "the size of the part of an axis")) return ReplicaGroups{};
          if (part.size < 1) return cursor_.expected_at(at, "a part of the axis of size 1 or more");
        }
        listed.push_back(part);
        if (listed.size() > most_extents) return expected("at most 64 axes, before this"), ReplicaGroups{};
        cursor_.skip_blanks();
      } while (cursor_.take(','));
      if (!cursor_.take('}')) return expected("\",\" and the next axis, or \"}\""), ReplicaGroups{};
    }
    return at(begin, ReplicaGroups::of_mesh(std::move(axes), std::move(ids), std::move(listed), {}));
  }

  HloCursor& cursor_;
  std::optional<Diagnostic> error_;
};

}  // namespace

Expected<ReplicaGroups> parse_replica_groups(std::string_view text, std::size_t& at, const SourceLocation& where) {
  HloCursor cursor{text, at, where};
  auto groups = GroupsText{cursor}.read();
  at = cursor.at();
  return groups;
}

std::optional<SourceTarget> repeated_pair(const std::vector<SourceTarget>& pairs) {
  std::set<std::int64_t> sources, targets;
  for (const auto& pair : pairs)
    if (!sources.insert(pair.first).second || !targets.insert(pair.second).second) return pair;
  return {};
}

}  // namespace podsim
