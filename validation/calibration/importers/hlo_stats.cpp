#include "validation/calibration/importers/hlo_stats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/base/csv.hpp"
#include "validation/calibration/importers/hlo_op.hpp"
#include "validation/calibration/importers/step_category.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

class Table {
 public:
  Table(std::string_view text, const std::string& file, ImportOptions options) : reader_{text, file}, file_{file}, options_{std::move(options)} {}
  Expected<Imported> read();
  Expected<ProfiledOperations> read_all(const ProfileOptions& options);

 private:
  /// The heading: whether the table is one of collectives.
  Expected<bool> read_heading();
  /// Calls a member function with each row.
  template <class Read>
  Status each_row(Read read);
  Status read_profiled(const CsvRow& row, bool collectives, const ProfileOptions& options, ProfiledOperations& found);

  [[nodiscard]] bool has(const std::string& column) const { return columns_.contains(column); }
  [[nodiscard]] const CsvField& field(const CsvRow& row, const std::string& column) const { return row.fields[columns_.at(column)]; }
  [[nodiscard]] std::string_view text(const CsvRow& row, const std::string& column) const {
    return has(column) ? std::string_view{field(row, column).text} : std::string_view{};
  }
  Status read_collective(const CsvRow& row);
  Status read_operation(const CsvRow& row);
  void tell_devices();
  void skip(std::string_view why) { ++skipped_[std::string{why}]; }

  CsvReader reader_;
  const std::string& file_;
  ImportOptions options_;
  SourceLocation heading_;
  std::vector<bool> done_;  // of operations of a profile: which are the ends of others
  std::map<std::string, std::size_t> columns_;
  Imported imported_;
  std::map<std::string, std::size_t> skipped_;  // rows by reason
};

Expected<Seconds> micros(const CsvField& field) {
  const auto value = positive_number(field.text, "a time", field.where);
  if (!value) return value.error();
  const Seconds time{*value / 1e6};
  if (!(time > Seconds{})) return Diagnostic{field.where, "a time must be a positive number, got " + quoted(field.text)};
  return time;
}

Expected<double> not_negative(const CsvField& field, std::string_view what) {
  double value = 0;
  const char* end = field.text.data() + field.text.size();
  const auto [rest, status] = std::from_chars(field.text.data(), end, value);
  if (status != std::errc{} || rest != end || !std::isfinite(value) || value < 0)
    return Diagnostic{field.where, fmt::format("{} must be a number that is not negative, got {}", what, quoted(field.text))};
  return value;
}

std::optional<ObservedOp> collective_named(std::string_view kind) {
  // "reduce_scatter(all-reduce-scatter fusion)"
  std::string name{kind.substr(0, kind.find('('))};
  std::ranges::replace(name, '_', '-');
  if (name == "collective-permute") return permute;
  const auto op = observed_op_named(name);
  return op && *op != matmul && *op != hbm_copy ? op : std::nullopt;
}

Status Table::read_collective(const CsvRow& row) {
  const CsvField& kind = field(row, "kind");
  if (kind.text.starts_with("async")) return skip("starts and ends of asynchronous collectives, which are no transfers"), success();
  const auto op = collective_named(kind.text);
  if (!op) return skip("of kinds that are no collectives"), success();
  const auto time = micros(field(row, "avg_self_time_us"));
  if (!time) return time.error();
  const CsvField& input = field(row, "input_bytes");
  const CsvField& output = field(row, "output_bytes");
  const auto in = parse_integer(input.text, 1, most_observed_bytes.count(), input.where);
  if (!in) return in.error();
  const auto out = parse_integer(output.text, 1, most_observed_bytes.count(), output.where);
  if (!out) return out.error();
  Observation found;
  found.op = *op;
  found.bytes = Bytes{*in};
  found.time = *time;
  found.devices = 0;  // tell_devices
  const std::int64_t large = *op == reduce_scatter ? *in : *out, small = *op == reduce_scatter ? *out : *in;
  if (*op == all_gather || *op == reduce_scatter) {
    if (large % small != 0 || large == small || large / small > most_observed_devices)
      return Diagnostic{output.where, "bytes of an " + std::string{name_of(*op)} + " must be a multiple of each other, got " + quoted(input.text) +
                                          " in, " + quoted(output.text) + " out"};
    found.devices = static_cast<int>(large / small);
  }
  const auto shapes = shapes_in(text(row, "input_shape"));
  if (!shapes.empty()) found.dtype = dtype_named(name_of(shapes.front().type));
  if (text(row, "in_megacore_fusion") == "yes") found.schedule = ObservedSchedule::overlapped;
  found.source = field(row, "hlo_op").text;
  found.where = row.where;
  imported_.observations.push_back(std::move(found));
  return success();
}

/// The devices of collectives that do not tell: those of the others, if all agree, else those of the options.
void Table::tell_devices() {
  std::set<int> told;
  for (const Observation& row : imported_.observations)
    if (row.devices > 1) told.insert(row.devices);
  const int devices = options_.devices > 0 ? options_.devices : told.size() == 1 ? *told.begin() : 0;
  std::size_t taken = 0, before = imported_.observations.size();
  for (Observation& row : imported_.observations)
    if (row.devices == 0 && devices > 0) {
      row.devices = devices;
      ++taken;
    }
  std::erase_if(imported_.observations, [](const Observation& row) { return row.devices == 0; });
  if (taken > 0)
    imported_.notes.push_back(counted(taken, "collective") + " taken to be of " + std::to_string(devices) + " devices, which their rows do not tell");
  before -= imported_.observations.size();
  if (before > 0) skipped_["collectives of which nothing tells the devices"] += before;
}

Status Table::read_operation(const CsvRow& row) {
  const CsvField& rate_field = field(row, "model_GFLOPs");
  const auto told = not_negative(rate_field, "a rate");
  if (!told) return told.error();
  const double rate = *told;
  if (FlopsPerSecond{rate * 1e9} > options_.core_peak) return skip("rejected: their rate is above the peak of a core"), success();
  const auto time = micros(field(row, "avg_self_time_us"));
  if (!time) return time.error();
  HloOp op;
  op.name = field(row, "hlo_op").text;
  op.opcode = "fusion";
  op.results = shapes_in(text(row, "result_shapes_prefix").substr(0, text(row, "result_shapes_prefix").find(" fusion(")));
  const std::string& category = field(row, "category").text;
  if (observed_op_of(op, category) != matmul) return skip("that are no matmuls (collectives are in a table of their own)"), success();
  auto found = observation_of(op, {category, Flops{rate * 1e9 * time->count()}, *time}, options_);
  if (!found) return skip(found.error().message), success();
  found->source = op.name;
  found->where = row.where;
  imported_.observations.push_back(*std::move(found));
  return success();
}

Expected<bool> Table::read_heading() {
  const auto heading = reader_.next();
  if (!heading) return heading.error();
  if (!*heading) return Diagnostic{{file_, 1, 1}, "a table of HLO statistics must begin with a heading"};
  heading_ = (*heading)->where;
  for (std::size_t i = 0; i < (*heading)->fields.size(); ++i)
    if (!columns_.emplace((*heading)->fields[i].text, i).second)
      return Diagnostic{(*heading)->fields[i].where, "column " + quoted((*heading)->fields[i].text) + " is there twice"};
  const auto has_all = [this](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [this](const char* name) { return has(name); });
  };
  if (has_all({"kind", "hlo_op", "input_bytes", "output_bytes", "avg_self_time_us"})) return true;
  if (has_all({"category", "hlo_op", "avg_self_time_us", "model_GFLOPs"})) return false;
  return Diagnostic{
      heading_,
      "expected the columns kind, hlo_op, input_bytes, output_bytes, avg_self_time_us, or category, hlo_op, avg_self_time_us, model_GFLOPs"};
}

template <class Read>
Status Table::each_row(Read read) {
  while (true) {
    const auto row = reader_.next();
    if (!row) return row.error();
    if (!*row) return success();
    if ((*row)->fields.size() != columns_.size())
      return Diagnostic{(*row)->where, "a row must have as many fields as the heading, " + std::to_string(columns_.size()) + ", got " +
                                           std::to_string((*row)->fields.size())};
    if (Status one = read(**row); !one) return one.error();
  }
}

Expected<Imported> Table::read() {
  const auto heading = read_heading();
  if (!heading) return heading.error();
  const bool collectives = *heading;
  if (Status rows = each_row([&](const CsvRow& row) { return collectives ? read_collective(row) : read_operation(row); }); !rows) return rows.error();
  if (collectives) tell_devices();
  for (const auto& [why, count] : skipped_) imported_.notes.push_back(counted(count, "row") + " skipped: " + why);
  imported_.notes.emplace_back("times are means over all occurrences and cores, with the waiting for slower devices in them");
  if (!collectives) {
    imported_.notes.push_back("FLOPs are of one core, a matmul those of " + counted(static_cast<std::size_t>(std::max(options_.cores, 0)), "core"));
    imported_.notes.emplace_back("of a result of more than two dimensions m and n are the split nearest to a square");
    if (is_unlimited(options_.core_peak)) imported_.notes.emplace_back("no peak is given, so rates above it are not rejected");
  }
  return std::move(imported_);
}

Status Table::read_profiled(const CsvRow& row, bool collectives, const ProfileOptions& options, ProfiledOperations& found) {
  const auto count = parse_integer(field(row, "occurrences").text, 1, std::int64_t{1} << 40, field(row, "occurrences").where);
  if (!count) return count.error();
  const CsvField& average = field(row, "avg_self_time_us");
  const auto time = not_negative(average, "a time");
  if (!time) return time.error();
  const std::string& name = field(row, "hlo_op").text;
  ProfiledOperation operation;
  if (collectives) {
    const CsvField& input = field(row, "input_bytes");
    const CsvField& output = field(row, "output_bytes");
    const auto in = parse_integer(input.text, 0, most_observed_bytes.count(), input.where);
    if (!in) return in.error();
    const auto out = parse_integer(output.text, 0, most_observed_bytes.count(), output.where);
    if (!out) return out.error();
    std::string_view kind = field(row, "kind").text;
    if (kind.starts_with("async_")) kind.remove_prefix(6);
    std::string word{kind.substr(0, kind.find('('))};
    std::ranges::replace(word, '_', '-');
    word = without_end(word);
    HloOp op;
    op.name = name;
    op.opcode = word;
    operation = described_operation(std::move(op), {}, {}, {}, options.cores);
    operation.bytes = Bytes{*in};
    const std::int64_t large = std::max(*in, *out), small = std::min(*in, *out);
    if (small > 0 && large > small && large % small == 0 && large / small <= most_observed_devices) operation.group = static_cast<int>(large / small);
  } else {
    const auto rate = not_negative(field(row, "model_GFLOPs"), "a rate");
    if (!rate) return rate.error();
    HloOp op;
    op.name = name;
    op.opcode = name.substr(0, name.find('.'));
    // The results, and behind them what they are the results of.
    const std::string_view shapes = this->text(row, "result_shapes_prefix");
    op.results = shapes_in(shapes.substr(0, shapes.starts_with('(') ? shapes.find(") ") : shapes.find(' ')));
    operation = described_operation(std::move(op), shapes, field(row, "category").text, Flops{*rate * *time * 1e3}, options.cores);
  }
  operation.occurrences = static_cast<double>(*count);
  operation.self = Seconds{*time * 1e-6 * static_cast<double>(*count)};
  if (!fits_clock(operation.self)) return Diagnostic{average.where, "this time of all occurrences cannot be: more than 23 days"};
  found.operations.push_back(std::move(operation));
  done_.push_back(is_done(name));
  return success();
}

/// The dones of asynchronous operations join their starts, which have the same number.
void join_ends(std::vector<ProfiledOperation>& operations, const std::vector<bool>& done) {
  std::map<std::string, std::size_t> starts;
  std::vector<ProfiledOperation> joined;
  for (std::size_t i = 0; i < operations.size(); ++i)
    if (!done[i]) {
      starts.try_emplace(operations[i].name, joined.size());
      joined.push_back(operations[i]);
    }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!done[i]) continue;
    if (const auto start = starts.find(operations[i].name); start != starts.end())
      joined[start->second].self += operations[i].self;
    else
      joined.push_back(operations[i]);
  }
  operations = std::move(joined);
}

Expected<ProfiledOperations> Table::read_all(const ProfileOptions& options) {
  const auto collectives = read_heading();
  if (!collectives) return collectives.error();
  if (!has("occurrences")) return Diagnostic{heading_, "expected a column occurrences beside the times"};
  if (options.steps > 0 && options.devices <= 0)
    return Diagnostic{{file_}, "a table sums over devices and steps: expected how many devices beside how many steps"};
  ProfiledOperations found;
  if (Status rows = each_row([&](const CsvRow& row) { return read_profiled(row, *collectives, options, found); }); !rows) return rows.error();
  if (found.operations.empty()) return Diagnostic{heading_, "there is no operation below this heading"};
  join_ends(found.operations, done_);
  const int devices = std::max(options.devices, 1) * std::max(options.cores, 1);
  for (ProfiledOperation& operation : found.operations) {
    operation.occurrences /= devices;
    operation.self = operation.self / static_cast<double>(devices);
    found.time += operation.self;
  }
  const CountedSteps by_count = steps_by_occurrences(found.operations, options.layers);
  found.steps = options.steps > 0 ? options.steps : by_count.steps;
  found.notes.push_back(counted(static_cast<std::size_t>(found.steps), options.devices > 0 ? "step" : "step times device") +
                        (options.steps > 0 ? ", as told" : by_count.why + "; `steps` and `devices` may say otherwise"));
  found.notes.emplace_back(
      "a table does not tell when the device idles, nor what is hidden behind other operations: a measured step is the sum of its operations");
  return found;
}

}  // namespace

Expected<ProfiledOperations> operations_of_hlo_stats(std::string_view text, const std::string& file, const ProfileOptions& options) {
  return Table{text, file, {}}.read_all(options);
}

Expected<Imported> import_hlo_stats(std::string_view text, const std::string& file, const ImportOptions& options) {
  return Table{text, file, options}.read();
}

}  // namespace podsim
