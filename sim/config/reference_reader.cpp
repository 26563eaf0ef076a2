#include "sim/config/reference_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config/checked_number.hpp"
#include "sim/config/schedule.pb.h"
#include "sim/config/schedule_names.hpp"

namespace podsim {
namespace {

class ReferenceReader {
 public:
  ReferenceReader(const Mesh& mesh, MessageFile& file) : mesh_{mesh}, file_{file} {}

  ReferenceProgram read(const proto::Reference& message, const Place& place) {
    ReferenceProgram program;
    if (message.node_size() > static_cast<int>(most_reference_nodes)) {
      problem(place.at("node", static_cast<int>(most_reference_nodes)), "expected at most {} nodes, found {}", most_reference_nodes,
              message.node_size());
      return program;
    }
    for (int n = 0; n < message.node_size(); ++n) program.nodes.push_back(read(message.node(n), n, place.at("node", n)));
    for (int o = 0; o < message.output_size(); ++o) {
      const proto::Reference::Output& output = message.output(o);
      if (output.node() < 0 || output.node() >= message.node_size())
        problem(place.at("output", o).at("node"), "the reference has {} nodes, there is none at position {}", message.node_size(), output.node());
      program.outputs.emplace_back(output.tensor(), output.node());
    }
    program.claim = message.claim();
    return program;
  }

 private:
  ReferenceNode read(const proto::Reference::Node& message, int position, const Place& place) {
    ReferenceNode node;
    node.kind = reference_kind_numbered(message.kind());
    for (int o = 0; o < message.operand_size(); ++o) {
      if (message.operand(o) < 0 || message.operand(o) >= position)
        problem(place.at("operand", o), "an operand must be an earlier node, got {} in node {}", message.operand(o), position);
      node.operands.push_back(message.operand(o));
    }
    Checked bytes = 8;
    for (int e = 0; e < message.extents_size(); ++e) {
      node.extents.push_back(message.extents(e));
      if (message.extents(e) < 0) problem(place.at("extents", e), "an extent must not be negative, got {}", message.extents(e));
      bytes = bytes * Checked{message.extents(e)};
    }
    if (!bytes.ok()) problem(place, "the array of this node has more than 2^62 bytes");
    node.tensor = message.tensor();
    node.name = message.name();
    node.number = message.number();
    node.dim = natural(message.dim(), "dim", place);
    node.offset = natural(message.offset(), "offset", place);
    node.causal = message.causal();
    node.transpose_left = message.transpose_left();
    node.transpose_right = message.transpose_right();
    node.permutation.assign(message.permutation().begin(), message.permutation().end());
    node.dims.assign(message.dims().begin(), message.dims().end());
    node.inverse = message.inverse();
    node.complex = message.complex();
    node.below = natural(message.below(), "below", place);
    if (message.has_blocks() != (node.kind == ReferenceKind::block_collective))
      problem(place, "blocks belong to a block_collective, and to nothing else");
    else if (message.has_blocks())
      node.collective = read(message.blocks(), place.at("blocks"));
    return node;
  }

  BlockCollective read(const proto::Reference::Blocks& message, const Place& place) {
    BlockCollective collective;
    collective.kind = collective_kind_numbered(message.kind());
    collective.axes = read_axes(message.axis(), place);
    collective.dim = natural(message.dim(), "dim", place);
    collective.split_dim = natural(message.split_dim(), "split_dim", place);
    collective.shift = message.shift();
    if (!Checked{collective.shift}.ok()) problem(place.at("shift"), "a shift reaches beyond 2^62");
    for (int d = 0; d < message.from_size(); ++d) collective.from.dims.push_back(read_axes(message.from(d).axis(), place.at("from", d)));
    for (int d = 0; d < message.to_size(); ++d) collective.to.dims.push_back(read_axes(message.to(d).axis(), place.at("to", d)));
    collective.reduction = static_cast<Reduction>(message.reduction());
    for (int p = 0; p < message.pair_size(); ++p)
      collective.pairs.emplace_back(natural(message.pair(p).from(), "from", place.at("pair", p)), natural(message.pair(p).to(), "to", place.at("pair", p)));
    return collective;
  }

  /// Whole mesh axes by their names.
  template <class List>
  std::vector<int> read_axes(const List& list, const Place& place) {
    std::vector<int> axes;
    for (int a = 0; a < list.size(); ++a) {
      const std::vector<MeshAxis>& known = mesh_.axes();
      const auto axis = std::find_if(known.begin(), known.end(), [&](const MeshAxis& one) { return one.name == list[a]; });
      if (axis == known.end()) problem(place.at("axis", a), "unknown mesh axis {}{}", quoted(list[a]), did_you_mean(list[a], axis_names()));
      axes.push_back(static_cast<int>(axis - known.begin()));
    }
    return axes;
  }

  std::vector<std::string> axis_names() const {
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh_.axes()) names.push_back(axis.name);
    return names;
  }

  template <class Int>
  Int natural(Int value, const char* field, const Place& place) {
    if (value < 0) problem(place.at(field), "{} must not be negative, got {}", field, value);
    return value;
  }
  template <class... Args>
  void problem(const Place& place, fmt::format_string<Args...> format, Args&&... args) {
    file_.problem(place, file_.full() ? std::string() : fmt::format(format, std::forward<Args>(args)...));
  }

  const Mesh& mesh_;
  MessageFile& file_;
};

}  // namespace

ReferenceProgram read_reference(const proto::Reference& message, const Place& place, const Mesh& mesh, MessageFile& file) {
  return ReferenceReader{mesh, file}.read(message, place);
}

}  // namespace podsim
