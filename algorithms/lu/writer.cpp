#include "algorithms/lu/writer.hpp"

namespace podsim {

Affine BlockCyclicWriter::position(const std::vector<AxisView>& views, std::int64_t coefficient, std::int64_t constant) {
  std::vector<AxisTerm> terms;
  for (std::size_t i = views.size(); i-- > 0;) {
    terms.insert(terms.begin(), AxisTerm{views[i], coefficient});
    coefficient *= views[i].size;
  }
  return {std::move(terms), constant};
}

Numbering BlockCyclicWriter::rows_from(std::int64_t first) const {
  return {position(layout_.problem.rows, layout_.b, first * layout_.R * layout_.b), layout_.b, layout_.R};
}
Numbering BlockCyclicWriter::columns_from(std::int64_t first) const {
  return {position(layout_.problem.columns, layout_.b, first * layout_.C * layout_.b), layout_.b, layout_.C};
}

Region BlockCyclicWriter::blocks(const Region& matrix, BlockRange rows, BlockRange columns) const {
  return with(with(matrix, 0, span(rows.first, rows.count())), 3, span(columns.first, columns.count()));
}
Region BlockCyclicWriter::rows_of(const Region& right, BlockRange rows) const { return with(right, 0, span(rows.first, rows.count())); }

Guard BlockCyclicWriter::guard_of(const DeviceBox& devices) const {
  Guard guard;
  if (devices.first_row > 0 || devices.last_row < layout_.R) guard.push_back({position(layout_.problem.rows), devices.first_row, devices.last_row});
  if (devices.first_column > 0 || devices.last_column < layout_.C)
    guard.push_back({position(layout_.problem.columns), devices.first_column, devices.last_column});
  return guard;
}

void BlockCyclicWriter::add(const std::string& label, Op op, const DeviceBox& devices, const std::vector<BlockAccess>& accesses) {
  if (devices.empty()) return;
  Tasks after = accesses_.before(accesses, devices);
  if (after.empty()) after = start_;
  accesses_.add(builder_.add(label, std::move(op), after, guard_of(devices)), accesses, devices);
}

void BlockCyclicWriter::collective(const std::string& label, Collective collective, const DeviceBox& devices,
                                   const std::vector<BlockAccess>& accesses) {
  Tasks after = accesses_.before(accesses, devices);
  if (after.empty()) after = start_;
  const bool rooted = collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce;
  TaskId last = builder_.add(label, std::move(collective), after, guard_of(devices));
  if (rooted) last = builder_.add(label + " end", Local{LocalKind::join, {}, {}, 1, Unit::dma}, Tasks{last}, guard_of(devices));
  accesses_.add(last, accesses, devices);
}

void BlockCyclicWriter::broadcast(const std::string& label, const std::vector<AxisView>& axes, const Region& from, const Region& to, int root,
                                  const DeviceBox& devices, const std::vector<BlockAccess>& accesses) {
  Collective broadcast{CollectiveKind::broadcast, axes, from, to, 0};
  broadcast.root = root;
  collective(label, std::move(broadcast), devices, accesses);
}

Tasks BlockCyclicWriter::complete(const std::vector<BlockAccess>& reads) {
  constexpr std::size_t few = 4;
  const Tasks tasks = accesses_.before(reads, everywhere());
  if (tasks.size() <= few) return tasks;
  return {builder_.add("factored", Local{LocalKind::join, {}, {}, 1, Unit::dma}, tasks)};
}

}  // namespace podsim
