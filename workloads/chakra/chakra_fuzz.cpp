// Any bytes as the trace of both ranks of two: a Diagnostic that can be printed, or a trace and perhaps a schedule
// whose shapes can be checked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/schedule/validate.hpp"
#include "workloads/chakra/chakra_schedule.hpp"
#include "workloads/chakra/read_chakra.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace podsim;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto trace = parse_chakra(bytes, "fuzz");
  if (!trace) {
    if (to_text(trace.error()).empty()) std::abort();
    return 0;
  }
  static const Mesh mesh = *Mesh::make({{"x", 2, true, {}}});
  const auto schedule = chakra_schedule(
      mesh, [&](int) { return *trace; }, {{"1", {0, 1}}}, ChakraCost::recorded);
  if (schedule) check_shapes(schedule->schedule);
  return 0;
}
