// The task instances of a schedule and their waits. Part of the interpreter of interpreter.hpp.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "algorithms/mutation/interpreter.hpp"

namespace podsim::mutation {

/// Whether a Local of this kind neither reads nor writes and only orders other tasks.
inline bool waits_only(LocalKind kind) { return kind == LocalKind::launch || traits_of(kind).role == LocalRole::order; }

inline constexpr int sending = 0, receiving = 1;  // the sides of a transfer, and its two ends in time; everything else has only the first

/// A Matmul or Local on one device, or a transfer between two.
struct Action {
  std::array<int, 2> device{-1, -1}, task{-1, -1};
  bool transfer = false;
  int waits = 0;
  std::array<std::vector<int>, 2> followers;  // actions that wait for this end
};

// Of the two tasks of a transfer.
const Region& source_of(const Op& op);
const Region& target_of(const Op& op);
bool adds(const Op& op);

struct Extents {
  std::int64_t m, n, k;
};
Extents product_extents(const Matmul& matmul);

/// All actions of a schedule. Unless there is a problem, every region is inside its buffer and sizes agree.
class Plan {
 public:
  explicit Plan(const Schedule& schedule);

  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  /// The first problem; empty: none.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  [[nodiscard]] const Task& task(const Action& action, int side) const;
  [[nodiscard]] std::optional<Positions> positions(int device, const Region& region) const;

 private:
  using Halves = std::array<int, 2>;  // the actions of a task's two halves on a device; -1: none

  void complain(int device, int task, std::string_view what);
  Halves& halves(int device, int task) { return halves_[static_cast<std::size_t>(device)][static_cast<std::size_t>(task)]; }
  void add(int device, int task);
  void add_transfer(int from, int send, int to, int receive);
  void pair_up();
  void wait(int action, int side);
  void wait_for(int action, int before, int end);
  void check_sizes(const Action& action);
  void check_sizes(const Action& action, const Local& local);
  void check_sizes(const Action& action, const Matmul& matmul);
  void expect_count(const Action& action, int side, const Region& region, std::int64_t expected);
  void expect_apart(const Action& action, const Region& read, const Region& written, bool may_be_same);
  std::int64_t count(int device, const Region& region) const;

  const Schedule& schedule_;
  std::vector<Coordinates> at_;
  std::vector<const Program*> programs_;                                       // per device
  std::vector<std::vector<Halves>> halves_;                                    // per device and task
  std::map<std::tuple<int, int, int>, std::array<std::vector<int>, 2>> uses_;  // of (channel, sender, receiver): Sends, Recvs
  std::vector<Action> actions_;
  std::string problem_;
};

/// The first two conflicting accesses to one element that happens-before does not order; empty: none. Exact, with cost O(actions^2): for small
/// schedules. The plan must have no problem and must not deadlock.
std::string race_in(const Plan& plan);

}  // namespace podsim::mutation
