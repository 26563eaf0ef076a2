#include "workloads/sharded/argument_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/base/text.hpp"
#include "workloads/sharded/program_inputs.hpp"

namespace podsim {

std::string ArgumentReader::form_of(const ProgramFunction& function) {
  if (function.op == ArrayOp::axis_index) return fmt::format("{}({})", function.name, function.arguments);
  return fmt::format("{}({})", function.name, function.arguments.empty() ? "A" : "A, " + std::string{function.arguments});
}
Status ArgumentReader::comma(const ProgramFunction& function) { return expect(',', ", in " + form_of(function)); }

Status ArgumentReader::tiles(const ProgramFunction& function, Operation& operation, const BlockArguments& blocks, bool& tiled) {
  std::vector<std::pair<std::size_t, std::int64_t>> dims;  // with their places
  for (int d = 0; d < (function.op == ArrayOp::all_to_all ? 2 : 1); ++d) {
    skip_blanks();
    const std::size_t begin = at_;
    const auto dim = integer(most_extent);
    if (!dim) return dim.error();
    dims.emplace_back(begin, *dim);
    if (Status separated = comma(function); !separated) return separated;
  }
  if (Status read = axes(operation, blocks.most_axes); !read) return read;
  tiled = !blocks.in_shard_map;
  if (take(',')) {
    skip_blanks();
    const std::size_t begin = at_;
    if (!take_word("tiled")) return error(begin, "expected tiled, found " + found(begin));
    tiled = !take('=') || take_word("True");
    if (!tiled && !take_word("False")) return error(at_, "expected True or False, found " + found(at_));
    if (!tiled && !blocks.in_shard_map) return error(begin, fmt::format("{} is tiled outside of shard_map, found tiled=False", function.name));
  }
  // What is not tiled is gathered in a dimension of its own, which the operand does not have.
  const auto rank = static_cast<std::int64_t>(blocks.rank);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto [begin, dim] = dims[d];
    const std::int64_t own = rank + (function.op == ArrayOp::all_gather && !tiled ? 1 : 0);
    if (dim < -own || dim >= own) return error(begin, fmt::format("expected a dimension of an array of rank {}, found {}", own, dim));
    (d + 1 < dims.size() ? operation.split_dim : operation.dim) = static_cast<int>(dim < 0 ? dim + own : dim);
  }
  return success();
}

Status ArgumentReader::pairs(Operation& operation) {
  take('[');
  const std::int64_t devices = devices_along(mesh_, operation.axes);
  std::set<std::int64_t> senders, receivers;
  do {
    skip_blanks();
    const std::size_t begin = at_;
    std::array<std::int64_t, 2> pair{};
    if (Status opened = expect('(', "a pair of devices, as in (0, 1)"); !opened) return opened;
    for (std::size_t i = 0; i < 2; ++i) {
      skip_blanks();
      const std::size_t at = at_;
      const auto position = integer(std::int64_t{1} << 30);
      if (!position) return position.error();
      if (*position < 0 || *position >= devices) return error(at, fmt::format("expected a position along the axes, 0 to {}, found {}", devices - 1, *position));
      pair[i] = *position;
      if (Status separated = i == 0 ? expect(',', ", between sender and receiver") : expect(')', ") behind a pair of devices"); !separated) return separated;
    }
    if (!senders.insert(pair[0]).second || !receivers.insert(pair[1]).second)
      return error(begin, fmt::format("expected every device at most once as sender and as receiver, found ({}, {}) beside another pair", pair[0], pair[1]));
    operation.pairs.emplace_back(pair[0], pair[1]);
  } while (take(','));
  return expect(']', ", or ] behind a pair of devices");
}

Status ArgumentReader::dimension(std::size_t of_rank, int& dim) {
  skip_blanks();
  const std::size_t begin = at_;
  const auto rank = static_cast<std::int64_t>(of_rank);
  const auto read = integer(most_extent);
  if (!read) return read.error();
  if (*read < -rank || *read >= rank) return error(begin, fmt::format("expected a dimension of an array of rank {}, found {}", rank, *read));
  dim = static_cast<int>(*read < 0 ? *read + rank : *read);
  return success();
}

Status ArgumentReader::axes(Operation& operation, std::size_t most) {
  const bool grouped = take('(');
  do {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string word = name();
    if (word.empty()) return error(begin, "expected a mesh axis, found " + found(begin));
    const auto axis = mesh_.axis(word);
    if (!axis) return error(begin, axis.error().message);
    if (std::find(operation.axes.begin(), operation.axes.end(), axis->axis) != operation.axes.end()) return error(begin, "mesh axis " + quoted(word) + " is named twice");
    operation.axes.push_back(axis->axis);
    if (operation.axes.size() > most) return error(begin, "expected one mesh axis, found a second one, " + quoted(word));
  } while (take('+') || (grouped && take(',')));
  return grouped ? expect(')', "+ or ) behind a mesh axis") : success();
}

Status ArgumentReader::spec(Operation& operation, std::size_t rank) {
  skip_blanks();
  const std::size_t begin = at_;
  const std::string_view text = trimmed(text_until(");"));
  const auto sharding = parse_sharding(text, mesh_, rank, place(begin));
  if (!sharding) return sharding.error();
  operation.sharding = *sharding;
  return success();
}

}  // namespace podsim
