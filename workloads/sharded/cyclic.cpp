#include "workloads/sharded/cyclic.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

namespace {

using Step = CyclicStep::Kind;

/// A block-cyclic dimension: K blocks of b, dealt out to S devices, Q of them to each at most.
struct Dealt {
  std::size_t dim = 0;
  std::vector<int> axes;
  std::int64_t b = 1, K = 1, S = 1, Q = 1;
  bool even = true;  // S^2 divides K
};

std::vector<Dealt> dealt_dimensions(const Mesh& mesh, const Extents& extents, const CyclicBlocks& blocks, const Sharding& cyclic) {
  std::vector<Dealt> all;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (d >= blocks.size() || blocks[d] == 0) continue;
    Dealt dealt{d, cyclic.axes_of(d), blocks[d], extents[d] / blocks[d], devices_along(mesh, cyclic.axes_of(d))};
    dealt.Q = (dealt.K + dealt.S - 1) / dealt.S;
    dealt.even = dealt.K % (dealt.S * dealt.S) == 0;
    all.push_back(std::move(dealt));
  }
  return all;
}

/// Converts one device's block, dimension by dimension.
class Conversion {
 public:
  Conversion(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, Region from, Tasks after)
      : builder_{builder}, array_{array}, label_{label}, at_{std::move(from)}, ready_{std::move(after)} {}

  Tasks to_contiguous(const Region& target) {
    std::size_t place = 0;
    std::vector<Dealt> dealt = dealt_dimensions(array_.mesh, array_.extents, array_.blocks, array_.cyclic);
    for (std::size_t d = 0; d < array_.extents.size(); ++d, ++place) {
      const auto own = std::find_if(dealt.begin(), dealt.end(), [&](const Dealt& one) { return one.dim == d; });
      if (own == dealt.end()) continue;
      const bool whole = array_.contiguous.axes_of(d) != own->axes;
      if (own->S > 1) whole ? gather(*own, place) : exchange(*own, place, place + 1);
      // [blocks, devices, b] without the blocks that are none.
      const std::int64_t length = whole ? array_.extents[d] : array_.extents[d] / own->S;
      close(*own, place, length);
    }
    return finish(target);
  }

  Tasks to_cyclic(const Region& target) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < array_.extents.size(); ++d, ++place) {
      const std::vector<Dealt> dealt = dealt_dimensions(array_.mesh, array_.extents, array_.blocks, array_.cyclic);
      const auto own = std::find_if(dealt.begin(), dealt.end(), [&](const Dealt& one) { return one.dim == d; });
      if (own == dealt.end()) continue;
      if (array_.contiguous.axes_of(d) != own->axes) {
        slice(*own, place);
      } else {
        Extents opened = lengths_of(at_);
        replace(opened, place, 1, {own->Q / own->S, own->S, own->b});
        view(std::move(opened));
        if (own->S > 1) exchange(*own, place + 1, place);
      }
      place += 2;
    }
    return finish(target);
  }

 private:
  static void replace(Extents& extents, std::size_t place, std::size_t count, const Extents& by) {
    const auto at = extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(place), extents.begin() + static_cast<std::ptrdiff_t>(place + count));
    extents.insert(at, by.begin(), by.end());
  }
  Region scratch(Extents extents) { return builder_.scratch(fmt::format("{} {}", label_, ++count_), std::move(extents), array_.dtype); }

  /// The same elements in other extents.
  void view(Extents extents) {
    if (lengths_of(at_) == extents) return;
    const Region out = scratch(std::move(extents));
    ready_ = {builder_.alias(label_, at_, out, ready_)};
    at_ = out;
  }

  void run(CollectiveKind kind, const Dealt& dealt, Extents result, std::size_t split, std::size_t dim) {
    Collective collective;
    collective.kind = kind;
    for (const int axis : dealt.axes) collective.axes.push_back(array_.mesh.whole(axis));
    collective.input = at_;
    collective.output = scratch(std::move(result));
    collective.split_dim = static_cast<int>(split);
    collective.dim = static_cast<int>(dim);
    at_ = collective.output;
    ready_ = {builder_.add(label_, std::move(collective), ready_)};
  }
  void exchange(const Dealt& dealt, std::size_t split, std::size_t joined) {
    Extents result = lengths_of(at_);
    result[split] /= dealt.S;
    result[joined] *= dealt.S;
    run(CollectiveKind::all_to_all, dealt, std::move(result), split, joined);
  }
  void gather(const Dealt& dealt, std::size_t place) {
    Extents result = lengths_of(at_);
    result[place + 1] *= dealt.S;
    run(CollectiveKind::all_gather, dealt, std::move(result), 0, place + 1);
  }

  /// [blocks, devices, b] to `length` elements; the last row of blocks may hold fewer than there are devices.
  void close(const Dealt& dealt, std::size_t place, std::int64_t length) {
    Extents closed = lengths_of(at_);
    const std::int64_t rows = closed[place], devices = closed[place + 1];
    replace(closed, place, 3, {length});
    if (rows * devices * dealt.b == length) return view(std::move(closed));
    const std::int64_t full = length / (devices * dealt.b), rest = length / dealt.b - full * devices;
    const Region out = scratch(std::move(closed));
    Tasks done;
    if (full > 0)
      done.push_back(builder_.alias(label_, with(at_, place, span(0, full)), with(out, place, span(0, full * devices * dealt.b)), ready_));
    done.push_back(builder_.alias(label_, with(with(at_, place, span(full, 1)), place + 1, span(0, rest)),
                                  with(out, place, span(full * devices * dealt.b, rest * dealt.b)), ready_));
    at_ = out;
    ready_ = std::move(done);
  }

  /// Each device takes its blocks of a whole dimension.
  void slice(const Dealt& dealt, std::size_t place) {
    Affine position;
    std::int64_t stride = 1;
    for (std::size_t a = dealt.axes.size(); a-- > 0; stride *= array_.mesh.whole(dealt.axes[a]).size)
      position.terms.push_back({array_.mesh.whole(dealt.axes[a]), stride, 0});
    const std::int64_t full = dealt.K / dealt.S, rest = dealt.K - full * dealt.S, row = dealt.S * dealt.b;
    Extents own = lengths_of(at_);
    replace(own, place, 1, {dealt.Q, 1, dealt.b});
    const Region out = scratch(own);
    Tasks done;
    if (full > 0) {
      Extents rows = lengths_of(at_);
      replace(rows, place, 1, {full, dealt.S, dealt.b});
      const Region opened = scratch(std::move(rows));
      const TaskId seen = builder_.alias(label_, with(at_, place, span(0, full * row)), opened, ready_);
      done.push_back(builder_.alias(label_, with(opened, place + 1, Range{position, 1, 0, 1}), with(out, place, span(0, full)), Tasks{seen}));
    }
    if (rest > 0) {  // the last row of blocks: some devices have one, the others zeros
      const Region to = with(out, place, span(full, 1));
      Range last{position, dealt.b, full * row, dealt.b};
      Region from = at_;
      from.dims[place] = last;
      from.dims[place].offset += at_.dims[place].offset;
      done.push_back(builder_.alias(label_, std::move(from), to, ready_, Guard{{position, 0, rest}}));
      const Local zeros{.kind = LocalKind::scale, .reads = {with(at_, place, span(0, dealt.b))}, .writes = {to}, .factor = 0};
      done.push_back(builder_.add(label_, zeros, ready_, Guard{{position, rest, dealt.S}}));
    }
    at_ = out;
    ready_ = std::move(done);
  }

  Tasks finish(const Region& target) { return {builder_.alias(label_, at_, target, ready_)}; }

  ProgramBuilder& builder_;
  const CyclicArray& array_;
  const std::string& label_;
  Region at_;  // the whole of a buffer
  Tasks ready_;
  int count_ = 0;
};

}  // namespace

StoredBlock stored_block(const Extents& array, const Sharding& sharding, const CyclicBlocks& cyclic, const Mesh& mesh) {
  StoredBlock stored;
  for (std::size_t d = 0; d < array.size(); ++d) {
    const std::int64_t block = d < cyclic.size() ? cyclic[d] : 0, devices = devices_along(mesh, sharding.axes_of(d));
    if (block == 0) {
      stored.extents.push_back(array[d] / devices);
      stored.axes.push_back(sharding.axes_of(d));
      stored.grouped.push_back(1);
      continue;
    }
    const std::int64_t blocks = array[d] / block;
    stored.extents.insert(stored.extents.end(), {(blocks + devices - 1) / devices, 1, block});
    stored.axes.insert(stored.axes.end(), {{}, sharding.axes_of(d), {}});
    stored.grouped.push_back(3);
    stored.padded |= blocks % devices != 0;
  }
  if (array.empty()) stored.extents = {1}, stored.axes = {{}}, stored.grouped = {1};
  return stored;
}

Sharding contiguous_beside(const Mesh& mesh, const Extents& extents, const CyclicBlocks& blocks, const Sharding& cyclic) {
  Sharding contiguous = cyclic;
  contiguous.dims.resize(extents.size());
  for (const Dealt& dealt : dealt_dimensions(mesh, extents, blocks, cyclic))
    if (!dealt.even) contiguous.dims[dealt.dim].clear();
  return contiguous.canonical();
}

std::vector<CyclicStep> steps_of(const CyclicArray& array, bool to_cyclic) {
  std::vector<CyclicStep> steps;
  std::int64_t bytes = size_of(array.dtype).count();
  for (const std::int64_t extent : stored_block(array.extents, to_cyclic ? array.contiguous : array.cyclic, to_cyclic ? CyclicBlocks{} : array.blocks, array.mesh).extents) bytes *= extent;
  for (const Dealt& dealt : dealt_dimensions(array.mesh, array.extents, array.blocks, array.cyclic)) {
    if (dealt.S == 1) continue;
    const bool same = array.contiguous.axes_of(dealt.dim) == dealt.axes;
    const Step kind = same ? Step::exchange : to_cyclic ? Step::slice : Step::gather;
    const std::int64_t received = kind == Step::exchange ? bytes - bytes / dealt.S : kind == Step::gather ? bytes * (dealt.S - 1) : 0;
    steps.push_back({kind, static_cast<int>(dealt.dim), dealt.axes, Bytes{bytes}, Bytes{received}});
    if (kind == Step::gather) bytes *= dealt.S;
    if (kind == Step::slice) bytes = (bytes + dealt.S - 1) / dealt.S;
  }
  return steps;
}

Tasks write_contiguous(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& cyclic, const Region& contiguous, const Tasks& after) {
  return Conversion{builder, array, label, cyclic, after}.to_contiguous(contiguous);
}

Tasks write_cyclic(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& contiguous, const Region& cyclic, const Tasks& after) {
  return Conversion{builder, array, label, contiguous, after}.to_cyclic(cyclic);
}

}  // namespace podsim
