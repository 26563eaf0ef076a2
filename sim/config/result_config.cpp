#include "sim/config/result_config.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "sim/config/message_file.hpp"
#include "sim/config/result.pb.h"

namespace podsim {
namespace {

namespace pb = google::protobuf;

constexpr FileFormat result_format{"a result", 'R', result_format_version};

/// No figure of a result can be negative, but for the errors that are known of it.
void check_signs(const proto::Result& message, MessageFile& file) {
  const pb::Descriptor& descriptor = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  const Place root;
  for (int f = 0; f < descriptor.field_count(); ++f) {
    const pb::FieldDescriptor* field = descriptor.field(f);
    if (field->is_repeated() || field->name().starts_with("trust_")) continue;
    double value = 0;
    switch (field->cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_DOUBLE: value = reflection.GetDouble(message, field); break;
      case pb::FieldDescriptor::CPPTYPE_INT64: value = static_cast<double>(reflection.GetInt64(message, field)); break;
      case pb::FieldDescriptor::CPPTYPE_INT32: value = reflection.GetInt32(message, field); break;
      default: break;
    }
    if (value < 0) file.problem(root.at(field->name().c_str()), fmt::format("{} must not be negative, got {}", field->name(), value));
  }
  for (int a = 0; a < message.mesh_size(); ++a)
    if (message.mesh(a).size() < 1)
      file.problem(root.at("mesh", a), fmt::format("the size of a mesh axis must be at least 1, got {}", message.mesh(a).size()));
}

}  // namespace

Expected<Result> read_result(std::string_view bytes, const std::string& name) {
  proto::Result message;
  MessageFile file{result_format, name, message};
  if (!file.parse(bytes)) return file.error();
  check_signs(message, file);
  if (!file.ok()) return file.error();

  Result result;
  result.engine = message.engine();
  result.machine = message.machine();
  result.slice = message.slice();
  result.schedule = message.schedule();
  result.hypothetical = message.hypothetical();
  for (const proto::Result::Axis& axis : message.mesh()) result.mesh.emplace_back(axis.name(), axis.size());
  result.devices = message.devices();
  result.device_classes = message.device_classes();
  result.makespan_s = message.makespan_s();
  result.compute_s = message.compute_s();
  result.exposed_communication_s = message.exposed_communication_s();
  result.waiting_s = message.waiting_s();
  result.flops = message.flops();
  if (message.has_mfu()) result.mfu = message.mfu();
  result.link_bytes = message.link_bytes();
  result.peak_memory_bytes = message.peak_memory_bytes();
  result.tasks = message.tasks();
  result.events = message.events();
  result.pass = message.pass();
  result.wall_s = message.wall_s();
  result.build_s = message.build_s();
  RunTrust& trust = result.trust;
  trust.level = message.trust_level();
  trust.dataset = message.trust_dataset();
  if (message.has_trust_error()) trust.error = message.trust_error();
  if (message.has_trust_p95_error()) trust.p95_error = message.trust_p95_error();
  if (message.has_trust_fitted_error()) trust.fitted_error = message.trust_fitted_error();
  trust.tier = message.trust_rung();
  trust.beyond.assign(message.trust_beyond().begin(), message.trust_beyond().end());
  return result;
}

std::string write_result(const Result& result, Encoding encoding) {
  proto::Result message;
  message.set_format_version(result_format.version);
  message.set_engine(result.engine);
  message.set_machine(result.machine);
  message.set_slice(result.slice);
  message.set_schedule(result.schedule);
  message.set_hypothetical(result.hypothetical);
  for (const auto& [name, size] : result.mesh) {
    proto::Result::Axis& axis = *message.add_mesh();
    axis.set_name(name);
    axis.set_size(size);
  }
  message.set_devices(result.devices);
  message.set_device_classes(result.device_classes);
  message.set_makespan_s(result.makespan_s);
  message.set_compute_s(result.compute_s);
  message.set_exposed_communication_s(result.exposed_communication_s);
  message.set_waiting_s(result.waiting_s);
  message.set_flops(result.flops);
  if (result.mfu) message.set_mfu(*result.mfu);
  message.set_link_bytes(result.link_bytes);
  message.set_peak_memory_bytes(result.peak_memory_bytes);
  message.set_tasks(result.tasks);
  message.set_events(result.events);
  if (!result.pass.empty()) message.set_pass(result.pass);
  message.set_wall_s(result.wall_s);
  message.set_build_s(result.build_s);
  const RunTrust& trust = result.trust;
  message.set_trust_level(trust.level);
  message.set_trust_dataset(trust.dataset);
  if (trust.error) message.set_trust_error(*trust.error);
  if (trust.p95_error) message.set_trust_p95_error(*trust.p95_error);
  if (trust.fitted_error) message.set_trust_fitted_error(*trust.fitted_error);
  if (!trust.tier.empty()) message.set_trust_rung(trust.tier);
  for (const std::string& beyond : trust.beyond) message.add_trust_beyond(beyond);
  return encode(message, result_format, encoding);
}

}  // namespace podsim
