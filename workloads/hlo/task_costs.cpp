#include "workloads/hlo/task_costs.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/hlo/hlo_transform.hpp"
#include "workloads/hlo/moved_lanes.hpp"

namespace podsim {

namespace {

double number(std::int64_t n) { return static_cast<double>(n); }

double hbm_bytes(const HloShape& shape) { return number(device_bytes_in(shape, HloMemory::hbm).count()); }

/// nullptr: a cut file does not have it.
const HloShape* operand(const HloComputation& computation, const HloInstruction& of, std::size_t position) {
  if (position >= of.operands.size() || of.operands[position] == HloInstruction::missing) return nullptr;
  return &*computation.instructions[static_cast<std::size_t>(of.operands[position])].shape;
}
double elements(const HloShape* shape) { return shape == nullptr ? 0 : number(elements_of(*shape)); }

/// Of an operand or the result. A scalar that is a constant stands in the code of a kernel.
bool has_array_in_hbm(const HloComputation& computation, const HloInstruction& instruction) {
  if (hbm_bytes(*instruction.shape) > 0) return true;
  return std::ranges::any_of(instruction.operands, [&](int o) {
    if (o == HloInstruction::missing) return false;
    const HloInstruction& from = computation.instructions[static_cast<std::size_t>(o)];
    return hbm_bytes(*from.shape) > 0 && !(from.opcode == HloOpcode::constant && from.shape->rank() == 0);
  });
}

HloTaskCost estimated(double vector, std::string why) {
  HloTaskCost cost;
  cost.vector = vector, cost.evidence = HloEvidence::estimated, cost.why = std::move(why);
  return cost;
}
/// What an instruction is known by whose cost is not.
std::string name_of_unknown(const HloInstruction& instruction) {
  return instruction.opcode == HloOpcode::custom_call ? custom_call_name(instruction) : opcode_text(instruction);
}

HloTaskCost unknown(const HloInstruction& instruction, std::string why) {
  HloTaskCost cost;
  cost.not_known = name_of_unknown(instruction);
  cost.evidence = HloEvidence::unknown, cost.why = std::move(why);
  return cost;
}
HloTaskCost at_least(const HloInstruction& instruction, double vector, std::string why) {
  HloTaskCost cost = unknown(instruction, std::move(why));
  cost.vector = vector, cost.evidence = HloEvidence::lower_bound;
  return cost;
}

/// Of the dimension along which it sorts.
double sorted_length(const HloInstruction& sort, const HloShape& keys) {
  const std::vector<std::int64_t>& dimensions = sort.attributes->dimensions;
  const bool is_told = !dimensions.empty() && dimensions.front() >= 0 && static_cast<std::size_t>(dimensions.front()) < keys.rank();
  return is_told ? number(keys.dims[static_cast<std::size_t>(dimensions.front())]) : elements(&keys);
}

/// How many places the indices of a gather or scatter say: they are vectors along index_vector_dim.
double rows_of_indices(const HloInstruction& instruction, const HloShape& indices) {
  const auto& others = instruction.attributes->others;
  const auto found = std::ranges::find(others, "index_vector_dim", &HloAttribute::name);
  double rows = elements(&indices);
  for (std::size_t d = 0; found != others.end() && d < indices.rank(); ++d)
    if (found->text == std::to_string(d) && indices.dims[d] > 0) rows /= number(indices.dims[d]);
  return rows;
}

double taps_of(const HloWindowDimension& window, std::int64_t inputs, std::int64_t outputs) {
  const auto taps = valid_taps(window, inputs, outputs);
  return taps ? number(*taps) : number(window.size) * number(outputs);
}

/// A ragged-dot: rows in groups, each of which has its own matrix; every row is in one group.
double ragged_flops(const HloInstruction& dot, const HloShape& left) {
  double contracted = 1, groups = 1;
  for (const std::int64_t d : dot.attributes->lhs_contracting)
    if (d >= 0 && static_cast<std::size_t>(d) < left.rank()) contracted *= number(left.dims[static_cast<std::size_t>(d)]);
  // Where the contracted dimension is ragged, each group has a result of its own, of its part of that dimension.
  const auto ragged = std::ranges::find(dot.attributes->others, "lhs_ragged_dims", &HloAttribute::name);
  if (ragged != dot.attributes->others.end())
    for (const std::int64_t d : dot.attributes->lhs_contracting)
      if (ragged->text == "{" + std::to_string(d) + "}" && dot.shape->rank() > 0) groups = std::max(1.0, number(dot.shape->dims.front()));
  return 2 * number(elements_of(*dot.shape)) * contracted / groups;
}

/// Whether the window covers more than half of the image in every dimension that has several taps, as that of a kernel's gradient does, and as in the products that
/// XLA writes as convolutions, whose windows stand for further dimensions of a matrix.
bool covers_image(const HloAttributes& convolution, const HloShape& input) {
  for (std::size_t d = 0; d < convolution.window.size(); ++d) {
    const HloWindowDimension& window = convolution.window[d];
    const std::int64_t inputs = input.dims[static_cast<std::size_t>(convolution.convolution->input_spatial[d])];
    if (window.size > 1 && 2 * window.size * window.rhs_dilate <= inputs * window.lhs_dilate) return false;
  }
  return true;
}

/// What one pass of the matrix unit computes of a convolution that product_of() takes: HloTaskCost::product. nullopt: groups of batches, or nothing is computed.
std::optional<HloProduct> pass_of(const HloProduct& product, const HloInstruction& convolution, const HloShape& input, const HloShape& kernel) {
  constexpr std::int64_t lanes = 128, least_side_by_side = 3;
  const HloAttributes& attributes = *convolution.attributes;
  const std::int64_t groups = product.batch, outputs = elements_of(*convolution.shape), features = kernel.dims[static_cast<std::size_t>(attributes.convolution->kernel_input)];
  if (attributes.batch_group_count != 1 || product.flops <= 0 || outputs < groups * product.n) return std::nullopt;
  const std::int64_t rows = outputs / (groups * product.n), contracted = (product.flops - 1) / (2 * groups * rows * product.n) + 1;
  HloProduct pass{1, rows, product.n, features, product.flops};
  if (groups > 1) {
    pass.n *= std::clamp(lanes / std::max(product.n, features), std::int64_t{1}, groups);
    return pass;
  }
  if (covers_image(attributes, input)) {
    pass.k = contracted;
    return pass;
  }
  const bool is_few = features * least_side_by_side <= lanes;
  if (is_few) {
    // Taps of a row that meet an element, in the middle of the image.
    const HloWindowDimension& row = attributes.window.back();
    const std::int64_t taps = (row.size - 1) / row.lhs_dilate + 1, passes = (taps - 1) / (lanes / features) + 1;
    pass.k = (features * taps - 1) / passes + 1;
  }
  if (contracted < 2 * features) return pass;  // batches of products are written as windows, too, of which one tap meets an element
  // A register of results takes the time of five passes to be stored, beside all passes but three.
  constexpr double to_store = 5, before_stores = 3;
  const double passes = number(contracted) / number(pass.k), least = to_store + std::min(passes, before_stores);
  if (passes < least) pass.k = std::max(std::int64_t{1}, static_cast<std::int64_t>(std::lround(number(contracted) / least)));
  // Results of few features lie side by side, up to three positions.
  constexpr std::int64_t few = 24, most_side_by_side = 3;
  if (!is_few || product.n >= few) return pass;
  pass.n = std::min(few, most_side_by_side * product.n);
  pass.m = (rows * product.n - 1) / pass.n + 1;
  return pass;
}

}  // namespace

bool is_light_scalar(const HloInstruction& instruction, const HloTaskCost& cost) {
  constexpr double few_bytes = 1024;
  const bool is_scalar = instruction.shape->is_array() && instruction.shape->rank() == 0;
  return is_scalar && cost.products == 0 && (is_elementwise(instruction.opcode) || (instruction.opcode == HloOpcode::fusion && cost.bytes < few_bytes));
}

OpaqueCost opaque_cost_of(const HloTaskCost& cost) {
  OpaqueCost made{Flops{cost.rate.products * cost.matrix}, Flops{cost.vector}};
  made.bytes = Bytes{static_cast<std::int64_t>(cost.bytes)};
  made.launch = cost.launch;
  if (!(cost.matrix > 0)) return made;
  made.dtype = cost.rate.operands, made.float32_passes = cost.rate.float32_passes, made.attention = cost.rate.attention;
  if (cost.product && cost.product->m > 0 && cost.product->n > 0 && cost.product->k > 0) made.product = {cost.product->m, cost.product->n, cost.product->k};
  return made;
}

Seconds time_of(const HloTaskCost& cost, const Machine& machine) {
  const Chip& chip = machine.chip;
  const Seconds arithmetic = std::max(cost.core, arithmetic_time(machine, opaque_cost_of(cost), cost.bytes));
  const Seconds memory{is_unlimited(chip.hbm_bandwidth) || cost.bytes == 0 ? 0 : cost.bytes / chip.hbm_bandwidth.count()};
  const Seconds least = std::min(arithmetic, memory);
  return cost.launch + std::max(arithmetic, memory) + (least > Seconds{} ? (1 - chip.overlap_hbm) * least : Seconds{});
}

double reduce_window_operations(const HloShape& input, const HloShape& result, const std::vector<HloWindowDimension>& window) {
  double lines = number(elements_of(input)), operations = 0;
  for (std::size_t d = 0; d < window.size() && d < input.rank() && d < result.rank(); ++d) {
    const double inputs = number(input.dims[d]), outputs = number(result.dims[d]);
    if (inputs <= 0) return 0;
    lines /= inputs;
    const double taps = taps_of(window[d], input.dims[d], result.dims[d]);
    const bool is_one_tap = window[d].size == 1, is_whole_row = taps == inputs * outputs;
    if (!is_one_tap) operations += lines * std::min(taps, is_whole_row ? inputs : 3 * std::max(inputs, outputs));
    lines *= outputs;
  }
  return operations;
}

HloUsers::HloUsers(const HloComputation& computation) : users_(computation.instructions.size()) {
  for (std::size_t i = 0; i < computation.instructions.size(); ++i)
    for (const int operand : computation.instructions[i].operands) {
      if (operand == HloInstruction::missing) continue;
      std::vector<int>& users = users_[static_cast<std::size_t>(operand)];
      if (users.empty() || users.back() != static_cast<int>(i)) users.push_back(static_cast<int>(i));
    }
}

HloTaskCosts::HloTaskCosts(const HloModule& module, HloCustomCallCosts custom, const Machine* machine, bool tolerant)
    : module_{&module}, custom_{std::move(custom)}, kernels_{machine == nullptr ? std::nullopt : tpu_kernels(module, *machine)}, tolerant_{tolerant}, traffic_{module}, chip_traffic_{module, HloTraffic::Memory::on_chip} {
  if (machine != nullptr) pivot_latency_ = machine->chip.pivot_latency;
  if (machine != nullptr && module.is_scheduled && machine->chip.cycle == Seconds{} && !is_of_tpu_compiler(module)) {
    gpu_launch_ = machine->software.launch[static_cast<std::size_t>(CostKind::local)];
    gpu_memory_ = machine->chip.hbm_bandwidth;
  }
}

Expected<HloTaskCost> HloTaskCosts::inside(int computation) {
  if (const auto found = inside_.find(computation); found != inside_.end()) return found->second;
  const HloComputation& body = module_->computations[static_cast<std::size_t>(computation)];
  HloTaskCost made;
  double largest = 0;
  const auto add = [&](const HloTaskCost& part) {
    made.matrix += part.matrix, made.vector += part.vector, made.transforms += part.transforms, made.products += part.products, made.core += part.core, made.kernels = std::max(made.kernels, part.kernels);
    if (part.sort) made.sort = part.sort;
    if (part.matrix > largest) made.rate = part.rate, made.product = part.product, largest = part.matrix;
    if (part.evidence > made.evidence) made.evidence = part.evidence, made.why = part.why, made.not_known = part.not_known;
  };
  for (int i = 0; i < static_cast<int>(body.instructions.size()); ++i) {
    const HloInstruction& instruction = body.instructions[static_cast<std::size_t>(i)];
    const auto cost = arithmetic(body, i);
    if (!cost) return cost.error();
    add(*cost);
    made.core += time_of_lanes(body, instruction, true);
    for (const HloCall& call : instruction.calls) {
      if (instruction.opcode != HloOpcode::fusion && instruction.opcode != HloOpcode::call && instruction.opcode != HloOpcode::async) continue;
      const auto nested = inside(call.computation);
      if (!nested) return nested.error();
      add(*nested);
    }
  }
  if (made.products > 1) made.product = std::nullopt;
  return inside_[computation] = made;
}

Seconds HloTaskCosts::core_time(const HloComputation& computation, const HloInstruction& instruction) const {
  if (!kernels_) return {};
  const HloShape* const first = operand(computation, instruction, 0);
  if (first == nullptr || !first->is_array()) return {};
  if (instruction.opcode == HloOpcode::sort) return cycles_of_sort(elements(first), sorted_length(instruction, *first), number(static_cast<std::int64_t>(instruction.operands.size()))) * kernels_->cycle;
  const bool gathers = instruction.opcode == HloOpcode::gather;
  const std::size_t arrays = gathers ? 1 : instruction.operands.size() / 2;
  const HloShape* const indices = operand(computation, instruction, arrays);
  const HloShape* const moved = gathers ? &*instruction.shape : operand(computation, instruction, arrays + 1);
  const double rows = indices == nullptr ? 0 : rows_of_indices(instruction, *indices);
  if (moved == nullptr || !(rows > 0)) return {};
  const double bytes = number(logical_bytes(*moved).count()) / rows;
  // In a fusion the parameter that is scattered into need not say where it lies; its result does.
  const HloShape& made = instruction.shape->is_array() || instruction.shape->elements.empty() ? *instruction.shape : instruction.shape->elements.front();
  const HloShape& place = gathers ? *first : made;
  const bool in_hbm = place.layout.memory_space == HloMemory::hbm;
  return number(static_cast<std::int64_t>(arrays)) * rows * (gathers ? cycles_of_gathered_row(bytes, in_hbm) : cycles_of_scattered_row(bytes, in_hbm)) * kernels_->cycle;
}

Seconds HloTaskCosts::time_of_lanes(const HloComputation& computation, const HloInstruction& instruction, bool is_fused) const {
  if (!kernels_) return {};
  if (const HloShape* const from = operand(computation, instruction, 0); instruction.opcode == HloOpcode::reshape && from != nullptr)
    return stores_of_reshape(*from, *instruction.shape) * time_of_store_on_a_core(*kernels_);  // not shared between the cores of a device: seen in the code for v4 and v5p
  const bool is_shared = instruction.opcode != HloOpcode::reverse;  // seen there, too
  return cycles_of_moved_lanes(computation, instruction, is_fused) / (is_shared ? kernels_->cores : 1) * kernels_->cycle;
}

double HloTaskCosts::operations_of_function(const HloInstruction& instruction) {
  for (const HloCall& call : instruction.calls)
    if (call.role == HloRole::to_apply)
      if (const auto function = inside(call.computation)) return function->vector;
  return 1;  // of a cut file
}

Expected<HloTaskCost> HloTaskCosts::arithmetic(const HloComputation& computation, int position) {
  const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(position)];
  const HloShape* const first = operand(computation, instruction, 0);
  HloTaskCost cost;
  switch (instruction.opcode) {
    case HloOpcode::dot:
    case HloOpcode::convolution: {
      const auto product = product_of(*module_, computation, instruction);
      if (!product && tolerant_) return unknown(instruction, "a product whose operands are not there or do not fit");
      if (!product) return product.error();
      cost.matrix = number(product->flops);
      cost.product = instruction.opcode == HloOpcode::convolution ? pass_of(*product, instruction, *first, *operand(computation, instruction, 1)) : *product;
      cost.products = 1;
      cost.rate = product_rate_of(computation, instruction);
      return cost;
    }
    case HloOpcode::ragged_dot:
    case HloOpcode::scaled_dot: {
      const HloShape* const second = operand(computation, instruction, 1);
      if (first == nullptr || second == nullptr) return unknown(instruction, "a product whose operands are not there");
      cost.matrix = ragged_flops(instruction, *first);  // of a scaled product nothing is ragged
      cost.rate = product_rate_of(computation, instruction);
      cost.products = 1;
      return cost;
    }
    case HloOpcode::copy:
      if (kernels_ && first != nullptr) cost.core = time_of_copied_rows(*kernels_, *first, *instruction.shape);
      return cost;
    case HloOpcode::reduce: {
      const HloShape& made = instruction.shape->is_array() || instruction.shape->elements.empty() ? *instruction.shape : instruction.shape->elements.front();
      cost.vector = operations_of_function(instruction) * std::max(0.0, elements(first) - elements(&made));
      return cost;
    }
    case HloOpcode::scatter:
    case HloOpcode::gather:
      cost = estimated(instruction.opcode == HloOpcode::gather ? 0 : operations_of_function(instruction) * elements(operand(computation, instruction, instruction.operands.size() / 2 + 1)), "accesses by index");
      cost.core = core_time(computation, instruction);
      return cost;
    case HloOpcode::reduce_window:
      if (first != nullptr && first->is_array() && (instruction.shape->is_array() || !instruction.shape->elements.empty())) {
        const HloShape& made = instruction.shape->is_array() ? *instruction.shape : instruction.shape->elements.front();
        cost.vector = operations_of_function(instruction) * reduce_window_operations(*first, made, instruction.attributes->window);
      }
      return cost;
    case HloOpcode::select_and_scatter: {  // each place of the source compares the taps of its window
      const HloShape* const source = operand(computation, instruction, 1);
      double taps = source == nullptr ? 0 : 1;
      for (std::size_t d = 0; source != nullptr && first != nullptr && d < instruction.attributes->window.size() && d < source->rank() && d < first->rank(); ++d)
        taps *= taps_of(instruction.attributes->window[d], first->dims[d], source->dims[d]);
      cost.vector = taps + elements(source);
      return cost;
    }
    case HloOpcode::sort: {
      const double length = first == nullptr ? 0 : sorted_length(instruction, *first);
      cost = estimated(elements(first) * std::max(1.0, std::ceil(std::log2(std::max(2.0, length)))), "n log2 n of each row");
      cost.core = core_time(computation, instruction);
      double bytes = 0;
      for (std::size_t i = 0; i < instruction.operands.size(); ++i)
        if (const HloShape* const array = operand(computation, instruction, i); array != nullptr && elements(array) > 0) bytes += number(logical_bytes(*array).count()) / elements(array);
      if (gpu_launch_) cost.sort = radix_sort_of(*module_, computation, instruction);
      if (gpu_launch_ && !cost.sort) cost.kernels = sort_kernels_on_gpu(length, bytes);
      return cost;
    }
    case HloOpcode::topk: return estimated(elements(first), "an operation for each element");
    case HloOpcode::cholesky: {
      const double n = first == nullptr || first->rank() < 2 ? 0 : number(first->dims.back());
      return at_least(instruction, elements(first) * n / 3, "its columns depend on each other: at least this");
    }
    case HloOpcode::triangular_solve: {
      const double n = first == nullptr || first->rank() < 2 ? 0 : number(first->dims.back());
      return at_least(instruction, number(elements_of(*instruction.shape)) * n, "its rows depend on each other: at least this");
    }
    case HloOpcode::fft:
      cost = estimated(transform_of(instruction).flops, "5 n log2 n of each transform");
      cost.transforms = cost.vector;
      return cost;
    case HloOpcode::scan:
    case HloOpcode::unknown: return unknown(instruction, "an opcode of unknown arithmetic");
    case HloOpcode::custom_call: {
      cost = custom_call(computation, instruction);
      cost.bytes = 0;
      return cost;
    }
    default:
      if (is_elementwise(instruction.opcode)) cost.vector = number(elements_of(*instruction.shape));
      return cost;
  }
}

HloTaskCost HloTaskCosts::custom_call(const HloComputation& computation, const HloInstruction& call) {
  const HloCustomCall found = custom_call_of(computation, call, custom_);
  HloTaskCost cost;
  if (found.kind == HloCustomCall::Kind::free || found.kind == HloCustomCall::Kind::to_host || found.kind == HloCustomCall::Kind::to_device) return cost;
  cost.matrix = number(found.flops), cost.vector = number(found.vector);
  cost.rate = found.rate, cost.product = found.product;
  cost.products = found.flops > 0 ? 1 : 0;
  cost.evidence = found.evidence, cost.why = found.why;
  cost.core = static_cast<double>(found.pivots) * pivot_latency_;
  if (cost.core > Seconds{}) cost.evidence = HloEvidence::estimated, cost.why = "its columns wait for each other's pivots";
  if (cost.evidence >= HloEvidence::lower_bound) cost.not_known = name_of_unknown(call);
  cost.bytes = hbm_bytes(*call.shape);
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (const HloShape* const shape = operand(computation, call, i)) cost.bytes += hbm_bytes(*shape);
  if (found.bytes) cost.bytes = number(found.bytes->count());
  cost.sort = found.sort;
  add_radix_sort(cost);
  return cost;
}

void HloTaskCosts::add_radix_sort(HloTaskCost& cost) const {
  if (!cost.sort || !gpu_launch_) return;
  const RadixSortCost sort = radix_sort_cost(*cost.sort);
  cost.bytes = sort.bytes;
  cost.launch = (sort.kernels - 1) * *gpu_launch_;
  if (!is_unlimited(gpu_memory_)) cost.core = Seconds{cost.bytes / (sort.bandwidth * gpu_memory_.count())};
}

Expected<HloTaskCost> HloTaskCosts::of(const HloComputation& computation, int position) {
  const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(position)];
  if (is_free(instruction.opcode) || is_collective(instruction.opcode) || instruction.phase != HloPhase::whole) return HloTaskCost{};
  switch (instruction.opcode) {
    case HloOpcode::while_:
    case HloOpcode::call:
    case HloOpcode::conditional: return HloTaskCost{};
    case HloOpcode::send:
    case HloOpcode::recv:
    case HloOpcode::infeed:
    case HloOpcode::outfeed: return unknown(instruction, "its other end is not in the module");
    case HloOpcode::custom_call: return custom_call(computation, instruction);
    default: break;
  }
  auto cost = instruction.opcode == HloOpcode::fusion && !instruction.calls.empty() ? inside(instruction.calls.front().computation) : arithmetic(computation, position);
  if (!cost) return cost.error();
  cost->core += time_of_lanes(computation, instruction, false);
  const HloTraffic::Amount amount = traffic_.of(computation, instruction);
  cost->bytes = number((amount.read + amount.written).count());
  if (cost->kernels > 1) {
    cost->bytes *= cost->kernels;
    cost->launch = (cost->kernels - 1) * *gpu_launch_;
  }
  add_radix_sort(*cost);
  if (kernels_ && cost->products == 0) cost->core = std::max(cost->core, time_on_chip(*kernels_, chip_traffic_.of(computation, instruction), *instruction.shape));
  const bool copies_a_scalar = instruction.opcode == HloOpcode::copy && instruction.shape->is_array() && instruction.shape->rank() == 0;  // a loop's counter into SMEM: no kernel
  if (kernels_ && cost->products == 0 && cost->bytes > 0 && has_array_in_hbm(computation, instruction) && !copies_a_scalar && !is_light_scalar(instruction, *cost)) cost->launch = kernels_->hbm_wait;
  return cost;
}

}  // namespace podsim
