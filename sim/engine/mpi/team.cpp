#include "sim/engine/mpi/team.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <thread>

namespace podsim {

namespace {

constexpr std::int64_t until_start_ns = 50'000;  // longer than the root's word takes to reach the others
constexpr std::int64_t until_start_of_sleepers_ns = 50'000'000;  // the same over a network of some MB/s, beside ranks that all have the same few cores
constexpr std::size_t most_at_once = std::size_t{1} << 30;

std::int64_t reduced(std::int64_t mine, MPI_Op op, MPI_Comm comm) {
  std::int64_t result = 0;
  MPI_Allreduce(&mine, &result, 1, MPI_INT64_T, op, comm);
  return result;
}

void broadcast(std::string& text, int from, MPI_Comm comm) {
  std::uint64_t size = text.size();
  MPI_Bcast(&size, 1, MPI_UINT64_T, from, comm);
  text.resize(size);
  for (std::size_t at = 0; at < text.size(); at += most_at_once)
    MPI_Bcast(text.data() + at, static_cast<int>(std::min(most_at_once, text.size() - at)), MPI_BYTE, from, comm);
}

}  // namespace

Team::Team(MPI_Comm comm) : comm_{comm} {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Status Team::agree(const Status& mine) const {
  const auto first = static_cast<int>(reduced(mine ? size_ : rank_, MPI_MIN, comm_));
  if (first == size_) return success();
  Diagnostic found = mine ? Diagnostic{} : mine.error();
  broadcast(found.where.file, first, comm_);
  broadcast(found.message, first, comm_);
  std::array<int, 3> numbers{found.where.line, found.where.column, static_cast<int>(found.cause)};
  MPI_Bcast(numbers.data(), 3, MPI_INT, first, comm_);
  found.where.line = numbers[0], found.where.column = numbers[1];
  found.cause = static_cast<Cause>(numbers[2]);
  return found;
}

std::string Team::from_root(const std::string& text) const {
  std::string copy = text;
  broadcast(copy, 0, comm_);
  return copy;
}

Moment Team::earliest(Moment mine) const { return {reduced(mine.ns, MPI_MIN, comm_)}; }
Moment Team::latest(Moment mine) const { return {reduced(mine.ns, MPI_MAX, comm_)}; }

std::int64_t Team::least(std::int64_t mine) const { return reduced(mine, MPI_MIN, comm_); }

Seconds Team::largest(Seconds mine) const {
  const double own = mine.count();
  double result = 0;
  MPI_Allreduce(&own, &result, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return Seconds{result};
}

Moment Team::start_together(Seconds between_looks) const {
  const bool sleeps = between_looks > Seconds{};
  MPI_Barrier(comm_);
  std::int64_t start = now().ns + (sleeps ? until_start_of_sleepers_ns : until_start_ns);
  MPI_Bcast(&start, 1, MPI_INT64_T, 0, comm_);
  for (std::int64_t left = start - now().ns; left > 0; left = start - now().ns)
    if (sleeps) std::this_thread::sleep_for(std::chrono::nanoseconds{std::min(left, static_cast<std::int64_t>(1e9 * between_looks.count()))});
  return {start};
}

std::string Team::at_root(const std::string& part) const {
  constexpr int tag = 0;
  if (!is_root()) {
    const std::uint64_t size = part.size();
    MPI_Send(&size, 1, MPI_UINT64_T, 0, tag, comm_);
    for (std::size_t at = 0; at < part.size(); at += most_at_once)
      MPI_Send(part.data() + at, static_cast<int>(std::min(most_at_once, part.size() - at)), MPI_BYTE, 0, tag, comm_);
    return {};
  }
  std::string all = part;
  for (int from = 1; from < size_; ++from) {
    std::uint64_t size = 0;
    MPI_Recv(&size, 1, MPI_UINT64_T, from, tag, comm_, MPI_STATUS_IGNORE);
    const std::size_t before = all.size();
    all.resize(before + size);
    for (std::size_t at = before; at < all.size(); at += most_at_once)
      MPI_Recv(all.data() + at, static_cast<int>(std::min(most_at_once, all.size() - at)), MPI_BYTE, from, tag, comm_, MPI_STATUS_IGNORE);
  }
  return all;
}

}  // namespace podsim
