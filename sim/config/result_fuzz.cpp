// Any bytes as a result file, text or binary: a Diagnostic that can be printed, or a result that is written in both forms and read back equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/config/message_file.hpp"
#include "sim/config/result_config.hpp"

namespace {

void check(std::string_view bytes) {
  const auto result = podsim::read_result(bytes, "fuzz");
  if (!result) {
    if (to_text(result.error()).empty()) std::abort();
    return;
  }
  for (const podsim::Encoding encoding : {podsim::Encoding::text, podsim::Encoding::binary}) {
    const auto again = podsim::read_result(podsim::write_result(*result, encoding), "written");
    if (!again || *again != *result) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  check(podsim::framed('R', bytes));  // by itself the fuzzer would hardly get a length right
  return 0;
}
