// Collectives among groups of devices that are no factors of mesh axes: rounds of sends between pairs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "algorithms/collectives/builder.hpp"
#include "workloads/hlo/program_writer.hpp"

namespace podsim {

namespace {

/// Elements [begin, begin + length) of dimension `dim` of a region.
Region part_of(Region region, std::size_t dim, std::int64_t begin, std::int64_t length) {
  region.dims[dim].offset += begin;
  region.dims[dim].length = length;
  return region;
}

/// Equal parts of a dimension; where it does not divide, the last ones overlap.
Region block_of(const Region& region, std::size_t dim, std::int64_t block, std::int64_t blocks) {
  const std::int64_t length = region.dims[dim].length, each = (length + blocks - 1) / blocks;
  return part_of(region, dim, std::min(block * each, length - each), each);
}

/// The dimension that is cut into blocks: the first that divides, else the longest; nullopt if it has fewer elements than blocks.
std::optional<std::size_t> dimension_to_cut(const Region& region, std::int64_t blocks) {
  const auto divides = std::find_if(region.dims.begin(), region.dims.end(), [&](const Range& range) { return range.length % blocks == 0; });
  const auto longest = std::max_element(region.dims.begin(), region.dims.end(), [](const Range& a, const Range& b) { return a.length < b.length; });
  const auto chosen = divides != region.dims.end() ? divides : longest;
  if (chosen == region.dims.end() || chosen->length < blocks) return std::nullopt;
  return static_cast<std::size_t>(chosen - region.dims.begin());
}

}  // namespace

/// The rounds of one exchange. Devices are alike in a program, so what a device sends in round s are the elements that the one at position 0 sends:
/// those of another block, but as many.
class ProgramWriter::PairExchange {
 public:
  PairExchange(ProgramWriter& writer, const HloInstruction& at, std::string label, const ReplicaGroups& groups, Edges after)
      : writer_{writer}, at_{at}, label_{std::move(label)}, groups_{groups}, parts_{largest_group_of(groups)}, after_{std::move(after)} {
    for (int axis = 0; axis < static_cast<int>(mesh().axes().size()); ++axis) all_.push_back(mesh().whole(axis));
  }

  Expected<Edges> write(const Collective& op) {
    const Region &in = op.input, &out = op.output;
    const auto joined = static_cast<std::size_t>(op.dim),
               split = static_cast<std::size_t>(op.kind == CollectiveKind::all_to_all ? op.split_dim : op.dim);
    switch (op.kind) {
      case CollectiveKind::all_gather:
        place(in, block_of(out, joined, 0, parts_));
        for (std::int64_t s = 1; s < parts_; ++s) around(1, s == 1 ? in : block_of(out, joined, s - 1, parts_), block_of(out, joined, s, parts_));
        break;
      case CollectiveKind::reduce_scatter: {
        const Region arrived = scratch("arrived", out), sum = scratch("sum", out);
        for (std::int64_t s = 1; s < parts_; ++s) {
          around(1, s == 1 ? block_of(in, split, 0, parts_) : sum, arrived);
          add(arrived, block_of(in, split, s, parts_), s + 1 == parts_ ? out : sum);
        }
        break;
      }
      case CollectiveKind::all_reduce: all_reduce(in, out); break;
      case CollectiveKind::all_to_all:
        place(block_of(in, split, 0, parts_), block_of(out, joined, 0, parts_));
        for (std::int64_t s = 1; s < parts_; ++s) around(s, block_of(in, split, s, parts_), block_of(out, joined, s, parts_));
        break;
      case CollectiveKind::broadcast:
        place(in, out);
        for (std::int64_t have = 1; have < parts_; have *= 2) down_a_tree(have, out);
        break;
      default:
        return writer_.module_.problem(
            at_, fmt::format("{} among devices that are no factors of the mesh {} is not simulated", name_of(op.kind), to_text(mesh())));
    }
    if (writer_.module_.pairs() > most_hlo_pairs)
      return writer_.module_.problem(
          at_, fmt::format("expected groups of the devices along factors of the mesh {}, found {}: sends between pairs would be more than {}",
                           to_text(mesh()), to_text(groups_), most_hlo_pairs));
    return Edges{*last_};
  }

 private:
  [[nodiscard]] const Mesh& mesh() const { return writer_.module_.mesh(); }

  Region scratch(const char* what, const Region& like) {
    Buffer buffer{fmt::format("{} {}", at_.name, what), {elements_of(like)}, writer_.builder_.buffer(like.buffer).dtype, Role::scratch, {}, {}};
    return region_of(writer_.add_buffer(std::move(buffer), true), {elements_of(like)});
  }

  void step(std::string label, Op op, const std::vector<BufferId>& reads, const std::vector<BufferId>& writes, HloTask::Role role = HloTask::Role::itself) {
    Edges waits = after_;
    if (last_) waits.push_back(*last_);
    last_ = Edge{writer_.task(std::move(label), std::move(op), reads, writes, std::move(waits), false, role)};
  }

  /// Position i of every group sends to position (i + by) mod P.
  void around(std::int64_t by, const Region& from, const Region& to) {
    std::vector<Collective::Pair> pairs;
    for (std::int64_t group = 0; group < groups_.count(); ++group)
      for (std::int64_t i = 0; i < parts_; ++i) pairs.push_back({groups_.device(group, i), groups_.device(group, (i + by) % parts_)});
    permute(std::move(pairs), from, to);
  }

  /// Positions below `have` send to those `have` further on. Groups may differ in size, and leave devices out: these get zeros, in no time.
  void down_a_tree(std::int64_t have, const Region& region) {
    std::vector<Collective::Pair> pairs;
    for (std::int64_t group = 0; group < groups_.count(); ++group)
      for (std::int64_t i = 0; i < have && i + have < groups_.size(group); ++i) pairs.push_back({groups_.device(group, i), groups_.device(group, i + have)});
    permute(std::move(pairs), region, region);
  }

  void permute(std::vector<Collective::Pair> pairs, const Region& from, const Region& to) {
    writer_.module_.add_pairs(pairs.size());
    if (writer_.module_.pairs() > most_hlo_pairs) return;
    Collective op{CollectiveKind::permute, all_, from, to};
    op.pairs = std::move(pairs);
    step(fmt::format("{} round {}", label_, ++rounds_), std::move(op), {from.buffer}, {to.buffer});
  }

  void place(const Region& from, const Region& to) {
    if (from == to) return;
    step("place " + label_, Local{LocalKind::alias, {from}, {to}, 1, Unit::dma}, {from.buffer}, {to.buffer}, HloTask::Role::place);
  }

  /// Beside the core, as the reductions of other collectives. Its arithmetic is that of the module's computation: opaque.
  void add(const Region& arrived, const Region& own, const Region& sum) {
    Local local{LocalKind::opaque, {arrived, own}, {sum}, 1, Unit::dma};
    local.opaque.vector = Flops{static_cast<double>(elements_of(sum))};
    step("reduce " + label_, std::move(local), {arrived.buffer, own.buffer}, {sum.buffer});
  }

  void all_reduce(const Region& in, const Region& out) {
    place(in, out);
    const auto cut = dimension_to_cut(out, parts_);
    if (!cut) {  // less than an element each: all of it goes around
      const std::array<Region, 2> arrived{scratch("arrived", out), scratch("arrived next", out)};
      for (std::int64_t s = 1; s < parts_; ++s) {
        around(1, s == 1 ? in : arrived[static_cast<std::size_t>(s % 2)], arrived[static_cast<std::size_t>((s + 1) % 2)]);
        add(arrived[static_cast<std::size_t>((s + 1) % 2)], out, out);
      }
      return;
    }
    const Region arrived = scratch("arrived", block_of(out, *cut, 0, parts_));
    for (std::int64_t s = 1; s < parts_; ++s) {
      const Region own = block_of(out, *cut, s, parts_);
      around(1, block_of(out, *cut, s - 1, parts_), arrived);
      add(arrived, own, own);
    }
    for (std::int64_t s = 0; s + 1 < parts_; ++s) around(1, block_of(out, *cut, (parts_ - 1 + s) % parts_, parts_), block_of(out, *cut, s, parts_));
  }

  ProgramWriter& writer_;
  const HloInstruction& at_;
  std::string label_;
  const ReplicaGroups& groups_;
  std::int64_t parts_;
  Edges after_;
  std::vector<AxisView> all_;
  std::optional<Edge> last_;
  int rounds_ = 0;
};

Expected<Edges> ProgramWriter::ragged_by_counts(const HloInstruction& at, const ReplicaGroups& groups, const Region& in, const Region& out, const HloRaggedCounts& counts,
                                                const Edges& after) {
  const Mesh& mesh = module_.mesh();
  const auto parts = static_cast<std::size_t>(groups.uniform_size().value_or(0));
  if (counts.rows.size() != parts) return Diagnostic{counts.where, fmt::format("expected {} rows of {} numbers, one for each device of a group of {}, found {}", parts, parts, at.name, counts.rows.size())};
  const std::int64_t rows_in = in.dims.front().length, rows_out = out.dims.front().length;
  std::vector<std::int64_t> arrived(parts);
  const Edges waits = join(after, before({in.buffer}, {out.buffer}));
  const int channel = module_.next_channel();
  Edges ended;
  std::vector<AxisView> axes;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) axes.push_back(mesh.whole(axis));
  const auto guard_of = [&](const std::vector<int>& coordinates) {
    Guard guard;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) guard.push_back({own(axes[axis]), coordinates[axis], coordinates[axis] + 1});
    return guard;
  };
  for (std::size_t from = 0; from < parts; ++from) {
    std::int64_t begin = 0;
    for (std::size_t to = 0; to < parts; ++to) {
      const std::int64_t rows = counts.rows[from][to];
      if (begin + rows > rows_in) return Diagnostic{counts.where, fmt::format("expected at most {} rows from device {} of a group of {}, as its operand has, found {}", rows_in, from, at.name, begin + rows)};
      if (arrived[to] + rows > rows_out) return Diagnostic{counts.where, fmt::format("expected at most {} rows to device {} of a group of {}, as its result has, found {}", rows_out, to, at.name, arrived[to] + rows)};
      if (rows > 0 && from != to) {
        const Region sent = part_of(in, 0, begin, rows), received = part_of(out, 0, arrived[to], rows);
        for (std::int64_t group = 0; group < groups.count(); ++group) {
          const std::int64_t sender = groups.device(group, static_cast<std::int64_t>(from)), receiver = groups.device(group, static_cast<std::int64_t>(to));
          const std::vector<int> sends = coordinates_of(axes, sender), receives = coordinates_of(axes, receiver);
          const std::string label = fmt::format("{} {}>{}", label_of(at), sender, receiver);
          ended.push_back(Edge{add(label, Send{channel, peer_at(mesh, axes, receives), sent, {}}, waits, HloTask::Role::itself, guard_of(sends))});
          ended.push_back(Edge{add(label, Recv{channel, peer_at(mesh, axes, sends), received, Combine::replace}, waits, HloTask::Role::itself, guard_of(receives))});
          module_.add_pairs(1);
        }
        if (module_.pairs() > most_hlo_pairs) return module_.problem(at, fmt::format("expected at most {} sends", most_hlo_pairs));
      }
      begin += rows;
      arrived[to] += rows;
    }
  }
  // One task stands for all of them, so that what follows has one edge.
  const TaskId id = task("wait for sends of " + label_of(at), Local{LocalKind::join, {}, {}, 1, Unit::dma}, {in.buffer}, {out.buffer}, std::move(ended), false, HloTask::Role::wait);
  return Edges{Edge{id}};
}

Expected<Edges> ProgramWriter::in_pairs(const HloInstruction& at, const std::string& label, const ReplicaGroups& groups, const Collective& op,
                                        const Edges& after) {
  return PairExchange{*this, at, label, groups, after}.write(op);
}

}  // namespace podsim
