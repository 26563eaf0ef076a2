#include "algorithms/collectives/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/invariant.hpp"

namespace podsim {

Expected<Blocks> Blocks::make(const Region& region, int dim, int count) {
  if (dim < 0 || dim >= static_cast<int>(region.dims.size()))
    return Diagnostic{{}, fmt::format("there is no dimension {} to cut into blocks, the region has {}", dim, region.dims.size())};
  Blocks blocks;
  blocks.region_ = region;
  blocks.dim_ = static_cast<std::size_t>(dim);
  Range& range = blocks.region_.dims[blocks.dim_];
  if (range.length % count != 0)
    return Diagnostic{
        {}, fmt::format("dimension {} is cut into {} blocks, so its length must be a multiple of {}, found {}", dim, count, count, range.length)};
  blocks.block_length_ = range.length / count;
  if (!range.index.terms.empty()) {
    if (range.index.modulus != 0 || range.stride % blocks.block_length_ != 0)
      return Diagnostic{
          {},
          fmt::format("dimension {} is cut into blocks of {}, so it must begin at a multiple of that, without modulus", dim, blocks.block_length_)};
    blocks.base_ = range.index.terms;
    for (AxisTerm& term : blocks.base_) term.coefficient *= range.stride / blocks.block_length_;
  }
  range.offset += range.stride * range.index.constant;
  range.index = {};
  return blocks;
}

Part Blocks::whole() const { return {dim_, 0, block_length_}; }

Region Blocks::block(const Affine& index) const { return run(index, 1); }

Region Blocks::run(const Affine& first, std::int64_t count) const {
  PODSIM_ASSERT(first.modulus == 0);
  Region region = region_;
  Range& range = region.dims[dim_];
  Affine index{base_, first.constant};
  index.terms.insert(index.terms.end(), first.terms.begin(), first.terms.end());
  range = {std::move(index), block_length_, range.offset, block_length_ * count};
  return region;
}

Region Blocks::run(const Affine& first, std::int64_t count, const Part& part) const {
  PODSIM_ASSERT(part.dim != dim_ || part == whole());
  Region region = run(first, count);
  if (part.dim == dim_) return region;
  region.dims[part.dim].offset += part.begin;
  region.dims[part.dim].length = part.length;
  return region;
}

Region Blocks::block(const Affine& index, const Part& part) const {
  Region region = block(index);
  Range& cut = region.dims[part.dim];
  cut.offset += part.begin;
  cut.length = part.length;
  return region;
}

std::vector<Part> Blocks::parts(int count) const {
  const auto split = [count](std::size_t dim, std::int64_t length) {
    const std::int64_t pieces = std::min<std::int64_t>(count, length);
    std::vector<Part> parts;
    for (std::int64_t i = 0, begin = 0; i < pieces; ++i) {
      const std::int64_t part = (length - begin + pieces - i - 1) / (pieces - i);
      parts.push_back({dim, begin, part});
      begin += part;
    }
    return parts;
  };
  std::size_t longest = dim_;
  for (std::size_t d = 0; d < region_.dims.size(); ++d) {
    if (d == dim_ || region_.dims[d].length == 1) continue;
    if (region_.dims[d].length % 2 == 0) return split(d, region_.dims[d].length);
    if (longest == dim_ || region_.dims[d].length > region_.dims[longest].length) longest = d;
  }
  if (longest != dim_) return split(longest, region_.dims[longest].length);
  if (block_length_ > 1) return split(dim_, block_length_);
  return {whole()};
}

std::vector<Part> Blocks::parts(const std::vector<double>& shares) const {
  std::size_t dim = dim_;
  std::int64_t longest = 1;
  for (std::size_t d = 0; d < region_.dims.size(); ++d)
    if (d != dim_ && region_.dims[d].length > longest) dim = d, longest = region_.dims[d].length;
  const std::int64_t length = dim == dim_ ? block_length_ : longest;
  std::vector<Part> parts;
  double sum = 0;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    constexpr double half_up = 0.5 + 1e-6;  // sums of shares are not exact
    sum += shares[i];
    const std::int64_t end = i + 1 == shares.size() ? length : std::clamp(static_cast<std::int64_t>(sum * static_cast<double>(length) + half_up), begin, length);
    parts.push_back({dim, begin, end - begin});
    begin = end;
  }
  return parts;
}

bool Blocks::outermost() const {
  return std::all_of(region_.dims.begin(), region_.dims.begin() + static_cast<std::ptrdiff_t>(dim_),
                     [](const Range& range) { return range.length == 1; });
}

namespace {

/// Where a range begins, written in one way only: elements per step of each term, and a constant.
struct Begin {
  std::map<std::tuple<AxisView, std::int64_t>, std::int64_t> terms;
  std::int64_t constant = 0;
  friend bool operator==(const Begin&, const Begin&) = default;
};

Begin begin_of(const Range& range) {
  Begin begin{{}, range.offset + range.stride * range.index.constant};
  for (const AxisTerm& term : range.index.terms) {
    if (term.axis.size == 1) continue;
    std::int64_t& coefficient = begin.terms[{term.axis, ((term.add % term.axis.size) + term.axis.size) % term.axis.size}];
    coefficient += term.coefficient * range.stride;
  }
  std::erase_if(begin.terms, [](const auto& entry) { return entry.second == 0; });
  return begin;
}

bool same_place(const Range& a, const Range& b) {
  if (a.length != b.length) return false;
  if (a.index.modulus != 0 || b.index.modulus != 0) return a == b;
  return begin_of(a) == begin_of(b);
}

}  // namespace

bool same_place(const Region& a, const Region& b) {
  return a.buffer == b.buffer &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(), [](const Range& x, const Range& y) { return same_place(x, y); });
}

std::optional<std::vector<Part>> same_parts(const std::vector<Part>& parts, const Region& from, const Region& to) {
  const auto longer_than_1 = [](const Region& region) {
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < region.dims.size(); ++d)
      if (region.dims[d].length > 1) dims.push_back(d);
    return dims;
  };
  const std::vector<std::size_t> a = longer_than_1(from), b = longer_than_1(to);
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](std::size_t i, std::size_t j) { return from.dims[i].length == to.dims[j].length; }))
    return std::nullopt;
  std::vector<Part> result;
  for (const Part& part : parts) {
    const auto cut = std::find(a.begin(), a.end(), part.dim);  // absent: a block of a single element, which is not cut
    result.push_back({cut == a.end() ? 0 : b[static_cast<std::size_t>(cut - a.begin())], part.begin, part.length});
  }
  return result;
}

std::vector<Region> pieces_of(const Region& region, std::size_t dim, std::int64_t blocks, int count) {
  std::size_t along = dim;
  for (std::size_t d = 0; d < region.dims.size(); ++d)
    if (d != dim && region.dims[d].length > (along == dim ? 1 : region.dims[along].length)) along = d;
  const std::int64_t unit = along == dim ? blocks : 1, units = region.dims[along].length / unit, pieces = std::min<std::int64_t>(count, units);
  std::vector<Region> result;
  for (std::int64_t i = 0; i < pieces; ++i) {
    Region piece = region;
    const std::int64_t begin = i * units / pieces * unit;
    piece.dims[along].offset += begin;
    piece.dims[along].length = (i + 1) * units / pieces * unit - begin;
    result.push_back(std::move(piece));
  }
  return result;
}

std::vector<Region> chunks_of(const Region& region, int count) {
  const auto longer = std::find_if(region.dims.begin(), region.dims.end(), [](const Range& range) { return range.length > 1; });
  if (longer == region.dims.end()) return {region};
  const std::int64_t length = longer->length, pieces = std::min<std::int64_t>(std::max(count, 1), length);
  std::vector<Region> chunks;
  for (std::int64_t i = 0; i < pieces; ++i) {
    Region chunk = region;
    Range& range = chunk.dims[static_cast<std::size_t>(longer - region.dims.begin())];
    const std::int64_t begin = i * length / pieces;
    range.offset += begin;
    range.length = (i + 1) * length / pieces - begin;
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace podsim
