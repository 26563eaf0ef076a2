// Sends and recvs as collectives.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/hlo/joined_transfers.hpp"

namespace podsim {

namespace {

/// The collective that a transfer between slices is; nullopt: none that is known.
std::optional<HloOpcode> megascale_collective(std::string_view transfer) {
  constexpr std::array<std::pair<std::string_view, HloOpcode>, 4> kinds{{{"ALL_REDUCE", HloOpcode::all_reduce},
                                                                         {"ALL_GATHER", HloOpcode::all_gather},
                                                                         {"REDUCE_SCATTER", HloOpcode::reduce_scatter},
                                                                         {"ALL_TO_ALL", HloOpcode::all_to_all}}};
  const auto found = std::ranges::find(kinds, transfer, &std::pair<std::string_view, HloOpcode>::first);
  return found == kinds.end() ? std::nullopt : std::optional{found->second};
}

std::optional<HloOpcode> collective_of(const HloInstruction& send) {
  if (!send.attributes->megascale_transfer.empty()) return megascale_collective(send.attributes->megascale_transfer);
  return send.attributes->source_target_pairs.empty() ? std::nullopt : std::optional{HloOpcode::collective_permute};
}

/// What a send and its recv share.
std::string key_of(const HloInstruction& transfer) {
  if (!transfer.attributes->host_rendezvous.empty()) return transfer.attributes->host_rendezvous;
  return transfer.attributes->channel_id ? std::to_string(*transfer.attributes->channel_id) : std::string{};
}

void make_token(HloInstruction& instruction) {
  instruction.opcode = HloOpcode::after_all;
  instruction.phase = HloPhase::whole;
  instruction.operands.clear();
  instruction.attributes = SharedValue<HloAttributes>{};
  instruction.shape = HloShape{HloType::token};
}

class SendJoiner {
 public:
  explicit SendJoiner(HloComputation& computation) : computation_{computation} {}

  void join() {
    std::map<std::string, int> recvs;
    const auto count = static_cast<int>(computation_.instructions.size());
    for (int i = 0; i < count; ++i)
      if (at(i).opcode == HloOpcode::recv && at(i).phase == HloPhase::whole) recvs.try_emplace(key_of(at(i)), i);
    if (recvs.empty()) return;
    for (int i = 0; i < count; ++i) {
      if (at(i).opcode != HloOpcode::send || at(i).phase != HloPhase::whole) continue;
      const auto recv = recvs.find(key_of(at(i)));
      const auto kind = collective_of(at(i));
      if (recv == recvs.end() || !kind || recv->first.empty()) continue;
      if (join(i, recv->second, *kind)) recvs.erase(recv);
    }
  }

 private:
  HloInstruction& at(int i) { return computation_.instructions[static_cast<std::size_t>(i)]; }

  /// The only instruction that uses another, which must be a -done.
  int done_of(int i) {
    int done = HloInstruction::missing;
    for (int user = 0; user < static_cast<int>(computation_.instructions.size()); ++user) {
      if (std::ranges::count(at(user).operands, i) == 0) continue;
      if (done != HloInstruction::missing || at(user).phase != HloPhase::done || at(user).opcode != at(i).opcode || user == computation_.root) return HloInstruction::missing;
      done = user;
    }
    return done;
  }

  bool join(int send, int recv, HloOpcode kind) {
    const int sent = done_of(send), received = done_of(recv);
    if (sent == HloInstruction::missing || received == HloInstruction::missing || received < send) return false;
    if (at(send).operands.empty() || at(received).shape->elements.size() != 2) return false;
    const HloShape given = *at(at(send).operands.front()).shape, made = at(received).shape->elements.front();
    if (!given.is_array() || !made.is_array()) return false;
    // What uses the recv-done must take its parts.
    for (const HloInstruction& user : computation_.instructions)
      if (std::ranges::count(user.operands, received) > 0 && user.opcode != HloOpcode::get_tuple_element) return false;
    HloAttributes attributes;
    attributes.channel_id = at(send).attributes->channel_id;
    attributes.source_target_pairs = at(send).attributes->source_target_pairs;
    attributes.across_slices = !at(send).attributes->megascale_transfer.empty();
    if (kind != HloOpcode::all_reduce && kind != HloOpcode::collective_permute) attributes.dimensions = {0};
    HloShape shape;
    shape.elements = {given, made};
    HloInstruction& start = at(send);
    start.opcode = kind;
    start.phase = HloPhase::start;
    start.operands = {start.operands.front()};
    start.attributes = std::move(attributes);
    start.shape = kind == HloOpcode::all_reduce ? made : std::move(shape);
    HloInstruction& done = at(received);
    done.opcode = kind;
    done.operands = {send};
    done.attributes = SharedValue<HloAttributes>{};
    done.shape = made;
    make_token(at(recv));
    make_token(at(sent));
    for (HloInstruction& user : computation_.instructions) {
      if (user.opcode != HloOpcode::get_tuple_element || user.operands.front() != received) continue;
      if (user.number == 0)
        user.opcode = HloOpcode::bitcast;
      else
        make_token(user);
      user.number = 0;
    }
    return true;
  }

  HloComputation& computation_;
};

}  // namespace

void join_sends(HloModule& module) {
  for (HloComputation& computation : module.computations) SendJoiner{computation}.join();
}

}  // namespace podsim
