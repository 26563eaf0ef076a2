// A list of items with boxes in one buffer, indexed so that items that overlap a box are found without a scan of the whole list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Items in insertion order. Each has a member `box`; all boxes are of the same buffer and rank.
///
/// A short list is scanned. A long list is cut along one dimension into cells about as wide as the median box. An item is listed in every cell that
/// it touches; an item that touches many cells is "wide", and every search scans the wide ones. The cells are chosen again when the list has doubled.
template <class Item>
class BoxList {
 public:
  /// Calls `remove` for each item that overlaps the box, in insertion order; removes the item if `remove` returns true.
  template <class Remove>
  void remove_overlapping(const Box& box, Remove remove) {
    const auto removed = [&](const std::optional<Item>& item) { return !item || (overlap(item->box, box) && remove(*item)); };
    if (!cut_) {
      std::erase_if(items_, removed);
      return;
    }
    const auto look_at = [&](std::optional<Item>& item) {
      if (removed(item)) item.reset();  // its number stays listed in cells
    };
    if (const std::optional<Cells> touched = cut_->few_cells(box))
      for (const std::uint32_t i : cut_->listed(*touched)) look_at(items_[i]);
    else
      for (std::optional<Item>& item : items_) look_at(item);
  }

  void add(Item item) {
    items_.push_back(std::move(item));
    if (items_.size() >= cut_at_)
      cut_anew();
    else if (cut_)
      cut_->list(static_cast<std::uint32_t>(items_.size() - 1), items_.back()->box);
  }

 private:
  static constexpr std::size_t short_list = 64;  // items
  static constexpr std::size_t most_cells = 8;   // of an item that is not wide
  static constexpr std::int64_t least_cells = 4;

  struct Cells {
    std::size_t first, last;
  };
  /// The cells, and the numbers of the items in each.
  struct Cut {
    std::size_t dim = 0;
    std::int64_t origin = 0, width = 1;
    std::vector<std::vector<std::uint32_t>> cells{};
    std::vector<std::uint32_t> wide{};
    std::vector<std::uint32_t> found{};

    /// The cells that a box touches; nullopt: too many, the box is wide.
    std::optional<Cells> few_cells(const Box& box) const {
      const auto cell = [&](std::int64_t at) {
        return static_cast<std::size_t>(std::clamp<std::int64_t>((at - origin) / width, 0, static_cast<std::int64_t>(cells.size()) - 1));
      };
      const Cells touched{cell(box.begin[dim]), cell(box.begin[dim] + std::max<std::int64_t>(box.length[dim] - 1, 0))};
      return touched.last - touched.first < most_cells ? std::optional{touched} : std::nullopt;
    }

    void list(std::uint32_t item, const Box& box) {
      const std::optional<Cells> touched = few_cells(box);
      if (!touched) return wide.push_back(item);
      for (std::size_t c = touched->first; c <= touched->last; ++c) cells[c].push_back(item);
    }

    /// The numbers of the items in these cells and of the wide items, in insertion order.
    const std::vector<std::uint32_t>& listed(const Cells& touched) {
      found = wide;
      for (std::size_t c = touched.first; c <= touched.last; ++c) found.insert(found.end(), cells[c].begin(), cells[c].end());
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    }
  };

  void cut_anew() {
    std::erase_if(items_, [](const std::optional<Item>& item) { return !item; });
    cut_at_ = std::max(short_list, 2 * items_.size());
    cut_.reset();
    if (items_.size() < short_list / 2) return;
    choose_cells();
    for (std::uint32_t i = 0; cut_ && i < items_.size(); ++i) cut_->list(i, items_[i]->box);
  }

  /// Cuts the dimension in which the median box is smallest relative to the range of all boxes. No cut if no dimension gains from it.
  void choose_cells() {
    std::int64_t most = least_cells - 1;
    std::vector<std::int64_t> lengths(items_.size());
    for (std::size_t d = 0; d < items_.front()->box.begin.size(); ++d) {
      std::int64_t begin = items_.front()->box.begin[d], end = begin;
      for (std::size_t i = 0; i < items_.size(); ++i) {
        const Box& box = items_[i]->box;
        lengths[i] = box.length[d];
        begin = std::min(begin, box.begin[d]);
        end = std::max(end, box.begin[d] + box.length[d]);
      }
      const auto median = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
      std::nth_element(lengths.begin(), median, lengths.end());
      const std::int64_t least_width = (end - begin) / static_cast<std::int64_t>(2 * items_.size()) + 1;  // at most two cells per item
      const std::int64_t width = std::max(*median, least_width);
      const std::int64_t count = (end - begin + width - 1) / width;
      if (count <= most) continue;
      most = count;
      cut_ = std::make_unique<Cut>(Cut{d, begin, width, std::vector<std::vector<std::uint32_t>>(static_cast<std::size_t>(count))});
    }
  }

  std::vector<std::optional<Item>> items_;  // nullopt: removed
  std::size_t cut_at_ = short_list;
  std::unique_ptr<Cut> cut_;  // null: the list is short, or its boxes are wide
};

}  // namespace podsim
