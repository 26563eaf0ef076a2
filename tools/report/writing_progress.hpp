// How far a file of many devices is written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "sim/model/model.hpp"

namespace podsim {

/// Counts the tasks of devices, those of one device as its events are written. Tells nobody without `counting`.
class WritingProgress {
 public:
  using Counting = std::function<void(std::size_t done, std::size_t all)>;
  WritingProgress() = default;
  WritingProgress(const Model& model, std::span<const DeviceId> devices, Counting counting) : model_{&model}, counting_{std::move(counting)} {
    for (const DeviceId device : devices) all_ += tasks_of(device);
  }
  ~WritingProgress() {
    if (counting_) counting_(0, 0);
  }
  WritingProgress(const WritingProgress&) = delete;
  WritingProgress& operator=(const WritingProgress&) = delete;

  /// From now on it is this device's turn; those before are written.
  void begin(DeviceId device) {
    if (!counting_) return;
    done_ += std::exchange(current_, tasks_of(device));
    counting_(done_, all_);
  }
  /// So many of its `events` are written. Cheap: it tells a few times for a device.
  void wrote(std::size_t event, std::size_t events) {
    constexpr std::size_t between = 1U << 14;
    if (!counting_ || event % between != 0 || event == 0) return;
    counting_(done_ + static_cast<std::size_t>(static_cast<double>(current_) * static_cast<double>(event) / static_cast<double>(std::max(event, events))), all_);
  }

 private:
  [[nodiscard]] std::size_t tasks_of(DeviceId device) const {
    const std::uint32_t program = model_->deployment.places[model_->node_of[device.index()]].program;
    return program == no_device ? 0 : model_->schedule->programs[program].tasks.size();
  }

  const Model* model_ = nullptr;
  Counting counting_{};
  std::size_t all_ = 0, done_ = 0, current_ = 0;
};

}  // namespace podsim
