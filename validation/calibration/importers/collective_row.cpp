#include "validation/calibration/importers/collective_row.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "sim/base/text.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

std::optional<ObservedOp> collective_of_benchmark(std::string_view name) {
  using enum ObservedOp;
  constexpr std::array<std::pair<std::string_view, ObservedOp>, 7> names{{{"allgather", all_gather},
                                                                          {"reducescatter", reduce_scatter},
                                                                          {"allreduce", all_reduce},
                                                                          {"alltoall", all_to_all},
                                                                          {"broadcast", broadcast},
                                                                          {"reduce", reduce},
                                                                          {"sendrecv", permute}}};
  std::string plain;
  for (const char c : name.substr(name.rfind('/') + 1))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (plain.ends_with("perf")) plain.resize(plain.size() - 4);
  for (const auto& [known, op] : names)
    if (plain == known) return op;
  return std::nullopt;
}

Status check_bandwidth(std::int64_t size, double micros, double bandwidth, const SourceLocation& where) {
  constexpr double rounded_well = 0.1, most_off = 1.2;
  const double right = static_cast<double>(size) / micros / 1e3;
  if (bandwidth < rounded_well || (bandwidth <= most_off * right && right <= most_off * bandwidth)) return success();
  return Diagnostic{where, fmt::format("expected the bandwidth of {} bytes in {} us, {:.2f} GB/s, found {}", size, micros, right, bandwidth)};
}

Status CollectiveRows::add(const CollectiveRow& row) {
  if (row.size == 0) return ++empty_, success();
  if (row.in_place) return ++in_place_, success();
  if (row.wrong) return ++wrong_, success();
  const auto op = row.op ? row.op : options_.op;
  if (!op) return Diagnostic{row.where, "nothing tells which collective this is; `op` tells it"};
  const int devices = row.devices > 0 ? row.devices : options_.devices;
  if (devices < 1 || devices > most_observed_devices) return Diagnostic{row.where, "nothing tells how many devices took part; `devices` tells it"};
  if (row.size < 0 || row.size > most_observed_bytes.count()) return Diagnostic{row.where, fmt::format("expected a size up to {} bytes, found {}", most_observed_bytes.count(), row.size)};
  if (!(row.micros > 0) || !std::isfinite(row.micros)) return Diagnostic{row.where, fmt::format("expected a time above 0 us, found {}", row.micros)};
  if (auto ok = check_bandwidth(row.size, row.micros, row.bandwidth, row.where); !ok) return ok;
  Observation observation;
  observation.op = *op;
  observation.devices = devices;
  observation.bytes = Bytes{row.size};
  observation.time = Seconds{row.micros * 1e-6};
  observation.schedule = ObservedSchedule::plain;
  observation.where = row.where;
  if (row.type == "float") observation.dtype = DType::f32;
  if (row.type == "bfloat16") observation.dtype = DType::bf16;
  if (*op == ObservedOp::all_gather) {
    indivisible_ += row.size % devices != 0 ? 1 : 0;
    observation.bytes = Bytes{row.size / devices};
    if (observation.bytes.count() == 0) return ++empty_, success();
  }
  imported_.observations.push_back(std::move(observation));
  return success();
}

Expected<Imported> CollectiveRows::finish(const std::string& file) {
  if (imported_.observations.empty()) return Diagnostic{{file, 1, 1}, wrong_ + in_place_ + empty_ > 0 ? "expected a row out of place with bytes and right results, found none" : "expected a row of a collective, found none"};
  const auto note = [&](std::size_t count, const std::string& what) {
    if (count > 0) imported_.notes.push_back(counted(static_cast<std::int64_t>(count), "row") + what);
  };
  note(indivisible_, " of an all-gather whose size is rounded down to a multiple of its devices");
  note(wrong_, " with wrong results skipped");
  note(empty_, " of size 0 skipped");
  note(in_place_, " in place skipped");
  return std::move(imported_);
}

}  // namespace podsim
