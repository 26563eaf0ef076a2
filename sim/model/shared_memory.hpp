// The memory of each device as a link that its products, Locals and transfers share.
#pragma once

#include "sim/model/model.hpp"
#include "sim/model/translations.hpp"

namespace podsim {

/// Lays the paths of all transfers through the memories of their devices: read at the sender, written at the receiver, there also read where the
/// transfer adds; `chip.transfer_memory_passes` times each. Gives each node a path for the bytes of its works. Changes nothing if memory is separate
/// or unlimited, or if the demands of every device always fit: all that the limited links nearest to it let through, and the most demanding work on the
/// core, and none of work beside it.
///   cost    O(tasks + distinct participants * devices)
/// `orbits`: of a model in which a node stands for an orbit, and paths are still those of its lowest device.
void share_memory(Model& model, const Orbits* orbits = nullptr);

/// Whether share_memory() would change the model, judged without the memories that it may have already. Not sharp: it adds up what the works and links
/// of a device could draw at once. (Engines look again at every moment.)
bool memory_may_be_short(const Model& model, const Orbits* orbits = nullptr);

/// What goes on beside cores may draw of one memory, in bytes per second: all of it at once, at most, and the fastest of it. Infinite where nothing limits it.
struct DrawnBesideCores {
  double all = 0, fastest = 0;
};
DrawnBesideCores drawn_beside_cores(const Model& model);

/// Whether the arrival of what a local node sends by a task adds to what is there: it then also reads the receiver's memory.
bool arrival_adds(const Model& model, std::uint32_t program, std::size_t task, std::size_t local);

}  // namespace podsim
