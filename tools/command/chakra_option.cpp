#include "tools/command/chakra_option.hpp"

#include <vector>

#include "sim/base/file_names.hpp"
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

/// Writes a file of a set, all but its name.
Status store(const std::string& path, std::string_view bytes, std::vector<OutputFile>& set) {
  auto file = OutputFile::open(path);
  if (!file) return file.error();
  file->write(bytes);
  if (auto ok = file->finish(); !ok) return ok;
  set.push_back(*std::move(file));
  return success();
}

}  // namespace

OptionGroup chakra_options() {
  return {
      {"chakra-out", output_file("PREFIX", written_traces),
       "write the run as Chakra execution traces PREFIX.<rank>.et, one per device, which run again by --chakra PREFIX; every device is simulated"},
      {"chakra-collectives", word("whole|lowered", "whole"),
       "how --chakra-out writes collectives: whole, or as the sends and receives that they are made of"}};
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
  // All of them are stored before the first replaces an older one: a set of traces of two runs would be taken for one.
  std::vector<OutputFile> files;
  for (int rank = 0; rank < writer->ranks(); ++rank)
    if (auto ok = store(chakra_file(request.prefix, rank), chakra_bytes(writer->trace(rank)), files); !ok) return ok;
  // So would an earlier run's groups.
  if (!writer->groups().empty() || file_exists(chakra_groups_file(request.prefix)))
    if (auto ok = store(chakra_groups_file(request.prefix), groups_json(writer->groups()), files); !ok) return ok;
  std::vector<std::string> obsolete;  // ranks of an earlier run on more devices
  for (int rank = writer->ranks(); file_exists(chakra_file(request.prefix, rank)); ++rank) obsolete.push_back(chakra_file(request.prefix, rank));
  return OutputFile::close_together(files, obsolete);
}

}  // namespace podsim
