// A ring of neighbours through several dimensions: a Hamiltonian cycle of their grid.
#include <fmt/format.h>

#include <utility>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// A ring through all positions along the dimensions (row-major): the position at each place on it, and the inverse.
struct GridCycle {
  std::vector<int> position, place;
};

/// All positions along dimensions in an order in which neighbours differ by 1 in one coordinate: rows there and back.
std::vector<int> snake(const std::vector<AxisView>& dimensions) {
  std::vector<int> path{0};
  for (const AxisView& dimension : dimensions) {
    std::vector<int> longer;
    for (std::size_t row = 0; row < path.size(); ++row)
      for (int c = 0; c < dimension.size; ++c) longer.push_back(path[row] * dimension.size + (row % 2 == 0 ? c : dimension.size - 1 - c));
    path = std::move(longer);
  }
  return path;
}

/// Out through rows there and back without their first cells, home through the first cells. The rows are an even number: of the dimensions but the last,
/// else of the last. No wrap is used, so no grid of an odd number of devices has such a ring.
GridCycle cycle_through(const std::vector<AxisView>& dimensions) {
  const std::vector<int> outer = snake({dimensions.begin(), dimensions.end() - 1});
  const int inner = dimensions.back().size, lines = static_cast<int>(outer.size());
  const bool along_inner = lines % 2 == 0;
  const int rows = along_inner ? lines : inner, columns = along_inner ? inner : lines;
  GridCycle cycle;
  const auto visit = [&](int row, int column) {
    const int line = along_inner ? row : column, c = along_inner ? column : row;
    cycle.position.push_back(outer[static_cast<std::size_t>(line)] * inner + c);
  };
  visit(0, 0);
  for (int row = 0; row < rows; ++row)
    for (int c = 1; c < columns; ++c) visit(row, row % 2 == 0 ? c : columns - c);
  for (int row = rows - 1; row > 0; --row) visit(row, 0);
  cycle.place.resize(cycle.position.size());
  for (std::size_t p = 0; p < cycle.position.size(); ++p) cycle.place[static_cast<std::size_t>(cycle.position[p])] = static_cast<int>(p);
  return cycle;
}

/// Devices in a row of the last dimension that shift by `by` along dimension number `dimension` the block `slope` * own last coordinate + `offset`.
struct RowMove {
  std::size_t dimension = 0;
  int by = 0, slope = 0, offset = 0;
  std::vector<int> first;  // coordinates of the first device
  int length = 1;
};

class RingSteps {
 public:
  RingSteps(ProgramBuilder& builder, const Blocks& blocks, const std::vector<AxisView>& dimensions)
      : builder_{builder}, blocks_{blocks}, dimensions_{dimensions}, cycle_{cycle_through(dimensions)} {}

  /// Every device sends a part of the block of the device that stands `behind` places before it to the one `sign` places on.
  Edges step(const std::string& label, int sign, int behind, const Part& part, Combine combine, const Edges& start, const Edges& after) {
    const std::vector<RowMove> now = moves(sign, behind);
    const Edges waits = gathered(builder_, join(start, after), now.size());  // a move may be absent here, and its edges do not pass on
    const AxisView& last = dimensions_.back();
    Edges ends;
    for (const RowMove& move : now) {
      const bool within = move.dimension + 1 == dimensions_.size();
      const Affine sent = affine(move.slope, move.offset), received = affine(move.slope, move.offset - (within ? move.slope * move.by : 0));
      Guard row;
      for (std::size_t d = 0; d + 1 < dimensions_.size(); ++d) row = joined(std::move(row), coordinate_in(dimensions_[d], move.first[d], move.first[d] + 1));
      row = joined(std::move(row), coordinate_in(last, move.first.back(), move.first.back() + move.length));
      ends = join(std::move(ends), builder_.step(fmt::format("{} {}{:+}", label, builder_.mesh().name(dimensions_[move.dimension]), move.by),
                                                 Shift{dimensions_[move.dimension], move.by, blocks_.block(sent, part), blocks_.block(received, part), combine, {}},
                                                 waits, std::move(row)));
    }
    return ends;
  }

 private:
  [[nodiscard]] Affine affine(int slope, int offset) const { return slope == 0 ? Affine{offset} : Affine{{{dimensions_.back(), slope}}, offset}; }
  static Guard joined(Guard guard, const Guard& more) {
    guard.insert(guard.end(), more.begin(), more.end());
    return guard;
  }

  [[nodiscard]] int at_place(int place) const {
    const int P = static_cast<int>(cycle_.position.size());
    return cycle_.position[static_cast<std::size_t>(((place % P) + P) % P)];
  }

  /// As few as rows of the last dimension allow.
  [[nodiscard]] std::vector<RowMove> moves(int sign, int behind) const {
    std::vector<RowMove> result;
    const int inner = dimensions_.back().size;
    for (int position = 0; position < static_cast<int>(cycle_.position.size()); ++position) {
      const int place = cycle_.place[static_cast<std::size_t>(position)], block = at_place(place - behind), c = position % inner;
      const std::vector<int> here = coordinates_of(dimensions_, position), there = coordinates_of(dimensions_, at_place(place + sign));
      RowMove move{0, 0, 0, block, here, 1};
      while (here[move.dimension] == there[move.dimension]) ++move.dimension;
      move.by = there[move.dimension] - here[move.dimension];
      if (!result.empty() && c > 0) {
        RowMove& row = result.back();
        const int begin = row.first.back(), slope = row.length == 1 ? block - row.offset : row.slope, offset = row.length == 1 ? row.offset - slope * begin : row.offset;
        if (row.dimension == move.dimension && row.by == move.by && slope * c + offset == block) {
          row.slope = slope, row.offset = offset, ++row.length;
          continue;
        }
      }
      result.push_back(std::move(move));
    }
    return result;
  }

  ProgramBuilder& builder_;
  const Blocks& blocks_;
  const std::vector<AxisView>& dimensions_;
  GridCycle cycle_;
};

}  // namespace

Expected<Expansion> hamiltonian_ring(const Mesh& mesh, const Program& program, const Collective& collective) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, reduces = collective.kind == CollectiveKind::all_reduce;
  if (!gathers && !reduces && collective.kind != CollectiveKind::reduce_scatter)
    return unsupported("hamiltonian-ring", "all-gather, reduce-scatter and all-reduce", collective);
  const std::vector<AxisView> dimensions = dimensions_along(mesh, collective.axes);
  std::int64_t devices = 1;
  for (const AxisView& dimension : dimensions) devices *= dimension.size;
  if (dimensions.size() < 2) return Diagnostic{{}, "`hamiltonian-ring` goes through two or more dimensions with more than one device"};
  if (devices % 2 != 0) return Diagnostic{{}, fmt::format("`hamiltonian-ring` needs an even number of devices, the axes have {}", devices)};
  if (devices > most_on_hamiltonian_ring)
    return Diagnostic{{}, fmt::format("`hamiltonian-ring` is for at most {} devices, the axes have {}", most_on_hamiltonian_ring, devices)};
  Affine position;
  for (std::int64_t weight = devices; const AxisView& dimension : dimensions) position.terms.push_back({dimension, weight /= dimension.size});
  ProgramBuilder builder{mesh, program};
  const auto workspace = open_workspace(builder, collective, position, static_cast<int>(devices));
  if (!workspace) return workspace.error();
  RingSteps ring{builder, workspace->blocks, dimensions};
  const std::vector<Part> halves = workspace->blocks.halves();
  Edges last;
  for (std::size_t half = 0; half < halves.size(); ++half) {
    const int sign = half == 0 ? 1 : -1;
    const auto label = [&](int number) { return fmt::format("{}{}", sign > 0 ? '+' : '-', number); };
    Edges after = workspace->start;
    int number = 0;
    if (!gathers)
      for (int s = 0; s + 1 < devices; ++s, ++number) after = ring.step(label(number), sign, sign * (s + 1), halves[half], Combine::add, workspace->start, after);
    if (gathers || reduces)
      for (int s = 0; s + 1 < devices; ++s, ++number) after = ring.step(label(number), sign, sign * s, halves[half], Combine::replace, workspace->start, after);
    last = join(std::move(last), after);
  }
  close_workspace(builder, *workspace, collective, position, last);
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
