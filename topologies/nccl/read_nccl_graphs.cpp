#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/xml_elements.hpp"
#include "topologies/nccl/nccl_graphs.hpp"

namespace podsim {

namespace {

using pugi::xml_node;

std::string name_of_graph(std::int64_t id) {
  constexpr std::array<std::string_view, 5> names{"ring", "tree", "collnet chain", "nvls", "collnet direct"};
  return id < static_cast<std::int64_t>(names.size()) ? std::string{names[static_cast<std::size_t>(id)]} : fmt::format("graph {}", id);
}

class GraphReader {
 public:
  explicit GraphReader(const XmlText& xml) : xml_{xml} {}

  Expected<std::vector<NcclGraph>> read() const {
    const auto elements = xml_.children(xml_.root(), "graph");
    if (!elements) return elements.error();
    std::vector<NcclGraph> graphs;
    for (const xml_node element : *elements) {
      auto graph = read(element);
      if (!graph) return graph.error();
      graphs.push_back(*std::move(graph));
    }
    return graphs;
  }

 private:
  [[nodiscard]] Expected<std::int64_t> number(xml_node node, const char* name) const {
    if (!node.attribute(name)) return Diagnostic{xml_.where(node), fmt::format("expected an attribute {}, found none", quoted(name))};
    return xml_.integer(node, name, 0, most_devs);
  }

  [[nodiscard]] Expected<BytesPerSecond> speed(xml_node node, const char* name) const {
    const auto attribute = node.attribute(name);
    const auto value = parse_number(attribute.value(), attribute ? xml_.where(attribute) : xml_.where(node));
    if (!value) return value.error();
    if (!(*value >= 0 && *value <= most_speed)) return Diagnostic{xml_.where(attribute), fmt::format("expected GB/s from 0 to {}, found {}", most_speed, quoted(attribute.value()))};
    return BytesPerSecond{*value * 1e9};
  }

  [[nodiscard]] Expected<NcclGraph> read(xml_node element) const {
    const auto id = number(element, "id");
    if (!id) return id.error();
    const auto within = speed(element, "speedintra"), between = speed(element, "speedinter");
    if (!within) return within.error();
    if (!between) return between.error();
    NcclGraph graph{name_of_graph(*id), {}, *within, *between, element.attribute("typeintra").value(), element.attribute("typeinter").value(), element.attribute("crossnic").as_int() != 0};
    const auto channels = xml_.children(element, "channel");
    if (!channels) return channels.error();
    for (const xml_node channel : *channels) {
      NcclChannel& order = graph.channels.emplace_back();
      for (const xml_node stop : channel.children()) {
        const std::string_view name = stop.name();
        if (name != "gpu" && name != "net") return Diagnostic{xml_.where(stop), fmt::format("expected an element \"gpu\" or \"net\", found {}", quoted(name))};
        const auto dev = number(stop, "dev");
        if (!dev) return dev.error();
        if (name == "gpu")
          order.gpus.push_back(*dev);
        else if (order.gpus.empty() && !order.from)
          order.from = *dev;
        else
          order.to = *dev;
      }
    }
    return graph;
  }

  static constexpr std::int64_t most_devs = 1 << 20;
  static constexpr double most_speed = 1e6;  // GB/s
  const XmlText& xml_;
};

std::string order_text(const NcclChannel& channel) {
  std::string text;
  if (channel.from) text += fmt::format("interface {} > ", *channel.from);
  text += fmt::format("{}", fmt::join(channel.gpus, " "));
  if (channel.to) text += fmt::format(" > interface {}", *channel.to);
  return text;
}

}  // namespace

Expected<std::vector<NcclGraph>> read_nccl_graphs(std::string_view text, const std::string& file) {
  const auto xml = XmlText::parse(text, file, "graphs");
  if (!xml) return xml.error();
  return GraphReader{*xml}.read();
}

std::string to_text(const std::vector<NcclGraph>& graphs) {
  constexpr std::size_t most_orders = 8;
  std::vector<std::string> lines, none;
  for (const NcclGraph& graph : graphs) {
    if (graph.channels.empty()) {
      none.push_back(graph.name);
      continue;
    }
    std::vector<std::string> orders;
    for (const NcclChannel& channel : graph.channels)
      if (std::string order = order_text(channel); std::ranges::find(orders, order) == orders.end()) orders.push_back(std::move(order));
    const bool has_interfaces = std::ranges::any_of(graph.channels, [](const NcclChannel& channel) { return channel.from || channel.to; });
    std::string line = fmt::format("{}: {} of {} each among the GPUs of a node ({})", graph.name, counted(static_cast<std::int64_t>(graph.channels.size()), "channel"), to_text(graph.within), graph.path_within);
    if (has_interfaces) line += fmt::format(", {} between nodes ({}){}", to_text(graph.between), graph.path_between, graph.crosses_interfaces ? ", in by one interface and out by another" : "");
    const std::size_t more = orders.size() > most_orders ? orders.size() - most_orders : 0;
    orders.resize(orders.size() - more);
    lines.push_back(line + fmt::format("; GPUs {}{}", fmt::join(orders, " | "), more > 0 ? fmt::format(" | {} more orders", more) : ""));
  }
  if (!none.empty()) lines.push_back(fmt::format("none found: {}", fmt::join(none, ", ")));
  return fmt::format("{}", fmt::join(lines, "\n  "));
}

}  // namespace podsim
