// Any bytes as a schedule file, text or binary: a Diagnostic that can be printed, or a schedule that is written in both forms and read back
// equal, and whose shapes can be checked without overflow.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/config/message_file.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/schedule/validate.hpp"

namespace {

void check(std::string_view bytes) {
  const auto schedule = podsim::read_schedule(bytes, "fuzz");
  if (!schedule) {
    if (to_text(schedule.error()).empty()) std::abort();
    return;
  }
  for (const podsim::Encoding encoding : {podsim::Encoding::text, podsim::Encoding::binary}) {
    const auto again = podsim::read_schedule(podsim::write_schedule(*schedule, encoding), "written");
    if (!again || *again != *schedule) std::abort();
  }
  // Up to 2^24 devices are legal, and checking looks at each of them once; that would only slow the search down here.
  if (schedule->mesh.devices() <= 4096) podsim::check_shapes(*schedule);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  check(podsim::framed('S', bytes));  // by itself the fuzzer would hardly get a length right
  return 0;
}
