#include "sim/mesh/sharding.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"

namespace podsim {
namespace {

constexpr std::string_view unreduced_prefix = "unreduced(";
constexpr std::string_view blanks = " \t";

/// Reads a sharding's text from its begin to its end. Every function returns false after it has set the error.
class ShardingText {
 public:
  ShardingText(std::string_view text, const Mesh& mesh, const SourceLocation& where) : text_{text}, mesh_{mesh}, where_{where} {}

  Expected<Sharding> read(std::size_t rank, bool allow_unreduced) {
    skip_blanks();
    if (text_.substr(at_).starts_with(unreduced_prefix) && !read_unreduced(allow_unreduced)) return *error_;
    if (at_ < text_.size() && !read_entries(rank)) return *error_;
    std::sort(result_.unreduced.begin(), result_.unreduced.end());
    return result_.canonical();
  }

 private:
  bool fail(std::size_t at, std::string message) {
    error_ = Diagnostic{where_, std::move(message)};
    if (where_.column > 0) error_->where.column += static_cast<int>(at);
    return false;
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size()); }
  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] std::string found() const { return at_ < text_.size() ? quoted(text_.substr(at_)) : "the end"; }

  bool read_unreduced(bool allowed) {
    if (!allowed) return fail(at_, "expected a sharding without unreduced axes: such an array cannot be given or shown, only computed");
    at_ += unreduced_prefix.size();
    if (!read_axes(result_.unreduced)) return false;
    skip_blanks();
    if (next() != ':') return fail(at_, "expected \":\" after the unreduced axes, got " + found());
    ++at_;
    skip_blanks();
    return true;
  }

  bool read_entries(std::size_t rank) {
    for (std::size_t dimension = 0;; ++dimension) {
      skip_blanks();
      const std::size_t begin = at_;
      std::vector<int> axes;
      if (!read_entry(axes)) return false;
      // A scalar is written "-".
      if (dimension >= rank && (dimension > 0 || !axes.empty()))
        return fail(begin, fmt::format("expected at most {} {}, one per dimension of the array, got {}", rank, rank == 1 ? "entry" : "entries",
                                       quoted(text_.substr(begin))));
      result_.dims.push_back(std::move(axes));
      skip_blanks();
      if (at_ == text_.size()) return true;
      if (next() == '+') return fail(at_, "several axes of one dimension need parentheses, as in (x+y); got " + found());
      if (next() != ',') return fail(at_, "expected \",\" before the entry of the next dimension, got " + found());
      ++at_;
    }
  }

  bool read_entry(std::vector<int>& axes) {
    if (next() == '(') return ++at_, read_axes(axes);
    const std::size_t begin = at_;
    if (word() == "-") return true;
    at_ = begin;
    return read_axis(axes, "an axis, \"-\" for none, or several axes as in (x+y)");
  }

  /// "x+y)": one axis or more, up to the parenthesis.
  bool read_axes(std::vector<int>& axes) {
    for (;;) {
      skip_blanks();
      if (!read_axis(axes, "an axis")) return false;
      skip_blanks();
      if (next() == ')') return ++at_, true;
      if (next() != '+') return fail(at_, "expected \"+\" and an axis, or \")\", got " + found());
      ++at_;
    }
  }

  bool read_axis(std::vector<int>& axes, std::string_view expected) {
    const std::size_t begin = at_;
    const std::string_view name = word();
    if (name.empty() || name == "-") {
      at_ = begin;
      return fail(begin, fmt::format("expected {}, got {}", expected, found()));
    }
    const Expected<AxisView> view = mesh_.axis(name);
    if (!view) return fail(begin, view.error().message);
    if (used_.empty()) used_.resize(mesh_.axes().size());
    if (used_[static_cast<std::size_t>(view->axis)]) return fail(begin, fmt::format("expected each axis at most once, got {} again", quoted(name)));
    used_[static_cast<std::size_t>(view->axis)] = true;
    axes.push_back(view->axis);
    return true;
  }

  /// Up to the next separator.
  std::string_view word() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(",+():", at_), text_.size());
    return trimmed(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  const Mesh& mesh_;
  SourceLocation where_;
  std::size_t at_ = 0;
  std::vector<bool> used_;
  Sharding result_;
  std::optional<Diagnostic> error_;
};

const MeshAxis& axis_at(const Mesh& mesh, int axis) { return mesh.axes().at(static_cast<std::size_t>(axis)); }

std::string joined_names(const Mesh& mesh, const std::vector<int>& axes, std::string_view separator, std::string_view quote) {
  std::string text;
  for (const int axis : axes) text += fmt::format("{}{}{}{}", text.empty() ? "" : separator, quote, axis_at(mesh, axis).name, quote);
  return text;
}

}  // namespace

const std::vector<int>& Sharding::axes_of(std::size_t dimension) const {
  static const std::vector<int> none;
  return dimension < dims.size() ? dims[dimension] : none;
}

Sharding Sharding::canonical() const {
  Sharding result = *this;
  while (!result.dims.empty() && result.dims.back().empty()) result.dims.pop_back();
  return result;
}

Expected<Sharding> parse_sharding(std::string_view text, const Mesh& mesh, std::size_t rank, const SourceLocation& where, bool allow_unreduced) {
  return ShardingText{text, mesh, where}.read(rank, allow_unreduced);
}

std::string to_text(const Sharding& sharding, const Mesh& mesh, std::size_t rank) {
  std::string text = sharding.unreduced.empty() ? "" : fmt::format("unreduced({}):", joined_names(mesh, sharding.unreduced, "+", ""));
  for (std::size_t d = 0; d < rank || d == 0; ++d) {
    const std::vector<int>& axes = sharding.axes_of(d);
    if (d > 0) text += ',';
    const std::string names = joined_names(mesh, axes, "+", "");
    text += axes.empty() ? "-" : axes.size() == 1 ? names : '(' + names + ')';
  }
  return text;
}

std::string jax_text(const Sharding& sharding, const Mesh& mesh, std::size_t rank) {
  std::string text;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::vector<int>& axes = sharding.axes_of(d);
    if (d > 0) text += ", ";
    const std::string names = joined_names(mesh, axes, ", ", "'");
    text += axes.empty() ? "None" : axes.size() == 1 ? names : '(' + names + ')';
  }
  if (!sharding.unreduced.empty())
    text += fmt::format("{}unreduced={{{}}}", text.empty() ? "" : ", ", joined_names(mesh, sharding.unreduced, ", ", "'"));
  return "P(" + text + ')';
}

std::int64_t devices_along(const Mesh& mesh, const std::vector<int>& axes) {
  std::int64_t devices = 1;
  for (const int axis : axes) devices *= axis_at(mesh, axis).size;
  return devices;
}

Expected<Extents> shard_extents(const Extents& extents, const Sharding& sharding, const Mesh& mesh, std::string_view array,
                                const SourceLocation& where) {
  PODSIM_ASSERT(sharding.canonical().dims.size() <= extents.size() && "at most one entry per dimension");
  Extents result = extents;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t blocks = devices_along(mesh, sharding.axes_of(d));
    if (extents[d] % blocks != 0) {
      std::string axes;
      for (const int axis : sharding.axes_of(d))
        axes += fmt::format("{}{}={}", axes.empty() ? "" : ",", axis_at(mesh, axis).name, axis_at(mesh, axis).size);
      return Diagnostic{where,
                        fmt::format("dimension {} of {}, divided along {}, must be a multiple of {}, got {}", d, array, axes, blocks, extents[d])};
    }
    result[d] = extents[d] / blocks;
  }
  return result;
}

Extents padded_extents(const Extents& extents, const Sharding& sharding, const Mesh& mesh) {
  Extents result = extents;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t blocks = devices_along(mesh, sharding.axes_of(d)), rest = extents[d] % blocks;
    if (rest != 0) result[d] += blocks - rest;
  }
  return result;
}

std::int64_t block_of(const Mesh& mesh, const std::vector<int>& axes, DeviceId device) {
  std::int64_t block = 0;
  for (const int axis : axes) block = block * axis_at(mesh, axis).size + mesh.coordinate(device, mesh.whole(axis));
  return block;
}

Expected<std::vector<Shard>> shards_of(const Extents& extents, const Sharding& sharding, const Mesh& mesh, const SourceLocation& where) {
  const Expected<Extents> block = shard_extents(extents, sharding, mesh, "the array", where);
  if (!block) return block.error();
  std::int64_t count = 1;  // at most mesh.devices(), since each axis divides one dimension
  for (std::size_t d = 0; d < extents.size(); ++d) count *= devices_along(mesh, sharding.axes_of(d));
  std::vector<Shard> shards(static_cast<std::size_t>(count));
  for (int i = 0; i < mesh.devices(); ++i) {
    std::int64_t number = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    ranges.reserve(extents.size());
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const std::int64_t position = block_of(mesh, sharding.axes_of(d), DeviceId{i});
      number = number * devices_along(mesh, sharding.axes_of(d)) + position;
      ranges.emplace_back(position * (*block)[d], (position + 1) * (*block)[d]);
    }
    Shard& shard = shards[static_cast<std::size_t>(number)];
    shard.devices.push_back(DeviceId{i});
    if (shard.devices.size() == 1) shard.ranges = std::move(ranges);
  }
  return shards;
}

}  // namespace podsim
