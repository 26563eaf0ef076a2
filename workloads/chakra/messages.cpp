#include "workloads/chakra/messages.hpp"

#include <fmt/format.h>

#include "workloads/chakra/trace.hpp"

namespace podsim {

Status MessageTable::check(const std::vector<std::string>& files) const {
  for (const auto& [key, halves] : table_) {
    const auto& [sends, receives] = halves;
    for (std::size_t k = 0; k < std::max(sends.size(), receives.size()); ++k) {
      const bool sent = k < sends.size(), received = k < receives.size();
      if (sent && received && sends[k].bytes == receives[k].bytes) continue;
      const int rank = sent ? key.source : key.destination;
      const std::string which = fmt::format("message {} from rank {} to rank {} with tag {}", k, key.source, key.destination, key.tag);
      const std::string text = !received ? fmt::format("expected rank {} to receive {}, found no receive", key.destination, which)
                               : !sent
                                   ? fmt::format("expected rank {} to send {}, found no send", key.source, which)
                                   : fmt::format("expected {} to have the {} bytes that record {} of {} receives, found {}", which, receives[k].bytes,
                                                 receives[k].record, files[static_cast<std::size_t>(key.destination)], sends[k].bytes);
      return chakra_error(files[static_cast<std::size_t>(rank)], sent ? sends[k].record : receives[k].record, text);
    }
  }
  return success();
}

}  // namespace podsim
