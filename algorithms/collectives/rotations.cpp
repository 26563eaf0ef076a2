// Several axes at once: parts of the data, each with its own order of the phases of in_phases().
#include <fmt/format.h>

#include <Eigen/LU>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// Links of one axis into a device: both neighbours of a ring, one of two devices and at the ends of a line.
int ways(const Mesh& mesh, const AxisView& axis) { return axis.size > 2 && mesh.wraps(axis) ? 2 : 1; }

/// Of part r, the axis of phase k of an all-gather: the last axis first for part 0, the one before it first for part 1. Each phase has each axis once.
std::size_t axis_of(std::size_t part, std::size_t phase, std::size_t axes) { return (2 * axes - 1 - part - phase) % axes; }

/// Time of each phase of an all-gather of 1 by part r, per axis: link time with links of rate 1.
std::vector<double> phase_times(const Mesh& mesh, const std::vector<AxisView>& axes, std::size_t part) {
  std::vector<double> times(axes.size());
  double held = 1;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const AxisView& axis = axes[axis_of(part, k, axes.size())];
    times[axis_of(part, k, axes.size())] = held * (axis.size - 1) / ways(mesh, axis);
    held *= axis.size;
  }
  return times;
}

/// The shares of the parts with which all axes have equally much to carry: one equation per axis. Equal shares if these have no solution.
std::vector<double> balanced_shares(const Mesh& mesh, const std::vector<AxisView>& axes) {
  const auto d = static_cast<Eigen::Index>(axes.size());
  Eigen::MatrixXd carried(d, d);  // by an axis, per share of a part
  for (Eigen::Index part = 0; part < d; ++part) {
    const std::vector<double> times = phase_times(mesh, axes, static_cast<std::size_t>(part));
    carried.col(part) = Eigen::Map<const Eigen::VectorXd>(times.data(), d);
  }
  const Eigen::FullPivLU<Eigen::MatrixXd> factors(carried);
  if (!factors.isInvertible()) return std::vector<double>(axes.size(), 1.0 / static_cast<double>(d));
  const Eigen::VectorXd shares = factors.solve(Eigen::VectorXd::Ones(d)).cwiseMax(0.0);
  const double sum = shares.sum();
  std::vector<double> result;
  for (const double share : shares) result.push_back(share / sum);
  return result;
}

/// The shares of all pieces: those of part 0, then those of part 1, ...; each part has equally many chunks.
struct Cut {
  std::vector<double> shares;
  std::size_t chunks = 1;
};

/// Equal parts in one chunk where all axes are alike, and for all-to-all, whose phases last equally long in every order. Otherwise the balanced
/// shares, each in chunks: while a phase on one axis lasts, the others work on another chunk. Chunks of one size would do their steps at the same
/// times, and wait for their latencies together; of sizes 1, 2, 3, ... one transfers while another one waits. The larger the part of the time that
/// passes before the last and longest phase of a part, the smaller the first chunk must be: 8 chunks if it is all of the time, at least 3. Where the
/// rule, for a block along the longest axis, allows fewer, latencies decide and there is one chunk.
Cut cut_for(const Mesh& mesh, const std::vector<AxisView>& axes, bool all_to_all, Bytes block, const ChunkRule& rule) {
  const std::size_t d = axes.size();
  const bool alike = std::all_of(axes.begin(), axes.end(), [&](const AxisView& axis) {
    return axis.size == axes.front().size && ways(mesh, axis) == ways(mesh, axes.front());
  });
  if (alike || all_to_all) return {std::vector<double>(d, 1.0 / static_cast<double>(d)), 1};
  const std::vector<double> shares = balanced_shares(mesh, axes);
  double carried = 0, before_last = 0;  // by one axis; of the slowest part
  for (std::size_t part = 0; part < d; ++part) {
    const std::vector<double> times = phase_times(mesh, axes, part);
    const double all = std::accumulate(times.begin(), times.end(), 0.0);
    carried += shares[part] * times.front();
    before_last = std::max(before_last, shares[part] * (all - times[axis_of(part, d - 1, d)]));
  }
  Cut cut{{}, static_cast<std::size_t>(std::clamp(std::lround(8 * before_last / carried), 3L, 8L))};
  const auto by_size = [](const AxisView& a, const AxisView& b) { return a.size < b.size; };
  const AxisView& longest = *std::max_element(axes.begin(), axes.end(), by_size);
  if (rule && rule(mesh, {{longest, longest.size - 1, 1, static_cast<double>(block.count())}}) < static_cast<int>(cut.chunks)) cut.chunks = 1;
  const auto n = static_cast<double>(cut.chunks);
  for (const double share : shares)
    for (double size = 1; size <= n; ++size) cut.shares.push_back(share * size / (n * (n + 1) / 2));
  return cut;
}

/// The pieces that have used an axis, in order. Two at a time may use it.
class Queue {
 public:
  [[nodiscard]] Edges turn() const { return last_but_one_; }
  void push(Edges ends) { last_but_one_ = std::exchange(last_, std::move(ends)); }

 private:
  Edges last_but_one_, last_;
};

/// One piece: its blocks lie in scratch as [coordinate on each axis..., elements], so that any axis can be gathered first.
class Piece {
 public:
  Piece(ProgramBuilder& builder, const std::vector<AxisView>& axes, std::int64_t elements, DType dtype, std::string name)
      : builder_{builder}, axes_{axes}, name_{std::move(name)}, dtype_{dtype} {
    for (const AxisView& axis : axes) extents_.push_back(axis.size);
    extents_.push_back(elements);
    all_ = builder.scratch(fmt::format("part {}", name_), extents_, dtype);
    own_only_.assign(axes.size(), false);
  }

  [[nodiscard]] const Region& all_blocks() const { return all_; }
  [[nodiscard]] Region own_block() const { return at(std::vector<bool>(axes_.size(), true)); }
  void start_with_own_block() { own_only_.assign(axes_.size(), true); }

  /// The phase along one axis: a reduce-scatter leaves the own block along it, an all-gather starts from that.
  Expected<Edges> run(CollectiveKind kind, std::size_t axis, const CollectiveAlgorithm& algorithm, const Edges& after) {
    const Region before = at(own_only_);
    Region behind;
    if (kind == CollectiveKind::all_to_all) {
      behind = all_ = builder_.scratch(fmt::format("part {} after phase {}", name_, ++exchanges_), extents_, dtype_);
    } else {
      own_only_[axis] = kind == CollectiveKind::reduce_scatter;
      behind = at(own_only_);
    }
    const int dim = static_cast<int>(axis);
    return append(builder_, algorithm, {kind, {axes_[axis]}, before, behind, dim, dim, 0, {}}, after,
                  fmt::format("{} {}", name_, builder_.mesh().name(axes_[axis])));
  }

 private:
  /// The own blocks along the axes marked, everything along the others.
  [[nodiscard]] Region at(const std::vector<bool>& own_only) const {
    Region region = all_;
    for (std::size_t i = 0; i < axes_.size(); ++i)
      if (own_only[i]) region.dims[i] = block(own(axes_[i]), 1);
    return region;
  }

  ProgramBuilder& builder_;
  const std::vector<AxisView>& axes_;
  std::string name_;
  DType dtype_;
  std::vector<std::int64_t> extents_;
  Region all_;
  std::vector<bool> own_only_;
  int exchanges_ = 0;  // phases of an all-to-all
};

/// A side of the collective in blocks, and the part of a block that each piece is. Of a side that is one block: that block.
struct Side {
  Blocks blocks;
  std::vector<Part> parts;
  bool one_block;
};

Expected<std::pair<Side, Side>> open_sides(const Collective& collective, int group, const std::vector<double>& shares) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, scatters = collective.kind == CollectiveKind::reduce_scatter;
  // The side that is one block may have fewer dimensions: those of length 1 do not count.
  const auto dim_of_one_block = [&](const Region& region, const Region& other) {
    return region.dims.size() == other.dims.size() ? collective.dim : 0;
  };
  const int in_dim = collective.kind == CollectiveKind::all_to_all ? collective.split_dim : collective.dim;
  auto in = gathers ? Blocks::make(collective.input, dim_of_one_block(collective.input, collective.output), 1)
                    : Blocks::make(collective.input, in_dim, group);
  if (!in) return in.error();
  auto out = scatters ? Blocks::make(collective.output, dim_of_one_block(collective.output, collective.input), 1)
                      : Blocks::make(collective.output, collective.dim, group);
  if (!out) return out.error();
  // Parts of blocks that correspond on both sides; a part along the blocks' own dimension takes a task per block.
  const Blocks &many = gathers ? *out : *in, &other = gathers ? *in : *out;
  std::vector<Part> parts = many.parts(shares);
  auto others = same_parts(parts, many.block(0), other.block(0));
  if (!others)
    return Diagnostic{{}, "`rotations` cuts blocks along a dimension, so the blocks of input and output must have the same shape"};
  return std::pair{Side{std::move(*in), gathers ? *others : parts, gathers}, Side{std::move(*out), gathers ? parts : *others, scatters}};
}

/// A piece of an all-reduce: as many elements as that part of all blocks has. No device keeps a block of it, so it is cut where it is one region.
Region piece_of(const Region& data, const Side& side, const Part& part, int group) {
  Region piece = data;
  Range& cut = piece.dims[part.dim];
  const std::int64_t unit = static_cast<int>(part.dim) == side.blocks.dim() ? group : 1;
  cut.offset += part.begin * unit;
  cut.length = part.length * unit;
  return piece;
}

/// All phases of all pieces. An axis takes chunks phase by phase, small ones first; a reduce-scatter is an all-gather backwards. Whole parts do not
/// wait for each other: latencies add up.
Status run_phases(CollectiveKind kind, std::size_t chunks, const CollectiveAlgorithm& on_one_axis, const std::vector<AxisView>& axes,
                  std::vector<std::optional<Piece>>& pieces, std::vector<Edges>& after) {
  const std::size_t d = axes.size();
  std::vector<Queue> queues(d);
  const std::vector<CollectiveKind> rounds = kind == CollectiveKind::all_reduce
                                                 ? std::vector<CollectiveKind>{CollectiveKind::reduce_scatter, CollectiveKind::all_gather}
                                                 : std::vector<CollectiveKind>{kind};
  for (const CollectiveKind round : rounds) {
    const bool backwards = round == CollectiveKind::reduce_scatter;
    for (std::size_t k = 0; k < d; ++k)
      for (std::size_t c = 0; c < chunks; ++c)
        for (std::size_t part = 0; part < d; ++part) {
          const std::size_t p = part * chunks + (backwards ? chunks - 1 - c : c), axis = axis_of(part, backwards ? d - 1 - k : k, d);
          if (!pieces[p]) continue;
          auto ends = pieces[p]->run(round, axis, on_one_axis, chunks == 1 ? after[p] : join(after[p], queues[axis].turn()));
          if (!ends) return ends.error();
          after[p] = *ends;
          queues[axis].push(std::move(*ends));
        }
  }
  return success();
}

}  // namespace

Expected<Expansion> rotations(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis,
                              const ChunkRule& chunks) {
  using enum CollectiveKind;
  const bool exchanges = collective.kind == all_to_all;
  if (collective.kind != all_gather && collective.kind != reduce_scatter && collective.kind != all_reduce && !exchanges)
    return unsupported("rotations", "all-gather, reduce-scatter, all-reduce and all-to-all", collective);
  const std::vector<AxisView> axes = dimensions_along(mesh, collective.axes);
  const std::size_t d = axes.size();
  if (d < 2) return Diagnostic{{}, "`rotations` runs rotated orders of the axes, so it needs two axes with more than one device"};
  int group = 1;
  for (const AxisView& axis : axes) group *= axis.size;

  const std::int64_t block = elements_of(collective.input) / (collective.kind == all_gather ? 1 : group);
  const Cut cut = cut_for(mesh, axes, exchanges, block * size_of(program.buffers[collective.input.buffer.index()].dtype), chunks);
  const auto sides = open_sides(collective, group, cut.shares);
  if (!sides) return sides.error();
  const auto& [in, out] = *sides;

  ProgramBuilder builder{mesh, program};
  const DType dtype = builder.buffer(collective.input.buffer).dtype;
  std::vector<std::optional<Piece>> pieces(cut.shares.size());  // none: there are fewer elements than pieces
  std::vector<Edges> after(pieces.size());
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (in.parts[p].length == 0) continue;
    std::string name(1, static_cast<char>('a' + p / cut.chunks));
    if (cut.chunks > 1) name += std::to_string(p % cut.chunks + 1);
    const Region first_block = in.blocks.block(0, in.parts[p]);
    Piece& piece = pieces[p].emplace(builder, axes, elements_of(first_block), dtype, std::move(name));
    if (in.one_block) piece.start_with_own_block();
    if (collective.kind == all_reduce)
      after[p] = alias(builder, piece_of(collective.input, in, in.parts[p], group), piece.all_blocks(), {});
    else
      after[p] = in.one_block ? alias(builder, first_block, piece.own_block(), {})
                              : alias_blocks(builder, in.blocks, in.parts[p], piece.all_blocks(), true, {});
  }
  if (exchanges && collective.input.buffer == collective.output.buffer) {  // what is sent must not be overwritten
    Edges all_in;
    for (const Edges& edges : after) all_in = join(std::move(all_in), edges);
    after.assign(after.size(), gathered(builder, all_in, after.size()));
  }
  if (auto ok = run_phases(collective.kind, cut.chunks, on_one_axis, axes, pieces, after); !ok) return ok.error();
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (!pieces[p]) continue;
    if (collective.kind == all_reduce)
      alias(builder, pieces[p]->all_blocks(), piece_of(collective.output, out, out.parts[p], group), after[p]);
    else if (out.one_block)
      alias(builder, pieces[p]->own_block(), out.blocks.block(0, out.parts[p]), after[p]);
    else
      alias_blocks(builder, out.blocks, out.parts[p], pieces[p]->all_blocks(), false, after[p]);
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
