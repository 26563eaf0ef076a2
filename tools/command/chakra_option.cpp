#include "tools/command/chakra_option.hpp"

#include "sim/base/output_file.hpp"
#include "tools/report/json.hpp"

namespace podsim {

namespace {

/// The first trace tells them apart from other files of the command line.
std::vector<std::string> written_traces(const std::string& prefix) { return {chakra_file(prefix, 0)}; }

std::string groups_json(const ChakraGroups& groups) {
  Json json = Json::object();
  for (std::size_t id = 1; id <= groups.size(); ++id) {
    const std::string name = std::to_string(id);
    json.set(name, groups.at(name));
  }
  return json.dump() + "\n";
}

}  // namespace

OptionGroup chakra_options() {
  return {
      {"chakra-out", output_file("PREFIX", written_traces),
       "write the run as Chakra execution traces PREFIX.<rank>.et, one per\ndevice, which run again by --chakra PREFIX; every device is simulated"},
      {"chakra-collectives", word("whole|lowered", "whole"),
       "how --chakra-out writes collectives: whole, or as the sends and receives\nthat they are made of"}};
}

Expected<std::optional<ChakraRequest>> chakra_request(const Options& options) {
  const std::string& how = options.text("chakra-collectives");
  if (how != "whole" && how != "lowered") return Diagnostic{option("chakra-collectives"), "expected whole or lowered, found " + quoted(how)};
  if (!options.has("chakra-out")) {
    if (options.given("chakra-collectives")) return Diagnostic{option("chakra-collectives"), "expected --chakra-out PREFIX beside it, found none"};
    return std::optional<ChakraRequest>{};
  }
  ChakraRequest request{options.text("chakra-out"), how == "whole" ? ChakraCollectives::whole : ChakraCollectives::lowered};
  // Fails before any work is done; what is not closed leaves no file.
  if (const auto first = OutputFile::open(chakra_file(request.prefix, 0)); !first) return first.error();
  return std::optional{std::move(request)};
}

Status write_chakra(const ChakraRequest& request, const Run& run) {
  const CollectivePolicy& policy = run.problem->collectives;
  const auto writer = ChakraWriter::make({run.problem->schedule, run.model, run.timeline, policy.algorithm, policy.chunks}, request.collectives);
  if (!writer) return writer.error();
  for (int rank = 0; rank < writer->ranks(); ++rank)
    if (auto ok = write_file(chakra_file(request.prefix, rank), chakra_bytes(writer->trace(rank))); !ok) return ok.error();
  // An earlier run's groups would be taken for this one's.
  if (writer->groups().empty() && !file_exists(chakra_groups_file(request.prefix))) return success();
  return write_file(chakra_groups_file(request.prefix), groups_json(writer->groups()));
}

}  // namespace podsim
