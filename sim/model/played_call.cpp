#include "sim/model/played_call.hpp"

namespace podsim {

CoreParts operator+(const CoreParts& a, const CoreParts& b) {
  return {a.compute + b.compute, a.recompute + b.recompute, a.optimiser + b.optimiser, a.copies + b.copies, a.launch + b.launch};
}

Picoseconds total(const CoreParts& parts) { return parts.compute + parts.recompute + parts.optimiser + parts.copies + parts.launch; }

}  // namespace podsim
