#include "workloads/hlo_values/collectives.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo_values/fold.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;
using Groups = std::vector<Dims>;

/// One dimension's part first .. first + size.
HloArray part_of(const HloArray& array, std::size_t along, std::int64_t first, std::int64_t size) {
  const Dims strides = row_major_strides(array.dims);
  Dims dims = array.dims;
  dims[along] = size;
  return strided(array, std::move(dims), first * strides[along], strides);
}

/// Arrays of one shape after each other.
HloArray joined(const std::vector<const HloArray*>& parts, std::size_t along) {
  Dims dims = parts.front()->dims;
  const std::int64_t each = dims[along];
  dims[along] *= static_cast<std::int64_t>(parts.size());
  HloArray result = zeros(parts.front()->type, dims);
  const Dims strides = row_major_strides(dims);
  for (std::size_t i = 0; i < parts.size(); ++i) put_strided(result, static_cast<std::int64_t>(i) * each * strides[along], strides, *parts[i]);
  return result;
}

class CollectiveOperation {
 public:
  CollectiveOperation(const HloModule& module, const HloInstruction& instruction, const CollectiveOperands& operands, std::int64_t most_elements,
                      HloArithmetic& arithmetic, const ArrayOperation::Call& call)
      : module_{module}, instruction_{instruction}, operands_{operands}, most_elements_{most_elements}, arithmetic_{arithmetic}, call_{call} {}

  Expected<std::vector<HloArrays>> run() {
    if (const auto ok = check(); !ok) return ok.error();
    results_.resize(operands_.size());
    if (instruction_.opcode == HloOpcode::collective_permute) {
      if (const auto ok = permute(); !ok) return ok.error();
      return std::move(results_);
    }
    const auto groups = collective_groups(module_, instruction_);
    if (!groups) return groups.error();
    std::vector<bool> taken(operands_.size(), false);
    for (const Dims& group : *groups) {
      const auto here = std::ranges::count_if(group, [&](std::int64_t device) { return is_here(device); });
      if (here == 0) continue;
      if (here != static_cast<std::ptrdiff_t>(group.size())) return error(fmt::format("expected all devices of a group to come to it, got {} of {}", here, group.size()));
      if (const auto ok = in_group(group); !ok) return ok.error();
      for (const std::int64_t device : group) taken[to_size(device)] = true;
    }
    for (std::size_t device = 0; device < taken.size(); ++device) {
      if (taken[device] || !is_here(static_cast<std::int64_t>(device))) continue;
      PODSIM_ASSERT(instruction_.opcode == HloOpcode::collective_broadcast);  // check_communication()
      for (const HloArray* operand : operands_[device]) results_[device].push_back(zeros(operand->type, operand->dims));
    }
    return std::move(results_);
  }

 private:
  Diagnostic error(const std::string& message) const { return {module_.where(instruction_), fmt::format("{}: {}", instruction_.name, message)}; }

  [[nodiscard]] bool is_here(std::int64_t device) const { return !operands_[to_size(device)].empty(); }

  Status check() {
    const auto first = std::ranges::find_if(operands_, [](const auto& mine) { return !mine.empty(); });
    if (first == operands_.end()) return error("expected operands");
    shown_ = &*first;
    for (const auto& mine : operands_)
      for (std::size_t i = 0; i < mine.size(); ++i)
        if (mine[i]->dims != shown(i).dims || mine[i]->type != shown(i).type) return error("expected operands of one shape on all devices");
    return success();
  }

  /// Operands of one of the devices: those of all have the same shapes.
  [[nodiscard]] const HloArray& shown(std::size_t operand) const { return *(*shown_)[operand]; }

  Status in_group(const Dims& group) {
    switch (instruction_.opcode) {
      case HloOpcode::all_gather: return all_gather(group);
      case HloOpcode::all_reduce: return reduced(group, false);
      case HloOpcode::reduce_scatter: return reduced(group, true);
      case HloOpcode::all_to_all: return instruction_.attributes->dimensions.empty() ? all_to_all_operands(group) : all_to_all_blocks(group);
      case HloOpcode::ragged_all_to_all: return ragged(group);
      case HloOpcode::collective_broadcast:
        for (const std::int64_t device : group)
          for (const HloArray* operand : operands_[to_size(group.front())]) results_[to_size(device)].push_back(*operand);
        return success();
      default: return error(fmt::format("{} is not interpreted", opcode_text(instruction_)));
    }
  }

  /// The dimension of a collective that has one.
  Expected<std::size_t> dimension(const HloArray& operand) const {
    const Dims& dimensions = instruction_.attributes->dimensions;
    if (dimensions.size() != 1 || to_size(dimensions[0]) >= operand.dims.size()) return error("expected one dimension of the operands");
    return to_size(dimensions[0]);
  }

  Status all_gather(const Dims& group) {
    for (std::size_t i = 0; i < shown_->size(); ++i) {
      const auto along = dimension(shown(i));
      if (!along) return along.error();
      std::vector<const HloArray*> parts;
      for (const std::int64_t device : group) parts.push_back(operands_[to_size(device)][i]);
      // Compared with the shape first: a group may name far more devices than fit.
      if (elements_of(*parts[0]) > most_elements_ / static_cast<std::int64_t>(operands_.size() * parts.size()))
        return error(fmt::format("expected at most {} elements in all results", most_elements_));
      const HloArray all = joined(parts, *along);
      for (const std::int64_t device : group) results_[to_size(device)].push_back(all);
    }
    return success();
  }

  /// The type of result `i`, which a reduction may convert to.
  HloType result_type(std::size_t i) const {
    const std::vector<const HloShape*> leaves = leaves_of(*instruction_.shape);
    const std::size_t count = shown_->size(), first = leaves.size() >= 2 * count ? count : 0;  // of a -start the operands stand before it
    const HloType given = shown(i).type;
    return first + i < leaves.size() && is_float(given) && is_float(leaves[first + i]->type) ? leaves[first + i]->type : given;
  }

  Status reduced(const Dims& group, bool is_scattered) {
    const HloComputation* function = called(module_, instruction_, HloRole::to_apply);
    if (function == nullptr) return error("expected to_apply");
    for (std::size_t i = 0; i < shown_->size(); ++i) {
      HloArray first = *operands_[to_size(group.front())][i];
      // Real numbers are not rounded to a type: a conversion is another name for it.
      if (!function->parameters.empty() && function->parameters[0] != HloInstruction::missing)
        if (const HloType summed = function->instructions[to_size(function->parameters[0])].shape->type; is_float(first.type) && is_float(summed))
          first.type = summed;
      const Fold fold{module_, instruction_, *function, first.type, 1, arithmetic_, call_};
      std::vector<HloArray> sum{first};
      std::vector<double> absolutes;
      if (fold.is_real_sum())
        for (const double value : first.reals) absolutes.push_back(finite_or_zero(std::fabs(value)));
      for (std::size_t position = 1; position < group.size(); ++position) {
        const std::vector<const HloArray*> values{operands_[to_size(group[position])][i]};
        const auto count = to_size(elements_of(first));
        for (std::size_t element = 0; element < count; ++element) {
          if (const auto ok = fold.apply(sum, element, values, element); !ok) return ok;
          if (fold.is_real_sum()) absolutes[element] += finite_or_zero(std::fabs(values[0]->reals[element]));
        }
      }
      for (const double value : absolutes) note_sum(arithmetic_, value);
      sum[0].type = result_type(i);
      if (!is_scattered) {
        for (const std::int64_t device : group) results_[to_size(device)].push_back(sum[0]);
        continue;
      }
      const auto along = dimension(first);
      if (!along) return along.error();
      const auto parts = static_cast<std::int64_t>(group.size());
      if (first.dims[*along] % parts != 0)
        return error(fmt::format("expected a dimension that {} devices divide, got {}", parts, first.dims[*along]));
      const std::int64_t each = first.dims[*along] / parts;
      for (std::int64_t position = 0; position < parts; ++position)
        results_[to_size(group[to_size(position)])].push_back(part_of(sum[0], *along, position * each, each));
    }
    return success();
  }

  /// Operand j goes to position j of the group; result i comes from position i.
  Status all_to_all_operands(const Dims& group) {
    if (shown_->size() != group.size())
      return error(fmt::format("expected an operand for each of {} devices, got {}", group.size(), shown_->size()));
    for (std::size_t target = 0; target < group.size(); ++target)
      for (const std::int64_t source : group) results_[to_size(group[target])].push_back(*operands_[to_size(source)][target]);
    return success();
  }

  /// Block j of the dimension goes to position j; what comes stands in the order of the positions.
  Status all_to_all_blocks(const Dims& group) {
    for (std::size_t i = 0; i < shown_->size(); ++i) {
      const auto along = dimension(shown(i));
      if (!along) return along.error();
      const auto parts = static_cast<std::int64_t>(group.size());
      const std::int64_t size = shown(i).dims[*along];
      if (size % parts != 0) return error(fmt::format("expected a dimension that {} devices divide, got {}", parts, size));
      for (std::int64_t target = 0; target < parts; ++target) {
        std::vector<HloArray> blocks;
        for (const std::int64_t source : group)
          blocks.push_back(part_of(*operands_[to_size(source)][i], *along, target * (size / parts), size / parts));
        std::vector<const HloArray*> pointers;
        for (const HloArray& block : blocks) pointers.push_back(&block);
        results_[to_size(group[to_size(target)])].push_back(joined(pointers, *along));
      }
    }
    return success();
  }

  /// Rows of operand 0 go to the group's members, `sizes` from `from` on, and stand from `to` on in what is otherwise the target's operand 1. There
  /// may be several lots for each member. Rows beyond an array are neither sent nor received: how many there are is data.
  Status ragged(const Dims& group) {
    const auto& mine = operands_[to_size(group.front())];
    const auto members = static_cast<std::int64_t>(group.size());
    if (mine.size() != 6) return error(fmt::format("expected 6 operands, got {}", mine.size()));
    const Dims lists = mine[2]->dims;
    if (mine[0]->dims.empty() || mine[1]->dims.empty() || mine[0]->type != mine[1]->type ||
        !std::equal(mine[0]->dims.begin() + 1, mine[0]->dims.end(), mine[1]->dims.begin() + 1, mine[1]->dims.end()))
      return error("expected rows of one shape in what is sent and what receives them");
    if (lists.size() != 1 || lists[0] % members != 0) return error(fmt::format("expected offsets and sizes for each of {} devices", members));
    for (std::size_t list = 2; list < 6; ++list)
      if (mine[list]->dims != lists || !is_integer(mine[list]->type)) return error("expected as many offsets as sizes, all of them whole numbers");
    const std::int64_t lots = lists[0] / members, given = mine[0]->dims[0], room = mine[1]->dims[0];
    const std::int64_t row = given > 0 ? elements_of(*mine[0]) / given : 0;
    for (const std::int64_t device : group) results_[to_size(device)].push_back(*operands_[to_size(device)][1]);
    for (const std::int64_t source : group) {
      const auto& of = operands_[to_size(source)];
      for (std::int64_t i = 0; i < lists[0]; ++i) {
        HloArray& result = results_[to_size(group[to_size(i / lots)])][0];
        const std::int64_t from = of[2]->integers[to_size(i)], size = of[3]->integers[to_size(i)], to = of[4]->integers[to_size(i)];
        if (from < 0 || to < 0 || size <= 0 || from >= given || to >= room) continue;
        const std::int64_t rows = std::min({size, given - from, room - to});
        const auto move = [&](const auto& read, auto& written) { std::copy_n(read.begin() + from * row, rows * row, written.begin() + to * row); };
        if (is_integer(result.type)) move(of[0]->integers, result.integers);
        if (has_reals(result.type)) move(of[0]->reals, result.reals);
        if (is_complex(result.type)) move(of[0]->imaginaries, result.imaginaries);
      }
    }
    return success();
  }

  Status permute() {
    const auto pairs = permute_pairs(module_, instruction_);
    if (!pairs) return pairs.error();
    for (const auto& [source, target] : *pairs) {
      if (!is_here(source) && !is_here(target)) continue;
      if (!is_here(source) || !is_here(target)) return error(fmt::format("expected {} and {} both to come to it", source, target));
      if (!results_[to_size(target)].empty()) return error(fmt::format("expected each device to receive once, got {} twice", target));
      for (const HloArray* operand : operands_[to_size(source)]) results_[to_size(target)].push_back(*operand);
    }
    for (std::size_t device = 0; device < results_.size(); ++device)
      if (results_[device].empty())
        for (const HloArray* operand : operands_[device]) results_[device].push_back(zeros(operand->type, operand->dims));
    return success();
  }

  const HloModule& module_;
  const HloInstruction& instruction_;
  const CollectiveOperands& operands_;
  std::int64_t most_elements_;
  HloArithmetic& arithmetic_;
  const ArrayOperation::Call& call_;
  const std::vector<const HloArray*>* shown_ = nullptr;
  std::vector<HloArrays> results_;
};

Diagnostic beyond(const HloModule& module, const HloInstruction& instruction, std::int64_t id, std::int64_t count) {
  return {module.where(instruction), fmt::format("{}: expected ids below {}, got {}", instruction.name, count, id)};
}

}  // namespace

Expected<std::vector<std::vector<std::int64_t>>> collective_groups(const HloModule& module, const HloInstruction& instruction) {
  const std::int64_t devices = devices_of(module), replicas = std::max<std::int64_t>(module.replica_count, 1), partitions = devices / replicas;
  HloGroupMode mode = group_mode_of(instruction);
  if (replicas == 1) mode = HloGroupMode::partitions;  // then all ids are partition ids
  const bool of_replicas = mode == HloGroupMode::replicas || mode == HloGroupMode::replicas_everywhere;
  const std::int64_t ids = mode == HloGroupMode::flattened ? devices : of_replicas ? replicas : partitions;

  Groups written;
  const ReplicaGroups groups = instruction.attributes->replica_groups.value_or(ReplicaGroups{});
  if (groups.is_all()) {
    written.emplace_back();
    for (std::int64_t id = 0; id < ids; ++id) written.back().push_back(id);
  } else {
    if (groups.total() > ids || groups.largest() >= ids) return beyond(module, instruction, groups.largest(), ids);
    for (std::int64_t g = 0; g < groups.count(); ++g) written.push_back(groups.devices(g));
  }
  std::vector<bool> seen(to_size(ids), false);
  for (const Dims& group : written)
    for (const std::int64_t id : group) {
      if (id < 0 || id >= ids) return beyond(module, instruction, id, ids);
      if (seen[to_size(id)])
        return Diagnostic{module.where(instruction), fmt::format("{}: expected every id once, got {} twice", instruction.name, id)};
      seen[to_size(id)] = true;
    }

  Groups result;
  for (const Dims& group : written) {
    if (group.empty()) continue;
    switch (mode) {
      case HloGroupMode::flattened: result.push_back(group); break;
      case HloGroupMode::partitions:
        for (std::int64_t replica = 0; replica < replicas; ++replica) {
          Dims& of_replica = result.emplace_back();
          for (const std::int64_t partition : group) of_replica.push_back(replica * partitions + partition);
        }
        break;
      case HloGroupMode::replicas:
        for (std::int64_t partition = 0; partition < partitions; ++partition) {
          Dims& of_partition = result.emplace_back();
          for (const std::int64_t replica : group) of_partition.push_back(replica * partitions + partition);
        }
        break;
      case HloGroupMode::replicas_everywhere: {
        Dims& everywhere = result.emplace_back();
        for (const std::int64_t replica : group)
          for (std::int64_t partition = 0; partition < partitions; ++partition) everywhere.push_back(replica * partitions + partition);
        break;
      }
    }
  }
  return result;
}

Expected<std::vector<SourceTarget>> permute_pairs(const HloModule& module, const HloInstruction& instruction) {
  const std::int64_t devices = devices_of(module), replicas = std::max<std::int64_t>(module.replica_count, 1), partitions = devices / replicas;
  const bool of_partitions = replicas == 1 || instruction.attributes->channel_id.has_value();
  const std::int64_t ids = of_partitions ? partitions : replicas;
  std::vector<SourceTarget> pairs;
  for (const auto& [source, target] : instruction.attributes->source_target_pairs) {
    if (source < 0 || source >= ids || target < 0 || target >= ids) return beyond(module, instruction, std::max(source, target), ids);
    for (std::int64_t other = 0; other < devices / ids; ++other) {
      const auto device = [&](std::int64_t id) { return of_partitions ? other * partitions + id : id * partitions + other; };
      pairs.emplace_back(device(source), device(target));
    }
  }
  return pairs;
}

Expected<std::vector<HloArrays>> collective_results(const HloModule& module, const HloInstruction& instruction, const CollectiveOperands& operands,
                                                    std::int64_t most_elements, HloArithmetic& arithmetic, const ArrayOperation::Call& call) {
  return CollectiveOperation{module, instruction, operands, most_elements, arithmetic, call}.run();
}

}  // namespace podsim
