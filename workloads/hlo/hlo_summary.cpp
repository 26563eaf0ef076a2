#include "workloads/hlo/hlo_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>

#include "workloads/hlo/hlo_costs.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_executions = std::int64_t{1} << 53;

/// The compiler's estimate and ours lie this far apart, and one of them is worth telling.
constexpr double least_share = 0.3, most_share = 4;
constexpr Seconds worth_telling{1e-6};
/// Of what runs several times, or of which one of them says next to nothing, where all its executions differ by this share of the module's time.
constexpr double share_worth_telling = 0.01;

/// Executions of a computation by how it is called: by control flow or within a fusion, by the core or asynchronously.
struct Executions {
  std::array<std::int64_t, 4> counts{};
  static constexpr std::size_t fused = 1, asynchronous = 2;
  [[nodiscard]] std::int64_t all() const { return counts[0] + counts[1] + counts[2] + counts[3]; }
  [[nodiscard]] std::int64_t beside_core() const { return counts[asynchronous] + counts[asynchronous | fused]; }
  [[nodiscard]] std::int64_t in_fusions() const { return counts[fused] + counts[asynchronous | fused]; }
};

class Counter {
 public:
  Counter(const HloModule& module, const HloCosts& costs, const Machine& machine, const HloCountOptions& options, std::optional<double> clock_hz)
      : module_{module}, costs_{costs}, machine_{machine}, options_{options}, clock_hz_{clock_hz}, executions_(module.computations.size()), owners_(module.computations.size()) {}

  Expected<HloSummary> count() {
    if (const auto ok = count_executions(); !ok) return ok.error();
    for (int c = 0; c < static_cast<int>(module_.computations.size()); ++c) list(c);
    const Seconds least = share_worth_telling * summary_.coverage.time();
    for (const HloOtherEstimate& other : short_)
      if (static_cast<double>(other.count) * std::abs((other.time - other.compiler).count()) > least.count()) summary_.other_estimates.push_back(other);
    std::ranges::stable_sort(summary_.other_estimates, std::greater{}, [](const HloOtherEstimate& other) { return std::abs((other.time - other.compiler).count()) * static_cast<double>(other.count); });
    HloDoubt& doubt = summary_.coverage.in_doubt;
    for (const HloOtherEstimate& other : summary_.other_estimates) {
      const auto times = static_cast<double>(other.count);
      doubt.instructions += times, doubt.time += times * other.time, doubt.compiler += times * other.compiler, doubt.longer += times * std::max(other.time, other.compiler);
    }
    for (HloAttributeCount& attribute : attributes_) summary_.unknown_attributes.push_back(std::move(attribute));
    return std::move(summary_);
  }

 private:
  [[nodiscard]] const HloComputation& computation(int c) const { return module_.computations[static_cast<std::size_t>(c)]; }
  [[nodiscard]] const HloInstruction& at(const HloPlace& place) const {
    return computation(place.computation).instructions[static_cast<std::size_t>(place.instruction)];
  }

  /// From callers to what they call: computations are in the order of calls.
  Status count_executions() {
    if (module_.entry != HloInstruction::missing) {
      executions_[static_cast<std::size_t>(module_.entry)].counts[0] = 1;
    } else {
      std::vector<bool> called_by_any(module_.computations.size());
      for (const HloComputation& computation : module_.computations)
        for (const HloInstruction& instruction : computation.instructions)
          for (const HloCall& call : instruction.calls) called_by_any[static_cast<std::size_t>(call.computation)] = true;
      for (std::size_t c = 0; c < called_by_any.size(); ++c) executions_[c].counts[0] = called_by_any[c] ? 0 : 1;
    }
    for (int c = static_cast<int>(module_.computations.size()) - 1; c >= 0; --c) {
      if (executions_[static_cast<std::size_t>(c)].all() == 0) continue;
      for (int i = 0; i < static_cast<int>(computation(c).instructions.size()); ++i)
        if (const auto ok = count_calls({c, i}); !ok) return ok;
    }
    return success();
  }

  Status count_calls(const HloPlace& place) {
    const HloInstruction& instruction = at(place);
    for (std::size_t n = 0; n < instruction.calls.size(); ++n) {
      const HloCosts::Call call = costs_.call(place, n);
      if (call.times == 0) continue;
      const auto callee = static_cast<std::size_t>(instruction.calls[n].computation);
      const Executions& from = executions_[static_cast<std::size_t>(place.computation)];
      for (std::size_t kind = 0; kind < from.counts.size(); ++kind) {
        if (from.counts[kind] == 0) continue;
        const std::size_t to = kind | (call.fused ? Executions::fused : 0) | (call.asynchronous ? Executions::asynchronous : 0);
        std::int64_t times = 0, sum = 0;
        if (__builtin_mul_overflow(from.counts[kind], call.times, &times) || __builtin_add_overflow(executions_[callee].counts[to], times, &sum) ||
            sum > most_executions)
          return Diagnostic{module_.where(instruction),
                            fmt::format("expected at most 2^53 executions of an instruction, got more of {}", quoted(instruction.name))};
        executions_[callee].counts[to] = sum;
      }
      if (!call.fused && !call.asynchronous) continue;
      // A computation may be called both ways, each by another outermost caller.
      for (const std::size_t beside : {0U, 1U}) {
        const bool runs = beside == 0 ? from.counts[0] + from.counts[Executions::fused] > 0 : from.beside_core() > 0;
        const auto& owner = owners_[static_cast<std::size_t>(place.computation)][beside];
        auto& owned = owners_[callee][call.asynchronous ? 1 : beside];
        if (runs && !owned) owned = owner ? *owner : place;
      }
    }
    return success();
  }

  /// The instruction that runs what is in a computation: of a fused or asynchronous one its outermost caller.
  [[nodiscard]] HloPlace runs_as(const HloPlace& place, bool asynchronous) const {
    const Executions& executions = executions_[static_cast<std::size_t>(place.computation)];
    const auto& owner = owners_[static_cast<std::size_t>(place.computation)][asynchronous ? 1 : 0];
    return owner && (asynchronous || executions.counts[0] == 0) ? *owner : place;
  }
  [[nodiscard]] HloPlace runs_as(const HloPlace& place) const {
    const Executions& executions = executions_[static_cast<std::size_t>(place.computation)];
    return runs_as(place, executions.beside_core() == executions.all());
  }

  void list(int c) {
    const Executions& executions = executions_[static_cast<std::size_t>(c)];
    for (int i = 0; i < static_cast<int>(computation(c).instructions.size()); ++i) count_unknown(at({c, i}));
    if (executions.all() == 0) return;
    const bool is_fused = executions.in_fusions() == executions.all();
    if (!is_fused) list_windows(c, executions);
    sliced_ = costs_.sliced(c, is_fused);
    if (!is_fused)
      for (const auto& [all_reduce, slice] : sliced_) summary_.waiting.push_back({c, all_reduce});
    for (int i = 0; i < static_cast<int>(computation(c).instructions.size()); ++i) {
      const HloPlace place{c, i};
      const HloInstruction& instruction = at(place);
      const bool begins = instruction.phase == HloPhase::whole || instruction.phase == HloPhase::start;
      if (is_collective(instruction.opcode) && begins) list_collective(place, executions);
      if (const auto* const product = costs_.product(place)) summary_.products.push_back({place, runs_as(place), *product, executions.all()});
      if (instruction.opcode == HloOpcode::fft && instruction.phase == HloPhase::whole)
        summary_.transforms.push_back({place, runs_as(place), transform_of(instruction), executions.all()});
      if (begins && !is_fused) list_copy(place, executions);
      if (begins) list_opaque(place, executions.all());
      if (begins && !is_fused) cover(place, executions.all() - executions.in_fusions());
      if (instruction.opcode == HloOpcode::while_)
        if (const auto trips = costs_.trips(place)) summary_.loops.push_back({place, *trips, executions.all()});
      if (instruction.opcode == HloOpcode::conditional)
        if (const auto branch = costs_.branch(place))
          summary_.branches.push_back({place, *branch, options_.branches.contains(instruction.name), executions.all()});
    }
  }

  void count_unknown(const HloInstruction& instruction) {
    for (const HloAttribute& attribute : instruction.attributes->others) {
      if (attribute.known) continue;
      const auto [found, is_new] = attribute_numbers_.try_emplace(attribute.name, attributes_.size());
      if (is_new) attributes_.push_back({attribute.name, 0, module_.where(instruction)});
      ++attributes_[found->second].count;
    }
  }

  void list_collective(const HloPlace& place, const Executions& executions) {
    const HloInstruction& instruction = at(place);
    const HloCollectiveBytes bytes = collective_bytes(module_, computation(place.computation), instruction);
    HloCollectiveCount row{place,       runs_as(place), instruction.opcode,
                           bytes.input, bytes.result,   std::max<int>(1, static_cast<int>(instruction.operands.size()))};
    if (executions.in_fusions() == executions.all() && sliced_.contains(place.instruction)) {
      const HloComputation& fused = computation(place.computation);
      row.kind = HloOpcode::reduce_scatter;
      row.result_bytes = logical_bytes(*fused.instructions[static_cast<std::size_t>(fused.root)].shape);
    }
    const bool own_start = instruction.phase == HloPhase::start && !instruction.attributes->is_sync;
    const std::int64_t beside = own_start ? executions.all() : executions.beside_core();
    for (const bool asynchronous : {true, false}) {
      row.asynchronous = asynchronous;
      row.count = asynchronous ? beside : executions.all() - beside;
      row.runs_as = own_start ? place : runs_as(place, asynchronous);
      const auto window = window_of_start_.find(row.runs_as);
      row.window = asynchronous && window != window_of_start_.end() ? std::optional{window->second} : std::nullopt;
      if (row.count > 0) summary_.collectives.push_back(row);
    }
  }

  void list_windows(int c, const Executions& executions) {
    const std::int64_t count = executions.all() - executions.in_fusions();
    for (const auto& [start, done] : costs_.windows(c)) {
      if (at({c, start}).attributes->is_sync) continue;
      window_of_start_.emplace(HloPlace{c, start}, summary_.windows.size());
      summary_.windows.push_back({{c, start}, {c, done}, costs_.between(c, start, done), count});
    }
  }

  void list_copy(const HloPlace& place, const Executions& executions) {
    const HloInstruction& instruction = at(place);
    const std::int64_t count = executions.all() - executions.in_fusions();
    const auto move = costs_.move_of(place);
    if (!move) return;
    const bool asynchronous = (instruction.phase == HloPhase::start && !instruction.attributes->is_sync) || executions.counts[0] == 0;
    summary_.copies.push_back({place, runs_as(place), move->from, move->to, move->bytes, asynchronous, count});
  }

  void list_opaque(const HloPlace& place, std::int64_t count) {
    const HloInstruction& instruction = at(place);
    using Kind = HloCustomCall::Kind;
    HloOpaqueCount row{place, instruction.attributes->custom_call_target, {}, {}, count};
    if (instruction.opcode == HloOpcode::custom_call)
      row.cost = custom_call_of(computation(place.computation), instruction, options_.custom_calls);
    else if (costs_.cost(place).evidence != HloEvidence::unknown || instruction.opcode == HloOpcode::fusion || costs_.product(place) != nullptr || has_other_end_elsewhere(instruction.opcode))
      return;
    else
      row.target = opcode_text(instruction);
    row.bytes = costs_.boundary_bytes(place);  // here: of the parts of a large tuple it would count the tuple each time
    if (row.cost.evidence == HloEvidence::unknown && (row.cost.kind == Kind::opaque || row.cost.kind == Kind::counted))
      summary_.opaque.push_back(std::move(row));
    else if (row.cost.kind == Kind::counted)
      summary_.custom_calls.push_back(std::move(row));
  }

  static bool has_other_end_elsewhere(HloOpcode opcode) {
    return opcode == HloOpcode::send || opcode == HloOpcode::recv || opcode == HloOpcode::infeed || opcode == HloOpcode::outfeed;
  }

  static HloCovered& part_of(HloCoverage& coverage, HloEvidence evidence) {
    switch (evidence) {
      case HloEvidence::known: return coverage.known;
      case HloEvidence::estimated: return coverage.estimated;
      case HloEvidence::lower_bound: return coverage.lower_bound;
      case HloEvidence::unknown: break;
    }
    return coverage.unknown;
  }

  /// Adds an instruction that runs by control flow or asynchronously.
  void cover(const HloPlace& place, std::int64_t count) {
    const HloInstruction& instruction = at(place);
    const HloTaskCost& cost = costs_.cost(place);
    const auto& cycles = instruction.attributes->estimated_cycles;
    const Seconds time = clock_hz_ && cycles ? Seconds{static_cast<double>(*cycles) / *clock_hz_} : time_of(cost, machine_);
    summary_.flops.of.at(static_cast<std::size_t>(cost.rate.operands)) += static_cast<double>(count) * cost.matrix;
    summary_.flops.of.at(static_cast<std::size_t>(DType::f32)) += static_cast<double>(count) * cost.transforms;
    summary_.each_once.flops += cost.matrix + cost.transforms;
    summary_.each_once.vector += cost.vector - cost.transforms;
    summary_.each_once.bytes += cost.bytes;
    summary_.each_once.time = summary_.each_once.time + time;
    const bool does_something = is_collective(instruction.opcode) || cost.evidence != HloEvidence::known || cost.matrix + cost.vector + cost.bytes > 0 || time > Seconds{};
    estimate(place, time, count);
    if (!does_something) return;
    HloCoverage& coverage = summary_.coverage;
    HloCovered& share = part_of(coverage, cost.evidence);
    const auto times = static_cast<double>(count);
    share.instructions += times;
    share.bytes += times * cost.bytes;
    share.time = share.time + times * time;
    if (!is_collective(instruction.opcode)) {
      HloCompared& part = cycles ? coverage.compared : coverage.not_compared;
      part.instructions += times, part.time += times * time;
    }
    if (cost.evidence == HloEvidence::lower_bound) coverage.lower_bound_names[cost.not_known] += times;
    if (cost.evidence == HloEvidence::unknown) coverage.unknown_names[cost.not_known] += times;
  }

  /// Keeps what the compiler estimates of an instruction where that is far from its time here.
  void estimate(const HloPlace& place, Seconds time, std::int64_t count) {
    const auto& cycles = at(place).attributes->estimated_cycles;
    if (!cycles || clock_hz_ || machine_.chip.cycle == Seconds{}) return;
    const Seconds compiler = static_cast<double>(*cycles) * machine_.chip.cycle;
    const double share_of_it = time.count() / compiler.count();
    if (share_of_it >= least_share && share_of_it <= most_share) return;
    const bool is_long = costs_.cost(place).products > 0 ? std::max(time, compiler) > worth_telling : std::min(time, compiler) > worth_telling;
    if (is_long || count > 1 || std::max(time, compiler) > worth_telling) (is_long ? summary_.other_estimates : short_).push_back({place, time, compiler, count});
  }

  const HloModule& module_;
  const HloCosts& costs_;
  const Machine& machine_;
  const HloCountOptions& options_;
  std::optional<double> clock_hz_;
  std::map<int, int> sliced_;  // of the computation that is listed
  std::vector<Executions> executions_;
  std::vector<std::array<std::optional<HloPlace>, 2>> owners_;  // by the core, asynchronously
  std::vector<HloOtherEstimate> short_;  // what is told where it adds up
  std::map<HloPlace, std::size_t> window_of_start_;
  std::unordered_map<std::string, std::size_t> attribute_numbers_;
  std::vector<HloAttributeCount> attributes_;
  HloSummary summary_;
};

/// Every name that the caller gives stands for something.
Status check_names(const HloModule& module, const HloCountOptions& options) {
  std::vector<std::string> loops, conditionals, targets;
  std::set<std::string> seen;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions) {
      if (instruction.opcode == HloOpcode::while_) loops.push_back(instruction.name);
      if (instruction.opcode == HloOpcode::conditional) conditionals.push_back(instruction.name);
      if (instruction.opcode == HloOpcode::custom_call)
        for (const std::string& name : {instruction.attributes->custom_call_target, custom_call_name(instruction)})
          if (seen.insert(name).second) targets.push_back(name);
    }
  const auto check = [](const auto& given, const std::vector<std::string>& names, const char* field, const char* what) -> Status {
    for (const auto& [name, value] : given)
      if (std::find(names.begin(), names.end(), name) == names.end())
        return Diagnostic{of_field(field),
                          fmt::format("expected the name of a {} of the module, got {}{}", what, quoted(name), did_you_mean(name, names))};
    return success();
  };
  if (auto ok = check(options.trip_counts, loops, "trip_count", "loop"); !ok) return ok;
  if (auto ok = check(options.branches, conditionals, "branch", "conditional"); !ok) return ok;
  return check(options.custom_calls, targets, "custom_call", "custom-call's target");
}

Expected<HloSummary> counted(const HloModule& module, const Machine& machine, const HloCountOptions& options, std::optional<double> clock_hz = {}) {
  auto costs = HloCosts::of(module, machine, options);
  if (!costs) return costs.error();
  auto summary = Counter{module, *costs, machine, options, clock_hz}.count();
  if (!summary) return summary.error();
  summary->warnings = module.warnings;
  summary->warnings.insert(summary->warnings.end(), costs->warnings().begin(), costs->warnings().end());
  return summary;
}

}  // namespace

Expected<HloSummary> summary_of(const HloModule& module, const Machine& machine, const HloCountOptions& options) {
  if (const auto ok = check_names(module, options); !ok) return ok.error();
  return counted(module, machine, options);
}

HloTrust trust_of(const HloModule& module, const Machine& machine, const HloCountOptions& options, std::optional<double> clock_hz) {
  HloCountOptions tolerant = options;
  tolerant.tolerant = true;
  auto summary = counted(module, machine, tolerant, clock_hz);
  if (!summary) return {};
  HloTrust trust{std::move(summary->coverage), summary->flops, {}, std::move(summary->unknown_attributes)};
  for (const HloOtherEstimate& other : summary->other_estimates)
    trust.other_estimates.emplace_back(module.computations[static_cast<std::size_t>(other.place.computation)].instructions[static_cast<std::size_t>(other.place.instruction)].name, other);
  return trust;
}

std::string why_at_least(const HloCoverage& coverage) {
  std::string text;
  const auto add = [&](const HloCovered& part, const char* what, const std::map<std::string, double>& executions) {
    if (executions.empty()) return;
    constexpr std::size_t most_names = 4;
    std::vector<std::pair<std::string, double>> names{executions.begin(), executions.end()};
    std::ranges::stable_sort(names, std::greater{}, [](const auto& name) { return name.second; });
    text += fmt::format("{}{:.0f}{}, {}: ", text.empty() ? "" : "; ", part.instructions, text.empty() ? fmt::format(" of {:.0f} instructions", coverage.instructions()) : "", what);
    for (std::size_t i = 0; i < names.size() && i < most_names; ++i)
      text += fmt::format("{}{}{}", i == 0 ? "" : ", ", names[i].first, names[i].second > 1 ? fmt::format(" x {:.0f}", names[i].second) : "");
    if (names.size() > most_names) text += fmt::format(" and {} more", names.size() - most_names);
  };
  add(coverage.unknown, "unknown", coverage.unknown_names);
  add(coverage.lower_bound, "a lower bound", coverage.lower_bound_names);
  return text;
}

HloCollectiveBytes collective_bytes(const HloModule& module, const HloComputation& computation, const HloInstruction& collective) {
  const auto shape_of = [&](int number) -> const HloShape* {
    return number == HloInstruction::missing ? nullptr : &*computation.instructions[static_cast<std::size_t>(number)].shape;
  };
  HloCollectiveBytes bytes;
  // Of a ragged all-to-all the first operand is sent; the others say where to.
  const std::size_t sent =
      collective.opcode == HloOpcode::ragged_all_to_all ? std::min<std::size_t>(1, collective.operands.size()) : collective.operands.size();
  bool known = sent > 0;
  for (std::size_t i = 0; i < sent; ++i) {
    const HloShape* const shape = shape_of(collective.operands[i]);
    known = known && shape != nullptr;
    if (shape != nullptr) bytes.input = saturated_sum(bytes.input, logical_bytes(*shape));
  }
  // The result of a start: an all-reduce's own shape, else the second element, (operands, results, context).
  const HloShape& shape = *collective.shape;
  const bool pair = collective.phase == HloPhase::start && collective.opcode != HloOpcode::all_reduce && shape.elements.size() >= 2;
  bytes.result = logical_bytes(pair ? shape.elements[1] : shape);
  if (known) return bytes;
  std::int64_t devices = devices_of(module);
  if (collective.attributes->replica_groups) devices = collective.attributes->replica_groups->uniform_size().value_or(devices);
  bytes.input = bytes.result;
  if (collective.opcode == HloOpcode::all_gather) bytes.input = Bytes{bytes.result.count() / devices};
  if (collective.opcode == HloOpcode::reduce_scatter)
    bytes.input = Bytes{std::min(bytes.result.count(), (std::int64_t{1} << 62) / devices) * devices};
  return bytes;
}

double received_bytes(HloOpcode kind, const HloCollectiveBytes& bytes, std::int64_t devices) {
  const auto input = static_cast<double>(bytes.input.count()), result = static_cast<double>(bytes.result.count());
  const double others = devices > 0 ? static_cast<double>(devices - 1) / static_cast<double>(devices) : 1;
  if (kind == HloOpcode::all_gather) return std::max(result - input, 0.0);
  if (kind == HloOpcode::reduce_scatter) return std::max(input - result, 0.0);
  if (kind == HloOpcode::all_reduce) return 2 * others * input;
  if (kind == HloOpcode::all_to_all || kind == HloOpcode::ragged_all_to_all) return others * input;
  return input;
}

}  // namespace podsim
