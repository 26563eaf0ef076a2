#include "sim/engine/simgrid/flow_network.hpp"

#include "sim/base/shared_library.hpp"

namespace podsim::simgrid_engine {

namespace {

Expected<MakeNetwork*> load() {
  const Expected<SharedLibrary> module =
      SharedLibrary::load("podsim_simgrid.so", "podsim with its modules beside it, and SimGrid 3.32 (Debian: libsimgrid3.32)");
  if (!module) return module.error();
  MakeNetwork* make = nullptr;
  if (const Status found = module->find("podsim_make_network", make); !found) return found.error();
  return make;
}

}  // namespace

Expected<MakeNetwork*> load_simgrid() {
  static const Expected<MakeNetwork*> loaded = load();
  return loaded;
}

}  // namespace podsim::simgrid_engine
