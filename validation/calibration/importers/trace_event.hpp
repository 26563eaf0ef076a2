// One event of a Chrome trace, as jax.profiler and PyTorch's Kineto write them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

/// What an event has of the fields that matter. The texts are good until the next event is parsed.
struct ChromeTraceEvent {
  std::string_view phase, name;
  std::string_view kind;  // cat: "kernel"
  std::int64_t pid = 0, tid = 0;
  std::optional<double> begin_us, duration_us;
  // Of `args`, of jax.profiler:
  std::string_view args_name, long_name, hlo_category, provenance, hlo_op;
  double flops = 0, device_duration_ps = 0;
  double graph_node = -1;  // cuda_graph_node_id
  bool has_correlation = false;
  // Of Kineto:
  std::int64_t external = -1, correlation = -1, device = -1, stream = -1;
  std::string_view collective, dtype;
  double elements_in = 0, group = 0;
};

/// Parses events one after the other. Processes and threads that are named by a text, as Kineto's "Spans", are numbered below all numbers.
class TraceEventParser {
 public:
  TraceEventParser();
  ~TraceEventParser();
  /// Errors: no JSON object; a field of another type than it should be. `text` must have room for simdjson's padding, which it gets.
  Expected<ChromeTraceEvent> parse(std::string& text, const SourceLocation& where);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace podsim
