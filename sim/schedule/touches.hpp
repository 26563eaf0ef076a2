// The regions that an operation reads and writes, and on which side of a transfer.
#pragma once

#include <variant>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Where a transfer touches a region: at its sender or at its receiver. All else is here.
enum class Side { here, source, target };

struct Touch {
  const Region& region;
  bool write = false;
  bool elementwise = false;  // a read: results may be made over it, element by element
  Side side = Side::here;
};

/// Calls `visit` for each region that the operation names, reads first. A Call names buffers, not regions: none.
template <class Visit>
void for_each_touch(const Op& op, Visit visit) {
  std::visit(Overloaded{
                 [&](const Matmul& m) { visit(Touch{m.left}), visit(Touch{m.right}), visit(Touch{m.out, true}); },
                 [&](const Local& l) {
                   const int in_place = traits_of(l.kind).in_place;
                   for (std::size_t r = 0; r < l.reads.size(); ++r) visit(Touch{l.reads[r], false, static_cast<int>(r) < in_place});
                   for (const Region& region : l.writes) visit(Touch{region, true});
                 },
                 [&](const Shift& s) { visit(Touch{s.source, false, false, Side::source}), visit(Touch{s.target, true, false, Side::target}); },
                 [&](const Send& s) { visit(Touch{s.source, false, false, Side::source}); },
                 [&](const Recv& r) { visit(Touch{r.target, true, false, Side::target}); },
                 [&](const Collective& c) { visit(Touch{c.input}), visit(Touch{c.output, true}); },
                 [](const Call&) {},
             },
             op);
}

}  // namespace podsim
