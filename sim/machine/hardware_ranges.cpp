#include "sim/machine/hardware_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/units.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

namespace {

constexpr double pico = 1e-12, nano = 1e-9, micro = 1e-6, milli = 1e-3, mega = 1e6, giga = 1e9, tera = 1e12, peta = 1e15;

// Evidence at the ends: vendors' data sheets. A factor of about ten is left above what is sold, for machines that are planned.
constexpr std::array rows{
    HardwareRange{"link.bandwidth", "B/s", 10 * mega, 10 * tera, "from 100 Mbit/s Ethernet to five times NVLink 6, 1.8 TB/s"},
    HardwareRange{"link.latency", "s", 10 * nano, 10 * milli, "from wires on a board to a network across a country"},
    HardwareRange{"chip.inner_bandwidth", "B/s", 100 * mega, 100 * tera, "from PCIe 1.0 to ten times the link between the dies of a B200, 10 TB/s"},
    HardwareRange{"chip.inner_latency", "s", 1 * nano, 100 * micro, "from wires between two dies to a copy through the host"},
    HardwareRange{"chip.peak", "FLOP/s", 1 * giga, 500 * peta, "from one core of a CPU to ten times the 4-bit rate of a Rubin GPU, 50 PFLOP/s"},
    HardwareRange{"chip.vector_peak", "FLOP/s", 100 * mega, 1 * peta, "from a microcontroller to ten times a Rubin GPU, about 100 TFLOP/s"},
    HardwareRange{"chip.matmul_tile_m", "", 1, 1024, "up to four times the matrix unit of a TPU v6e, 256"},
    HardwareRange{"chip.matmul_tile_n", "", 1, 1024, "up to four times the matrix unit of a TPU v6e, 256"},
    HardwareRange{"chip.matmul_tile_k", "", 1, 1024, "up to four times the matrix unit of a TPU v6e, 256"},
    HardwareRange{"chip.layout_sublanes", "", 1, 1024, "up to the registers of a TPU, 8 x 128, many times"},
    HardwareRange{"chip.layout_lanes", "", 1, 1024, "up to the registers of a TPU, 8 x 128, many times"},
    HardwareRange{"chip.matmul_units", "", 1, 2048, "up to ten times the multiprocessors of a B200, 148"},
    HardwareRange{"chip.hbm", "B", 1 * mega, 10 * tera, "from a cache to the memory of a large host"},
    HardwareRange{"chip.hbm_bandwidth", "B/s", 1 * giga, 200 * tera, "from one channel of DDR to ten times a Rubin GPU, 22 TB/s"},
    HardwareRange{"chip.reduce_bandwidth", "B/s", 100 * mega, 200 * tera, "up to the bandwidth of memory"},
    HardwareRange{"chip.injection_bandwidth", "B/s", 10 * mega, 20 * tera, "as of links"},
    HardwareRange{"chip.ejection_bandwidth", "B/s", 10 * mega, 20 * tera, "as of links"},
    HardwareRange{"chip.stack_bandwidth", "B/s", 100 * mega, 200 * tera, "up to the bandwidth of memory"},
    HardwareRange{"chip.own_block_bandwidth", "B/s", 100 * mega, 200 * tera, "up to the bandwidth of memory"},
    HardwareRange{"chip.vmem_load_bandwidth", "B/s", 1 * giga, 500 * tera, "from a small cache to ten times the two cores of a TPU v5p, 43 TB/s"},
    HardwareRange{"chip.vmem_store_bandwidth", "B/s", 1 * giga, 500 * tera, "as of loads"},
    HardwareRange{"chip.cycle", "s", 10 * pico, 100 * nano, "from 100 GHz to 10 MHz"},
    HardwareRange{"chip.memory_wait", "s", 1 * nano, 1 * milli, "from a cache to memory of another host"},
    HardwareRange{"chip.pivot_latency", "s", 1 * nano, 1 * milli, "from a few clock cycles to a pivot over several kernels"},
    HardwareRange{"software.per_message", "s", 1 * nano, 100 * milli, "from a few clock cycles to a time slice of the operating system"},
    HardwareRange{"software.launch", "s", 1 * nano, 1, "from a few clock cycles to a program that is loaded first"},
    HardwareRange{"software.in_switch_launch", "s", 1 * nano, 1, "as of software.launch"},
    HardwareRange{"dcn.nic_bandwidth", "B/s", 10 * mega, 2 * tera, "from 100 Mbit/s Ethernet to ten interfaces of 1.6 Tbit/s"},
    HardwareRange{"dcn.host_bandwidth", "B/s", 10 * mega, 5 * tera, "from one lane of PCIe to several times NVLink-C2C, 450 GB/s"},
    HardwareRange{"dcn.latency", "s", 100 * nano, 1, "from a switch to a satellite"},
    HardwareRange{"dcn.sync", "s", 10 * nano, 1, "as of dcn.latency"},
    HardwareRange{"observed time", "s", 10 * nano, 3600, "from a few clock cycles to an hour for one step"},
    HardwareRange{"observed bandwidth", "B/s", 1, 200 * tera, "up to ten times the memory of a Rubin GPU, 22 TB/s"},
    HardwareRange{"observed rate of a product", "FLOP/s", 1000, 500 * peta, "as of chip.peak"},
};

std::string text_in(std::string_view unit, double value) {
  if (unit == "s") return value < 1e-9 ? to_exact_text(Seconds{value}) : to_text(Seconds{value});
  if (unit == "B") return to_text(Bytes{static_cast<std::int64_t>(std::min(value, 9e18))});
  if (unit == "B/s") return to_text(BytesPerSecond{value});
  if (unit == "FLOP/s") return to_text(FlopsPerSecond{value});
  return fmt::format("{}", value);
}

}  // namespace

std::span<const HardwareRange> hardware_ranges() { return rows; }

std::optional<std::string> doubt_about(std::string_view quantity, double value, std::string_view name) {
  const auto* row = std::find_if(rows.begin(), rows.end(), [&](const HardwareRange& range) { return range.quantity == quantity; });
  if (row == rows.end() || value == 0 || std::isinf(value) || (row->low <= value && value <= row->high)) return std::nullopt;
  return fmt::format("{} is {}, hardware has {} to {}: {}", name, text_in(row->unit, value), text_in(row->unit, row->low), text_in(row->unit, row->high), row->evidence);
}

std::vector<Diagnostic> doubts_about(const Machine& machine) {
  std::vector<Diagnostic> doubts;
  for (const auto& [path, doubt] : machine.doubtful.by_path)
    if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) doubts.push_back(doubt);
  return doubts;
}

}  // namespace podsim
