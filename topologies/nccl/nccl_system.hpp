// A node of GPUs as NCCL and RCCL describe it: the XML of NCCL_TOPO_DUMP_FILE, or that which clouds give as NCCL_TOPO_FILE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// A CPU or a PCIe switch. CPUs have none above them; those of one host are joined to each other.
struct NcclHub {
  int above = -1;
  BytesPerSecond bandwidth{};  // to the hub above; of a CPU: to each other CPU of its host
  std::string host{};          // of a CPU
};

/// NVLinks or xGMI links of a GPU that lead to one place.
struct NcclPeer {
  int gpu = -1;  // -1: the NVSwitches
  int links = 0;
  BytesPerSecond bandwidth{};  // of all, one direction
};

struct NcclGpu {
  std::string bus;
  int hub = 0;
  BytesPerSecond pcie{};
  BytesPerSecond c2c{};  // to its CPU, beside PCIe: NVLink-C2C of Grace; 0: none
  std::vector<NcclPeer> peers{};
};

struct NcclNic {
  std::string name;
  int hub = 0;
  int card = 0;  // ports of one card share its PCIe link
  BytesPerSecond pcie{};
  BytesPerSecond speed{};  // 0: the file does not say
  Seconds latency{};       // 0: likewise
};

/// GPUs and network interfaces are in NCCL's order: by rank and by `dev`, where the file has these.
struct NcclSystem {
  std::vector<NcclHub> hubs;
  std::vector<NcclGpu> gpus;
  std::vector<NcclNic> nics;
  bool tells_nvlinks = false;  // a dump: GPUs without NVLinks have none. Files of clouds leave all to NCCL
  std::string_view machine{};  // of podsim, with such GPUs; empty: none
  std::string gcn{};           // AMD's, "gfx942"; empty: the GPUs are others
  std::vector<std::string> notes{};  // what was not read, or taken to be as usual
};

/// Rates are NCCL's: a link of NVLink or xGMI by the GPU's generation, a lane of PCIe by its speed. Errors, with line and column: no XML; no element
/// `system`; no GPU; numbers out of range; two GPUs of one bus id or rank.
Expected<NcclSystem> read_nccl_system(std::string_view text, const std::string& file);

/// "8 GPUs with 18 NVLinks each to NVSwitches (370.8 GB/s), 8 PCIe switches, 2 CPUs, 8 network interfaces of 25 GB/s"
std::string to_text(const NcclSystem& system);

}  // namespace podsim
