#include "workloads/hlo/joined_transfers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace podsim {

namespace {

constexpr std::string_view start_target = "AsyncCollectiveStart", done_target = "AsyncCollectiveDone";

HloInstruction& at(HloComputation& computation, int i) { return computation.instructions[static_cast<std::size_t>(i)]; }
const HloInstruction& at(const HloComputation& computation, int i) { return computation.instructions[static_cast<std::size_t>(i)]; }

/// The computation that a fusion calls, or nullptr.
const HloComputation* fused_by(const HloModule& module, const HloInstruction& instruction) {
  return instruction.opcode == HloOpcode::fusion && instruction.phase == HloPhase::whole ? called(module, instruction, HloRole::calls) : nullptr;
}

const HloInstruction* custom_call_in(const HloComputation& computation, std::string_view target) {
  const auto found = std::ranges::find_if(computation.instructions, [&](const HloInstruction& i) { return i.opcode == HloOpcode::custom_call && i.attributes->custom_call_target == target; });
  return found == computation.instructions.end() ? nullptr : &*found;
}

/// The collective of a fused computation, if it has exactly one and operands of it are parameters.
const HloInstruction* collective_of(const HloComputation& fused) {
  const HloInstruction* found = nullptr;
  for (const HloInstruction& instruction : fused.instructions)
    if (is_collective(instruction.opcode)) {
      if (found != nullptr || instruction.phase != HloPhase::whole) return nullptr;
      found = &instruction;
    }
  const auto is_parameter = [&](int operand) { return operand != HloInstruction::missing && at(fused, operand).opcode == HloOpcode::parameter; };
  return found != nullptr && std::ranges::all_of(found->operands, is_parameter) ? found : nullptr;
}

/// What of a fusion between the start and the done belongs to the chain.
struct Piece {
  int fusion = 0;
  std::set<std::size_t> operands{};                  // positions
  std::map<std::size_t, std::size_t> outputs{};      // element of the result: element of the start's result that it hands on
  std::set<int> inside{};                            // parameters and collectives of the fused computation that are left out
};

/// One collective in pieces.
struct Chain {
  int start = 0, done = HloInstruction::missing;
  std::vector<Piece> pieces{};
  std::map<int, std::size_t> elements{};  // get-tuple-elements of the start and of pieces: the element of the start's result
};

class ComputationJoiner {
 public:
  ComputationJoiner(HloModule& module, int number, const std::vector<int>& callers) : module_{module}, number_{number}, callers_{callers} {}

  void join() {
    const auto count = static_cast<int>(computation().instructions.size());
    for (int i = 0; i < count; ++i) {
      const HloComputation* const fused = fused_by(module_, at(computation(), i));
      if (fused == nullptr || custom_call_in(*fused, start_target) == nullptr) continue;
      if (auto chain = chain_from(i)) chains_.push_back(*std::move(chain));
    }
    // A fusion may carry several collectives, each of which leaves parts of it out.
    for (const Chain& chain : chains_) rewrite_ends(chain);
    std::map<int, Piece> whole;
    for (const Chain& chain : chains_)
      for (const Piece& piece : chain.pieces) {
        Piece& all = whole[piece.fusion];
        all.fusion = piece.fusion;
        all.operands.insert(piece.operands.begin(), piece.operands.end());
        all.outputs.insert(piece.outputs.begin(), piece.outputs.end());
        all.inside.insert(piece.inside.begin(), piece.inside.end());
      }
    for (const auto& [fusion, piece] : whole) rewrite_piece(piece);
    remove(computation(), dead_);
  }

 private:
  [[nodiscard]] HloComputation& computation() { return module_.computations[static_cast<std::size_t>(number_)]; }

  std::vector<int> users_of(int i) {
    std::vector<int> users;
    for (int u = i + 1; u < static_cast<int>(computation().instructions.size()); ++u)
      if (std::ranges::count(at(computation(), u).operands, i) > 0) users.push_back(u);
    return users;
  }

  /// Follows the start's result to the done; nullopt: something else uses it.
  std::optional<Chain> chain_from(int start) {
    const HloInstruction& begin = at(computation(), start);
    const HloComputation& fused = *fused_by(module_, begin);
    if (collective_of(fused) == nullptr || !begin.shape->is_tuple() || begin.shape->elements.size() < 2 || computation().root == start) return std::nullopt;
    Chain chain{start};
    for (const int user : users_of(start)) {
      if (at(computation(), user).opcode != HloOpcode::get_tuple_element || user == computation().root) return std::nullopt;
      chain.elements[user] = static_cast<std::size_t>(at(computation(), user).number);
    }
    for (int i = start + 1; i < static_cast<int>(computation().instructions.size()); ++i) {
      const HloInstruction& user = at(computation(), i);
      if (user.opcode == HloOpcode::get_tuple_element) {  // of a piece
        const auto piece = std::ranges::find(chain.pieces, user.operands.front(), &Piece::fusion);
        if (piece == chain.pieces.end()) continue;
        const auto handed = piece->outputs.find(static_cast<std::size_t>(user.number));
        if (handed == piece->outputs.end()) continue;
        if (i == computation().root) return std::nullopt;
        chain.elements[i] = handed->second;
        continue;
      }
      std::set<std::size_t> positions;
      for (std::size_t o = 0; o < user.operands.size(); ++o)
        if (chain.elements.contains(user.operands[o])) positions.insert(o);
      if (positions.empty()) continue;
      const HloComputation* const calls = fused_by(module_, user);
      if (calls == nullptr || callers_[static_cast<std::size_t>(calls - module_.computations.data())] != 1) return std::nullopt;
      if (custom_call_in(*calls, done_target) != nullptr) {
        if (chain.done != HloInstruction::missing || !user.shape->is_array() || positions.size() != user.operands.size()) return std::nullopt;
        chain.done = i;
        continue;
      }
      auto piece = piece_of(chain, i, *calls, positions);
      if (!piece) return std::nullopt;
      chain.pieces.push_back(*std::move(piece));
    }
    return chain.done == HloInstruction::missing ? std::nullopt : std::optional{std::move(chain)};
  }

  std::optional<Piece> piece_of(const Chain& chain, int fusion, const HloComputation& fused, const std::set<std::size_t>& positions) {
    Piece piece{fusion};
    const HloInstruction& root = at(fused, fused.root);
    if (root.opcode != HloOpcode::tuple) return std::nullopt;
    std::map<int, std::size_t> carried;  // instructions inside: element of the start's result
    for (const std::size_t p : positions) carried[fused.parameters[p]] = chain.elements.at(at(computation(), fusion).operands[p]);
    const auto belongs = [&](int i) { return carried.contains(i); };
    for (int i = 0; i < static_cast<int>(fused.instructions.size()); ++i) {
      const HloInstruction& inside = at(fused, i);
      if (!is_collective(inside.opcode) || !std::ranges::all_of(inside.operands, belongs)) continue;
      // It prints the collective's result again: the element of that shape.
      const HloShape& result = *at(computation(), chain.start).shape;
      const auto element = std::ranges::find_if(result.elements, [&](const HloShape& shape) { return same_dims(shape, *inside.shape); });
      if (element == result.elements.end()) return std::nullopt;
      carried[i] = static_cast<std::size_t>(element - result.elements.begin());
    }
    for (std::size_t o = 0; o < root.operands.size(); ++o)
      if (const auto found = carried.find(root.operands[o]); found != carried.end()) piece.outputs[o] = found->second;
    // What else uses a part of the chain must be no more than the collective in this piece.
    for (int i = 0; i < static_cast<int>(fused.instructions.size()); ++i) {
      if (i == fused.root || belongs(i)) continue;
      if (std::ranges::any_of(at(fused, i).operands, belongs)) return std::nullopt;
    }
    piece.operands = positions;
    for (const auto& [i, element] : carried) piece.inside.insert(i);
    return piece;
  }

  void rewrite_ends(const Chain& chain) {
    HloInstruction& start = at(computation(), chain.start);
    const HloComputation& fused = *fused_by(module_, start);
    const HloInstruction& collective = *collective_of(fused);
    std::vector<int> operands;
    HloShape given;
    for (const int operand : collective.operands) {
      operands.push_back(start.operands[static_cast<std::size_t>(at(fused, operand).number)]);
      given.elements.push_back(*at(computation(), operands.back()).shape);
    }
    HloInstruction& done = at(computation(), chain.done);
    HloShape shape;
    if (collective.opcode == HloOpcode::all_reduce)
      shape = *done.shape;
    else
      shape.elements = {given.elements.size() == 1 ? given.elements.front() : given, *done.shape};
    start.opcode = done.opcode = collective.opcode;
    start.phase = HloPhase::start;
    start.operands = std::move(operands);
    start.attributes = collective.attributes;
    start.shape = std::move(shape);
    start.calls = collective.calls;
    if (start.op_name.empty()) start.op_name = collective.op_name;
    if (start.source.empty()) start.source = collective.source;
    done.phase = HloPhase::done;
    done.operands = {chain.start};
    done.calls.clear();
    done.attributes = SharedValue<HloAttributes>{};
    for (const auto& [element, number] : chain.elements) dead_.insert(element);
  }

  void rewrite_piece(const Piece& piece) {
    HloInstruction& fusion = at(computation(), piece.fusion);
    HloComputation& fused = module_.computations[static_cast<std::size_t>(fusion.calls.front().computation)];
    // Elements of the result that are left, with their new numbers.
    HloShape shape;
    std::vector<std::int64_t> number(fusion.shape->elements.size());
    for (std::size_t e = 0; e < number.size(); ++e) {
      number[e] = static_cast<std::int64_t>(shape.elements.size());
      if (!piece.outputs.contains(e)) shape.elements.push_back(fusion.shape->elements[e]);
    }
    for (HloInstruction& user : computation().instructions)
      if (user.opcode == HloOpcode::get_tuple_element && !user.operands.empty() && user.operands.front() == piece.fusion) user.number = number[static_cast<std::size_t>(user.number)];
    fusion.shape = shape;
    HloInstruction& root = at(fused, fused.root);
    std::vector<int> kept;
    for (std::size_t o = 0; o < root.operands.size(); ++o)
      if (!piece.outputs.contains(o)) kept.push_back(root.operands[o]);
    root.operands = std::move(kept);
    root.shape = std::move(shape);
    std::vector<int> operands;
    std::vector<int> parameters;
    for (std::size_t o = 0; o < fusion.operands.size(); ++o) {
      if (piece.operands.contains(o)) continue;
      operands.push_back(fusion.operands[o]);
      parameters.push_back(fused.parameters[o]);
      at(fused, parameters.back()).number = static_cast<std::int64_t>(parameters.size()) - 1;
    }
    fusion.operands = std::move(operands);
    fused.parameters = std::move(parameters);
    HloAttributes attributes = *fusion.attributes;  // aliases are those of the chain
    std::erase_if(attributes.others, [](const HloAttribute& other) { return other.name == "output_to_operand_aliasing"; });
    fusion.attributes = std::move(attributes);
    remove(fused, piece.inside);
  }

  /// Takes instructions out that nothing uses any more.
  void remove(HloComputation& from, const std::set<int>& gone) {
    if (gone.empty()) return;
    std::vector<int> position(from.instructions.size(), HloInstruction::missing);
    std::vector<HloInstruction> left;
    for (int i = 0; i < static_cast<int>(from.instructions.size()); ++i) {
      if (gone.contains(i)) continue;
      position[static_cast<std::size_t>(i)] = static_cast<int>(left.size());
      left.push_back(std::move(at(from, i)));
    }
    const auto moved = [&](int& i) {
      if (i != HloInstruction::missing) i = position[static_cast<std::size_t>(i)];
    };
    for (HloInstruction& instruction : left) {
      for (int& operand : instruction.operands) moved(operand);
      if (instruction.attributes->control_predecessors.empty()) continue;
      HloAttributes attributes = *instruction.attributes;
      for (int& before : attributes.control_predecessors) moved(before);
      std::erase(attributes.control_predecessors, HloInstruction::missing);
      instruction.attributes = std::move(attributes);
    }
    moved(from.root);
    for (int& parameter : from.parameters) moved(parameter);
    from.instructions = std::move(left);
    module_.joined += static_cast<std::int64_t>(gone.size());
  }

  HloModule& module_;
  int number_;
  const std::vector<int>& callers_;  // by computation
  std::vector<Chain> chains_;
  std::set<int> dead_;
};

/// Chains that go through loops keep their form: of each the collective that starts it stays, and those in other fusions that print it again become free. A
/// collective outside of fusions is no repeat, whatever its channel.
void free_repeats(HloModule& module) {
  std::set<int> fused;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      if (const HloComputation* const calls = fused_by(module, instruction)) fused.insert(static_cast<int>(calls - module.computations.data()));
  std::set<std::int64_t> started;  // channels
  for (const HloComputation& computation : module.computations)
    if (const HloInstruction* const collective = custom_call_in(computation, start_target) != nullptr ? collective_of(computation) : nullptr)
      if (collective->attributes->channel_id) started.insert(*collective->attributes->channel_id);
  for (const int number : fused) {
    HloComputation& computation = module.computations[static_cast<std::size_t>(number)];
    if (custom_call_in(computation, start_target) != nullptr) continue;
    for (HloInstruction& instruction : computation.instructions) {
      if (!is_collective(instruction.opcode) || instruction.phase != HloPhase::whole || !instruction.attributes->channel_id) continue;
      if (!started.contains(*instruction.attributes->channel_id)) continue;
      instruction.opcode = HloOpcode::custom_call;
      instruction.calls.clear();
      HloAttributes attributes;
      attributes.custom_call_target = done_target;
      instruction.attributes = std::move(attributes);
    }
  }
}

}  // namespace

void join_async_collectives(HloModule& module) {
  const bool has_any = std::ranges::any_of(module.computations, [](const HloComputation& c) { return custom_call_in(c, start_target) != nullptr; });
  if (!has_any) return;
  std::vector<int> callers(module.computations.size());
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      for (const HloCall& call : instruction.calls) ++callers[static_cast<std::size_t>(call.computation)];
  for (int c = 0; c < static_cast<int>(module.computations.size()); ++c) ComputationJoiner{module, c, callers}.join();
  free_repeats(module);
}

}  // namespace podsim
