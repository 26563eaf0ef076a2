// The regions that an operation reads and writes, and on which side of a transfer.
#pragma once

#include <variant>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Where a transfer touches a region: at its sender or at its receiver. All else is here.
enum class Side { here, source, target };

/// Of a read: what of it the operation's results may lie over.
enum class OverRead { nothing, same_region, anything };

struct Touch {
  const Region& region;
  bool write = false;
  OverRead results = OverRead::nothing;
  Side side = Side::here;
};

/// Calls `visit` for each region that the operation names, reads first. A Call names buffers, not regions: none.
template <class Visit>
void for_each_touch(const Op& op, Visit visit) {
  std::visit(Overloaded{
                 [&](const Matmul& m) { visit(Touch{m.left}), visit(Touch{m.right}), visit(Touch{m.out, true}); },
                 [&](const Local& l) {
                   const auto& traits = traits_of(l.kind);
                   for (std::size_t r = 0; r < l.reads.size(); ++r)
                     visit(Touch{l.reads[r], false, traits.over_reads ? OverRead::anything : static_cast<int>(r) < traits.in_place ? OverRead::same_region : OverRead::nothing});
                   for (const Region& region : l.writes) visit(Touch{region, true});
                 },
                 [&](const Shift& s) { visit(Touch{s.source, false, OverRead::nothing, Side::source}), visit(Touch{s.target, true, OverRead::nothing, Side::target}); },
                 [&](const Send& s) { visit(Touch{s.source, false, OverRead::nothing, Side::source}); },
                 [&](const Recv& r) { visit(Touch{r.target, true, OverRead::nothing, Side::target}); },
                 [&](const Collective& c) { visit(Touch{c.input}), visit(Touch{c.output, true}); },
                 [](const Call&) {},
             },
             op);
}

}  // namespace podsim
