// Shapes of collectives.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/hlo/shape_rule.hpp"

namespace podsim {

namespace {

class CollectiveShape : ShapeRule {
 public:
  using ShapeRule::ShapeRule;

  [[nodiscard]] ShapeProblem problem() const {
    if (operands_.empty()) return fmt::format("expected operands of {}, got none", name_of(instruction_.opcode));
    switch (instruction_.opcode) {
      case HloOpcode::all_gather:
      case HloOpcode::reduce_scatter: return each_of_blocks();
      case HloOpcode::all_to_all: return of_exchange();
      case HloOpcode::ragged_all_to_all: return of_ragged();
      case HloOpcode::collective_permute: return is_in_place() ? alike(operand(1), shape_) : each_alike();
      default: return each_alike();
    }
  }

 private:
  [[nodiscard]] ShapeProblem has_a_result_of_each() const {
    if (!shape_.is_tuple() && operands_.size() > 1) return fmt::format("expected a tuple of {} results, got {}", operands_.size(), cut_text(shape_));
    if (shape_.is_tuple() && shape_.elements.size() != operands_.size()) return fmt::format("expected a result of each of {} operands, got {}", operands_.size(), cut_text(shape_));
    return {};
  }
  [[nodiscard]] const HloShape& result(std::size_t o) const { return shape_.is_tuple() ? shape_.elements[o] : shape_; }

  [[nodiscard]] ShapeProblem each_alike() const {
    if (auto wrong = has_a_result_of_each()) return wrong;
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (auto wrong = alike(operand(o), result(o))) return wrong;
    return {};
  }

  /// A permute from one place of a buffer to one of another: both, and the places in each.
  [[nodiscard]] bool is_in_place() const { return operands_.size() == 4 && operand(2).is_tuple() && operand(3).is_tuple(); }

  /// Blocks along one dimension, or whole operands, one for each member of a group.
  [[nodiscard]] ShapeProblem of_exchange() const {
    if (auto wrong = each_alike()) return wrong;
    if (attributes_.dimensions.empty()) {
      if (has_members(static_cast<std::int64_t>(operands_.size()))) return {};
      return fmt::format("expected an operand for each member of a group, got {}", operands_.size());
    }
    if (attributes_.dimensions.size() != 1 || operands_.size() != 1) return fmt::format("expected one operand and one dimension, or no dimensions, got {} and {}", operands_.size(), attributes_.dimensions.size());
    const auto dim = static_cast<std::size_t>(attributes_.dimensions.front());
    const std::int64_t members = attributes_.replica_groups ? attributes_.replica_groups->uniform_size().value_or(0) : 0;
    if (!is_static_array(operand(0)) || dim >= operand(0).rank() || members == 0 || operand(0).dims[dim] % members == 0) return {};
    return fmt::format("expected a block for each of {} members of a group along dimension {}, got {}", members, dim, cut_text(operand(0)));
  }

  /// What goes, where it comes to, and rows of each that go and come.
  [[nodiscard]] ShapeProblem of_ragged() const {
    if (auto wrong = counts(6)) return wrong;
    for (std::size_t o = 2; o < 6; ++o)
      if (number_kind_of(operand(o).type) != NumberKind::integer) return fmt::format("expected whole numbers as operand {}, got {}", o, cut_text(operand(o)));
    return alike(operand(1), shape_);
  }

  /// Of a gather each operand, of a reduce-scatter each result.
  [[nodiscard]] ShapeProblem each_of_blocks() const {
    const bool gathers = instruction_.opcode == HloOpcode::all_gather;
    if (auto wrong = has_a_result_of_each()) return wrong;
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (auto wrong = gathers ? of_blocks(operand(o), result(o)) : of_blocks(result(o), operand(o))) return wrong;
    return {};
  }

  /// The whole is a block of each member of a group, along one dimension.
  [[nodiscard]] ShapeProblem of_blocks(const HloShape& block, const HloShape& whole) const {
    if (!is_static_array(block) || !is_static_array(whole)) return {};
    if (attributes_.dimensions.size() != 1) return fmt::format("expected dimensions={{D}} of {}, found {} of them", name_of(instruction_.opcode), attributes_.dimensions.size());
    const auto dim = static_cast<std::size_t>(attributes_.dimensions.front());
    const bool cut_there = dim < block.rank() && block.rank() == whole.rank() && block.dims[dim] > 0 && whole.dims[dim] % block.dims[dim] == 0;
    ShapeDims rest = block.dims;
    if (cut_there) rest[dim] = whole.dims[dim];
    if (cut_there && rest == whole.dims && number_kind_of(block.type) == number_kind_of(whole.type) && has_members(whole.dims[dim] / block.dims[dim])) return {};
    return fmt::format("expected a block of each member of a group along dimension {}, got {} of {}", dim, cut_text(block), cut_text(whole));
  }

  /// Whether groups have that many members, as far as the instruction alone tells: where ids are of replicas each stands for all partitions.
  [[nodiscard]] bool has_members(std::int64_t members) const {
    const auto size = attributes_.replica_groups ? attributes_.replica_groups->uniform_size() : std::nullopt;
    return !size || (group_mode_of(instruction_) == HloGroupMode::replicas_everywhere ? members % *size == 0 : members == *size);
  }
};

}  // namespace

ShapeProblem collective_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands) {
  return CollectiveShape{instruction, result, operands}.problem();
}

}  // namespace podsim
