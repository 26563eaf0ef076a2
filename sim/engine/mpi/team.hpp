// The ranks of a run and their collective operations. All ranks must call every function here.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/engine/mpi/clock.hpp"

namespace podsim {

class Team {
 public:
  explicit Team(MPI_Comm comm);

  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool is_root() const { return rank_ == 0; }

  /// Success if every rank passes success; otherwise the error of the lowest rank that failed, on every rank. A rank therefore never waits for one
  /// that has given up.
  [[nodiscard]] Status agree(const Status& mine) const;
  /// The root's text, on every rank.
  [[nodiscard]] std::string from_root(const std::string& text) const;
  [[nodiscard]] Moment earliest(Moment mine) const;
  [[nodiscard]] Moment latest(Moment mine) const;
  [[nodiscard]] std::int64_t least(std::int64_t mine) const;
  [[nodiscard]] Seconds largest(Seconds mine) const;
  /// The root chooses a time in the near future; every rank returns at that time. Between looks at the clock ranks sleep so long, if at all (Pacing): where
  /// they share cores, one that looks all the time keeps others from starting, and the time has to reach them over a slow network.
  [[nodiscard]] Moment start_together(Seconds between_looks = {}) const;
  /// The parts of all ranks in rank order; empty on ranks other than the root.
  [[nodiscard]] std::string at_root(const std::string& part) const;

 private:
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
};

}  // namespace podsim
