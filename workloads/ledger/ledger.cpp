#include "workloads/ledger/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "workloads/ledger/label_place.hpp"

namespace podsim {

namespace {

__extension__ using Wide = __int128;

constexpr std::string_view send_category = "send";

bool communicates(const OperationMetrics& operation) { return operation.category == send_category || collective_kind_named(operation.category).has_value(); }

/// A layer is said where it is one by its kind, not by its number: "ff1 backward" of "layer 7", "ff1 backward"; trips of loops are numbers, too.
bool is_numbered(std::string_view layer) {
  const std::size_t space = layer.rfind(' ');
  return space != std::string_view::npos && layer.find_first_not_of("0123456789", space + 1) == std::string_view::npos && space + 1 < layer.size();
}

/// "recv act_6 from 6" of "recv act_6__0 from 6", "sum d ff1" of "sum d layer15.ff1": what every microbatch and layer does alike.
std::string without_numbers(std::string_view operation) {
  constexpr std::string_view microbatch = "__", layer = "layer";
  std::string kept;
  for (std::size_t at = 0; at < operation.size();) {
    const std::string_view rest = operation.substr(at);
    const std::size_t word = rest.starts_with(microbatch) ? microbatch.size() : rest.starts_with(layer) ? layer.size() : 0;
    const std::size_t end = std::min(rest.find_first_not_of("0123456789", word), rest.size());
    const bool of_a_layer = word == layer.size() && end > word && rest.substr(end).starts_with('.');
    if (of_a_layer || (word == microbatch.size() && end > word)) {
      at += end + (of_a_layer ? 1 : 0);
    } else {
      kept += operation[at++];
    }
  }
  return kept;
}

/// Whether a layer or an operation is what a step calls: in the function that is called no label has it.
bool is_call(std::string_view layer) { return is_numbered(layer) || layer == "embedding" || layer == "positions" || layer == "logits" || layer == "loss"; }

/// "ff1 backward: dX: gather W", whether it is written out where it is called or not.
std::string purpose_of(const LabelPlace& place) {
  std::string name;
  for (const std::string& layer : place.layers)
    if (!is_call(layer)) name += layer + ": ";
  std::string_view operation = place.operation;
  for (const std::string_view call : {"gather weights ", "reduce gradients "})
    if (operation.starts_with(call)) operation.remove_prefix(call.size());
  return name + without_numbers(operation);
}

/// Of a module, an instruction's own name: what stands behind it numbers its parts.
std::string_view instruction_of(const LabelPlace& place) { return std::string_view{place.operation}.substr(0, place.operation.find(' ')); }

Picoseconds exposed_of(const std::vector<OperationMetrics>& operations) {
  Picoseconds sum;
  for (const OperationMetrics& operation : operations) sum = sum + operation.exposed;
  return sum;
}

class Ledger {
 public:
  explicit Ledger(const Run& run) : run_{run}, origins_{run.problem->summary.hlo != nullptr ? &run.problem->summary.hlo->origins : nullptr} {}

  std::vector<LedgerRow> made(const std::vector<OperationMetrics>& operations) {
    add_all(operations, 1, exposed_of(operations));
    std::vector<LedgerRow> rows;
    for (auto& [key, sum] : sums_) {
      for (const auto& [part, count] : sum.counts) sum.row.count = std::max(sum.row.count, count);
      sum.row.bytes = Bytes{sum.bytes / sum.row.count};
      rows.push_back(std::move(sum.row));
    }
    std::ranges::sort(rows, [](const LedgerRow& a, const LedgerRow& b) { return std::tie(b.exposed, b.in_flight, a.name, a.bytes, a.axes) < std::tie(a.exposed, a.in_flight, b.name, b.bytes, b.axes); });
    return rows;
  }

 private:
  /// An instruction with several arrays is written as one collective for each of them, numbered: together they are one execution.
  struct Sum {
    LedgerRow row;
    std::map<std::string, std::int64_t, std::less<>> counts;  // by what stands behind the name
    std::int64_t bytes = 0;                                   // of all executions
  };

  /// `exposed`: of all of them, shared out as they are exposed alone. In a call that is played they may be in flight beside transfers that the core waits for longer.
  void add_all(const std::vector<OperationMetrics>& operations, std::int64_t times, Picoseconds exposed) {
    const Picoseconds alone = exposed_of(operations);
    Picoseconds before, given;
    for (const OperationMetrics& operation : operations) {
      before = before + operation.exposed;
      const Picoseconds until{alone > Picoseconds{} ? static_cast<std::int64_t>(static_cast<Wide>(exposed.count()) * before.count() / alone.count()) : 0};
      const Picoseconds part = until - given;
      given = until;
      if (operation.call != nullptr)
        add_all(operation.call->operations, times * operation.count, part);
      else if (communicates(operation))
        add(operation, times, part);
    }
  }

  void add(const OperationMetrics& operation, std::int64_t times, Picoseconds exposed) {
    const LabelPlace place = place_of(operation.name);
    LedgerRow row;
    row.kind = operation.category;
    row.devices = operation.devices;
    for (const int axis : operation.axes) row.axes.push_back(run_.lowered->mesh.axes()[static_cast<std::size_t>(axis)].name);
    std::string_view part;
    const HloOrigin* origin = named_by(place);
    if (origin != nullptr) {
      row.name = instruction_of(place);
      row.path = origin->path;
      row.source = origin->source;
      part = std::string_view{place.operation}.substr(row.name.size());
    } else {
      row.name = purpose_of(place);
    }
    const std::int64_t executions = times * operation.count;
    Sum& sum = sums_.try_emplace({row.name, row.kind, row.axes, row.devices, origin != nullptr ? 0 : operation.bytes.count()}, Sum{row, {}, 0}).first->second;
    sum.counts[std::string{part}] += executions;
    sum.bytes += executions * operation.bytes.count();
    sum.row.in_flight = sum.row.in_flight + times * operation.in_flight;
    sum.row.exposed = sum.row.exposed + exposed;
    sum.row.hidden = sum.row.hidden + times * operation.overlapped;
  }

  [[nodiscard]] const HloOrigin* named_by(const LabelPlace& place) const {
    if (origins_ == nullptr) return nullptr;
    const auto found = origins_->find(instruction_of(place));
    return found == origins_->end() ? nullptr : &found->second;
  }

  const Run& run_;
  const HloOrigins* origins_;
  std::map<std::tuple<std::string, std::string, std::vector<std::string>, int, std::int64_t>, Sum> sums_;  // the last is bytes, where a name does not tell sizes apart
};

}  // namespace

std::vector<LedgerRow> collective_ledger(const Run& run, const std::vector<OperationMetrics>& operations) { return Ledger{run}.made(operations); }

std::vector<LedgerRow> collective_ledger(const Run& run) { return collective_ledger(run, measure_operations(run.model, run.timeline, run.metrics.busiest)); }

const LedgerRow* ledger_row_of(const std::vector<LedgerRow>& ledger, std::string_view name, std::string_view category, Bytes bytes) {
  const LabelPlace place = place_of(name);
  const LedgerRow* found = nullptr;
  const std::string purpose = purpose_of(place);
  for (const std::string_view known : {std::string_view{purpose}, instruction_of(place)})
    for (const LedgerRow& row : ledger)
      if (row.name == known && row.kind == category && (found == nullptr || (found->bytes != bytes && row.bytes == bytes))) found = &row;
  return found;
}

}  // namespace podsim
