#include "workloads/chakra/rank_program.hpp"

#include <algorithm>

namespace podsim {

namespace {

bool may_differ(const Op& op) {
  const auto* local = std::get_if<Local>(&op);
  return (local != nullptr && local->kind == LocalKind::opaque) || std::holds_alternative<Send>(op) || std::holds_alternative<Recv>(op);
}

bool same_shape(const Task& a, const Task& b) {
  if (a.after != b.after || a.origin != b.origin || a.op.index() != b.op.index()) return false;
  if (!may_differ(a.op) || !may_differ(b.op)) return a.op == b.op;
  const auto* local = std::get_if<Local>(&a.op);
  return local == nullptr || local->unit == std::get<Local>(b.op).unit;
}

/// Buffers of messages may have other extents.
bool same_shape(const Buffer& a, const Buffer& b) {
  return a.name == b.name && a.dtype == b.dtype && a.on_host == b.on_host && a.extents.size() == b.extents.size();
}

bool same_shape(const Program& a, const Program& b) {
  const auto same = [](const auto& x, const auto& y) { return same_shape(x, y); };
  return std::equal(a.tasks.begin(), a.tasks.end(), b.tasks.begin(), b.tasks.end(), same) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(), same);
}

/// The rank as a function of the coordinates.
Affine rank_of(const Mesh& mesh) {
  Affine rank;
  std::int64_t stride = 1;
  for (int a = static_cast<int>(mesh.axes().size()) - 1; a >= 0; --a) {
    if (mesh.whole(a).size > 1) rank.terms.push_back({mesh.whole(a), stride});
    stride *= mesh.whole(a).size;
  }
  return rank;
}

/// Programs of one shape as one.
ProgramClass merged(const Mesh& mesh, const std::vector<const ProgramClass*>& parts) {
  ProgramClass result{{parts.front()->shared.program, {}, {}, parts.front()->shared.file}, {}};
  Program& program = result.shared.program;
  program.tasks.clear();
  for (const ProgramClass* part : parts) {
    result.ranks.insert(result.ranks.end(), part->ranks.begin(), part->ranks.end());
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      for (std::size_t i = 0; i < program.buffers[b].extents.size(); ++i)
        program.buffers[b].extents[i] = std::max(program.buffers[b].extents[i], part->shared.program.buffers[b].extents[i]);
  }
  std::sort(result.ranks.begin(), result.ranks.end());
  const Affine rank = rank_of(mesh);
  std::vector<std::vector<TaskId>> stands_for(parts.front()->shared.program.tasks.size());
  for (std::size_t t = 0; t < stands_for.size(); ++t) {
    const Task& shape = parts.front()->shared.program.tasks[t];
    std::vector<Edge> after;
    for (const Edge& edge : shape.after)
      for (const TaskId task : stands_for[edge.task.index()]) after.push_back({task, edge.done, edge.gates});
    const auto add = [&](const Op& op, Guard where) {
      stands_for[t].emplace_back(static_cast<int>(program.tasks.size()));
      program.tasks.push_back({{}, op, after, std::move(where), shape.origin, shape.written_at});
      result.shared.labels.push_back(parts.front()->shared.labels[t]);
      result.shared.records.push_back(parts.front()->shared.records[t]);
    };
    std::vector<std::pair<const Op*, std::vector<int>>> variants;
    for (const ProgramClass* part : parts) {
      const Op& op = part->shared.program.tasks[t].op;
      auto known = std::find_if(variants.begin(), variants.end(), [&](const auto& variant) { return *variant.first == op; });
      if (known == variants.end()) known = variants.insert(known, {&op, {}});
      known->second.insert(known->second.end(), part->ranks.begin(), part->ranks.end());
    }
    if (variants.size() == 1) {
      add(*variants.front().first, {});
      continue;
    }
    for (auto& [op, ranks] : variants) {
      std::sort(ranks.begin(), ranks.end());
      for (std::size_t first = 0, last = 0; first < ranks.size(); first = last) {
        for (last = first + 1; last < ranks.size() && ranks[last] == ranks[last - 1] + 1;) ++last;
        add(*op, {{rank, ranks[first], ranks[last - 1] + 1}});
      }
    }
  }
  return result;
}

}  // namespace

std::vector<ProgramClass> merged_by_shape(const Mesh& mesh, const std::vector<ProgramClass>& classes) {
  std::vector<std::vector<const ProgramClass*>> shapes;
  for (const ProgramClass& one : classes) {
    const auto known =
        std::find_if(shapes.begin(), shapes.end(), [&](const auto& shape) { return same_shape(shape.front()->shared.program, one.shared.program); });
    if (known == shapes.end())
      shapes.push_back({&one});
    else
      known->push_back(&one);
  }
  std::vector<ProgramClass> result;
  for (const auto& shape : shapes) result.push_back(shape.size() == 1 ? *shape.front() : merged(mesh, shape));
  return result;
}

}  // namespace podsim
