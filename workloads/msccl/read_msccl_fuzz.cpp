// Any bytes as an MSCCL algorithm: a Diagnostic that can be printed, or an algorithm that reads back from what is written of it and makes a schedule.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/schedule/validate.hpp"
#include "workloads/msccl/msccl_schedule.hpp"
#include "workloads/msccl/read_msccl.hpp"
#include "workloads/msccl/write_msccl.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace podsim;
  const auto algorithm = read_msccl({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!algorithm) {
    if (to_text(algorithm.error()).empty()) std::abort();
    return 0;
  }
  auto again = read_msccl(write_msccl(*algorithm), "fuzz");
  if (!again || !(*again == *algorithm)) std::abort();
  const auto mesh = Mesh::make({{"row", static_cast<int>(algorithm->gpus.size()), true}});
  if (!mesh) std::abort();
  if (const auto schedule = msccl_schedule(*algorithm, *mesh, Bytes{9600}, DType::f32)) validate(*schedule);
  return 0;
}
