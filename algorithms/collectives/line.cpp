#include <fmt/format.h>

#include <algorithm>

#include "algorithms/collectives/blocks.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// One direction of a step: which devices send, and which block, relative to the sender's coordinate.
struct LineStep {
  int sign, first, last;  // senders: first <= c < last
  int block;
};

/// Step i of P-1, both directions. The reduce-scatter is the all-gather run backwards: the hop c -> c+1 of block b becomes c+1 -> c.
std::vector<LineStep> line_step(bool gathers, int devices, int step) {
  const int P = devices;
  if (gathers) return {{+1, step, P - 1, -step}, {-1, 1, P - step, +step}};
  return {{+1, 0, step + 1, P - 1 - step}, {-1, P - 1 - step, P, step + 1 - P}};
}

}  // namespace

Expected<Expansion> line(const Schedule&, const Program& program, const Collective& collective) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  auto workspace = open_workspace(program, collective, *axis);
  if (!workspace) return workspace.error();
  const Blocks& blocks = workspace->blocks;
  const bool gathers = collective.kind == CollectiveKind::all_gather;
  const int P = axis->size;
  const Affine self = own(*axis, 0, false);
  Expansion& expansion = workspace->expansion;

  // What arrives from the -1 side on the own block must not be added while the +1 side adds there: it ends beside it.
  Region beside = blocks.block(own(*axis, 0, false));
  if (!gathers && P > 1) {
    Buffer buffer{"from +1", {}, program.buffers[collective.input.buffer.index()].dtype, Role::scratch, {}, {}};
    for (Range& range : beside.dims) {
      buffer.extents.push_back(range.length);
      range = all(range.length);
    }
    beside.buffer = BufferId{program.buffers.size() + expansion.scratch.size()};
    expansion.scratch.push_back(std::move(buffer));
  }

  std::vector<std::vector<Edge>> after(2, workspace->after_start);
  for (int step = 0; step + 1 < P; ++step)
    for (const LineStep& hop : line_step(gathers, P, step)) {
      const bool ends_beside = !gathers && hop.sign < 0 && step == P - 2;
      Shift shift{*axis,
                  hop.sign,
                  blocks.block(own(*axis, hop.block, false)),
                  ends_beside ? beside : blocks.block(own(*axis, hop.block - hop.sign, false)),
                  gathers || ends_beside ? Combine::replace : Combine::add,
                  {}};
      std::vector<Edge>& previous = after[hop.sign > 0 ? 0 : 1];
      std::vector<Edge> edges = workspace->after_start;  // the previous step may be absent here, its edges do not pass on
      if (step > 0) edges.insert(edges.end(), previous.begin(), previous.end());
      expansion.tasks.push_back({fmt::format("{}{}", hop.sign > 0 ? '+' : '-', step), std::move(shift), std::move(edges), {{self, hop.first, hop.last}}, {}});
      previous = {Edge{TaskId{expansion.tasks.size() - 1}}};
    }

  std::vector<Edge> last = after[0];
  if (P > 1) last.push_back(after[1].front());
  if (!gathers && P > 1) {
    const Region mine = blocks.block(own(*axis, 0, false));
    expansion.tasks.push_back({"join", Local{LocalKind::add, {mine, beside}, {mine}, 1, Unit::dma}, last, {{self, 0, P - 1}}, {}});
    last.push_back(Edge{TaskId{expansion.tasks.size() - 1}});
  }
  close_workspace(*workspace, collective, *axis, last);
  return std::move(expansion);
}

}  // namespace podsim
