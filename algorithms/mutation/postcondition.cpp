// Inputs, and what the outputs have to be: the definitions of products and collectives, written out.
#include <fmt/format.h>

#include <map>

#include "algorithms/mutation/interpreter.hpp"
#include "sim/base/rng.hpp"

namespace podsim::mutation {

namespace {

int program_index(const Schedule& schedule, int device) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p)
    for (const DeviceSet::Interval& interval : schedule.programs[p].devices.intervals)
      if (device >= interval.first && device < interval.last) return static_cast<int>(p);
  return -1;
}

std::uint64_t input_word(std::uint64_t seed, const std::string& tensor, std::int64_t position) {
  return counter_hash(seed, stream_of(tensor), static_cast<std::uint64_t>(position));
}

/// Positions in the global tensor of all elements of a device's shard, row-major.
Positions global_positions(const Buffer& buffer, const Coordinates& at) {
  Positions positions{0};
  for (std::size_t i = 0; i < buffer.extents.size(); ++i) {
    std::int64_t shards = 1, own = 0;
    for (const AxisView& view : buffer.sharding[i]) {
      own = own * view.size + at[static_cast<std::size_t>(view.axis)] / view.stride % view.size;
      shards *= view.size;
    }
    const std::int64_t extent = buffer.extents[i];
    Positions finer;
    for (const std::int64_t position : positions)
      for (std::int64_t j = 0; j < extent; ++j) finer.push_back(position * extent * shards + own * extent + j);
    positions = std::move(finer);
  }
  return positions;
}

/// Block `index` of `count` along `dim` of a region, out of a list of its elements.
template <class List>
List block_of(const Region& region, const List& elements, int dim, std::int64_t count, std::int64_t index) {
  List block;
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(dim) + 1; i < region.dims.size(); ++i) inner *= region.dims[i].length;
  const std::int64_t length = region.dims[static_cast<std::size_t>(dim)].length, part = length / count;
  for (std::size_t e = 0; e < elements.size(); ++e)
    if (static_cast<std::int64_t>(e) / inner % length / part == index) block.push_back(elements[e]);
  return block;
}

void add_to(Words& sum, const Words& words) {
  for (std::size_t e = 0; e < words.size(); ++e) sum[e] += words[e];
}

/// The devices along `axes` from a device on, itself among them, in the order of their positions.
struct Group {
  std::vector<int> devices;
  std::size_t own = 0;
};
Group group_of(const Mesh& mesh, const std::vector<AxisView>& axes, int device) {
  Group group{{device}, 0};
  for (const AxisView& view : axes) {
    std::vector<int> finer;
    for (const int member : group.devices)
      for (int c = 0; c < view.size; ++c) {
        const Coordinates at = coordinates_of(mesh, member);
        finer.push_back(moved(mesh, at, view, c - at[static_cast<std::size_t>(view.axis)] / view.stride % view.size));
      }
    group.devices = std::move(finer);
  }
  while (group.devices[group.own] != device) ++group.own;
  return group;
}

/// The definition of one collective, given the contents of every device's input region.
class Definition {
 public:
  struct Delivery {
    Positions where;
    Words words;
  };

  Definition(const Collective& collective, const std::vector<Words>& inputs) : collective_{collective}, inputs_{inputs} {}

  /// What it leaves in the output region of one device. What is not named may hold anything.
  std::vector<Delivery> on(const Group& group, const Positions& output) {
    const auto P = static_cast<std::int64_t>(group.devices.size()), own = static_cast<std::int64_t>(group.own);
    std::vector<Delivery> deliveries;
    switch (collective_.kind) {
      case CollectiveKind::all_gather:
        for (std::int64_t b = 0; b < P; ++b) deliveries.push_back({block_of(collective_.output, output, collective_.dim, P, b), input(group, b)});
        break;
      case CollectiveKind::all_to_all:
        for (std::int64_t b = 0; b < P; ++b)
          deliveries.push_back({block_of(collective_.output, output, collective_.dim, P, b),
                                block_of(collective_.input, input(group, b), collective_.split_dim, P, own)});
        break;
      case CollectiveKind::reduce_scatter: deliveries.push_back({output, block_of(collective_.input, sum(group), collective_.dim, P, own)}); break;
      case CollectiveKind::all_reduce: deliveries.push_back({output, sum(group)}); break;
      case CollectiveKind::broadcast: deliveries.push_back({output, input(group, collective_.root)}); break;
      case CollectiveKind::reduce:
        if (own == collective_.root) deliveries.push_back({output, sum(group)});
        break;
      case CollectiveKind::permute:
        for (const Collective::Pair& pair : collective_.pairs)
          if (pair.to == own) deliveries.push_back({output, input(group, pair.from)});
        break;
    }
    return deliveries;
  }

 private:
  const Words& input(const Group& group, std::int64_t position) const {
    return inputs_[static_cast<std::size_t>(group.devices[static_cast<std::size_t>(position)])];
  }
  /// Of the group's inputs, added up once.
  const Words& sum(const Group& group) {
    Words& words = sums_[group.devices];
    if (!words.empty()) return words;
    words = input(group, 0);
    for (std::size_t g = 1; g < group.devices.size(); ++g) add_to(words, input(group, static_cast<std::int64_t>(g)));
    return words;
  }

  const Collective& collective_;
  const std::vector<Words>& inputs_;
  std::map<std::vector<int>, Words> sums_;
};

}  // namespace

Memory initial_memory(const Schedule& schedule, std::uint64_t seed) {
  Memory memory(static_cast<std::size_t>(schedule.mesh.devices()));
  for (std::size_t d = 0; d < memory.size(); ++d) {
    const int program = program_index(schedule, static_cast<int>(d));
    if (program < 0) continue;
    for (const Buffer& buffer : schedule.programs[static_cast<std::size_t>(program)].buffers) {
      Words words;
      if (buffer.role == Role::input) {
        for (const std::int64_t position : global_positions(buffer, coordinates_of(schedule.mesh, static_cast<int>(d))))
          words.push_back(input_word(seed, buffer.tensor, position));
      } else {
        std::int64_t count = 1;
        for (const std::int64_t extent : buffer.extents) count *= extent;
        Rng noise{seed, stream_of("noise") + (d << 20) + memory[d].size()};
        for (std::int64_t e = 0; e < count; ++e) words.push_back(noise.next());
      }
      memory[d].push_back(std::move(words));
    }
  }
  return memory;
}

Postcondition::Postcondition(const Schedule& schedule, std::uint64_t seed) : schedule_{schedule}, seed_{seed} {
  if (const auto* products = std::get_if<Products>(&schedule.computes))
    for (const Product& product : *products) expect_product(product);
  if (const auto* collective = std::get_if<Collective>(&schedule.computes)) expect_collective(*collective);
}

void Postcondition::expect_product(const Product& product) {
  const auto operand = [&](const std::string& tensor, std::int64_t rows, std::int64_t columns, bool transposed, std::int64_t r, std::int64_t c) {
    return input_word(seed_, tensor, transposed ? c * rows + r : r * columns + c);
  };
  Words left, right_by_column, out;
  for (std::int64_t i = 0; i < product.m; ++i)
    for (std::int64_t l = 0; l < product.k; ++l) left.push_back(operand(product.left, product.m, product.k, product.transpose_left, i, l));
  for (std::int64_t j = 0; j < product.n; ++j)
    for (std::int64_t l = 0; l < product.k; ++l)
      right_by_column.push_back(operand(product.right, product.k, product.n, product.transpose_right, l, j));
  for (std::int64_t i = 0; i < product.m; ++i)
    for (std::int64_t j = 0; j < product.n; ++j) {
      std::uint64_t sum = 0;
      for (std::int64_t l = 0; l < product.k; ++l)
        sum += left[static_cast<std::size_t>(i * product.k + l)] * right_by_column[static_cast<std::size_t>(j * product.k + l)];
      out.push_back(sum);
    }
  for (int d = 0; d < schedule_.mesh.devices(); ++d) {
    const int program = program_index(schedule_, d);
    if (program < 0) continue;
    const std::vector<Buffer>& buffers = schedule_.programs[static_cast<std::size_t>(program)].buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].role != Role::output || buffers[b].tensor != product.out) continue;
      Expectation expectation{d, static_cast<int>(b), {}, {}};
      for (const std::int64_t position : global_positions(buffers[b], coordinates_of(schedule_.mesh, d))) {
        expectation.where.push_back(static_cast<std::int64_t>(expectation.where.size()));
        expectation.words.push_back(out.at(static_cast<std::size_t>(position)));
      }
      expectations_.push_back(std::move(expectation));
    }
  }
}

void Postcondition::expect_collective(const Collective& collective) {
  const Memory before = initial_memory(schedule_, seed_);
  const std::vector<Buffer>& buffers = schedule_.programs.front().buffers;
  const std::size_t in = collective.input.buffer.index(), out = collective.output.buffer.index();
  std::vector<Words> inputs(before.size());
  for (std::size_t d = 0; d < before.size(); ++d) {
    const Positions where = positions_of(buffers[in], collective.input, coordinates_of(schedule_.mesh, static_cast<int>(d))).value();
    for (const std::int64_t position : where) inputs[d].push_back(before[d][in][static_cast<std::size_t>(position)]);
  }
  Definition definition{collective, inputs};
  for (int d = 0; d < schedule_.mesh.devices(); ++d) {
    const Positions output = positions_of(buffers[out], collective.output, coordinates_of(schedule_.mesh, d)).value();
    for (Definition::Delivery& delivery : definition.on(group_of(schedule_.mesh, collective.axes, d), output))
      expectations_.push_back({d, static_cast<int>(out), std::move(delivery.where), std::move(delivery.words)});
  }
}

std::string Postcondition::violation(const Memory& memory) const {
  for (const Expectation& expectation : expectations_) {
    const Words& words = memory[static_cast<std::size_t>(expectation.device)][static_cast<std::size_t>(expectation.buffer)];
    for (std::size_t e = 0; e < expectation.where.size(); ++e)
      if (words[static_cast<std::size_t>(expectation.where[e])] != expectation.words[e])
        return fmt::format("element {} of buffer {} on device {} is wrong", expectation.where[e], expectation.buffer, expectation.device);
  }
  return expectations_.empty() ? "nothing is said about any output" : "";
}

}  // namespace podsim::mutation
