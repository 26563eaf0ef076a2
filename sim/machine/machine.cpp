#include "sim/machine/machine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

std::int64_t padded(std::int64_t extent, int tile) { return (extent + tile - 1) / tile * tile; }

/// c and h overlap as far as the machine lets them.
WorkTime overlapped(Seconds launch, Seconds arithmetic, double bytes, const Chip& chip) {
  const Seconds memory{bytes / chip.hbm_bandwidth.count()};
  const Seconds rest = (1 - chip.overlap_hbm) * std::min(arithmetic, memory);
  return {launch + (std::max(arithmetic, memory) + rest), launch, rest, bytes};
}

/// Bytes that a copied region moves: rows shorter than the memory's layout tile cost whole lanes. A complex number takes two.
double tiled_bytes(const Machine& machine, const Program& program, const Region& region) {
  const std::int64_t lanes = program.buffers[region.buffer.index()].dtype == DType::c64 ? 2 : 1;
  const std::int64_t row = (region.dims.empty() ? 1 : region.dims.back().length) * lanes;
  const double factor = static_cast<double>(padded(row, machine.chip.layout_lanes)) / static_cast<double>(row);
  return static_cast<double>(bytes_of(program, region).count()) * factor;
}

}  // namespace

std::string_view name_of(CostKind kind) {
  switch (kind) {
    case CostKind::matmul: return "matmul";
    case CostKind::local: return "local";
    default: return name_of(static_cast<CollectiveKind>(static_cast<int>(kind) - static_cast<int>(CostKind::all_gather)));
  }
}

std::string_view name_of(Routes routes) {
  switch (routes) {
    case Routes::sign: return "sign";
    case Routes::endpoints: return "endpoints";
  }
  return {};
}

std::string_view name_of(Interconnect interconnect) {
  switch (interconnect) {
    case Interconnect::grid: return "grid";
    case Interconnect::rail: return "rail";
  }
  PODSIM_ASSERT(false);
  return {};
}

std::string_view name_of(TrustLevel level) {
  switch (level) {
    case TrustLevel::spec: return "spec";
    case TrustLevel::fitted: return "fitted";
    case TrustLevel::measured: return "measured";
    case TrustLevel::hypothetical: return "hypothetical";
  }
  PODSIM_ASSERT(false);
  return {};
}

CostKind cost_kind_of(CollectiveKind kind) { return static_cast<CostKind>(static_cast<int>(CostKind::all_gather) + static_cast<int>(kind)); }

void set_matmul_points(Chip& chip, std::vector<MatmulPoint> points) {
  chip.matmul_table = matmul_table_of(std::move(points));
  chip.matmul_surface = {};
  const auto& held = chip.matmul_table.points;
  const auto less = [](const MatmulPoint& a, const MatmulPoint& b) { return a.efficiency < b.efficiency; };
  if (!held.empty()) chip.matmul_efficiency = std::max_element(held.begin(), held.end(), less)->efficiency;
}

void set_matmul_surface(Chip& chip, MatmulSurface surface) {
  chip.matmul_table = {};
  chip.matmul_surface = std::move(surface);
  const std::vector<double>& held = chip.matmul_surface.efficiency;
  if (!held.empty()) chip.matmul_efficiency = *std::max_element(held.begin(), held.end());
}

double matmul_efficiency_of(const Chip& chip, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!chip.matmul_surface.empty()) return efficiency_at(chip.matmul_surface, m, n, k);
  return chip.matmul_table.points.empty() ? chip.matmul_efficiency : efficiency_at(chip.matmul_table, m, n, k);
}

FlopsPerSecond peak_of(const Machine& machine, DType operands, int float32_passes) {
  PODSIM_ASSERT(is_product_dtype(operands));
  const auto& peak = machine.chip.peak;
  const FlopsPerSecond own = peak[static_cast<std::size_t>(operands)], bf16 = peak[static_cast<std::size_t>(DType::bf16)], tf32 = peak[tf32_peak];
  const bool is_stated = own != FlopsPerSecond{};
  if (operands != DType::f32) return is_stated ? own : bf16;
  const int passes = float32_passes == 0 ? machine.chip.float32_passes : float32_passes;
  if (!is_stated) return bf16 / passes;
  return passes < most_float32_passes && tf32 != FlopsPerSecond{} ? tf32 : own;
}

double efficiency_at(const std::vector<EfficiencyPoint>& points, Bytes input) {
  if (points.empty()) return 1;
  const auto above = std::find_if(points.begin(), points.end(), [&](const EfficiencyPoint& point) { return point.input >= input; });
  if (above == points.begin()) return points.front().efficiency;
  if (above == points.end()) return points.back().efficiency;
  const auto below = above - 1;
  const auto log_of = [](Bytes bytes) { return std::log(static_cast<double>(std::max<std::int64_t>(bytes.count(), 1))); };
  const double weight = (log_of(input) - log_of(below->input)) / (log_of(above->input) - log_of(below->input));
  return below->efficiency + weight * (above->efficiency - below->efficiency);
}

namespace {

/// Which of a product's matrices are in HBM.
struct InHbm {
  bool left = true, right = true, out = true;
};

double memory_bytes(const Matmul& matmul, DType operands, DType out, InHbm in_hbm = {}) {
  const MatmulExtents e = extents_of(matmul);
  const std::int64_t read = (in_hbm.left ? e.m * e.k : 0) + (in_hbm.right ? e.k * e.n : 0), made = in_hbm.out ? (matmul.accumulate ? 2 : 1) * e.m * e.n : 0;
  return static_cast<double>((read * size_of(operands) + made * size_of(out)).count());
}

}  // namespace

namespace {

/// Of `batch` products that move `bytes` together.
Seconds product_time(const Chip& chip, const MatmulExtents& e, double batch, FlopsPerSecond peak, double bytes) {
  // A matrix unit of twice the lanes of a register takes half the time for a product that fits into the lanes in both extents. Source: cycles that libtpu 0.0.42.1
  // estimates for v6e, validation/aot/README.md.
  const int lanes = chip.layout_lanes;
  const bool is_half = chip.matmul_tile_n == 2 * lanes && chip.matmul_tile_k == 2 * lanes && e.n <= lanes && e.k <= lanes;
  const Flops flops{(is_half ? 0.5 : 1) * batch * 2.0 * static_cast<double>(padded(e.m, chip.matmul_tile_m)) * static_cast<double>(padded(e.n, chip.matmul_tile_n)) *
                    static_cast<double>(padded(e.k, chip.matmul_tile_k))};
  const auto rows = static_cast<std::int64_t>(std::min(0x1p62, std::max(1.0, batch) * static_cast<double>(e.m)));
  const double efficiency = matmul_efficiency_of(chip, rows, e.n, e.k);
  if (chip.matmul_surface.empty()) return flops / (efficiency * peak);
  Seconds roof = flops / peak;
  const MatmulSurface& surface = chip.matmul_surface;
  if (surface.wave_share > 0) roof = std::exp(surface.wave_share * wave_loss(surface.block_m, surface.block_n, chip.matmul_units, rows, e.n)) * roof;
  return (1 / efficiency) * std::max(roof, Seconds{bytes / chip.hbm_bandwidth.count()});
}

Seconds arithmetic_time(const Machine& machine, const Matmul& matmul, DType operands, DType out) {
  return product_time(machine.chip, extents_of(matmul), 1, peak_of(machine, operands, matmul.float32_passes), memory_bytes(matmul, operands, out));
}

}  // namespace

Seconds memory_time(const Machine& machine, const Matmul& matmul, DType operands) {
  return Seconds{memory_bytes(matmul, operands, product_result(operands)) / machine.chip.hbm_bandwidth.count()};
}

Seconds arithmetic_time(const Machine& machine, const OpaqueCost& cost, double bytes) {
  const Seconds vector = cost.vector / machine.chip.vector_peak;  // the matrix unit and the vector unit work side by side
  if (!(cost.matrix > Flops{})) return vector;
  const FlopsPerSecond peak = peak_of(machine, cost.dtype, cost.float32_passes);
  const double efficiency = machine.chip.matmul_efficiency * (cost.attention ? machine.chip.attention_efficiency : 1);
  if (!cost.product || cost.attention) return std::max(vector, cost.matrix / (efficiency * peak));
  const double each = 2.0 * static_cast<double>(cost.product->m) * static_cast<double>(cost.product->n) * static_cast<double>(cost.product->k);
  return std::max(vector, product_time(machine.chip, *cost.product, cost.matrix.count() / each, peak, bytes));
}

Seconds arithmetic_time(const Machine& machine, const Matmul& matmul, DType operands) { return arithmetic_time(machine, matmul, operands, product_result(operands)); }

WorkTime matmul_work(const Machine& machine, const Matmul& matmul, DType operands) {
  return overlapped(machine.software.launch[static_cast<std::size_t>(CostKind::matmul)], arithmetic_time(machine, matmul, operands),
                    memory_bytes(matmul, operands, product_result(operands)), machine.chip);
}

WorkTime matmul_work(const Machine& machine, const Program& program, const Matmul& matmul) {
  const auto buffer = [&](const Region& region) -> const Buffer& { return program.buffers[region.buffer.index()]; };
  const DType operands = buffer(matmul.left).dtype, out = buffer(matmul.out).dtype;
  const InHbm in_hbm{!buffer(matmul.left).on_chip, !buffer(matmul.right).on_chip, !buffer(matmul.out).on_chip};
  return overlapped(machine.software.launch[static_cast<std::size_t>(CostKind::matmul)], arithmetic_time(machine, matmul, operands, out),
                    memory_bytes(matmul, operands, out, in_hbm), machine.chip);
}

namespace {

/// What lowering wrote pays no launch of its own.
Seconds software_launch_of_local(const Machine& machine, const Task& task) {
  return task.origin ? Seconds{} : machine.software.launch[static_cast<std::size_t>(CostKind::local)];
}

}  // namespace

WorkTime local_work(const Machine& machine, const Program& program, const Task& task) {
  const Local& local = std::get<Local>(task.op);
  switch (traits_of(local.kind).cost) {
    case LocalCost::free: return {};
    case LocalCost::launch: {
      PODSIM_ASSERT(task.origin);
      const Seconds launch = machine.software.launch[static_cast<std::size_t>(cost_kind_of(task.origin->kind))] +
                             (task.origin->in_switch ? machine.software.in_switch_launch : Seconds{}) +
                             task.origin->own_block / machine.chip.own_block_bandwidth;
      return {launch, launch, {}, 0};
    }
    case LocalCost::host: {
      const Seconds launch = software_launch_of_local(machine, task);
      return {launch + bytes_of(program, local.reads.front()) / machine.dcn.host_bandwidth, launch, {}, 0};
    }
    case LocalCost::work: break;
  }
  double bytes = 0;
  const auto add_traffic = [&](const Region& region, std::size_t position) {
    const auto crossing = static_cast<double>(traits_of(local.kind).traffic(local, position));
    if (crossing > 0) bytes += tiled_bytes(machine, program, region) * (crossing / static_cast<double>(elements_of(region)));
  };
  const bool is_opaque = local.kind == LocalKind::opaque;
  if (is_opaque && local.opaque.bytes) bytes = static_cast<double>(local.opaque.bytes->count());
  if (!is_opaque || !local.opaque.bytes) {
    for (std::size_t i = 0; i < local.reads.size(); ++i) add_traffic(local.reads[i], i);
    for (std::size_t i = 0; i < local.writes.size(); ++i) add_traffic(local.writes[i], local.reads.size() + i);
  }
  if (is_opaque && local.opaque.time) {
    const OpaqueCost& cost = local.opaque;
    const double most = machine.chip.hbm_bandwidth.count() * (*cost.time - cost.launch - cost.rest).count();
    return {*cost.time, cost.launch, cost.rest, bytes > most * (1 + 1e-9) ? most : bytes};  // of its own bytes none is cut by rounding
  }
  if (is_opaque) return overlapped(software_launch_of_local(machine, task) + local.opaque.launch, arithmetic_time(machine, local.opaque, bytes), bytes, machine.chip);
  const LocalFlops flops = flops_of(local);
  const auto dtype_of = [&](const Region& region) { return program.buffers[region.buffer.index()].dtype; };
  Seconds arithmetic = flops.vector / machine.chip.vector_peak;  // the matrix unit and the vector unit work side by side
  if (flops.matrix > Flops{}) {
    const bool attends = local.kind == LocalKind::attention || local.kind == LocalKind::attention_grad;
    const double efficiency = machine.chip.matmul_efficiency * (attends ? machine.chip.attention_efficiency : 1);
    const DType dtype = dtype_of(local.reads.empty() ? local.writes.front() : local.reads.front());
    arithmetic = std::max(arithmetic, flops.matrix / (efficiency * peak_of(machine, dtype)));
  }
  if (local.kind == LocalKind::stack) arithmetic = std::max(arithmetic, bytes_of(program, local.writes.front()) / machine.chip.stack_bandwidth);
  arithmetic = std::max(arithmetic, static_cast<double>(pivots_of(local)) * machine.chip.pivot_latency);
  return overlapped(software_launch_of_local(machine, task), arithmetic, bytes, machine.chip);
}

bool has_adding_switches(const Machine& machine) {
  return std::any_of(machine.link.begin(), machine.link.end(), [](const LinkParameters& link) { return link.in_switch_efficiency > 0; });
}

int memory_unit(const Chip& chip) {
  const double passes = chip.transfer_memory_passes;
  return passes == std::floor(passes) ? 1 : 2 * passes == std::floor(2 * passes) ? 2 : 4;
}

}  // namespace podsim
