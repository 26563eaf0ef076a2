#include "validation/importers/hlo_stats.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/units.hpp"
#include "validation/csv.hpp"
#include "validation/importers/hlo_op.hpp"
#include "validation/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

class Table {
 public:
  Table(std::string_view text, const std::string& file, const ImportOptions& options) : reader_{text, file}, file_{file}, options_{options} {}
  Expected<Imported> read();

 private:
  [[nodiscard]] bool has(const std::string& column) const { return columns_.contains(column); }
  [[nodiscard]] const CsvField& field(const CsvRow& row, const std::string& column) const { return row.fields[columns_.at(column)]; }
  [[nodiscard]] std::string_view text(const CsvRow& row, const std::string& column) const {
    return has(column) ? std::string_view{field(row, column).text} : std::string_view{};
  }
  Done read_collective(const CsvRow& row);
  Done read_operation(const CsvRow& row);
  void tell_devices();
  void skip(std::string_view why) { ++skipped_[std::string{why}]; }

  CsvReader reader_;
  const std::string& file_;
  const ImportOptions& options_;
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

std::optional<ObservedOp> collective_named(std::string_view kind) {
  // "reduce_scatter(all-reduce-scatter fusion)"
  std::string name{kind.substr(0, kind.find('('))};
  std::ranges::replace(name, '_', '-');
  if (name == "collective-permute") return permute;
  const auto op = observed_op_named(name);
  return op && *op != matmul && *op != hbm_copy ? op : std::nullopt;
}

Done Table::read_collective(const CsvRow& row) {
  const CsvField& kind = field(row, "kind");
  if (kind.text.starts_with("async")) return skip("starts and ends of asynchronous collectives, which are no transfers"), done();
  const auto op = collective_named(kind.text);
  if (!op) return skip("of kinds that are no collectives"), done();
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
  if (!shapes.empty()) found.dtype = dtype_named(shapes.front().dtype);
  if (text(row, "in_megacore_fusion") == "yes") found.schedule = ObservedSchedule::overlapped;
  found.source = field(row, "hlo_op").text;
  found.where = row.where;
  imported_.observations.push_back(std::move(found));
  return done();
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

Done Table::read_operation(const CsvRow& row) {
  const CsvField& rate_field = field(row, "model_GFLOPs");
  double rate = 0;
  const char* end = rate_field.text.data() + rate_field.text.size();
  const auto [rest, status] = std::from_chars(rate_field.text.data(), end, rate);
  if (status != std::errc{} || rest != end || !std::isfinite(rate) || rate < 0)
    return Diagnostic{rate_field.where, "a rate must be a number that is not negative, got " + quoted(rate_field.text)};
  if (FlopsPerSecond{rate * 1e9} > options_.core_peak) return skip("rejected: their rate is above the peak of a core"), done();
  const auto time = micros(field(row, "avg_self_time_us"));
  if (!time) return time.error();
  HloOp op;
  op.name = field(row, "hlo_op").text;
  op.opcode = "fusion";
  op.results = shapes_in(text(row, "result_shapes_prefix").substr(0, text(row, "result_shapes_prefix").find(" fusion(")));
  const std::string& category = field(row, "category").text;
  if (observed_op_of(op, category) != matmul) return skip("that are no matmuls (collectives are in a table of their own)"), done();
  auto found = observation_of(op, {category, Flops{rate * 1e9 * time->count()}, *time}, options_);
  if (!found) return skip(found.error().message), done();
  found->source = op.name;
  found->where = row.where;
  imported_.observations.push_back(*std::move(found));
  return done();
}

Expected<Imported> Table::read() {
  const auto heading = reader_.next();
  if (!heading) return heading.error();
  if (!*heading) return Diagnostic{{file_, 1, 1}, "a table of HLO statistics must begin with a heading"};
  for (std::size_t i = 0; i < (*heading)->fields.size(); ++i)
    if (!columns_.emplace((*heading)->fields[i].text, i).second)
      return Diagnostic{(*heading)->fields[i].where, "column " + quoted((*heading)->fields[i].text) + " is there twice"};
  const auto has_all = [this](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [this](const char* name) { return has(name); });
  };
  const bool collectives = has_all({"kind", "hlo_op", "input_bytes", "output_bytes", "avg_self_time_us"});
  if (!collectives && !has_all({"category", "hlo_op", "avg_self_time_us", "model_GFLOPs"}))
    return Diagnostic{
        (*heading)->where,
        "expected the columns kind, hlo_op, input_bytes, output_bytes, avg_self_time_us, or category, hlo_op, avg_self_time_us, model_GFLOPs"};
  while (true) {
    const auto row = reader_.next();
    if (!row) return row.error();
    if (!*row) break;
    if ((*row)->fields.size() != columns_.size())
      return Diagnostic{(*row)->where, "a row must have as many fields as the heading, " + std::to_string(columns_.size()) + ", got " +
                                           std::to_string((*row)->fields.size())};
    if (Done read = collectives ? read_collective(**row) : read_operation(**row); !read) return read.error();
  }
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

}  // namespace

Expected<Imported> import_hlo_stats(std::string_view text, const std::string& file, const ImportOptions& options) {
  return Table{text, file, options}.read();
}

}  // namespace podsim
