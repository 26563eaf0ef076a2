#include <fmt/format.h>

#include <filesystem>

#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/msccl/read_msccl.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

Expected<MscclAlgorithm> load_msccl(const std::string& path) {
  const auto text = read_file(path, msccl_limit);
  if (!text) return text.error();
  return read_msccl(*text, path);
}

Expected<ScheduleSpec> read_msccl_problem(const Fields& fields, const std::string& path, const System& system, DType default_dtype) {
  const auto algorithm = load_msccl(path);
  if (!algorithm) return fields.of_named_file("msccl", algorithm.error());
  if (!fields.has("bytes")) return Diagnostic{{}, "`bytes` is missing: the input of the algorithm on each device"};
  const auto bytes = parse_input_bytes(fields.text("bytes"), fields.where("bytes"));
  if (!bytes) return bytes.error();
  const auto dtype = fields.has("dtype") ? parse_dtype(fields.text("dtype"), fields.where("dtype")) : Expected<DType>{default_dtype};
  if (!dtype) return dtype.error();
  auto schedule = msccl_schedule(*algorithm, system.mesh, *bytes, *dtype);
  if (!schedule) return fields.of_named_file("msccl", fields.placed(schedule.error()));
  return ScheduleSpec{*std::move(schedule), {}, "msccl " + std::filesystem::path{path}.stem().string(), *bytes};
}

}  // namespace podsim
