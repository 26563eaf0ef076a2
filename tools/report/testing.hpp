// Traces in tests: written to memory and read back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/invariant.hpp"
#include "sim/engine/table/testing.hpp"
#include "tools/report/trace.hpp"

namespace podsim::testing {

class TextSink final : public Sink {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  [[nodiscard]] bool failed() const override { return false; }
  Status finish() override { return success(); }
  Status close() override { return success(); }

  std::string text;
};

inline std::vector<DeviceId> devices_below(int count) {
  std::vector<DeviceId> devices;
  for (int d = 0; d < count; ++d) devices.emplace_back(d);
  return devices;
}

/// The trace of these devices; an assert if the run does not finish.
inline std::string trace_text(const Model& model, const std::vector<DeviceId>& devices, std::string_view engine = "des") {
  const auto timeline = (*timing_engine(engine))->run(model, {});
  PODSIM_ASSERT(timeline);
  TextSink sink;
  const auto written = write_trace(model, *timeline, devices, {}, sink);
  PODSIM_ASSERT(written);
  return sink.text;
}

/// The trace of all devices of an unfolded model, as JSON.
inline nlohmann::ordered_json trace_json(const SmallSystem& system, const Schedule& lowered, std::string_view engine = "des") {
  const auto model = model_of(system, lowered);
  EXPECT_TRUE(model) << to_text(model.error());
  return nlohmann::ordered_json::parse(trace_text(*model, devices_below(system.mesh.devices()), engine));
}

/// The events of a phase, `X` or `s`.
inline std::vector<nlohmann::ordered_json> events_of_phase(const nlohmann::ordered_json& trace, const std::string& phase) {
  std::vector<nlohmann::ordered_json> events;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) events.push_back(event);
  return events;
}

}  // namespace podsim::testing
