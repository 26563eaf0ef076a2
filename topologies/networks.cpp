#include "topologies/networks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace podsim {

namespace {

/// The two links of a cable.
LinkId there(int cable) { return LinkId{2 * cable}; }
LinkId back(int cable) { return LinkId{2 * cable + 1}; }

/// Cable c joins chip c and the switch.
class CrossbarWiring final : public Wiring {
 public:
  explicit CrossbarWiring(int chips) : chips_{chips} {}

  void route(ChipId from, ChipId to, std::vector<LinkId>& links) const override {
    links.push_back(there(from.value));
    links.push_back(back(to.value));
  }
  [[nodiscard]] std::vector<Dimension> symmetric_dimensions() const override { return {{chips_, true, true}}; }
  [[nodiscard]] ChipId chip_at(LinkId link) const override { return ChipId{link.value / 2}; }
  [[nodiscard]] LinkId moved_to(LinkId link, ChipId chip) const override { return LinkId{2 * chip.value + link.value % 2}; }
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override { return {{ChipId{0}, chips_}}; }
  [[nodiscard]] int link_class(LinkId link) const override { return link.value % 2; }

 private:
  int chips_;
};

/// Cable c joins chip c and its leaf; behind them, spine by spine, a cable from each leaf.
class FatTreeWiring final : public Wiring {
 public:
  FatTreeWiring(int chips, int leaf, int spines)
      : chips_{chips}, leaf_{leaf}, spines_{spines}, leaves_{(chips + leaf - 1) / leaf}, period_{spines / std::gcd(spines, leaf)} {}

  void route(ChipId from, ChipId to, std::vector<LinkId>& links) const override {
    links.push_back(there(from.value));
    if (const int here = from.value / leaf_, other = to.value / leaf_; here != other) {
      const int spine = to.value % spines_;
      links.push_back(there(to_spine(here, spine)));
      links.push_back(back(to_spine(other, spine)));
    }
    links.push_back(back(to.value));
  }

  /// Leaves may change places where that keeps every chip's number modulo the spines. What changes places within a leaf may keep its links to spines, so that does not count.
  [[nodiscard]] std::vector<Dimension> symmetric_dimensions() const override {
    const int together = leaf_ * period_;
    if (chips_ % together != 0) return {{chips_, false, false}};
    return {{chips_ / together, true, true}, {together, false, false}};
  }
  [[nodiscard]] ChipId chip_at(LinkId link) const override {
    const int cable = link.value / 2;
    return ChipId{cable < chips_ ? cable : (cable - chips_) % leaves_ * leaf_};
  }
  [[nodiscard]] LinkId moved_to(LinkId link, ChipId chip) const override {
    const int cable = link.value / 2;
    return LinkId{2 * (cable < chips_ ? chip.value : to_spine(chip.value / leaf_, (cable - chips_) / leaves_)) + link.value % 2};
  }
  /// Leaves of a size may change places where that keeps every chip's number modulo the spines, and so may the chips of a leaf.
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override {
    std::vector<int> members(static_cast<std::size_t>(chips_), 0);
    for (int chip = 0; chip < chips_; ++chip) ++members[static_cast<std::size_t>(lowest_like(chip))];
    std::vector<ChipClass> classes;
    for (int chip = 0; chip < chips_; ++chip)
      if (const int count = members[static_cast<std::size_t>(chip)]; count > 0) classes.push_back({ChipId{chip}, count});
    return classes;
  }
  [[nodiscard]] int link_class(LinkId link) const override {
    const int cable = link.value / 2;
    const int like = cable < chips_ ? lowest_like(cable) : to_spine(leaf_like((cable - chips_) % leaves_), (cable - chips_) / leaves_);
    return 2 * like + link.value % 2;
  }

 private:
  [[nodiscard]] int to_spine(int leaf, int spine) const { return chips_ + spine * leaves_ + leaf; }
  [[nodiscard]] int leaf_like(int leaf) const { return leaf == leaves_ - 1 && chips_ % leaf_ != 0 ? leaf : leaf % period_; }
  [[nodiscard]] int lowest_like(int chip) const {
    if (leaves_ == 1) return 0;
    return leaf_like(chip / leaf_) * leaf_ + chip % leaf_ % spines_;
  }

  int chips_, leaf_, spines_, leaves_;
  int period_;  // leaves until the number of the first chip modulo the spines is the same again
};

/// Cable c joins chip c and its node's switch; behind them, rail by rail, a cable from each node.
class RailWiring final : public Wiring {
 public:
  RailWiring(int nodes, int gpus) : nodes_{nodes}, gpus_{gpus} {}

  void route(ChipId from, ChipId to, std::vector<LinkId>& links) const override {
    const int node = from.value / gpus_, gpu = from.value % gpus_, other_node = to.value / gpus_, other_gpu = to.value % gpus_;
    const auto inside = [&](int of, int a, int b) { links.push_back(there(of * gpus_ + a)), links.push_back(back(of * gpus_ + b)); };
    const auto along = [&](int of, int a, int b) { links.push_back(there(to_rail(a, of))), links.push_back(back(to_rail(b, of))); };
    if (node != other_node) along(gpu, node, other_node);
    if (gpu != other_gpu) inside(other_node, gpu, other_gpu);
  }

  /// Nodes may change places, and numbers of GPUs.
  [[nodiscard]] std::vector<Dimension> symmetric_dimensions() const override { return {{nodes_, true, true}, {gpus_, true, true}}; }
  [[nodiscard]] ChipId chip_at(LinkId link) const override {
    const int cable = link.value / 2, behind = cable - nodes_ * gpus_;
    return ChipId{behind < 0 ? cable : behind % nodes_ * gpus_ + behind / nodes_};
  }
  [[nodiscard]] LinkId moved_to(LinkId link, ChipId chip) const override {
    const bool is_inside = link.value / 2 < nodes_ * gpus_;
    return LinkId{2 * (is_inside ? chip.value : to_rail(chip.value / gpus_, chip.value % gpus_)) + link.value % 2};
  }
  /// Nodes may change places, and numbers of GPUs.
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override { return {{ChipId{0}, nodes_ * gpus_}}; }
  [[nodiscard]] int link_class(LinkId link) const override {
    return 2 * (link.value / 2 < nodes_ * gpus_ ? 0 : to_rail(0, 0)) + link.value % 2;
  }

 private:
  [[nodiscard]] int to_rail(int node, int rail) const { return nodes_ * gpus_ + rail * nodes_ + node; }

  int nodes_, gpus_;
};

}  // namespace

Expected<Network> crossbar(int chips, const LinkParameters& link) {
  std::vector<std::string> names;
  std::vector<Cable> cables;
  for (int chip = 0; chip < chips; ++chip) {
    names.push_back(std::to_string(chip));
    cables.push_back({chip, chips, link, 0});
  }
  names.emplace_back("switch");
  return Network::make(chips, std::move(names), cables, std::make_shared<const CrossbarWiring>(chips));
}

Expected<Network> fat_tree(int chips, int leaf, double oversubscription, const LinkParameters& link) {
  const int spines = static_cast<int>(std::lround(leaf / oversubscription));
  if (!(oversubscription >= 1) || spines < 1)
    return Diagnostic{of_field("topology"),
                      fmt::format("expected an oversubscription from 1 to the {} chips of a leaf, found {}", leaf, oversubscription)};
  const int leaves = (chips + leaf - 1) / leaf;
  std::vector<std::string> names;
  std::vector<Cable> cables;
  for (int chip = 0; chip < chips; ++chip) {
    names.push_back(std::to_string(chip));
    cables.push_back({chip, chips + chip / leaf, link, 0});
  }
  for (int l = 0; l < leaves; ++l) names.push_back(fmt::format("leaf {}", l));
  if (leaves > 1)
    for (int s = 0; s < spines; ++s) {
      names.push_back(fmt::format("spine {}", s));
      for (int l = 0; l < leaves; ++l) cables.push_back({chips + l, chips + leaves + s, link, 0});
    }
  return Network::make(chips, std::move(names), cables, std::make_shared<const FatTreeWiring>(chips, leaf, spines));
}

Expected<Network> rail(int nodes, int gpus, const LinkParameters& to_rail, const LinkParameters& to_node) {
  const int chips = nodes * gpus;
  std::vector<std::string> names;
  std::vector<Cable> cables;
  for (int chip = 0; chip < chips; ++chip) {
    names.push_back(fmt::format("{}.{}", chip / gpus, chip % gpus));
    cables.push_back({chip, chips + chip / gpus, to_node, 1});
  }
  for (int node = 0; node < nodes; ++node) names.push_back(fmt::format("node {}", node));
  if (nodes > 1)
    for (int gpu = 0; gpu < gpus; ++gpu) {
      names.push_back(fmt::format("rail {}", gpu));
      for (int node = 0; node < nodes; ++node) cables.push_back({node * gpus + gpu, chips + nodes + gpu, to_rail, 0});
    }
  return Network::make(chips, std::move(names), cables, std::make_shared<const RailWiring>(nodes, gpus));
}

}  // namespace podsim
