#include "validation/calibration/observations.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "sim/base/units.hpp"
#include "sim/base/csv.hpp"
#include "sim/machine/hardware_ranges.hpp"

namespace podsim {

namespace {

// In the order of the enums.
constexpr std::array<std::string_view, 13> op_names = {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "reduce",
                                                       "permute",    "matmul",         "hbm_copy",   "fft",        "ifft",      "training-step",
                                                       "run"};
constexpr std::array<std::string_view, 4> schedule_names = {"unknown", "plain", "overlapped", "bidirectional"};

template <class Enum, std::size_t n>
std::optional<Enum> named(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

template <std::size_t n>
Diagnostic no_such(const CsvField& field, std::string_view noun, const std::array<std::string_view, n>& names) {
  std::string message = quoted(field.text) + " is no " + std::string{noun} + did_you_mean(field.text, {names.begin(), names.end()}) + "; there are";
  for (std::size_t i = 0; i < n; ++i) message += (i == 0 ? " " : ", ") + std::string{names[i]};
  return {field.where, message};
}

// The columns, in the order in which they are written.
enum Column { op, devices, bytes, seconds, axis, array_dim, dtype, m, n, k, schedule, source, slice, groups, in_place, latency_ms, points, mesh, step, pods, run_name, spread, column_count };
constexpr std::array<std::string_view, column_count> column_names = {"op", "devices", "bytes",    "seconds", "axis",  "array_dim", "dtype",    "m",
                                                                     "n",  "k",       "schedule", "source",  "slice", "groups",    "in_place", "latency_ms",
                                                                     "points", "mesh", "step", "pods", "run", "spread"};
constexpr int required_columns = 4;

// So that no product of two of them is more than 64 bits hold.
constexpr std::int64_t most_devices = std::int64_t{1} << 20;
constexpr std::int64_t most_bytes = std::int64_t{1} << 42;
constexpr std::int64_t most_elements = std::int64_t{1} << 30;

/// A row, its fields found by their column. Reading goes on after the first thing that is wrong, which is the one that is told.
class RowReader {
 public:
  RowReader(const CsvRow& row, const std::array<int, column_count>& positions) : row_{row}, positions_{positions} {}

  [[nodiscard]] const CsvField* field(Column column) const {
    const int position = positions_[column];
    const CsvField* found = position < 0 ? nullptr : &row_.fields[static_cast<std::size_t>(position)];
    return found == nullptr || found->text.empty() ? nullptr : found;
  }
  void fail(Diagnostic problem) {
    if (!problem_) problem_ = std::move(problem);
  }
  void absent(Column column, std::string_view noun) {
    if (const CsvField* found = field(column))
      fail({found->where, std::string{column_names[column]} + " does not belong to " + std::string{noun} + ", got " + quoted(found->text)});
  }
  std::int64_t count(Column column, std::int64_t most) {
    const CsvField* found = field(column);
    if (found == nullptr) return fail({row_.where, "this row has no " + std::string{column_names[column]}}), 0;
    const auto value = parse_integer(found->text, 1, most, found->where);
    if (!value) return fail(prefixed(column, value.error())), 0;
    return *value;
  }
  double positive(Column column) { return number(column, [](double value) { return value > 0; }, "a positive number"); }
  double not_negative(Column column) { return number(column, [](double value) { return value >= 0; }, "a number that is not negative"); }

  Expected<Observation> read();
  /// A row of a table of products: without op, devices, bytes.
  Expected<Observation> read_product();

 private:
  static Diagnostic prefixed(Column column, const Diagnostic& problem) {
    return {problem.where, std::string{column_names[column]} + ": " + problem.message};
  }
  template <class Allowed>
  double number(Column column, Allowed allowed, std::string_view expected) {
    const CsvField* found = field(column);
    if (found == nullptr) return fail({row_.where, "this row has no " + std::string{column_names[column]}}), 0;
    double value = 0;
    const char* end = found->text.data() + found->text.size();
    const auto [rest, status] = std::from_chars(found->text.data(), end, value);
    if (status == std::errc{} && rest == end && allowed(value) && std::isfinite(value)) return value;
    return fail({found->where, fmt::format("{} must be {}, got {}", column_names[column], expected, quoted(found->text))}), 0;
  }
  void read_shape(Observation& row);
  void read_place(Observation& row);
  void read_fft(Observation& row);
  void read_step(Observation& row);
  void read_run(Observation& row);

  const CsvRow& row_;
  const std::array<int, column_count>& positions_;
  std::optional<Diagnostic> problem_;
};

Expected<Observation> RowReader::read() {
  Observation row;
  row.where = row_.where;
  const CsvField* name = field(op);
  if (name == nullptr) return Diagnostic{row_.where, "this row has no op"};
  const auto found_op = observed_op_named(name->text);
  if (!found_op) return no_such(*name, "operation", op_names);
  row.op = *found_op;
  row.devices = static_cast<int>(count(devices, most_devices));
  if (row.op != ObservedOp::matmul && !is_described(row))
    row.bytes = Bytes{count(bytes, most_bytes)};
  else if (const CsvField* found = field(bytes); found != nullptr && found->text != "0")
    absent(bytes, is_training_step(row) ? "a training step" : is_run(row) ? "a run" : "a matmul");
  row.time = Seconds{positive(seconds)};
  const bool local = row.op == ObservedOp::matmul || row.op == ObservedOp::hbm_copy;
  if (local) {
    const std::string noun = "op " + std::string{name_of(row.op)};
    for (const Column column : {axis, array_dim, schedule, groups, in_place}) absent(column, noun);
  }
  if (const CsvField* found = field(axis)) row.axis = found->text;
  if (const CsvField* found = field(array_dim)) {
    const auto value = parse_integer(found->text, 0, 63, found->where);
    if (!value)
      fail(prefixed(array_dim, value.error()));
    else
      row.array_dim = static_cast<int>(*value);
  }
  if (const CsvField* found = field(dtype)) {
    row.dtype = dtype_named(found->text);
    if (!row.dtype) fail({found->where, quoted(found->text) + " is no dtype; there are f32, bf16, and an empty field if it is another"});
  }
  if (const CsvField* found = field(schedule)) {
    const auto value = observed_schedule_named(found->text);
    if (!value)
      fail(no_such(*found, "schedule", schedule_names));
    else
      row.schedule = *value;
  }
  read_shape(row);
  read_place(row);
  read_fft(row);
  read_step(row);
  read_run(row);
  if (field(spread) != nullptr) row.spread = not_negative(spread);
  if (const CsvField* found = field(source)) row.source = found->text;
  if (problem_) return *problem_;
  return row;
}

Expected<Observation> RowReader::read_product() {
  Observation row;
  row.where = row_.where;
  row.op = ObservedOp::matmul;
  row.m = count(m, most_elements);
  row.n = count(n, most_elements);
  row.k = count(k, most_elements);
  row.time = positions_[latency_ms] >= 0 ? Seconds{1e-3 * positive(latency_ms)} : Seconds{positive(seconds)};
  if (const CsvField* found = field(dtype)) {
    row.dtype = dtype_named(found->text);
    if (!row.dtype) fail({found->where, quoted(found->text) + " is no dtype; there are f32, bf16, and an empty field if it is another"});
  }
  if (const CsvField* found = field(source)) row.source = found->text;
  if (problem_) return *problem_;
  return row;
}

void RowReader::read_shape(Observation& row) {
  const bool any = field(m) != nullptr || field(n) != nullptr || field(k) != nullptr;
  if (row.op == ObservedOp::hbm_copy || is_fft(row) || is_described(row)) {
    for (const Column column : {m, n, k}) absent(column, "op " + std::string{name_of(row.op)});
  } else if (any || row.op == ObservedOp::matmul) {
    row.m = count(m, most_elements);
    row.n = count(n, most_elements);
    row.k = count(k, most_elements);
  }
}

void RowReader::read_place(Observation& row) {
  if (const CsvField* found = field(slice)) row.slice = found->text;
  if (field(groups) != nullptr) row.groups = static_cast<int>(count(groups, most_devices));
  if (row.groups > 1 && row.slice.empty()) fail({field(groups)->where, "groups at once need the column slice: where they ran"});
  if (row.groups > 1 && !row.axis.empty()) fail({field(axis)->where, "a row names the axis or the groups that run at once, found both"});
  if (const CsvField* found = field(in_place)) {
    row.in_place = found->text == "yes";
    if (!row.in_place && found->text != "no") fail({found->where, "in_place must be yes or no, got " + quoted(found->text)});
  }
}

void RowReader::read_fft(Observation& row) {
  if (!is_fft(row)) {
    for (const Column column : {points, mesh}) absent(column, "op " + std::string{name_of(row.op)});
    return;
  }
  for (const Column column : {axis, array_dim, schedule, groups, in_place}) absent(column, "op " + std::string{name_of(row.op)});
  constexpr std::int64_t most_points = std::int64_t{1} << 14;
  row.points = count(points, most_points);
  const CsvField* found = field(mesh);
  if (found == nullptr) return fail({row_.where, "this row has no mesh"});
  const std::size_t x = found->text.find('x');
  const auto size = [&](const std::string& text) { return parse_integer(text, 1, most_devices, found->where); };
  const auto first = size(found->text.substr(0, x)), second = size(x == std::string::npos ? std::string{} : found->text.substr(x + 1));
  if (!first || !second || *first * *second != row.devices)
    return fail({found->where, "expected the devices that divide the first two dimensions, as 2x4 of 8, got " + quoted(found->text)});
  row.mesh = {static_cast<int>(*first), static_cast<int>(*second)};
  if (problem_) return;
  const std::int64_t elements = row.points * row.points * row.points;
  if (row.points % *first != 0 || row.points % *second != 0 || row.bytes != elements / row.devices * size_of(DType::c64))
    fail({row_.where, "the bytes of an FFT are those of a device's block of complex numbers, which the mesh must divide"});
}

void RowReader::read_step(Observation& row) {
  const std::string noun = "op " + std::string{name_of(row.op)};
  if (!is_training_step(row)) {
    for (const Column column : {step, pods}) absent(column, noun);
    return;
  }
  for (const Column column : {axis, array_dim, dtype, schedule, groups, in_place}) absent(column, noun);
  if (const CsvField* found = field(step)) row.step = found->text;
  else fail({row_.where, "this row has no step: the name that its study has for it"});
  if (field(pods) != nullptr) row.pods = static_cast<int>(count(pods, most_devices));
  if (row.devices % row.pods != 0) fail({field(pods)->where, std::to_string(row.devices) + " devices are not on " + std::to_string(row.pods) + " equal slices"});
}

void RowReader::read_run(Observation& row) {
  const std::string noun = "op " + std::string{name_of(row.op)};
  if (!is_run(row)) return absent(run_name, noun);
  for (const Column column : {axis, array_dim, dtype, schedule, groups, in_place, slice}) absent(column, noun);
  if (const CsvField* found = field(run_name)) row.run = found->text;
  else fail({row_.where, "this row has no run: the name that its study has for it"});
}

/// m, n, k and one time, and nothing that products of one device do not have.
bool is_product_table(const std::array<int, column_count>& positions) {
  const auto has = [&](Column column) { return positions[column] >= 0; };
  for (const Column column : {op, devices, bytes, axis, array_dim, schedule, step, run_name})
    if (has(column)) return false;
  return has(m) && has(n) && has(k) && has(seconds) != has(latency_ms);
}

Expected<std::array<int, column_count>> read_heading(const CsvRow& heading) {
  std::array<int, column_count> positions;
  positions.fill(-1);
  for (std::size_t i = 0; i < heading.fields.size(); ++i) {
    const CsvField& field = heading.fields[i];
    const auto column = named<Column>(column_names, field.text);
    if (!column) return no_such(field, "column", column_names);
    if (positions[*column] >= 0) return Diagnostic{field.where, "column " + quoted(field.text) + " is there twice"};
    positions[*column] = static_cast<int>(i);
  }
  if (is_product_table(positions)) return positions;
  if (const int at = positions[latency_ms]; at >= 0)
    return Diagnostic{heading.fields[static_cast<std::size_t>(at)].where,
                      "latency_ms belongs to a table of products, with m, n, k and without op, devices and bytes; elsewhere times are seconds"};
  for (std::size_t column = 0; column < required_columns; ++column)
    if (positions[column] < 0) return Diagnostic{heading.where, "the heading lacks the column " + std::string{column_names[column]}};
  return positions;
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string text_of(const Observation& row, Column column) {
  const auto count_or_none = [](std::int64_t count) { return count == 0 ? std::string{} : std::to_string(count); };
  switch (column) {
    case op: return std::string{name_of(row.op)};
    case devices: return std::to_string(row.devices);
    case bytes: return row.op == ObservedOp::matmul || is_described(row) ? std::string{} : std::to_string(row.bytes.count());
    case seconds: return number_text(row.time.count());
    case axis: return row.axis;
    case array_dim: return row.array_dim ? std::to_string(*row.array_dim) : std::string{};
    case dtype: return row.dtype ? std::string{name_of(*row.dtype)} : std::string{};
    case m: return count_or_none(row.m);
    case n: return count_or_none(row.n);
    case k: return count_or_none(row.k);
    case schedule: return row.schedule == ObservedSchedule::unknown ? std::string{} : std::string{name_of(row.schedule)};
    case source: return row.source;
    case slice: return row.slice;
    case groups: return row.groups == 1 ? std::string{} : std::to_string(row.groups);
    case in_place: return row.in_place ? "yes" : "";
    case points: return count_or_none(row.points);
    case mesh: return row.mesh.empty() ? std::string{} : std::to_string(row.mesh[0]) + "x" + std::to_string(row.mesh[1]);
    case step: return row.step;
    case pods: return row.pods == 1 ? std::string{} : std::to_string(row.pods);
    case run_name: return row.run;
    case spread: return row.spread ? number_text(*row.spread) : std::string{};
    case latency_ms:
    case column_count: break;
  }
  return {};
}

}  // namespace

std::string_view name_of(ObservedOp op) { return op_names[static_cast<std::size_t>(op)]; }
std::optional<ObservedOp> observed_op_named(std::string_view name) { return named<ObservedOp>(op_names, name); }
std::string_view name_of(ObservedSchedule schedule) { return schedule_names[static_cast<std::size_t>(schedule)]; }
std::optional<ObservedSchedule> observed_schedule_named(std::string_view name) { return named<ObservedSchedule>(schedule_names, name); }

Expected<std::vector<Observation>> read_observations(std::string_view text, const std::string& file) {
  CsvReader reader{text, file};
  const auto heading = reader.next();
  if (!heading) return heading.error();
  if (!*heading) return Diagnostic{{file, 1, 1}, "observations must begin with a heading: op,devices,bytes,seconds"};
  const auto positions = read_heading(**heading);
  if (!positions) return positions.error();

  std::vector<Observation> observations;
  while (true) {
    const auto row = reader.next();
    if (!row) return row.error();
    if (!*row) return observations;
    const std::size_t expected = (*heading)->fields.size(), found = (*row)->fields.size();
    if (found != expected) {
      const SourceLocation& where = found > expected ? (*row)->fields[expected].where : (*row)->fields.back().where;
      return Diagnostic{where, "a row must have as many fields as the heading, " + std::to_string(expected) + ", got " + std::to_string(found)};
    }
    RowReader reader_of_row{**row, *positions};
    auto observation = is_product_table(*positions) ? reader_of_row.read_product() : reader_of_row.read();
    if (!observation) return observation.error();
    observations.push_back(*std::move(observation));
  }
}

std::vector<Diagnostic> doubts_about(const std::vector<Observation>& observations) {
  std::vector<Diagnostic> doubts;
  for (const Observation& o : observations) {
    const double seconds = o.time.count(), flops = 2.0 * static_cast<double>(o.m) * static_cast<double>(o.n) * static_cast<double>(o.k);
    const std::string name{name_of(o.op)};
    auto doubt = doubt_about("observed time", seconds, "the time of " + name);
    if (!doubt && flops > 0) doubt = doubt_about("observed rate of a product", flops / seconds, "the rate of " + name);
    if (!doubt && flops == 0 && !is_fft(o) && !is_described(o)) doubt = doubt_about("observed bandwidth", static_cast<double>(o.bytes.count()) / seconds, "the bytes of " + name + " per second");
    if (doubt) doubts.push_back({o.where, *std::move(doubt)});
  }
  return doubts;
}

std::string write_observations(const std::vector<Observation>& observations) {
  std::vector<Column> columns;
  for (int i = 0; i < column_count; ++i) {
    const auto column = static_cast<Column>(i);
    bool used = i < required_columns;
    for (const Observation& row : observations) used = used || !text_of(row, column).empty();
    if (used) columns.push_back(column);
  }
  std::vector<std::string> fields;
  for (const Column column : columns) fields.emplace_back(column_names[column]);
  std::string text = csv_row(fields);
  for (const Observation& row : observations) {
    fields.clear();
    for (const Column column : columns) fields.push_back(text_of(row, column));
    text += csv_row(fields);
  }
  return text;
}

}  // namespace podsim
