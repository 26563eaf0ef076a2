// Double binary trees, in chunks.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// Edges of a tree from children to parents that all lead the same way: the shift from child to parent, and who the children and parents are.
struct TreeEdges {
  int by = 0;
  Guard children, parents;
  bool lands_beside = false;  // the parent's second child: its data must not be added while the first one's is
  bool skips = false;         // the parents are more than one level above
};

/// The edges of a level: children of one height. Levels go from the leaves to the root.
using TreeLevel = std::vector<TreeEdges>;

/// A binary tree of the labels 1 .. M, M = P-1, in order: odd labels are leaves, the parent of a label whose lowest bit is b is the label at
/// distance b whose lowest bit is 2b, or, where that is above M, the one b below. Its root hangs on the root of the collective, rank 0. A label is a
/// rank (the position relative to the root), or belongs to the rank at which even and odd labels have changed places.
class BinaryTree {
 public:
  BinaryTree(const AxisView& axis, int root, bool second) : axis_{axis}, root_{root}, P_{axis.size}, second_{second} {}

  [[nodiscard]] std::vector<TreeLevel> levels() const {
    const int M = P_ - 1, top = static_cast<int>(std::bit_floor(static_cast<unsigned>(M)));
    std::vector<TreeLevel> levels;
    for (int b = 1; b < top; b *= 2) {
      TreeLevel level;
      add(level, b, +b, b, 4 * b, M - b);         // the parent is above
      add(level, 3 * b, -b, 3 * b, 4 * b, M);     // or below
      const int last = (M - b) / (4 * b) * 4 * b + b;  // the largest label b modulo 4b; its parent may be above M
      for (int label = last; label <= M; label += 4 * b)
        if (label + b > M) add_one(level, label, label - b, true), level.back().skips = true;
      levels.push_back(std::move(level));
    }
    TreeLevel level;
    add_one(level, top, 0, false);
    levels.push_back(std::move(level));
    return levels;
  }

 private:
  /// The rank of a label; of 0, 0.
  [[nodiscard]] int rank_of(int label) const {
    if (!second_ || label == 0) return label;
    if (P_ % 2 == 1) return P_ - label;
    return label == 1 ? P_ - 1 : label - 1;
  }
  [[nodiscard]] AxisTerm rank() const { return {axis_, 1, -root_}; }
  [[nodiscard]] Guard at_rank(int r) const { return {{Affine{{rank()}}, r, r + 1}}; }

  /// The labels that are `residue` modulo `modulus`, from `first` to `last`. The label that a mirror or a shift of ranks cannot name, 1 of an even
  /// number of devices, is left to add().
  [[nodiscard]] Guard labels(std::int64_t residue, std::int64_t modulus, std::int64_t first, std::int64_t last) const {
    Affine label{{rank()}};
    if (second_ && P_ % 2 == 1) label = Affine{{AxisTerm{axis_, -1, -root_}}, P_};
    if (second_ && P_ % 2 == 0) label = Affine{{rank()}, 1}, first = std::max<std::int64_t>(first, 2);
    Affine remainder = label;
    remainder.modulus = modulus;
    residue %= modulus;
    return {{remainder, residue, residue + 1}, {label, std::max<std::int64_t>(first, 1), last + 1}};
  }

  /// Children: the labels from `first` on that are `first` modulo `modulus`, up to `last`; parents: those at distance `up`.
  void add(TreeLevel& level, int first, int up, int residue, int modulus, int last) const {
    if (first > last) return;
    const bool mirrored = second_ && P_ % 2 == 1, shifted = second_ && P_ % 2 == 0;
    const bool one_apart = shifted && first == 1;  // label 1 stands at the last rank
    if (one_apart) add_one(level, 1, 1 + up, up < 0);
    if (one_apart && first + modulus > last) return;
    level.push_back({mirrored ? -up : up, labels(residue, modulus, first, last), labels(residue + up, modulus, std::max(1, (one_apart ? first + modulus : first) + up), last + up),
                     up < 0, false});
  }
  void add_one(TreeLevel& level, int child, int parent, bool beside) const {
    level.push_back({rank_of(parent) - rank_of(child), at_rank(rank_of(child)), at_rank(rank_of(parent)), beside, false});
  }

  AxisView axis_;
  int root_, P_;
  bool second_;
};

/// Shifts along an axis that stay inside it where it is open.
class TreeBuilder {
 public:
  TreeBuilder(ProgramBuilder& builder, const AxisView& axis) : builder_{builder}, axis_{axis} {}

  /// A shift of the devices for which `where` holds, by `by` around the axis. Nothing if there are none.
  Edges shift(const std::string& label, int by, const Region& source, const Region& target, Combine combine, const Edges& after, const Guard& where) {
    const int P = axis_.size, k = ((by % P) + P) % P;
    Edges done;
    for (Hop& hop : rotation(builder_.mesh(), axis_, k)) {
      hop.where.insert(hop.where.end(), where.begin(), where.end());
      if (!any(hop.where)) continue;
      done = join(std::move(done), builder_.step(label, Shift{axis_, hop.by, source, target, combine, {}}, after, std::move(hop.where)));
    }
    return done;
  }

 private:
  [[nodiscard]] bool any(const Guard& guard) const {
    Coordinates at(builder_.mesh().axes().size(), 0);
    for (int c = 0; c < axis_.size; ++c) {
      at[static_cast<std::size_t>(axis_.axis)] = c * axis_.stride;
      if (holds(guard, at)) return true;
    }
    return false;
  }

  ProgramBuilder& builder_;
  const AxisView& axis_;
};

/// A chunk on its way up or down one tree: per level what must be waited for.
class TreeOfChunks {
 public:
  TreeOfChunks(ProgramBuilder& builder, const AxisView& axis, int root, bool second, Edges start)
      : builder_{builder}, shifts_{builder, axis}, levels_{BinaryTree{axis, root, second}.levels()}, name_{second ? "2nd" : "1st"}, start_{std::move(start)} {
    for (const TreeLevel& level : levels_) sent_up_.emplace_back(level.size()), sent_down_.emplace_back(level.size());
  }

  /// Adds up the chunk in the root's `piece`. Second children leave their sums in `beside`. Returns the edges to the root's.
  Edges up(int chunk, const Region& piece, const Region& beside) {
    Edges below, skipping;  // what has arrived from the level below, and from children further down
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      Edges arrived;
      for (std::size_t e = 0; e < levels_[l].size(); ++e) {
        const TreeEdges& edges = levels_[l][e];
        Edges& sent = sent_up_[l][e];
        sent = shifts_.shift(fmt::format("{} up {}.{}", name_, l, chunk), edges.by, piece, edges.lands_beside ? beside : piece,
                             edges.lands_beside ? Combine::replace : Combine::add, join(join(join(start_, below), skipping), sent), edges.children);
        Edges done = sent;
        if (edges.lands_beside)
          done = join(std::move(done), accumulate(builder_, fmt::format("{} add {}.{}", name_, l, chunk), piece, beside,
                                                  join(join(start_, arrived), sent), edges.parents));
        Edges& kept = edges.skips ? skipping : arrived;
        kept = join(std::move(kept), done);
      }
      below = std::move(arrived);
    }
    return below;
  }

  /// Brings the root's chunk to all.
  Edges down(int chunk, const Region& piece, const Edges& from) {
    Edges above = from, all = from;
    for (std::size_t l = levels_.size(); l-- > 0;) {
      Edges arrived;
      for (std::size_t e = 0; e < levels_[l].size(); ++e) {
        const TreeEdges& edges = levels_[l][e];
        Edges& sent = sent_down_[l][e];
        sent = shifts_.shift(fmt::format("{} down {}.{}", name_, l, chunk), -edges.by, piece, piece, Combine::replace,
                             join(join(start_, edges.skips ? all : above), sent), edges.parents);
        arrived = join(std::move(arrived), sent);
      }
      all = join(std::move(all), arrived);
      above = std::move(arrived);
    }
    return all;
  }

 private:
  ProgramBuilder& builder_;
  TreeBuilder shifts_;
  std::vector<TreeLevel> levels_;
  std::string_view name_;
  Edges start_;
  std::vector<std::vector<Edges>> sent_up_, sent_down_;  // of the previous chunk: per level and edges
};

/// At most `count` pieces along the longest dimension.
std::vector<Region> pieces_of_longest(const Region& region, int count) {
  std::size_t along = 0;
  for (std::size_t d = 0; d < region.dims.size(); ++d)
    if (region.dims[d].length > region.dims[along].length) along = d;
  const std::int64_t length = region.dims[along].length, pieces = std::min<std::int64_t>(count, length);
  std::vector<Region> result;
  for (std::int64_t i = 0; i < pieces; ++i) {
    Region piece = region;
    const std::int64_t begin = i * length / pieces;
    piece.dims[along].offset += begin;
    piece.dims[along].length = (i + 1) * length / pieces - begin;
    result.push_back(std::move(piece));
  }
  return result;
}

}  // namespace

Expected<Expansion> tree(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& rule) {
  const bool reduces = collective.kind != CollectiveKind::broadcast, spreads = collective.kind != CollectiveKind::reduce;
  if (reduces && spreads && collective.kind != CollectiveKind::all_reduce) return unsupported("tree", "all-reduce, broadcast and reduce", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  const int height = static_cast<int>(std::bit_width(static_cast<unsigned>(axis->size - 1)));
  const auto bytes = static_cast<double>(bytes_of(program, collective.output).count());
  // Two trees, so every device passes on half of the data to each of two children.
  const int chunks = rule ? rule(mesh, {{*axis, (reduces ? height : 0) + (spreads ? height : 0), 1, bytes}}) : default_chunks;
  if (chunks < 1) return Diagnostic{{}, fmt::format("a tree needs at least one chunk, found {}", chunks)};
  ProgramBuilder builder{mesh, program};
  const int root = static_cast<int>(collective.root);
  const Guard at_root = coordinate_in(*axis, root, root + 1);
  Edges start;
  Region data = collective.output;
  if (collective.kind == CollectiveKind::broadcast) start = alias(builder, collective.input, data, {}, at_root);
  if (collective.kind == CollectiveKind::all_reduce) start = alias(builder, collective.input, data, {});
  if (collective.kind == CollectiveKind::reduce) data = axis->size == 1 ? collective.input : own_copy(builder, collective.input, start);
  Edges last = start;
  if (axis->size > 1) {
    const auto pieces = pieces_of_longest(data, axis->size > 2 ? 2 * chunks : chunks);
    const auto beside = !reduces ? pieces : pieces_of_longest(builder.scratch("from 2nd child", lengths_of(data), builder.buffer(data.buffer).dtype), static_cast<int>(pieces.size()));
    std::vector<TreeOfChunks> trees;
    for (int t = 0; t < (axis->size > 2 ? 2 : 1); ++t) trees.emplace_back(builder, *axis, root, t == 1, start);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      TreeOfChunks& on = trees[i % trees.size()];
      const int chunk = static_cast<int>(i / trees.size());
      Edges done;
      if (reduces) done = on.up(chunk, pieces[i], beside[i]);
      if (spreads) done = on.down(chunk, pieces[i], done);
      last = join(std::move(last), done);
    }
  }
  if (collective.kind == CollectiveKind::reduce) alias(builder, data, collective.output, last, at_root);
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
