#include "tools/report/hlo_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/units.hpp"
#include "tools/report/hlo_coverage_report.hpp"
#include "tools/report/table.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/collective_strategy.hpp"
#include "workloads/hlo/hlo_memory.hpp"

namespace podsim {

namespace {

constexpr std::size_t widest_groups = 60, widest_shape = 40;

const HloInstruction& instruction_at(const HloModule& module, const HloPlace& place) {
  return module.computations[static_cast<std::size_t>(place.computation)].instructions[static_cast<std::size_t>(place.instruction)];
}
const std::string& name_at(const HloModule& module, const HloPlace& place) { return instruction_at(module, place).name; }

std::string space_text(int space) {
  switch (space) {
    case HloMemory::hbm: return "HBM";
    case HloMemory::vmem: return "VMEM";
    case HloMemory::host: return "host";
    default: return fmt::format("S({})", space);
  }
}

/// "1,234"
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; digits.insert(at -= 3, ",")) {}
  return digits;
}

/// A sum over executions: exact below 2^63, beyond it that of doubles.
class ExecutionSum {
 public:
  void add(std::int64_t amount, std::int64_t count) {
    std::int64_t product = 0;
    exact_ = exact_ && !__builtin_mul_overflow(amount, count, &product) && !__builtin_add_overflow(sum_, product, &sum_);
    rough_ += static_cast<double>(amount) * static_cast<double>(count);
  }
  [[nodiscard]] double rough() const { return rough_; }
  [[nodiscard]] std::string text() const { return exact_ ? grouped(sum_) : fmt::format("{:.4g}", rough_); }
  [[nodiscard]] Json json() const { return exact_ ? Json(sum_) : Json(rough_); }

 private:
  std::int64_t sum_ = 0;
  double rough_ = 0;
  bool exact_ = true;
};

std::string source_text(HloTripCount::Source source) {
  switch (source) {
    case HloTripCount::Source::given: return "given";
    case HloTripCount::Source::told: return "told";
    case HloTripCount::Source::condition: return "condition";
    case HloTripCount::Source::assumed: return "assumed";
  }
  return "";
}

/// A collective with what the mesh and its window add to it.
struct CollectiveRow {
  const HloCollectiveCount* count = nullptr;
  HloCollectiveAxes axes;
  const HloWindow* window = nullptr;
  std::optional<double> hidden_at{};  // bytes per second
};

Expected<std::vector<CollectiveRow>> collective_rows(const ShownHlo& shown) {
  std::vector<CollectiveRow> rows;
  std::map<std::tuple<bool, HloGroupMode, std::string>, HloCollectiveAxes> known;  // to look for axes takes time of all devices
  for (const HloCollectiveCount& count : shown.summary.collectives) {
    const HloInstruction& collective = instruction_at(shown.module, count.place);
    const auto [found, is_new] =
        known.try_emplace({collective.opcode == HloOpcode::collective_permute, group_mode_of(collective), groups_text(collective)});
    if (is_new) {
      auto axes = collective_axes(shown.module, collective, shown.mesh ? &*shown.mesh : nullptr);
      if (!axes) return axes.error();
      found->second = *std::move(axes);
    }
    CollectiveRow row{&count, found->second, nullptr, std::nullopt};
    if (count.window) {
      row.window = &shown.summary.windows[*count.window];
      if (row.window->between.time > Seconds{})
        row.hidden_at = received_bytes(count.kind, {count.bytes, count.result_bytes}, row.axes.group_size) / row.window->between.time.count();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

constexpr std::string_view wanted = "no (wanted)";  // the compiler meant to make it asynchronous

std::string asynchronous_text(const HloModule& module, const HloCollectiveCount& count) {
  if (count.asynchronous) return "yes";
  return instruction_at(module, count.place).attributes->async_collective_name.empty() ? "no" : std::string{wanted};
}

std::string along_text(const CollectiveRow& row, const std::optional<Mesh>& mesh) {
  const HloCollectiveAxes& axes = row.axes;
  if (axes.shift) {
    std::string text = fmt::format("{} {:+}{}", (*axes.axes)[0], axes.shift->by, axes.shift->wraps ? "" : " (open)");
    for (const auto& [axis, coordinate] : axes.shift->fixed)
      text += fmt::format(", {}={}", mesh->axes()[static_cast<std::size_t>(axis)].name, coordinate);
    return text;
  }
  if (axes.axes) return axes.axes->empty() ? "-" : fmt::format("{}", fmt::join(*axes.axes, ","));
  return axes.groups.size() <= widest_groups ? axes.groups : axes.groups.substr(0, widest_groups) + "...";
}

/// Rows that are alike but for their instruction, as one: executions are added, and the first instruction names them.
class AlikeRows {
 public:
  explicit AlikeRows(std::vector<std::string> heading) : heading_{std::move(heading)} {}

  /// `cells` are those behind instruction and count.
  void add(const std::string& kind, const std::string& instruction, std::int64_t count, std::vector<std::string> cells) {
    cells.insert(cells.begin(), kind);
    const auto [found, is_new] = numbers_.try_emplace(cells, rows_.size());
    if (is_new) rows_.push_back({instruction, 0, {}, cells});
    Row& row = rows_[found->second];
    ++row.instructions;
    row.count.add(1, count);
  }
  [[nodiscard]] std::string text(std::size_t left) const {
    if (rows_.empty()) return {};
    std::vector<std::vector<std::string>> cells{heading_};
    for (const Row& row : rows_) {
      std::vector<std::string> line{row.cells[0],
                                    row.instructions == 1 ? row.instruction : fmt::format("{} and {} more", row.instruction, row.instructions - 1),
                                    row.count.text()};
      line.insert(line.end(), row.cells.begin() + 1, row.cells.end());
      cells.push_back(std::move(line));
    }
    return table(cells, left) + "\n";
  }

 private:
  struct Row {
    std::string instruction;
    std::int64_t instructions = 0;
    ExecutionSum count;
    std::vector<std::string> cells;
  };
  std::vector<std::string> heading_;
  std::vector<Row> rows_;
  std::map<std::vector<std::string>, std::size_t> numbers_;
};

/// "f32[1024,4096]": of the last array of a tuple, which in a -start is a result.
std::string shape_of_result(const HloInstruction& collective) {
  const HloShape* shape = &*collective.shape;
  const bool starts = collective.phase == HloPhase::start;
  if (starts && collective.opcode != HloOpcode::all_reduce && shape->is_tuple() && shape->elements.size() > 1) shape = &shape->elements[1];
  std::string text = short_text(*shape);
  if (text.size() > widest_shape) text = text.substr(0, widest_shape) + "...";
  return text;
}

std::string collectives_text(const ShownHlo& shown, const std::vector<CollectiveRow>& rows) {
  AlikeRows alike{{"collective", "instruction", "count", "along", "asynchronous", "input", "result", "shape", "core between", "hidden at"}};
  for (const CollectiveRow& row : rows) {
    const HloCollectiveCount& count = *row.count;
    const std::string input = count.operands == 1
                                  ? to_text(count.bytes)
                                  : fmt::format("{} x {}", count.operands, bytes_text(static_cast<double>(count.bytes.count()) / count.operands));
    alike.add(std::string{name_of(count.kind)}, name_at(shown.module, count.runs_as), count.count,
              {along_text(row, shown.mesh), asynchronous_text(shown.module, count), input, to_text(count.result_bytes), shape_of_result(instruction_at(shown.module, count.place)),
               row.window != nullptr ? to_text(row.window->between.time) : "-", row.hidden_at ? to_text(BytesPerSecond{*row.hidden_at}) : "-"});
  }
  std::map<std::string, std::pair<ExecutionSum, ExecutionSum>> sums;
  for (const CollectiveRow& row : rows) {
    auto& [executions, bytes] = sums[std::string{name_of(row.count->kind)}];
    executions.add(1, row.count->count);
    bytes.add(row.count->bytes.count(), row.count->count);
  }
  std::string text = alike.text(2);
  for (const auto& [kind, sum] : sums)
    text += fmt::format("{} x {}: {} of input per device\n", kind, sum.first.text(), bytes_text(sum.second.rough()));
  std::map<std::string, ExecutionSum> strategies;
  for (const CollectiveRow& row : rows)
    if (const HloStrategy* const strategy = strategy_of(instruction_at(shown.module, row.count->place), instruction_at(shown.module, row.count->runs_as)))
      strategies[to_text(*strategy)].add(1, row.count->count);
  for (const auto& [strategy, executions] : strategies) text += fmt::format("as {} x {}\n", strategy, executions.text());
  const auto is_wanted = [&](const CollectiveRow& row) { return asynchronous_text(shown.module, *row.count) == wanted; };
  if (std::any_of(rows.begin(), rows.end(), is_wanted))
    text += fmt::format("{}: the compiler meant to start it early (async_collective_name), but the module waits for it where it stands\n", wanted);
  return text + (sums.empty() ? "" : "\n");
}

std::string products_text(const ShownHlo& shown) {
  AlikeRows alike{{"product", "instruction", "count", "m", "n", "k", "batch", "FLOPs"}};
  ExecutionSum executions, flops;
  for (const HloProductCount& count : shown.summary.products) {
    const HloProduct& product = count.product;
    executions.add(1, count.count);
    flops.add(product.flops, count.count);
    alike.add(
        std::string{name_of(instruction_at(shown.module, count.place).opcode)}, name_at(shown.module, count.runs_as), count.count,
        {std::to_string(product.m), std::to_string(product.n), std::to_string(product.k), std::to_string(product.batch), grouped(product.flops)});
  }
  if (shown.summary.products.empty()) return "no products\n\n";
  return alike.text(2) + fmt::format("products x {}: {} FLOPs per device\n\n", executions.text(), flops.text());
}

std::string transforms_text(const ShownHlo& shown) {
  AlikeRows alike{{"Fourier transform", "instruction", "count", "points", "batch", "FLOPs"}};
  for (const HloTransformCount& count : shown.summary.transforms)
    alike.add(instruction_at(shown.module, count.place).attributes->fft_type, name_at(shown.module, count.runs_as), count.count,
              {std::to_string(count.transform.points), std::to_string(count.transform.batch), to_text(Flops{count.transform.flops})});
  return alike.text(2);
}

std::string windows_text(const ShownHlo& shown) {
  AlikeRows alike{{"asynchronous", "from, to", "count", "core between", "FLOPs between", "HBM bytes between"}};
  for (const HloWindow& window : shown.summary.windows)
    alike.add(opcode_text(instruction_at(shown.module, window.start)),
              fmt::format("{}, {}", name_at(shown.module, window.start), name_at(shown.module, window.done)), window.count,
              {to_text(window.between.time), to_text(Flops{window.between.flops}), bytes_text(window.between.bytes)});
  return alike.text(2);
}

std::string rest_text(const ShownHlo& shown) {
  const HloSummary& summary = shown.summary;
  AlikeRows copies{{"copy", "instruction", "count", "from", "to", "asynchronous", "bytes"}};
  for (const HloCopyCount& copy : summary.copies)
    copies.add(opcode_text(instruction_at(shown.module, copy.place)), name_at(shown.module, copy.runs_as), copy.count,
               {space_text(copy.from), space_text(copy.to), copy.asynchronous ? "yes" : "no", to_text(copy.bytes)});
  AlikeRows calls{{"custom-call", "instruction", "count", "FLOPs", "vector operations", "operands and results", "its cost is"}};
  for (const HloOpaqueCount& call : summary.custom_calls)
    calls.add(call.target, name_at(shown.module, call.place), call.count,
              {grouped(call.cost.flops), grouped(call.cost.vector), to_text(call.bytes), call.cost.why.empty() ? "known" : call.cost.why});
  AlikeRows opaque{{"opaque", "instruction", "count", "operands and results"}};
  for (const HloOpaqueCount& call : summary.opaque) opaque.add(call.target, name_at(shown.module, call.place), call.count, {to_text(call.bytes)});
  std::string text = copies.text(2) + calls.text(2) + opaque.text(2);
  if (!summary.waiting.empty())
    text += fmt::format("of {} all-reduces only the own block is used, of {} first: reduce-scatters in waiting\n", summary.waiting.size(), name_at(shown.module, summary.waiting.front()));
  for (const HloLoopCount& loop : summary.loops)
    text += fmt::format("loop {} x {}: {} iterations ({})\n", name_at(shown.module, loop.place), grouped(loop.count), grouped(loop.trips.count),
                        loop.trips.source == HloTripCount::Source::condition ? "by its condition" : source_text(loop.trips.source));
  for (const HloBranchCount& branch : summary.branches)
    text += fmt::format("conditional {} x {}: branch {} ({})\n", name_at(shown.module, branch.place), grouped(branch.count), branch.branch,
                        branch.given ? "given" : "the longest");
  for (const HloAttributeCount& attribute : summary.unknown_attributes)
    text += fmt::format("unknown attribute {} x {}: first on line {}\n", quoted(attribute.name), attribute.count, attribute.first.line);
  for (const HloWarning& warning : summary.warnings)
    text += fmt::format("warning: {} x {}, first at {}:{}:{}\n", warning.message, warning.count, warning.first.file, warning.first.line,
                        warning.first.column);
  return text;
}

Json names_or_null(const std::optional<std::vector<std::string>>& names) { return names ? Json{*names} : Json{}; }

Json strategy_json(const HloModule& module, const HloCollectiveCount& count) {
  const HloStrategy* const strategy = strategy_of(instruction_at(module, count.place), instruction_at(module, count.runs_as));
  return strategy == nullptr ? Json{} : Json{{"name", strategy->name}, {"colors", strategy->colors}, {"rings", strategy->rings}};
}

Json hlo_collective_json(const ShownHlo& shown, const CollectiveRow& row) {
  const HloCollectiveCount& count = *row.count;
  Json json{{"instruction", name_at(shown.module, count.place)},
            {"runs_as", name_at(shown.module, count.runs_as)},
            {"kind", name_of(count.kind)},
            {"shape", short_text(*instruction_at(shown.module, count.place).shape)},
            {"op_name", or_null(instruction_at(shown.module, count.place).op_name)},
            {"axes", names_or_null(row.axes.axes)},
            {"groups", row.axes.groups},
            {"group_size", row.axes.group_size}};
  if (row.axes.shift) {
    Json fixed = Json::object();
    for (const auto& [axis, coordinate] : row.axes.shift->fixed) fixed.set(shown.mesh->axes()[static_cast<std::size_t>(axis)].name, coordinate);
    json.set("shift", Json{{"by", row.axes.shift->by}, {"wraps", row.axes.shift->wraps}, {"fixed", std::move(fixed)}});
  }
  json.update({{"bytes", count.bytes.count()},
               {"result_bytes", count.result_bytes.count()},
               {"operands", count.operands},
               {"asynchronous", count.asynchronous},
               {"async_collective_name", or_null(instruction_at(shown.module, count.place).attributes->async_collective_name)},
               {"count", count.count},
               {"strategy", strategy_json(shown.module, count)},
               {"overlap_s", row.window != nullptr ? Json(row.window->between.time.count()) : Json()},
               {"overlap_flops", row.window != nullptr ? Json(row.window->between.flops) : Json()},
               {"hidden_at_bytes_per_s", or_null(row.hidden_at)}});
  return json;
}

Json totals_json(const HloSummary& summary) {
  std::map<std::string, std::array<ExecutionSum, 3>> kinds;
  for (const HloCollectiveCount& count : summary.collectives) {
    auto& [executions, input, result] = kinds[std::string{name_of(count.kind)}];
    executions.add(1, count.count);
    input.add(count.bytes.count(), count.count);
    result.add(count.result_bytes.count(), count.count);
  }
  Json collectives = Json::object();
  for (const auto& [kind, sums] : kinds)
    collectives.set(kind, Json{{"count", sums[0].json()}, {"bytes", sums[1].json()}, {"result_bytes", sums[2].json()}});
  double transform_flops = 0;
  for (const HloTransformCount& count : summary.transforms) transform_flops += count.transform.flops * static_cast<double>(count.count);
  ExecutionSum products, flops, custom_flops;
  for (const HloProductCount& count : summary.products) {
    products.add(1, count.count);
    flops.add(count.product.flops, count.count);
  }
  for (const HloOpaqueCount& call : summary.custom_calls) custom_flops.add(call.cost.flops, call.count);
  return Json{
      {"collectives", std::move(collectives)}, {"dots", products.json()}, {"dot_flops", flops.json()}, {"transform_flops", transform_flops}, {"custom_call_flops", custom_flops.json()}, {"each_once", Json{{"flops", summary.each_once.flops}, {"vector", summary.each_once.vector}, {"bytes", summary.each_once.bytes}}}};
}

/// How many instructions of each opcode the text has, whatever runs.
Json opcodes_json(const HloModule& module) {
  std::map<std::string, std::int64_t> counts;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions) ++counts[opcode_text(instruction)];
  Json json = Json::object();
  for (const auto& [opcode, count] : counts) json.set(opcode, count);
  return json;
}

std::vector<std::pair<std::string, HloOtherEstimate>> other_estimates(const ShownHlo& shown) {
  std::vector<std::pair<std::string, HloOtherEstimate>> named;
  for (const HloOtherEstimate& other : shown.summary.other_estimates) named.emplace_back(name_at(shown.module, other.place), other);
  return named;
}

Json opaque_json(const HloModule& module, const std::vector<HloOpaqueCount>& calls, bool costs) {
  Json json = Json::array();
  for (const HloOpaqueCount& call : calls) {
    Json row{{"instruction", name_at(module, call.place)}, {"target", call.target}};
    if (costs) row.update({{"flops", call.cost.flops}, {"vector", call.cost.vector}, {"evidence", name_of(call.cost.evidence)}});
    row.update({{"why", or_null(call.cost.why)}, {"bytes", (costs && call.cost.bytes ? *call.cost.bytes : call.bytes).count()}, {"count", call.count}});
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace

Json module_memory_json(const HloPeakMemory& memory) {
  return Json{{"hbm_peak", memory.hbm.count()},        {"hbm_allocated", memory.allocated.count()}, {"hbm_required", memory.required.count()},
              {"parameters", memory.parameters.count()},
              {"outputs", memory.outputs.count()},     {"temporary", memory.temporary.count()},     {"aliased", memory.aliased.count()},
              {"vmem", memory.vmem.count()},           {"cmem", memory.cmem.count()},               {"host", memory.host.count()}};
}

std::string module_memory_text(const HloPeakMemory& memory, std::optional<Bytes> hbm) {
  std::string text = fmt::format("peak {}, allocated {}", to_text(memory.hbm), to_text(memory.allocated));
  if (hbm) text += fmt::format(", required {} of {}{}", to_text(memory.required), to_text(*hbm), memory.required > *hbm ? " (does not fit)" : "");
  text += " HBM; parameters " + to_text(memory.parameters);
  if (memory.vmem > Bytes{}) text += ", VMEM " + to_text(memory.vmem);
  if (memory.cmem > Bytes{}) text += ", CMEM " + to_text(memory.cmem);
  if (memory.host > Bytes{}) text += ", host " + to_text(memory.host);
  return text;
}

Expected<std::string> hlo_table(const ShownHlo& shown) {
  const auto rows = collective_rows(shown);
  if (!rows) return rows.error();
  const HloModule& module = shown.module;
  std::string text = fmt::format("{}: {}, {} devices, {} instructions in {} computations; times on {}\n", module.name,
                                 module.is_scheduled ? "scheduled" : "not scheduled", shown.mesh ? shown.mesh->devices() : devices_of(module),
                                 grouped(static_cast<std::int64_t>(instructions_of(module))), module.computations.size(), shown.machine);
  for (const std::string& assumed : shown.assumed) text += fmt::format("assumed: {}\n", assumed);
  text += '\n';
  text += collectives_text(shown, *rows) + products_text(shown) + transforms_text(shown) + windows_text(shown) + rest_text(shown);
  text += fmt::format("costs: {}\n", coverage_text(shown.summary.coverage));
  if (const std::string why = why_at_least(shown.summary.coverage); !why.empty()) text += "times are at least these: " + why + "\n";
  if (const auto others = other_estimates(shown); !others.empty()) text += fmt::format("in doubt: {}\n", other_estimates_text(others));
  if (const auto memory = peak_memory_of(module))
    text += "memory: " + module_memory_text(*memory, shown.hbm) + "\n";
  return text;
}

Expected<Json> hlo_json(const ShownHlo& shown) {
  const auto rows = collective_rows(shown);
  if (!rows) return rows.error();
  const HloModule& module = shown.module;
  const HloSummary& summary = shown.summary;
  Json collectives = Json::array(), dots = Json::array(), windows = Json::array(), copies = Json::array(), loops = Json::array(),
       transforms = Json::array(), waiting = Json::array(), conditionals = Json::array(), attributes = Json::array(), warnings = Json::array();
  for (const CollectiveRow& row : *rows) collectives.push_back(hlo_collective_json(shown, row));
  for (const HloProductCount& count : summary.products)
    dots.push_back(Json{{"instruction", name_at(module, count.place)},
                        {"runs_as", name_at(module, count.runs_as)},
                        {"kind", name_of(instruction_at(module, count.place).opcode)},
                        {"m", count.product.m},
                        {"n", count.product.n},
                        {"k", count.product.k},
                        {"batch", count.product.batch},
                        {"flops", count.product.flops},
                        {"count", count.count}});
  for (const HloTransformCount& count : summary.transforms)
    transforms.push_back(Json{{"instruction", name_at(module, count.place)},
                              {"runs_as", name_at(module, count.runs_as)},
                              {"kind", instruction_at(module, count.place).attributes->fft_type},
                              {"points", count.transform.points},
                              {"batch", count.transform.batch},
                              {"flops", count.transform.flops},
                              {"count", count.count}});
  for (const HloWindow& window : summary.windows)
    windows.push_back(Json{{"start", name_at(module, window.start)},
                           {"done", name_at(module, window.done)},
                           {"core_s", window.between.time.count()},
                           {"flops", window.between.flops},
                           {"bytes", window.between.bytes},
                           {"count", window.count}});
  for (const HloCopyCount& copy : summary.copies)
    copies.push_back(Json{{"instruction", name_at(module, copy.runs_as)},
                          {"from", space_text(copy.from)},
                          {"to", space_text(copy.to)},
                          {"bytes", copy.bytes.count()},
                          {"asynchronous", copy.asynchronous},
                          {"count", copy.count}});
  for (const HloLoopCount& loop : summary.loops)
    loops.push_back(Json{{"instruction", name_at(module, loop.place)},
                         {"trip_count", loop.trips.count},
                         {"source", source_text(loop.trips.source)},
                         {"count", loop.count}});
  for (const HloPlace& all_reduce : summary.waiting) waiting.push_back(name_at(module, all_reduce));
  for (const HloBranchCount& branch : summary.branches)
    conditionals.push_back(
        Json{{"instruction", name_at(module, branch.place)}, {"branch", branch.branch}, {"given", branch.given}, {"count", branch.count}});
  for (const HloAttributeCount& attribute : summary.unknown_attributes)
    attributes.push_back(Json{{"name", attribute.name}, {"count", attribute.count}, {"line", attribute.first.line}});
  for (const HloWarning& warning : summary.warnings)
    warnings.push_back(Json{{"message", warning.message}, {"count", warning.count}, {"line", warning.first.line}, {"column", warning.first.column}});
  const auto memory = peak_memory_of(module);
  return Json{{"module", module.name},
              {"file", module.file},
              {"scheduled", module.is_scheduled},
              {"devices", shown.mesh ? shown.mesh->devices() : devices_of(module)},
              {"computations", module.computations.size()},
              {"instructions", instructions_of(module)},
              {"opcodes", opcodes_json(module)},
              {"machine", shown.machine},
              {"assumed", shown.assumed},
              {"collectives", std::move(collectives)},
              {"dots", std::move(dots)},
              {"transforms", std::move(transforms)},
              {"windows", std::move(windows)},
              {"copies", std::move(copies)},
              {"custom_calls", opaque_json(module, summary.custom_calls, true)},
              {"opaque", opaque_json(module, summary.opaque, false)},
              {"loops", std::move(loops)},
              {"conditionals", std::move(conditionals)},
              {"unknown_attributes", std::move(attributes)},
              {"waiting", std::move(waiting)},
              {"coverage", coverage_json(summary.coverage)},
              {"other_estimates", other_estimates_json(other_estimates(shown))},
              {"totals", totals_json(summary)},
              {"peak_memory_bytes", memory ? Json(memory->hbm.count()) : Json()},
              {"module_memory_bytes", memory ? module_memory_json(*memory) : Json()},
              {"hbm_bytes", shown.hbm ? Json(shown.hbm->count()) : Json()},
              {"warnings", std::move(warnings)}};
}

}  // namespace podsim
