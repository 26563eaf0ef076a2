#include "sim/config/network_config.hpp"

#include <fmt/format.h>

#include <map>

#include "sim/base/units.hpp"
#include "sim/config/message_file.hpp"
#include "sim/config/network.pb.h"

namespace podsim {

namespace {

constexpr FileFormat network_format{"a network", 0, 1};

class NetworkReader {
 public:
  explicit NetworkReader(const std::string& file) : file_{network_format, file, message_}, name_{file} {}

  Expected<Network> read(std::string_view text) {
    if (!file_.parse(text)) return file_.error();
    const Place root;
    add_nodes(root, "chip", message_.chip());
    const int chips = static_cast<int>(names_.size());
    add_nodes(root, "switch", message_.switch_());
    std::vector<Cable> cables;
    for (int i = 0; i < message_.cable_size(); ++i) cables.push_back(cable(message_.cable(i), root.at("cable", i)));
    if (!file_.ok()) return file_.error();
    auto network = Network::make(chips, names_, cables);
    if (!network) return Diagnostic{{name_, 1, 1}, network.error().message};
    return network;
  }

 private:
  template <class Names>
  void add_nodes(const Place& root, const char* field, const Names& names) {
    for (int i = 0; i < names.size(); ++i) {
      const Place place = root.at(field, i);
      if (names[i].empty())
        file_.problem(place, "expected a name, found an empty text");
      else if (!numbers_.try_emplace(names[i], static_cast<int>(names_.size())).second)
        file_.problem(place, "there are two nodes named " + quoted(names[i]));
      names_.push_back(names[i]);
    }
  }

  int node(const std::string& name, const Place& place) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    file_.problem(place, "there is no chip or switch named " + quoted(name) + did_you_mean(name, names_));
    return 0;
  }

  Cable cable(const proto::Network::Cable& message, const Place& place) {
    const Place from = place.at("from"), to = place.at("to"), bandwidth_place = place.at("bandwidth"), latency_place = place.at("latency");
    Cable cable{node(message.from(), from), node(message.to(), to), {}, std::nullopt};
    if (message.from() == message.to()) file_.problem(to, "a cable joins two different nodes, found " + quoted(message.to()) + " twice");
    if (const auto bandwidth = parse_bytes_per_second(message.bandwidth(), file_.where(bandwidth_place)))
      cable.link.bandwidth = *bandwidth;
    else
      file_.problem(bandwidth.error());
    if (const auto latency = parse_seconds(message.latency(), file_.where(latency_place)))
      cable.link.latency = *latency;
    else
      file_.problem(latency.error());
    if (message.source().empty() && message_.source().empty()) file_.problem(place, "a cable needs a source, or the file one for all");
    return cable;
  }

  proto::Network message_;
  MessageFile file_;
  std::string name_;
  std::vector<std::string> names_;
  std::map<std::string, int> numbers_;
};

}  // namespace

Expected<Network> read_network(std::string_view text, const std::string& file) { return NetworkReader{file}.read(text); }

}  // namespace podsim
