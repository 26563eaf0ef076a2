#include "algorithms/lu/accesses.hpp"

#include <algorithm>

namespace podsim {

namespace {

bool overlap(const BlockAccess& a, const BlockAccess& b) {
  return a.first_row < b.last_row && b.first_row < a.last_row && a.first_column < b.last_column && b.first_column < a.last_column;
}
bool covers(const BlockAccess& outer, const BlockAccess& inner) {
  return outer.first_row <= inner.first_row && inner.last_row <= outer.last_row && outer.first_column <= inner.first_column &&
         inner.last_column <= outer.last_column;
}
bool meet(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if ((a[i] & b[i]) != 0) return true;
  return false;
}

}  // namespace

AccessOrder::Presence AccessOrder::presence_of(const DeviceBox& devices) const {
  Presence present((static_cast<std::size_t>(R_) * static_cast<std::size_t>(C_) + 63) / 64, 0);
  for (int r = devices.first_row; r < devices.last_row; ++r)
    for (int c = devices.first_column; c < devices.last_column; ++c) {
      const auto bit = static_cast<std::size_t>(r) * static_cast<std::size_t>(C_) + static_cast<std::size_t>(c);
      present[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
  return present;
}

Tasks AccessOrder::before(const std::vector<BlockAccess>& accesses, const DeviceBox& devices) const {
  const Presence present = presence_of(devices);
  Tasks tasks;
  for (const BlockAccess& access : accesses) {
    const auto found = entries_.find(access.array);
    if (found == entries_.end()) continue;
    for (const Entry& entry : found->second)
      if ((access.writes || entry.access.writes) && overlap(access, entry.access) && meet(present, entry.present)) tasks.push_back(entry.task);
  }
  const auto less = [](TaskId a, TaskId b) { return a.value < b.value; };
  std::sort(tasks.begin(), tasks.end(), less);
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  return tasks;
}

void AccessOrder::add(TaskId task, const std::vector<BlockAccess>& accesses, const DeviceBox& devices) {
  const Presence present = presence_of(devices);
  for (const BlockAccess& access : accesses) {
    std::vector<Entry>& entries = entries_[access.array];
    if (access.writes) {
      for (Entry& entry : entries)
        if (entry.task != task && covers(access, entry.access))
          for (std::size_t i = 0; i < present.size(); ++i) entry.present[i] &= ~present[i];
      std::erase_if(entries,
                    [](const Entry& entry) { return std::all_of(entry.present.begin(), entry.present.end(), [](auto bits) { return bits == 0; }); });
    }
    entries.push_back({task, access, present});
  }
}

}  // namespace podsim
